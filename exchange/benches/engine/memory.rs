//! The latency of memory: reads of random cache lines, dependent and sixteen at once.

use crate::median;
use std::hint::black_box;
use system::usage::thread_cpu_ns;

#[derive(Clone)]
#[repr(align(64))]
struct CacheLine {
    next: u32,
}

const READS: usize = 200_000;

/// Prints nanoseconds of CPU time per read: median, lowest and highest of the rounds.
pub fn print(rounds: usize) {
    println!("\n{:24} {:>22} {:>22}", "ns/read, by lines", "dependent", "16 at once");
    for lines in [100, 1_000, 10_000, 100_000, 1_000_000] {
        let all = ring(lines);
        let mut times = [const { Vec::new() }; 2];
        for round in 0..rounds {
            times[0].push(chased(&all, round * 7919 % lines));
            times[1].push(together(&all, round * 7919 % lines));
        }
        let [chased, together] = times.map(median);
        println!("{lines:<24} {chased:>22} {together:>22}");
    }
}

/// Lines of which each names the next, in one ring that jumps about (Sattolo's algorithm).
fn ring(lines: usize) -> Vec<CacheLine> {
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut state = 9u64;
    for at in (1..lines).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (state >> 33) as usize % at);
    }
    order.into_iter().map(|next| CacheLine { next }).collect()
}

/// Where a walk of the ring comes by.
fn walk(all: &[CacheLine], from: usize) -> Vec<u32> {
    std::iter::successors(Some(from as u32), |&at| Some(all[at as usize].next)).take(READS).collect()
}

fn chased(all: &[CacheLine], from: usize) -> f64 {
    let start = thread_cpu_ns();
    let mut at = from as u32;
    for _ in 0..READS {
        at = all[at as usize].next;
    }
    black_box(at);
    (thread_cpu_ns() - start) as f64 / READS as f64
}

/// The same lines, known before; waits after each sixteen.
fn together(all: &[CacheLine], from: usize) -> f64 {
    let places = walk(all, from + 1);
    let start = thread_cpu_ns();
    let mut sum = 0;
    for group in places.chunks(16) {
        // What comes next depends on what was read, by nothing: the bit is never set.
        let wait = (sum & 1 << 31) as usize;
        sum = group.iter().fold(sum, |sum, &place| sum | all[place as usize + wait].next);
    }
    black_box(sum);
    (thread_cpu_ns() - start) as f64 / READS as f64
}

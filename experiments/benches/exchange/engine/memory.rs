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

/// Prints the nanoseconds of CPU time per memory read: median, lowest and highest of the rounds.
pub fn print(rounds: usize) {
    println!("\n{:24} {:>22} {:>22}", "ns/read, by lines", "dependent", "16 at once");
    for lines in [100, 1_000, 10_000, 100_000, 1_000_000] {
        let cycle = random_cycle(lines);
        let mut times = [const { Vec::new() }; 2];
        for round in 0..rounds {
            times[0].push(dependent_reads(&cycle, round * 7919 % lines));
            times[1].push(independent_reads(&cycle, round * 7919 % lines));
        }
        let [dependent_reads, independent_reads] = times.map(median);
        println!("{lines:<24} {dependent_reads:>22} {independent_reads:>22}");
    }
}

/// Creates cache lines that each hold the index of the next, in one random cycle (Sattolo's
/// algorithm).
fn random_cycle(lines: usize) -> Vec<CacheLine> {
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut state = 9u64;
    for index in (1..lines).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(index, (state >> 33) as usize % index);
    }
    order.into_iter().map(|next| CacheLine { next }).collect()
}

/// Returns the indices that a walk of the cycle visits.
fn walk(cycle: &[CacheLine], from: usize) -> Vec<u32> {
    std::iter::successors(Some(from as u32), |&index| Some(cycle[index as usize].next)).take(READS).collect()
}

fn dependent_reads(cycle: &[CacheLine], from: usize) -> f64 {
    let start = thread_cpu_ns();
    let mut index = from as u32;
    for _ in 0..READS {
        index = cycle[index as usize].next;
    }
    black_box(index);
    (thread_cpu_ns() - start) as f64 / READS as f64
}

/// Reads the same lines from a list of indices; waits after each sixteen.
fn independent_reads(cycle: &[CacheLine], from: usize) -> f64 {
    let indices = walk(cycle, from + 1);
    let start = thread_cpu_ns();
    let mut sum = 0;
    for group in indices.chunks(16) {
        // A data dependency on the previous group without effect: the bit is never set.
        let dependency = (sum & 1 << 31) as usize;
        sum = group.iter().fold(sum, |sum, &index| sum | cycle[index as usize + dependency].next);
    }
    black_box(sum);
    (thread_cpu_ns() - start) as f64 / READS as f64
}

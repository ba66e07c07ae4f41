//! Compares the board with other crates, and its numbers of slots with each other: threads of one
//! process, alternated round after round. Prints medians over the rounds of the ratios to the board
//! with the slots that it chooses by itself, and the board's own times.
//!
//! `cargo run --release [ROUNDS]` in this folder; pin it with `taskset` if cores are to be named.

mod contenders;

use shm::board::BoardShape;
use shm::sync::{AtomicU64, Ordering};
use std::hint::black_box;
use std::time::{Duration, Instant};

const MOMENT: Duration = Duration::from_millis(10);

/// Nanoseconds for each, one contender, one round.
#[derive(Clone, Copy, Default)]
struct Times {
    /// No thread reads.
    write: f64,
    /// No thread writes.
    read: f64,
    /// While a thread reads without end.
    write_busy: f64,
    /// While a thread writes without end.
    read_busy: f64,
    /// Times that a read began again, a read, while a thread writes without end.
    again: f64,
    /// While a thread writes every 10 µs.
    read_paced: f64,
    /// Times that a read began again, a read, then.
    again_paced: f64,
}

/// Measures a function for a short time. Returns the nanoseconds of a call, and the mean of its
/// results.
fn time(mut once: impl FnMut() -> u32) -> (f64, f64) {
    let (begun, mut count, mut message) = (Instant::now(), 0_u64, 0_u64);
    loop {
        for _ in 0..16 {
            message += u64::from(once());
        }
        count += 16;
        let passed = begun.elapsed();
        if passed >= MOMENT {
            return (passed.as_nanos() as f64 / count as f64, message as f64 / count as f64);
        }
    }
}

/// Measures both ends of a value. `read` copies the newest value and returns how often it had to
/// begin again.
fn measure<const W: usize, T: Send, R: Send>(
    (mut writer, mut reader): (T, R),
    publish: impl Fn(&mut T, &[u64; W]) + Send,
    copy: impl Fn(&mut R, &mut [u64; W]) -> u32 + Send,
) -> Times {
    let mut value = [1_u64; W];
    let mut write = move || {
        value[0] += 1;
        publish(&mut writer, black_box(&value));
        0
    };
    let mut into = [0_u64; W];
    let mut read = move || {
        let again = copy(&mut reader, black_box(&mut into));
        black_box(&into);
        again
    };
    let mut times = Times { write: time(&mut write).0, read: time(&mut read).0, ..Times::default() };
    let over = AtomicU64::new(0);
    let is_over = || over.load(Ordering::Relaxed) != 0;
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || (time(&mut read), read));
        times.write_busy = time(&mut write).0;
        // Goes on until the reader is done: it may have begun later.
        while !reading.is_finished() {
            write();
        }
        let ((ns, again), mut read) = reading.join().expect("it does not panic");
        (times.read_busy, times.again) = (ns, again);
        let writing = scope.spawn(move || {
            while !is_over() {
                let begun = Instant::now();
                write();
                while begun.elapsed() < Duration::from_micros(10) {
                    std::hint::spin_loop();
                }
            }
        });
        (times.read_paced, times.again_paced) = time(&mut read);
        over.store(1, Ordering::Relaxed);
        writing.join().expect("it does not panic");
    });
    times
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn size<const W: usize>(rounds: usize) {
    let contenders = contenders::all::<W>();
    let chosen = BoardShape::slots_for(W).trailing_zeros() as usize - 1;
    let mut all: Vec<Vec<Times>> = vec![Vec::new(); contenders.len()];
    for round in 0..rounds {
        // Another one begins each round.
        for place in 0..contenders.len() {
            let place = (place + round) % contenders.len();
            all[place].push(contenders[place].1());
        }
    }
    println!(
        "\n{} bytes: the board takes {} slots: write {:.1} ns, read {:.1} ns",
        W * 8,
        BoardShape::slots_for(W),
        median(all[chosen].iter().map(|times| times.write).collect()),
        median(all[chosen].iter().map(|times| times.read).collect()),
    );
    println!("                 write   read  write  read    again  read    again");
    println!("                 alone  alone  busy   busy           paced");
    for (place, (name, _)) in contenders.iter().enumerate() {
        let ratio = |of: fn(&Times) -> f64| {
            median(all[place].iter().zip(&all[chosen]).map(|(times, board)| of(times) / of(board)).collect())
        };
        // Rare, so not their median.
        let again = |of: fn(&Times) -> f64| all[place].iter().map(of).sum::<f64>() / rounds as f64;
        println!(
            "{name:<15} {:>6.2} {:>6.2} {:>6.2} {:>6.2} {:>7.3} {:>6.2} {:>7.3}",
            ratio(|times| times.write),
            ratio(|times| times.read),
            ratio(|times| times.write_busy),
            ratio(|times| times.read_busy),
            again(|times| times.again),
            ratio(|times| times.read_paced),
            again(|times| times.again_paced),
        );
    }
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(15, |rounds| rounds.parse().expect("how many rounds"));
    println!(
        "{rounds} rounds; times as ratios to the board with the slots that it takes by itself; again: how often a read \
         began again, a read.\nbusy: the other end does the same without pause; paced: a write every 10 µs."
    );
    size::<2>(rounds);
    size::<6>(rounds);
    size::<16>(rounds);
    size::<64>(rounds);
    size::<512>(rounds);
    size::<8192>(rounds);
}

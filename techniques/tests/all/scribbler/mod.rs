//! A real process that overwrites all memory that a strategy may write, as fast as it can, while
//! the others trade.
//!
//! The scribbler is this test binary started again. It attaches as producer 0, sends some messages,
//! and then overwrites every word that [the topology](protocol::topology) lets strategy 0 write,
//! and sends garbage into the pipe or the socket. At the same time producers 1 and 2 send numbered
//! messages and receive their returns, and the engine's end pops, counts faults, checks, returns,
//! reads the scribbler's log, and sleeps on the doorbell that the scribbler can write. Then the
//! scribbler is killed, and the test checks whether the hand-off continues.
//!
//! If each producer has its own memory or connection, and in the pipe, no message of the others may
//! be lost, duplicated or changed. In a shared ring they may be, and the table shows how many;
//! there the test only requires that nothing panics and every call returns.
//!
//! `cargo test --release -p techniques --test all scribbler:: -- --nocapture` prints the table.
//! About a second a technique; `BULKHEAD_SLOW=1`: 60 s.

mod engine;
mod hostile;
mod messages;
mod round;

use crate::common::Run;
use crate::crash::report::{CrashReport, TrialCounts, is_slow};
use round::Round;
use std::time::{Duration, Instant};
use techniques::Technique;
use techniques::with_link;

/// The paces of the scribbler: number of idle spins between two words. Fast, it breaks a shared
/// ring at once; slow, the ring meets one corrupt word at a time.
const PACES: [(&str, u32); 2] = [("a fast scribbler", 0), ("a slow scribbler", 500)];
/// Number of rounds in a technique's time; a blocked ring ends its round early.
const ROUNDS: u32 = 4;

fn time_each() -> Duration {
    Duration::from_secs(if is_slow() { 60 } else { 1 })
}

#[test]
#[ignore = "started by another test as a process of its own"]
fn scribbler_process() {
    if let Ok(parameters) = std::env::var(hostile::PARAMETERS) {
        hostile::scribble(&parameters);
    }
}

/// Sent, whole, lost and duplicated are of the correct producers; `not whole` includes the
/// scribbler's own messages. The columns after the faults count rounds.
const COLUMNS: &[&str] = &[
    "rounds",
    "hostile words",
    "sent",
    "whole",
    "lost",
    "not whole",
    "duplicated",
    "faults",
    "detected",
    "check failed",
    "blocked",
    "continued",
    "successor",
];

#[test]
fn scribbler_harms_only_shared_memory() {
    // To run a single technique: `BULKHEAD_ONLY=linked`.
    let only = std::env::var("BULKHEAD_ONLY").unwrap_or_default();
    let between_processes = || Technique::all().into_iter().filter(|technique| technique.crosses_processes());
    for (pace, idle) in PACES {
        let report = CrashReport::new(pace, COLUMNS);
        for technique in between_processes().filter(|technique| technique.name().contains(&only)) {
            let (started, time) = (Instant::now(), time_each() / PACES.len() as u32);
            let mut counts = TrialCounts::default();
            while counts.count("rounds") == 0 || started.elapsed() < time {
                let run = Run::new(technique, 3, 64);
                let round = with_link!(technique, T => Round::play::<T>(&run, idle, time / ROUNDS));
                // The scribbler can only damage its own memory.
                if technique.info().apart {
                    round.assert_others_unaffected();
                }
                round.count(&mut counts);
            }
            if technique == Technique::default() {
                let detected = counts.count("detected");
                assert_eq!(detected, counts.count("rounds"), "it was detected in each round");
            }
            report.add(technique, counts);
        }
        report.print();
    }
}

//! Reads the results of a queue's consumer, and compares them with what was pushed.

use super::LATENCIES;
use crate::counters::AgentCounters;
use crate::labels::ConsumerCounter;
use shm::memory::ReadOnlyWords;
use shm::sync::Ordering;

/// Returns, for each producer, the number of its events in the first half of those that a consumer
/// took. `producers` is the number of producers.
pub fn first_half_counts(results: &ReadOnlyWords, producers: usize) -> Vec<u64> {
    (0..producers).map(|index| results.load(index, Ordering::Relaxed)).collect()
}

/// Returns the latency of each of the `taken` events that a consumer took, in ticks and in order of
/// consumption.
pub fn latencies(results: &ReadOnlyWords, taken: u64) -> impl Iterator<Item = u64> {
    let count = taken.min((results.len() - LATENCIES) as u64) as usize;
    (0..count).map(move |index| results.load(LATENCIES + index, Ordering::Relaxed))
}

/// Compares the events that were pushed with those that a consumer took, and describes each
/// problem. Returns the violations; empty if each event came once, whole and in its producer's
/// order.
pub fn problems(counters: &AgentCounters, pushed: u64, sum: u64) -> Vec<String> {
    let name = counters.role();
    let counted = [
        (ConsumerCounter::Damaged, "events damaged or of no producer"),
        (ConsumerCounter::Disordered, "events doubled or behind a later one of their producer"),
        (ConsumerCounter::Missing, "events passed over"),
    ];
    let mut problems: Vec<String> = counted
        .iter()
        .map(|(counter, problem)| (counters.get(*counter), problem))
        .filter(|(count, _)| *count > 0)
        .map(|(count, problem)| format!("{name}: {count} {problem}"))
        .collect();
    let taken = counters.get(ConsumerCounter::Taken);
    if taken != pushed {
        problems.push(format!("{name}: {taken} events taken of {pushed} pushed"));
    } else if counters.get(ConsumerCounter::Checksum) != sum {
        problems.push(format!("{name}: the sum of what was taken is not that of what was pushed"));
    }
    problems
}

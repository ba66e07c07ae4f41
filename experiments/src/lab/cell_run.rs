//! One run of a cell of the queue benchmark: its plan, and its figures.

use crate::benchmark::{BenchmarkRun, EndResults};
use analysis::experiment::{LabCell, LabLatency, LabPlan, LabRun, SideCost, Speed, Wait, histogram};
use anyhow::{Error, Result};
use protocol::benchmark::queue_results::{first_half_counts, latencies, problems};
use protocol::labels::{ConsumerCounter, ProducerCounter};
use protocol::plan::{EndWaiting, EventCost, Plan, QueueWork, Workload};
use protocol::status::StatusField;
use record::run::RunOutcome;

/// Returns the cores of consumers and of producers. Consumers get them from the last core down,
/// producers the remaining ones, or all.
fn cores_of(cores: &[u32], producers: u16, consumers: u16) -> Vec<Option<u32>> {
    let of = |index: usize| cores.get(index).copied();
    let left = cores.len().saturating_sub(consumers.into());
    let for_producers = if left == 0 { cores.len() } else { left }.max(1);
    let makers = (0..usize::from(producers)).map(|index| of(index % for_producers));
    let takers =
        (0..usize::from(consumers)).map(|index| of(cores.len().wrapping_sub(1 + index % cores.len().max(1))));
    makers.chain(takers).collect()
}

/// Returns the plan of a run whose ends are pinned to `cores`.
pub(super) fn plan_of(
    lab: &LabPlan,
    (number, cell): (u32, &LabCell),
    slow: EventCost,
    cores: &[u32],
) -> (Plan, QueueWork) {
    let (producers, events) = (u64::from(cell.producers), lab.events_of(cell));
    let cost = |speed| (speed == Speed::Slow).then_some(slow);
    let work = QueueWork {
        capacity: lab.slots_of(cell),
        events: (0..producers)
            .map(|index| events / producers + u64::from(index < events % producers))
            .collect(),
        consumers: cell.consumers,
        producer_cost: cost(cell.producer),
        consumer_cost: cost(cell.consumer),
        jitter: lab.jitter,
        waiting: match cell.wait {
            Wait::Busy => EndWaiting::Spin,
            Wait::Yield => EndWaiting::Yield,
            Wait::Poll => EndWaiting::Sleep(lab.poll_ns),
            Wait::Park => EndWaiting::Park,
        },
        slack_ns: lab.slack_ns,
        seed: lab.seed.wrapping_add(number.into()),
    };
    let cores = cores_of(cores, cell.producers, cell.consumers);
    let plan = Plan::for_benchmark(Workload::Queue(work.clone()), cell.technique, cell.isolation, &cores);
    (Plan { weaker_sandbox: lab.weaker_sandbox, ..plan }, work)
}

/// Returns the figures of a run that was made. `side_by_side` runs were made at the same time; 0:
/// it was made alone.
pub(super) fn run_of(
    number: u32,
    work: &QueueWork,
    made: &BenchmarkRun,
    side_by_side: u32,
) -> Result<LabRun> {
    let ns = |ticks: u64| (ticks as f64 * made.plan.ns_per_tick) as u64;
    let (producers, consumers) = made.ends.split_at(work.producers());
    let side = |ends: &[EndResults], polls: &dyn Fn(&EndResults) -> (u64, u64)| {
        let cost = |end: &EndResults| SideCost {
            cpu_ns: end.get(StatusField::CpuNs),
            voluntary: end.get(StatusField::VoluntarySwitches),
            involuntary: end.get(StatusField::InvoluntarySwitches),
            polls: polls(end).0,
            wakes: polls(end).1,
        };
        ends.iter().map(cost).fold(SideCost::default(), SideCost::plus)
    };
    let sent = |end: &EndResults, counter: ProducerCounter| end.counters.get(counter);
    let taken = |end: &EndResults, counter: ConsumerCounter| end.counters.get(counter);
    let mut found = Vec::new();
    if let RunOutcome::Failed { process, what, .. } = &made.outcome {
        found.push(format!("{process}: {what}"));
    } else {
        let pushed =
            producers.iter().map(|end| sent(end, ProducerCounter::Sent)).fold(0, u64::saturating_add);
        let sums = producers.iter().map(|end| sent(end, ProducerCounter::Checksum));
        let sum = sums.fold(0, u64::wrapping_add);
        if pushed != work.total_events() {
            found.push(format!("{pushed} events pushed of {}", work.total_events()));
        }
        found.extend(consumers.iter().flat_map(|end| problems(&end.counters, pushed, sum)));
    }
    let mut histogram = histogram();
    for end in consumers {
        let words = end.words.iter();
        for ticks in words.flat_map(|words| latencies(words, taken(end, ConsumerCounter::Taken))) {
            // It grows with its values: none is refused.
            let _ = histogram.record(ns(ticks).max(1));
        }
    }
    let begin = producers.iter().map(|end| end.get(StatusField::StartedTicks)).min().unwrap_or(0);
    let end = made.ends.iter().map(|end| end.get(StatusField::EndedTicks)).max().unwrap_or(0);
    let first = consumers.first().and_then(|end| end.words.as_ref());
    let halves = first.map_or_else(Vec::new, |words| first_half_counts(words, work.producers()));
    let half = halves.iter().copied().fold(0, u64::saturating_add);
    let longest = producers.iter().map(|end| ns(sent(end, ProducerCounter::LongestWait)));
    let takers = consumers.iter().map(|end| taken(end, ConsumerCounter::Taken));
    let mut run = LabRun {
        number,
        run_ns: ns(end.saturating_sub(begin)),
        taken: takers.fold(0, u64::saturating_add),
        latency: LabLatency::from_histogram(&histogram),
        producer: side(producers, &|end| {
            (sent(end, ProducerCounter::Waits), sent(end, ProducerCounter::Wakes))
        }),
        consumer: side(consumers, &|end| {
            (taken(end, ConsumerCounter::Waits), taken(end, ConsumerCounter::Wakes))
        }),
        histogram: String::new(),
        shares: halves.iter().map(|share| *share as f64 / half.max(1) as f64).collect(),
        longest_wait_ns: longest.collect(),
        side_by_side,
        problems: found,
    };
    run.pack_latencies(&histogram).map_err(Error::msg)?;
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_a_core_consumers_first() {
        let some = |cores: &[u32]| cores.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(cores_of(&[0, 1], 1, 1), some(&[0, 1]));
        assert_eq!(cores_of(&[0, 1], 3, 1), some(&[0, 0, 0, 1]));
        assert_eq!(cores_of(&[0, 1], 1, 3), some(&[0, 1, 0, 1]));
        assert_eq!(cores_of(&[2, 4, 6, 8], 2, 2), some(&[2, 4, 8, 6]));
        assert_eq!(cores_of(&[5], 2, 1), some(&[5, 5, 5]));
        assert_eq!(cores_of(&[0, 1], 2, 0), some(&[0, 1]));
        assert_eq!(cores_of(&[], 1, 1), [None, None]);
    }
}

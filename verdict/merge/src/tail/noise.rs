//! The machine's noise: the gaps of each thread over time, reduced to a drawable size, and the gaps
//! that logs dropped.

use crate::cause::{GapClass, GapTotal, LONG_GAP_NS};
use crate::figures::to_ns;
use crate::{MergedRun, ThreadLog};
use protocol::gaps::{DroppedGaps, MAX_GAPS, threshold_changes};
use protocol::stamps::{Gap, KernelEvents};
use record::numbers::{count, duration};
use record::run::RunRecord;
use record::run::ns_per_tick;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of time slices: as many as a page can show.
const MAX_SLICES: u64 = 400;
const MAX_NAMED_THREADS: usize = 3;

/// The machine's noise in a run: the times in which threads did not run, by thread and time slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineNoise {
    /// Length of a slice in nanoseconds, 1 or more; slice 0 begins with the schedule.
    pub slice_ns: u64,
    /// Number of time slices.
    pub slices: u64,
    /// Threads of the run, in the order of the plan.
    pub threads: Vec<ThreadNoise>,
}

/// The times in which one thread of a run did not run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadNoise {
    /// Name of the thread.
    pub thread: String,
    /// Core of the thread; null if not pinned.
    pub core: Option<u32>,
    /// Number of gaps in the thread's log.
    pub gaps: u64,
    /// Total length of the thread's gaps, in nanoseconds.
    pub gaps_ns: u64,
    /// Number of the gaps in which the kernel preempted the thread.
    pub preempted: u64,
    /// Total length of the gaps by preemption, in nanoseconds.
    pub preempted_ns: u64,
    /// Number of sleeps in the thread's log, by its idle strategy, that ended with work. Sleeps are
    /// not gaps and are not drawn.
    #[serde(default)]
    pub sleeps: u64,
    /// Total length of the sleeps, in nanoseconds.
    #[serde(default)]
    pub sleeps_ns: u64,
    /// The thread's gaps by class, without empty classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<GapTotal>,
    /// Time slices of the run in which the thread had gaps.
    pub slices: Vec<NoiseSlice>,
}

/// A thread's gaps (times in which it did not run) in one time slice of a run: their number and the
/// longest. A gap counts in the slice in which it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseSlice {
    /// Index of the slice.
    pub slice: u64,
    /// Number of the thread's gaps in the slice.
    pub gaps: u64,
    /// Longest gap in the slice, in nanoseconds.
    pub longest_ns: u64,
    /// Longest gap in the slice with a preemption, in nanoseconds; 0 if none.
    pub preempted_ns: u64,
}

impl MachineNoise {
    /// Computes the machine's noise of a merged run: when its threads did not run.
    pub fn from_run(record: &RunRecord, merged: &MergedRun, classes: &[Vec<GapClass>]) -> Self {
        let (ns_per_tick, start) = (ns_per_tick(record), record.clock.start_ticks);
        let last = merged.span.last_received.max(merged.span.last_sent);
        let span_ns = to_ns(last.saturating_sub(start), ns_per_tick);
        let slice_ns = span_ns / MAX_SLICES + 1;
        let slices = span_ns / slice_ns + 1;
        let thread = |(log, classes): (&ThreadLog, &Vec<GapClass>)| {
            let mut noise = ThreadNoise {
                thread: log.name.clone(),
                core: log.status.core(),
                gaps: log.gaps.len() as u64,
                sleeps: log.sleeps.len() as u64,
                ..ThreadNoise::default()
            };
            for sleep in &log.sleeps {
                noise.sleeps_ns = noise.sleeps_ns.saturating_add(to_ns(sleep.ticks, ns_per_tick));
            }
            let mut slices_with_gaps: BTreeMap<u64, NoiseSlice> = BTreeMap::new();
            for gap in &log.gaps {
                let ns = to_ns(gap.ticks, ns_per_tick);
                noise.gaps_ns = noise.gaps_ns.saturating_add(ns);
                let preempted = gap.events.has_counted(KernelEvents::INVOLUNTARY);
                if preempted {
                    noise.preempted += 1;
                    noise.preempted_ns = noise.preempted_ns.saturating_add(ns);
                }
                // Gaps before or after the orders are not drawn.
                let begun = gap.ended.saturating_sub(gap.ticks);
                let slice = to_ns(begun.saturating_sub(start), ns_per_tick) / slice_ns;
                if begun < start || slice >= slices {
                    continue;
                }
                let slice_with_gaps =
                    slices_with_gaps.entry(slice).or_insert(NoiseSlice { slice, ..NoiseSlice::default() });
                slice_with_gaps.gaps += 1;
                slice_with_gaps.longest_ns = slice_with_gaps.longest_ns.max(ns);
                if preempted {
                    slice_with_gaps.preempted_ns = slice_with_gaps.preempted_ns.max(ns);
                }
            }
            noise.slices = slices_with_gaps.into_values().collect();
            for class in GapClass::ALL.iter().copied() {
                let of_class = || log.gaps.iter().zip(classes).filter(|(_, of)| **of == class);
                let ns = || of_class().map(|(gap, _)| to_ns(gap.ticks, ns_per_tick));
                let total = GapTotal {
                    class,
                    gaps: of_class().count() as u64,
                    ns: ns().fold(0, u64::saturating_add),
                    long: ns().filter(|ns| *ns >= LONG_GAP_NS).count() as u64,
                };
                noise.classes.extend((total.gaps > 0).then_some(total));
            }
            noise
        };
        Self { slice_ns, slices, threads: merged.threads.iter().zip(classes).map(thread).collect() }
    }
}

/// Returns notes on gaps that full logs did not keep, for the threads that dropped most.
pub(super) fn dropped_notes(record: &RunRecord, merged: &MergedRun) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, what) in ["gaps", "sleeps"].into_iter().enumerate() {
        let threads = merged.threads.iter().zip(&record.plan.threads);
        let mut droppers: Vec<(&ThreadLog, u64, DroppedGaps)> = threads
            .map(|(log, plan)| (log, plan.sleep_records, log.status.dropped_gaps(plan.sleep_records)[index]))
            .filter(|(.., dropped)| dropped.count > 0)
            .collect();
        droppers.sort_by_key(|(.., dropped)| std::cmp::Reverse(dropped.ticks));
        notes.extend(droppers.iter().take(MAX_NAMED_THREADS).map(|(log, sleep_records, dropped)| {
            let kept = match what {
                "gaps" => (log.gaps.as_slice(), MAX_GAPS),
                _ => (log.sleeps.as_slice(), *sleep_records),
            };
            let start_ticks = record.clock.start_ticks;
            format!(
                "{}: of its {what} {}",
                log.name,
                dropped_note(kept, *dropped, start_ticks, ns_per_tick(record))
            )
        }));
        if let Some(more) = droppers.len().checked_sub(MAX_NAMED_THREADS).filter(|more| *more > 0) {
            notes.push(format!("{more} more threads have lost short {what}: see summary.json"));
        }
    }
    notes
}

/// Returns a note with the times from which on a log of this capacity kept only longer gaps, and
/// the amount of dropped ones.
fn dropped_note(
    (kept, capacity): (&[Gap], u64),
    dropped: DroppedGaps,
    start_ticks: u64,
    ns_per_tick: f64,
) -> String {
    let ns = |ticks| to_ns(ticks, ns_per_tick);
    let since = threshold_changes(kept, capacity).map(|(since, min_ns)| {
        let what = min_ns.map_or_else(|| "none".into(), |ns| format!("none below {}", duration(ns)));
        format!("{what} from {:.3} s on", ns(since.saturating_sub(start_ticks)) as f64 / 1e9)
    });
    format!(
        "its log kept {}: {} are missing, {} together; what they cost is unexplained",
        since.collect::<Vec<_>>().join(", "),
        count(dropped.count),
        duration(ns(dropped.ticks))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_gaps_note_names_their_start_time() {
        let kept: Vec<Gap> =
            (1..=60).map(|n| Gap { ended: n * 1_000_000, ticks: 1, events: KernelEvents(0) }).collect();
        let dropped = DroppedGaps { count: 7, ticks: 9_000_000 };
        assert_eq!(
            dropped_note((&kept, 64), dropped, 0, 1.0),
            "its log kept none below 24.0 µs from 0.058 s on, none below 192 µs from 0.060 s on: 7 are missing, \
             9,000 µs together; what they cost is unexplained"
        );
    }
}

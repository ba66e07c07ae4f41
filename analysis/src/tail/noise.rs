//! The machine's noise: the gaps of each thread over time, small enough to be drawn, and what its
//! log did not keep of them.

use crate::merge::{Merged, ThreadLog};
use crate::numbers::{count, duration};
use crate::record::RunRecord;
use crate::summary::figures::to_ns;
use crate::summary::ns_per_tick;
use protocol::gaps::{Dropped, MAX_GAPS, raised};
use protocol::plan::ThreadPlan;
use protocol::stamps::{Gap, Switches};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parts that a run is cut into: as many as can be told apart on a page.
const SLICES: u64 = 400;
/// So many threads with lost gaps are named.
const NAMED: usize = 3;

/// The gaps of all threads over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The length of a part in nanoseconds, 1 or more; part 0 begins with the schedule.
    pub slice_ns: u64,
    /// How many parts there are.
    pub slices: u64,
    /// The threads of the run, in the order of the plan.
    pub threads: Vec<ThreadNoise>,
}

/// The gaps of one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadNoise {
    /// Its name.
    pub thread: String,
    /// Its core; null: not pinned.
    pub core: Option<u32>,
    /// Gaps that its log kept.
    pub gaps: u64,
    /// How long they were together, in nanoseconds.
    pub gaps_ns: u64,
    /// Those of them in which the kernel took the core away.
    pub preempted: u64,
    /// How long those were together, in nanoseconds.
    pub preempted_ns: u64,
    /// How often it had given its core away by its idle strategy and then had work, as far as its
    /// log kept it. No gaps: in no picture.
    #[serde(default)]
    pub sleeps: u64,
    /// How long that was together, in nanoseconds.
    #[serde(default)]
    pub sleeps_ns: u64,
    /// The parts of the run with gaps in them.
    pub slices: Vec<NoiseSlice>,
}

/// A part of the run. A gap counts where it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoiseSlice {
    /// Which part.
    pub slice: u64,
    /// Gaps.
    pub gaps: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
    /// The longest of those in which the kernel took the core away, in nanoseconds; 0: none.
    pub preempted_ns: u64,
}

impl Noise {
    /// Of a merged run.
    pub fn of(record: &RunRecord, merged: &Merged) -> Self {
        let (ns_per_tick, start) = (ns_per_tick(record), record.clock.start_ticks);
        let last = merged.span.last_received.max(merged.span.last_sent);
        let span_ns = to_ns(last.saturating_sub(start), ns_per_tick);
        let slice_ns = span_ns / SLICES + 1;
        let slices = span_ns / slice_ns + 1;
        let thread = |log: &ThreadLog| {
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
            let mut parts: BTreeMap<u64, NoiseSlice> = BTreeMap::new();
            for gap in &log.gaps {
                let ns = to_ns(gap.ticks, ns_per_tick);
                noise.gaps_ns = noise.gaps_ns.saturating_add(ns);
                let preempted = gap.switches.has(Switches::INVOLUNTARY);
                if preempted {
                    noise.preempted += 1;
                    noise.preempted_ns = noise.preempted_ns.saturating_add(ns);
                }
                // What lies before or behind the orders is no part of the picture.
                let begun = gap.ended.saturating_sub(gap.ticks);
                let slice = to_ns(begun.saturating_sub(start), ns_per_tick) / slice_ns;
                if begun < start || slice >= slices {
                    continue;
                }
                let part = parts.entry(slice).or_insert(NoiseSlice { slice, ..NoiseSlice::default() });
                part.gaps += 1;
                part.longest_ns = part.longest_ns.max(ns);
                if preempted {
                    part.preempted_ns = part.preempted_ns.max(ns);
                }
            }
            noise.slices = parts.into_values().collect();
            noise
        };
        Self { slice_ns, slices, threads: merged.threads.iter().map(thread).collect() }
    }
}

/// What the log of a thread did not keep of its gaps, or of its sleeps.
struct Lost<'a> {
    thread: &'a str,
    kept: &'a [Gap],
    room: u64,
    dropped: Dropped,
}

impl Lost<'_> {
    /// From when on it kept longer ones only, and how much that was.
    fn told(&self, what: &str, start_ticks: u64, ns_per_tick: f64) -> String {
        let ns = |ticks| to_ns(ticks, ns_per_tick);
        let since = raised(self.kept, self.room).map(|(since, least)| {
            let what = least.map_or_else(|| "none".into(), |ns| format!("none below {}", duration(ns)));
            format!("{what} from {:.3} s on", ns(since.saturating_sub(start_ticks)) as f64 / 1e9)
        });
        format!(
            "{}: of its {what} its log kept {}: {} are missing, {} together; what they cost is unexplained",
            self.thread,
            since.collect::<Vec<_>>().join(", "),
            count(self.dropped.count),
            duration(ns(self.dropped.ticks))
        )
    }
}

/// What the logs did not keep, in words: of the threads that lost most.
pub(super) fn lost(record: &RunRecord, merged: &Merged) -> Vec<String> {
    let (mut gaps, mut sleeps) = (Vec::new(), Vec::new());
    for (log, ThreadPlan { sleep_records: room, .. }) in merged.threads.iter().zip(&record.plan.threads) {
        let [of_gaps, of_sleeps] = log.status.dropped_gaps(*room);
        gaps.push(Lost { thread: &log.name, kept: &log.gaps, room: MAX_GAPS, dropped: of_gaps });
        sleeps.push(Lost { thread: &log.name, kept: &log.sleeps, room: *room, dropped: of_sleeps });
    }
    let mut notes = Vec::new();
    for (what, mut losers) in [("gaps", gaps), ("sleeps", sleeps)] {
        losers.retain(|lost| lost.dropped.count > 0);
        losers.sort_by_key(|lost| std::cmp::Reverse(lost.dropped.ticks));
        notes.extend(
            losers
                .iter()
                .take(NAMED)
                .map(|lost| lost.told(what, record.clock.start_ticks, ns_per_tick(record))),
        );
        if let Some(more) = losers.len().checked_sub(NAMED).filter(|more| *more > 0) {
            notes.push(format!("{more} more threads have lost short {what}: see summary.json"));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_gaps_note_names_their_start_time() {
        let kept: Vec<Gap> =
            (1..=60).map(|n| Gap { ended: n * 1_000_000, ticks: 1, switches: Switches(0) }).collect();
        let dropped = Dropped { count: 7, ticks: 9_000_000 };
        let told = Lost { thread: "engine", kept: &kept, room: 64, dropped }.told("sleeps", 0, 1.0);
        assert_eq!(
            told,
            "engine: of its sleeps its log kept none below 24.0 µs from 0.058 s on, none below 192 µs from 0.060 s on: \
             7 are missing, 9,000 µs together; what they cost is unexplained"
        );
    }
}

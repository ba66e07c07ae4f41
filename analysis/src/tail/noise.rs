//! The machine's noise: the gaps of each thread over time, small enough to be drawn, and what its log did not keep of them.

use crate::merge::{Merged, ThreadLog};
use crate::numbers::{count, duration};
use crate::record::RunRecord;
use crate::summary::figures::to_ns;
use crate::summary::ns_per_tick;
use protocol::gaps::{Dropped, raised};
use protocol::stamps::Switches;
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
                ..ThreadNoise::default()
            };
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

/// What the logs did not keep, in words: of the threads that lost most, when each began to keep longer gaps only, and how much that was.
pub(super) fn lost(record: &RunRecord, merged: &Merged) -> Vec<String> {
    let ns_per_tick = ns_per_tick(record);
    let sum = |log: &ThreadLog, of: fn(&Dropped) -> u64| {
        log.status.dropped_gaps().iter().map(of).fold(0, u64::saturating_add)
    };
    let mut losers: Vec<&ThreadLog> =
        merged.threads.iter().filter(|log| sum(log, |part| part.count) > 0).collect();
    losers.sort_by_key(|log| std::cmp::Reverse(sum(log, |part| part.ticks)));
    let line = |log: &&ThreadLog| {
        let (gaps, ticks) = (sum(log, |part| part.count), sum(log, |part| part.ticks));
        let since: Vec<String> = raised(&log.gaps)
            .map(|(since, least)| {
                let at = to_ns(since.saturating_sub(record.clock.start_ticks), ns_per_tick) as f64 / 1e9;
                let what = least.map_or_else(|| "none".into(), |ns| format!("none below {}", duration(ns)));
                format!("{what} from {at:.3} s on")
            })
            .collect();
        format!(
            "{}: of its gaps its log kept {}: {} are missing, {} together; what they cost is unexplained",
            log.name,
            since.join(", "),
            count(gaps),
            duration(to_ns(ticks, ns_per_tick))
        )
    };
    let mut notes: Vec<String> = losers.iter().take(NAMED).map(line).collect();
    if losers.len() > NAMED {
        notes.push(format!("{} more threads have lost short gaps: see summary.json", losers.len() - NAMED));
    }
    notes
}

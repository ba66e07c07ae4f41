//! Orders open at a time: as the launcher saw them, and by Little's law.

use crate::merge::Merged;
use crate::record::RunRecord;
use protocol::labels::StrategyCounter;
use serde::{Deserialize, Serialize};

/// Orders open at a time, by two witnesses that know nothing of each other: the strategies'
/// counters, which the launcher samples from outside, and the stamps, by Little's law. Both over
/// the time from the first t1 to the last t8.
///
/// A strategy that dies takes its count with it, and its next incarnation begins at 0: in a run
/// with incidents all that comes from the strategies' own counts is null. Little's law is over the
/// orders that came back, which stamps tell in any run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InFlight {
    /// The mean of the launcher's samples, weighted by time.
    pub measured: Option<f64>,
    /// How many samples that are.
    pub samples: u64,
    /// Little's law: completions a second times the mean round trip.
    pub littles_law: Option<f64>,
    /// By how much the two differ, in orders: measured less law.
    pub difference: Option<f64>,
    /// By how much they may differ, in orders; see `allowed_difference`.
    pub allowed: Option<f64>,
    /// The sum of each strategy's most: no more than this were ever open at once.
    pub max: Option<u64>,
}

/// By what share samples may always differ from Little's law: counters are stored after each duty
/// cycle, stamps within it.
const LITTLE_TOLERANCE: f64 = 0.05;
/// How many standard deviations sampling may be off: an honest run is beyond it once in 16,000.
const LITTLE_DEVIATIONS: f64 = 4.0;

/// By how much samples may differ from Little's law: 5 % for the counters' lag, and four standard
/// deviations of the sampling error. That is told by how the samples change from one to the next,
/// and is no less than that of counting orders that come and go as they please (a Poisson number of
/// mean `law`), so that a few samples that agree by chance prove nothing.
fn allowed_difference(law: f64, samples: u64, deviation: f64) -> f64 {
    let chance = (law / samples.max(1) as f64).sqrt();
    law * LITTLE_TOLERANCE + LITTLE_DEVIATIONS * deviation.max(chance)
}

/// Both over the same time, first t1 to last t8: before and after it nothing is open.
pub(super) fn in_flight(record: &RunRecord, merged: &Merged) -> InFlight {
    let span = &merged.span;
    let ticks = span.last_received.checked_sub(span.first_sent).filter(|ticks| *ticks > 0);
    let threads = merged.threads.iter().zip(&record.plan.threads);
    let peaks = threads.flat_map(|(log, thread)| log.counters.agents(&thread.roles));
    let max = peaks.fold(0, |sum: u64, agent| sum.saturating_add(agent.get(StrategyCounter::InFlightPeak)));
    let nobody_died = record.incidents.is_empty();
    // λ·W with λ = completions / span and W = open ticks / completions: the completions cancel out.
    let law = ticks.map(|ticks| span.open_ticks as f64 / ticks as f64);
    // The samples are of everybody's counters.
    let all_count = nobody_died && merged.threads.iter().all(|thread| !thread.is_untrusted);
    let sampled = record.open_orders.filter(|open| all_count && open.samples > 0);
    let measured = sampled.zip(ticks).map(|(open, ticks)| open.order_ticks / ticks as f64);
    let allowed = sampled.zip(ticks).zip(law).map(|((open, ticks), law)| {
        allowed_difference(law, open.samples, open.variance.sqrt() / ticks as f64)
    });
    InFlight {
        measured,
        samples: sampled.map_or(0, |open| open.samples),
        littles_law: law,
        difference: measured.zip(law).map(|(measured, law)| measured - law),
        allowed,
        max: all_count.then_some(max),
    }
}

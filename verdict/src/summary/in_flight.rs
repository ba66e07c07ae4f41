//! The mean number of orders in flight: sampled by the launcher, and by Little's law.

use merge::MergedRun;
use protocol::labels::StrategyCounter;
use record::run::RunRecord;
use serde::{Deserialize, Serialize};

/// The mean number of open orders of a run, once from the strategies' counters and once from the
/// stamps, by Little's law. The launcher samples the counters. Both are over the time from the
/// first t1 to the last t8.
///
/// The counters of a strategy restart at 0 with each incarnation: in a run with incidents every
/// figure from the counters is null. Little's law uses the returned orders, which have stamps in
/// any run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InFlight {
    /// Mean number of open orders over the launcher's samples, weighted by time.
    pub measured: Option<f64>,
    /// Number of the launcher's samples.
    pub samples: u64,
    /// Mean number of open orders by Little's law: completions per second times the mean round
    /// trip.
    pub littles_law: Option<f64>,
    /// Measured number of open orders minus the number by Little's law.
    pub difference: Option<f64>,
    /// Allowed difference in orders; see `allowed_difference`.
    pub allowed: Option<f64>,
    /// Sum of each strategy's maximum of open orders: an upper bound of the orders open at once.
    pub max: Option<u64>,
}

/// Relative tolerance between samples and Little's law: counters are stored after each duty cycle,
/// stamps within it.
const LITTLE_TOLERANCE: f64 = 0.05;
/// Allowed sampling error in standard deviations: a correct run exceeds it once in 16,000.
const LITTLE_DEVIATIONS: f64 = 4.0;

/// Returns the allowed difference from Little's law: 5 % for the counters' lag, and four standard
/// deviations of the sampling error. That error follows from the changes between samples, and is at
/// least that of a Poisson number with mean `law`, so that a few samples that agree by chance prove
/// nothing.
fn allowed_difference(law: f64, samples: u64, deviation: f64) -> f64 {
    let chance = (law / samples.max(1) as f64).sqrt();
    law * LITTLE_TOLERANCE + LITTLE_DEVIATIONS * deviation.max(chance)
}

/// Computes the mean number of open orders from counters and from stamps, between first t1 and last
/// t8. Outside of that time no order is open.
pub(super) fn in_flight(record: &RunRecord, merged: &MergedRun) -> InFlight {
    let span = &merged.span;
    let ticks = span.last_received.checked_sub(span.first_sent).filter(|ticks| *ticks > 0);
    let threads = merged.threads.iter().zip(&record.plan.threads);
    let peaks = threads.flat_map(|(log, thread)| log.counters.agents(&thread.roles));
    let max = peaks.fold(0, |sum: u64, agent| sum.saturating_add(agent.get(StrategyCounter::InFlightPeak)));
    let nobody_died = record.incidents.is_empty();
    // λ·W with λ = completions / span and W = open ticks / completions: the completions cancel out.
    let law = ticks.map(|ticks| span.open_ticks as f64 / ticks as f64);
    // The samples include every strategy's counters.
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

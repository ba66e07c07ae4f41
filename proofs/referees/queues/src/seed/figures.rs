//! The figures of a round: those of the document's tables.

use hdrhistogram::Histogram;

/// Names of the figures: nanoseconds, and calls a second.
pub const NAMES: [&str; 14] = [
    "write min",
    "write mean",
    "write p50",
    "write p95",
    "write p99",
    "write max",
    "writes/s",
    "read min",
    "read mean",
    "read p50",
    "read p95",
    "read p99",
    "read max",
    "reads/s",
];

/// Histogram of the durations of a producer's or a consumer's calls.
pub struct Calls {
    times: Histogram<u64>,
    /// Calls that are still left out.
    warm_up: u64,
}

impl Calls {
    /// Creates the record of an end whose first calls are left out.
    pub fn after(warm_up: u64) -> Self {
        Self { times: Histogram::new_with_bounds(1, 1 << 40, 3).expect("bounds"), warm_up }
    }

    /// Records a call of some nanoseconds. A call within one step of the clock counts as 1 ns.
    pub fn record(&mut self, ns: u64) {
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else {
            self.times.saturating_record(ns.max(1));
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.times.add(&other.times).expect("the same bounds");
    }
}

/// What both ends did in one round.
pub struct Figures {
    pub writes: Calls,
    pub reads: Calls,
    /// Length of the round, in nanoseconds.
    pub ns: u64,
}

impl Figures {
    /// Returns the figures in the order of [`NAMES`].
    pub fn values(&self) -> Vec<f64> {
        let of = |Calls { times: calls, .. }: &Calls| {
            let at = |share| calls.value_at_quantile(share) as f64;
            let rate = calls.len() as f64 * 1e9 / self.ns as f64;
            [calls.min() as f64, calls.mean(), at(0.5), at(0.95), at(0.99), calls.max() as f64, rate]
        };
        [of(&self.writes), of(&self.reads)].concat()
    }
}

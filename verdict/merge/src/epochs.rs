//! The epochs of a crossover run: to which epoch an order belongs, and whether it is due in the
//! epoch's washout.

use protocol::plan::Trading;
use record::run::{RunRecord, ns_per_tick};

/// The epochs of a crossover run, here equal slices of time: in each, only the strategies of one
/// isolation level are offered orders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epochs {
    start_ticks: u64,
    ns_per_tick: f64,
    epoch_ns: u64,
    groups: u64,
}

impl Epochs {
    /// Returns the epochs of a run; `None` if its strategies were all offered orders at all times.
    pub(super) fn from_record(record: &RunRecord) -> Option<Self> {
        let trading = record.plan.trading();
        (trading.crossover_ns > 0).then(|| Self {
            start_ticks: record.clock.start_ticks,
            ns_per_tick: ns_per_tick(record),
            epoch_ns: trading.crossover_ns,
            groups: record.plan.isolation.as_slice().len().max(1) as u64,
        })
    }

    /// Returns for how long one isolation level is offered orders before the next has its turn, in
    /// nanoseconds.
    pub const fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// Returns the index of the block (one epoch for each isolation level in the run's list) in
    /// which the tick `due` falls.
    pub fn block_of(&self, due: u64) -> u64 {
        self.since_start_ns(due) / self.epoch_ns.saturating_mul(self.groups)
    }

    /// Returns `true` if the tick `due` is in a washout, the beginning of an epoch whose orders are
    /// not counted.
    pub fn is_washout(&self, due: u64) -> bool {
        self.since_start_ns(due) % self.epoch_ns < Trading::WASHOUT_NS
    }

    fn since_start_ns(&self, due: u64) -> u64 {
        // Due times were whole nanoseconds before they were ticks.
        (due.saturating_sub(self.start_ticks) as f64 * self.ns_per_tick).round() as u64
    }
}

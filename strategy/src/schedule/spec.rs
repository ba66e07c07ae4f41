//! Specification of a sampled schedule, and its checks.

use super::entry::MAX_DELAY_NS;
use protocol::wire::{MAX_SEQUENCE, MAX_STRATEGIES, MAX_VENUES};
use serde::{Deserialize, Serialize};
use thiserror::Error;

system::named_enum! {
    /// The random process by which due times are spread over the window.
    Arrivals {
        /// Each order is due at a time of its own, drawn uniformly from `[0, window)`: a fixed
        /// number of orders at random times.
        Uniform = "uniform",
        /// Exponential gaps with a mean of window / orders, as they come: the last order is due
        /// near the end of the window, before or after it.
        Poisson = "poisson",
        /// Bursts: gaps from a Pareto distribution, all scaled so that the last order is due
        /// exactly at the end of the window. Its shape is 1.5: finite mean, infinite variance.
        /// About four in five gaps are shorter than their mean of window / orders, a few are
        /// hundreds of times as long, none is longer than the window.
        Pareto = "pareto",
        /// Closed loop: no due times (all 0); every order goes out as soon as its ring takes it.
        Stress = "stress",
    }
}

/// The maximum number of orders in a schedule: 2^28, which is 8 GiB of entries.
pub const MAX_ORDERS: u64 = 1 << 28;

/// The longest time over which orders can be due, in nanoseconds: 2^53 (104 days). Up to that every
/// nanosecond has an `f64` of its own.
pub const MAX_WINDOW_NS: u64 = 1 << 53;

// Even if one strategy has all orders, each has a sequence.
const _: () = assert!(MAX_ORDERS <= MAX_SEQUENCE);

/// The range from which orders' delays at venues are drawn, in whole nanoseconds, both ends
/// included. Equal ends are a fixed delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayRange {
    /// The shortest delay, in nanoseconds.
    pub min_ns: u64,
    /// The longest delay, in nanoseconds, at least `min_ns` and at most [`MAX_DELAY_NS`].
    pub max_ns: u64,
}

/// The parameters from which a schedule of orders is drawn at random. Equal specs give equal
/// schedules on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Number of strategies, 1 to [`MAX_STRATEGIES`]; each order is assigned to one of them at
    /// random.
    pub strategies: u16,
    /// Number of venues, 1 to [`MAX_VENUES`]; each order is assigned to one of them at random.
    pub venues: u16,
    /// Number of orders of all strategies together, 1 to [`MAX_ORDERS`].
    pub orders: u64,
    /// The length of the time in which the orders are due, in nanoseconds, 1 to [`MAX_WINDOW_NS`];
    /// ignored for stress.
    pub window_ns: u64,
    /// The random process from which the orders' due times are drawn.
    pub arrivals: Arrivals,
    /// The range from which the venue's delay of each order is drawn.
    pub delay: DelayRange,
    /// Seed of the random numbers from which the schedule is drawn.
    pub seed: u64,
}

/// The error that no schedule of orders can be drawn from the settings.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SpecError {
    /// The number of strategies is 0 or above the maximum.
    #[error("{0} strategies: a run holds 1 to {MAX_STRATEGIES}")]
    Strategies(u16),
    /// The number of venues is 0 or above the maximum.
    #[error("{0} venues: a run holds 1 to {MAX_VENUES}")]
    Venues(u16),
    /// The number of orders is 0 or above the maximum.
    #[error("{0} orders: a schedule holds 1 to {MAX_ORDERS}")]
    Orders(u64),
    /// The window in which orders are due is empty or too long.
    #[error("a window of {0} ns: expected 1 ns to {MAX_WINDOW_NS} ns (104 days)")]
    Window(u64),
    /// The maximum delay is below the minimum delay.
    #[error("delays from {min_ns} ns to {max_ns} ns: the shortest is longer than the longest, swap them")]
    DelayReversed {
        /// The shortest, in nanoseconds.
        min_ns: u64,
        /// The longest, in nanoseconds.
        max_ns: u64,
    },
    /// A venue delay is too long for its 48-bit field.
    #[error("a delay of {0} ns: an order holds at most {MAX_DELAY_NS} ns (78 hours)")]
    DelayTooLong(u64),
    /// The replay speed is not a positive number.
    #[error("speed {0}: expected a number above 0, for example 2 for twice as fast as recorded")]
    Speed(f64),
    /// The memory for the schedule's entries cannot be allocated.
    #[error("no memory for a schedule of {0} orders ({mib} MiB): ask for fewer", mib = (.0 >> 15) + 1)]
    Memory(u64),
}

impl Spec {
    /// Checks that a schedule of orders can be drawn with these parameters.
    pub fn check(&self) -> Result<(), SpecError> {
        check_counts(self.strategies, self.venues)?;
        check_orders(self.orders)?;
        if self.arrivals != Arrivals::Stress && !(1..=MAX_WINDOW_NS).contains(&self.window_ns) {
            return Err(SpecError::Window(self.window_ns));
        }
        self.delay.check()
    }
}

impl DelayRange {
    /// Checks that venues' delays can be drawn from this range.
    pub fn check(&self) -> Result<(), SpecError> {
        let Self { min_ns, max_ns } = *self;
        if min_ns > max_ns {
            return Err(SpecError::DelayReversed { min_ns, max_ns });
        }
        if max_ns > MAX_DELAY_NS { Err(SpecError::DelayTooLong(max_ns)) } else { Ok(()) }
    }
}

pub(super) fn check_counts(strategies: u16, venues: u16) -> Result<(), SpecError> {
    if !(1..=MAX_STRATEGIES).contains(&usize::from(strategies)) {
        return Err(SpecError::Strategies(strategies));
    }
    if (1..=MAX_VENUES).contains(&usize::from(venues)) { Ok(()) } else { Err(SpecError::Venues(venues)) }
}

pub(super) fn check_orders(orders: u64) -> Result<(), SpecError> {
    if (1..=MAX_ORDERS).contains(&orders) { Ok(()) } else { Err(SpecError::Orders(orders)) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn small() -> Spec {
        Spec {
            strategies: 4,
            venues: 3,
            orders: 10_000,
            window_ns: 1_000_000_000,
            arrivals: Arrivals::Uniform,
            delay: DelayRange { min_ns: 5_000_000, max_ns: 500_000_000 },
            seed: 42,
        }
    }

    #[test]
    fn each_field_out_of_range_is_named() {
        let error = |change: fn(&mut Spec)| {
            let mut spec = small();
            change(&mut spec);
            spec.check().unwrap_err()
        };
        assert_eq!(error(|s| s.strategies = 0), SpecError::Strategies(0));
        assert_eq!(error(|s| s.strategies = 257), SpecError::Strategies(257));
        assert_eq!(error(|s| s.venues = 0), SpecError::Venues(0));
        assert_eq!(error(|s| s.venues = 65), SpecError::Venues(65));
        assert_eq!(error(|s| s.orders = 0), SpecError::Orders(0));
        assert_eq!(error(|s| s.orders = u64::MAX), SpecError::Orders(u64::MAX));
        assert_eq!(error(|s| s.window_ns = 0), SpecError::Window(0));
        assert_eq!(error(|s| s.window_ns = u64::MAX), SpecError::Window(u64::MAX));
        let reversed = SpecError::DelayReversed { min_ns: 5_000_000, max_ns: 0 };
        assert_eq!(error(|s| s.delay.max_ns = 0), reversed);
        assert_eq!(error(|s| s.delay.max_ns = 1 << 48), SpecError::DelayTooLong(1 << 48));
    }

    #[test]
    fn stress_needs_no_window_and_longest_delay_is_valid() {
        let delay = DelayRange { min_ns: MAX_DELAY_NS, max_ns: MAX_DELAY_NS };
        assert_eq!(Spec { arrivals: Arrivals::Stress, window_ns: 0, delay, ..small() }.check(), Ok(()));
    }
}

//! Times with an error bound.

use core::fmt;

/// A time in nanoseconds with its maximum error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncertainNs {
    /// Middle of the possible range, in nanoseconds.
    pub ns: i64,
    /// Maximum error of the time, in nanoseconds.
    pub error_ns: u64,
}

impl UncertainNs {
    /// Returns `true` if the time is larger than its error.
    pub const fn is_significant(&self) -> bool {
        self.ns.unsigned_abs() > self.error_ns
    }

    /// Returns the minimum and the maximum that the uncertain time can have, in nanoseconds.
    pub const fn bounds(&self) -> (i128, i128) {
        (self.ns as i128 - self.error_ns as i128, self.ns as i128 + self.error_ns as i128)
    }
}

impl fmt::Display for UncertainNs {
    /// Formats the value with its error; an insignificant one as its error alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_significant() {
            write!(f, "{} ns ± {} ns", self.ns, self.error_ns)
        } else {
            write!(f, "less than its error, {} ns", self.error_ns)
        }
    }
}

/// The four clock readings of a message to the other host and back, each by the clock of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Time at which the message left this host, in nanoseconds of this host's clock.
    pub sent: u64,
    /// Time at which the message arrived at the other host, in nanoseconds of that host's clock.
    pub arrived: u64,
    /// Time at which the answer left the other host, in nanoseconds of that host's clock.
    pub answered: u64,
    /// Time at which the answer arrived at this host, in nanoseconds of this host's clock.
    pub returned: u64,
}

/// The times of a message's round trip to the other host: `out`, `there` and `home`, which add up
/// to `whole`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTripStages {
    /// Time of the message from this host to the other, in nanoseconds.
    pub out: UncertainNs,
    /// Time in nanoseconds from the message's arrival at the other host to its answer, by that
    /// host's clock.
    pub there: u64,
    /// Time of the answer from the other host to this one, in nanoseconds.
    pub home: UncertainNs,
    /// Total time of the round trip in nanoseconds, by this host's clock.
    pub whole: u64,
}

/// Returns a quantile (nearest rank) of uncertain values; `None` without values or if `share` is
/// not in 0 to 1.
pub fn quantile(values: &[UncertainNs], share: f64) -> Option<UncertainNs> {
    if values.is_empty() || !(0.0..=1.0).contains(&share) {
        return None;
    }
    let rank = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1;
    let at_rank = |end: fn(&UncertainNs) -> i128| {
        let mut values: Vec<i128> = values.iter().map(end).collect();
        *values.select_nth_unstable(rank).1
    };
    let (low, high) = (at_rank(|known| known.bounds().0), at_rank(|known| known.bounds().1));
    let middle = low.midpoint(high);
    let error_ns = u64::try_from((high - middle).max(middle - low)).ok()?;
    Some(UncertainNs { ns: i64::try_from(middle).ok()?, error_ns })
}

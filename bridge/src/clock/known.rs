//! Figures that are known to within an error.

use core::fmt;

/// A time in nanoseconds, and how far the truth may be from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The middle of what it can be.
    pub ns: i64,
    /// It is at most so far away.
    pub error_ns: u64,
}

impl Known {
    /// Whether it says anything: a figure that is smaller than its error does not.
    pub const fn says_something(&self) -> bool {
        self.ns.unsigned_abs() > self.error_ns
    }

    /// The least that it can be, and the most.
    pub const fn ends(&self) -> (i128, i128) {
        (self.ns as i128 - self.error_ns as i128, self.ns as i128 + self.error_ns as i128)
    }
}

impl fmt::Display for Known {
    /// With its error; where it says nothing, the error alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.says_something() {
            write!(f, "{} ns ± {} ns", self.ns, self.error_ns)
        } else {
            write!(f, "less than its error, {} ns", self.error_ns)
        }
    }
}

/// When something went to the other host and came back, each by the clock of the host where that
/// was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readings {
    /// It left here, by this clock.
    pub sent: u64,
    /// It arrived there, by the other.
    pub arrived: u64,
    /// It left there, by the other.
    pub left: u64,
    /// It was back, by this clock.
    pub back: u64,
}

/// The stages between two hosts: `out + there + home` is `whole`, to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legs {
    /// From here to there.
    pub out: Known,
    /// There, by that host's clock alone.
    pub there: u64,
    /// From there to here.
    pub home: Known,
    /// All of it, by this host's clock alone.
    pub whole: u64,
}

/// The value below which that share of all lies (nearest rank), with the error that the errors of
/// all leave it: where every value can be as small, or as large, as it may be, it is this. `None`:
/// there are none, or `share` is not from 0 to 1.
pub fn quantile(values: &[Known], share: f64) -> Option<Known> {
    if values.is_empty() || !(0.0..=1.0).contains(&share) {
        return None;
    }
    let rank = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1;
    let at_rank = |end: fn(&Known) -> i128| {
        let mut ends: Vec<i128> = values.iter().map(end).collect();
        *ends.select_nth_unstable(rank).1
    };
    let (low, high) = (at_rank(|known| known.ends().0), at_rank(|known| known.ends().1));
    let middle = low.midpoint(high);
    let error_ns = u64::try_from((high - middle).max(middle - low)).ok()?;
    Some(Known { ns: i64::try_from(middle).ok()?, error_ns })
}

//! Computes bounds on how far the other clock is ahead at any time.

use super::samples::{Bound, Samples};
use super::{RoundTrip, RoundTripStages, UncertainNs};
use thiserror::Error;

/// Readings are whole nanoseconds: a difference of two has an error of one at each end.
const RESOLUTION_NS: f64 = 1.0;
const PPM: f64 = 1e-6;

/// Assumed limits, in parts per million, on the difference between two hosts' clock rates and on
/// that difference's deviation from a constant. Message delays may be arbitrary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockAssumptions {
    /// Maximum difference of the two clocks' rates, in parts per million.
    pub drift_ppm: f64,
    /// Maximum change of the difference of the clocks' rates, in parts per million: crystals warm
    /// up.
    pub wander_ppm: f64,
}

impl Default for ClockAssumptions {
    /// The most that Linux slews a clock by, and several times a crystal's change within minutes.
    fn default() -> Self {
        Self { drift_ppm: 500.0, wander_ppm: 5.0 }
    }
}

/// The reason why the offset between two hosts' clocks is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OffsetError {
    /// There are only frames of one direction.
    #[error("the clocks are not known to each other: no frame has gone both ways")]
    OneWay,
    /// The bounds of the frames contradict each other.
    #[error("the clocks contradict themselves: one was set, or drifts more than is assumed")]
    Contradiction,
}

/// A closed interval of values, such as times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval<T> {
    /// Lower end of the interval.
    pub low: T,
    /// Upper end of the interval.
    pub high: T,
}

/// Bounds on how far the other host's clock is ahead of this host's.
#[derive(Clone, Debug)]
pub struct Offset {
    /// Time of the first frame by this clock.
    pub(super) first: u64,
    pub(super) base: i128,
    /// Rate at which the other clock gains at any time, in nanoseconds per nanosecond.
    pub(super) rate: Interval<f64>,
    /// The constant part of the rate.
    pub(super) drift: Interval<f64>,
    pub(super) upper_bounds: Vec<Bound>,
    pub(super) lower_bounds: Vec<Bound>,
}

impl Samples {
    /// Computes the bounds on the offset between two hosts' clocks from all frames.
    pub fn solve(&self, assumed: &ClockAssumptions) -> Result<Offset, OffsetError> {
        let (first, base) = self.origin.ok_or(OffsetError::OneWay)?;
        let (upper_bounds, lower_bounds) = (self.upper_bounds.all(), self.lower_bounds.all());
        if upper_bounds.is_empty() || lower_bounds.is_empty() {
            return Err(OffsetError::OneWay);
        }
        let (max_rate, wander) = (assumed.drift_ppm * PPM, assumed.wander_ppm * PPM);
        let mut drift = Interval { low: -max_rate, high: max_rate };
        for upper in &upper_bounds {
            for lower in &lower_bounds {
                let (ns, gained) = ((upper.at - lower.at) as f64, (upper.ahead - lower.ahead) as f64);
                // The mean rate between the two is within the wander of the constant rate.
                if ns > 0.0 {
                    drift.high = drift.high.min((gained + 2.0 * RESOLUTION_NS) / ns + wander);
                } else if ns < 0.0 {
                    drift.low = drift.low.max((gained + 2.0 * RESOLUTION_NS) / ns - wander);
                }
            }
        }
        let rate =
            Interval { low: (drift.low - wander).max(-max_rate), high: (drift.high + wander).min(max_rate) };
        let offset = Offset { first, base, rate, drift, upper_bounds, lower_bounds };
        let is_possible = |bound: &Bound| {
            let Interval { low, high } = offset.bounds(bound.at as f64);
            low <= high
        };
        let all_are = offset.upper_bounds.iter().chain(&offset.lower_bounds).all(is_possible);
        if drift.low <= drift.high && all_are { Ok(offset) } else { Err(OffsetError::Contradiction) }
    }
}

impl Offset {
    /// Returns bounds, in nanoseconds, on how far the other host's clock is ahead at `local_ns`,
    /// also before the first and after the last frame. `local_ns` is a time of this host's clock.
    pub fn at(&self, local_ns: u64) -> Interval<i128> {
        let Interval { low, high } = self.bounds((i128::from(local_ns) - i128::from(self.first)) as f64);
        Interval { low: self.base + low.floor() as i128, high: self.base + high.ceil() as i128 }
    }

    /// Returns bounds, in parts per million, on the constant part of the rate at which the other
    /// host's clock runs faster than this one's. The rate varies around this part by at most
    /// [`ClockAssumptions::wander_ppm`].
    pub fn drift_ppm(&self) -> Interval<f64> {
        Interval { low: self.drift.low / PPM, high: self.drift.high / PPM }
    }

    fn bounds(&self, at: f64) -> Interval<f64> {
        let gained = |bound: &Bound, later: f64, earlier: f64| {
            let ns = at - bound.at as f64;
            bound.ahead as f64 + if ns >= 0.0 { ns * later } else { ns * earlier }
        };
        let Interval { low: slow, high: fast } = self.rate;
        let high =
            self.upper_bounds.iter().map(|bound| gained(bound, fast, slow)).fold(f64::INFINITY, f64::min);
        let low =
            self.lower_bounds.iter().map(|bound| gained(bound, slow, fast)).fold(f64::NEG_INFINITY, f64::max);
        Interval { low: low - RESOLUTION_NS, high: high + RESOLUTION_NS }
    }

    /// Splits a message's round trip between hosts into its stages, which add up to the whole;
    /// `None` if the readings are impossible.
    pub fn stages(&self, readings: &RoundTrip) -> Option<RoundTripStages> {
        let RoundTrip { sent, arrived, answered, returned } = *readings;
        let (whole, there) = (returned.checked_sub(sent)?, answered.checked_sub(arrived)?);
        let Interval { low, high } = self.at(sent.midpoint(returned));
        // The offset changes during the round trip.
        let moved = self.rate.low.abs().max(self.rate.high.abs()) * whole as f64 / 2.0;
        let moved = moved.ceil() as i128;
        let (low, high) = (low - moved, high + moved);
        let ahead = low.midpoint(high);
        let error_ns = u64::try_from((high - ahead).max(ahead - low) + 1).ok()?;
        let known = |ns: i128| Some(UncertainNs { ns: i64::try_from(ns).ok()?, error_ns });
        Some(RoundTripStages {
            out: known(i128::from(arrived) - i128::from(sent) - ahead)?,
            there,
            home: known(i128::from(returned) - i128::from(answered) + ahead)?,
            whole,
        })
    }
}

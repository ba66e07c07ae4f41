//! How far the other clock is ahead, at any time, within bounds.

use super::samples::{Bound, Samples};
use super::{Known, Legs, Readings};
use thiserror::Error;

/// Nanoseconds are whole: of a difference of two readings one is unknown at each end.
const WHOLE: f64 = 1.0;
const PPM: f64 = 1e-6;

/// What is assumed of the two clocks. Nothing is assumed of what frames take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// Their rates never differ by more than this, in parts per million.
    pub drift_ppm: f64,
    /// How they differ never differs from some one rate by more than this, in parts per million:
    /// crystals that warm up, a clock that is slewed.
    pub wander_ppm: f64,
}

impl Default for Assumed {
    /// 500 ppm, the most that Linux slews a clock by; 5 ppm, several times what a crystal changes
    /// within minutes.
    fn default() -> Self {
        Self { drift_ppm: 500.0, wander_ppm: 5.0 }
    }
}

/// Why nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoOffset {
    /// Frames of one direction alone say nothing.
    #[error("the clocks are not known to each other: no frame has gone both ways")]
    OneWay,
    /// What frames say cannot all be true.
    #[error("the clocks contradict themselves: one was set, or drifts more than is assumed")]
    Contradiction,
}

/// From, to: both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval<T> {
    /// The least that it can be.
    pub low: T,
    /// The most.
    pub high: T,
}

/// How far the other clock is ahead of this one.
#[derive(Clone, Debug)]
pub struct Offset {
    /// By this clock.
    pub(super) first: u64,
    pub(super) base: i128,
    /// How fast the other clock gains, at any time: nanoseconds a nanosecond.
    pub(super) rate: Interval<f64>,
    /// The one rate that [`Assumed::wander_ppm`] is about.
    pub(super) drift: Interval<f64>,
    pub(super) at_most: Vec<Bound>,
    pub(super) at_least: Vec<Bound>,
}

impl Samples {
    /// What all frames together say.
    ///
    /// # Errors
    /// [`NoOffset`].
    pub fn solve(&self, assumed: &Assumed) -> Result<Offset, NoOffset> {
        let (first, base) = self.origin.ok_or(NoOffset::OneWay)?;
        let (at_most, at_least) = (self.at_most.all(), self.at_least.all());
        if at_most.is_empty() || at_least.is_empty() {
            return Err(NoOffset::OneWay);
        }
        let (most, wander) = (assumed.drift_ppm * PPM, assumed.wander_ppm * PPM);
        let mut drift = Interval { low: -most, high: most };
        for upper in &at_most {
            for lower in &at_least {
                let (ns, gained) = ((upper.at - lower.at) as f64, (upper.ahead - lower.ahead) as f64);
                // Its mean rate between the two is within the wander of the one rate.
                if ns > 0.0 {
                    drift.high = drift.high.min((gained + 2.0 * WHOLE) / ns + wander);
                } else if ns < 0.0 {
                    drift.low = drift.low.max((gained + 2.0 * WHOLE) / ns - wander);
                }
            }
        }
        let rate = Interval { low: (drift.low - wander).max(-most), high: (drift.high + wander).min(most) };
        let offset = Offset { first, base, rate, drift, at_most, at_least };
        let is_possible = |bound: &Bound| {
            let Interval { low, high } = offset.bounds(bound.at as f64);
            low <= high
        };
        let all_are = offset.at_most.iter().chain(&offset.at_least).all(is_possible);
        if drift.low <= drift.high && all_are { Ok(offset) } else { Err(NoOffset::Contradiction) }
    }
}

impl Offset {
    /// How far the other clock is ahead at that time of this clock, in nanoseconds, also before the
    /// first frame and after the last.
    pub fn at(&self, local_ns: u64) -> Interval<i128> {
        let Interval { low, high } = self.bounds((i128::from(local_ns) - i128::from(self.first)) as f64);
        Interval { low: self.base + low.floor() as i128, high: self.base + high.ceil() as i128 }
    }

    /// The one rate at which the other clock gains, give or take the wander that is assumed: parts
    /// per million.
    pub fn drift_ppm(&self) -> Interval<f64> {
        Interval { low: self.drift.low / PPM, high: self.drift.high / PPM }
    }

    fn bounds(&self, at: f64) -> Interval<f64> {
        let gained = |bound: &Bound, later: f64, earlier: f64| {
            let ns = at - bound.at as f64;
            bound.ahead as f64 + if ns >= 0.0 { ns * later } else { ns * earlier }
        };
        let Interval { low: slow, high: fast } = self.rate;
        let high = self.at_most.iter().map(|bound| gained(bound, fast, slow)).fold(f64::INFINITY, f64::min);
        let low =
            self.at_least.iter().map(|bound| gained(bound, slow, fast)).fold(f64::NEG_INFINITY, f64::max);
        Interval { low: low - WHOLE, high: high + WHOLE }
    }

    /// The stages of something that went from this host to the other and came back. Each clock
    /// measures what began and ended on its host; what crossed is known to within the error of the
    /// offset, the same both ways. They add up to the whole, to the nanosecond. `None`: the
    /// readings cannot be, as one that came back before it was sent.
    pub fn legs(&self, readings: &Readings) -> Option<Legs> {
        let Readings { sent, arrived, left, back } = *readings;
        let (whole, there) = (back.checked_sub(sent)?, left.checked_sub(arrived)?);
        let Interval { low, high } = self.at(sent.midpoint(back));
        // It is not the same all the time.
        let moved = self.rate.low.abs().max(self.rate.high.abs()) * whole as f64 / 2.0;
        let moved = moved.ceil() as i128;
        let (low, high) = (low - moved, high + moved);
        let ahead = low.midpoint(high);
        let error_ns = u64::try_from((high - ahead).max(ahead - low) + 1).ok()?;
        let known = |ns: i128| Some(Known { ns: i64::try_from(ns).ok()?, error_ns });
        Some(Legs {
            out: known(i128::from(arrived) - i128::from(sent) - ahead)?,
            there,
            home: known(i128::from(back) - i128::from(left) + ahead)?,
            whole,
        })
    }
}

//! Bounds on the offset between two clocks, from the times at which frames were sent and seen.
//!
//! A frame sent at `s` by this clock and seen at `r` by the other did not take negative time: at
//! `s` the other clock is ahead by at most `r − s`. A frame sent at `r` by the other clock and seen
//! at `s` by this one gives: by at least `r − s`. A message can show no more than that (Cristian,
//! *Probabilistic clock synchronization*, 1989); half of the quickest round trip remains unknown,
//! however many messages are exchanged, as does its division between the two directions. NTP (RFC
//! 5905, clock filter) and PTP (IEEE 1588) take the middle of the quickest exchange and assume
//! symmetry. Here bounds are kept, not a middle:
//!
//! - [`Samples`] keeps the tightest frame of each direction and time bucket: a minimum filter.
//! - [`Samples::solve`] derives the drift rate from all of them, also as an interval, and projects
//!   each bound to other times; the intersection
//!   ([Marzullo](https://dl.acm.org/doi/10.1145/800222.806730), 1984) is the [`Offset`], before,
//!   during and after the frames.
//! - [`UncertainNs`] is a value with its error, which is hidden if it is smaller than the error.
//!
//! The assumptions are in [`ClockAssumptions`]: about rates, not about delays. Clocks that violate
//! them, such as one that was set, contradict the bounds sooner or later, and give no result:
//! [`OffsetError::Contradiction`].

mod offset;
mod samples;
#[cfg(test)]
mod tests;
mod uncertain;

pub use offset::{ClockAssumptions, Interval, Offset, OffsetError};
pub use samples::Samples;
pub use uncertain::{RoundTrip, RoundTripStages, UncertainNs, quantile};

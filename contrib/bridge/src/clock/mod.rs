//! Bounds on the offset between two clocks, from the times at which frames were sent and seen.
//!
//! A frame sent at `s` by this clock and seen at `r` by the other did not take negative time: at
//! `s` the other clock is ahead by at most `r − s`; a frame of the other direction gives the least.
//! A message can show no more (Cristian, *Probabilistic clock synchronization*, 1989): half of the
//! quickest round trip remains unknown. NTP and PTP take the middle of the quickest exchange and
//! assume symmetry; here bounds are kept.
//!
//! [`Samples`] keeps the tightest frame of each direction and time bucket. [`Samples::solve`]
//! derives an interval of the drift rate and projects each bound to other times; the intersection
//! ([Marzullo](https://dl.acm.org/doi/10.1145/800222.806730), 1984) is the [`Offset`]. The
//! assumptions ([`ClockAssumptions`]) are about rates, not about delays; clocks that violate them
//! contradict the bounds, and give no result.

mod offset;
mod samples;
#[cfg(test)]
mod tests;
mod uncertain;

pub use offset::{ClockAssumptions, Interval, Offset, OffsetError};
pub use samples::Samples;
pub use uncertain::{RoundTrip, RoundTripStages, UncertainNs, quantile};

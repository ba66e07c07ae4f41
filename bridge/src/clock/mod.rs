//! Two clocks: how far apart they are, within bounds, from nothing but when frames were sent and
//! seen.
//!
//! A frame that left here at `s` by this clock and was seen there at `r` by the other took no
//! negative time: at `s` the other clock is ahead by at most `r − s`. One that left there at `r`
//! and was seen here at `s` says: by at least `r − s`. That is all that a message can say
//! (Cristian, *Probabilistic clock synchronization*, 1989); half of the quickest round trip is what
//! remains unknown, however often one asks, and how the two directions share it nobody can tell.
//! NTP (RFC 5905, clock filter) and PTP (IEEE 1588) take the middle of the quickest exchange and
//! hope for symmetry. Here bounds are kept, not a middle:
//!
//! - [`Samples`] keeps of each direction and stretch of time the one frame that says most: the
//!   minimum filter.
//! - [`Samples::solve`] takes the rate at which the clocks drift apart from all of them, as an
//!   interval too, and carries each bound to other times with it; the intersection
//!   ([Marzullo](https://dl.acm.org/doi/10.1145/800222.806730), 1984) is the [`Offset`], before,
//!   during and after the frames.
//! - [`Known`] is a figure with its error, which is not shown where it says nothing.
//!
//! What is assumed is in [`Assumed`]: about rates, not about delays. Clocks that break it, such as
//! one that was set, contradict the bounds sooner or later, and then there is no figure at all:
//! [`NoOffset::Contradiction`].

mod known;
mod offset;
mod samples;
#[cfg(test)]
mod tests;

pub use known::{Known, Legs, Readings, quantile};
pub use offset::{Assumed, Interval, NoOffset, Offset};
pub use samples::Samples;

//! Tail attribution: assigns a cause to every tick of an order's path through the engine, from
//! stamps and gaps alone.
//!
//! A *stage span* is a stage of an order: from a stamp of one thread to a stamp of the next (or of
//! the same). Its time is split by cause in this order; each cause takes from what the previous
//! ones left, so the causes sum to the span:
//!
//! | part | what it is |
//! |---|---|
//! | machine | a thread that had to act was away: a stamp-free part of a recorded gap. The sender's, if it went away with the first stamp as its last; the receiver's |
//! | wake-up | the receiver had given its core away by its own idle strategy: a stamp-free part of a recorded sleep |
//! | memory | the same, and the kernel counted a page fault and no preemption in it; of a hand-off, what is over its median, up to 3 µs |
//! | backlog | the receiver served orders that had been touched by a gap or by backlog |
//! | queueing | the receiver served other orders |
//! | usual | of what is left, up to the median of the stage |
//! | unexplained | the rest: what no stamp and no gap tells of. Where the receiver served others, what is over 3 µs between two stamps |
//!
//! An order is *affected by a stall* if a gap or backlog took part of one of its spans, or of its
//! wait from its due time until it was sent: a paused sender sends everything that became due in
//! one burst, and the queue after such a burst is not caused by the load. The rule uses gaps and
//! never latencies, so percentiles of the unaffected orders are those without the machine's stalls,
//! and real queueing stays in them. Gaps that a log dropped ([`protocol::gaps`]) affect no order: a
//! note states their number and length.
//!
//! A *sleep* affects no order either, and service after it is queueing, not backlog: giving the
//! core away by the idle strategy is a choice with a known cost. This also holds if another
//! process, or the hypervisor, then had the core for longer than intended: a thread cannot
//! distinguish the two without a system call, and a limit on the length would be a guess. The
//! kernel's statistics of the core (steal, run delay) are reported next to it.
//!
//! Causes never overlap: at any time a thread is in a gap, in a sleep, or serves an order, and the
//! sender's gap precedes everything that the receiver does.

mod attribute;
mod away;
mod noise;
mod run;
mod strategies;
#[cfg(test)]
mod tests;
mod ways;

pub use crate::cause::{Cause, Causes};
pub use attribute::{Parts, Passage, Rules, attribute};
pub use away::{Away, Why, away};
pub use noise::{Noise, NoiseSlice, ThreadNoise};
pub use run::{Explained, Share, StallFree, Tail};

//! Why slow orders were slow: every tick of their way through the engine gets a cause, from stamps
//! and gaps alone.
//!
//! A *passage* is a stage of an order: from a stamp of one thread to a stamp of the next (or of the
//! same). Its time is cut into parts, in this order; what one has taken the next does not get, so
//! they add up to the passage:
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
//! An order is *touched* if a gap or backlog took part of a passage of it, or of its wait from when
//! it was due until it was sent: a sender that was away sends what was due meanwhile in one burst,
//! and what queues up behind a burst that the machine made is no load's. That looks at gaps and at
//! nobody's latency, so percentiles of the untouched are those without the machine's stalls, and
//! real queueing stays in them. What a log did not keep ([`protocol::gaps`]) touches nobody: the
//! note on it says how much that is.
//!
//! A *sleep* touches nobody either, and what is served behind one is queueing, no backlog: who
//! gives its core away by its own strategy asked for what that costs. Also where the core was
//! somebody else's for longer than that one's turn takes, even the hypervisor's: nothing that the
//! thread can see without a system call tells the two apart, and a bound on the length would be a
//! guess. The kernel's account of the core (steal, run delay) stands beside it.
//!
//! No instant is two causes': a thread has a gap, a sleep, or serves somebody, and the sender's gap
//! comes before all that the receiver does.

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

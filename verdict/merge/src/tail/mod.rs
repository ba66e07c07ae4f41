//! Tail attribution: assigns a cause to every tick of an order's path through the engine, from
//! stamps and gaps alone.
//!
//! A *stage span* is a stage of an order: from a stamp of one thread to a stamp of the next (or of
//! the same). Its time is split by cause in this order; each cause takes from what the previous
//! ones left, so the causes sum to the span:
//!
//! | cause | time |
//! |---|---|
//! | machine | a *pause* (a stamp-free part of a recorded gap) of a thread that had to act |
//! | wake-up | a stamp-free part of a recorded sleep of the receiver, by its idle strategy |
//! | memory | a pause in which the kernel counted a page fault and no preemption |
//! | backlog | service of orders that a gap or backlog had affected, by the receiver |
//! | queueing | service of other orders, by the receiver |
//! | usual | of the remaining time, up to the median of the stage |
//! | memory | the time above that median, up to 3 µs |
//! | unexplained | the remainder, and service of more than 3 µs between two stamps |
//!
//! A pause of the sender counts if it began with the first stamp of the span; a pause of the
//! receiver counts at any time.
//!
//! An order is *affected by a stall* if a gap or backlog took part of one of its spans, or of its
//! wait from its due time until it was sent: a paused sender sends everything that became due in
//! one burst, and the queue after such a burst is not caused by the load. Backlog ends nine times
//! the pause after it: by then a server that works 90 % of its time has emptied its queue. Without
//! an end, one pause affects all later orders where threads are busy: service up to 3 µs after a
//! stamp is taken for that order's. The rule uses gaps and never latencies, so percentiles of the
//! unaffected orders are those without the machine's stalls, and real queueing stays in them. Gaps
//! that a log dropped ([`protocol::gaps`]) affect no order: a note states their number and length.
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
mod gap_class;
mod noise;
mod pauses;
mod run;
mod strategies;
#[cfg(test)]
mod tests;
mod traces;

pub use crate::cause::{Cause, GapClass, GapTotal, NanosByCause};
pub use attribute::{AttributionParams, StageSpan, TicksByCause, attribute};
pub use gap_class::{MIN_STEAL_NS, StealAccount};
pub use noise::{MachineNoise, NoiseSlice, ThreadNoise};
pub use pauses::{Pause, PauseCause, pauses};
pub use run::{ExplainedOrder, Tail, TailPercentiles, TailShare};
pub use strategies::StrategyTail;

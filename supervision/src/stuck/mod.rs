//! Distinguishes a stuck thread, process or run from one that is only waiting for CPU time.
//!
//! Elapsed time alone proves nothing. On a busy machine a thread is silent because others have the
//! cores; after a pause of a virtual machine every thread is late at once. The suspect's own status
//! proves nothing either. So each wait is a [`Deadline`]. It counts only time in which the launcher
//! was awake, and the kernel's account of the suspect's CPU time ([`CpuAccount`]) extends it, up to
//! a bound: a process reports its own thread ids, so a hostile one must not be waited for without
//! end.
//!
//! | question | answered by | extended by |
//! |---|---|---|
//! | Does a thread hang? | [`Liveness`], by its heartbeat | starvation, up to 10 limits; disk |
//! | Does a process exit? | [`ShutdownTimeout`], by the kernel | starvation, up to 6 limits |
//! | Does the run stall? | [`StallWatch`], by its counters | starvation, deaths, up to 6 limits † |
//! | Is every role ready, drained, closed? | a [`Deadline`] | starvation, up to 6 limits |
//! | Is a slot of the submit ring never written? | [`blocked_slot`] | starvation |
//!
//! † and the pauses of a crash loop.
//!
//! Strategies and the run also wait for a [`Debugger`] that has stopped a strategy, without bound.
//!
//! *Starvation*: a thread is ready to run and gets no core. A *limit* is the time-out that the run
//! sets for the question.

mod cpu;
mod deadline;
mod debugger;
pub mod liveness;
mod shutdown_timeout;
mod stall;

pub use cpu::{CpuAccount, CpuSample};
pub use deadline::Deadline;
pub use debugger::Debugger;
pub use liveness::Liveness;
pub(crate) use liveness::LivenessFault;
pub use shutdown_timeout::ShutdownTimeout;
pub(crate) use stall::ProgressCounters;
pub use stall::StallWatch;

use protocol::index::StrategyIndex;
use protocol::plan::Role;
use protocol::supervision::BlockedClaim;

/// Returns the role to blame and the reason, if the run must end because a claimed slot of the
/// submit ring is never written. Returns `None` while no slot has been blocked for too long, and
/// where the death of its claimant `is_contained`.
///
/// Such a slot blocks a shared submit ring while every heartbeat goes on. Its claimant is known
/// from the announcement, which only the strategy itself can write. An honest strategy withdraws it
/// at the end of the duty cycle in which it pushed, so a strategy that has begun another duty cycle
/// and still announces the slot is not honest. (Whether the slot is written by then would not clear
/// it: any producer of a shared ring may write over it.) One that has not begun another is silent,
/// which [`Liveness`] finds.
///
/// | the slot is announced, after one and a half liveness deadlines, by | what follows |
/// |---|---|
/// | a strategy whose death is contained | it is quarantined, as an incident |
/// | a strategy whose death is not, or that has ended | the run ends in its name |
/// | no running strategy | the run ends in the engine's name: the claimant is unknown |
pub fn blocked_slot(
    blocked_claim: Option<BlockedClaim>,
    liveness: &Liveness,
    is_contained: impl FnOnce(StrategyIndex) -> bool,
) -> Option<(Role, String)> {
    let at = blocked_claim.filter(|at| liveness.is_overdue(at.since_ticks))?;
    let blocked = format!("submit ring blocked at slot {}: claimed but never written", at.slot);
    match at.announcer {
        Some(strategy) if is_contained(strategy) => None,
        Some(strategy) => {
            Some((Role::Strategy(strategy), format!("{blocked}, while its claimant keeps running")))
        }
        None => Some((Role::Orchestrator, format!("{blocked}, by an unknown claimant"))),
    }
}

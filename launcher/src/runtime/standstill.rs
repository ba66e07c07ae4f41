//! A slot of the submit ring that was claimed and is never written: it blocks the ring while every heartbeat goes on.
//!
//! Whose it is, is known from the announcement, which only the strategy itself can write. An honest one takes it back at the end
//! of the duty cycle in which it pushed: that the place is written by then would not clear it, for whoever shares the ring may
//! write over that. So who has begun another duty cycle and still announces the place is not honest, whoever has claimed
//! it. Who has not is silent, and the liveness deadline is for it.
//!
//! | who announces the place, after one and a half liveness deadlines | what follows |
//! |---|---|
//! | a strategy whose death is contained | it is quarantined: the incidents' matter |
//! | one whose death is not, or that has ended | the run ends, in its name |
//! | nobody who lives | the run ends in the engine's name: whose it is cannot be told, and nobody is struck for it |

use super::liveness::Liveness;
use protocol::plan::Role;
use protocol::supervision::Repairs;

/// Who ended the run by a place that is never written, and what is said then; `None` while nothing stands still for too long, or
/// who holds the place `is_contained`.
pub fn verdict(
    repairs: &Repairs,
    liveness: &Liveness,
    is_contained: impl FnOnce(u16) -> bool,
) -> Option<(Role, String)> {
    let at = repairs.standstill().filter(|at| liveness.is_overdue(at.since_ticks))?;
    let blocked = format!("submit ring blocked at slot {}: claimed but never written", at.place);
    match at.announcer {
        Some(strategy) if is_contained(strategy) => None,
        Some(strategy) => {
            Some((Role::Strategy(strategy), format!("{blocked}, while its claimant keeps running")))
        }
        None => Some((Role::Orchestrator, format!("{blocked}, by an unknown claimant"))),
    }
}

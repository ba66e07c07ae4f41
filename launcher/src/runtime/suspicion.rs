//! What is wrong with a thread, in words: it is silent, does not end, or says what no honest thread says ([`super::liveness`] finds it).

use analysis::units::Nanos;
use std::time::Duration;

/// What is wrong with a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// No new heartbeat for so long.
    Silent(Duration),
    /// It said that it was done so long ago, and its process is still there.
    DoesNotEnd(Duration),
    /// Its status holds what no honest thread writes.
    Forged(Forgery),
}

/// What no honest thread writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// A heartbeat of the future.
    Future,
    /// A heartbeat before the last one.
    Past,
    /// A state that there is not.
    UnknownState,
    /// A state that comes before the last one, or one of a run that has not begun.
    ImpossibleState,
}

impl core::fmt::Display for Suspicion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let shown = |time: &Duration| Nanos(time.as_nanos() as u64);
        match self {
            Suspicion::Silent(time) => write!(f, "hangs: no duty cycle for {}", shown(time)),
            Suspicion::DoesNotEnd(time) => {
                write!(f, "hung: reported done {} ago but has not exited", shown(time))
            }
            Suspicion::Forged(Forgery::Future) => f.write_str("its heartbeat lies in the future"),
            Suspicion::Forged(Forgery::Past) => f.write_str("its heartbeat went back"),
            Suspicion::Forged(Forgery::UnknownState) => f.write_str("invalid thread state in status block"),
            Suspicion::Forged(Forgery::ImpossibleState) => {
                f.write_str("its state went back, or ahead of the run")
            }
        }
    }
}

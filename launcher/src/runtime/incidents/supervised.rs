//! State of one supervised strategy.

use crate::runtime::restart_policy::{IncarnationEnd, RestartPolicy};

/// The stage of a strategy: running, or how far its death is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IncidentStage {
    Running,
    /// SIGKILL was sent, and the process has not exited; the index of its incident in the list.
    Killed(usize),
    /// Proven dead; the engine is repairing.
    Fenced(usize),
    /// The strategy's death is repaired; it is restarted at that time, in nanoseconds since the
    /// start of the run.
    Paused(usize, u64),
    /// The strategy's next incarnation was started and has not completed a duty cycle.
    Starting(usize),
    Down,
}

/// A strategy of a run, with the launcher's knowledge of its incarnations.
pub(super) struct SupervisedStrategy {
    pub(super) epoch: u16,
    pub(super) stage: IncidentStage,
    /// Indices of its process and its thread in the plan.
    pub(super) process: usize,
    pub(super) thread: usize,
    /// Time of the last injected fault, in ticks.
    pub(super) fault: Option<u64>,
    /// Time at which this incarnation completed its first duty cycle, in nanoseconds since the
    /// start.
    pub(super) running_ns: u64,
    /// Time at which the strategy's death was detected, in ticks.
    pub(super) killed_ticks: u64,
    pub(super) policy: RestartPolicy,
    /// Cause of the end of the last incarnation.
    pub(super) end: IncarnationEnd,
    /// The strategy was killed because it took too long to its first duty cycle.
    pub(super) has_hung_at_start: bool,
}

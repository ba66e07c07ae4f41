//! The supervisor's effects. The runtime performs them on processes and shared memory; the
//! simulation performs them on its simulated processes.

use protocol::control::RunState;
use protocol::index::StrategyIndex;
use protocol::plan::{FaultKind, Role};
use record::run::RunOutcome;
use std::time::Duration;

/// The time that processes get to exit before they are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitTime {
    /// This long, whatever they wait for.
    Fixed(Duration),
    /// This long, and longer while they wait for a core.
    Extended(Duration),
}

/// An effect that the supervisor decided on. Processes are indices in the plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Opens the start barrier, with time zero of the schedule in ticks: every thread is ready.
    OpenBarrier(u64),
    /// Publishes the state of the run.
    SetRunState(RunState),
    /// Stops or kills a process by an injected fault; `None`: the launcher itself.
    InjectFault(Option<usize>, FaultKind),
    /// Kills a process through its pidfd.
    Kill(usize),
    /// Treats a killed process as one that has exited: all its threads are exiting. From the next
    /// step on its exit is observed.
    ConcludeExit(usize),
    /// Declares an incarnation of a strategy or gateway dead, so that the engine repairs what it
    /// left. Requires the kernel's proof that its process is gone.
    Fence(Role, u16),
    /// Declares an incarnation of a strategy dead that is a thread of the engine's process: its
    /// thread is gone, or it hangs and is abandoned.
    FenceThread(StrategyIndex, u16),
    /// Publishes the running incarnation of a strategy or gateway.
    Renew(Role, u16),
    /// Removes a dead process's id from shared memory: all its messages were received.
    Forget(usize),
    /// Resets the memory of a dead role, which the engine does not read any more.
    Reset(Role),
    /// Resets the status of a dead process's threads, and starts the next incarnation. Requires the
    /// kernel's proof that the process is gone.
    Restart(usize),
    /// Resets the status of a strategy's thread that is gone. Its process starts the next
    /// incarnation once that is published.
    ResetThread(usize),
    /// Gives a process's strategy another kind, from its next incarnation on.
    SetKind(usize, String),
    /// Keeps a hot standby ready for a process.
    KeepStandby(usize),
    /// Tells the user something.
    Complain(String),
    /// Waits until every process has exited, for a limited time, and kills the rest.
    EndProcesses(ExitTime),
    /// Ends the supervision: every process is gone.
    End(RunOutcome),
}

/// Receives the supervisor's actions in order.
pub trait Actions {
    /// Performs an action, or keeps it to be performed before the next observation.
    fn perform(&mut self, action: Action);
}

impl Actions for Vec<Action> {
    fn perform(&mut self, action: Action) {
        self.push(action);
    }
}

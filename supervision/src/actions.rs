//! The actions that the supervisor decides on, and the trait that performs them. The runtime
//! performs them on processes and shared memory; the simulation performs them on its simulated
//! processes.

use protocol::control::RunState;
use protocol::index::StrategyIndex;
use protocol::plan::{FaultKind, Role};
use record::run::RunOutcome;
use std::time::Duration;

/// The time that a run's processes get to exit before they are killed: fixed, or extended while
/// they wait for a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitTime {
    /// A fixed time, whatever the processes wait for.
    Fixed(Duration),
    /// A time that is extended while the processes wait for a core.
    Extended(Duration),
}

/// An action that the supervisor of a run decided on, such as to kill a process. Processes are
/// indices in the plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Opens the start barrier, since every thread is ready, with the schedule's time zero in
    /// ticks.
    OpenBarrier(u64),
    /// Publishes the state of the run.
    SetRunState(RunState),
    /// Stops or kills a process by an injected fault; `None`: the launcher itself.
    InjectFault(Option<usize>, FaultKind),
    /// Kills a process of the plan, by index, through its pidfd.
    Kill(usize),
    /// Treats a killed process as exited, because all its threads are exiting. From the next step
    /// on its exit is observed.
    ConcludeExit(usize),
    /// Declares an incarnation (role and epoch) of a strategy or gateway dead, so that the engine
    /// repairs the memory that it wrote. Requires the kernel's proof that its process is gone.
    Fence(Role, u16),
    /// Declares an incarnation (strategy and epoch) dead that is a thread of the engine's process:
    /// the thread is gone, or it hangs and is abandoned.
    FenceThread(StrategyIndex, u16),
    /// Publishes which incarnation (role and epoch) of a strategy or gateway is running.
    Renew(Role, u16),
    /// Removes a dead process's id from shared memory, after all its messages were received.
    Forget(usize),
    /// Resets the memory of a dead role, which the engine no longer reads.
    Reset(Role),
    /// Resets the status of a dead process's threads, and starts the process's next incarnation.
    /// Requires the kernel's proof that the process is gone.
    Restart(usize),
    /// Resets the status of a strategy's thread that has ended. Its process starts the next
    /// incarnation once that is published.
    ResetThread(usize),
    /// Changes the kind of a process's strategy, from the strategy's next incarnation on.
    SetKind(usize, String),
    /// Keeps a hot standby ready for a process.
    KeepStandby(usize),
    /// Prints a warning for the user.
    Complain(String),
    /// Waits for a limited time until every process has exited, and kills the rest.
    EndProcesses(ExitTime),
    /// Ends the supervision with the run's outcome, since every process has ended.
    End(RunOutcome),
}

/// The receiver of the supervisor's actions, which performs them in order.
pub trait Actions {
    /// Performs an action, or keeps it to be performed before the next observation.
    fn perform(&mut self, action: Action);
}

impl Actions for Vec<Action> {
    fn perform(&mut self, action: Action) {
        self.push(action);
    }
}

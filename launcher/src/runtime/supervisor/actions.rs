//! The supervisor's effects. The runtime performs them on processes and shared memory; the
//! simulation performs them on its simulated processes.

use analysis::record::RunOutcome;
use protocol::control::RunState;
use protocol::plan::FaultKind;
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
    /// Opens the start barrier: every thread is ready.
    OpenBarrier {
        /// Time zero of the schedule, in ticks.
        start_ticks: u64,
    },
    /// Publishes the state of the run.
    SetRunState(RunState),
    /// Injects a fault by signal into a process, or into the launcher itself.
    InjectFault {
        /// The process that receives the signal; `None`: the launcher.
        process: Option<usize>,
        /// [`FaultKind::Kill`] or [`FaultKind::Stop`].
        kind: FaultKind,
    },
    /// Kills a process through its pidfd.
    Kill {
        /// The process to kill.
        process: usize,
    },
    /// Declares a strategy's incarnation dead, so that the engine repairs what it left. Requires
    /// the kernel's proof that the process is gone.
    FenceStrategy {
        /// The dead process.
        process: usize,
        /// The strategy that it ran.
        strategy: u16,
        /// The incarnation that died.
        epoch: u16,
    },
    /// Declares a gateway's incarnation dead. Requires the kernel's proof.
    FenceGateway {
        /// The dead process.
        process: usize,
        /// The gateway that it ran.
        gateway: u16,
        /// The incarnation that died.
        epoch: u16,
    },
    /// Publishes that a gateway's incarnation runs duty cycles: the engine sends it orders.
    ReviveGateway {
        /// The gateway.
        gateway: u16,
        /// The incarnation that runs.
        epoch: u16,
    },
    /// Removes a dead process's id from shared memory: all its messages were received.
    ForgetProcess {
        /// The dead process.
        process: usize,
    },
    /// Resets a dead strategy's memory, publishes its next incarnation and starts it.
    RestartStrategy {
        /// The process to start.
        process: usize,
        /// The strategy that it runs.
        strategy: u16,
        /// The incarnation that is started.
        epoch: u16,
    },
    /// Resets the memory of dead gateways and starts their next incarnation.
    RestartGateways {
        /// The process to start.
        process: usize,
    },
    /// Resets the memory of gateways that are not restarted any more.
    ResetGateways {
        /// The dead process.
        process: usize,
    },
    /// Starts the successor of a dead engine or exchange, which recovers from its journal. Requires
    /// the kernel's proof that the process is gone.
    RestartJournaled {
        /// The process to start.
        process: usize,
    },
    /// Keeps a hot standby ready for a process.
    KeepStandby {
        /// The process that it stands by for.
        process: usize,
    },
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

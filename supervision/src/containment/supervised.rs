//! State of one supervised process, or of one strategy that is a thread. The strategies of a group
//! have one each, with the same process.

use crate::observations::Observations;
use crate::restart_policy::{IncarnationEnd, RestartPolicy};
use crate::stuck::CpuSample;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::plan::{Plan, Role};
use protocol::status::ThreadState;
use protocol::supervision::GatewayCounts;
use record::run::EndByOperator;

/// The stage of a process: running, or how far its death is handled. The index is that of the death
/// in the list of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SupervisionStage {
    Running,
    /// SIGKILL was sent, or it has exited; its death is not proven yet.
    Killed(usize),
    /// Proven dead; the engine is repairing.
    Fenced(usize),
    /// It is restarted at that time, in nanoseconds since the start of the run.
    Paused(usize, u64),
    /// Its next incarnation was started and has not completed a duty cycle.
    Starting(usize),
    /// An operator has added it: it was started and has not completed a duty cycle. The index is
    /// that in the list of additions.
    Joining(usize),
    Down,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SupervisedRoles {
    Strategy(StrategyIndex),
    /// The orchestrator or an exchange, which recovers from its journal.
    Journaled(Role),
    Gateways(Vec<GatewayIndex>),
}

/// A process whose death the run survives, and what is known of its incarnations.
pub(super) struct SupervisedProcess {
    pub roles: SupervisedRoles,
    /// Index of the process in the plan; the next field has those of its threads.
    pub process: usize,
    pub threads: Vec<usize>,
    /// Whether the strategy is a thread that can end without its process.
    pub is_thread: bool,
    /// Indices of the supervised strategies that share the process and die with it, this one
    /// included; empty for a strategy alone, and for other roles.
    pub group: Vec<usize>,
    /// Tick since which the strategy's thread is gone without having published its end.
    pub gone_since: Option<u64>,
    /// Whether the last incarnation was fenced although its thread may still run.
    pub is_abandoned: bool,
    pub stage: SupervisionStage,
    /// Epoch of the running incarnation, or of the one that died last.
    pub epoch: u16,
    /// Number of orders sent by the strategy's incarnations that died.
    pub past_sent: u64,
    /// Tick at which a fault was last injected into the process; `None` for never.
    pub fault: Option<u64>,
    /// Time at which this incarnation completed its first duty cycle, in nanoseconds since the
    /// start.
    pub running_ns: u64,
    /// Tick at which the death of the process was detected.
    pub killed_ticks: u64,
    /// First and last sample of the process's CPU time since it was killed, if it was running then.
    pub dying: Option<(CpuSample, CpuSample)>,
    /// Whether the process was killed long ago and has not ended.
    pub is_slow_to_exit: bool,
    pub policy: RestartPolicy,
    /// How the last incarnation ended, and why.
    pub end: IncarnationEnd,
    pub last_cause: String,
    /// Whether the process was killed because it took too long to its first duty cycle.
    pub has_hung_at_start: bool,
    /// Number of restarts of a journaled role since it last ran.
    pub attempts: u32,
    /// The engine's counts for each gateway at the last death.
    pub counts: Vec<GatewayCounts>,
    /// How an operator ended this incarnation.
    pub by_operator: Option<EndByOperator>,
    /// Tick at which an operator asked to end this incarnation; `None` for never.
    pub asked_to_end: Option<u64>,
    /// Tick at which this incarnation was started.
    pub started_ticks: u64,
    /// Whether the process was restarted in this step, so that its new incarnation is not observed
    /// yet.
    pub is_renewed: bool,
}

impl SupervisedProcess {
    pub(super) fn new(plan: &Plan, process: usize, roles: SupervisedRoles) -> Self {
        let is_spare = plan.is_spare(&plan.processes[process]);
        Self {
            roles,
            process,
            threads: plan.processes[process].threads.iter().map(|thread| *thread as usize).collect(),
            is_thread: false,
            group: Vec::new(),
            gone_since: None,
            is_abandoned: false,
            stage: if is_spare { SupervisionStage::Down } else { SupervisionStage::Running },
            epoch: 0,
            past_sent: 0,
            fault: None,
            running_ns: 0,
            killed_ticks: 0,
            dying: None,
            is_slow_to_exit: false,
            policy: RestartPolicy::default(),
            end: IncarnationEnd::default(),
            last_cause: String::new(),
            has_hung_at_start: false,
            attempts: 0,
            counts: Vec::new(),
            by_operator: None,
            asked_to_end: None,
            started_ticks: 0,
            is_renewed: false,
        }
    }

    /// Returns `true` if it is this process, and not a thread in it.
    pub(super) const fn is_process(&self, process: usize) -> bool {
        self.process == process && !self.is_thread
    }

    /// A strategy's process, or its thread in the process of its group. Strategies have the places
    /// of their indices.
    pub(super) fn for_strategy(plan: &Plan, process: usize, strategy: StrategyIndex) -> Self {
        let new = Self::new(plan, process, SupervisedRoles::Strategy(strategy));
        let group: Vec<usize> = plan.group_of(strategy).into_iter().map(StrategyIndex::as_usize).collect();
        let own = plan.thread_of(Role::Strategy(strategy)).filter(|_| !group.is_empty());
        let threads = own.map_or(new.threads, |thread| vec![thread]);
        Self { threads, group, ..new }
    }

    /// A strategy's thread in the engine's process.
    pub(super) fn for_thread(plan: &Plan, process: usize, thread: usize, strategy: StrategyIndex) -> Self {
        let roles = SupervisedRoles::Strategy(strategy);
        Self { threads: vec![thread], is_thread: true, ..Self::new(plan, process, roles) }
    }

    pub(super) fn has_role(&self, role: Role) -> bool {
        match (&self.roles, role) {
            (SupervisedRoles::Strategy(own), Role::Strategy(index)) => *own == index,
            (SupervisedRoles::Gateways(own), Role::Gateway(index)) => own.contains(&index),
            (SupervisedRoles::Journaled(own), _) => *own == role,
            _ => false,
        }
    }

    /// Returns the index of the strategy that the process is; 0 of another process.
    pub(super) const fn strategy(&self) -> StrategyIndex {
        match self.roles {
            SupervisedRoles::Strategy(index) => index,
            SupervisedRoles::Gateways(_) | SupervisedRoles::Journaled(_) => StrategyIndex(0),
        }
    }

    pub(super) const fn is_strategy(&self) -> bool {
        matches!(self.roles, SupervisedRoles::Strategy(_))
    }

    pub(super) const fn is_journaled(&self) -> bool {
        matches!(self.roles, SupervisedRoles::Journaled(_))
    }

    pub(super) fn all_threads_are(
        &self,
        observed: &Observations,
        is_so: impl Fn(ThreadState) -> bool,
    ) -> bool {
        self.threads.iter().all(|thread| is_so(observed.state(*thread)))
    }

    pub(super) fn is_done(&self, observed: &Observations) -> bool {
        self.all_threads_are(observed, |state| state == ThreadState::Done)
    }

    /// Returns `true` while it is restarting, or a fault injected into it has not been detected.
    pub(super) fn is_away(&self, observed: &Observations) -> bool {
        match self.stage {
            SupervisionStage::Running => {
                self.fault.is_some() && !(self.is_journaled() && self.is_done(observed))
            }
            SupervisionStage::Down => false,
            _ => true,
        }
    }
}

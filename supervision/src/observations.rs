//! The supervisor's input: the state of a run as observed by the runtime or the simulation.
//!
//! Exits of processes are observed before their memory: what is seen of a dead process is final.

use crate::stuck::{CpuAccount, CpuSample, Debugger};
use protocol::index::{GatewayIndex, StrategyIndex, VenueIndex};
use protocol::plan::{Plan, Role};
use protocol::status::{LivenessSample, ThreadState};
use protocol::supervision::{BlockedClaim, GatewayRepair, ProtocolViolation, Repair};

/// The observed state of a run at one time: its processes, threads and roles. What strategies write
/// is not trusted.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// Observations of processes, in the order of the plan.
    pub processes: Vec<ProcessObservation>,
    /// Observations of threads, in the order of the plan.
    pub threads: Vec<ThreadObservation>,
    /// Observations of strategies, by index.
    pub strategies: Vec<StrategyObservation>,
    /// Strategies that operators ended and that have no open order left, in the order of the
    /// commands.
    pub ended_by_operators: Vec<OperatorEnd>,
    /// Strategies that operators add, as confirmed by the engine, in the order of the commands.
    pub added_by_operators: Vec<OperatorAddition>,
    /// Observations of gateways, by gateway index.
    pub gateways: Vec<GatewayObservation>,
    /// Observations of exchanges, in the order of the plan.
    pub exchanges: Vec<ExchangeObservation>,
    /// The engine's counters; `None` if the plan has no engine.
    pub engine: Option<EngineObservation>,
    /// Damage of memory that several strategies write, as reported by the engine.
    pub damage: Option<ProtocolViolation>,
    /// The claimed and unwritten slot that blocks the submit hand-off, as reported by the engine.
    pub blocked_claim: Option<BlockedClaim>,
    /// Number of termination signals that the launcher received since the start.
    pub termination_requests: usize,
    /// Whether the launcher itself has accessed lost memory, so that shared memory may read as
    /// zeros.
    pub has_launcher_lost_memory: bool,
    /// Whether a process has died of an access to lost memory.
    pub has_process_lost_memory: bool,
    /// Last lines of the stderr of the process that `Supervisor::failing_process` names.
    pub last_words: Option<String>,
    /// Reasons that excuse a run without progress, if `Supervisor::needs_exemptions`.
    pub exemptions: Option<StallExemptions>,
    /// The error of an action that could not be performed, which ends the run.
    pub launcher_error: Option<String>,
}

/// The observation of one process of the plan, as the kernel reports it.
#[derive(Clone, Debug, Default)]
pub struct ProcessObservation {
    /// Process id as seen by the launcher.
    pub pid: u32,
    /// How the process exited; `None` while it runs.
    pub exit: Option<ExitObservation>,
    /// Whether the kernel confirms that the process, and all inside its container, are gone.
    pub is_proven_dead: bool,
    /// Whether all threads of the process that held a lock have died, according to the lock words.
    /// A hint: the process itself can write them. Observed where a death can be proven early.
    pub is_lock_free: bool,
    /// The process's threads and how many are exiting, if `Supervisor::awaits_threads`.
    pub exiting: Option<ExitingObservation>,
    /// The error of the last attempt to restart the process; `None` if it succeeded.
    pub failed_start: Option<String>,
    /// The CPU time of a process that runs although it was killed.
    pub cpu: Option<CpuSample>,
}

impl ProcessObservation {
    /// Returns the observation of a spare strategy's process that was never started.
    pub fn unstarted() -> Self {
        let exit = ExitObservation { is_success: true, text: NOT_STARTED.into(), ..Default::default() };
        Self { exit: Some(exit), is_proven_dead: true, ..Self::default() }
    }
}

/// The number of threads of a killed process, and of those that are exiting, as the kernel reports
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitingObservation {
    /// Number of threads of the process.
    pub count: usize,
    /// Number of the threads that cannot store to memory any more.
    pub exiting: usize,
}

impl ExitingObservation {
    /// Returns `true` if no thread of the process can store to memory any more.
    pub const fn is_all(&self) -> bool {
        self.count > 0 && self.exiting == self.count
    }
}

/// The exit status, for messages, of a process that was never started.
pub const NOT_STARTED: &str = "not started";

/// The exit of one process: its status, signal and last output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitObservation {
    /// Whether the process exited with status 0.
    pub is_success: bool,
    /// Whether the process was killed by a signal.
    pub was_killed: bool,
    /// The exit status as text for messages.
    pub text: String,
    /// Last stderr lines of a dead process of a board benchmark.
    pub last_words: String,
    /// Whether the exit was concluded early: all threads were exiting, and the kernel had not
    /// dismantled the process.
    pub is_early: bool,
}

/// The observation of one thread: the status that it publishes in shared memory, and the kernel's
/// facts about it.
#[derive(Clone, Debug)]
pub struct ThreadObservation {
    /// State, thread id and heartbeat of the thread.
    pub pulse: LivenessSample,
    /// Clock reading after the heartbeat was read, in ticks.
    pub ticks: u64,
    /// Error message of the thread, if it reports that it failed.
    pub error: String,
    /// Events counted by a measured loop; 0 for other roles.
    pub measured_events: u64,
    /// CPU time of a silent thread: the outer `Some` means that the kernel was asked, the inner one
    /// is its answer.
    pub cpu: Option<Option<CpuSample>>,
    /// Whether a journal thread of the thread's process waits for the disk.
    pub waits_for_disk: bool,
    /// The debugger that has stopped the strategy's process: the outer `Some` means that the kernel
    /// was asked.
    pub debugger: Option<Option<Debugger>>,
    /// Whether the kernel reports that the running process has no such thread any more. Observed of
    /// a strategy's thread that ends alone, once it is silent or reports its end.
    pub is_gone: bool,
}

impl ThreadObservation {
    /// Returns the state that the thread reported.
    pub const fn state(&self) -> ThreadState {
        ThreadState::from_code(self.pulse.state)
    }
}

/// The observation of one strategy: its own counters, and the engine's report about it.
#[derive(Clone, Debug, Default)]
pub struct StrategyObservation {
    /// Number of orders sent, by the strategy's own counter.
    pub sent: u64,
    /// Number of orders that returned to the strategy, by its own counter.
    pub returned: u64,
    /// Number of the strategy's orders that were refused, by its own counter.
    pub rejected: u64,
    /// The engine's repair report about the strategy.
    pub repair: Repair,
    /// The overwritten segment header that no other strategy can have written. Observed of those
    /// that have exited, and of the others in turn.
    pub forged_header: Option<String>,
}

/// An operator's command to end a strategy, which the engine has confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorEnd {
    /// Number of the command in the command channel.
    pub number: u32,
    /// Tick at which the operator gave the command.
    pub ticks: u64,
    /// The strategy that the command ends.
    pub strategy: StrategyIndex,
    /// Kind of the successor strategy, empty if unchanged; `None`: no successor.
    pub successor: Option<String>,
}

/// An operator's command to start a strategy in the slot of one that is down, which the engine has
/// confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorAddition {
    /// Number of the command in the command channel.
    pub number: u32,
    /// The strategy that the command starts.
    pub strategy: StrategyIndex,
    /// Kind of the added strategy; empty: that of its predecessor, or of the plan.
    pub kind: String,
}

/// The observation of one gateway: its counters, and the engine's report about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct GatewayObservation {
    /// Number of orders that the gateway received from the engine.
    pub received: u64,
    /// Number of reports that the gateway handed over to the engine.
    pub completed: u64,
    /// The engine's repair report about the gateway, if it died.
    pub repair: GatewayRepair,
}

/// The observation of one exchange: orders received, last journal recovery, and whether its trade
/// tape (log of trades) is open.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExchangeObservation {
    /// The venue that the exchange runs.
    pub venue: VenueIndex,
    /// Number of orders that the exchange received.
    pub received: u64,
    /// The last journal recovery of the exchange's process.
    pub recovery: RecoveryObservation,
    /// Whether the exchange has a trade tape and has not closed its book.
    pub is_open: bool,
}

/// The last recovery of an engine or exchange from its journal, as its process reports it. Times
/// are in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryObservation {
    /// Number of journal records that the recovery read.
    pub records: u64,
    /// Number of journal records that no standby had applied before.
    pub replayed: u64,
    /// Tick at which the process began to recover: when it was started, or its standby was woken.
    pub begun_ticks: u64,
    /// Tick at which all journal records were applied.
    pub ended_ticks: u64,
    /// Tick at which the process's duty cycles began.
    pub running_ticks: u64,
}

/// The observation of the engine: its counters of orders and reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineObservation {
    /// Number of orders sent to gateways.
    pub dispatched: u64,
    /// Number of dispatched orders that have their last report.
    pub settled: u64,
    /// Number of orders that the engine refused.
    pub rejected: u64,
    /// Number of reports taken from gateways.
    pub reports: u64,
    /// Number of reports returned to strategies.
    pub returned: u64,
    /// Number of messages queued for full inboxes of gateways.
    pub waiting: u64,
    /// The last journal recovery of the engine's process.
    pub recovery: RecoveryObservation,
    /// A value that changes whenever the engine does work.
    pub work: u64,
}

impl EngineObservation {
    /// Returns the number of orders dispatched or rejected plus reports taken from gateways or
    /// returned to strategies, which grows whenever the engine makes progress.
    pub const fn progress_count(&self) -> u64 {
        // Includes returned reports: a strategy with little CPU time drains its reports slowly.
        self.dispatched.wrapping_add(self.reports).wrapping_add(self.rejected).wrapping_add(self.returned)
    }

    /// Returns the number of orders that were dispatched to venues and have no last report.
    pub const fn at_venues(&self) -> u64 {
        self.dispatched.saturating_sub(self.settled)
    }

    /// Returns `true` if the engine has a report of each dispatched order, and no message waits for
    /// a gateway's inbox.
    pub const fn has_drained(&self) -> bool {
        self.at_venues() == 0 && self.waiting == 0
    }
}

/// Reasons that excuse a run without progress: a wait for a disk, or for CPU time.
#[derive(Clone, Debug, Default)]
pub struct StallExemptions {
    /// Index of a process whose journal thread waits for the disk; `None` if there is none.
    pub disk_writer: Option<usize>,
    /// CPU accounts of all running processes, by process id; `None` if they were not asked for.
    pub accounts: Option<Vec<(u32, CpuAccount)>>,
}

impl Observations {
    /// Returns whether a process (index in the plan) exited normally; `None` while it runs.
    pub fn exited_normally(&self, process: usize) -> Option<bool> {
        self.processes[process].exit.as_ref().map(|exit| exit.is_success)
    }

    /// Returns `true` if a process (index in the plan) was ended by a signal.
    pub fn was_killed(&self, process: usize) -> bool {
        self.processes[process].exit.as_ref().is_some_and(|exit| exit.was_killed)
    }

    /// Returns the text of how a process (index in the plan) exited, for messages.
    pub fn exit_text(&self, process: usize) -> String {
        self.processes[process].exit.as_ref().map_or_else(|| "still running".into(), |exit| exit.text.clone())
    }

    /// Returns the state that a thread (index in the plan) reported.
    pub fn state(&self, thread: usize) -> ThreadState {
        self.threads[thread].state()
    }

    /// Returns `true` if some exchange has a trade tape (log of trades) to which it has not yet
    /// written its final order books.
    pub fn is_any_tape_open(&self) -> bool {
        self.exchanges.iter().any(|exchange| exchange.is_open)
    }

    /// Returns the observation of the exchange at this venue.
    pub fn exchange(&self, venue: VenueIndex) -> ExchangeObservation {
        self.exchanges.iter().find(|exchange| exchange.venue == venue).copied().unwrap_or_default()
    }

    /// Returns the last journal recovery of the engine or an exchange.
    pub fn recovery(&self, role: Role) -> RecoveryObservation {
        match role {
            Role::Orchestrator => self.engine.map(|engine| engine.recovery).unwrap_or_default(),
            role => self.exchange(VenueIndex(role.index())).recovery,
        }
    }

    /// Returns `true` if each of the `sent` orders was refused, has arrived at its venue, or was
    /// sent to a gateway that died. `of_dead` returns the orders of a gateway that is permanently
    /// dead.
    pub fn have_all_arrived(
        &self,
        plan: &Plan,
        sent: u64,
        of_dead: impl Fn(GatewayIndex) -> Option<u64>,
    ) -> bool {
        let (trading, Some(engine)) = (plan.trading(), self.engine) else { return false };
        let received = |gateway: GatewayIndex| {
            let counted = || self.gateways.get(gateway.as_usize()).map_or(0, |gateway| gateway.received);
            of_dead(gateway).unwrap_or_else(counted)
        };
        let at_gateways: u64 = GatewayIndex::first(trading.gateways()).map(received).sum();
        // A gateway that answers for its venue does not forward all orders; nor did one that died.
        let may_keep = |gateway| plan.validates_venue(gateway) || of_dead(gateway).is_some();
        let at_exchange = |venue: VenueIndex| {
            let sent_on = || trading.gateways_of(venue).map(received).sum();
            trading.gateways_of(venue).any(may_keep) || self.exchange(venue).received >= sent_on()
        };
        engine.dispatched.saturating_add(engine.rejected) >= sent
            && at_gateways >= engine.dispatched
            && trading.books().all(at_exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::plan::{ExchangePlacement, Placement, Threading, Trading};

    /// An engine that dispatched seven orders, of which gateway 0 has four and gateway 1 `second`.
    /// The exchange of the former has all four, and that of the latter has two. Returns whether all
    /// seven have arrived.
    fn has_arrived(second: u64, of_dead: impl Fn(GatewayIndex) -> Option<u64>) -> bool {
        let mut trading = Trading::new(1, 2);
        (trading.venue_kinds, trading.exchange) = (vec![Trading::BOOK.into()], ExchangePlacement::Process);
        let (placement, threading) = (Placement::EachGateway, Threading::Dedicated);
        let plan = Plan { placement, threading, ..Plan::for_trading(trading) }.arranged();
        let gateway = |received| GatewayObservation { received, ..GatewayObservation::default() };
        let exchange =
            |venue, received| ExchangeObservation { venue, received, ..ExchangeObservation::default() };
        let observed = Observations {
            engine: Some(EngineObservation { dispatched: 7, ..EngineObservation::default() }),
            gateways: vec![gateway(4), gateway(second)],
            exchanges: vec![exchange(VenueIndex(0), 4), exchange(VenueIndex(1), 2)],
            ..Observations::default()
        };
        observed.have_all_arrived(&plan, 7, of_dead)
    }

    /// Two venues with a gateway for each of two credentials: the second venue's are 2 and 3.
    #[test]
    fn orders_of_all_credentials_arrive_at_their_venue() {
        let mut trading = Trading { credentials: 2, ..Trading::new(2, 2) };
        (trading.venue_kinds, trading.exchange) = (vec![Trading::BOOK.into()], ExchangePlacement::Process);
        let plan = Plan::for_trading(trading).arranged();
        let gateway = |received| GatewayObservation { received, ..GatewayObservation::default() };
        let has_arrived = |exchanges: [u64; 2]| {
            let exchange =
                |(venue, received)| ExchangeObservation { venue, received, ..ExchangeObservation::default() };
            let observed = Observations {
                engine: Some(EngineObservation { dispatched: 10, ..EngineObservation::default() }),
                gateways: [1, 2, 3, 4].map(gateway).to_vec(),
                exchanges: VenueIndex::first(2).zip(exchanges).map(exchange).collect(),
                ..Observations::default()
            };
            observed.have_all_arrived(&plan, 10, |_| None)
        };
        assert!(has_arrived([3, 7]));
        assert!(!has_arrived([3, 6]) && !has_arrived([2, 7]), "one is on its way from a gateway");
    }

    #[test]
    fn orders_of_dead_gateway_count_as_arrived() {
        let dead = |orders| move |gateway| (gateway == GatewayIndex(1)).then_some(orders);
        assert!(!has_arrived(2, |_| None), "one is on its way to a gateway");
        assert!(!has_arrived(3, |_| None), "or from there to its exchange");
        assert!(has_arrived(2, dead(3)), "what was closed with the gateway comes no more");
        assert!(!has_arrived(2, dead(2)), "one is on its way to the other");
    }
}

//! The supervisor's input: values that the runtime or the simulation observed.
//!
//! Exits of processes are observed before their memory: what is seen of a dead process is final.

use crate::stuck::{CpuAccount, CpuSample, Debugger};
use protocol::index::{GatewayIndex, StrategyIndex, VenueIndex};
use protocol::plan::{Plan, Role};
use protocol::status::{LivenessSample, ThreadState};
use protocol::supervision::{BlockedClaim, GatewayRepair, ProtocolViolation, Repair};

/// The state of a run at one time. What strategies write is not trusted.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// Processes in the order of the plan.
    pub processes: Vec<ProcessObservation>,
    /// Threads in the order of the plan.
    pub threads: Vec<ThreadObservation>,
    /// Strategies by index.
    pub strategies: Vec<StrategyObservation>,
    /// Strategies that operators ended and that have no open order left, in the order of the
    /// commands.
    pub ended_by_operators: Vec<OperatorEnd>,
    /// Strategies that operators add, as confirmed by the engine, in the order of the commands.
    pub added_by_operators: Vec<OperatorAddition>,
    /// Gateways by venue.
    pub gateways: Vec<GatewayObservation>,
    /// Exchanges in the order of the plan.
    pub exchanges: Vec<ExchangeObservation>,
    /// The engine's counters; `None` if the plan has no engine.
    pub engine: Option<EngineObservation>,
    /// Damage of memory that several strategies write, as reported by the engine.
    pub damage: Option<ProtocolViolation>,
    /// The slot that blocks the submit hand-off, as reported by the engine.
    pub blocked_claim: Option<BlockedClaim>,
    /// Number of termination signals since the start.
    pub termination_requests: usize,
    /// The launcher itself has accessed lost memory: shared memory may read as zeros.
    pub has_launcher_lost_memory: bool,
    /// A process has died of an access to lost memory.
    pub has_process_lost_memory: bool,
    /// Last lines of the stderr of the process that `Supervisor::failing_process` names.
    pub last_words: Option<String>,
    /// Exemptions of a run without progress, if `Supervisor::needs_exemptions`.
    pub exemptions: Option<StallExemptions>,
    /// An action that could not be performed: the run ends.
    pub launcher_error: Option<String>,
}

/// One process of the plan, as the kernel reports it.
#[derive(Clone, Debug, Default)]
pub struct ProcessObservation {
    /// Process id.
    pub pid: u32,
    /// How the process exited; `None` while it runs.
    pub exit: Option<ExitObservation>,
    /// The kernel confirms that the process, and all inside its container, are gone.
    pub is_proven_dead: bool,
    /// All its threads that held a lock have died, by the words of the locks. A hint: the process
    /// itself can write them. Observed where a death can be proven early.
    pub is_lock_free: bool,
    /// Which of its threads are exiting, if `Supervisor::awaits_threads`.
    pub exiting: Option<ExitingObservation>,
    /// Why the process could not be restarted, if the last start failed.
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

/// The threads of a killed process, as the kernel reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitingObservation {
    /// Number of threads.
    pub count: usize,
    /// Number of threads that cannot store to memory any more.
    pub exiting: usize,
}

impl ExitingObservation {
    /// Returns `true` if no thread can store to memory any more.
    pub const fn is_all(&self) -> bool {
        self.count > 0 && self.exiting == self.count
    }
}

/// The exit status of a process that was never started, for messages.
pub const NOT_STARTED: &str = "not started";

/// How a process exited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitObservation {
    /// It exited with status 0.
    pub is_success: bool,
    /// It was killed by a signal.
    pub was_killed: bool,
    /// The exit status for messages.
    pub text: String,
    /// Last lines of the stderr of a dead end of a board.
    pub last_words: String,
    /// All its threads were exiting, and the kernel had not dismantled the process.
    pub is_early: bool,
}

/// One thread's status block.
#[derive(Clone, Debug)]
pub struct ThreadObservation {
    /// State, thread id and heartbeat.
    pub pulse: LivenessSample,
    /// The clock after the pulse was read, in ticks.
    pub ticks: u64,
    /// The thread's own message, if it reports that it failed.
    pub error: String,
    /// Events counted by a measured loop; 0 for other roles.
    pub measured_events: u64,
    /// CPU time of a silent thread: `Some` if the kernel was asked, with its answer.
    pub cpu: Option<Option<CpuSample>>,
    /// A journal thread of its process waits for the disk.
    pub waits_for_disk: bool,
    /// The debugger that has stopped a strategy's process: `Some` if the kernel was asked.
    pub debugger: Option<Option<Debugger>>,
    /// The kernel reports that the running process has no such thread any more. Observed of a
    /// strategy's thread that dies alone, once it is silent or reports its end.
    pub is_gone: bool,
}

impl ThreadObservation {
    /// Returns the reported state.
    pub const fn state(&self) -> ThreadState {
        ThreadState::from_code(self.pulse.state)
    }
}

/// One strategy: its own counters, and the engine's report about it.
#[derive(Clone, Debug, Default)]
pub struct StrategyObservation {
    /// Orders sent, by its own counter.
    pub sent: u64,
    /// Orders returned, by its own counter.
    pub returned: u64,
    /// Orders refused, by its own counter.
    pub rejected: u64,
    /// The engine's report about the strategy.
    pub repair: Repair,
    /// The overwritten header that no other strategy can have written. Observed of those that have
    /// exited, and of the others in turn.
    pub forged_header: Option<String>,
}

/// An operator's command to end a strategy, which the engine has confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorEnd {
    /// The number of the command.
    pub number: u32,
    /// When it was given, in ticks.
    pub ticks: u64,
    /// The strategy.
    pub strategy: StrategyIndex,
    /// The kind of the successor, empty if it is the same; `None`: no successor.
    pub successor: Option<String>,
}

/// An operator's command to start a strategy in the place of one that is down, which the engine has
/// confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorAddition {
    /// The number of the command.
    pub number: u32,
    /// The strategy.
    pub strategy: StrategyIndex,
    /// Its kind; empty: that of its predecessor, or of the plan.
    pub kind: String,
}

/// One gateway: its counters, and the engine's report about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct GatewayObservation {
    /// Orders received.
    pub received: u64,
    /// Reports handed over.
    pub completed: u64,
    /// The engine's report about a dead gateway.
    pub repair: GatewayRepair,
}

/// One exchange: its counters and its tape.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExchangeObservation {
    /// The venue that it runs.
    pub venue: VenueIndex,
    /// Orders received.
    pub received: u64,
    /// The recovery of its process.
    pub recovery: RecoveryObservation,
    /// It has a tape and has not closed its book.
    pub is_open: bool,
}

/// The recovery of an engine or exchange from its journal, as its process reports it. Times are in
/// ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryObservation {
    /// Journal records that were read.
    pub records: u64,
    /// Journal records that no standby had applied.
    pub replayed: u64,
    /// When the process began to recover: it was started, or its standby was woken.
    pub begun_ticks: u64,
    /// When all records were applied.
    pub ended_ticks: u64,
    /// When its duty cycles began.
    pub running_ticks: u64,
}

/// The engine's counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineObservation {
    /// Orders sent to gateways.
    pub dispatched: u64,
    /// Dispatched orders that have their last report.
    pub settled: u64,
    /// Orders refused.
    pub rejected: u64,
    /// Reports taken.
    pub reports: u64,
    /// Reports returned to strategies.
    pub returned: u64,
    /// Messages queued for full inboxes of gateways.
    pub waiting: u64,
    /// The recovery of its process.
    pub recovery: RecoveryObservation,
    /// A number that changes when the engine works.
    pub work: u64,
}

impl EngineObservation {
    /// Returns a number that grows with everything that the engine does with orders.
    pub const fn progress_count(&self) -> u64 {
        // Includes returned reports: a strategy with little CPU time drains its reports slowly.
        self.dispatched.wrapping_add(self.reports).wrapping_add(self.rejected).wrapping_add(self.returned)
    }

    /// Returns the number of orders that were dispatched to venues and are not settled.
    pub const fn at_venues(&self) -> u64 {
        self.dispatched.saturating_sub(self.settled)
    }

    /// Returns `true` if the engine has a report of each dispatched order, and no message waits for
    /// a gateway's inbox.
    pub const fn has_drained(&self) -> bool {
        self.at_venues() == 0 && self.waiting == 0
    }
}

/// Exemptions of a run without progress.
#[derive(Clone, Debug, Default)]
pub struct StallExemptions {
    /// A process of which a journal thread waits for the disk.
    pub disk_writer: Option<usize>,
    /// CPU accounts of all running processes, by process id; `None` if they were not asked for.
    pub accounts: Option<Vec<(u32, CpuAccount)>>,
}

impl Observations {
    /// Returns `None` while a process runs, else whether it exited normally.
    pub fn exited_normally(&self, process: usize) -> Option<bool> {
        self.processes[process].exit.as_ref().map(|exit| exit.is_success)
    }

    /// Returns `true` if a process was ended by a signal.
    pub fn was_killed(&self, process: usize) -> bool {
        self.processes[process].exit.as_ref().is_some_and(|exit| exit.was_killed)
    }

    /// Returns how a process exited.
    pub fn exit_text(&self, process: usize) -> String {
        self.processes[process].exit.as_ref().map_or_else(|| "still running".into(), |exit| exit.text.clone())
    }

    /// Returns the state of a thread.
    pub fn state(&self, thread: usize) -> ThreadState {
        self.threads[thread].state()
    }

    /// Returns `true` if an exchange has not closed its book.
    pub fn is_any_tape_open(&self) -> bool {
        self.exchanges.iter().any(|exchange| exchange.is_open)
    }

    /// Returns the exchange of a venue.
    pub fn exchange(&self, venue: VenueIndex) -> ExchangeObservation {
        self.exchanges.iter().find(|exchange| exchange.venue == venue).copied().unwrap_or_default()
    }

    /// Returns the last recovery of the engine or an exchange.
    pub fn recovery(&self, role: Role) -> RecoveryObservation {
        match role {
            Role::Orchestrator => self.engine.map(|engine| engine.recovery).unwrap_or_default(),
            role => self.exchange(VenueIndex(role.index())).recovery,
        }
    }

    /// Returns `true` if every sent order was refused, arrived at its venue, or was closed with its
    /// gateway. `of_dead` returns the orders of a gateway that is permanently dead.
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

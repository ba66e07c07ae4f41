//! The plan: one plain value that describes a run completely, validated before anything starts. The
//! launcher writes it into the control segment. Every process derives its threads, agents, segments
//! and cores from it, and gets no other configuration.

mod fault;
mod version;

use crate::gaps::MAX_SLEEPS;
use crate::index::{GatewayIndex, StrategyIndex, VenueIndex};
pub use crate::isolation::{Isolation, IsolationError, IsolationLevel, IsolationLevels};
use crate::link::{self, LinkError, LinkPlan};
pub use crate::role::Role;
use crate::wire::{MAX_STRATEGIES, MAX_VENUES};
pub use crate::workload::{
    Binary, BoardWork, EndWaiting, EventCost, ExchangePlacement, Journaling, LimitKeeper, MemorySettings,
    OrderSequence, Pacing, QueueWork, ReaderWaiting, ResourceLimit, Speculation, StrategyResources,
    StrategyUser, Trading, Workload, thousandths,
};
use core::fmt;
pub use fault::FaultKind;
use serde::{Deserialize, Serialize};
pub use shm::memory::sealed::Handle;
use std::collections::HashSet;
use system::named_enum;
use system::sandbox::{self, SandboxProfile};
use thiserror::Error;

/// The carriers of the two contended hand-offs (submit and completion): the technique table.
pub use system::clock::ClockSource;
pub use techniques::Technique;

named_enum! {
    /// How the engine's agents are distributed over threads.
    Threading {
        /// Each role of the engine has a thread, on a core of its own.
        Dedicated = "dedicated",
        /// Orchestrator and gateways are one composite agent on one thread.
        Shared = "shared",
    }
}

named_enum! {
    /// How the engine's roles are distributed over processes, except under thread isolation.
    Placement {
        /// Orchestrator and gateways are one process.
        Engine = "engine",
        /// All gateways are one process, separate from the orchestrator's.
        Gateways = "gateways",
        /// Each gateway is a process of its own.
        EachGateway = "each-gateway",
    }
}

named_enum! {
    /// The idle strategy of a thread: how the thread waits after a duty cycle without work.
    Idle {
        /// Polls again at once, every eighth time with the CPU's pause hint.
        Spin = "spin",
        /// Gives the core to other runnable threads (`sched_yield`).
        Yield = "yield",
        /// Spins, then yields, then sleeps for increasing times up to a bound.
        Backoff = "backoff",
        /// Waits on a futex that the sender rings.
        Park = "park",
    }
}

pub use crate::record::Stamps;
pub use version::PlanVersion;

named_enum! {
    /// The launcher's reaction when a strategy's process dies, hangs or is quarantined.
    OnDeath {
        /// Ends the whole run.
        Stop = "stop",
        /// Continues the run without the strategy.
        Continue = "continue",
        /// Restarts the strategy in a new epoch; a quarantined one stays down.
        Restart = "restart",
    }
}

/// The target of an injected fault, such as a strategy, a venue or the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultTarget {
    /// The fault hits the strategy with this index.
    Strategy(StrategyIndex),
    /// The fault hits a strategy that is drawn with the run's seed, again for each fault.
    Any,
    /// The fault hits the process of the engine.
    Engine,
    /// The fault hits the launcher.
    Launcher,
    /// The fault hits the venue with this index.
    Venue(VenueIndex),
    /// The fault hits the process of the exchange that is the venue with this index.
    Exchange(VenueIndex),
    /// The fault hits the process of the gateway with this index.
    Gateway(GatewayIndex),
}

impl fmt::Display for FaultTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultTarget::Strategy(index) => write!(f, "strategy-{index}"),
            FaultTarget::Any => f.write_str("any"),
            FaultTarget::Engine => f.write_str("engine"),
            FaultTarget::Launcher => f.write_str("launcher"),
            FaultTarget::Venue(index) => write!(f, "venue-{index}"),
            FaultTarget::Exchange(index) => write!(f, "exchange-{index}"),
            FaultTarget::Gateway(index) => write!(f, "gateway-{index}"),
        }
    }
}

/// The time or the order at which a fault is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultTime {
    /// The fault hits at a time after the start.
    At {
        /// Nanoseconds after the start.
        ns: u64,
    },
    /// The fault hits at a step of a push of the strategy.
    Push {
        /// The number of the order in its incarnation, from 0.
        order: u64,
        /// The step of the push.
        step: shm::ring::Step,
    },
}

/// A fault that is injected into a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of the fault.
    pub kind: FaultKind,
    /// The process that the fault hits.
    pub target: FaultTarget,
    /// The time at which the fault is injected.
    pub when: FaultTime,
    /// The period (ns) after which the fault repeats; `None`: once. Only for faults at a time.
    pub every_ns: Option<u64>,
    /// Duration of a venue fault in nanoseconds; `None`: until the end of the run.
    #[serde(default)]
    pub lasts_ns: Option<u64>,
}

/// A thread of a run: its core and its agents, in the order in which its duty cycle visits them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPlan {
    /// The thread's name, unique in the run: the role's name, or `engine` for orchestrator and
    /// gateways together.
    pub name: String,
    /// The roles of the thread's agents, at least one.
    pub roles: Vec<Role>,
    /// The core to which the thread is pinned; `None`: the kernel chooses among the allowed ones.
    pub core: Option<u32>,
    /// The idle strategy of the thread.
    pub idle: Idle,
    /// Capacity of the thread's stamp log, in records of 16 bytes.
    pub log_records: u64,
    /// Capacity in records for the thread's sleeps ([`crate::gaps`]); 0 if the thread never gives
    /// its core away.
    #[serde(default)]
    pub sleep_records: u64,
}

/// A process in the plan of a run, with its threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessPlan {
    /// The process's name, unique in the run, as `ps` shows it: `strategy-3`, `group-0`, `engine`,
    /// or `all` with threads only.
    pub name: String,
    /// Threads of the process, as indices into [`Plan::threads`].
    pub threads: Vec<u32>,
}

/// The complete description of a run, such as its processes, threads, links, faults and workload.
/// Unknown keys, which earlier builds wrote, are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of the plan's format.
    pub version: PlanVersion,
    /// The run's id, from which the names of the run's segments and directory are made:
    /// `[0-9a-z-]`, at most 64 characters.
    pub run: String,
    /// The absolute path of the run's directory, where logs are saved even without a launcher.
    pub folder: String,
    /// The launcher's process id.
    pub launcher_pid: u32,
    /// The start time of the launcher's process (`/proc/PID/stat`, field 22): no later process with
    /// its id has it.
    pub launcher_start: u64,
    /// The source of ticks of the run's clock.
    pub clock: ClockSource,
    /// Nanoseconds per tick before the run, for schedules; the merge calibrates over the whole run.
    pub ns_per_tick: f64,
    /// The technique of the submit and completion hand-offs: the queue under test.
    pub technique: Technique,
    /// The isolation between strategies and engine, by strategy.
    pub isolation: IsolationLevels,
    /// How the engine's agents are distributed over threads.
    pub threading: Threading,
    /// How the engine's roles are distributed over processes.
    pub placement: Placement,
    /// The points of an order's path that are stamped.
    pub stamps: Stamps,
    /// The priority of every thread under `SCHED_FIFO`, 1 to 99; `None`: ordinary scheduling.
    #[serde(default)]
    pub priority: Option<u8>,
    /// The file descriptors that processes inherit; empty if segments have names.
    pub handles: Vec<Handle>,
    /// `true` if a kernel without some feature of the sandbox is accepted.
    pub weaker_sandbox: bool,
    /// The reaction to the death of a strategy.
    pub on_death: OnDeath,
    /// The liveness timeout in nanoseconds: a thread that begins no duty cycle for this long hangs.
    pub liveness_ns: u64,
    /// The injected faults, in the order of the command line.
    pub faults: Vec<Fault>,
    /// The purpose of the run: trading or a benchmark, with its settings.
    pub workload: Workload,
    /// The links between the roles.
    pub links: Vec<LinkPlan>,
    /// All threads of the run, strategies first.
    pub threads: Vec<ThreadPlan>,
    /// All processes of the run, strategies first.
    pub processes: Vec<ProcessPlan>,
}

/// The error that a plan is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No strategy, or too many.
    #[error("{0} strategies: a run holds 1 to {MAX_STRATEGIES}")]
    Strategies(u64),
    /// No venue, or too many.
    #[error("{0} venues: a run holds 1 to {MAX_VENUES}")]
    Venues(u64),
    /// No gateway, or too many gateways and exchanges.
    #[error(
        "{0} gateways and exchanges: a run holds 1 to {MAX_VENUES}, a gateway for each venue and credential, an \
         exchange for each venue that is a book"
    )]
    Gateways(u64),
    /// An invalid capacity of a ring.
    #[error("capacity {0}: rings take a power of two from 2 to {max}", max = Plan::MAX_CAPACITY)]
    Capacity(u64),
    /// An invalid run id.
    #[error("run id {0:?}: 1 to 64 characters of a-z, 0-9 and -")]
    RunId(String),
    /// An invalid link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Inconsistent threads, processes or roles.
    #[error("inconsistent plan: {0}")]
    Inconsistent(&'static str),
}

impl Plan {
    /// The maximum length of a run's id, in bytes.
    pub const MAX_RUN_ID: usize = 64;

    /// The maximum number of slots of a ring in a plan.
    pub const MAX_CAPACITY: u32 = link::MAX_SLOTS;

    /// The prefix of the names of all segments of all runs.
    pub const PREFIX: &'static str = shm::memory::PREFIX;

    /// Returns the full name in `/dev/shm` of one of this run's segments, given its name within the
    /// run.
    pub fn segment_name(&self, what: &str) -> String {
        format!("{}{}.{what}", Self::PREFIX, self.run)
    }

    /// Returns the index, in the plan, of the thread that runs a role.
    pub fn thread_of(&self, role: Role) -> Option<usize> {
        self.threads.iter().position(|thread| thread.roles.contains(&role))
    }

    /// Returns the sandbox profile of a process; `None` if one of the process's roles has no
    /// profile or its roles have different ones. A process that writes a journal has the profile
    /// for journals.
    pub fn sandbox_of(&self, process: &ProcessPlan) -> Option<&'static SandboxProfile> {
        let profile = |role: Role| role.info().sandbox.filter(|_| !self.is_kernel_consumer(role));
        let mut profiles = self.roles_of(process).map(profile);
        let first = profiles.next()??;
        let profile = if self.has_journal(process) { &sandbox::JOURNALED } else { first };
        profiles.all(|other| other.is_some_and(|other| other.name == first.name)).then_some(profile)
    }

    /// Returns the isolation of a process from the others. Strategies have the level of their
    /// index. Other processes are only processes, except that gateways and exchanges are in a
    /// sandbox where strategies are; a process of roles with different levels has none.
    pub fn isolation_of(&self, process: &ProcessPlan) -> Isolation {
        let level = |role: Role| match role {
            Role::Strategy(index) => self.isolation.kind_of(index),
            _ if role.is_measured() => self.isolation.kind_of(StrategyIndex(0)),
            Role::Gateway(_) | Role::Exchange(_) if self.isolation.has(Isolation::Sandbox) => {
                Isolation::Sandbox
            }
            _ => Isolation::Process,
        };
        let mut levels = self.roles_of(process).map(level);
        let first = levels.next().unwrap_or(Isolation::Process);
        if levels.all(|other| other == first) { first } else { Isolation::Thread }
    }

    /// Returns `true` if a process of the plan runs in a container: only processes of strategies or
    /// of ends of a benchmark can.
    pub fn is_contained(&self, process: &ProcessPlan) -> bool {
        self.isolation_of(process) == Isolation::Container
            && self.roles_of(process).all(|role| role.is_isolated() && !self.is_kernel_consumer(role))
    }

    /// Returns `true` if a process counts as dead once all its threads are exiting, before the
    /// kernel has dismantled it. No store can follow then.
    ///
    /// That is so where the process can have no work in the kernel (io_uring, asynchronous I/O),
    /// and no partner with its address space: in a sandbox, which refuses those calls, and of
    /// bulkhead's own roles. Elsewhere its pidfd decides; and where a successor needs what the
    /// kernel frees last, which is a pipe or socket of the technique, or a limit of a cgroup or
    /// user.
    pub fn can_prove_death_early(&self, process: &ProcessPlan) -> bool {
        let is_trusted = self.roles_of(process).all(|role| !matches!(role, Role::Strategy(_)));
        let is_confined = self.isolation_of(process) == Isolation::Sandbox && !self.weaker_sandbox;
        let has_limits = *self.resources_of(process) != StrategyResources::NONE;
        self.is_trading()
            && (is_trusted || (is_confined && !has_limits))
            && self.program_of(process).is_none()
            && !self.technique.is_kernel()
    }

    /// Returns `true` if a process inherits a pidfd of the launcher instead of opening one: in a
    /// container, or an external program. In a container it could not open one, and under an
    /// emulator such as valgrind a program may not.
    pub fn inherits_launcher(&self, process: &ProcessPlan) -> bool {
        self.is_contained(process) || self.program_of(process).is_some()
    }

    /// Returns `true` for a benchmark's consumer of a queue of the kernel, which is not isolated:
    /// it creates and accepts connections.
    fn is_kernel_consumer(&self, role: Role) -> bool {
        matches!(role, Role::Consumer(_)) && self.technique.is_kernel()
    }

    /// Returns the index, in the plan, of the process that runs a role.
    pub fn process_of(&self, role: Role) -> Option<usize> {
        let thread = u32::try_from(self.thread_of(role)?).ok()?;
        self.processes.iter().position(|process| process.threads.contains(&thread))
    }

    /// Returns the settings of the trading workload. A run that does not trade has no strategies,
    /// no venues and no orders.
    pub const fn trading(&self) -> &Trading {
        static NONE: Trading = Trading::NONE;
        match &self.workload {
            Workload::Trading(trading) => trading,
            Workload::Queue(_) | Workload::Board(_) => &NONE,
        }
    }

    /// Returns `true` if strategies trade in the planned run; a benchmark has measured loops
    /// instead.
    pub const fn is_trading(&self) -> bool {
        matches!(self.workload, Workload::Trading(_))
    }

    /// Returns the settings of the trading workload for changes.
    ///
    /// # Panics
    /// If the run does not trade.
    pub const fn trading_mut(&mut self) -> &mut Trading {
        match &mut self.workload {
            Workload::Trading(trading) => trading,
            Workload::Queue(_) | Workload::Board(_) => panic!("a benchmark has no settings of trading"),
        }
    }

    /// Returns `true` if a gateway checks its venue's reports, and closes orders that the venue
    /// does not answer.
    pub fn validates_venue(&self, gateway: GatewayIndex) -> bool {
        let venue = FaultTarget::Venue(self.trading().venue_of(gateway));
        self.faults.iter().any(|fault| fault.target == venue)
    }

    /// Returns the link (connection between two roles) with this name; `None` if there is none.
    pub fn link(&self, name: &str) -> Option<&LinkPlan> {
        self.links.iter().find(|link| link.name == name)
    }

    /// Returns the strategy of a process whose only role is one strategy; `None` for any other
    /// process.
    pub fn strategy_of(&self, process: &ProcessPlan) -> Option<StrategyIndex> {
        let mut roles = self.roles_of(process);
        match (roles.next(), roles.next()) {
            (Some(Role::Strategy(strategy)), None) => Some(strategy),
            _ => None,
        }
    }

    /// Returns `true` if a process's only strategy is a spare, which is not started with the run.
    pub fn is_spare(&self, process: &ProcessPlan) -> bool {
        self.strategy_of(process).is_some_and(|strategy| self.trading().is_spare(strategy))
    }

    /// Returns the strategies of a process that runs nothing else: one, or those of a group. None
    /// of any other process, such as one with the engine.
    pub fn strategies_of(&self, process: &ProcessPlan) -> Vec<StrategyIndex> {
        let strategy = |role| match role {
            Role::Strategy(strategy) => Some(strategy),
            _ => None,
        };
        self.roles_of(process).map(strategy).collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns the resource limits and the user of a process: those of its strategy. All strategies
    /// of a group have the same.
    pub fn resources_of(&self, process: &ProcessPlan) -> &StrategyResources {
        static NONE: StrategyResources = StrategyResources::NONE;
        let first = self.strategies_of(process).first().copied();
        first.map_or(&NONE, |strategy| self.trading().resources_of(strategy))
    }

    /// Returns `true` if processes get segments as descriptors instead of opening them by name: a
    /// strategy is in a sandbox, or runs as another user.
    pub fn hands_over_segments(&self) -> bool {
        self.isolation.has(Isolation::Sandbox) || self.trading().has_users()
    }

    /// Returns the roles of a process in the plan.
    pub fn roles_of<'a>(&'a self, process: &'a ProcessPlan) -> impl Iterator<Item = Role> + 'a {
        let threads = process.threads.iter().filter_map(|thread| self.threads.get(*thread as usize));
        threads.flat_map(|thread| thread.roles.iter().copied())
    }

    /// Checks the plan's topology and the requirements of its workload.
    pub fn validate(&self) -> Result<(), PlanError> {
        let run_id_ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if self.run.is_empty() || self.run.len() > Self::MAX_RUN_ID || !self.run.bytes().all(run_id_ok) {
            return Err(PlanError::RunId(self.run.clone()));
        }
        ensure(self.ns_per_tick.is_finite() && self.ns_per_tick > 0.0, "a tick has a length")?;
        let is_fifo = |priority| system::priority::FIFO.contains(&priority);
        ensure(self.priority.is_none_or(is_fifo), "a priority is one of 1 to 99")?;
        self.validate_topology()?;
        let has_room = |thread: &ThreadPlan| thread.sleep_records <= MAX_SLEEPS.min(thread.log_records);
        ensure(self.threads.iter().all(has_room), "each log has the room that its sleeps may take")?;
        match &self.workload {
            Workload::Trading(trading) => self.validate_trading(trading),
            Workload::Queue(work) => self.validate_queue(work),
            Workload::Board(work) => self.validate_board(work),
        }
    }

    fn validate_topology(&self) -> Result<(), PlanError> {
        ensure(self.threads.iter().all(|t| !t.roles.is_empty()), "no thread without a role")?;
        let mut running = HashSet::new();
        let roles = self.threads.iter().flat_map(|thread| &thread.roles);
        ensure(roles.into_iter().all(|role| running.insert(*role)), "each role runs on exactly one thread")?;
        let mut owned: Vec<u32> = self.processes.iter().flat_map(|p| p.threads.clone()).collect();
        owned.sort_unstable();
        ensure(owned.iter().copied().eq(0..self.threads.len() as u32), "each thread belongs to one process")?;
        let mut names = HashSet::new();
        ensure(self.threads.iter().all(|t| names.insert(t.name.as_str())), "thread names are unique")?;
        let mut names = HashSet::new();
        ensure(self.processes.iter().all(|p| names.insert(p.name.as_str())), "process names are unique")?;
        let mut names = HashSet::new();
        for link in &self.links {
            link.validate(self.technique)?;
            let no = |why| Err(link.error(why).into());
            if !names.insert(link.name.as_str()) {
                return no("there are two of that name");
            }
            if !link.writers.iter().chain(&link.readers).all(|role| running.contains(role)) {
                return no("one of its ends runs on no thread");
            }
        }
        Ok(())
    }
}

/// Returns an error unless a condition of a valid plan holds.
pub(crate) fn ensure(ok: bool, what: &'static str) -> Result<(), PlanError> {
    if ok { Ok(()) } else { Err(PlanError::Inconsistent(what)) }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::*;

    /// A valid plan with one strategy process and a shared engine of two venues.
    pub(crate) fn small_plan() -> Plan {
        Plan::for_trading(Trading { orders: vec![10], ..Trading::new(1, 2) }).arranged()
    }

    #[test]
    fn each_inconsistency_is_named() {
        let broken = |change: fn(&mut Plan)| {
            let mut plan = small_plan();
            change(&mut plan);
            plan.validate().unwrap_err().to_string()
        };
        assert!(broken(|p| p.trading_mut().strategies = 0).contains("strategies"));
        assert!(broken(|p| p.trading_mut().venues = 65).contains("65 venues"));
        assert!(broken(|p| p.trading_mut().spare_strategies = 1).contains("not all strategies are spare"));
        assert!(broken(|p| p.trading_mut().capacity = 100).contains("power of two"));
        assert!(broken(|p| p.run = "../etc".into()).contains("run id"));
        assert!(broken(|p| p.priority = Some(0)).contains("a priority"));
        assert!(broken(|p| p.priority = Some(100)).contains("a priority"));
        assert!(broken(|p| p.threads[1].roles.truncate(1)).contains("link completion: one of its ends"));
        assert!(broken(|p| p.threads[1].roles.push(Role::Strategy(StrategyIndex(0)))).contains("each role"));
        assert!(broken(|p| p.links.truncate(1)).contains("links of a trading run"));
        assert!(broken(|p| p.links.push(p.links[0].clone())).contains("two of that name"));
        assert!(broken(|p| p.processes[1].name = "strategy-0".into()).contains("process names"));
        assert!(broken(|p| p.processes.truncate(1)).contains("each thread"));
        assert!(broken(|p| p.trading_mut().venue_kinds.clear()).contains("a kind"));
        assert!(broken(|p| p.trading_mut().reports_per_order = 0).contains("has reports"));
        assert!(broken(|p| p.trading_mut().orders.clear()).contains("order count"));
        assert!(broken(|p| p.trading_mut().venue_orders = vec![10]).contains("each strategy and venue"));
    }

    #[test]
    fn plan_of_another_format_is_refused() {
        let saved = serde_json::to_value(small_plan()).unwrap();
        assert_eq!(serde_json::from_value::<Plan>(saved.clone()).unwrap(), small_plan());
        let refused = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut saved = saved.clone();
            change(&mut saved);
            serde_json::from_value::<Plan>(saved).unwrap_err().to_string()
        };
        let old = refused(&|plan| plan["version"] = 1.into());
        assert!(old.contains("a plan of version 1, and this program reads version 3"), "{old}");
        let mut earlier = saved.clone();
        earlier["version"] = 2.into();
        earlier["group"] = serde_json::Value::Null;
        earlier["workload"]["trading"]["laps"] = 1.into();
        earlier["workload"]["trading"]["credentials"] = 1.into();
        assert_eq!(serde_json::from_value::<Plan>(earlier).unwrap(), small_plan(), "keys that are gone");
        let other = refused(&|plan| plan["workload"] = serde_json::json!({ "chess": {} }));
        assert!(other.contains("unknown variant `chess`"), "{other}");
        let missing = refused(&|plan| drop(plan.as_object_mut().unwrap().remove("version")));
        assert!(missing.contains("missing field `version`"), "{missing}");
    }
}

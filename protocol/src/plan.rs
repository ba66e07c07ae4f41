//! The plan: one plain value that says everything about a run, validated before anything starts.
//!
//! Every process derives itself from it: which threads it has, which agents a thread runs, which
//! segments it attaches and where its core is. The launcher makes it from the settings and the
//! facts of the host, writes it into the control segment, and nothing else is told to a child.

mod fault;
mod version;

use crate::gaps::MAX_SLEEPS;
use crate::link::{self, LinkError, LinkPlan};
pub use crate::role::Role;
pub use crate::spill::Spill;
use crate::wire::{MAX_GATEWAYS, MAX_STRATEGIES, MAX_VENUES};
pub use crate::workload::{ExchangePlacement, Journalling, Pacing, Sequence, Trading, Workload};
pub use fault::FaultKind;
use serde::{Deserialize, Serialize};
pub use shm::memory::sealed::Handle;
use std::collections::HashSet;
use system::names;
use system::sandbox::{self, Profile};
use thiserror::Error;

/// What carries the two contended hand-offs (submit and completion): the technique table.
pub use system::clock::ClockSource;
pub use techniques::Technique;

names! {
    /// What stands between the strategies and the engine.
    Isolation {
        /// Nothing: strategies and engine are threads of one process, over the same rings.
        Thread = "thread",
        /// An address space: every strategy is a process of its own.
        Process = "process",
        /// The same, and each strategy in namespaces of its own: of users, processes, networks,
        /// interprocess communication and mounts, with a read-only root and limits of its control
        /// group. For programs with a runtime.
        Container = "container",
        /// A process in a sandbox: sealed memory handed over as descriptors, read-only where the
        /// engine writes, and no system call but those needed to trade.
        Sandbox = "sandbox",
    }
}

names! {
    /// How the engine's agents share threads.
    Threading {
        /// A thread for each role, each on a core of its own.
        Dedicated = "dedicated",
        /// Orchestrator and gateways are one composite agent on one thread.
        Shared = "shared",
    }
}

names! {
    /// Which processes the engine's roles are in, where strategies have processes of their own.
    Placement {
        /// Orchestrator and gateways are one process.
        Engine = "engine",
        /// All gateways are a process beside the orchestrator's.
        Gateways = "gateways",
        /// Each gateway is a process of its own.
        EachGateway = "each-gateway",
    }
}

names! {
    /// What an agent's thread does when a duty cycle found nothing to do.
    Idle {
        /// Polls again at once, every eighth time with the processor's pause hint.
        Spin = "spin",
        /// Gives the core to whoever else wants it (`sched_yield`).
        Yield = "yield",
        /// Spins, then yields, then sleeps for longer and longer up to a bound.
        Backoff = "backoff",
        /// Waits on a futex that the sender rings.
        Park = "park",
    }
}

pub use crate::record::Stamps;
pub use version::PlanVersion;

names! {
    /// What the launcher does when a strategy's process dies, hangs or is quarantined.
    OnDeath {
        /// Ends the run.
        Stop = "stop",
        /// Goes on without it.
        Continue = "continue",
        /// Starts it again in a new epoch; one that was quarantined stays down.
        Restart = "restart",
    }
}

/// To whom a fault is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The strategy with this index.
    Strategy(u16),
    /// A strategy drawn by the run's seed, each time anew.
    Any,
    /// The process of the engine.
    Engine,
    /// The launcher.
    Launcher,
    /// The venue with this index.
    Venue(u16),
    /// The process of the exchange that is the venue with this index.
    Exchange(u16),
    /// The process of the gateway with this index.
    Gateway(u16),
}

/// When a fault is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// So many nanoseconds after the start.
    At {
        /// Nanoseconds.
        ns: u64,
    },
    /// At this step of the push of the strategy's order of that number in its incarnation, from 0.
    Push {
        /// The order.
        order: u64,
        /// The step.
        step: shm::ring::Step,
    },
}

/// A fault on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// To whom.
    pub target: Target,
    /// When.
    pub when: When,
    /// Again after so many nanoseconds, and again; `None`: once. Only for faults at a time.
    pub every_ns: Option<u64>,
    /// Of a venue: it is over after so many nanoseconds; `None`: it lasts.
    #[serde(default)]
    pub lasts_ns: Option<u64>,
}

/// A thread: one or more agents, composed into one, in the order in which its duty cycle visits
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPlan {
    /// Unique in the run: the role's name, or `engine` for the composite of orchestrator and
    /// gateways.
    pub name: String,
    /// Its agents, at least one.
    pub roles: Vec<Role>,
    /// The core that it is pinned to; `None`: the kernel's choice among the allowed ones.
    pub core: Option<u32>,
    /// What it does when there is nothing to do.
    pub idle: Idle,
    /// Room in its stamp log, in records of 16 bytes.
    pub log_records: u64,
    /// Of that, for times in which it gave its core away ([`crate::gaps`]); 0: it never does.
    #[serde(default)]
    pub sleep_records: u64,
}

/// A process and the threads in it (indices into [`Plan::threads`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessPlan {
    /// Unique in the run; what `ps` shows: `strategy-3`, `engine`, or `all` under thread isolation.
    pub name: String,
    /// Its threads.
    pub threads: Vec<u32>,
}

/// Everything about a run. See the module's documentation. Unknown keys are ignored: earlier builds
/// wrote some that are gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Of its form.
    pub version: PlanVersion,
    /// The run's id: names its segments and its folder, `[0-9a-z-]`, at most 64 characters.
    pub run: String,
    /// The run's folder, absolute: where the logs are saved, also if the launcher dies.
    pub folder: String,
    /// The launcher's process id.
    pub launcher_pid: u32,
    /// When the launcher started (`/proc/PID/stat`, field 22), which tells it from a later process
    /// of that id.
    pub launcher_start: u64,
    /// Where ticks come from.
    pub clock: ClockSource,
    /// Nanoseconds a tick, as calibrated before the run (children turn the schedule into ticks with
    /// it; the merge uses the calibration over the whole run instead).
    pub ns_per_tick: f64,
    /// What carries the contended hand-offs.
    pub technique: Technique,
    /// What stands between strategies and engine.
    pub isolation: Isolation,
    /// How the engine's agents share threads.
    pub threading: Threading,
    /// Which processes the engine's roles are in.
    pub placement: Placement,
    /// Which points are stamped.
    pub stamps: Stamps,
    /// The priority of every thread under `SCHED_FIFO`, 1 to 99; `None`: the threads are ordinary
    /// ones.
    #[serde(default)]
    pub priority: Option<u8>,
    /// The logs are rings that a process of its own moves to disk; `None`: each is as long as it
    /// may become.
    #[serde(default)]
    pub spill: Option<Spill>,
    /// The descriptors that processes inherit; empty where segments have names.
    pub handles: Vec<Handle>,
    /// Whether a kernel that lacks a piece of the sandbox is good enough.
    pub weaker_sandbox: bool,
    /// What happens when a strategy dies.
    pub on_death: OnDeath,
    /// A thread that has not begun a duty cycle for so many nanoseconds hangs.
    pub liveness_ns: u64,
    /// The faults on purpose, in the order in which they were asked for.
    pub faults: Vec<Fault>,
    /// What the run is for, and what only that knows.
    pub workload: Workload,
    /// Who sends messages to whom.
    pub links: Vec<LinkPlan>,
    /// All threads of the run, strategies first.
    pub threads: Vec<ThreadPlan>,
    /// All processes of the run, strategies first.
    pub processes: Vec<ProcessPlan>,
}

/// A plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// More strategies, or none.
    #[error("{0} strategies: a run holds 1 to {MAX_STRATEGIES}")]
    Strategies(u64),
    /// More venues, or none.
    #[error("{0} venues: a run holds 1 to {MAX_VENUES}")]
    Venues(u64),
    /// More gateways and exchanges, or none.
    #[error(
        "{0} gateways and exchanges: a run holds 1 to {MAX_GATEWAYS}, a gateway for each venue and credential, an exchange for \
         each venue that is a book"
    )]
    Gateways(u64),
    /// A capacity that rings cannot have.
    #[error("capacity {0}: rings take a power of two from 2 to {max}", max = Plan::MAX_CAPACITY)]
    Capacity(u64),
    /// A run id that cannot name files.
    #[error("run id {0:?}: 1 to 64 characters of a-z, 0-9 and -")]
    RunId(String),
    /// A link that no run can have.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Threads, processes and roles that do not fit together.
    #[error("inconsistent plan: {0}")]
    Inconsistent(&'static str),
}

impl Plan {
    /// The longest run id, in bytes.
    pub const MAX_RUN_ID: usize = 64;

    /// The largest capacity of a ring.
    pub const MAX_CAPACITY: u32 = link::MAX_SLOTS;

    /// The prefix of the names of all segments of all runs.
    pub const PREFIX: &'static str = shm::memory::PREFIX;

    /// The name of one of this run's segments in `/dev/shm`.
    pub fn segment_name(&self, what: &str) -> String {
        format!("{}{}.{what}", Self::PREFIX, self.run)
    }

    /// The thread that runs a role.
    pub fn thread_of(&self, role: Role) -> Option<usize> {
        self.threads.iter().position(|thread| thread.roles.contains(&role))
    }

    /// The profile that a process of the plan is confined by under isolation `sandbox`: its roles',
    /// if they have one and the same, or that of who writes a journal, if it does
    /// ([`Plan::has_journal`]). `None`: a role of it is trusted, or they may do different things.
    pub fn sandbox_of(&self, process: &ProcessPlan) -> Option<&'static Profile> {
        let mut profiles = self.roles_of(process).map(|role| role.record().sandbox);
        let first = profiles.next()??;
        let profile = if self.has_journal(process) { &sandbox::JOURNALLED } else { first };
        profiles.all(|other| other.is_some_and(|other| other.name == first.name)).then_some(profile)
    }

    /// Whether a process of the plan is in a container: a strategy, under isolation `container`.
    /// All others are bulkhead's own, and are trusted there as at `process`.
    pub fn is_contained(&self, process: &ProcessPlan) -> bool {
        self.isolation == Isolation::Container
            && self.roles_of(process).all(|role| matches!(role, Role::Strategy(_)))
    }

    /// The process that runs a role.
    pub fn process_of(&self, role: Role) -> Option<usize> {
        let thread = u32::try_from(self.thread_of(role)?).ok()?;
        self.processes.iter().position(|process| process.threads.contains(&thread))
    }

    /// What only trading knows.
    pub const fn trading(&self) -> &Trading {
        match &self.workload {
            Workload::Trading(trading) => trading,
        }
    }

    /// The same, to change.
    pub const fn trading_mut(&mut self) -> &mut Trading {
        match &mut self.workload {
            Workload::Trading(trading) => trading,
        }
    }

    /// Whether a gateway does not simply believe its venue: the plan has a fault for the venue, or
    /// a limit of its messages. Such a gateway may answer for its venue: it closes what the venue
    /// says nothing about, and refuses what is above the limit.
    pub fn is_checked(&self, gateway: u16) -> bool {
        let trading = self.trading();
        let venue = Target::Venue(trading.venue_of(gateway));
        trading.venue_limit > 0 || self.faults.iter().any(|fault| fault.target == venue)
    }

    /// The link of that name.
    pub fn link(&self, name: &str) -> Option<&LinkPlan> {
        self.links.iter().find(|link| link.name == name)
    }

    /// The roles of a process.
    pub fn roles_of<'a>(&'a self, process: &'a ProcessPlan) -> impl Iterator<Item = Role> + 'a {
        let threads = process.threads.iter().filter_map(|thread| self.threads.get(*thread as usize));
        threads.flat_map(|thread| thread.roles.iter().copied())
    }

    /// Checks that every process can derive itself from this plan: the topology (each role has one
    /// thread, each thread one process, each link ends that run), and what the workload demands of
    /// it.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn validate(&self) -> Result<(), PlanError> {
        let run_id_ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if self.run.is_empty() || self.run.len() > Self::MAX_RUN_ID || !self.run.bytes().all(run_id_ok) {
            return Err(PlanError::RunId(self.run.clone()));
        }
        check(self.ns_per_tick.is_finite() && self.ns_per_tick > 0.0, "a tick has a length")?;
        let is_fifo = |priority| system::priority::FIFO.contains(&priority);
        check(self.priority.is_none_or(is_fifo), "a priority is one of 1 to 99")?;
        self.validate_topology()?;
        let has_room = |thread: &ThreadPlan| thread.sleep_records <= MAX_SLEEPS.min(thread.log_records);
        check(self.threads.iter().all(has_room), "each log has the room that its sleeps may take")?;
        if let Some(spill) = &self.spill {
            check(
                spill.fits(self.threads.iter().map(|thread| thread.log_records)),
                "each log has a ring that fits it",
            )?;
        }
        match &self.workload {
            Workload::Trading(trading) => self.validate_trading(trading),
        }
    }

    fn validate_topology(&self) -> Result<(), PlanError> {
        check(self.threads.iter().all(|t| !t.roles.is_empty()), "no thread without a role")?;
        let mut running = HashSet::new();
        let roles = self.threads.iter().flat_map(|thread| &thread.roles);
        check(roles.into_iter().all(|role| running.insert(*role)), "each role runs on exactly one thread")?;
        let mut owned: Vec<u32> = self.processes.iter().flat_map(|p| p.threads.clone()).collect();
        owned.sort_unstable();
        check(owned.iter().copied().eq(0..self.threads.len() as u32), "each thread belongs to one process")?;
        let mut names = HashSet::new();
        check(self.threads.iter().all(|t| names.insert(t.name.as_str())), "thread names are unique")?;
        let mut names = HashSet::new();
        check(self.processes.iter().all(|p| names.insert(p.name.as_str())), "process names are unique")?;
        let mut names = HashSet::new();
        for link in &self.links {
            link.validate()?;
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

/// A condition of a valid plan.
pub(crate) fn check(ok: bool, what: &'static str) -> Result<(), PlanError> {
    if ok { Ok(()) } else { Err(PlanError::Inconsistent(what)) }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::*;

    /// A valid plan with one strategy process and a shared engine of two venues.
    pub(crate) fn small_plan() -> Plan {
        Plan::of(Trading { orders: vec![10], ..Trading::new(1, 2) }).arranged()
    }

    #[test]
    fn a_plan_that_fits_is_valid() {
        assert_eq!(small_plan().validate(), Ok(()));
    }

    #[test]
    fn each_thing_that_does_not_fit_is_named() {
        let broken = |change: fn(&mut Plan)| {
            let mut plan = small_plan();
            change(&mut plan);
            plan.validate().unwrap_err().to_string()
        };
        assert!(broken(|p| p.trading_mut().strategies = 0).contains("strategies"));
        assert!(broken(|p| p.trading_mut().venues = 65).contains("65 venues"));
        assert!(broken(|p| p.trading_mut().capacity = 100).contains("power of two"));
        assert!(broken(|p| p.run = "../etc".into()).contains("run id"));
        assert!(broken(|p| p.priority = Some(0)).contains("a priority"));
        assert!(broken(|p| p.priority = Some(100)).contains("a priority"));
        assert!(broken(|p| p.threads[1].roles.truncate(1)).contains("link completion: one of its ends"));
        assert!(broken(|p| p.threads[1].roles.push(Role::Strategy(0))).contains("each role"));
        assert!(broken(|p| p.links.truncate(1)).contains("links of a trading run"));
        assert!(broken(|p| p.links.push(p.links[0].clone())).contains("two of that name"));
        assert!(broken(|p| p.processes[1].name = "strategy-0".into()).contains("process names"));
        assert!(broken(|p| p.processes.truncate(1)).contains("each thread"));
        assert!(broken(|p| p.trading_mut().venue_kinds.clear()).contains("a kind"));
        assert!(broken(|p| p.trading_mut().reports_an_order = 0).contains("has reports"));
        assert!(broken(|p| p.trading_mut().orders.clear()).contains("order count"));
        assert!(broken(|p| p.trading_mut().venue_orders = vec![10]).contains("each strategy and venue"));
    }

    #[test]
    fn a_plan_of_another_form_is_refused() {
        let saved = serde_json::to_value(small_plan()).unwrap();
        assert_eq!(serde_json::from_value::<Plan>(saved.clone()).unwrap(), small_plan());
        let refused = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut saved = saved.clone();
            change(&mut saved);
            serde_json::from_value::<Plan>(saved).unwrap_err().to_string()
        };
        let old = refused(&|plan| plan["version"] = 1.into());
        assert!(old.contains("a plan of version 1, and this program reads version 2"), "{old}");
        let mut earlier = saved.clone();
        earlier["group"] = serde_json::Value::Null;
        assert_eq!(serde_json::from_value::<Plan>(earlier).unwrap(), small_plan(), "a key that is gone");
        let unknown = refused(&|plan| plan["workload"]["trading"]["colour"] = 3.into());
        assert!(unknown.contains("unknown field `colour`"), "{unknown}");
        let other = refused(&|plan| plan["workload"] = serde_json::json!({ "chess": {} }));
        assert!(other.contains("unknown variant `chess`"), "{other}");
        let missing = refused(&|plan| drop(plan.as_object_mut().unwrap().remove("version")));
        assert!(missing.contains("missing field `version`"), "{missing}");
    }

    #[test]
    fn names_round_trip() {
        assert_eq!(Idle::from_name("sleep"), None);
    }
}

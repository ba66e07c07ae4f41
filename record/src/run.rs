//! `run.json`: the launcher's record of a run. Together with the logs it is all that the merge
//! needs, so a run can be merged and reported again at any time.

use crate::cpu_shortage::CpuShortage;
use crate::document::Document;
use crate::kernel::{CacheMisses, KernelAccount};
use crate::machine::Machine;
use crate::numbers::count;
use protocol::index::{GatewayIndex, StrategyIndex, VenueIndex};
use protocol::plan::{Plan, Role};
use protocol::supervision::ProtocolViolation;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The saved record of a run: everything about it except its logs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of bulkhead that made the run.
    pub version: String,
    /// Build of bulkhead that made the run; of older records nothing is known.
    #[serde(default)]
    pub build: Build,
    /// Start time of the run in UTC: `2026-11-20T06:15:02Z`.
    pub started: String,
    /// Plan of the run, from which every process derives its part.
    pub plan: Plan,
    /// Machine that the run used.
    pub machine: Machine,
    /// Schedule of the run's orders.
    pub input: InputRecord,
    /// Calibration of the run's clock.
    pub clock: ClockCalibration,
    /// Core-to-core round trip between two cores of the run.
    #[serde(rename = "floor")]
    pub core_to_core_rtt: CoreToCoreRtt,
    /// End of the run: complete, or stopped and why.
    pub outcome: RunOutcome,
    /// Exit of each process, in the order of the plan.
    pub exits: Vec<ProcessExit>,
    /// Time from the first spawn to the release of the barrier, in nanoseconds.
    pub startup_ns: u64,
    /// Open orders, sampled by the launcher several times a second; `None` if the barrier never
    /// opened.
    pub open_orders: Option<OpenOrders>,
    /// Warnings about the plan; each is a reason not to quote the latencies.
    pub warnings: Vec<String>,
    /// Proportional set size of all processes together, in bytes, sampled when half of the orders
    /// were sent. `None` if the run was too short or the kernel does not report it.
    #[serde(default)]
    pub pss_bytes: Option<u64>,
    /// Kernel statistics of the run's cores; null if they were not collected.
    #[serde(default)]
    pub kernel: Option<KernelAccount>,
    /// Deaths of strategies during the run, in the order of their detection.
    #[serde(default)]
    pub incidents: Vec<Incident>,
    /// Restarts of engine roles from their journals, in the order of their detection.
    #[serde(rename = "comebacks", default)]
    pub role_restarts: Vec<RoleRestart>,
    /// Deaths of gateway processes during the run, in the order of their detection.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// Strategies that operators added during the run, in the order of their starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additions: Vec<Addition>,
    /// Operator commands, in the order of their numbers.
    #[serde(default)]
    pub commands: Vec<OperatorCommand>,
    /// Number of times that each fault of the plan was injected, in the plan's order; null for a
    /// fault that a process injects itself. Empty if they were not counted.
    #[serde(default, rename = "strikes")]
    pub fault_injections: Vec<Option<u64>>,
    /// Misses of caches by the threads of strategies.
    #[serde(default)]
    pub misses: CacheMisses,
}

/// The build of bulkhead (commit, compiler and profile) that made a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The commit of the sources, abbreviated; `None` if they had no history.
    pub commit: Option<String>,
    /// Whether tracked sources differed from the commit.
    pub modified: Option<bool>,
    /// The compiler of the build, with its version: `rustc 1.95.0 (…)`; empty if unknown.
    pub compiler: String,
    /// The Cargo profile of the build: `release` or `debug`; empty if unknown.
    pub profile: String,
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.commit.as_deref().unwrap_or("unknown commit"))?;
        if self.modified == Some(true) {
            f.write_str(", modified")?;
        }
        let rest = [&self.profile, &self.compiler];
        rest.into_iter().filter(|text| !text.is_empty()).try_for_each(|text| write!(f, ", {text}"))
    }
}

/// A command that an operator gave during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperatorCommand {
    /// Number of the command, from 0.
    pub number: u32,
    /// Time of the command, in ticks.
    pub ticks: u64,
    /// Process id of the operator.
    pub pid: u32,
    /// Command of the operator as text: `kill strategy-0`, `revive all`, `limit all
    /// max-position=100`.
    pub what: String,
}

impl RunRecord {
    /// Creates the record of a run from its plan and outcome, with defaults for everything else.
    pub fn new(plan: Plan, outcome: RunOutcome) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            build: Build::default(),
            started: String::new(),
            plan,
            machine: Machine::default(),
            input: InputRecord::default(),
            clock: ClockCalibration::default(),
            core_to_core_rtt: CoreToCoreRtt::default(),
            outcome,
            exits: Vec::new(),
            startup_ns: 0,
            open_orders: None,
            warnings: Vec::new(),
            pss_bytes: None,
            kernel: None,
            incidents: Vec::new(),
            role_restarts: Vec::new(),
            outages: Vec::new(),
            additions: Vec::new(),
            commands: Vec::new(),
            fault_injections: Vec::new(),
            misses: CacheMisses::default(),
        }
    }
}

/// Name of the file with a run's summary; a folder that contains a file of this name is taken for a
/// run's folder.
pub const SUMMARY_FILE: &str = "summary.json";

impl Document for RunRecord {
    const FILE: &'static str = "run.json";
    const NAME: &'static str = "bulkhead.run";
    const VERSION: u32 = 3;
    const ABSENT: &'static str = "not the folder of a run, or its launcher was killed";
    const REMEDY: &'static str = "without it the logs say nothing: fetch it from a copy, or run again";

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }

    /// Checks that the plan is possible and that its names lead to no log outside of its folder.
    fn check(&self) -> Result<(), String> {
        self.plan.validate().map_err(|error| error.to_string())?;
        let is_plain = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        match self.plan.threads.iter().find(|thread| !is_plain(&thread.name)) {
            Some(thread) => Err(format!("thread name {:?}: only a-z, 0-9 and - can name a log", thread.name)),
            None => Ok(()),
        }
    }
}

/// The end of one incarnation of a strategy (from a start to the next) before its run's end: cause,
/// detection and repair. Times are nanoseconds since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Epoch of the incarnation that died.
    pub epoch: u16,
    /// Process id of the dead incarnation; 0 if it could not be started.
    pub pid: u32,
    /// Cause of the death: `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, `quarantined:
    /// bad-cursor`, …
    pub cause: String,
    /// Violation for which the engine quarantined the strategy before its death; `None` if it did
    /// not.
    pub quarantined: Option<ProtocolViolation>,
    /// Time at which the launcher injected the fault, in nanoseconds since the start of the run;
    /// `None` if it did not.
    pub fault_ns: Option<u64>,
    /// Time at which the death was detected, in nanoseconds since the start of the run: the process
    /// had ended, exceeded its liveness deadline, or was quarantined.
    pub detected_ns: u64,
    /// Time in nanoseconds since the start of the run at which the death was certain and the fence
    /// was set.
    pub fenced_ns: u64,
    /// Time in nanoseconds since the start of the run at which the engine had repaired the rings;
    /// `None` if the run ended before.
    pub repaired_ns: Option<u64>,
    /// Time in nanoseconds since the start of the run at which the next incarnation ran its duty
    /// cycles; `None` if there is none.
    pub restarted_ns: Option<u64>,
    /// Reason for which the strategy was not restarted any more; `None` if it was, or the plan has
    /// no restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stayed_down: Option<StayedDown>,
    /// CPU time of the silent thread, if the strategy was killed because it hung.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<CpuShortage>,
    /// CPU time of the killed process until it ended, if that took long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_exit: Option<CpuShortage>,
    /// The strategy was a thread of the engine's process and was fenced without a proof of its
    /// death: the thread may have run again, and may have written to its log after the fence.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub abandoned: bool,
    /// The strategy's death was proven before the kernel had dismantled its process.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub proven_early: bool,
    /// How an operator ended the strategy; `None`: the strategy died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_operator: Option<EndByOperator>,
    /// The strategies that shared the dead process and ended with it, itself included; empty if the
    /// strategy had a process of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<StrategyIndex>,
}

/// How an operator ended a strategy: retired it without a successor, or replaced it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndByOperator {
    /// The operator ended the strategy without a successor.
    Retired,
    /// The operator ended the strategy for a successor of this kind; empty: of the same kind.
    Replaced(String),
}

impl EndByOperator {
    /// Describes the operator's action as the cause of a strategy's end: `replaced by maker, by an
    /// operator`.
    pub fn describe(&self) -> String {
        match self {
            Self::Retired => "retired by an operator".into(),
            Self::Replaced(kind) if kind.is_empty() => "replaced by an operator".into(),
            Self::Replaced(kind) => format!("replaced by {kind}, by an operator"),
        }
    }
}

/// A strategy that an operator started in place of one that was down, with its start times. Times
/// are nanoseconds since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addition {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Epoch of the incarnation that was started.
    pub epoch: u16,
    /// Kind of the added strategy; empty: that of its predecessor, or of the plan.
    pub kind: String,
    /// Time at which the strategy was started, in nanoseconds since the start of the run.
    pub started_ns: u64,
    /// Time in nanoseconds since the start of the run at which the strategy ran its duty cycles;
    /// `None` if it never did.
    pub running_ns: Option<u64>,
}

/// A strategy or a process that stayed down (was given up) after failed restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StayedDown {
    /// Number of consecutive failed restarts; 0 if none was tried.
    pub restarts: u32,
    /// The reason for staying down, with the cause of the last death.
    pub why: String,
}

impl StayedDown {
    /// Describes a strategy that stayed down: `strategy-1 stayed down after 8 restarts: …`.
    pub fn describe(&self, strategy: StrategyIndex) -> String {
        let after = match self.restarts {
            0 => String::new(),
            1 => " after 1 restart".into(),
            times => format!(" after {} restarts", count(times.into())),
        };
        format!("{} stayed down{after}: {}", Role::Strategy(strategy), self.why)
    }
}

/// The restart of an engine role (such as `engine` or `exchange-0`) from its journal, after its
/// process ended or hung. Times are nanoseconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleRestart {
    /// Role that was restarted.
    pub role: Role,
    /// Process id of the dead process.
    pub pid: u32,
    /// Cause of the death: `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, …
    pub cause: String,
    /// Time at which the launcher injected the fault, in nanoseconds since the start of the run;
    /// `None` if it did not.
    pub fault_ns: Option<u64>,
    /// Time at which the launcher detected the death, in nanoseconds since the start of the run.
    pub detected_ns: u64,
    /// Time in nanoseconds since the start of the run at which the successor ran its duty cycles
    /// with the whole state of the journal; `None` if the run ended before.
    pub recovered_ns: Option<u64>,
    /// Times of the steps between the detection of the death and the successor's duty cycles.
    #[serde(default)]
    pub steps: RestartSteps,
    /// Number of records in the journal at the time of the recovery.
    pub records: u64,
    /// Journal records that the successor replayed; the others were part of its snapshot or standby
    /// state.
    #[serde(rename = "again", default)]
    pub replayed: u64,
}

/// When an engine role's restart reached its steps, in nanoseconds since the start of the run;
/// `None` if not reached or reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartSteps {
    /// Time at which the role's death was proven, and its standby was promoted or a process
    /// started.
    pub restarted_ns: Option<u64>,
    /// Time at which the successor began to recover.
    pub begun_ns: Option<u64>,
    /// Time at which all records of the journal were applied.
    pub replayed_ns: Option<u64>,
    /// Time at which the duty cycles of the successor began.
    pub running_ns: Option<u64>,
    /// The role's death was proven before the kernel had dismantled its process.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub proven_early: bool,
}

/// The record of the death of a gateway's process during a run: its cause, the repair, and the
/// restart if there was one. The venues are down from the death to the restart. Times are
/// nanoseconds since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Name of the dead process in the plan.
    pub process: String,
    /// Gateways that the dead process ran.
    pub gateways: Vec<GatewayIndex>,
    /// Process id of the dead process; 0 if it could not be started.
    pub pid: u32,
    /// Cause of the death: `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, …
    pub cause: String,
    /// Time at which the launcher injected the fault, in nanoseconds since the start of the run;
    /// `None` if it did not.
    pub fault_ns: Option<u64>,
    /// Time at which the launcher detected the death, in nanoseconds since the start of the run.
    pub detected_ns: u64,
    /// Time in nanoseconds since the start of the run at which the death was certain and the fence
    /// was set.
    pub fenced_ns: u64,
    /// Time in nanoseconds since the start of the run at which the engine had handled the process's
    /// last report and, unless a successor resumes the session, closed its open orders. `None` if
    /// the run ended before.
    pub repaired_ns: Option<u64>,
    /// Number of orders that were open and were closed with the reason `venue-unknown`.
    pub unknown: u64,
    /// Time in nanoseconds since the start of the run at which the next incarnation accepted
    /// orders; `None` if the venues stayed down.
    pub restarted_ns: Option<u64>,
    /// Time of the next incarnation's first order by the stamps, in nanoseconds since the start of
    /// the run; `None` in saved records, which do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_ns: Option<u64>,
    /// Reason for which the process was not restarted any more; `None` if it was, or is never
    /// restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stayed_down: Option<StayedDown>,
}

impl Outage {
    /// Returns the venues that the outage took down for at least one of their credentials, each
    /// once.
    pub fn venues(&self, plan: &Plan) -> Vec<VenueIndex> {
        let mut venues: Vec<VenueIndex> =
            self.gateways.iter().map(|gateway| plan.trading().venue_of(*gateway)).collect();
        venues.dedup();
        venues
    }

    /// Describes the outage for people: `gateway-1 (pid 4711) of venue-1 died: signal 9 (SIGKILL)`;
    /// with several credentials it is `of venue-0/credential-1`.
    pub fn describe(&self, plan: &Plan) -> String {
        let Self { process, pid, cause, .. } = self;
        let places = self.gateways.iter().map(|gateway| plan.trading().gateway_place(*gateway));
        let venues: Vec<String> = places.collect();
        format!("{process} (pid {pid}) of {} died: {cause}", venues.join(", "))
    }
}

/// The integral over time of a run's number of open orders, in orders × ticks, from the launcher's
/// samples.
///
/// Between two samples the number is interpolated linearly. Over an interval of length h in which
/// the number changes by d, the error has a standard deviation of at most h·d/√2. That holds for
/// independent samples and is an upper bound for correlated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenOrders {
    /// Number of samples between the start and the last report.
    pub samples: u64,
    /// Integral of the number of open orders over time, in orders × ticks.
    pub order_ticks: f64,
    /// Upper bound of the integral's variance: the sum of (h·d)²/2 over the intervals between
    /// samples.
    pub variance: f64,
}

/// The schedule of a run's orders: arrival process, random seed, length of the order window in
/// nanoseconds, and venue delay as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputRecord {
    /// Arrival process of the orders: `uniform`, `poisson`, `pareto`, `stress` or `file`.
    pub arrivals: String,
    /// Name of the replayed file, if any.
    pub file: Option<String>,
    /// Seed of all random numbers of the run.
    pub seed: u64,
    /// Time from the first due order to the end of the window, in nanoseconds; 0 under closed
    /// pacing.
    pub window_ns: u64,
    /// Venue delay as configured, for example `uniform:5ms..500ms`.
    pub delay: String,
    /// Hash of the whole schedule, 16 hexadecimal digits: runs with equal hashes played equal
    /// orders.
    pub hash: String,
    /// Orders per second in the schedule; `None` under closed pacing.
    pub offered_per_s: Option<f64>,
}

/// Returns the nanoseconds per tick of a run's clock. Measured over the whole run or, if a damaged
/// record has no valid value, from the plan's calibration.
pub fn ns_per_tick(record: &RunRecord) -> f64 {
    let measured = record.clock.ns_per_tick;
    if measured.is_finite() && measured > 0.0 { measured } else { record.plan.ns_per_tick }
}

/// The calibration of a run's clock: nanoseconds per tick, cost of a read, and resolution in
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockCalibration {
    /// Nanoseconds per tick, calibrated against CLOCK_MONOTONIC over the whole run.
    pub ns_per_tick: f64,
    /// Cost of one clock read, in nanoseconds (median, before the run).
    pub read_ns: f64,
    /// Resolution of the clock, in nanoseconds; 0 if not measured. No interval is known more
    /// precisely.
    #[serde(default)]
    pub step_ns: f64,
    /// Difference of the calibrations before and over the run, in parts per million.
    pub drift_ppm: f64,
    /// Tick at which the barrier opened: time zero of the schedule.
    pub start_ticks: u64,
}

/// The core-to-core round trip of one cache line before and after a run, in nanoseconds. Measured
/// with threads that wait for each other (synchronized), and with threads that arrive at arbitrary
/// times, like orders (unsynchronized).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreToCoreRtt {
    /// The two cores; `None` if the run had only one.
    pub cores: Option<(u32, u32)>,
    /// Median round trip before the run, in nanoseconds.
    pub before_ns: Option<f64>,
    /// Median round trip after the run, in nanoseconds.
    pub after_ns: Option<f64>,
    /// Median round trip of unsynchronized threads, in nanoseconds
    /// (`system::floor::unsynchronized_ns`).
    #[serde(rename = "out_of_step_ns", default)]
    pub unsynchronized_ns: Option<f64>,
}

/// How a run ended: complete, interrupted, or failed with the process and the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum RunOutcome {
    /// Every strategy sent all its orders and received all its reports.
    Complete,
    /// Ctrl-C or SIGTERM: no order was sent afterwards.
    Interrupted,
    /// A process died, hung during startup or reported an error.
    Failed {
        /// Name of the failed process in the plan.
        process: String,
        /// Process id.
        pid: u32,
        /// Signal, exit code or the reported error.
        what: String,
    },
}

/// The exit status of a process of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessExit {
    /// Name of the ended process in the plan.
    pub process: String,
    /// Process id of the ended process.
    pub pid: u32,
    /// Exit status of the process: `exit 0`, `signal 9 (SIGKILL)`, …
    pub how: String,
    /// Resource usage of the process, by the kernel; null if it was not collected.
    #[serde(default)]
    pub usage: Option<ProcessUsage>,
}

/// CPU time, memory and context switches of a process, as the kernel reports them. Of a restarted
/// process, over all its incarnations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Time from the start of the process until the launcher saw all its threads at the barrier, in
    /// nanoseconds, to within 5 %; null if they never arrived.
    pub startup_ns: Option<u64>,
    /// CPU time of all threads of the process until they were at the barrier, in nanoseconds.
    pub startup_cpu_ns: Option<u64>,
    /// CPU time of all threads of the process until its end, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Peak memory in bytes, including shared memory, as last sampled: at the barrier, when half of
    /// the orders were sent, or when all were answered.
    pub peak_bytes: Option<u64>,
    /// Memory shared with the run at the time of the peak, in bytes: rings, schedule and log.
    pub shared_bytes: Option<u64>,
    /// Private resident memory in bytes, the largest sampled: when half of the orders were sent and
    /// when all were. Like the others below it is the strategy's, not its container's.
    #[serde(default)]
    pub private_bytes: Option<u64>,
    /// Resident memory in bytes that other processes have mapped too: text, rings, logs.
    #[serde(default)]
    pub resident_shared_bytes: Option<u64>,
    /// Memory of the process's page tables in bytes.
    #[serde(default)]
    pub page_table_bytes: Option<u64>,
    /// Memory in bytes that is mapped by huge pages.
    #[serde(default)]
    pub huge_bytes: Option<u64>,
    /// Proportional set size in bytes: the process's private memory and its share of what others
    /// have mapped too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<u64>,
}

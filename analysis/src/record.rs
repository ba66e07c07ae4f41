//! `run.json`: what the launcher knows about a run beside the stamp logs. With the logs it is all
//! that the merge needs, so a run can be merged and reported again at any time.

use crate::document::Document;
use crate::kernel::KernelAccount;
use crate::machine::Machine;
use crate::numbers::count;
use protocol::plan::{Plan, Role};
use protocol::supervision::ProtocolViolation;
use serde::{Deserialize, Serialize};

/// Everything but the logs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// bulkhead's version.
    pub version: String,
    /// When the run began, UTC, `2026-11-20T06:15:02Z`.
    pub started: String,
    /// The plan that every process derived itself from.
    pub plan: Plan,
    /// Where it ran.
    pub machine: Machine,
    /// What it was fed with.
    pub input: InputRecord,
    /// How ticks become nanoseconds.
    pub clock: Clock,
    /// The core-to-core floor between the cores that the run used.
    pub floor: Floor,
    /// How it ended.
    pub outcome: RunOutcome,
    /// How each process ended, in the order of the plan.
    pub exits: Vec<Exit>,
    /// From the first spawn to the barrier's release, in nanoseconds.
    pub startup_ns: u64,
    /// Open orders as the launcher saw them in the strategies' counters, several times a second;
    /// `None` where the barrier never opened.
    pub open_orders: Option<OpenOrders>,
    /// What the plan means for the figures, in words; each is a reason not to quote the latencies.
    pub warnings: Vec<String>,
    /// Proportional set size of all processes together, in bytes, sampled once when half of the
    /// orders were sent; `None` if the run was too short for it or the kernel does not tell.
    #[serde(default)]
    pub pss_bytes: Option<u64>,
    /// What the kernel says of the run's cores, from its start to its end; null: nobody asked it.
    #[serde(default)]
    pub kernel: Option<KernelAccount>,
    /// The strategies that died and the run went on, in the order of their detection.
    #[serde(default)]
    pub incidents: Vec<Incident>,
    /// Roles of the engine that died and came back from their journals, in the order of their
    /// detection.
    #[serde(default)]
    pub comebacks: Vec<RoleRestart>,
    /// Processes of gateways that died and the run went on, in the order of their detection.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// What operators gave the engine to do while it ran, in the order of the commands' numbers.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// How often each of the plan's faults struck, in their order; null for one that is no signal
    /// of the launcher's: a process does it to itself. Empty where nobody counted.
    #[serde(default)]
    pub strikes: Vec<Option<u64>>,
}

/// An operator's command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Its number, from 0.
    pub number: u32,
    /// When it was given, in ticks.
    pub ticks: u64,
    /// The operator's process.
    pub pid: u32,
    /// What was wanted, in words: `kill strategy-0`, `revive all`, `limit all max-position=100`.
    pub what: String,
}

impl Document for RunRecord {
    const FILE: &'static str = "run.json";
    const NAME: &'static str = "bulkhead.run";
    const VERSION: u32 = 3;
    const ABSENT: &'static str = "not the folder of a run, or its launcher was killed";
    const REMEDY: &'static str = "without it the logs say nothing: fetch it from a copy, or run again";

    /// A plan that a run can have had, whose names lead to no log outside of its folder.
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

/// What happened to one incarnation of a strategy, and how it was contained. Times are nanoseconds
/// since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// The strategy.
    pub strategy: u16,
    /// The incarnation that died.
    pub epoch: u16,
    /// The process that died; 0: none could be started.
    pub pid: u32,
    /// `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, `quarantined: bad-cursor`, …
    pub cause: String,
    /// The engine took no more from it before it died, and why.
    pub quarantined: Option<ProtocolViolation>,
    /// When the launcher did the fault, if it did one.
    pub fault_ns: Option<u64>,
    /// When the launcher noticed: the process had ended, was past its liveness deadline, or was
    /// quarantined.
    pub detected_ns: u64,
    /// When the death was certain and the fence was up.
    pub fenced_ns: u64,
    /// When the engine had repaired what it left; `None`: the run ended before.
    pub repaired_ns: Option<u64>,
    /// When the next incarnation was in its duty cycles; `None` if there is none.
    pub restarted_ns: Option<u64>,
    /// Why the strategy was given up after this death; `None`: it was not, or the plan has no
    /// restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stayed_down: Option<StayedDown>,
}

/// A strategy that was to be started again after its deaths, and was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StayedDown {
    /// Restarts in a row that came to nothing; 0: none was tried.
    pub restarts: u32,
    /// The reason, with the cause of the last death.
    pub why: String,
}

impl StayedDown {
    /// Says it of a strategy: `strategy-1 stayed down after 8 restarts: …`.
    pub fn of(&self, strategy: u16) -> String {
        let after = match self.restarts {
            0 => String::new(),
            1 => " after 1 restart".into(),
            times => format!(" after {} restarts", count(times.into())),
        };
        format!("{} stayed down{after}: {}", Role::Strategy(strategy), self.why)
    }
}

/// A role of the engine that died and came back from its journal. Times are nanoseconds since the
/// start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleRestart {
    /// Who came back.
    pub role: Role,
    /// The process that died.
    pub pid: u32,
    /// `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, …
    pub cause: String,
    /// When the launcher did the fault, if it did one.
    pub fault_ns: Option<u64>,
    /// When the launcher noticed.
    pub detected_ns: u64,
    /// When its successor was in its duty cycles, with everything that the journal has; `None`: the
    /// run ended before.
    pub recovered_ns: Option<u64>,
    /// Records that the journal had then.
    pub records: u64,
    /// Those of them that it carried out again; the others were in the state that it went on from.
    #[serde(default)]
    pub again: u64,
}

/// A process of gateways that died while the run went on: its venues were down. Times are
/// nanoseconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The process that died, by its name in the plan.
    pub process: String,
    /// The gateways in it.
    pub gateways: Vec<u16>,
    /// Its process id; 0: none could be started.
    pub pid: u32,
    /// `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, …
    pub cause: String,
    /// When the launcher did the fault, if it did one.
    pub fault_ns: Option<u64>,
    /// When the launcher noticed.
    pub detected_ns: u64,
    /// When the death was certain and the fence was up.
    pub fenced_ns: u64,
    /// When the engine had its last report, and had closed what was open there unless its successor
    /// goes on with that; `None`: the run ended before.
    pub repaired_ns: Option<u64>,
    /// Orders that were open there then, and were closed with the reason `venue-unknown`.
    pub unknown: u64,
    /// When the next incarnation took orders; `None` if there is none: the venues stayed down.
    pub restarted_ns: Option<u64>,
    /// When it had its first order, by the stamps; `None`: not known, as in a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_ns: Option<u64>,
    /// Why the process was given up; `None`: it was not, or it is none that is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stayed_down: Option<StayedDown>,
}

impl Outage {
    /// Returns the venues that were down, each once.
    pub fn venues(&self, plan: &Plan) -> Vec<u16> {
        let mut venues: Vec<u16> =
            self.gateways.iter().map(|gateway| plan.trading().venue_of(*gateway)).collect();
        venues.dedup();
        venues
    }

    /// Returns who died: `gateway-1 (pid 4711) of venue-1 died: signal 9 (SIGKILL)`.
    pub fn in_words(&self, plan: &Plan) -> String {
        let Self { process, pid, cause, .. } = self;
        let venues: Vec<String> = self.venues(plan).iter().map(|venue| format!("venue-{venue}")).collect();
        format!("{process} (pid {pid}) of {} died: {cause}", venues.join(", "))
    }
}

/// Samples of the orders open at a time, taken from outside and weighted by time.
///
/// Between two samples the number is taken to have gone straight from one to the other. By how much
/// that can be wrong is told by how far apart they are: over an interval of length h in which the
/// number changes by d, the error has a standard deviation of at most h·d/√2. That is right for
/// samples that have nothing to do with each other, and too much for those that have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpenOrders {
    /// Samples taken between the start and the last report.
    pub samples: u64,
    /// The integral over time, in orders × ticks.
    pub order_ticks: f64,
    /// The sum of (h·d)²/2 over the intervals: the variance of that integral.
    pub variance: f64,
}

/// The schedule's facts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InputRecord {
    /// `uniform`, `poisson`, `pareto`, `stress` or `file`.
    pub arrivals: String,
    /// The file that was replayed, if one was.
    pub file: Option<String>,
    /// The seed of everything that was sampled.
    pub seed: u64,
    /// The time from the first due order to the end of the window, in nanoseconds; 0 under closed
    /// pacing.
    pub window_ns: u64,
    /// The venue delay as it was asked for, for example `uniform:5ms..500ms`.
    pub delay: String,
    /// Hash over the whole schedule, 16 hex digits: two runs with the same one played the same
    /// orders.
    pub hash: String,
    /// Orders a second in the schedule; `None` under closed pacing.
    pub offered_per_s: Option<f64>,
}

/// The clock's facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Nanoseconds a tick, calibrated against CLOCK_MONOTONIC over the whole run.
    pub ns_per_tick: f64,
    /// What one read costs, in nanoseconds (median, before the run).
    pub read_ns: f64,
    /// The step in which it counts, in nanoseconds; 0: not measured. No interval is known finer
    /// than this.
    #[serde(default)]
    pub step_ns: f64,
    /// By how much the calibration before the run differs from the one over the run, in parts per
    /// million.
    pub drift_ppm: f64,
    /// The tick at which the barrier opened: time zero of the schedule.
    pub start_ticks: u64,
}

/// One cache line bounced between two cores, before and after the run: by threads that wait for
/// nothing but each other, and by such as come when they like, as orders do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// The two cores; `None` where the run had only one.
    pub cores: Option<(u32, u32)>,
    /// Median round trip before the run, in nanoseconds.
    pub before_ns: Option<f64>,
    /// Median round trip after the run, in nanoseconds.
    pub after_ns: Option<f64>,
    /// The same out of step (`system::floor::out_of_step_ns`).
    #[serde(default)]
    pub out_of_step_ns: Option<f64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum RunOutcome {
    /// Every strategy sent all its orders and got all its reports.
    Complete,
    /// Ctrl-C or SIGTERM: no order was sent after it.
    Interrupted,
    /// A process died, hung at the start or reported an error.
    Failed {
        /// The process's name in the plan.
        process: String,
        /// Its pid.
        pid: u32,
        /// Signal, exit code or the error that it reported.
        what: String,
    },
}

/// How a process ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// Its name in the plan.
    pub process: String,
    /// Its pid.
    pub pid: u32,
    /// `exit 0`, `signal 9 (SIGKILL)`, …
    pub how: String,
    /// What the kernel said of it; null: nobody asked it.
    #[serde(default)]
    pub usage: Option<ProcessUsage>,
}

/// What the kernel says of a process, asked by the launcher. Of one that was started again: of all
/// its incarnations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// From its start until the launcher saw all of its threads at the barrier, in nanoseconds, to
    /// within a twentieth; null: it never came there.
    pub startup_ns: Option<u64>,
    /// CPU time of all its threads until then, in nanoseconds.
    pub startup_cpu_ns: Option<u64>,
    /// CPU time of all its threads until its end, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// The most memory that it had at once, in bytes, with what it shares, when it was last looked
    /// at: at the barrier, when half of the orders were sent, when all were answered.
    pub peak_bytes: Option<u64>,
    /// What of its memory then was shared with the run, in bytes: rings, schedule, its log.
    pub shared_bytes: Option<u64>,
}

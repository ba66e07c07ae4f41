//! Run outlines: the part of a run's summary that comparisons need.

use super::LevelUsage;
use protocol::plan::{Idle, IsolationLevels, MemorySettings, Plan, Stamps, Technique, ThreadPlan, Threading};
use record::run::RunOutcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use verdict::summary::{Distribution, LevelSummary, Measure, StrategyCosts, Summary};

/// The outline of a run: the part of its summary that comparisons need. Sums are over the run's
/// threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOutline {
    /// Id of the run.
    pub run: String,
    /// Technique of the submit and completion hand-offs.
    pub technique: Technique,
    /// Isolation between strategies and engine.
    pub isolation: IsolationLevels,
    /// Threading of the engine's agents.
    pub threading: Threading,
    /// Idle strategy of the orchestrator's thread.
    pub idle: Idle,
    /// Number of strategies.
    pub strategies: u16,
    /// Number of venues.
    pub venues: u16,
    /// Number of slots of each ring.
    pub capacity: u32,
    /// The points of an order's path that were stamped.
    #[serde(default = "all_stamps")]
    pub stamps: Stamps,
    /// Requested extra work, in nanoseconds per order.
    pub work_ns: u64,
    /// Measured extra work, in nanoseconds per order; `None` if an older launcher did not save it.
    #[serde(default)]
    pub work_done_ns: Option<f64>,
    /// Identity of the machine, by which runs are comparable.
    pub machine: MachineKey,
    /// Hash of the run's schedule.
    pub schedule_hash: String,
    /// Whether threads shared a core.
    pub oversubscribed: bool,
    /// Whether every order was sent and returned.
    pub complete: bool,
    /// Whether every check held.
    pub valid: bool,
    /// Whether the latencies may be quoted.
    pub fit_for_latency: bool,
    /// Reasons against quoting the latencies.
    pub reasons: Vec<String>,
    /// Planned faults that were never injected, with the reason. One line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfired_faults: Vec<String>,
    /// Offered rate: orders per second in the schedule.
    pub offered_per_s: Option<f64>,
    /// Achieved rate: orders sent per second.
    pub achieved_per_s: Option<f64>,
    /// Utilization of the orchestrator's thread, 0 to 1.
    #[serde(rename = "utilisation")]
    pub utilization: Option<f64>,
    /// Number of orders that returned.
    pub returned: u64,
    /// Number of pushes that found a ring full, of all threads; `None` if an older launcher did not
    /// save it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<u64>,
    /// Mean number of open orders, sampled and by Little's law; `None` if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_orders: Option<OpenOrdersCheck>,
    /// CPU time of all threads, in nanoseconds.
    pub cpu_ns: u64,
    /// Time from the first spawn of a process to the start of trading, in nanoseconds.
    pub startup_ns: u64,
    /// Proportional set size of all processes in the middle of the run, in bytes.
    pub pss_bytes: Option<u64>,
    /// Number of page faults of all threads, minor and major.
    pub page_faults: u64,
    /// Number of context switches of all threads, voluntary and not.
    pub context_switches: u64,
    /// Core-to-core round trip before the run, in nanoseconds.
    #[serde(rename = "floor_ns")]
    pub core_rtt_ns: Option<f64>,
    /// Core-to-core round trip after the run, in nanoseconds; older launchers did not save it.
    #[serde(rename = "floor_after_ns", default)]
    pub core_rtt_after_ns: Option<f64>,
    /// Resolution of the run's clock, in nanoseconds; 0 if not measured.
    #[serde(default)]
    pub clock_step_ns: f64,
    /// Median of `rt_venue_from_due` with the orders of the warm-up; `None` if none were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_warm_up_p50_ns: Option<u64>,
    /// Distributions by the name of their measure.
    #[serde(default)]
    pub measures: BTreeMap<String, Distribution>,
    /// Latencies of each isolation level; empty if all strategies have the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelSummary>,
    /// Memory settings of the strategies: working sets, executables and mappings.
    #[serde(default, skip_serializing_if = "MemorySettings::is_none")]
    pub memory: MemorySettings,
    /// Whether threads were pinned to cores.
    #[serde(default = "pinned", skip_serializing_if = "is_true")]
    pub is_pinned: bool,
    /// Median time of the walk of a working set for one order, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk_ns: Option<f64>,
    /// Costs of strategies besides latency, by isolation level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<StrategyCosts>,
    /// Resource usage of each group of strategies with the same isolation level; empty if an older
    /// launcher did not save it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<LevelUsage>,
}

/// A check of a run: its mean number of open orders, sampled and by Little's law. A run in which
/// the two differ by more than the sampling error is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenOrdersCheck {
    /// Mean number of open orders over the launcher's samples, weighted by time.
    pub measured: f64,
    /// Mean number of open orders by Little's law: completions a second times the mean round trip.
    pub littles_law: f64,
}

const fn pinned() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

const fn all_stamps() -> Stamps {
    Stamps::All
}

/// The identity of a machine: runs with equal keys used the same machine and cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineKey {
    /// Host name.
    pub hostname: String,
    /// CPU model name.
    pub cpu_model: String,
    /// CPUs that the launcher could use.
    pub cores_allowed: Vec<u32>,
}

/// Returns `true` if a plan pins another thread to the core of a thread that spins instead of
/// yielding. Threads that yield or park share a core as they would in any other program: a normal
/// layout.
pub fn is_oversubscribed(plan: &Plan) -> bool {
    let shares = |thread: &ThreadPlan| {
        let others = plan.threads.iter().filter(|other| other.core == thread.core);
        thread.core.is_some() && others.count() > 1
    };
    plan.threads.iter().any(|thread| thread.idle == Idle::Spin && shares(thread))
}

impl RunOutline {
    /// Creates the outline of a run from its summary.
    pub fn from_summary(summary: &Summary) -> Self {
        let (plan, machine) = (&summary.plan, &summary.machine);
        let sum = |of: fn(&verdict::summary::ThreadSummary) -> u64| {
            summary.processes.iter().map(of).fold(0, u64::saturating_add)
        };
        Self {
            run: summary.run.clone(),
            technique: summary.technique,
            isolation: summary.isolation,
            threading: summary.threading,
            idle: summary.idle,
            strategies: plan.trading().strategies,
            venues: plan.trading().venues,
            capacity: plan.trading().capacity,
            stamps: plan.stamps,
            work_ns: plan.trading().work_ns,
            work_done_ns: Some(summary.work.achieved_ns),
            machine: MachineKey {
                hostname: machine.hostname.clone(),
                cpu_model: machine.cpu_model.clone(),
                cores_allowed: machine.cores_allowed.clone(),
            },
            schedule_hash: summary.input.hash.clone(),
            oversubscribed: is_oversubscribed(plan),
            complete: summary.outcome == RunOutcome::Complete,
            valid: summary.valid,
            fit_for_latency: summary.fit_for_latency,
            reasons: summary.reasons.clone(),
            unfired_faults: summary.unfired_faults.clone(),
            offered_per_s: summary.rate.offered_per_s,
            achieved_per_s: summary.rate.achieved_per_s,
            utilization: summary.orchestrator_utilization,
            returned: summary.orders.returned,
            full: Some(summary.orders.full),
            open_orders: summary
                .in_flight
                .measured
                .zip(summary.in_flight.littles_law)
                .map(|(measured, littles_law)| OpenOrdersCheck { measured, littles_law }),
            cpu_ns: sum(|thread| thread.cpu_ns),
            startup_ns: summary.startup_ns,
            pss_bytes: summary.pss_bytes,
            page_faults: sum(|thread| thread.minor_faults.saturating_add(thread.major_faults)),
            context_switches: sum(|thread| {
                thread.voluntary_switches.saturating_add(thread.involuntary_switches)
            }),
            core_rtt_ns: summary.core_to_core_rtt.before_ns,
            core_rtt_after_ns: summary.core_to_core_rtt.after_ns,
            clock_step_ns: summary.clock.step_ns,
            with_warm_up_p50_ns: summary.warm_up.and_then(|found| found.with_p50_ns),
            measures: summary
                .measures()
                .map(|measure| (measure.name().to_owned(), summary.distribution(measure)))
                .collect(),
            levels: summary.levels.clone(),
            memory: plan.trading().memory,
            is_pinned: plan.threads.iter().any(|thread| thread.core.is_some()),
            walk_ns: summary.working_set.and_then(|set| set.walk_p50_ns),
            costs: summary.costs.clone(),
            usage: LevelUsage::from_summary(summary),
        }
    }

    /// Returns the run's outline for the strategies at one isolation level, as if they were a run
    /// of their own. Sums over threads are those of the whole run.
    pub fn of_level(&self, level: &LevelSummary) -> Self {
        let mut own = self.clone();
        (own.isolation, own.strategies, own.levels) = (level.level.into(), level.strategies, Vec::new());
        own.run = format!("{}/{}-{}", self.run, level.level, level.again);
        own.measures.extend(level.measures.clone());
        own.costs.retain(|costs| costs.isolation == level.level);
        own.usage.retain(|usage| (usage.level, usage.again) == (level.level, level.again));
        own.returned = level.measure(Measure::RtVenue).count;
        own
    }

    /// Returns the run's id, also if this outline is of one isolation level
    /// ([`RunOutline::of_level`]).
    pub fn run_id(&self) -> &str {
        self.run.split('/').next().unwrap_or_default()
    }

    /// Returns `true` if this outline is of one isolation level in a run with several
    /// ([`RunOutline::of_level`]).
    pub fn is_of_level(&self) -> bool {
        self.run.contains('/')
    }

    /// Returns the distribution of one of the run's measured durations; empty if the outline lacks
    /// it.
    pub fn measure(&self, measure: Measure) -> Distribution {
        self.measures.get(measure.name()).copied().unwrap_or_default()
    }

    /// Returns the share of the run's orders (0 to 1) that [`Measure::StallFree`] excludes, if
    /// known.
    pub fn excluded_share(&self) -> Option<f64> {
        let (all, free) =
            (self.measure(Measure::RtVenue).count, self.measures.get(Measure::StallFree.name())?.count);
        (all > 0).then(|| 1.0 - free.min(all) as f64 / all as f64)
    }

    /// Returns the orchestrator's extra work per order (set for the run), in nanoseconds: as
    /// measured, or as requested if the measured value is unknown.
    pub fn work(&self) -> f64 {
        self.work_done_ns.unwrap_or(self.work_ns as f64)
    }

    /// Returns `true` if the run is complete and valid, so that it counts in comparisons.
    pub const fn is_usable(&self) -> bool {
        self.complete && self.valid
    }

    /// Returns the run's CPU seconds for a million returned orders; `None` if no order returned.
    pub fn cpu_s_per_million(&self) -> Option<f64> {
        (self.returned > 0).then(|| self.cpu_ns as f64 / 1e9 / (self.returned as f64 / 1e6))
    }

    /// Returns `true` if the run achieved at least 99 % of its offered order rate, or if a rate is
    /// unknown, as without a schedule.
    pub fn has_kept_up(&self) -> bool {
        match (self.offered_per_s, self.achieved_per_s) {
            (Some(offered), Some(achieved)) => achieved >= offered * 0.99,
            _ => true,
        }
    }
}

/// A latency percentile that is compared: p50, p99 or p99.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Percentile {
    /// The median.
    #[serde(rename = "p50")]
    P50,
    /// The 99th percentile: one in a hundred orders is slower.
    #[serde(rename = "p99")]
    P99,
    /// The 99.9th percentile: one in a thousand orders is slower.
    #[serde(rename = "p99.9")]
    P999,
}

impl Percentile {
    /// All latency percentiles that are compared: p50, p99 and p99.9.
    pub const ALL: [Percentile; 3] = [Percentile::P50, Percentile::P99, Percentile::P999];

    /// Returns the percentile's name, such as `p99`.
    pub const fn name(self) -> &'static str {
        ["p50", "p99", "p99.9"][self as usize]
    }

    /// Returns the value of this percentile in a distribution, in nanoseconds, if it has enough
    /// samples.
    pub const fn get(self, figures: &Distribution) -> Option<u64> {
        match self {
            Percentile::P50 => figures.p50_ns,
            Percentile::P99 => figures.p99_ns,
            Percentile::P999 => figures.p999_ns,
        }
    }
}

/// Returns one percentile of a measured duration for each run, in nanoseconds; `None` if any run
/// lacks it.
pub fn values(runs: &[&RunOutline], measure: Measure, percentile: Percentile) -> Option<Vec<f64>> {
    runs.iter().map(|run| percentile.get(&run.measure(measure)).map(|ns| ns as f64)).collect()
}

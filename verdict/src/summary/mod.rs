//! `summary.json`: the results of a run for people and programs, and whether they may be quoted.

mod around_fault;
mod containment;
mod in_flight;
mod incident_windows;
mod levels;
mod lives;
mod role_restarts;
mod strategies;
mod strategy_costs;
mod threads;
mod trading;
mod unfired_faults;
mod unsent_orders;
mod venues;
mod verdict;
mod warm_up;
mod working_set;

pub use around_fault::AroundFault;
pub use containment::{Containment, IncidentSummary, Survivors, worst};
pub use in_flight::InFlight;
pub use levels::LevelSummary;
pub use lives::LifeSummary;
pub use merge::crossover::{CrossoverSummary, LevelDifference};
pub use merge::figures::{Distribution, Figures, Measure, to_ns};
pub use merge::leave_one_out::{LeaveOneOut, PooledPercentiles, format_leave_one_out};
pub use merge::percentile_breakdown::{PercentileBreakdown, StageMean};
pub use record::run::ns_per_tick;
pub use role_restarts::RoleRestartSummary;
pub use strategies::StrategySummary;
pub use strategy_costs::StrategyCosts;
pub use threads::{AgentSummary, ThreadSummary};
pub use trading::{KillSummary, PositionSummary, RejectionCount, TradingSummary};
pub use unfired_faults::CUT_SHORT;
pub use venues::VenueIncident;
pub use warm_up::WarmUp;
pub use working_set::WorkingSetSummary;

use merge::{MergedRun, OrderCounts, Violation};
use protocol::flow::{ExchangeStage, Stage};
use protocol::labels::{OrchestratorCounter, TICKS, TICKS_MISSED};
use protocol::plan::{ClockSource, Idle, IsolationLevels, Pacing, Plan, Role, Stamps, Technique, Threading};
use record::document::Document;
use record::fitness;
use record::machine::Machine;
use record::run::{Build, CoreToCoreRtt, InputRecord, Outage, RunOutcome, RunRecord};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Index;

/// The results of a run, as saved in `summary.json`. Field names are the keys of `summary.json`;
/// missing values are null there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Run id.
    pub run: String,
    /// Version of bulkhead.
    pub version: String,
    /// The build of bulkhead that evaluated the run.
    #[serde(default)]
    pub build: Build,
    /// Start of the run, UTC.
    pub started: String,
    /// Outcome of the run.
    pub outcome: RunOutcome,
    /// Whether every order is accounted for and every check held.
    pub valid: bool,
    /// Whether the latencies may be quoted; if not, `reasons` lists why.
    pub fit_for_latency: bool,
    /// Reasons not to quote the latencies, each with what to do next. One line each.
    pub reasons: Vec<String>,
    /// Notes on checks that were impossible and on excluded data. One line each.
    pub notes: Vec<String>,
    /// Faults of the plan that were never injected or were cut short, and why. One line each.
    #[serde(rename = "unstruck", default)]
    pub unfired_faults: Vec<String>,
    /// Technique of the submit and completion hand-offs.
    pub technique: Technique,
    /// Isolation between strategies and engine.
    pub isolation: IsolationLevels,
    /// Threading of the engine's agents.
    pub threading: Threading,
    /// Idle strategy of the orchestrator's thread; those of all threads are in `plan`.
    pub idle: Idle,
    /// Pacing of the orders.
    pub pacing: Pacing,
    /// Counts of orders by outcome.
    pub orders: OrderCounts,
    /// Rates in orders per second.
    pub rate: Rate,
    /// Stages of the round trip.
    pub stages: Stages,
    /// Stages of the time at exchanges; null if no order was at one.
    #[serde(default)]
    pub exchange: Option<ExchangeStages>,
    /// Market data and the orders that it triggered; null if none was written.
    #[serde(default)]
    pub market: Option<MarketStages>,
    /// Round trip t8 − t1.
    pub round_trip: Distribution,
    /// Round trip without venue service: the time that the engine adds, apart from
    /// `gateway_lateness`, which lies between t4 and t5.
    pub rt_venue: Distribution,
    /// rt_venue of the orders that no stall of the machine affected; null if unknown.
    #[serde(default)]
    pub stall_free: Option<StallFree>,
    /// Time t8 − due without venue service; empty under closed pacing.
    pub rt_venue_from_due: Distribution,
    /// `rt_venue_from_due` of the orders that no steal of the host affected; null if it is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_steal: Option<Distribution>,
    /// Orders of the warm-up, which are in no distribution; null without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Time t1 − due by which orders were sent late; empty under closed pacing.
    #[serde(rename = "slip")]
    pub send_lag: Distribution,
    /// Time t5 − release by which gateways were late: part of venue service, and so not of
    /// `rt_venue`.
    pub gateway_lateness: Distribution,
    /// Threads of the run, in the order of the plan.
    pub processes: Vec<ThreadSummary>,
    /// Share of its time that the orchestrator's thread spent in duty cycles with work, 0 to 1.
    #[serde(rename = "orchestrator_utilisation")]
    pub orchestrator_utilization: Option<f64>,
    /// Mean number of orders in flight, by samples and by Little's law.
    pub in_flight: InFlight,
    /// Deaths of strategies during the run, in the order of their detection.
    #[serde(default)]
    pub incidents: Vec<IncidentSummary>,
    /// Incarnations of strategies that had more than one, or that an operator added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lives: Vec<LifeSummary>,
    /// Effect of all strategy deaths on the other strategies; null without deaths.
    #[serde(default)]
    pub containment: Option<Containment>,
    /// Latency of the strategies without a fault, before and after the first fault of another; null
    /// without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around_fault: Option<AroundFault>,
    /// Restarts of engine roles from their journals, in the order of their detection.
    #[serde(rename = "comebacks", default)]
    pub role_restarts: Vec<RoleRestartSummary>,
    /// Deaths of gateway processes during the run, in the order of their detection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Venue faults, in the order of the plan.
    #[serde(default)]
    pub venue_incidents: Vec<VenueIncident>,
    /// Positions, profit and loss, refused orders and kill switches; null without any.
    #[serde(default)]
    pub trading: Option<TradingSummary>,
    /// Figures of each strategy; empty if all are of one built-in kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<StrategySummary>,
    /// Latencies of each isolation level; empty if all strategies have the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelSummary>,
    /// Comparison of levels with threads, in a run in which they took turns; null in others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossover: Option<CrossoverSummary>,
    /// Pooled percentiles without the orders of each strategy; empty if only one has orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_one_out: Vec<LeaveOneOut>,
    /// Extra work of the orchestrator.
    pub work: WorkSummary,
    /// The run's clock and its calibration.
    pub clock: ClockSummary,
    /// Core-to-core round trip between two of the run's cores, before and after the run.
    #[serde(rename = "floor")]
    pub core_to_core_rtt: CoreToCoreRtt,
    /// Time from the first spawn of a process to the start of trading, in nanoseconds.
    pub startup_ns: u64,
    /// Proportional set size (PSS) of all processes together, in bytes, when half of the orders
    /// were sent; null if not sampled.
    #[serde(default)]
    pub pss_bytes: Option<u64>,
    /// Source of the orders: a drawn schedule or a recorded flow.
    pub input: InputRecord,
    /// Machine that the run used.
    pub machine: Machine,
    /// Plan of the run, from which every process derives its part.
    pub plan: Plan,
    /// Stage breakdown of the orders around the median and p99; empty with too few orders or
    /// stamps.
    #[serde(rename = "around", default, skip_serializing_if = "Vec::is_empty")]
    pub percentile_breakdowns: Vec<PercentileBreakdown>,
    /// Violations by kind.
    pub violations: Vec<Violation>,
    /// Walks of strategies over their working sets; null without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_set: Option<WorkingSetSummary>,
    /// Costs of strategies besides latency, by isolation level; empty in older summaries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<StrategyCosts>,
    /// Why misses of caches were not counted; null if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses_absent: Option<String>,
    /// Number of interrupts on each of the run's cores, as far as the kernel counts them; empty in
    /// older summaries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<CoreInterrupts>,
    /// Share of one core that the launcher took while orders were sent; null if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher_share: Option<f64>,
}

/// The number of interrupts on one CPU core during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreInterrupts {
    /// Number of the core.
    pub core: u32,
    /// Number of interrupts on the core.
    pub count: u64,
}

impl Document for Summary {
    const FILE: &'static str = record::run::SUMMARY_FILE;
    const NAME: &'static str = "bulkhead.summary";
    const VERSION: u32 = 3;

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }
}

/// A run's rates of planned, sent and returned orders per second; null with fewer than two orders.
/// Orders of quarantined strategies are excluded; those of dead ones are included as far as they
/// were sent and returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Offered rate of the schedule; null under closed pacing.
    pub offered_per_s: Option<f64>,
    /// Rate of orders sent between the first and the last t1.
    pub achieved_per_s: Option<f64>,
    /// Rate of reports received between the first and the last t8.
    pub completed_per_s: Option<f64>,
}

/// The distributions of the round trip's stages, by name; order by order, the stages sum to the
/// round trip.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages([Distribution; Stage::ALL.len()]);

impl Index<Stage> for Stages {
    type Output = Distribution;

    fn index(&self, stage: Stage) -> &Distribution {
        &self.0[stage as usize]
    }
}

impl Serialize for Stages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Stage::ALL.iter().map(|stage| (stage.name(), &self[*stage])))
    }
}

impl<'de> Deserialize<'de> for Stages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut by_name = BTreeMap::<String, Distribution>::deserialize(deserializer)?;
        let mut stages = Self::default();
        for stage in Stage::ALL {
            let missing = || D::Error::missing_field(stage.name());
            stages.0[stage as usize] = by_name.remove(stage.name()).ok_or_else(missing)?;
        }
        Ok(stages)
    }
}

/// Distributions of the time, in nanoseconds, that orders spend in each stage within an exchange:
/// session out, match, session back. They sum to venue_service, order by
/// order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangeStages {
    /// Time from the gateway through the session to the exchange.
    pub session_out: Distribution,
    /// Time in the matching engine, from the order's arrival until its first report.
    #[serde(rename = "match")]
    pub matching: Distribution,
    /// Time from the exchange through the session back to the gateway.
    pub session_back: Distribution,
}

/// Latencies from the exchange's write of a top of book to the orders that it triggered. By the
/// exchange's log. Complete orders only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MarketStages {
    /// Number of top-of-book versions that exchanges wrote.
    pub versions_written: u64,
    /// Number of versions that strategies read, all together.
    pub versions_heard: u64,
    /// Number of versions that were overwritten before a listening strategy read them.
    pub versions_missed: u64,
    /// Time from the write until the strategy was about to push the order (t1).
    pub tick_to_trade: Distribution,
    /// Time from the write until the exchange received the order.
    pub tick_to_exchange: Distribution,
}

/// The latency rt_venue (round trip without the venue's time) of the orders that no stall of the
/// machine affected. [`merge::tail`] has the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StallFree {
    /// Share of excluded orders, which a gap or the backlog after one affected, 0 to 1.
    #[serde(rename = "taken_out")]
    pub excluded_share: f64,
    /// rt_venue of the orders that are not excluded.
    pub rt_venue: Distribution,
}

/// The artificial work (`--work`) that the orchestrator did for each order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkSummary {
    /// Requested extra work, in nanoseconds per order.
    pub requested_ns: u64,
    /// Measured extra work, in nanoseconds per order.
    pub achieved_ns: f64,
}

/// The run's clock (the CPU's time stamp counter) and its calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockSummary {
    /// Source of the ticks.
    pub source: ClockSource,
    /// Cost of one clock read, in nanoseconds.
    pub read_ns: f64,
    /// Resolution of the clock, in nanoseconds; 0 if not measured. No interval is known more
    /// precisely.
    #[serde(default)]
    pub step_ns: f64,
    /// Approximate cost of the clock reads in rt_venue, in nanoseconds per order; a read with a
    /// cold cache may cost more.
    #[serde(default)]
    pub stamps_ns: f64,
    /// Nanoseconds per tick, over the whole run.
    pub ns_per_tick: f64,
    /// Relative difference between the calibration before the run and that over the run, in parts
    /// per million.
    pub drift_ppm: f64,
}

/// Returns the number of clock reads within rt_venue: one between each two stamps, on the way out
/// and on the way back.
const fn clock_reads_in_rt_venue(stamps: Stamps) -> u32 {
    match stamps {
        Stamps::All => 6,
        Stamps::Ends => 2,
    }
}

/// Summarizes a run whose threads' logs were merged, and judges whether it is valid and its
/// latencies may be quoted.
pub fn summarize(record: &RunRecord, merged: &MergedRun, figures: &Figures) -> Summary {
    let (plan, ns_per_tick) = (&record.plan, ns_per_tick(record));
    let distribution_of = |measure| figures.distribution(measure);
    let orchestrator = plan.thread_of(Role::Orchestrator);
    let processes = threads::summarize(plan, merged, ns_per_tick);
    let engine = orchestrator.and_then(|thread| processes.get(thread));
    let worked = orchestrator.and_then(|thread| {
        let counters = &merged.threads.get(thread)?.counters;
        let engine = counters.agent_counters(&plan.threads[thread].roles, Role::Orchestrator);
        Some(engine.get(OrchestratorCounter::Work))
    });
    let (incidents, containment) = containment::summarize(record, merged, ns_per_tick);
    let unstruck = unfired_faults::unfired_faults(record, merged, ns_per_tick);
    let leave_one_out =
        merge::leave_one_out::leave_one_out(plan.trading().strategies, merged, figures, ns_per_tick);
    let dependence = merge::leave_one_out::notes(&leave_one_out, figures);
    let warm_up = WarmUp::from_figures(figures);
    let warm_up_note = warm_up.map(|found| found.note(&distribution_of(Measure::RtVenueFromDue)));
    let costs = strategy_costs::summarize(record, &processes, &incidents);
    let mut summary = Summary {
        run: plan.run.clone(),
        version: record.version.clone(),
        build: record.build.clone(),
        started: record.started.clone(),
        outcome: record.outcome.clone(),
        // Orders lost with a process outside of any incident leave figures of a random selection.
        valid: merged.violations.is_empty() && merged.lost_of_survivors == 0,
        fit_for_latency: false,
        reasons: Vec::new(),
        notes: merged
            .notes
            .iter()
            .chain(&dependence)
            .chain(&warm_up_note)
            .cloned()
            .chain(fitness::shared_cores_note(plan))
            .chain(unsent_orders::of_spares(record, merged))
            .chain(plan.trading().resource_lines().iter().map(|line| format!("limits of {line}")))
            .collect(),
        unfired_faults: unstruck,
        technique: plan.technique,
        isolation: plan.isolation,
        threading: plan.threading,
        idle: orchestrator
            .and_then(|thread| plan.threads.get(thread))
            .map_or(Idle::Spin, |thread| thread.idle),
        pacing: plan.trading().overall_pacing(),
        orders: merged.orders,
        rate: rate(record, merged, ns_per_tick),
        stages: Stages(Stage::ALL.map(|stage| distribution_of(Measure::Stage(stage)))),
        exchange: exchange(figures),
        market: market(plan, figures, merged),
        round_trip: distribution_of(Measure::RoundTrip),
        rt_venue: distribution_of(Measure::RtVenue),
        stall_free: stall_free(figures),
        rt_venue_from_due: distribution_of(Measure::RtVenueFromDue),
        warm_up,
        without_steal: figures.has_without_steal().then(|| distribution_of(Measure::WithoutSteal)),
        send_lag: distribution_of(Measure::SendLag),
        gateway_lateness: distribution_of(Measure::GatewayLateness),
        orchestrator_utilization: engine.and_then(|thread| thread.utilization),
        in_flight: in_flight::in_flight(record, merged),
        incidents,
        lives: lives::summarize(record, merged, ns_per_tick),
        containment,
        around_fault: around_fault::measure(record, merged, ns_per_tick),
        role_restarts: role_restarts::summarize(record, merged, ns_per_tick),
        outages: role_restarts::outages(record, merged, ns_per_tick),
        venue_incidents: venues::summarize(record, merged, ns_per_tick),
        trading: trading::summarize(record, merged, ns_per_tick),
        strategies: strategies::summarize(record, merged, &processes, ns_per_tick),
        levels: levels::summarize(figures, plan),
        crossover: merge::crossover::summarize(merged, plan.isolation),
        leave_one_out,
        work: WorkSummary {
            requested_ns: plan.trading().work_ns,
            achieved_ns: worked.unwrap_or(0) as f64 / 1000.0,
        },
        clock: ClockSummary {
            source: plan.clock,
            read_ns: record.clock.read_ns,
            step_ns: record.clock.step_ns,
            stamps_ns: f64::from(clock_reads_in_rt_venue(plan.stamps)) * record.clock.read_ns,
            ns_per_tick,
            drift_ppm: record.clock.drift_ppm,
        },
        core_to_core_rtt: record.core_to_core_rtt,
        startup_ns: record.startup_ns,
        pss_bytes: record.pss_bytes,
        input: record.input.clone(),
        machine: record.machine.clone(),
        plan: plan.clone(),
        percentile_breakdowns: merge::percentile_breakdown::summarize(merged, figures, ns_per_tick),
        violations: merged.violations.clone(),
        working_set: working_set::summarize(plan, &processes, ns_per_tick),
        costs,
        misses_absent: record.misses.absent.clone(),
        interrupts: interrupts(record),
        launcher_share: record.kernel.as_ref().and_then(|kernel| kernel.launcher?.share()),
        processes,
    };
    summary.reasons = verdict::reasons(&summary, &record.warnings);
    // First: orders that no figure includes.
    summary.reasons.splice(0..0, unsent_orders::unsent_orders(record, merged));
    summary.fit_for_latency = summary.reasons.is_empty();
    summary
}

fn interrupts(record: &RunRecord) -> Vec<CoreInterrupts> {
    let cores = record.kernel.iter().flat_map(|kernel| &kernel.cores);
    cores.filter_map(|core| Some(CoreInterrupts { core: core.core, count: core.interrupts? })).collect()
}

fn stall_free(figures: &Figures) -> Option<StallFree> {
    let [all, rt_venue] = [Measure::RtVenue, Measure::StallFree].map(|measure| figures.distribution(measure));
    let excluded_share = 1.0 - rt_venue.count as f64 / all.count.max(1) as f64;
    figures.has_stall_free().then_some(StallFree { excluded_share, rt_venue })
}

fn exchange(figures: &Figures) -> Option<ExchangeStages> {
    let distribution_of = |stage| figures.distribution(Measure::Exchange(stage));
    let [session_out, matching, session_back] = ExchangeStage::ALL.map(distribution_of);
    let exchange_stages = ExchangeStages { session_out, matching, session_back };
    (exchange_stages.matching.count > 0).then_some(exchange_stages)
}

fn market(plan: &Plan, figures: &Figures, merged: &MergedRun) -> Option<MarketStages> {
    let counted = |name: &str| {
        let logs = merged.threads.iter().zip(&plan.threads);
        logs.fold(0, |sum: u64, (log, thread)| sum.saturating_add(log.counters.total(&thread.roles, name)))
    };
    let stages = MarketStages {
        versions_written: merged.touches_written,
        versions_heard: counted(TICKS),
        versions_missed: counted(TICKS_MISSED),
        tick_to_trade: figures.distribution(Measure::TickToTrade),
        tick_to_exchange: figures.distribution(Measure::TickToExchange),
    };
    (stages.versions_written > 0).then_some(stages)
}

impl Summary {
    /// Returns the text of the verdict: whether the run is valid and its latencies may be quoted.
    pub const fn verdict(&self) -> &'static str {
        match (self.valid, self.fit_for_latency) {
            (false, _) => "invalid run, not fit for latency claims",
            (true, false) => fitness::UNFIT,
            (true, true) => fitness::FIT,
        }
    }

    /// Returns the measured durations of the run in report order. Stages come after the duration
    /// that they are part of, market data last.
    pub fn measures(&self) -> impl Iterator<Item = Measure> + use<> {
        let (has_exchange, is_explained) = (self.exchange.is_some(), self.stall_free.is_some());
        let knows_steal = self.without_steal.is_some_and(|found| found.count > 0);
        let triggered = self.market.as_ref().is_some_and(|market| market.tick_to_trade.count > 0);
        let market = Measure::MARKET.into_iter().filter(move |_| triggered);
        Measure::ALL
            .into_iter()
            .flat_map(move |measure| {
                let exchange_stages = Measure::EXCHANGE
                    .into_iter()
                    .filter(move |_| has_exchange && measure == Measure::Stage(Stage::VenueService));
                let free = (is_explained && measure == Measure::RtVenue).then_some(Measure::StallFree);
                let stolen =
                    (knows_steal && measure == Measure::RtVenueFromDue).then_some(Measure::WithoutSteal);
                core::iter::once(measure).chain(exchange_stages).chain(free).chain(stolen)
            })
            .chain(market)
    }

    /// Returns the distribution of a measured duration of the run; without samples for one that the
    /// run lacks.
    pub fn distribution(&self, measure: Measure) -> Distribution {
        let market = self.market.as_ref();
        let known = match measure {
            Measure::Stage(stage) => Some(self.stages[stage]),
            Measure::RoundTrip => Some(self.round_trip),
            Measure::RtVenue => Some(self.rt_venue),
            Measure::RtVenueFromDue => Some(self.rt_venue_from_due),
            Measure::SendLag => Some(self.send_lag),
            Measure::GatewayLateness => Some(self.gateway_lateness),
            Measure::Exchange(part) => {
                let exchange_stages = self.exchange.as_ref();
                exchange_stages.map(|distribution_of| {
                    [distribution_of.session_out, distribution_of.matching, distribution_of.session_back]
                        [part as usize]
                })
            }
            Measure::TickToTrade => market.map(|market| market.tick_to_trade),
            Measure::TickToExchange => market.map(|market| market.tick_to_exchange),
            Measure::StallFree => self.stall_free.as_ref().map(|free| free.rt_venue),
            Measure::WithoutSteal => self.without_steal,
        };
        known.unwrap_or_default()
    }
}

/// Computes rates between the first and the last event: n events span n − 1 intervals.
fn rate(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Rate {
    let per_s = |events: u64, first: u64, last: u64| {
        let seconds = last.checked_sub(first).filter(|ticks| *ticks > 0)? as f64 * ns_per_tick / 1e9;
        Some(events.checked_sub(1).filter(|intervals| *intervals > 0)? as f64 / seconds)
    };
    let span = &merged.span;
    Rate {
        offered_per_s: record.input.offered_per_s,
        achieved_per_s: per_s(span.sent, span.first_sent, span.last_sent),
        completed_per_s: per_s(span.received, span.first_received, span.last_received),
    }
}

//! `summary.json`: what a run says about itself, for people and programs, and whether it may be
//! quoted.

mod around;
mod comebacks;
mod containment;
pub mod figures;
mod in_flight;
mod leave_one_out;
mod stall_free;
mod strategies;
mod threads;
mod touched;
mod trading;
mod unsent;
mod unstruck;
mod venues;
mod verdict;

pub use around::{Around, AroundStage};
pub use comebacks::ComebackSummary;
pub use containment::{Containment, IncidentSummary, Survivors, worst};
pub use figures::{Distribution, Figures, Measure, to_ns};
pub use in_flight::InFlight;
pub use leave_one_out::{LeaveOneOut, PooledPercentiles, leave_one_out_words};
pub use stall_free::StallFree;
pub use strategies::{StrategySummary, StrategyTail};
pub use threads::ThreadSummary;
pub use trading::{KillSummary, PositionSummary, Rejection, Trading};
pub use venues::VenueIncident;

use crate::document::Document;
use crate::fitness;
use crate::machine::Machine;
use crate::merge::{Merged, Orders, Violation};
use crate::record::{Floor, InputRecord, Outage, RunOutcome, RunRecord};
use protocol::flow::{ExchangeStage, Stage};
use protocol::labels::{OrchestratorCounter, TICKS, TICKS_MISSED};
use protocol::plan::{ClockSource, Idle, Isolation, Pacing, Plan, Role, Stamps, Technique, Threading};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Index;

/// A run in figures. Field names are the keys of `summary.json`; what has no value is null there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The run's id.
    pub run: String,
    /// bulkhead's version.
    pub version: String,
    /// When the run began, UTC.
    pub started: String,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Whether every order is accounted for and every check held.
    pub valid: bool,
    /// Whether the latencies may be quoted; if not, `reasons` says why.
    pub fit_for_latency: bool,
    /// Why the latencies should not be quoted: what is wrong, and what to do next. One line each.
    pub reasons: Vec<String>,
    /// What could not be checked or was left out. One line each.
    pub notes: Vec<String>,
    /// Faults of the plan that cannot have struck, and why. One line each.
    #[serde(default)]
    pub unstruck: Vec<String>,
    /// What carried submit and completion.
    pub technique: Technique,
    /// What stood between strategies and engine.
    pub isolation: Isolation,
    /// How the engine's agents shared threads.
    pub threading: Threading,
    /// What the orchestrator's thread did when there was nothing to do; every thread's is in
    /// `plan`.
    pub idle: Idle,
    /// How the strategies paced their orders.
    pub pacing: Pacing,
    /// Where orders went.
    pub orders: Orders,
    /// Orders a second.
    pub rate: Rate,
    /// The stages of the round trip.
    pub stages: Stages,
    /// The parts of the time at venues that are exchanges; null where no order was at one.
    #[serde(default)]
    pub exchange: Option<ExchangeStages>,
    /// Market data, and the orders that it triggered; null where nothing was written.
    #[serde(default)]
    pub market: Option<MarketStages>,
    /// t8 − t1.
    pub round_trip: Distribution,
    /// Round trip less venue service: what the engine adds.
    pub rt_venue: Distribution,
    /// rt_venue of the orders that no stall of the machine touched; null where that is not known.
    #[serde(default)]
    pub stall_free: Option<StallFree>,
    /// t8 − due less venue service; empty under closed pacing.
    pub rt_venue_from_due: Distribution,
    /// t1 − due; empty under closed pacing.
    pub slip: Distribution,
    /// t5 − release.
    pub gateway_lateness: Distribution,
    /// Every thread of the run, in the order of the plan.
    pub processes: Vec<ThreadSummary>,
    /// The share of its time that the orchestrator's thread was in duty cycles that found work, 0
    /// to 1.
    pub orchestrator_utilisation: Option<f64>,
    /// Orders open at a time.
    pub in_flight: InFlight,
    /// The strategies that died while the run went on, in the order of their detection.
    #[serde(default)]
    pub incidents: Vec<IncidentSummary>,
    /// What that did to the others; null where nobody died.
    #[serde(default)]
    pub containment: Option<Containment>,
    /// The roles of the engine that died and came back from their journals, in the order of their
    /// detection.
    #[serde(default)]
    pub comebacks: Vec<ComebackSummary>,
    /// The processes of gateways that died while the run went on, in the order of their detection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// The times in which venues had faults, in the order of the plan.
    #[serde(default)]
    pub venue_incidents: Vec<VenueIncident>,
    /// Positions, profit and loss, refused orders, kill switches; null where there is nothing to
    /// say.
    #[serde(default)]
    pub trading: Option<Trading>,
    /// Each strategy by itself; empty where all are of one kind and none is a program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<StrategySummary>,
    /// The pooled figures without the orders of each strategy; empty where only one has orders in
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_one_out: Vec<LeaveOneOut>,
    /// The orchestrator's extra work.
    pub work: WorkSummary,
    /// How time was measured.
    pub clock: ClockSummary,
    /// A cache line bounced between two of the run's cores, before and after.
    pub floor: Floor,
    /// From the first spawn to the start, in nanoseconds.
    pub startup_ns: u64,
    /// Proportional memory (PSS) of the run's processes together, in bytes, when half of the orders
    /// were sent; null where it was not sampled.
    #[serde(default)]
    pub pss_bytes: Option<u64>,
    /// What the strategies played.
    pub input: InputRecord,
    /// Where it ran.
    pub machine: Machine,
    /// What every process derived itself from.
    pub plan: Plan,
    /// The orders around the median and around p99, stage by stage; empty: too few, or not stamped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<Around>,
    /// What must not have happened, by kind.
    pub violations: Vec<Violation>,
}

impl Document for Summary {
    const FILE: &'static str = "summary.json";
    const NAME: &'static str = "bulkhead.summary";
    const VERSION: u32 = 3;
    const ABSENT: &'static str = "not the folder of a run, or its logs were never merged";
    const REMEDY: &'static str = "launcher report FOLDER makes it again from the logs";
}

/// Orders a second; null where fewer than two orders span no time. Orders of a strategy that was
/// quarantined are not among them; those of one that died are, as far as they were sent and came
/// back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// In the schedule; null under closed pacing.
    pub offered_per_s: Option<f64>,
    /// Orders sent between the first and the last t1.
    pub achieved_per_s: Option<f64>,
    /// Reports received between the first and the last t8.
    pub completed_per_s: Option<f64>,
}

/// The stages of the round trip, each under its name; they sum to it, order by order.
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

/// The parts of venue_service of the orders that were at an exchange, each under its name; they sum
/// to it, order by order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangeStages {
    /// Through the session to the exchange.
    pub session_out: Distribution,
    /// In the matching engine, up to the order's first report.
    #[serde(rename = "match")]
    pub matching: Distribution,
    /// Through the session back.
    pub session_back: Distribution,
}

impl Index<ExchangeStage> for ExchangeStages {
    type Output = Distribution;

    fn index(&self, stage: ExchangeStage) -> &Distribution {
        match stage {
            ExchangeStage::SessionOut => &self.session_out,
            ExchangeStage::Match => &self.matching,
            ExchangeStage::SessionBack => &self.session_back,
        }
    }
}

/// From the exchange's write of a touch to the orders that say that it triggered them, as the
/// exchange's own log has the write. Only orders that came back whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MarketStages {
    /// Versions of touches that exchanges wrote.
    pub versions_written: u64,
    /// Versions that strategies heard, all together.
    pub versions_heard: u64,
    /// Versions that were written over before the strategies that listen looked.
    pub versions_missed: u64,
    /// Until the strategy was about to push the order (t1).
    pub tick_to_trade: Distribution,
    /// Until the exchange had taken the order.
    pub tick_to_exchange: Distribution,
}

/// The orchestrator's extra work for each order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkSummary {
    /// What the user asked for, in nanoseconds an order.
    pub requested_ns: u64,
    /// What it took in the run, in nanoseconds an order.
    pub achieved_ns: f64,
}

/// How time was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockSummary {
    /// Where ticks come from.
    pub source: ClockSource,
    /// What one read costs, in nanoseconds.
    pub read_ns: f64,
    /// The step in which it counts, in nanoseconds; 0: not measured. No interval is known finer
    /// than this.
    #[serde(default)]
    pub step_ns: f64,
    /// What the looks at the clock in rt_venue take, in nanoseconds an order: about, since a cold
    /// one may cost more.
    #[serde(default)]
    pub stamps_ns: f64,
    /// Nanoseconds a tick, over the whole run.
    pub ns_per_tick: f64,
    /// By how much the calibration before the run differs, in parts per million.
    pub drift_ppm: f64,
}

/// How many looks at the clock rt_venue holds: between two stamps there is one, on the way out and
/// on the way home.
const fn looks_in_rt_venue(stamps: Stamps) -> u32 {
    match stamps {
        Stamps::All => 6,
        Stamps::Ends => 2,
    }
}

/// Nanoseconds a tick of a run: by the whole run, or where a damaged record has none that makes
/// sense, by the plan's calibration.
pub fn ns_per_tick(record: &RunRecord) -> f64 {
    let whole = record.clock.ns_per_tick;
    if whole.is_finite() && whole > 0.0 { whole } else { record.plan.ns_per_tick }
}

/// Puts a merged run into figures and judges it.
pub fn summarise(record: &RunRecord, merged: &Merged, figures: &Figures) -> Summary {
    let (plan, ns_per_tick) = (&record.plan, ns_per_tick(record));
    let of = |measure| figures.distribution(measure);
    let orchestrator = plan.thread_of(Role::Orchestrator);
    let processes = threads::summarise(plan, merged, ns_per_tick);
    let engine = orchestrator.and_then(|thread| processes.get(thread));
    let counted = orchestrator.and_then(|thread| {
        Some(merged.threads.get(thread)?.counters.of(&plan.threads[thread].roles, Role::Orchestrator))
    });
    let (incidents, containment) = containment::summarise(record, merged, ns_per_tick);
    let unstruck = unstruck::faults(record, merged, ns_per_tick);
    let leave_one_out = leave_one_out::leave_one_out(plan.trading().strategies, merged, figures, ns_per_tick);
    let dependence = leave_one_out::notes(&leave_one_out, figures);
    let mut summary = Summary {
        run: plan.run.clone(),
        version: record.version.clone(),
        started: record.started.clone(),
        outcome: record.outcome.clone(),
        // What was lost with a process that no incident accounts for leaves figures of what
        // happened to come back.
        valid: merged.violations.is_empty() && merged.lost_of_survivors == 0,
        fit_for_latency: false,
        reasons: Vec::new(),
        notes: merged.notes.iter().chain(&unstruck).chain(&dependence).cloned().collect(),
        unstruck,
        technique: plan.technique,
        isolation: plan.isolation,
        threading: plan.threading,
        idle: orchestrator
            .and_then(|thread| plan.threads.get(thread))
            .map_or(Idle::Spin, |thread| thread.idle),
        pacing: plan.trading().overall_pacing(),
        orders: merged.orders,
        rate: rate(record, merged, ns_per_tick),
        stages: Stages(Stage::ALL.map(|stage| of(Measure::Stage(stage)))),
        exchange: exchange(figures),
        market: market(plan, figures, merged),
        round_trip: of(Measure::RoundTrip),
        rt_venue: of(Measure::RtVenue),
        stall_free: StallFree::of(figures),
        rt_venue_from_due: of(Measure::RtVenueFromDue),
        slip: of(Measure::Slip),
        gateway_lateness: of(Measure::GatewayLateness),
        orchestrator_utilisation: engine.and_then(|thread| thread.utilisation),
        in_flight: in_flight::in_flight(record, merged),
        incidents,
        containment,
        comebacks: comebacks::summarise(record, merged, ns_per_tick),
        outages: comebacks::outages(record, merged, ns_per_tick),
        venue_incidents: venues::summarise(record, merged, ns_per_tick),
        trading: trading::summarise(record, merged, ns_per_tick),
        strategies: strategies::summarise(record, merged, &processes, ns_per_tick),
        leave_one_out,
        work: WorkSummary {
            requested_ns: plan.trading().work_ns,
            achieved_ns: counted.map_or(0.0, |engine| engine.get(OrchestratorCounter::Work) as f64 / 1000.0),
        },
        clock: ClockSummary {
            source: plan.clock,
            read_ns: record.clock.read_ns,
            step_ns: record.clock.step_ns,
            stamps_ns: f64::from(looks_in_rt_venue(plan.stamps)) * record.clock.read_ns,
            ns_per_tick,
            drift_ppm: record.clock.drift_ppm,
        },
        floor: record.floor,
        startup_ns: record.startup_ns,
        pss_bytes: record.pss_bytes,
        input: record.input.clone(),
        machine: record.machine.clone(),
        plan: plan.clone(),
        around: around::summarise(merged, figures, ns_per_tick),
        violations: merged.violations.clone(),
        processes,
    };
    summary.reasons = verdict::reasons(&summary, &record.warnings);
    // First of all: orders of which no figure knows.
    summary.reasons.splice(0..0, unsent::orders(record, merged));
    summary.fit_for_latency = summary.reasons.is_empty();
    summary
}

/// The parts of an exchange; none where no order was at one.
fn exchange(figures: &Figures) -> Option<ExchangeStages> {
    let of = |stage| figures.distribution(Measure::Exchange(stage));
    let parts = ExchangeStages {
        session_out: of(ExchangeStage::SessionOut),
        matching: of(ExchangeStage::Match),
        session_back: of(ExchangeStage::SessionBack),
    };
    (parts.matching.count > 0).then_some(parts)
}

/// From market data to orders; none where nothing was written.
fn market(plan: &Plan, figures: &Figures, merged: &Merged) -> Option<MarketStages> {
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
    /// Returns the verdict as the report, the page and `launcher list` word it.
    pub const fn verdict(&self) -> &'static str {
        match (self.valid, self.fit_for_latency) {
            (false, _) => "invalid run, not fit for latency claims",
            (true, false) => fitness::UNFIT,
            (true, true) => fitness::FIT,
        }
    }

    /// The measures that the run has, in the order of the reports: parts behind what they are part
    /// of, those of market data last.
    pub fn measures(&self) -> impl Iterator<Item = Measure> + use<> {
        let (has_exchange, is_explained) = (self.exchange.is_some(), self.stall_free.is_some());
        let triggered = self.market.as_ref().is_some_and(|market| market.tick_to_trade.count > 0);
        let market = Measure::MARKET.into_iter().filter(move |_| triggered);
        Measure::ALL
            .into_iter()
            .flat_map(move |measure| {
                let parts = Measure::EXCHANGE
                    .into_iter()
                    .filter(move |_| has_exchange && measure == Measure::Stage(Stage::VenueService));
                let free = (is_explained && measure == Measure::RtVenue).then_some(Measure::StallFree);
                core::iter::once(measure).chain(parts).chain(free)
            })
            .chain(market)
    }

    /// The distribution of a measure.
    pub fn distribution(&self, measure: Measure) -> &Distribution {
        match measure {
            Measure::Stage(stage) => &self.stages[stage],
            Measure::RoundTrip => &self.round_trip,
            Measure::RtVenue => &self.rt_venue,
            Measure::RtVenueFromDue => &self.rt_venue_from_due,
            Measure::Slip => &self.slip,
            Measure::GatewayLateness => &self.gateway_lateness,
            Measure::Exchange(part) => self.exchange.as_ref().map_or(&NOTHING, |parts| &parts[part]),
            Measure::TickToTrade => self.market.as_ref().map_or(&NOTHING, |market| &market.tick_to_trade),
            Measure::TickToExchange => {
                self.market.as_ref().map_or(&NOTHING, |market| &market.tick_to_exchange)
            }
            Measure::StallFree => self.stall_free.as_ref().map_or(&NOTHING, |free| &free.rt_venue),
        }
    }
}

/// A distribution without a sample.
static NOTHING: Distribution = Distribution {
    count: 0,
    min_ns: None,
    p50_ns: None,
    p90_ns: None,
    p99_ns: None,
    p999_ns: None,
    p9999_ns: None,
    max_ns: None,
    mean_ns: None,
};

/// Rates over the time between the first and the last of each: n events span n − 1 intervals.
fn rate(record: &RunRecord, merged: &Merged, ns_per_tick: f64) -> Rate {
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

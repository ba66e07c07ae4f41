//! The first screen of a run's report: the verdict with its first reason, the total time, where it
//! went, the orders, and what a strategy costs. The complete report is in [`super::terminal`].

use super::text_writer::{BAD, GOOD, STRONG, TextReport};
use super::units::{count, counted, duration, in_one_unit, percent, plain};
use super::{incidents, role_restarts};
use crate::summary::{Distribution, LevelSummary, Measure, PercentileBreakdown, StrategyCosts, Summary};
use protocol::flow::Stage;
use record::units::human_bytes;

/// Width of the first column of both tables.
const NAME_WIDTH: usize = 41;
/// Width of a column of durations.
const TIME_WIDTH: usize = 11;
/// Length of the bar of a stage that takes all of the time.
const BAR_WIDTH: usize = 24;
/// Width of the names of stages.
const STAGE_WIDTH: usize = 20;
/// Maximum number of rows of isolation levels; all are in the complete report.
const MAX_LEVELS: usize = 4;

/// Formats the first screen of a run's report for the terminal: verdict, latencies, stage times,
/// numbers of orders, incidents and strategies' costs. It has at most 24 lines of 80 columns for a
/// run without incidents, with the plan before it and the folder after it. With escape codes only
/// if `color`.
pub fn first_screen(summary: &Summary, color: bool) -> String {
    let mut page = TextReport::new(color);
    if let Some(found) = role_restarts::headline(&summary.role_restarts, summary.orders.lost) {
        page.item("", &found.text, Some(if found.is_whole { GOOD } else { BAD }));
    }
    verdict(&mut page, summary);
    page.blank();
    total_times(&mut page, summary);
    page.blank();
    if let Some(breakdown) = StageTimes::of_run(summary) {
        breakdown.write(&mut page);
        page.blank();
    }
    page.fields("orders", &orders(summary));
    if let Some(containment) = &summary.containment {
        page.fields("incidents", &incidents::totals(containment));
    }
    for costs in summary.costs.iter().take(MAX_LEVELS) {
        page.fields("strategy", &costs_of_level(costs));
    }
    page.text
}

/// Adds the verdict with its first reason, which has its remedy, and the number of the others.
fn verdict(page: &mut TextReport, summary: &Summary) {
    let (mark, style) = if summary.fit_for_latency { ("✔", GOOD) } else { ("✘", BAD) };
    let text = summary.verdict().to_uppercase();
    let Some((first, others)) = summary.reasons.split_first() else {
        return page.line(&format!("{mark} {text}"), Some(style));
    };
    let more = match others.len() {
        0 => String::new(),
        more => format!(" (and {})", counted(more as u64, "more reason")),
    };
    page.item(&format!("{mark} {text}: "), &format!("{first}{more}"), Some(style));
}

/// Adds the percentiles of the total time that the verdict says to read, of the orders without
/// stalls, and of each isolation level if there are several.
fn total_times(page: &mut TextReport, summary: &Summary) {
    let headline = summary.headline();
    let name = match headline {
        Measure::RtVenueFromDue => "rt_venue, from due",
        _ => "rt_venue, an order's round trip",
    };
    let heads = ["p50", "p99", "p99.9"].map(|head| format!("{head:>TIME_WIDTH$}")).concat();
    page.line(&format!("{:NAME_WIDTH$}{heads}", ""), None);
    page.line(&percentiles(name, &summary.distribution(headline)), Some(STRONG));
    if let Some(free) = summary.stall_free.as_ref().filter(|free| free.rt_venue.p50_ns.is_some()) {
        let share = percent(Some(1.0 - free.excluded_share));
        let from = if headline == Measure::RtVenueFromDue { "from send, " } else { "" };
        let name = format!("· stall-free, {from}{share} of the orders");
        page.line(&percentiles(&name, &free.rt_venue), None);
    }
    for level in summary.levels.iter().take(MAX_LEVELS) {
        let LevelSummary { level: isolation, strategies, .. } = level;
        let name = format!("· {isolation}, {}", counted((*strategies).into(), "strategy"));
        page.line(&percentiles(&name, &level.measure(headline)), None);
    }
}

/// Formats a name and its percentiles in one unit.
fn percentiles(name: &str, found: &Distribution) -> String {
    let cells = in_one_unit([found.p50_ns, found.p99_ns, found.p999_ns]);
    format!("{name:NAME_WIDTH$}{}", cells.map(|cell| format!("{cell:>TIME_WIDTH$}")).concat())
}

/// The times of the stages of rt_venue, in the order of an order's path.
struct StageTimes {
    heads: [&'static str; 2],
    stages: Vec<StageTime>,
}

/// The time of one stage: of a typical order, and of a slow one.
struct StageTime {
    name: String,
    typical_ns: u64,
    slow_ns: Option<u64>,
}

impl StageTimes {
    /// Returns the stage means of the orders around the median and p99, which add up. Without them,
    /// returns the percentiles of each stage; `None` without stamps of the stages.
    fn of_run(summary: &Summary) -> Option<Self> {
        let around = |name: &str| summary.percentile_breakdowns.iter().find(|of| of.percentile == name);
        let times = match around("p50") {
            Some(median) => Self::around_percentiles(median, around("p99")),
            None => Self::percentiles_of_stages(summary),
        };
        (times.total_ns() > 0).then_some(times)
    }

    fn around_percentiles(median: &PercentileBreakdown, slow: Option<&PercentileBreakdown>) -> Self {
        let mean = |breakdown: &PercentileBreakdown, name: &str| {
            let found = breakdown.stages.iter().find(|stage| stage.stage == name)?;
            Some(found.mean_ns.round() as u64)
        };
        let stages = median.stages.iter().map(|stage| StageTime {
            name: stage.stage.clone(),
            typical_ns: stage.mean_ns.round() as u64,
            slow_ns: slow.and_then(|slow| mean(slow, &stage.stage)),
        });
        Self { heads: ["p50 orders", "p99 orders"], stages: stages.collect() }
    }

    fn percentiles_of_stages(summary: &Summary) -> Self {
        let is_of_engine = |stage: &Measure| *stage != Measure::Stage(Stage::VenueService);
        let stages = Measure::stages().filter(is_of_engine).filter_map(|stage| {
            let found = summary.distribution(stage);
            Some(StageTime { name: stage.name().into(), typical_ns: found.p50_ns?, slow_ns: found.p99_ns })
        });
        Self { heads: ["p50", "p99"], stages: stages.collect() }
    }

    fn total_ns(&self) -> u64 {
        self.stages.iter().map(|stage| stage.typical_ns).fold(0, u64::saturating_add)
    }

    /// Adds a line that names the two largest stages, then a line with a bar for each stage.
    fn write(&self, page: &mut TextReport) {
        let total = self.total_ns() as f64;
        let share = |stage: &StageTime| stage.typical_ns as f64 / total;
        let mut largest: Vec<usize> = (0..self.stages.len()).collect();
        largest.sort_by_key(|index| std::cmp::Reverse(self.stages[*index].typical_ns));
        largest.truncate(2);
        let named = largest.iter().map(|index| &self.stages[*index]);
        let named = named.map(|stage| format!("{} {}", stage.name, percent(Some(share(stage)))));
        let named = named.collect::<Vec<_>>().join(", ");
        let heads = self.heads.map(|head| format!("{head:>TIME_WIDTH$}")).concat();
        page.line(&format!("{:STAGE_WIDTH$}{heads}  {named}", "where the time went"), None);
        for (index, stage) in self.stages.iter().enumerate() {
            let cells = in_one_unit([Some(stage.typical_ns), stage.slow_ns]);
            let cells = cells.map(|cell| format!("{cell:>TIME_WIDTH$}")).concat();
            let length = (share(stage) * BAR_WIDTH as f64).round() as usize;
            let bar = if length == 0 { "▏".to_owned() } else { "█".repeat(length) };
            let style = largest.contains(&index).then_some(STRONG);
            page.line(&format!("{:STAGE_WIDTH$}{cells}  {bar}", stage.name), style);
        }
    }
}

/// Returns the counts of orders that are not zero, those that were lost always, and the rate.
fn orders(summary: &Summary) -> Vec<String> {
    let orders = &summary.orders;
    let counts = [
        ("sent", orders.sent),
        ("returned", orders.returned),
        ("rejected", orders.rejected),
        ("cancelled", orders.cancelled),
        ("orphaned", orders.orphaned),
        ("pushes on full rings", orders.full),
    ];
    let counts = counts.iter().filter(|(_, number)| *number > 0);
    let mut fields: Vec<String> = counts.map(|(name, number)| format!("{name} {}", count(*number))).collect();
    fields.push(format!("lost {}", count(orders.lost)));
    let rate = |per_s: Option<f64>| per_s.map(|per_s| format!("{}/s", plain(per_s)));
    fields.extend(rate(summary.rate.achieved_per_s));
    fields
}

/// Returns level, CPU time, memory and start of a strategy of one isolation level.
fn costs_of_level(costs: &StrategyCosts) -> Vec<String> {
    let mut fields = vec![costs.isolation.to_string()];
    fields.extend(costs.cpu_s_per_million.map(|cpu| format!("CPU {} µs an order", plain(cpu))));
    fields.extend(costs.private_bytes.map(|bytes| format!("{} private", human_bytes(bytes as u64))));
    fields.extend(costs.startup_ns.map(|ns| format!("start {}", duration(ns as u64))));
    fields
}

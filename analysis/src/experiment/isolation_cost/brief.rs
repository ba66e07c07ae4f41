//! The first screen of a bill: the cost that a process adds to a strategy, the certain figures
//! first.

use super::headline::{answer, headline_technique};
use super::{IsolationCostRow, IsolationCosts};
use crate::experiment::BriefReport;
use crate::experiment::ratio::describe_verdict;
use protocol::plan::Isolation;
use record::numbers::{duration, percent, plain};
use record::units::human_bytes;
use verdict::report::change;
use verdict::summary::StrategyCosts;
use verdict::table::Grid;

/// Returns sentence and table: CPU time, memory and start of each level, then its latencies.
pub(super) fn brief(bill: &IsolationCosts) -> BriefReport {
    let technique = headline_technique(bill);
    let rows: Vec<&IsolationCostRow> =
        bill.rows.iter().filter(|row| technique.is_none_or(|technique| row.technique == technique)).collect();
    BriefReport { answer: sentence(bill, &rows).unwrap_or_else(|| answer(bill)), table: Some(table(&rows)) }
}

/// Returns what a process adds, or the first other level; `None` without its CPU time, and for
/// levels under several conditions.
fn sentence(bill: &IsolationCosts, rows: &[&IsolationCostRow]) -> Option<String> {
    let levels = || rows.iter().filter(|row| !row.is_native() && row.isolation != Isolation::Thread);
    let row = levels().find(|row| row.isolation == Isolation::Process).or_else(|| levels().next())?;
    let figures = row.level_figures.as_ref().filter(|_| row.condition.is_empty())?;
    let mut parts = vec![format!("{} CPU time", added_share(row)?)];
    parts.extend(cpu_added(row).map(|added| format!("{added} an order")));
    parts.extend(memory(row).map(|memory| format!("{memory} each")));
    parts.extend(start(row).map(|start| format!("start {start}")));
    let latencies = [0, 1].map(|percentile| latency(row, percentile));
    let latencies = ["p50", "p99"].iter().zip(latencies);
    let latencies = latencies.filter_map(|(name, found)| Some(format!("{name} {}", found?)));
    let latencies: Vec<String> = latencies.collect();
    let strategies = match figures.strategies {
        1 => "a strategy".to_owned(),
        strategies => format!("{strategies} strategies"),
    };
    Some(format!(
        "{strategies} as {}, {}, against threads: {}; {}: {}",
        row.level(),
        row.technique,
        parts.join(", "),
        bill.endpoint.measure,
        if latencies.is_empty() { "cannot tell".into() } else { latencies.join(", ") }
    ))
}

/// Returns the CPU time that a level adds, as a share of the threads': `+17 %`.
fn added_share(row: &IsolationCostRow) -> Option<String> {
    let cpu = row.level_figures.as_ref()?.cpu_s_per_million?;
    let added = cpu.added?.value;
    let share = percent(Some((added / (cpu.value - added)).abs()));
    Some(format!("{}{share}", if added < 0.0 { "−" } else { "+" }))
}

/// Returns the CPU time that a level adds to an order, with its interval.
fn cpu_added(row: &IsolationCostRow) -> Option<String> {
    let added = row.level_figures.as_ref()?.cpu_s_per_million?.added?;
    let signed = |value: f64| format!("{}{}", if value < 0.0 { "−" } else { "+" }, plain(value.abs()));
    Some(format!("{} µs [{}, {}]", signed(added.value), signed(added.low), signed(added.high)))
}

fn of_strategy(row: &IsolationCostRow, figure: fn(&StrategyCosts) -> Option<f64>) -> Option<u64> {
    row.strategy.as_ref().and_then(figure).map(|value| value as u64)
}

fn memory(row: &IsolationCostRow) -> Option<String> {
    of_strategy(row, |costs| costs.pss_bytes.or(costs.private_bytes)).map(human_bytes)
}

fn start(row: &IsolationCostRow) -> Option<String> {
    of_strategy(row, |costs| costs.startup_ns).map(duration)
}

/// Returns p50 (0) or p99 (1) against threads: by turns in the same runs, or over pairs of runs.
fn latency(row: &IsolationCostRow, percentile: usize) -> Option<String> {
    if let Some(turns) = row.level_figures.as_ref().and_then(|figures| figures.turns) {
        let ratio = [turns.p50, turns.p99][percentile]?;
        return Some(change([ratio.value, ratio.low, ratio.high]));
    }
    let lines = row.adds.first()?.lines();
    lines.into_iter().nth(percentile).map(describe_verdict)
}

/// Returns the table: a row for each level, with what is certain first.
fn table(rows: &[&IsolationCostRow]) -> Grid {
    let dash = || "–".to_owned();
    let cpu = |row: &&IsolationCostRow| {
        let found = row.level_figures.as_ref().and_then(|figures| figures.cpu_s_per_million);
        let found = found.map(|figure| figure.value);
        let found = found.or_else(|| row.strategy.as_ref()?.cpu_s_per_million);
        found.map_or_else(dash, |cpu| format!("{} µs", plain(cpu)))
    };
    let time = |ns: Option<f64>| ns.map_or_else(dash, |ns| duration(ns as u64));
    Grid::from_rows(
        "bill_brief",
        "what a strategy costs at each level; p50 and p99 of rt_venue from due",
        1,
        &[
            ("level", &|row: &&IsolationCostRow| row.level()),
            ("CPU/order", &cpu),
            ("adds", &|row| added_share(row).unwrap_or_else(dash)),
            ("memory", &|row| memory(row).unwrap_or_else(dash)),
            ("start", &|row| start(row).unwrap_or_else(dash)),
            ("p50", &|row| time(row.from_due_ns[0])),
            ("p99", &|row| time(row.from_due_ns[1])),
        ],
        rows,
    )
}

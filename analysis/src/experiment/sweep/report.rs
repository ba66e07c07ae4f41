//! The report of a sweep, and the parts that all saved experiments share.
//!
//! `rt_venue` is an order's round trip without the time at the venue.

use super::charts::{self, engine_latency, mebibytes};
use super::ranking::answer;
use super::tables;
use crate::experiment::AxisRecord;
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::experiment::time_unit::TimeUnit;
use crate::experiment::{ALL, BriefReport, ExperimentReport, PAGE, ReportSection, machine_facts};
use crate::stats::{Percentile, RunOutline, Spread, placement};
use record::numbers::{counted, duration, duration_or_dash, percent, plain};
use record::units::{Count, Nanos};
use verdict::summary::Measure;
use verdict::table::{Column, Grid};

/// Returns the report of a sweep, also of an incomplete one.
pub fn report(sweep: &ExperimentRuns) -> ExperimentReport {
    let tables = ReportSection::new("tables", "By setting, placement and host")
        .tables(ALL, tables::latency_tables(sweep))
        .tables(ALL, tables::by_placement(sweep))
        .tables(ALL, tables::by_host(sweep));
    ExperimentReport {
        name: "sweep",
        answer: answer(sweep),
        brief: BriefReport { table: brief_table(sweep), ..BriefReport::default() },
        notes: notes(sweep),
        sections: [point_sections(sweep), vec![tables]].concat(),
        ..report_frame(sweep)
    }
}

/// A sweep with more points has the table of p50 on its first screen, which is denser.
const MAX_POINTS_LISTED: usize = 10;

/// Returns the table of the first screen: a row for each point; `None` for too many points.
fn brief_table(sweep: &ExperimentRuns) -> Option<Grid> {
    let time = |point: &Point, percentile| {
        let spread = point.spread(|run| engine_latency(run, percentile));
        duration_or_dash(spread.map(|spread| spread.median as u64))
    };
    let cpu = |point: &Point| {
        let spread = point.spread(RunOutline::cpu_s_per_million);
        spread.map_or_else(|| "–".into(), |spread| format!("{} µs", plain(spread.median)))
    };
    let columns: [Column<'_, Point>; 5] = [
        ("point", &|point| point.name_without(&sweep.axes, None)),
        ("runs", &|point| point.usable_runs().count().to_string()),
        ("p50", &|point| time(point, Percentile::P50)),
        ("p99", &|point| time(point, Percentile::P99)),
        ("CPU/order", &cpu),
    ];
    let title = "rt_venue, an order's round trip without the venue; medians over the runs";
    (sweep.points.len() <= MAX_POINTS_LISTED)
        .then(|| Grid::from_rows("sweep_brief", title, 1, &columns, &sweep.points))
}

/// Returns an experiment's report without results: headings, fitness, machine and conditions.
pub(in crate::experiment) fn report_frame(sweep: &ExperimentRuns) -> ExperimentReport {
    let axes = sweep.axes.iter().map(AxisRecord::counted).collect::<Vec<_>>().join(" × ");
    let repeats = counted(sweep.repeats.into(), "repeat");
    let values = sweep.axes.iter().map(|axis| (axis.axis.to_string(), axis.values.join(", ")));
    let date = [("date".to_owned(), sweep.started.clone())];
    ExperimentReport {
        heading: heading(sweep),
        title: sweep.kind.entry().title.into(),
        subject: if axes.is_empty() { repeats } else { format!("{axes}, {repeats}") },
        origin: format!("started {}, bulkhead {}, {}", sweep.started, sweep.version, sweep.state.name()),
        fitness: (sweep.kind.entry().fitness)(sweep),
        counts: counts(sweep),
        conditions: condition_line(sweep),
        facts: machine_facts(&sweep.machine)
            .into_iter()
            .chain(values)
            .chain(date)
            .chain(conditions(sweep))
            .collect(),
        ..ExperimentReport::default()
    }
}

fn heading(sweep: &ExperimentRuns) -> String {
    let preset = sweep.preset.as_ref().filter(|preset| *preset != sweep.kind.name());
    let what = preset.map_or_else(String::new, |preset| format!(" {preset}"));
    format!("{}{what}, {} on {}", sweep.kind, sweep.started, sweep.machine.cpu_model)
}

/// Returns the measuring conditions of a sweep in one line; empty if none is known.
pub fn condition_line(sweep: &ExperimentRuns) -> String {
    let named: Vec<String> = conditions(sweep).iter().map(|(name, text)| format!("{name} {text}")).collect();
    if named.is_empty() { String::new() } else { format!("measured {}: {}", sweep.started, named.join(", ")) }
}

/// Returns remarks about an experiment as a whole, for below its tables.
pub fn notes(sweep: &ExperimentRuns) -> Vec<String> {
    let mut notes = sweep.notes.clone();
    let is_known =
        |percentile: &Percentile| sweep.runs().any(|run| engine_latency(&run.outline, *percentile).is_some());
    let unknown = Percentile::ALL.into_iter().filter(|percentile| !is_known(percentile));
    if sweep.runs().next().is_some() {
        notes.extend(unknown.map(|percentile| format!("too few orders for a {}", percentile.name())));
    }
    notes.extend(sweep.warm_up_note());
    let (all, wanted) = (sweep.runs().count(), sweep.rows.len());
    // A run whose fault overwrote its log is done, and has no figures.
    let done = all + sweep.made().filter(|row| row.outline().is_none()).count();
    if !sweep.kind.entry().is_search && done < wanted {
        notes.push(format!("{done} of {wanted} runs are done: the {} is {}", sweep.kind, sweep.state.name()));
    }
    let unusable = sweep.runs().filter(|run| !run.outline.is_usable()).count();
    if unusable > 0 && !sweep.kind.entry().keeps_failures {
        notes.push(format!("left out as incomplete or invalid: {}", counted(unusable as u64, "run")));
    }
    let unfired = sweep.runs().filter_map(|run| Some((run, run.outline.unfired_faults.first()?)));
    let unfired: Vec<_> = unfired.collect();
    if let Some((run, why)) = unfired.first() {
        notes.push(format!(
            "in {} of {all} runs a fault never fired or was cut short, first in {}: {why}",
            unfired.len(),
            run.folder
        ));
    }
    notes
}

/// Settings that tables have in their own places, or that are irrelevant for what was measured.
const LEFT_OUT: [&str; 6] = ["seed", "out", "repeats", "technique", "isolation", "fault"];

/// Returns the measuring conditions of an experiment by name: settings that do not vary, order
/// rate, seeds and core-to-core round trips.
pub fn conditions(record: &ExperimentRuns) -> Vec<(String, String)> {
    let Some(first) = record.points.first() else { return Vec::new() };
    let is_varied = |key: &str| {
        let text = |point: &Point| point.settings.get(key).cloned();
        record.points.iter().any(|point| text(point) != text(first))
    };
    let shared =
        first.settings.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()) && !is_varied(key));
    let mut found: Vec<(String, String)> =
        shared.map(|(key, text)| (key.replace('_', " "), text.clone())).collect();
    let mut add = |name: &str, text: String| found.push((name.to_owned(), text));
    let count = |key: &str| first.settings.get(key).and_then(|text| text.parse::<Count>().ok());
    let time = |key: &str| first.settings.get(key).and_then(|text| text.parse::<Nanos>().ok());
    if let (Some(orders), Some(window)) = (count("orders"), time("window"))
        && window.0 > 0
        && !is_varied("orders")
        && !is_varied("window")
    {
        add("rate", format!("{} orders/s", plain(orders.0 as f64 / (window.0 as f64 / 1e9))));
    }
    match (record.seed, record.seed.wrapping_add(record.repeats.saturating_sub(1).into())) {
        (first, last) if first == last => add("seed", first.to_string()),
        (first, last) => add("seeds", format!("{first} to {last}")),
    }
    let core_rtts = || record.runs().filter_map(|run| placement::core_rtt(&run.outline));
    if let (Some(min), Some(max)) = (core_rtts().reduce(f64::min), core_rtts().reduce(f64::max)) {
        add("core to core", format!("{} to {}", duration(min as u64), duration(max as u64)));
    }
    found
}

fn counts(sweep: &ExperimentRuns) -> Vec<(&'static str, u64)> {
    let runs = || sweep.runs().map(|run| &run.outline);
    let usable = runs().filter(|run| run.is_usable()).count();
    let fit = runs().filter(|run| run.is_usable() && run.fit_for_latency).count();
    let planned = if sweep.kind.entry().is_search { runs().count() } else { sweep.rows.len() };
    [("fit", fit), ("sound", usable), ("runs", runs().count()), ("planned", planned)]
        .map(|(name, number)| (name, number as u64))
        .to_vec()
}

/// Returns for the page a section with charts and table for each measured combination of settings.
pub(in crate::experiment) fn point_sections(sweep: &ExperimentRuns) -> Vec<ReportSection> {
    let figures = |point: &Point| {
        Percentile::ALL.map(|percentile| Some(point.spread(|run| engine_latency(run, percentile))?.median))
    };
    let unit = TimeUnit::for_durations(sweep.points.iter().flat_map(figures).flatten());
    let time = |spread: Option<Spread>| unit.format_or_dash(spread.map(|spread| spread.median));
    let number = |spread: Option<Spread>| spread.map_or_else(|| "–".into(), |spread| plain(spread.median));
    let at = |point: &Point, percentile| time(point.spread(|run| engine_latency(run, percentile)));
    let free = |point: &Point, percentile: Percentile| {
        time(point.spread(|run| Some(percentile.get(&run.measure(Measure::StallFree))? as f64)))
    };
    let per_million = |point: &Point, of: fn(&RunOutline) -> u64| {
        let share = |run: &RunOutline| (run.returned > 0).then(|| of(run) as f64 * 1e6 / run.returned as f64);
        number(point.spread(share))
    };
    let table = Grid::from_rows(
        "points",
        format!("Every point: rt_venue in {}, and what it cost", unit.name()),
        1,
        &[
            ("point", &|point: &Point| point.name_without(&sweep.axes, None)),
            ("runs", &|point| format!("{} of {}", point.usable_runs().count(), sweep.repeats)),
            ("fit", &|point| point.usable_runs().filter(|run| run.fit_for_latency).count().to_string()),
            ("p50", &|point| at(point, Percentile::P50)),
            ("p99", &|point| at(point, Percentile::P99)),
            ("stall-free", &|point| free(point, Percentile::P99)),
            ("p99.9", &|point| at(point, Percentile::P999)),
            ("stall-free", &|point| free(point, Percentile::P999)),
            ("on", &|point| percent(point.spread(RunOutline::excluded_share).map(|spread| 1.0 - spread.median))),
            ("CPU s/M orders", &|point| number(point.spread(RunOutline::cpu_s_per_million))),
            ("start-up ms", &|point| number(point.spread(|run| Some(run.startup_ns as f64 / 1e6)))),
            ("PSS MiB", &|point| number(point.spread(mebibytes))),
            ("faults/M", &|point| per_million(point, |run| run.page_faults)),
            ("switches/M", &|point| per_million(point, |run| run.context_switches)),
            ("busy %", &|point| number(point.spread(|run| Some(run.utilization? * 100.0)))),
        ],
        &sweep.points,
    )
    .note(
        "Medians over the sound repeats; a figure that one of them lacks is left out (–). Stall-free: of the orders that no stall of the \
         machine touched; on: their share of all orders.",
    );
    vec![ReportSection::new("points", "Every point").charts(charts::all(sweep)).tables(PAGE, [table])]
}

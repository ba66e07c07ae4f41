//! The report of a bill: the cost that a level adds to a technique, latencies, and ratios to the
//! reference.

use super::columns::{BillColumns, cost_columns, latency_unit, time_or_dash};
use super::headline::{answer, headline, levels_of_headline};
use super::{Bill, BillRow};
use crate::chart::axis;
use crate::chart::interval_plot::{self, IntervalRow};
use crate::chart::svg::legend;
use crate::experiment::ratio::{format_ratio, interval_row, verdict_mark};
use crate::experiment::sweep::{point_sections, report_frame};
use crate::experiment::{
    ALL, ExperimentReport, FILES, PAGE, ReportSection, SectionPart, SweepRecord, TERMINAL,
};
use crate::numbers::percent;
use crate::stats::{ComparisonLine, Percentile};
use crate::summary::Measure;
use crate::table::Grid;
use maud::Markup;
use protocol::plan::Isolation;

/// A class for each level, in the order in which they appear.
const CLASSES: [&str; 4] = ["c1", "c2", "c3", "c4"];
/// Above the charts.
const CHARTS: &str = "The difference to the reference of each row: the crate whose algorithm a technique is, or the technique itself under \
                      threads. Dots are ratios, bars their 95% intervals. Where a bar holds 1, no difference is seen.";

/// Returns the report of a bill of isolation costs, with a page of every measured combination.
pub fn report(sweep: &SweepRecord, bill: &Bill) -> ExperimentReport {
    let charts: Vec<SectionPart> = Percentile::ALL
        .iter()
        .filter_map(|percentile| chart(bill, *percentile))
        .map(SectionPart::Chart)
        .collect();
    let no_charts = "No difference is known: no row has a reference with enough repeats.";
    let text = SectionPart::Text(if charts.is_empty() { no_charts } else { CHARTS }.into());
    let (first, others) = charts.split_at(charts.len().min(1));
    let section = ReportSection::new("bill", "What isolation costs")
        .with([text])
        .with(first.iter().cloned())
        .with(headline(bill).map(|grid| SectionPart::Table(grid, ALL)))
        .with(levels_of_headline(bill).map(|grid| SectionPart::Table(grid, TERMINAL)))
        .with(tables(bill))
        .with(others.iter().cloned())
        .with([SectionPart::List(remarks(bill))]);
    ExperimentReport {
        name: "bill",
        answer: answer(bill),
        notes: bill.notes.clone(),
        sections: [vec![section], point_sections(sweep)].concat(),
        ..report_frame(sweep, "The bill")
    }
}

/// The tables of the page with a row for each row of the bill, and one wide table for documents and
/// programs.
fn tables(bill: &Bill) -> Vec<SectionPart> {
    let unit = latency_unit(bill);
    let latency = |of: fn(&BillRow) -> Option<f64>| move |row: &BillRow| unit.format_or_dash(of(row));
    let (p50, p99, p999) = (latency(|row| row.p50_ns), latency(|row| row.p99_ns), latency(|row| row.p999_ns));
    let (free_p99, free_p999) = (latency(|row| row.stall_free_p99_ns), latency(|row| row.stall_free_p999_ns));
    let keys: BillColumns<'_> =
        vec![("isolation", &BillRow::level), ("technique", &|row| row.technique.to_string())];
    let costs = cost_columns(bill);
    let of = |measure, percentile| move |row: &BillRow| format_difference(row, measure, percentile);
    let ratios = Percentile::ALL.map(|percentile| of(Measure::RtVenue, percentile));
    let free = [Percentile::P99, Percentile::P999].map(|percentile| of(Measure::StallFree, percentile));
    let grid = |name: &str, title: &str, columns: &[BillColumns<'_>]| {
        Grid::from_rows(name, title, 2, &columns.concat(), &bill.rows)
    };
    let cost = grid("bill_cost", "what else a level costs", &[keys.clone(), costs.clone()]);
    let title = format!("rt_venue: what the engine adds to an order, {}", unit.name());
    let columns: BillColumns<'_> =
        vec![("p50", &p50), ("p99", &p99), ("p99.9", &p999), ("against", &reference_name)];
    let latency = grid("bill_latency", &title, &[keys.clone(), columns]);
    let against: BillColumns<'_> = vec![
        ("p50 vs reference", &ratios[0]),
        ("p99 vs reference", &ratios[1]),
        ("p99.9 vs reference", &ratios[2]),
    ];
    let against = grid(
        "bill_difference",
        "rt_venue against the reference: ratio [95 % interval]",
        &[keys.clone(), against],
    )
    .note("▲ slower, ▼ faster, no mark: no difference seen, –: not comparable, unclear: the interval is wider than ±25 %");
    let mut shown = vec![cost, latency, against];
    if bill.rows.iter().any(|row| row.stall_free_p99_ns.or(row.stall_free_p999_ns).is_some()) {
        let columns: BillColumns<'_> = vec![
            ("p99", &p99),
            ("stall-free", &free_p99),
            ("p99.9", &p999),
            ("stall-free", &free_p999),
            ("on", &unaffected_share),
        ];
        let title = format!("rt_venue with and without the machine's stalls, {}", unit.name());
        shown.push(grid("bill_stall_free", &title, &[keys.clone(), columns]).note(
            "stall-free: of the orders that no stall of the machine touched; on: their share of all orders",
        ));
        let columns: BillColumns<'_> =
            vec![("stall-free p99 vs reference", &free[0]), ("stall-free p99.9 vs reference", &free[1])];
        let title = "stall-free rt_venue against the reference: ratio [95 % interval]";
        shown.push(grid("bill_stall_free_difference", title, &[keys.clone(), columns]));
    }
    let latencies: BillColumns<'_> = vec![
        ("p50", &|row| time_or_dash(row.p50_ns)),
        ("p99", &|row| time_or_dash(row.p99_ns)),
        ("p99.9", &|row| time_or_dash(row.p999_ns)),
    ];
    let rest: BillColumns<'_> = vec![
        ("reference", &reference_name),
        ("p50 ratio", &ratios[0]),
        ("p99 ratio", &ratios[1]),
        ("p99.9 ratio", &ratios[2]),
        ("p99 stall-free", &|row| time_or_dash(row.stall_free_p99_ns)),
        ("p99.9 stall-free", &|row| time_or_dash(row.stall_free_p999_ns)),
        ("on", &unaffected_share),
        ("p99 stall-free ratio", &free[0]),
        ("p99.9 stall-free ratio", &free[1]),
    ];
    let title = "The bill (rt_venue; ratio to the reference with its 95 % interval: ▲ slower, ▼ faster, –: not comparable; on: share of \
                 the orders that no stall touched)";
    let wide = grid("bill", title, &[keys, latencies, rest, costs]);
    let shown = shown.into_iter().map(|grid| SectionPart::Table(grid, PAGE));
    shown.chain([SectionPart::Table(wide, FILES)]).collect()
}

/// The share of the orders that no stall of the machine touched.
fn unaffected_share(row: &BillRow) -> String {
    percent(row.taken_out.map(|out| 1.0 - out))
}

fn reference_name(row: &BillRow) -> String {
    row.reference.map_or_else(|| "–".into(), |found| format!("{}/{}", found.isolation, found.technique))
}

/// The line of a row that compares that figure with its reference.
fn comparison_of(row: &BillRow, measure: Measure, percentile: Percentile) -> Option<&ComparisonLine> {
    row.differences.iter().find(|line| line.measure == measure.name() && line.percentile == percentile)
}

fn format_difference(row: &BillRow, measure: Measure, percentile: Percentile) -> String {
    comparison_of(row, measure, percentile)
        .map_or_else(|| "–".into(), |line| format!("{}{}", verdict_mark(line.verdict), format_ratio(line)))
}

/// The differences of each row to its reference, colored by level.
fn chart(bill: &Bill, percentile: Percentile) -> Option<Markup> {
    let mut levels: Vec<Isolation> = bill.rows.iter().map(|row| row.isolation).collect();
    levels.dedup();
    let class = |level: Isolation| {
        CLASSES[levels.iter().position(|other| *other == level).unwrap_or(0) % CLASSES.len()]
    };
    let row = |row: &BillRow| {
        let (line, reference) = (comparison_of(row, Measure::RtVenue, percentile)?, row.reference?);
        let against = match reference.technique == row.technique {
            true => reference.isolation.to_string(),
            false => reference.technique.to_string(),
        };
        let name = format!("{}, {} vs {against}", row.technique, row.level());
        Some((row.isolation, interval_row(name, class(row.isolation), line)))
    };
    let rows: Vec<(Isolation, IntervalRow)> = bill.rows.iter().filter_map(row).collect();
    let (drawn, rows): (Vec<Isolation>, Vec<IntervalRow>) = rows.into_iter().unzip();
    let id = format!("ratio-{}", percentile.name().replace('.', ""));
    let title = format!("rt_venue {} against the reference", percentile.name());
    let chart = interval_plot::draw(
        &id,
        &title,
        "ratio to the reference (1: equal)",
        &axis::number,
        Some(1.0),
        &rows,
    )?;
    let levels = levels.iter().filter(|level| drawn.contains(level));
    let legend = legend(levels.map(|level| (class(*level), level.to_string())));
    Some(maud::html! { (chart) (legend) })
}

/// Why rows are not comparable, and what weakens them: each reason once, with its rows.
fn remarks(bill: &Bill) -> Vec<String> {
    let mut about: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &bill.rows {
        let name = format!("{} {}", row.technique, row.level());
        for reason in row.differences.iter().flat_map(|line| &line.why).chain(&row.caveats) {
            match about.iter_mut().find(|(known, _)| known == reason) {
                Some((_, rows)) if rows.contains(&name) => {}
                Some((_, rows)) => rows.push(name.clone()),
                None => about.push((reason, vec![name.clone()])),
            }
        }
    }
    about.into_iter().map(|(reason, rows)| format!("{}: {reason}", rows.join(", "))).collect()
}

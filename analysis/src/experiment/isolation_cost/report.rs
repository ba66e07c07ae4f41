//! The report of a bill: the cost that a level adds to a technique, latencies, and ratios to the
//! reference.

use super::brief::brief;
use super::headline::{
    CostColumns, LATENCIES, answer, cost_columns, headline, levels_of_headline, time_or_dash, verdicts,
};
use super::{IsolationCostRow, IsolationCosts, capacity, growth, level_tables};
use crate::chart::interval_plot::{self, IntervalRow};
use crate::experiment::ratio::{MARKS, format_ratio, interval_row, line_of};
use crate::experiment::runs::ExperimentRuns;
use crate::experiment::sweep::{point_sections, report_frame};
use crate::experiment::{ALL, ExperimentReport, FILES, PAGE, ReportSection, TERMINAL};
use crate::grouping::{distinct, grouped};
use crate::stats::Percentile;
use maud::{Markup, html};
use protocol::plan::IsolationLevel;
use record::numbers::percent;
use verdict::chart::axis;
use verdict::chart::svg::legend;
use verdict::report::strategy_costs;
use verdict::summary::{Measure, StrategyCosts};
use verdict::table::{Column, Grid, GridRow};

/// A class for each level, in the order in which they appear.
const CLASSES: [&str; 4] = ["c1", "c2", "c3", "c4"];
const CHARTS: &str = "The difference to the reference of each row: the crate whose algorithm a technique is, or the technique itself under \
                      threads. Dots are ratios, bars their 95% intervals. The verdict next to each is by the declared margin.";

/// Returns the report of a bill (experiment on isolation costs); its page has a section for each
/// measured combination of settings.
pub fn report(sweep: &ExperimentRuns, isolation_costs: &IsolationCosts) -> ExperimentReport {
    let mut charts =
        Percentile::ALL.iter().filter_map(|percentile| chart(isolation_costs, *percentile)).peekable();
    let no_charts = "No difference is known: no row has a reference with enough repeats.";
    let text = if charts.peek().is_none() { no_charts } else { CHARTS };
    let remarks = remarks(isolation_costs);
    let remarks = (!remarks.is_empty())
        .then(|| html! { ul class="note" { @for remark in &remarks { li { (remark) } } } });
    let section = ReportSection::new("bill", "What isolation costs")
        .text(text)
        .charts(charts.next())
        .tables(ALL, level_tables::tables(isolation_costs))
        .tables(ALL, capacity::table(isolation_costs))
        .tables(ALL, verdicts(isolation_costs))
        .tables(ALL, growth::table(isolation_costs))
        .charts(growth::charts(isolation_costs))
        .tables(FILES | PAGE, headline(isolation_costs))
        .tables(TERMINAL, levels_of_headline(isolation_costs))
        .tables(FILES | PAGE, strategy_table(isolation_costs))
        .tables(FILES | PAGE, [table(isolation_costs)])
        .charts(charts)
        .charts(remarks);
    ExperimentReport {
        name: "bill",
        answer: answer(isolation_costs),
        brief: brief(isolation_costs),
        notes: isolation_costs.notes.clone(),
        // What was not measured; the rest is in the files.
        terminal_notes: Some(
            isolation_costs
                .notes
                .iter()
                .filter(|note| note.contains(" left out: ") && !note.starts_with("warm-up"))
                .cloned()
                .collect(),
        ),
        sections: [vec![section], point_sections(sweep)].concat(),
        ..report_frame(sweep)
    }
}

/// Every figure of every row in one table, for the page, documents and programs.
fn table(isolation_costs: &IsolationCosts) -> Grid {
    let times = LATENCIES.map(|of| move |row: &IsolationCostRow| time_or_dash(of(row)));
    let of = |measure, percentile| move |row: &IsolationCostRow| format_difference(row, measure, percentile);
    let due = Percentile::ALL.map(|percentile| of(Measure::RtVenueFromDue, percentile));
    let steal = of(Measure::WithoutSteal, Percentile::P99);
    let ratios = Percentile::ALL.map(|percentile| of(Measure::RtVenue, percentile));
    let free = [Percentile::P99, Percentile::P999].map(|percentile| of(Measure::StallFree, percentile));
    let mut columns: CostColumns<'_> = vec![
        ("isolation", &IsolationCostRow::level),
        ("technique", &|row| row.technique.to_string()),
        ("from due p50", &times[0]),
        ("from due p99", &times[1]),
        ("from due p99.9", &times[2]),
        ("reference", &reference_name),
        ("from due p50 ratio", &due[0]),
        ("from due p99 ratio", &due[1]),
        ("from due p99.9 ratio", &due[2]),
        ("p50 without steal", &times[3]),
        ("p99 without steal", &times[4]),
        ("p99.9 without steal", &times[5]),
        ("p99 without steal ratio", &steal),
        ("p50", &times[6]),
        ("p99", &times[7]),
        ("p99.9", &times[8]),
        ("p50 ratio", &ratios[0]),
        ("p99 ratio", &ratios[1]),
        ("p99.9 ratio", &ratios[2]),
        ("p99 stall-free", &times[9]),
        ("p99.9 stall-free", &times[10]),
        ("on", &unaffected_share),
        ("p99 stall-free ratio", &free[0]),
        ("p99.9 stall-free ratio", &free[1]),
    ];
    columns.extend(cost_columns(isolation_costs));
    let title = "The bill: rt_venue from due and from sending, ratios to the reference [95 % interval], and what else a level costs";
    Grid::from_rows("bill", title, 2, &columns, &isolation_costs.rows)
        .note(format!("{MARKS}; on: the share of the orders that no stall of the machine touched"))
}

/// What a strategy costs besides latency: a row for each row of the bill whose runs saved it.
fn strategy_table(isolation_costs: &IsolationCosts) -> Vec<Grid> {
    let rows: Vec<(&IsolationCostRow, &StrategyCosts)> =
        isolation_costs.rows.iter().filter_map(|row| Some((row, row.strategy.as_ref()?))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let grid = |name, title: &str, columns: &[Column<'static, StrategyCosts>]| {
        let head = ["isolation", "technique"].into_iter().chain(columns.iter().map(|(name, _)| *name));
        let cells = |(row, costs): &(&IsolationCostRow, &StrategyCosts)| {
            let figures = columns.iter().map(|(_, cell)| cell(costs));
            GridRow::plain([row.level(), row.technique.to_string()].into_iter().chain(figures).collect())
        };
        Grid::new(name, title, 2, head, rows.iter().map(cells))
    };
    let usage = "What a strategy costs besides latency";
    let events = "Events of a strategy, and misses for each of its orders";
    vec![
        grid("bill_strategy", usage, &strategy_costs::USAGE).note(strategy_costs::USAGE_NOTE),
        grid("bill_events", events, &strategy_costs::EVENTS),
    ]
}

fn unaffected_share(row: &IsolationCostRow) -> String {
    percent(row.taken_out.map(|out| 1.0 - out))
}

fn reference_name(row: &IsolationCostRow) -> String {
    row.reference.map_or_else(|| "–".into(), |found| format!("{}/{}", found.isolation, found.technique))
}

fn format_difference(row: &IsolationCostRow, measure: Measure, percentile: Percentile) -> String {
    line_of(&row.differences, measure, percentile).map_or_else(|| "–".into(), format_ratio)
}

/// The differences of each row to its reference, colored by level.
fn chart(isolation_costs: &IsolationCosts, percentile: Percentile) -> Option<Markup> {
    let mut levels: Vec<IsolationLevel> = isolation_costs.rows.iter().map(|row| row.isolation).collect();
    levels.dedup();
    let class = |level: IsolationLevel| {
        CLASSES[levels.iter().position(|other| *other == level).unwrap_or(0) % CLASSES.len()]
    };
    let row = |row: &IsolationCostRow| {
        let (line, reference) =
            (line_of(&row.differences, isolation_costs.endpoint.measure(), percentile)?, row.reference?);
        let against = match reference.technique == row.technique {
            true => reference.isolation.to_string(),
            false => reference.technique.to_string(),
        };
        let name = format!("{}, {} vs {against}", row.technique, row.level());
        Some((row.isolation, interval_row(name, class(row.isolation), line)))
    };
    let rows: Vec<(IsolationLevel, IntervalRow)> = isolation_costs.rows.iter().filter_map(row).collect();
    let (drawn, rows): (Vec<IsolationLevel>, Vec<IntervalRow>) = rows.into_iter().unzip();
    let id = format!("ratio-{}", percentile.name().replace('.', ""));
    let title = format!("{} {} against the reference", isolation_costs.endpoint.measure, percentile.name());
    let axis_title = "ratio to the reference (1: equal)";
    let chart = interval_plot::draw(&id, &title, axis_title, axis::NUMBER, Some(1.0), &rows)?;
    let levels = levels.iter().filter(|level| drawn.contains(level));
    let legend = legend(levels.map(|level| (class(*level), level.to_string())));
    Some(html! { (chart) (legend) })
}

/// Why rows are not comparable, and what weakens them: each reason once, with its rows.
fn remarks(isolation_costs: &IsolationCosts) -> Vec<String> {
    let reasons = isolation_costs.rows.iter().flat_map(|row| {
        let reasons = row.differences.iter().flat_map(|line| &line.why).chain(&row.caveats);
        reasons.map(move |reason| (reason, format!("{} {}", row.technique, row.level())))
    });
    let remark = |(reason, rows): (&String, Vec<String>)| format!("{}: {reason}", distinct(rows).join(", "));
    grouped(reasons).into_iter().map(remark).collect()
}

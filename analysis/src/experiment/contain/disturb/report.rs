//! The report of disturbances: a row for each, and a chart of what they did to the others.

use super::brief;
use super::{Disturbance, Disturbances, Effect, GapComparison, StormLimit, is_within_margin};
use crate::chart::interval_plot;
use crate::chart::xy_plot::{self, PlotSeries, line_class};
use crate::experiment::picture::{self, ComparedPoint, PicturePanel, PictureSeries};
use crate::experiment::ratio::{MARKS, format_ratio, interval_row, verdict_mark};
use crate::experiment::runs::ExperimentRuns;
use crate::experiment::sweep::report_frame;
use crate::experiment::{ALL, ExperimentReport, FILES, PAGE, ReportSection, TERMINAL};
use crate::grouping::{distinct, grouped};
use crate::stats::{self, ComparisonLine, Percentile, Spread, Verdict};
use maud::Markup;
use protocol::flow::Stage;
use protocol::plan::{FaultKind, IsolationLevel};
use record::numbers::{duration_or_dash, plain, short};
use verdict::chart::axis;
use verdict::summary::Measure;
use verdict::table::{Column, Grid};

/// A figure that may be this many times the calm one is not said to lie near it.
const MAX_REACH: f64 = 10.0;
const GAPS: &str = "gaps/s: times of 15 µs and longer a second in which the engine's thread began no duty cycle, without steal, calm → disturbed.";
const WITHIN: &str = "within ±M: at 90 %, every declared time lies that near to the calm one. survived: runs in which all orders of the others came back, none late.";

/// Returns the report of `launcher disturb`: the effect of each disturbance by isolation level.
pub fn report(all: &Disturbances, record: &ExperimentRuns) -> ExperimentReport {
    let text = "A strategy works on the side, and makes no mistake; the others trade. Each row compares runs with that against runs in which the \
                strategy does nothing, its own orders left out. undisturbed: at 95 %, no declared time is longer than its margin allows.";
    let section = ReportSection::new("disturb", "What a strategy does to its neighbors")
        .text(text)
        .charts(chart(all))
        .charts(rate_chart(all))
        .tables(ALL, (!all.limits.is_empty()).then(|| limits(all)))
        .tables(TERMINAL, [effects(all)])
        .tables(FILES | PAGE, [table(all)]);
    ExperimentReport {
        name: "disturb",
        heading: "What isolation buys in time".into(),
        answer: answer(all),
        brief: brief::brief(all, (!all.limits.is_empty()).then(|| limits(all))),
        notes: all.notes.clone(),
        sections: vec![section],
        ..report_frame(record)
    }
}

/// Bytes through which a step of `thrash` streams.
const THRASH_STEP_BYTES: f64 = 262_144.0;

/// Describes how often a storm does a step: `8,000/s`, and what `thrash` reads a second.
fn rate(kind: FaultKind, per_s: Option<f64>) -> String {
    let Some(per_s) = per_s else { return "–".into() };
    let bytes = match kind {
        FaultKind::Thrash => format!(" ({:.2} GB/s)", per_s * THRASH_STEP_BYTES / 1e9),
        _ => String::new(),
    };
    format!("{}/s{bytes}", plain(per_s))
}

/// The heaviest storm that the others survive undisturbed: a row for each disturbance and level.
fn limits(all: &Disturbances) -> Grid {
    let columns: [Column<'_, StormLimit>; 6] = [
        ("level", &|limit| limit.isolation.to_string()),
        ("the strategy does", &|limit| limit.kind.to_string()),
        ("undisturbed up to", &|limit| rate(limit.kind, limit.undisturbed_per_s)),
        ("disturbed from", &|limit| rate(limit.kind, limit.disturbed_per_s)),
        ("rates", &|limit| limit.tried.len().to_string()),
        ("ended", &|limit| limit.ended.clone()),
    ];
    Grid::from_rows("storm_limits", "The heaviest storm that the others survive undisturbed", 2, &columns, &all.limits)
        .note("steps asked for, a second: highest rate undisturbed, and lowest disturbed; between the two neither is known.")
}

/// Draws the others' p99 against calm runs over the steps that a storm did, for storms that were
/// tried at several rates.
fn rate_chart(all: &Disturbances) -> Option<Markup> {
    let point = |row: &Disturbance| {
        row.every_ns?;
        let ratio = others(row, all, Percentile::P99)?.evidence().difference?.ratio;
        let spread = Spread { median: ratio.value, low: ratio.low, high: ratio.high };
        Some((format!("{}, {}", row.kind, row.isolation), (row.done_per_s?, spread)))
    };
    let lines = grouped(all.rows.iter().filter_map(point));
    let several = lines.into_iter().filter(|(_, points)| points.len() > 1).enumerate();
    let series: Vec<PlotSeries> = several
        .map(|(number, (name, mut points))| {
            points.sort_by(|a: &(f64, Spread), b| a.0.total_cmp(&b.0));
            PlotSeries { name, class: line_class(number), points }
        })
        .collect();
    xy_plot::draw(
        "storm-rates",
        &format!("{} p99 of the others against calm runs, by the steps done", all.endpoint.measure),
        ("steps a second", axis::NUMBER),
        ("ratio to calm (1: equal)", axis::NUMBER),
        &series,
    )
}

fn others(row: &Disturbance, all: &Disturbances, percentile: Percentile) -> Option<ComparisonLine> {
    row.line(all.endpoint.measure(), percentile).cloned()
}

/// Returns what is concluded of a row, with its figure: `disturbed × 3.1 [2.9–3.4] at p99`.
pub(super) fn describe(row: &Disturbance, all: &Disturbances) -> String {
    let declared = || row.declared(&all.endpoint);
    let at = |line: &ComparisonLine| {
        let whose = if line.measure == all.endpoint.measure { "others" } else { "engine" };
        format!("{whose} {}", line.percentile.name())
    };
    let ratio = |line: &ComparisonLine| line.evidence().difference.map_or(0.0, |found| found.ratio.value);
    match row.effect(&all.endpoint) {
        Effect::NotTried => "not tried".into(),
        Effect::Refused => format!("refused: {}", row.refused),
        Effect::Spread => "the others did not survive".into(),
        Effect::Undisturbed => format!("undisturbed{}", within(row, all)),
        Effect::Disturbed => {
            let slower = declared()
                .filter(|line| line.verdict == Verdict::Slower && !is_within_margin(line, &all.endpoint));
            let most = slower.max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
            let gaps = || {
                let slower = |(_, found): &(_, stats::Difference)| found.verdict() == Verdict::Slower;
                gap_figures(row).filter_map(|(name, found)| Some((name.to_owned(), found?))).find(slower)
            };
            let found = match most {
                Some(line) => line.evidence().difference.map(|found| (at(line), found)),
                None => gaps(),
            };
            found.map_or_else(String::new, |(whose, found)| {
                format!("disturbed × {}, {whose}", stats::format_ratio(&found))
            })
        }
        Effect::CannotTell => {
            let is_lost_within = row.gaps.as_ref().is_some_and(GapComparison::is_lost_within_margin);
            let lost = is_lost_within.then(|| "engine time lost".to_owned());
            let equal = declared().filter(|line| is_within_margin(line, &all.endpoint)).map(at);
            let equal: Vec<String> = equal.chain(lost).collect();
            let known =
                if equal.is_empty() { String::new() } else { format!("; undisturbed: {}", equal.join(", ")) };
            format!("cannot tell{}{known}", within(row, all))
        }
    }
}

/// Iterates over the declared figures of the engine's gaps.
fn gap_figures(row: &Disturbance) -> impl Iterator<Item = (&'static str, Option<stats::Difference>)> + '_ {
    row.gaps.iter().flat_map(GapComparison::declared)
}

/// Describes how far the declared figures reach from the calm ones: ` within ±12 %`.
fn within(row: &Disturbance, all: &Disturbances) -> String {
    let reach = row.reach(&all.endpoint).filter(|reach| *reach < MAX_REACH);
    reach.map_or_else(String::new, |reach| format!(" within ±{:.0} %", (reach * 100.0).ceil()))
}

/// Counts the runs that the others survived: `9 of 10, 1 late`.
fn survived(row: &Disturbance) -> String {
    let [yes, late, ..] = row.outcomes;
    let waited = if late > 0 { format!(", {late} late") } else { String::new() };
    match row.outcomes.iter().sum::<usize>() {
        0 => "–".into(),
        all => format!("{yes} of {all}{waited}"),
    }
}

/// Describes the long gaps of the engine's thread: `310 → 912`.
fn long_gaps(row: &Disturbance) -> String {
    let whole = |rate: f64| short(rate.round() as u64);
    let mark = |gaps: &GapComparison| verdict_mark(gaps.verdict());
    let gaps = row.gaps.as_ref();
    gaps.map_or_else(
        || "–".into(),
        |gaps| format!("{}{} → {}", mark(gaps), whole(gaps.calm_per_s), whole(gaps.per_s)),
    )
}

/// Describes the time that the engine's thread lost a second, by class: `fault 0.2 → 156 ms`.
fn lost_time(row: &Disturbance) -> String {
    let ms = |ns: f64| format!("{:.1}", ns / 1e6);
    let classes = row.gaps.iter().flat_map(|gaps| &gaps.classes);
    let texts = classes.map(|(class, [calm, with])| format!("{class} {} → {}", ms(*calm), ms(*with)));
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() { "–".into() } else { texts.join(", ") }
}

/// Returns what is concluded of each row: `fork-storm at thread: disturbed × 10.6 [7.0–12.9],
/// others p50`.
pub(in crate::experiment) fn short_answer(all: &Disturbances) -> String {
    let row =
        |(row, _): (&Disturbance, _)| format!("{} at {}: {}", row.name(), row.isolation, describe(row, all));
    all.real().map(row).collect::<Vec<_>>().join("; ")
}

fn answer(all: &Disturbances) -> String {
    let levels = grouped(all.rows.iter().map(|row| (row.isolation.to_string(), row)));
    let of_level = |(level, rows): (String, Vec<&Disturbance>)| {
        let real = || rows.iter().filter(|row| row.kind != FaultKind::Calm);
        let with = |wanted: Effect| real().filter(|row| row.effect(&all.endpoint) == wanted).count();
        let disturbed = real().filter(|row| row.effect(&all.endpoint) == Effect::Disturbed);
        let named =
            distinct(disturbed.map(|row| {
                format!("{} {}", row.name(), describe(row, all).trim_start_matches("disturbed "))
            }));
        let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        format!(
            "{level}: {} of {} disturb the others{named}, {} do not, {} refused, {} not survived, {} cannot tell",
            with(Effect::Disturbed),
            real().count(),
            with(Effect::Undisturbed),
            with(Effect::Refused),
            with(Effect::Spread),
            with(Effect::CannotTell) + with(Effect::NotTried)
        )
    };
    levels.into_iter().map(of_level).collect::<Vec<_>>().join(". ")
}

fn effects(all: &Disturbances) -> Grid {
    let ratio = |percentile| move |row: &Disturbance| cell(others(row, all, percentile).as_ref());
    let [p50, p99] = [Percentile::P50, Percentile::P99].map(ratio);
    let engine = |row: &Disturbance| cell(row.line(Measure::Stage(Stage::OrchPreDispatch), Percentile::P99));
    let columns: [Column<'_, Disturbance>; 9] = [
        ("level", &|row| row.isolation.to_string()),
        ("the strategy does", &Disturbance::name),
        ("survived", &survived),
        ("steps", &|row| row.steps.map_or_else(|| "–".into(), |steps| short(steps as u64))),
        ("others p50 ×", &p50),
        ("others p99 ×", &p99),
        ("engine p99 ×", &engine),
        ("gaps/s", &long_gaps),
        ("verdict", &|row| describe(row, all)),
    ];
    let title =
        format!("{} of the others, and the engine's t2 to t3, against calm runs", all.endpoint.measure);
    Grid::from_rows("disturb", title, 2, &columns, &all.rows).note(MARKS).note(GAPS).note(WITHIN)
}

fn cell(line: Option<&ComparisonLine>) -> String {
    line.map_or_else(|| "–".into(), format_ratio)
}

/// Every figure of every row.
fn table(all: &Disturbances) -> Grid {
    let ratio = |measure: Measure, percentile| move |row: &Disturbance| cell(row.line(measure, percentile));
    let time = |percentile: Percentile| {
        move |row: &Disturbance| {
            let line = row.line(all.endpoint.measure(), percentile);
            duration_or_dash(line.and_then(|line| line.b_ns).map(|ns| ns as u64))
        }
    };
    let times = Percentile::ALL.map(time);
    let of_others = Percentile::ALL.map(|percentile| ratio(all.endpoint.measure(), percentile));
    let before = Percentile::ALL.map(|percentile| ratio(Measure::Stage(Stage::OrchPreDispatch), percentile));
    let after = Percentile::ALL.map(|percentile| ratio(Measure::Stage(Stage::OrchPostProcess), percentile));
    let columns: [Column<'_, Disturbance>; 22] = [
        ("level", &|row| row.isolation.to_string()),
        ("the strategy does", &Disturbance::name),
        ("technique", &|row| row.technique.to_string()),
        ("survived", &survived),
        ("runs", &|row| row.runs.to_string()),
        ("orders", &|row| short(row.orders)),
        ("steps", &|row| row.steps.map_or_else(|| "–".into(), |steps| short(steps as u64))),
        ("others p50", &times[0]),
        ("others p99", &times[1]),
        ("others p99.9", &times[2]),
        ("p50 ×", &of_others[0]),
        ("p99 ×", &of_others[1]),
        ("p99.9 ×", &of_others[2]),
        ("t2–t3 p50 ×", &before[0]),
        ("t2–t3 p99 ×", &before[1]),
        ("t2–t3 p99.9 ×", &before[2]),
        ("t6–t7 p50 ×", &after[0]),
        ("t6–t7 p99 ×", &after[1]),
        ("t6–t7 p99.9 ×", &after[2]),
        ("gaps/s", &long_gaps),
        ("ms/s lost to", &lost_time),
        ("verdict", &|row| describe(row, all)),
    ];
    let title = "What each disturbance does to the others, and to the engine, against calm runs";
    Grid::from_rows("disturb_full", title, 3, &columns, &all.rows).note(MARKS).note(GAPS).note(WITHIN)
}

/// The points of each level.
type LevelPoints = Vec<(IsolationLevel, Vec<ComparedPoint>)>;

/// Draws what disturbances add to the engine's own work and to the others, and returns a whole SVG
/// file: a panel for each, with a dot for each level. `None` if no row has enough pairs.
pub(super) fn disturbance_picture(all: &Disturbances) -> Option<String> {
    let measures = [Measure::Stage(Stage::OrchPreDispatch), all.endpoint.measure()];
    let each =
        measures.into_iter().flat_map(|measure| all.endpoint.percentiles().map(move |of| (measure, of)));
    let levels = distinct(all.rows.iter().filter_map(|row| row.isolation.only()));
    let points = |level: IsolationLevel, measure, percentile| -> Vec<ComparedPoint> {
        let rows =
            all.rows.iter().filter(|row| row.isolation.only() == Some(level) && row.refused.is_empty());
        let point = |row: &Disturbance| {
            let name = row.kind.name().trim_end_matches("-storm").to_owned();
            Some(ComparedPoint::of_line(row.line(measure, percentile)?, 0.0, name))
        };
        rows.filter_map(point).collect()
    };
    let drawn: Vec<(String, LevelPoints)> = each
        .map(|(measure, percentile)| {
            let whose = if measure == all.endpoint.measure() { "the others" } else { "the engine" };
            let name = format!("{whose}: {} {}", measure.name(), percentile.name());
            (name, levels.iter().map(|level| (*level, points(*level, measure, percentile))).collect())
        })
        .collect();
    let panels: Vec<PicturePanel<'_>> = drawn
        .iter()
        .map(|(name, levels)| PicturePanel {
            name: name.clone(),
            series: levels
                .iter()
                .map(|(level, points)| PictureSeries {
                    name: level.to_string(),
                    level: *level,
                    points: points.iter().collect(),
                })
                .collect(),
        })
        .collect();
    picture::draw("What a strategy adds to its neighbors, against calm runs", &panels)
}

fn chart(all: &Disturbances) -> Option<Markup> {
    let levels = distinct(all.rows.iter().map(|row| row.isolation.to_string()));
    let row = |row: &Disturbance| {
        let class =
            levels.iter().position(|level| *level == row.isolation.to_string()).map_or("c1", line_class);
        Some(interval_row(
            format!("{}, {}", row.name(), row.isolation),
            class,
            &others(row, all, Percentile::P99)?,
        ))
    };
    let rows: Vec<_> = all.rows.iter().filter_map(row).collect();
    let title = format!("{} p99 of the others against calm runs", all.endpoint.measure);
    interval_plot::draw("disturb-p99", &title, "ratio to calm (1: equal)", axis::NUMBER, Some(1.0), &rows)
}

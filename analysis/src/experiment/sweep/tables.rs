//! The tables of a sweep: a row for each condition, a column for each compared setting, the best of
//! a row in bold. The layout is that of the benchmark that this project started from.

use super::ranking::rank_points;
use crate::experiment::Axis;
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::experiment::time_unit::TimeUnit;
use crate::grouping::grouped;
use crate::stats::{Percentile, RunOutline, median, placement};
use record::numbers::{duration, percent, plain};
use std::collections::BTreeMap;
use verdict::summary::Measure;
use verdict::table::{Grid, GridRow};

/// Returns the tables of `rt_venue` at each percentile, stall-free as well if stalls are known.
pub(super) fn latency_tables(record: &ExperimentRuns) -> Vec<Grid> {
    let knows_stalls = record.runs().any(|run| run.outline.excluded_share().is_some());
    let mut grids = Vec::new();
    for percentile in Percentile::ALL {
        grids.push(percentile_table(record, Measure::RtVenue, percentile));
        if percentile != Percentile::P50 && knows_stalls {
            grids.push(percentile_table(record, Measure::StallFree, percentile));
        }
    }
    grids
}

/// Returns the axis that has the columns: the first one that is varied of those that are compared.
pub(super) fn across(record: &ExperimentRuns) -> Option<Axis> {
    Axis::ALL.iter().copied().find(|axis| axis.is_compared() && record.axis(*axis).is_some())
}

/// Returns the axes that have the rows: all others.
pub(super) fn down(record: &ExperimentRuns) -> Vec<Axis> {
    let across = across(record);
    record.axes.iter().map(|axis| axis.axis).filter(|axis| Some(*axis) != across).collect()
}

fn percentile_table(record: &ExperimentRuns, measure: Measure, percentile: Percentile) -> Grid {
    let is_free = measure == Measure::StallFree;
    let across = across(record);
    let value = |point: &Point| {
        across.map_or_else(|| "rt_venue".into(), |axis| point.values.get(&axis).cloned().unwrap_or_default())
    };
    // A technique without a point gets no column.
    let is_used = |column: &String| record.points.iter().any(|point| value(point) == *column);
    let columns = across.and_then(|axis| record.axis(axis)).map(|axis| axis.values.clone());
    let columns: Vec<String> = columns
        .map_or_else(|| vec!["rt_venue".into()], |values| values.into_iter().filter(is_used).collect());
    let down = down(record);
    let key = |point: &Point| {
        down.iter()
            .map(|axis| axis.format_value(point.values.get(axis).map_or("", String::as_str)))
            .collect::<Vec<_>>()
    };
    let rows = grouped(record.points.iter().map(|point| (key(point), (value(point), point))));
    let figure_of = |point: &Point| point.spread(|run| Some(percentile.get(&run.measure(measure))? as f64));
    let medians = record.points.iter().filter_map(figure_of).map(|spread| spread.median);
    let unit = TimeUnit::for_durations(medians);
    let (mut widest, mut counts) = (None::<f64>, Vec::new());
    let mut row = |(mut key, points): (Vec<String>, Vec<(String, &Point)>)| {
        let points: BTreeMap<String, &Point> = points.into_iter().collect();
        let work = down.iter().position(|axis| *axis == Axis::Work).and_then(|index| key.get_mut(index));
        if let Some((work, done)) = work.zip(work_done(points.values())) {
            work.push_str(&format!(" ({done:.0} done)"));
        }
        let mut figure = |column: &String| {
            let point = points.get(column)?;
            let spread = figure_of(point)?;
            let share = if spread.median > 0.0 { (spread.high - spread.low) / spread.median } else { 0.0 };
            widest = Some(widest.unwrap_or(0.0).max(share));
            counts.push(point.usable_runs().count());
            Some(spread.median)
        };
        let figures: Vec<Option<f64>> = columns.iter().map(&mut figure).collect();
        // A lowest median alone may be chance: every other setting has to be slower.
        let rivals: Vec<&Point> = columns.iter().filter_map(|column| points.get(column).copied()).collect();
        let winner = rank_points(&rivals, measure, percentile).filter(|(_, ranking)| ranking.is_shown());
        let winner = winner.map(|(known, ranking)| value(known[ranking.lowest]));
        let best = columns.iter().position(|column| Some(column) == winner.as_ref()).map(|at| at + key.len());
        let cell = |(column, ns): (&String, &Option<f64>)| {
            let out = points.get(column).filter(|_| is_free).and_then(|point| excluded_share(point));
            let on = out.map_or_else(String::new, |share| format!(" on {:.0} %", (1.0 - share) * 100.0));
            ns.map_or_else(|| "–".into(), |ns| unit.format(ns) + &on)
        };
        let cells = columns.iter().zip(&figures).map(cell);
        GridRow { cells: key.into_iter().chain(cells).collect(), best: best.into_iter().collect() }
    };
    let rows: Vec<GridRow> = rows.into_iter().map(&mut row).collect();
    let head = |axis: &Axis| axis.entry().head.unwrap_or(axis.name()).to_owned();
    let mut notes = vec![match widest {
        Some(widest) => format!("{}; {}", repeats_note(&counts, record.repeats), spread_note(widest)),
        None => format!("too few orders for a {}", percentile.name()),
    }];
    if is_free {
        notes.push(
            "stall-free: of the orders that no stall of the machine touched, on N % of all orders".into(),
        );
    }
    if columns.len() > 1 {
        notes.push("bold: every other setting of the row is slower, by its 95 % interval".into());
    }
    let free = if is_free { "stall-free " } else { "" };
    let name = format!("{}_{}", measure.name(), percentile.name().replace('.', ""));
    let title = format!("{free}rt_venue {}, {}", percentile.name(), unit.name());
    let head = down.iter().map(head).chain(columns.iter().cloned());
    Grid { notes, ..Grid::new(name, title, down.len(), head, rows) }
}

/// The share of orders that stalls touched: the median over the usable runs.
fn excluded_share(point: &Point) -> Option<f64> {
    median(&point.usable_runs().filter_map(RunOutline::excluded_share).collect::<Vec<_>>())
}

/// What the extra work took, in nanoseconds: the median over the usable runs.
fn work_done<'a>(points: impl Iterator<Item = &'a &'a Point>) -> Option<f64> {
    let runs = points.flat_map(|point| point.usable_runs());
    median(&runs.filter_map(|run| run.work_done_ns.filter(|done| *done > 0.0)).collect::<Vec<_>>())
}

/// Over how many repeats the figures are medians: the measured ones, not the requested ones.
fn repeats_note(counts: &[usize], asked: u32) -> String {
    let (min, max) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    let of =
        if max == asked as usize && min == max { String::new() } else { format!(", of {asked} asked for") };
    match (min, max) {
        (1, 1) => format!("of one run each{of}: no winner is marked"),
        (least, most) if least == most => format!("median over {most} repeats{of}"),
        (least, most) => format!("median over {least} to {most} repeats{of}"),
    }
}

/// How far the repeats of one point lie apart at most, as a share of their median.
fn spread_note(share: f64) -> String {
    if share <= 1.0 {
        return format!("they lie up to {} apart ((max − min) / median)", percent(Some(share)));
    }
    format!(
        "they lie far apart: slowest and fastest run of one setting differ by {} times the median, so something else held one up",
        plain(share)
    )
}

/// rt_venue p50 of every point in groups of its runs, whose number `group` returns.
fn in_groups(
    record: &ExperimentRuns,
    (name, title, note): (&str, &str, &str),
    heads: &[String],
    group: impl Fn(&RunOutline) -> Option<usize>,
) -> Grid {
    let figures_of = |point: &Point| -> Vec<(usize, Option<f64>)> {
        let group_of = |wanted| {
            let here = point.runs.iter().map(|run| &run.outline).filter(|run| group(run) == Some(wanted));
            let figures: Vec<Option<u64>> = here.map(|run| run.measure(Measure::RtVenue).p50_ns).collect();
            let known: Option<Vec<f64>> = figures.iter().map(|ns| ns.map(|ns| ns as f64)).collect();
            (figures.len(), known.and_then(|known| median(&known)))
        };
        (0..heads.len()).map(group_of).collect()
    };
    let unit = TimeUnit::for_durations(record.points.iter().flat_map(figures_of).filter_map(|(_, ns)| ns));
    let row = |point: &Point| {
        let keys = record
            .axes
            .iter()
            .map(|axis| axis.axis.format_value(point.values.get(&axis.axis).map_or("", String::as_str)));
        let cells = figures_of(point).into_iter();
        let cells = cells.flat_map(|(runs, ns)| [runs.to_string(), unit.format_or_dash(ns)]);
        GridRow::plain(keys.chain(cells).collect())
    };
    let pairs = heads.iter().flat_map(|head| ["runs".to_owned(), head.clone()]);
    let head = record.axes.iter().map(|axis| axis.axis.to_string()).chain(pairs);
    let title = format!("{title}, {}", unit.name());
    Grid::new(name, title, record.axes.len(), head, record.points.iter().map(row)).note(note)
}

/// Returns `rt_venue` by placement of the cores, which their core-to-core round trip (the floor of
/// a hand-off) tells apart. `None` if they were in one place.
pub(super) fn by_placement(record: &ExperimentRuns) -> Option<Grid> {
    let runs = record.runs().map(|run| &run.outline);
    let steady: Vec<&RunOutline> = runs.filter(|run| run.is_usable() && !placement::has_moved(run)).collect();
    let places = placement::placements(&steady);
    let highest = places.iter().max().copied().filter(|highest| *highest > 0)?;
    let floor = |placement: usize| {
        let here = steady.iter().zip(&places).filter(|(_, other)| **other == placement);
        let usual = median(&here.filter_map(|(run, _)| placement::core_rtt(run)).collect::<Vec<_>>());
        usual.map_or_else(|| "floor not known".into(), |ns| format!("floor {}", duration(ns as u64)))
    };
    let heads: Vec<String> = (0..=highest).map(floor).collect();
    let note = format!(
        "floor: the round trip of one cache line between two cores; runs whose floors lie within {} are of one placement",
        percent(Some(placement::CORE_RTT_TOLERANCE))
    );
    let title = "rt_venue p50 by where the machine had its cores";
    let placement_of = |run: &RunOutline| {
        steady.iter().position(|other| std::ptr::eq::<RunOutline>(*other, run)).map(|at| places[at])
    };
    Some(in_groups(record, ("by_floor", title, &note), &heads, placement_of))
}

/// Returns `rt_venue` of each point by host; `None` if one host measured all.
pub(super) fn by_host(record: &ExperimentRuns) -> Option<Grid> {
    let usable: Vec<&RunOutline> = record.points.iter().flat_map(Point::usable_runs).collect();
    let hosts = placement::hosts(&usable);
    let note =
        "hosts are not compared with each other: launcher compare compares within each and combines them";
    let names: Vec<String> = hosts.iter().map(|host| host.hostname.clone()).collect();
    let host = |run: &RunOutline| hosts.iter().position(|host| run.is_usable() && run.machine == **host);
    (hosts.len() > 1).then(|| in_groups(record, ("by_host", "rt_venue p50 by host", note), &names, host))
}

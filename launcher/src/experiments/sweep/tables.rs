//! The three tables of a sweep: rt_venue p50, p99 and p99.9 in microseconds, in the layout of the seed benchmark:
//! a row for each condition, a column for each of what is compared, the best of a row in bold.

use crate::experiments::axes::Axis;
use analysis::experiment::{SweepPoint, SweepRecord};
use analysis::report::grid::{Grid, GridRow};
use analysis::report::units::{percent, plain};
use analysis::stats::{Outline, Percentile, median, spread, values};
use analysis::summary::Measure;
use analysis::units::Nanos;
use std::collections::BTreeMap;

/// The tables of a sweep.
pub(super) fn rt_venue(record: &SweepRecord) -> Vec<Grid> {
    Percentile::ALL.into_iter().map(|percentile| of(record, percentile)).collect()
}

fn of(record: &SweepRecord, percentile: Percentile) -> Grid {
    // The first one that is varied of those that are compared.
    let column_axis = Axis::ALL.into_iter().find(|axis| axis.is_compared() && record.axis(*axis).is_some());
    let columns = column_axis.and_then(|axis| record.axis(axis)).map(|axis| axis.values.clone());
    // A technique that no point has is no column.
    let used = |value: &String| {
        record.points.iter().any(|point| column_axis.and_then(|axis| point.values.get(&axis)) == Some(value))
    };
    let columns: Vec<String> =
        columns.map_or_else(|| vec!["rt_venue".into()], |values| values.into_iter().filter(used).collect());
    let row_axes: Vec<Axis> =
        record.axes.iter().map(|axis| axis.axis).filter(|axis| Some(*axis) != column_axis).collect();
    let mut rows: Vec<(Vec<String>, BTreeMap<String, &SweepPoint>)> = Vec::new();
    for point in &record.points {
        let key = row_axes.iter().map(|axis| shown(*axis, &point.values[axis])).collect::<Vec<_>>();
        let column = column_axis.map_or_else(|| "rt_venue".into(), |axis| point.values[&axis].clone());
        match rows.iter_mut().find(|(other, _)| *other == key) {
            Some((_, cells)) => drop(cells.insert(column, point)),
            None => rows.push((key, BTreeMap::from([(column, point)]))),
        }
    }
    let mut widest: Option<f64> = None;
    let mut grid_rows = Vec::new();
    for (mut key, points) in rows {
        let work = row_axes.iter().position(|axis| *axis == Axis::Work).and_then(|place| key.get_mut(place));
        if let Some((work, done)) = work.zip(work_done(points.values())) {
            work.push_str(&format!(" ({done:.0} done)"));
        }
        let figures: Vec<Option<f64>> = columns
            .iter()
            .map(|column| {
                let values = figures(points.get(column)?, percentile)?;
                widest = Some(widest.unwrap_or(0.0).max(spread(&values).unwrap_or(0.0)));
                median(&values)
            })
            .collect();
        let least = figures.iter().flatten().copied().reduce(f64::min).filter(|_| columns.len() > 1);
        let key_columns = key.len();
        let cells = key.into_iter().chain(figures.iter().map(|ns| micros(*ns))).collect();
        let best = figures.iter().position(|ns| least.is_some() && *ns == least).map(|at| at + key_columns);
        grid_rows.push(GridRow { cells, best: best.into_iter().collect() });
    }
    let heads =
        row_axes.iter().map(|axis| if *axis == Axis::Work { "orch_work" } else { axis.name() }.to_owned());
    Grid {
        name: format!("rt_venue_{}", percentile.name().replace('.', "")),
        title: format!("rt_venue {}, microseconds", percentile.name()),
        head: heads.chain(columns).collect(),
        keys: row_axes.len(),
        rows: grid_rows,
        notes: vec![match widest {
            Some(widest) => format!(
                "median over {} repeats; they lie up to {} apart ((max − min) / median)",
                record.repeats,
                percent(Some(widest)),
            ),
            None => format!("too few orders for a {}", percentile.name()),
        }],
    }
}

/// What the extra work took, in nanoseconds: the median over the sound runs. `None` where there was none.
fn work_done<'a>(points: impl Iterator<Item = &'a &'a SweepPoint>) -> Option<f64> {
    let runs = points.flat_map(|point| &point.runs).map(|run| &run.outline);
    let done: Vec<f64> = runs
        .filter(|run| run.is_sound())
        .filter_map(|run| run.work_done_ns.filter(|done| *done > 0.0))
        .collect();
    median(&done)
}

/// The figures of a point's sound runs. `None` if there is none, or one lacks the percentile.
fn figures(point: &SweepPoint, percentile: Percentile) -> Option<Vec<f64>> {
    let runs: Vec<&Outline> =
        point.runs.iter().map(|run| &run.outline).filter(|outline| outline.is_sound()).collect();
    values(&runs, Measure::RtVenue, percentile).filter(|values| !values.is_empty())
}

/// Microseconds with one decimal, as the seed benchmark prints them.
pub(crate) fn micros(ns: Option<f64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| format!("{:.1}", ns / 1000.0))
}

/// A value of an axis as a table shows it: work in nanoseconds, as the seed benchmark has it; rates in full.
pub(super) fn shown(axis: Axis, text: &str) -> String {
    match axis {
        Axis::Work => text.parse::<Nanos>().map_or_else(|_| text.into(), |work| format!("{} ns", work.0)),
        Axis::Rate => text
            .parse::<analysis::units::Count>()
            .map_or_else(|_| text.into(), |rate| format!("{}/s", plain(rate.0 as f64))),
        _ => text.into(),
    }
}

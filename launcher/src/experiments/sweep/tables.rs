//! The tables of a sweep: rt_venue p50, p99 and p99.9 in microseconds, in the layout of the seed benchmark: a row for each condition,
//! a column for each of what is compared, the best of a row in bold. Behind p99 and p99.9 the same without the machine's stalls.

use crate::experiments::axes::Axis;
use analysis::experiment::{SweepPoint, SweepRecord};
use analysis::report::grid::{Grid, GridRow};
use analysis::report::units::{duration, percent, plain};
use analysis::stats::{Outline, Percentile, median, placement, spread, values};
use analysis::summary::Measure;
use analysis::units::Nanos;
use std::collections::BTreeMap;

/// The tables of a sweep.
pub(super) fn rt_venue(record: &SweepRecord) -> Vec<Grid> {
    let of = |percentile| {
        let free = (percentile != Percentile::P50).then_some(Measure::StallFree);
        // Nobody looked for stalls: no table of dashes.
        let free = free.filter(|_| record.runs().any(|run| run.outline.taken_out().is_some()));
        [Some(Measure::RtVenue), free]
            .into_iter()
            .flatten()
            .map(move |measure| of(record, measure, percentile))
    };
    Percentile::ALL.into_iter().flat_map(of).collect()
}

fn of(record: &SweepRecord, measure: Measure, percentile: Percentile) -> Grid {
    let is_free = measure == Measure::StallFree;
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
    let mut counts: Vec<usize> = Vec::new();
    let mut grid_rows = Vec::new();
    for (mut key, points) in rows {
        let work = row_axes.iter().position(|axis| *axis == Axis::Work).and_then(|place| key.get_mut(place));
        if let Some((work, done)) = work.zip(work_done(points.values())) {
            work.push_str(&format!(" ({done:.0} done)"));
        }
        let figures: Vec<Option<f64>> = columns
            .iter()
            .map(|column| {
                let values = figures(points.get(column)?, measure, percentile)?;
                widest = Some(widest.unwrap_or(0.0).max(spread(&values).unwrap_or(0.0)));
                counts.push(values.len());
                median(&values)
            })
            .collect();
        // One run wins by chance: nothing stands out where a figure is of one alone.
        let several = columns.iter().filter_map(|column| points.get(column)).all(|point| sound(point) > 1);
        let least =
            figures.iter().flatten().copied().reduce(f64::min).filter(|_| columns.len() > 1 && several);
        let key_columns = key.len();
        let cell = |(column, ns): (&String, &Option<f64>)| {
            let out = points.get(column).filter(|_| is_free).and_then(|point| taken_out(point));
            let out = out.map_or_else(String::new, |share| format!(" −{:.0} %", share * 100.0));
            micros(*ns) + &out
        };
        let cells = key.into_iter().chain(columns.iter().zip(&figures).map(cell)).collect();
        let best = figures.iter().position(|ns| least.is_some() && *ns == least).map(|at| at + key_columns);
        grid_rows.push(GridRow { cells, best: best.into_iter().collect() });
    }
    let heads =
        row_axes.iter().map(|axis| if *axis == Axis::Work { "orch_work" } else { axis.name() }.to_owned());
    Grid {
        name: format!("{}_{}", measure.name(), percentile.name().replace('.', "")),
        title: match is_free {
            true => {
                format!("the same without the machine's stalls: rt_venue {}, microseconds", percentile.name())
            }
            false => format!("rt_venue {}, microseconds", percentile.name()),
        },
        head: heads.chain(columns).collect(),
        keys: row_axes.len(),
        rows: grid_rows,
        notes: [match widest {
            Some(widest) => format!("{}; {}", over(&counts, record.repeats), apart(widest),),
            None => format!("too few orders for a {}", percentile.name()),
        }]
        .into_iter()
        .chain(
            is_free
                .then(|| "beside it the share of the orders that a stall touched: they are taken out".into()),
        )
        .collect(),
    }
}

/// The share of a point's orders that stalls of the machine touched: the median over its sound runs.
fn taken_out(point: &SweepPoint) -> Option<f64> {
    let sound = point.runs.iter().map(|run| &run.outline).filter(|run| run.is_sound());
    median(&sound.filter_map(Outline::taken_out).collect::<Vec<_>>())
}

/// Over how many repeats the figures are medians: what was measured, not what was asked for.
fn over(counts: &[usize], asked: u32) -> String {
    let (least, most) =
        (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    match (least, most) {
        (1, 1) if asked == 1 => "of one run each: no winner is marked".into(),
        (1, 1) => format!("of one run each, of {asked} asked for: no winner is marked"),
        (least, most) if least == most && most == asked as usize => format!("median over {most} repeats"),
        (least, most) if least == most => format!("median over {most} repeats, of {asked} asked for"),
        (least, most) => format!("median over {least} to {most} repeats, of {asked} asked for"),
    }
}

/// How far the repeats of one point lie apart at most, as a share of their median.
fn apart(share: f64) -> String {
    if share <= 1.0 {
        return format!("they lie up to {} apart ((max − min) / median)", percent(Some(share)));
    }
    format!(
        "they lie far apart: slowest and fastest run of one setting differ by {} times the median, so something else held one up",
        plain(share)
    )
}

fn sound(point: &SweepPoint) -> usize {
    point.runs.iter().filter(|run| run.outline.is_sound()).count()
}

/// rt_venue where the machine had its cores near to each other and where far: of every point, a column for each placement. `None`:
/// it had them in one place.
pub(super) fn by_floor(record: &SweepRecord) -> Option<Grid> {
    let runs = || record.points.iter().flat_map(|point| &point.runs).map(|run| &run.outline);
    let steady: Vec<&Outline> = runs().filter(|run| run.is_sound() && !placement::moved(run)).collect();
    let places = placement::placements(&steady);
    let highest = places.iter().max().copied().filter(|highest| *highest > 0)?;
    let of = |wanted: usize| {
        steady.iter().zip(&places).filter(move |(_, place)| **place == wanted).map(|(run, _)| *run)
    };
    let floor = |place: usize| {
        let floors: Vec<f64> = of(place).filter_map(placement::floor).collect();
        median(&floors)
            .map_or_else(|| "floor not known".into(), |ns| format!("floor {}", duration(ns as u64)))
    };
    let row = |point: &SweepPoint| {
        let key = record.axes.iter().map(|axis| shown(axis.axis, &point.values[&axis.axis]));
        let cells = (0..=highest).flat_map(|place| {
            let here: Vec<&Outline> = of(place)
                .filter(|run| point.runs.iter().any(|own| std::ptr::eq(&raw const own.outline, *run)))
                .collect();
            let usual = values(&here, Measure::RtVenue, Percentile::P50).and_then(|values| median(&values));
            [here.len().to_string(), micros(usual)]
        });
        GridRow::plain(key.chain(cells).collect())
    };
    let heads = (0..=highest).flat_map(|place| ["runs".to_owned(), floor(place)]);
    Some(Grid {
        name: "by_floor".into(),
        title: "rt_venue p50 by where the machine had its cores, microseconds".into(),
        head: record.axes.iter().map(|axis| axis.axis.name().to_owned()).chain(heads).collect(),
        keys: record.axes.len(),
        rows: record.points.iter().map(row).collect(),
        notes: vec![format!(
            "floor: the round trip of one cache line between two cores; runs whose floors lie within {} are of one placement",
            percent(Some(placement::FLOOR_TOLERANCE))
        )],
    })
}

/// rt_venue of every point on each host that measured it. `None`: one host measured all.
pub(super) fn by_host(record: &SweepRecord) -> Option<Grid> {
    let sound = |point: &SweepPoint| -> Vec<Outline> {
        point.outlines().into_iter().filter(Outline::is_sound).collect()
    };
    let all: Vec<Outline> = record.points.iter().flat_map(sound).collect();
    let hosts = placement::hosts(&all.iter().collect::<Vec<_>>());
    (hosts.len() > 1).then_some(())?;
    let row = |point: &SweepPoint| {
        let key = record.axes.iter().map(|axis| shown(axis.axis, &point.values[&axis.axis]));
        let runs = sound(point);
        let cells = hosts.iter().flat_map(|host| {
            let here: Vec<&Outline> = runs.iter().filter(|run| run.machine == **host).collect();
            let usual = values(&here, Measure::RtVenue, Percentile::P50).and_then(|values| median(&values));
            [here.len().to_string(), micros(usual)]
        });
        GridRow::plain(key.chain(cells).collect())
    };
    let heads = hosts.iter().flat_map(|host| ["runs".to_owned(), host.hostname.clone()]);
    Some(Grid {
        name: "by_host".into(),
        title: "rt_venue p50 by host, microseconds".into(),
        head: record.axes.iter().map(|axis| axis.axis.name().to_owned()).chain(heads).collect(),
        keys: record.axes.len(),
        rows: record.points.iter().map(row).collect(),
        notes: vec![
            "hosts are not compared with each other: launcher compare compares within each and combines them"
                .into(),
        ],
    })
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
fn figures(point: &SweepPoint, measure: Measure, percentile: Percentile) -> Option<Vec<f64>> {
    let runs: Vec<&Outline> =
        point.runs.iter().map(|run| &run.outline).filter(|outline| outline.is_sound()).collect();
    values(&runs, measure, percentile).filter(|values| !values.is_empty())
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

//! Where queueing sets in: measured waiting at the orchestrator beside M/D/1, over a sweep's work or rate.

use super::tables::{micros, shown};
use crate::experiments::axes::Axis;
use analysis::experiment::{SweepPoint, SweepRecord};
use analysis::report::grid::{Grid, GridRow};
use analysis::report::units::{percent, plain};
use analysis::stats::{Outline, md1, median};
use analysis::summary::Measure;
use protocol::flow::Stage;
use std::collections::BTreeMap;

/// Of one point, medians over its repeats.
struct Load {
    offered_per_s: f64,
    achieved_per_s: f64,
    utilisation: f64,
    measured_ns: f64,
    predicted_ns: Option<f64>,
}

/// The table of a sweep over work or rate; `None` for another sweep, or where utilisation was not measured.
pub(super) fn knee(record: &SweepRecord) -> Option<Grid> {
    let swept = [Axis::Work, Axis::Rate].map(|axis| record.axis(axis).is_some());
    (swept[0] || swept[1]).then_some(())?;
    let loads: Vec<(&SweepPoint, Load)> =
        record.points.iter().filter_map(|point| Some((point, load(point)?))).collect();
    (!loads.is_empty()).then_some(())?;
    // One curve for each of what is compared; the quietest point of a curve is where its waiting is counted from.
    let curve = |point: &SweepPoint| -> BTreeMap<Axis, String> {
        point
            .values
            .clone()
            .into_iter()
            .filter(|(axis, _)| !matches!(axis, Axis::Work | Axis::Rate))
            .collect()
    };
    let quietest = |of: &BTreeMap<Axis, String>| {
        let same = loads.iter().filter(|(point, _)| curve(point) == *of);
        same.map(|(_, load)| load).min_by(|a, b| a.utilisation.total_cmp(&b.utilisation))
    };
    let mut rows = Vec::new();
    for (point, load) in &loads {
        let base = quietest(&curve(point));
        let above = |of: fn(&Load) -> Option<f64>| Some(of(load)? - of(base?)?);
        let keys = record.axes.iter().map(|axis| shown(axis.axis, &point.values[&axis.axis]));
        // Work changes the service time, so each amount has a saturation of its own; rates lie on one line.
        let line = || point.values.iter().filter(|(axis, _)| **axis != Axis::Rate);
        let same = loads.iter().filter(|(other, _)| line().all(|(axis, value)| other.values[axis] == *value));
        let places: Vec<(f64, f64)> = same.map(|(_, load)| (load.achieved_per_s, load.utilisation)).collect();
        let figures = [
            plain(load.achieved_per_s),
            percent(Some(load.utilisation)),
            micros(Some(load.measured_ns)),
            micros(above(|load| Some(load.measured_ns))),
            micros(above(|load| load.predicted_ns).filter(|_| load.utilisation >= md1::LEAST_RHO)),
            md1::saturation_per_s(&places).map_or_else(|| "–".into(), |rate| format!("{}/s", plain(rate))),
        ];
        rows.push(GridRow::plain(keys.chain(figures).collect()));
    }
    let behind = loads.iter().filter(|(_, load)| load.achieved_per_s < load.offered_per_s * 0.99).count();
    let mut notes = vec![
        "waiting: mean submit + mean completion; above: less that of the quietest point of its curve, in which \
         only the transport is left; M/D/1: the same from 2·ρ·s/(2·(1−ρ)), s = ρ/2λ, at the measured ρ; below ρ = 20% it says nothing"
            .into(),
        "saturates: the offered rate at which ρ would be 1, by the straight line through all rates of its setting; it \
         needs two rates, and one with ρ ≥ 20%"
            .into(),
    ];
    if behind > 0 {
        notes.push(format!("at {behind} of {} points the senders fell behind the offered rate", loads.len()));
    }
    let heads = ["sent/s", "ρ", "waiting", "above", "M/D/1", "saturates"].map(str::to_owned);
    Some(Grid {
        name: "knee".into(),
        title: "waiting at the orchestrator, mean, microseconds".into(),
        head: record.axes.iter().map(|axis| axis.axis.name().to_owned()).chain(heads).collect(),
        keys: record.axes.len(),
        rows,
        notes,
    })
}

fn load(point: &SweepPoint) -> Option<Load> {
    let runs: Vec<&Outline> =
        point.runs.iter().map(|run| &run.outline).filter(|outline| outline.is_sound()).collect();
    let middle = |of: &dyn Fn(&Outline) -> Option<f64>| {
        median(&runs.iter().map(|run| of(run)).collect::<Option<Vec<_>>>()?)
    };
    let achieved_per_s = middle(&|run| run.achieved_per_s)?;
    let utilisation = middle(&|run| run.utilisation)?;
    let waiting = |run: &Outline| {
        Some(
            run.measure(Measure::Stage(Stage::Submit)).mean_ns?
                + run.measure(Measure::Stage(Stage::Completion)).mean_ns?,
        )
    };
    Some(Load {
        offered_per_s: middle(&|run| run.offered_per_s.or(run.achieved_per_s))?,
        achieved_per_s,
        utilisation,
        measured_ns: middle(&waiting)?,
        predicted_ns: md1::order_wait_ns(utilisation, achieved_per_s),
    })
}

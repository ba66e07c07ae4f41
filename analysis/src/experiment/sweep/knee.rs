//! The saturation of the orchestrator in a sweep over work or rate: its measured waits next to
//! those of M/D/1, and the rate at which queueing begins to dominate latency.

use super::tables::axis_values;
use super::{SweepPoint, SweepRecord};
use crate::experiment::Axis;
use crate::experiment::time_unit::TimeUnit;
use crate::numbers::{percent, plain};
use crate::stats::{RunOutline, md1};
use crate::summary::Measure;
use crate::table::{Grid, GridRow};
use protocol::flow::Stage;

/// The load of one point: medians over its repeats.
struct PointLoad {
    offered_per_s: f64,
    achieved_per_s: f64,
    utilisation: f64,
    measured_ns: f64,
    predicted_ns: Option<f64>,
}

/// Returns the mean time in both stages that wait for the orchestrator, added up, in nanoseconds.
pub(super) fn mean_wait_ns(run: &RunOutline) -> Option<f64> {
    let mean = |stage| run.measure(Measure::Stage(stage)).mean_ns;
    Some(mean(Stage::Submit)? + mean(Stage::Completion)?)
}

/// Returns the table of a sweep over work or rate; `None` for another sweep, or if utilization was
/// not measured.
pub(super) fn knee(record: &SweepRecord) -> Option<Grid> {
    [Axis::Work, Axis::Rate].iter().any(|axis| record.axis(*axis).is_some()).then_some(())?;
    let loads: Vec<(&SweepPoint, PointLoad)> =
        record.points.iter().filter_map(|point| Some((point, point_load(point)?))).collect();
    (!loads.is_empty()).then_some(())?;
    let unit = TimeUnit::for_durations(loads.iter().map(|(_, load)| load.measured_ns));
    // Points that differ in nothing but these axes.
    let alike = |point: &SweepPoint, but: &[Axis]| -> Vec<&PointLoad> {
        let is_alike = |other: &SweepPoint| {
            point.values.iter().all(|(axis, value)| but.contains(axis) || other.values[axis] == *value)
        };
        loads.iter().filter(|(other, _)| is_alike(other)).map(|(_, load)| load).collect()
    };
    let row = |(point, load): &(&SweepPoint, PointLoad)| {
        // One curve for each of what is compared; its quietest point is where its waiting is
        // counted from.
        let curve = alike(point, &[Axis::Work, Axis::Rate]);
        let base = curve.into_iter().min_by(|a, b| a.utilisation.total_cmp(&b.utilisation));
        let above = |of: fn(&PointLoad) -> Option<f64>| Some(of(load)? - of(base?)?);
        // Work changes the service time, so each amount has a saturation of its own; rates lie on
        // one line.
        let line = alike(point, &[Axis::Rate]);
        let line: Vec<_> = line.iter().map(|load| (load.achieved_per_s, load.utilisation)).collect();
        let saturates = md1::saturation_per_s(&line);
        let figures = [
            plain(load.achieved_per_s),
            percent(Some(load.utilisation)),
            unit.format_or_dash(Some(load.measured_ns)),
            unit.format_or_dash(above(|load| Some(load.measured_ns))),
            unit.format_or_dash(above(|load| load.predicted_ns).filter(|_| load.utilisation >= md1::MIN_RHO)),
            saturates.map_or_else(|| "–".into(), |rate| format!("{}/s", plain(rate))),
        ];
        GridRow::plain(axis_values(record, point).into_iter().chain(figures).collect())
    };
    let heads = ["sent/s", "ρ", "waiting", "above", "M/D/1", "saturates"].map(str::to_owned);
    let grid = Grid {
        name: "knee".into(),
        title: format!("waiting at the orchestrator, mean, {}", unit.name()),
        head: record.axes.iter().map(|axis| axis.axis.to_string()).chain(heads).collect(),
        keys: record.axes.len(),
        rows: loads.iter().map(row).collect(),
        notes: Vec::new(),
    }
    .note(
        "waiting: mean submit + mean completion; above: less that of the quietest point of its curve, in which only the transport is \
         left; M/D/1: the same from 2·ρ·s/(2·(1−ρ)), s = ρ/2λ, at the measured ρ; below ρ = 20% it says nothing",
    )
    .note(
        "saturates: the offered rate at which ρ would be 1, by the straight line through all rates of its setting; it needs two rates, \
         and one with ρ ≥ 20%",
    );
    let behind = loads.iter().filter(|(_, load)| load.achieved_per_s < load.offered_per_s * 0.99).count();
    Some(match behind {
        0 => grid,
        behind => grid
            .note(format!("at {behind} of {} points the senders fell behind the offered rate", loads.len())),
    })
}

fn point_load(point: &SweepPoint) -> Option<PointLoad> {
    let middle = |of: &dyn Fn(&RunOutline) -> Option<f64>| Some(point.spread(of)?.median);
    let (achieved_per_s, utilisation) = (middle(&|run| run.achieved_per_s)?, middle(&|run| run.utilization)?);
    Some(PointLoad {
        offered_per_s: middle(&|run| run.offered_per_s.or(run.achieved_per_s))?,
        achieved_per_s,
        utilisation,
        measured_ns: middle(&mean_wait_ns)?,
        predicted_ns: md1::order_wait_ns(utilisation, achieved_per_s),
    })
}

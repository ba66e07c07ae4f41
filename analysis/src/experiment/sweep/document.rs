//! The answer of a sweep for programs: its document, the tables of `rt_venue`, the figures of each
//! point, and the queueing knee.

use super::charts::engine_latency;
use super::knee::{self, KneeLine};
use super::tables::{across, down};
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::experiment::{Axis, Experiment};
use crate::grouping::grouped;
use crate::stats::{OpenOrdersCheck, Percentile, RunOutline, Spread};
use record::document::{Document, answer_json};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct SweepAnswer<'a> {
    #[serde(flatten)]
    experiment: &'a Experiment,
    /// A table for each percentile, in the shape of the seed benchmark's: a row for each amount of
    /// work, a column for each technique.
    tables: Vec<PercentileTable>,
    /// Every combination of settings.
    points: Vec<PointFigures>,
    /// Waiting for the orchestrator, a line for each setting; empty without work or rates.
    knee: Vec<KneeLine>,
}

/// Medians of `rt_venue` at one percentile.
#[derive(Serialize)]
struct PercentileTable {
    name: String,
    percentile: Percentile,
    /// The axis of the columns; null if nothing is compared.
    across: Option<Axis>,
    columns: Vec<String>,
    rows: Vec<TableRow>,
}

#[derive(Serialize)]
struct TableRow {
    /// The value on each axis that has rows.
    values: BTreeMap<Axis, String>,
    /// The median over the repeats in each column, in nanoseconds; null if not measured.
    medians_ns: Vec<Option<f64>>,
}

/// Median, minimum and maximum over the usable repeats of a point.
#[derive(Serialize)]
struct SpreadFigures {
    median: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct PointFigures {
    name: String,
    values: BTreeMap<Axis, String>,
    /// Complete and valid runs, and those of them that are fit for latency claims.
    runs: usize,
    fit: usize,
    /// Whether threads shared a core in one of the runs, and whether all were pinned.
    oversubscribed: bool,
    pinned: bool,
    /// Pushes that found a ring full, in all runs together; null if not known.
    full: Option<u64>,
    /// Mean open orders of each run: sampled, and by Little's law.
    open_orders: Vec<OpenOrdersCheck>,
    rt_venue_p50_ns: Option<SpreadFigures>,
    rt_venue_p99_ns: Option<SpreadFigures>,
    rt_venue_p999_ns: Option<SpreadFigures>,
    /// The 99th percentile less the measured work.
    p99_latency_minus_work_ns: Option<SpreadFigures>,
    utilization: Option<SpreadFigures>,
}

/// Returns the answer of a sweep as JSON.
pub(super) fn json(experiment: &Experiment, sweep: &ExperimentRuns) -> serde_json::Result<Vec<u8>> {
    let answer = SweepAnswer {
        experiment,
        tables: Percentile::ALL.map(|percentile| table(sweep, percentile)).into(),
        points: sweep.points.iter().map(point_figures).collect(),
        knee: knee::lines(sweep),
    };
    answer_json(&Experiment::schema(), &answer)
}

fn spread(point: &Point, of: impl Fn(&RunOutline) -> Option<f64>) -> Option<SpreadFigures> {
    point.spread(of).map(|Spread { median, low, high }| SpreadFigures { median, low, high })
}

fn table(sweep: &ExperimentRuns, percentile: Percentile) -> PercentileTable {
    let (across, down) = (across(sweep), down(sweep));
    let columns = across.and_then(|axis| sweep.axis(axis)).map(|record| record.values.clone());
    let columns = columns.unwrap_or_else(|| vec!["rt_venue".into()]);
    let key = |point: &Point| -> BTreeMap<Axis, String> {
        down.iter().filter_map(|axis| Some((*axis, point.values.get(axis)?.clone()))).collect()
    };
    let row = |(values, points): (BTreeMap<Axis, String>, Vec<&Point>)| {
        let of = |column: &String| {
            let point = points
                .iter()
                .find(|point| across.is_none_or(|axis| point.values.get(&axis) == Some(column)))?;
            Some(point.spread(|run| engine_latency(run, percentile))?.median)
        };
        TableRow { values, medians_ns: columns.iter().map(of).collect() }
    };
    let rows = grouped(sweep.points.iter().map(|point| (key(point), point)));
    PercentileTable {
        name: format!("rt_venue_{}", percentile.name().replace('.', "")),
        percentile,
        across,
        rows: rows.into_iter().map(row).collect(),
        columns,
    }
}

fn point_figures(point: &Point) -> PointFigures {
    let at = |percentile| spread(point, move |run| engine_latency(run, percentile));
    let [rt_venue_p50_ns, rt_venue_p99_ns, rt_venue_p999_ns] = Percentile::ALL.map(at);
    PointFigures {
        name: point.name.clone(),
        values: point.values.clone(),
        runs: point.usable_runs().count(),
        fit: point.usable_runs().filter(|run| run.fit_for_latency).count(),
        oversubscribed: point.usable_runs().any(|run| run.oversubscribed),
        pinned: point.usable_runs().all(|run| run.is_pinned),
        full: point.usable_runs().map(|run| run.full).sum(),
        open_orders: point.usable_runs().filter_map(|run| run.open_orders).collect(),
        rt_venue_p50_ns,
        rt_venue_p99_ns,
        rt_venue_p999_ns,
        p99_latency_minus_work_ns: spread(point, |run| {
            Some(engine_latency(run, Percentile::P99)? - run.work())
        }),
        utilization: spread(point, |run| run.utilization),
    }
}

#[cfg(test)]
mod tests {
    use super::super::knee::tests::modelled;
    use super::*;
    use crate::stats::QueueModel;
    use serde_json::Value;

    #[test]
    fn json_has_tables_points_and_knee() {
        let sweep = modelled(QueueModel::Md1, &[0.1, 0.5, 0.9]);
        let json: Value = serde_json::from_slice(&json(&sweep.experiment, &sweep).unwrap()).unwrap();
        assert_eq!(json["schema"], Experiment::schema());
        assert_eq!(json["rows"].as_array().unwrap().len(), 9, "the document is whole");
        let names: Vec<&Value> =
            json["tables"].as_array().unwrap().iter().map(|table| &table["name"]).collect();
        assert_eq!(names, ["rt_venue_p50", "rt_venue_p99", "rt_venue_p999"]);
        let rows = &json["tables"][1]["rows"];
        assert_eq!(
            (&rows[1]["values"]["work"], &rows[1]["medians_ns"]),
            (&"500ns".into(), &vec![2_000.0].into())
        );
        let point = &json["points"][2];
        assert_eq!((&point["full"], &point["runs"], &point["pinned"]), (&0.into(), &3.into(), &true.into()));
        assert_eq!(json["knee"][0]["points"][2]["utilization"], 0.9);
    }
}

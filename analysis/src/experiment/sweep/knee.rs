//! The queueing knee: measured waiting for the orchestrator by its utilization, next to the models
//! M/M/1 and M/D/1.
//!
//! Both hand-offs to the orchestrator also contain the transport through the ring, which does not
//! depend on the load. It is taken from the quietest point of each line: what was measured there,
//! less what M/D/1 predicts. In units of the mean service time the models do not depend on the
//! rate, so all lines of a sweep share one picture.

use crate::chart::xy_plot::{PlotSeries, line_class};
use crate::experiment::Axis;
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::grouping::grouped;
use crate::stats::{Percentile, QueueModel, RunOutline, Spread, service_ns};
use protocol::flow::Stage;
use serde::Serialize;
use std::collections::BTreeMap;
use verdict::summary::Measure;

/// Points of a model's curve.
const CURVE_POINTS: u32 = 24;

/// The points of one setting along work or rate, from the quietest to the busiest.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KneeLine {
    /// Name of the setting: `spsc-mux`.
    pub name: String,
    /// Time of both hand-offs together without waiting, in nanoseconds.
    pub transport_ns: f64,
    /// The measured points, by utilization.
    pub points: Vec<KneePoint>,
}

/// A point of the queueing knee: medians over its usable repeats.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KneePoint {
    /// The values of the varied settings.
    pub values: BTreeMap<Axis, String>,
    /// Utilization of the orchestrator's thread, 0 to 1.
    pub utilization: f64,
    /// Mean service time of a visit to the orchestrator in nanoseconds: ρ / 2λ.
    pub service_ns: f64,
    /// Mean time of the submit and the completion hand-off together, in nanoseconds.
    pub waiting_ns: f64,
    /// Mean wait of one visit without the transport, in mean service times: median, minimum and
    /// maximum of the repeats.
    pub waiting_in_services: [f64; 3],
    /// Waits that the models predict, in service times.
    pub mm1_in_services: f64,
    pub md1_in_services: f64,
    /// Percentiles of the submit hand-off, in nanoseconds.
    pub submit_p50_ns: Option<f64>,
    pub submit_p99_ns: Option<f64>,
}

/// Measured lines with a curve of each model.
pub(super) struct KneeChart {
    pub measured: Vec<PlotSeries>,
    pub models: Vec<PlotSeries>,
}

/// Mean submit and mean completion of a run: the two stages that end when the orchestrator takes a
/// message.
fn waiting_ns(run: &RunOutline) -> Option<f64> {
    let mean = |stage| run.measure(Measure::Stage(stage)).mean_ns;
    Some(mean(Stage::Submit)? + mean(Stage::Completion)?)
}

/// A run's utilization and the service time that follows from it.
fn load(run: &RunOutline) -> Option<(f64, f64)> {
    let used = run.utilization.filter(|used| (0.0..1.0).contains(used))?;
    Some((used, service_ns(used, run.achieved_per_s?)?))
}

/// Returns the lines of a sweep over work or rate with two points at least; none of other sweeps,
/// or where the utilization was not measured.
pub(super) fn lines(sweep: &ExperimentRuns) -> Vec<KneeLine> {
    let Some(along) = [Axis::Rate, Axis::Work].into_iter().find(|axis| sweep.is_varied(*axis)) else {
        return Vec::new();
    };
    let known = |point: &Point| point.spread(|run| waiting_ns(run).and(Some(load(run)?.0)));
    let named = sweep.points.iter().filter_map(|point| {
        Some((point.name_without(&sweep.axes, Some(along)), (known(point)?.median, point)))
    });
    grouped(named).into_iter().filter_map(|(name, points)| line(name, points)).collect()
}

fn line(name: String, mut points: Vec<(f64, &Point)>) -> Option<KneeLine> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, quietest) = *points.first().filter(|_| points.len() > 1)?;
    let middle = |point: &Point, of: &dyn Fn(&RunOutline) -> Option<f64>| Some(point.spread(of)?.median);
    let transport_ns = middle(quietest, &|run| {
        let (used, service) = load(run)?;
        Some(waiting_ns(run)? - 2.0 * service * QueueModel::Md1.wait_in_services(used)?)
    })?;
    let figures = |(utilization, point): (f64, &Point)| {
        let above = point.spread(|run| Some((waiting_ns(run)? - transport_ns) / (2.0 * load(run)?.1)))?;
        let submit = |percentile: Percentile| {
            middle(point, &|run| Some(percentile.get(&run.measure(Measure::Stage(Stage::Submit)))? as f64))
        };
        Some(KneePoint {
            values: point.values.clone(),
            utilization,
            service_ns: middle(point, &|run| Some(load(run)?.1))?,
            waiting_ns: middle(point, &waiting_ns)?,
            waiting_in_services: [above.median, above.low, above.high],
            mm1_in_services: QueueModel::Mm1.wait_in_services(utilization)?,
            md1_in_services: QueueModel::Md1.wait_in_services(utilization)?,
            submit_p50_ns: submit(Percentile::P50),
            submit_p99_ns: submit(Percentile::P99),
        })
    };
    Some(KneeLine { name, transport_ns, points: points.into_iter().filter_map(figures).collect() })
}

/// Returns the chart of some lines; `None` without any.
pub(super) fn chart(lines: &[KneeLine]) -> Option<KneeChart> {
    let all = || lines.iter().flat_map(|line| &line.points).map(|point| point.utilization);
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let measured = |(number, line): (usize, &KneeLine)| {
        let point = |point: &KneePoint| {
            let [median, low, high] = point.waiting_in_services;
            (point.utilization * 100.0, Spread { median, low, high })
        };
        PlotSeries {
            name: line.name.clone(),
            class: line_class(number),
            points: line.points.iter().map(point).collect(),
        }
    };
    let curve = |model: QueueModel| {
        let point = |number: u32| {
            let used = low + (high - low) * f64::from(number) / f64::from(CURVE_POINTS);
            let wait = model.wait_in_services(used)?;
            Some((used * 100.0, Spread { median: wait, low: wait, high: wait }))
        };
        let class = if model == QueueModel::Mm1 { "model" } else { "model dash" };
        PlotSeries {
            name: model.name().into(),
            class,
            points: (0..=CURVE_POINTS).filter_map(point).collect(),
        }
    };
    Some(KneeChart {
        measured: lines.iter().enumerate().map(measured).collect(),
        models: QueueModel::ALL.map(curve).into(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::{AxisRecord, Experiment, Figures, Kind, Setting, ordered_rows};
    use crate::fixture;
    use crate::stats::fixtures;

    /// Returns a synthetic sweep over work per order: mean `submit` and `completion` times are each
    /// 100 ns plus the wait that `model` computes.
    pub fn modelled(model: QueueModel, loads: &[f64]) -> ExperimentRuns {
        let values: Vec<String> = (0..loads.len()).map(|number| format!("{}ns", 500 * number)).collect();
        let setting = |value: &String| Setting {
            name: format!("work={value}"),
            values: [(Axis::Work, value.clone())].into(),
            ..Setting::default()
        };
        let settings: Vec<Setting> = values.iter().map(setting).collect();
        let mut rows = ordered_rows(&settings, 0..3, 0);
        for row in &mut rows {
            let at = settings.iter().position(|setting| setting.name == row.setting.name).unwrap();
            let mut run = fixtures::run(row.repeat as usize, 1_000.0);
            (run.utilization, run.achieved_per_s) = (Some(loads[at]), Some(400_000.0));
            let service = service_ns(loads[at], 400_000.0).unwrap();
            for name in ["submit", "completion"] {
                let wait = service * model.wait_in_services(loads[at]).unwrap();
                run.measures.get_mut(name).unwrap().mean_ns = Some(100.0 + wait);
            }
            (row.folder, row.figures) = ("x".into(), Figures::from_outline(&run));
        }
        let axes = vec![AxisRecord { axis: Axis::Work, values }];
        ExperimentRuns::new(&Experiment {
            kind: Kind::Sweep,
            axes,
            repeats: 3,
            rows,
            ..fixture("golden/experiment.json")
        })
    }

    #[test]
    fn planted_model_is_found_and_other_model_is_not() {
        let loads = [0.01, 0.3, 0.6, 0.9];
        for (planted, is_md1) in [(QueueModel::Md1, true), (QueueModel::Mm1, false)] {
            let found = lines(&modelled(planted, &loads));
            let [line] = &found[..] else { panic!("{found:?}") };
            assert!((line.transport_ns - 200.0).abs() < 1.0, "{line:?}");
            let point = line.points.last().unwrap();
            let near = |wanted: f64| (point.waiting_in_services[0] / wanted - 1.0).abs() < 0.02;
            assert_eq!(
                (near(point.md1_in_services), near(point.mm1_in_services)),
                (is_md1, !is_md1),
                "{point:?}"
            );
        }
    }

    #[test]
    fn knee_needs_two_loads_with_utilization() {
        assert!(lines(&modelled(QueueModel::Md1, &[0.5])).is_empty());
        let found = lines(&modelled(QueueModel::Md1, &[0.2, 0.8]));
        let chart = chart(&found).unwrap();
        let [measured, models] = [&chart.measured, &chart.models].map(|lines| {
            lines.iter().map(|line| (line.name.as_str(), line.points.len())).collect::<Vec<_>>()
        });
        assert_eq!(measured, [("all", 2)]);
        assert_eq!(models, [("M/M/1", 25), ("M/D/1", 25)]);
    }
}

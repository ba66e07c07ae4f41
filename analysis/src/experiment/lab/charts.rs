//! The charts of the queue benchmark `lab`: latency against CPU time, and the spread of run times.

use super::figures::{MeasuredLabCell, PAIRS};
use super::{Lab, LabCell, Speed, Wait};
use crate::grouping::grouped;
use maud::{Markup, html};
use record::numbers::counted;
use verdict::chart::axis::duration;
use verdict::chart::plot::{DataSeries, Plot, PlotAxis, SeriesKind, Unit};

const fn class(wait: Wait) -> &'static str {
    match wait {
        Wait::Busy => "c2",
        Wait::Yield => "c1",
        Wait::Poll => "c4",
        Wait::Park => "c3",
    }
}

struct ParetoPoint<'a> {
    cell: &'a LabCell,
    cpu: f64,
    p50: f64,
    p99: f64,
}

/// The points that no other beats in both, by CPU.
fn pareto_front(points: &[ParetoPoint<'_>]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<(f64, f64)> = points.iter().map(|point| (point.cpu, point.p50)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut front: Vec<(f64, f64)> = Vec::new();
    for point in sorted {
        if front.last().is_none_or(|last| point.1 < last.1) {
            front.push(point);
        }
    }
    front
}

/// Draws one chart of latency over CPU time per event for each pair of producer and consumer speeds
/// in the queue benchmark.
pub fn pareto(measured: &[MeasuredLabCell<'_>]) -> Vec<Markup> {
    PAIRS.into_iter().filter_map(|pair| pareto_of(measured, pair)).collect()
}

fn pareto_of<'a>(measured: &[MeasuredLabCell<'a>], (producer, consumer): (Speed, Speed)) -> Option<Markup> {
    let cells = measured.iter().filter(|(cell, _)| (cell.producer, cell.consumer) == (producer, consumer));
    let point = |(cell, figures): &MeasuredLabCell<'a>| {
        let p50 = (figures.p50? as f64).max(1.0);
        let p99 = figures.p99.map_or(p50, |p99| p99 as f64);
        Some(ParetoPoint { cell, cpu: figures.cpu().max(1.0), p50, p99 })
    };
    let points: Vec<ParetoPoint<'_>> = cells.filter_map(point).collect();
    points.first()?;
    let series = |wait: &Wait| {
        let own: Vec<&ParetoPoint<'_>> = points.iter().filter(|point| point.cell.wait == *wait).collect();
        let of = |figure: fn(&ParetoPoint<'_>) -> f64| own.iter().map(|point| figure(point)).collect();
        let label = |point: &&ParetoPoint<'_>| {
            let [p50, p99, cpu] = [point.p50, point.p99, point.cpu].map(duration);
            format!("p50 {p50}, p99 {p99}, CPU {cpu}")
        };
        let (p50, p99): (Vec<f64>, Vec<f64>) = (of(|point| point.p50), of(|point| point.p99));
        let series = DataSeries {
            kind: SeriesKind::Points,
            dots: (0..own.len()).collect(),
            x: of(|point| point.cpu),
            low: p50.clone(),
            y: p50,
            high: p99,
            names: own.iter().map(|point| format!("{} {wait}", point.cell.carrier())).collect(),
            labels: own.iter().map(label).collect(),
            ..DataSeries::with_class(wait.to_string(), class(*wait))
        };
        (!own.is_empty()).then_some(series)
    };
    let mut front: Vec<(f64, f64)> = Vec::new();
    for (cpu, p50) in pareto_front(&points) {
        front.extend(front.last().map(|last| (cpu, last.1)));
        front.push((cpu, p50));
    }
    let front = DataSeries {
        name: "best: no other has less of both".into(),
        x: front.iter().map(|point| point.0).collect(),
        y: front.iter().map(|point| point.1).collect(),
        ..DataSeries::default()
    };
    let plot = Plot {
        id: format!("lab-pareto-{producer}-{consumer}"),
        title: format!("{producer} producer → {consumer} consumer"),
        description: "The median latency of an event against the CPU time of both sides for an event, both logarithmic: a dot for each \
                      queue and way of waiting, a line up to its p99. The table has the figures."
            .into(),
        height: 400,
        x: PlotAxis::with_log("CPU time for each event", Unit::Duration, true),
        y: PlotAxis::with_log("latency", Unit::Duration, true),
        series: [front].into_iter().chain(Wait::ALL.iter().filter_map(series)).collect(),
        ..Plot::default()
    };
    Some(plot.figure())
}

/// The number of bars of a distribution.
const BIN_COUNT: usize = 28;

/// Draws the spread of the queue benchmark's run times: a plot for each queue and speeds, a row for
/// each way of waiting.
pub fn distributions(lab: &Lab) -> Option<Markup> {
    let cells = lab.cells.iter().filter(|cell| cell.valid_runs().next().is_some());
    let panels = grouped(cells.map(|cell| (format!("{}, {}", cell.carrier(), cell.speeds()), cell)));
    let drawn = |(number, (title, cells)): (usize, &(String, Vec<&LabCell>))| {
        run_times(number, title, cells).figure()
    };
    (!panels.is_empty()).then(
        || html! { div class="multiples" { @for panel in panels.iter().enumerate() { (drawn(panel)) } } },
    )
}

fn run_times(number: usize, title: &str, cells: &[&LabCell]) -> Plot {
    let times = || cells.iter().flat_map(|cell| cell.valid_runs().map(|run| run.run_ns as f64));
    let (min, max) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let most = max.max(min * 1.02).max(min + 1.0);
    let width = (most - min) / BIN_COUNT as f64;
    let series = |(lane, cell): (usize, &&LabCell)| {
        let bins = bins(cell, min, most);
        let fullest = bins.iter().copied().max().unwrap_or(1).max(1);
        let occupied: Vec<(usize, usize)> =
            bins.into_iter().enumerate().filter(|(_, runs)| *runs > 0).collect();
        let base = lane as f64 + 0.95;
        DataSeries {
            kind: SeriesKind::Bars,
            width,
            x: occupied.iter().map(|(bin, _)| min + *bin as f64 * width).collect(),
            y: occupied.iter().map(|(_, runs)| base - 0.85 * *runs as f64 / fullest as f64).collect(),
            low: vec![base; occupied.len()],
            labels: occupied.iter().map(|(_, runs)| counted(*runs as u64, "run")).collect(),
            note: counted(cell.valid_runs().count() as u64, "run"),
            ..DataSeries::with_class(cell.wait.name(), class(cell.wait))
        }
    };
    Plot {
        id: format!("lab-runs-{number}"),
        title: title.into(),
        description: "A histogram of run times for each way of waiting.".into(),
        height: 50 + 34 * cells.len() as u32,
        x: PlotAxis { range: Some([min, most]), ..PlotAxis::new("", Unit::Duration) },
        y: PlotAxis::with_names(cells.iter().map(|cell| cell.wait.to_string()).collect()),
        series: cells.iter().enumerate().map(series).collect(),
        ..Plot::default()
    }
}

fn bins(cell: &LabCell, min: f64, max: f64) -> [usize; BIN_COUNT] {
    let mut bins = [0; BIN_COUNT];
    for run in cell.valid_runs() {
        let share = (run.run_ns as f64 - min) / (max - min);
        bins[((share * BIN_COUNT as f64) as usize).min(BIN_COUNT - 1)] += 1;
    }
    bins
}

//! Aggregates the runs of a lab's cell: one queue with one way of waiting, at one pair of speeds.

use super::{Lab, LabCell, LabLatency, LabRun, Speed, Wait, percentile};
use crate::stats::Spread;
use protocol::plan::{Isolation, Technique};
use serde::Serialize;

/// The four pairs of producer and consumer speeds (each fast or slow), in the order of the tables'
/// rows.
pub const PAIRS: [(Speed, Speed); 4] = [
    (Speed::Fast, Speed::Fast),
    (Speed::Fast, Speed::Slow),
    (Speed::Slow, Speed::Fast),
    (Speed::Slow, Speed::Slow),
];

/// A cell (combination of settings) of the queue benchmark that has a valid run, with its figures.
pub type MeasuredLabCell<'a> = (&'a LabCell, CellFigures);

/// Returns the cells (combinations of settings) of the queue benchmark that have a valid run, with
/// their figures, in the order of the tables.
pub fn measured(lab: &Lab) -> Vec<MeasuredLabCell<'_>> {
    lab.cells
        .iter()
        .filter_map(|cell| Some((cell, CellFigures::from_cell(cell, lab.plan.events_of(cell))?)))
        .collect()
}

/// Latency, throughput and CPU time of one cell (combination of settings) of the queue benchmark,
/// over its valid runs.
#[derive(Clone, Debug)]
pub struct CellFigures {
    /// The spread of the runs' durations, in nanoseconds.
    pub run: Spread,
    /// Throughput in events a second.
    pub rate: f64,
    /// Median over the runs of their mean latency, in nanoseconds: from push to pop.
    pub mean: Option<f64>,
    /// Median over the runs of their p50 latency, in nanoseconds.
    pub p50: Option<u64>,
    /// Median over the runs of their p99 latency, in nanoseconds.
    pub p99: Option<u64>,
    /// Median over the runs of their p99.9 latency, in nanoseconds.
    pub p999: Option<u64>,
    /// p99.9 latency of the events of all runs together, in nanoseconds.
    pub p999_of_all: Option<u64>,
    /// Maximum latency of all runs, in nanoseconds.
    pub max: Option<u64>,
    /// CPU time of the producers for each event, in nanoseconds, median over the runs.
    pub producer_cpu: f64,
    /// CPU time of the consumers for each event, in nanoseconds, median over the runs.
    pub consumer_cpu: f64,
    /// Context switches of both sides per thousand events.
    pub switches: f64,
    /// Returns from a yield or a sleep of both sides per event.
    pub wakes: f64,
}

impl CellFigures {
    fn from_cell(cell: &LabCell, events: u64) -> Option<Self> {
        let median = |of: &dyn Fn(&LabRun) -> f64| Spread::from_values(cell.valid_runs().map(of));
        let events = events as f64;
        let run = median(&|run| run.run_ns as f64)?;
        let latencies = cell.latencies().ok()?;
        let middle = |of: &dyn Fn(&LabRun) -> f64| median(of).map_or(0.0, |spread| spread.median);
        let latency = |of: fn(&LabLatency) -> Option<u64>| {
            let known = cell.valid_runs().filter_map(|run| of(run.latency.as_ref()?));
            Spread::from_values(known.map(|ns| ns as f64)).map(|spread| spread.median as u64)
        };
        let both = |run: &LabRun| run.producer.plus(run.consumer);
        Some(Self {
            run,
            rate: if run.median > 0.0 { events * 1e9 / run.median } else { 0.0 },
            mean: Spread::from_values(cell.valid_runs().filter_map(|run| Some(run.latency?.mean_ns)))
                .map(|spread| spread.median),
            p50: latency(|latency| latency.p50_ns),
            p99: latency(|latency| latency.p99_ns),
            p999: latency(|latency| latency.p999_ns),
            p999_of_all: percentile(&latencies, 0.999),
            max: (!latencies.is_empty()).then(|| latencies.max()),
            producer_cpu: middle(&|run| run.producer.cpu_ns as f64 / events),
            consumer_cpu: middle(&|run| run.consumer.cpu_ns as f64 / events),
            switches: middle(&|run| (both(run).voluntary + both(run).involuntary) as f64 * 1e3 / events),
            wakes: middle(&|run| both(run).wakes as f64 / events),
        })
    }

    /// Returns the cell's CPU time of producers and consumers per event, in nanoseconds.
    pub fn cpu(&self) -> f64 {
        self.producer_cpu + self.consumer_cpu
    }
}

/// The figures of a cell of the queue benchmark in the output of `--json`: medians over its valid
/// runs. Times are nanoseconds; CPU time is of an event.
#[derive(Debug, Serialize)]
pub struct CellSummary {
    cell: String,
    technique: Technique,
    isolation: Isolation,
    producer: Speed,
    consumer: Speed,
    wait: Wait,
    /// Events that the queue holds at most; null if no count bounds it.
    capacity: Option<u64>,
    events: u64,
    runs: u32,
    side_by_side: u32,
    run_ns: f64,
    run_min_ns: f64,
    run_max_ns: f64,
    /// Mean over the runs, for figures that others publish as means.
    run_mean_ns: f64,
    per_event_ns: f64,
    events_per_second: f64,
    mean_ns: Option<f64>,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    max_ns: Option<u64>,
    producer_cpu_ns: f64,
    consumer_cpu_ns: f64,
}

/// Returns the figures of every cell (combination of settings) of the queue benchmark that has a
/// valid run.
pub fn summaries(lab: &Lab) -> Vec<CellSummary> {
    measured(lab).into_iter().map(|(cell, figures)| CellSummary::new(lab, cell, &figures)).collect()
}

impl CellSummary {
    fn new(lab: &Lab, cell: &LabCell, figures: &CellFigures) -> Self {
        let runs = cell.valid_runs().count();
        let total: f64 = cell.valid_runs().map(|run| run.run_ns as f64).sum();
        let events = lab.plan.events_of(cell);
        Self {
            cell: cell.name(),
            technique: cell.technique,
            isolation: cell.isolation,
            producer: cell.producer,
            consumer: cell.consumer,
            wait: cell.wait,
            capacity: cell.capacity,
            events,
            runs: runs as u32,
            side_by_side: cell.valid_runs().map(|run| run.side_by_side).max().unwrap_or(0),
            run_ns: figures.run.median,
            run_min_ns: figures.run.low,
            run_max_ns: figures.run.high,
            run_mean_ns: total / runs.max(1) as f64,
            per_event_ns: figures.run.median / events.max(1) as f64,
            events_per_second: figures.rate,
            mean_ns: figures.mean,
            p50_ns: figures.p50,
            p99_ns: figures.p99,
            p999_ns: figures.p999,
            max_ns: figures.max,
            producer_cpu_ns: figures.producer_cpu,
            consumer_cpu_ns: figures.consumer_cpu,
        }
    }
}

//! Aggregates the repeated runs of a cell: one queue with one way of waiting, at one pair of
//! speeds.

use super::{Lab, LabCell, LabLatency, LabRun, Speed, percentile};
use crate::stats::Spread;

/// The four pairs of producer and consumer speeds, in the order of the benchmark that this project
/// started from.
pub const PAIRS: [(Speed, Speed); 4] = [
    (Speed::Fast, Speed::Fast),
    (Speed::Fast, Speed::Slow),
    (Speed::Slow, Speed::Fast),
    (Speed::Slow, Speed::Slow),
];

/// A cell that has at least one sound run, and its figures.
pub type Measured<'a> = (&'a LabCell, CellFigures);

/// Returns the cells that have at least one sound run, in the order of the tables.
pub fn measured(lab: &Lab) -> Vec<Measured<'_>> {
    lab.cells.iter().filter_map(|cell| Some((cell, CellFigures::from_cell(cell, lab.events)?))).collect()
}

/// Latency, throughput and CPU time of one cell, over its sound runs.
#[derive(Clone, Debug)]
pub struct CellFigures {
    /// The duration of a run, in nanoseconds.
    pub run: Spread,
    /// Events a second.
    pub rate: f64,
    /// Median over the runs of their p50, in nanoseconds.
    pub p50: Option<u64>,
    /// Median over the runs of their p99, in nanoseconds.
    pub p99: Option<u64>,
    /// Median over the runs of their p99.9, in nanoseconds.
    pub p999: Option<u64>,
    /// The p99.9 of the events of all runs together, in nanoseconds.
    pub p999_of_all: Option<u64>,
    /// The greatest latency of all runs, in nanoseconds.
    pub max: Option<u64>,
    /// CPU time of the producers for each event, in nanoseconds, median over the runs.
    pub producer_cpu: f64,
    /// CPU time of the consumers for each event, in nanoseconds, median over the runs.
    pub consumer_cpu: f64,
    /// Context switches for a thousand events, of both sides.
    pub switches: f64,
    /// Returns from a yield or a sleep for each event, of both sides.
    pub wakes: f64,
}

impl CellFigures {
    fn from_cell(cell: &LabCell, events: u64) -> Option<Self> {
        let median = |of: &dyn Fn(&LabRun) -> f64| Spread::from_values(cell.sound().map(of));
        let events = events as f64;
        let run = median(&|run| run.run_ns as f64)?;
        let latencies = cell.latencies().ok()?;
        let middle = |of: &dyn Fn(&LabRun) -> f64| median(of).map_or(0.0, |spread| spread.median);
        let latency = |of: fn(&LabLatency) -> Option<u64>| {
            let known = cell.sound().filter_map(|run| of(run.latency.as_ref()?));
            Spread::from_values(known.map(|ns| ns as f64)).map(|spread| spread.median as u64)
        };
        let both = |run: &LabRun| run.producer.plus(run.consumer);
        Some(Self {
            run,
            rate: if run.median > 0.0 { events * 1e9 / run.median } else { 0.0 },
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

    /// Returns the CPU time of producers and consumers per event, in nanoseconds.
    pub fn cpu(&self) -> f64 {
        self.producer_cpu + self.consumer_cpu
    }
}

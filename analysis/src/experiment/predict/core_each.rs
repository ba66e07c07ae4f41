//! Predicts strategies that spin on a core each: the sum of the costs on an order's path.

use super::PredictPart;
use crate::experiment::{Experiment, Row};
use crate::stats::RunOutline;
use protocol::plan::Isolation;
use record::spread::median;
use serde::{Deserialize, Serialize};
use verdict::summary::Measure;

/// What the engine's duty cycles, checks and hand-offs of an order take under load, in nanoseconds:
/// `docs/src/nanoseconds.md` has the measurement.
const ENGINE_NS: f64 = 60.0;

/// Costs on an order's path, measured in a run, in nanoseconds: a cache line's round trip and the
/// clock reads for stamps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathCosts {
    /// Round trip of a cache line between threads that work at random times, in nanoseconds.
    pub line_ns: f64,
    /// Cost of the clock reads for an order's stamps, in nanoseconds.
    pub stamps_ns: f64,
}

impl PathCosts {
    /// The name of the path costs among the figures of a run.
    pub const NAME: &'static str = "path";

    /// Returns the predicted p50 of an order's round trip without the venue, in nanoseconds: these
    /// costs plus the engine's own time.
    pub fn sum_ns(&self) -> f64 {
        self.line_ns + self.stamps_ns + ENGINE_NS
    }
}

/// Predicted and measured p50, in nanoseconds, of strategies that each have a core, as threads and
/// at another isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoreEach {
    /// Medians of the path costs over the runs.
    pub path: PathCosts,
    /// Predicted p50 in nanoseconds, equal for threads and processes.
    pub sum_ns: f64,
    /// Measured p50 of threads and of processes in nanoseconds, medians over their runs.
    pub p50_ns: [f64; 2],
    /// Number of runs that count.
    pub runs: usize,
}

impl CoreEach {
    /// Reads predicted and measured p50 of strategies with a core each from an experiment; `None`
    /// unless both levels have usable runs.
    pub fn from_experiment(experiment: &Experiment) -> Option<Self> {
        let is_own = |row: &&Row| PredictPart::of(row) == Some(PredictPart::Asked);
        let of_row = |row: &Row| {
            let run = row.outline().filter(|run| run.is_usable() && run.levels.is_empty())?;
            Some((run, row.figures.part::<PathCosts>(PathCosts::NAME).ok().flatten()?))
        };
        let runs: Vec<(RunOutline, PathCosts)> =
            experiment.made().filter(is_own).filter_map(of_row).collect();
        let middle = |of: &dyn Fn(&(RunOutline, PathCosts)) -> Option<f64>| {
            median(&runs.iter().filter_map(of).collect::<Vec<_>>())
        };
        let p50 = |is_thread: bool| {
            middle(&|(run, _)| {
                let is_own = run.isolation.is_only(Isolation::Thread) == is_thread;
                run.measure(Measure::RtVenue).p50_ns.filter(|_| is_own).map(|ns| ns as f64)
            })
        };
        let path = PathCosts {
            line_ns: middle(&|(_, path)| Some(path.line_ns))?,
            stamps_ns: middle(&|(_, path)| Some(path.stamps_ns))?,
        };
        Some(Self { path, sum_ns: path.sum_ns(), p50_ns: [p50(true)?, p50(false)?], runs: runs.len() })
    }

    /// Returns the absolute relative errors of the predicted p50 (0.1 is 10 %), of threads and then
    /// of processes.
    pub fn errors(&self) -> [f64; 2] {
        self.p50_ns.map(|measured| (self.sum_ns / measured - 1.0).abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Axis, Figures, Kind, Setting};
    use crate::stats::fixtures;

    fn row(isolation: Isolation, p50_ns: f64, line_ns: f64) -> Row {
        let run = RunOutline { isolation: isolation.into(), ..fixtures::run(1, p50_ns) };
        let mut figures = Figures::from_outline(&run);
        figures.insert(PathCosts::NAME, &PathCosts { line_ns, stamps_ns: 90.0 });
        let values = [(Axis::Part, PredictPart::Asked.name().to_owned())].into();
        Row { setting: Setting { values, ..Setting::default() }, figures, ..Row::default() }
    }

    #[test]
    fn sum_is_compared_with_both_levels() {
        let saved: Experiment = crate::fixture("golden/experiment.json");
        let mut experiment = Experiment { kind: Kind::Predict, rows: Vec::new(), ..saved };
        assert_eq!(CoreEach::from_experiment(&experiment), None);
        experiment.rows = vec![row(Isolation::Thread, 300.0, 140.0), row(Isolation::Process, 310.0, 160.0)];
        let found = CoreEach::from_experiment(&experiment).unwrap();
        assert_eq!((found.path.line_ns, found.sum_ns, found.p50_ns), (150.0, 300.0, [300.0, 310.0]));
        assert!(found.errors()[0] == 0.0 && found.errors()[1] < 0.04);
        experiment.rows.pop();
        assert_eq!(CoreEach::from_experiment(&experiment), None, "one level alone");
    }
}

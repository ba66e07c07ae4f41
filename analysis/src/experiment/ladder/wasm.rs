//! The row of a ladder for strategies that are modules in a Wasm runtime, in threads of the
//! engine's process.
//!
//! Its isolation level is `thread`, and the strategy is of another kind. So its
//! cost is that of a comparison of two kinds. Nothing is injected into it: a fault of `launcher
//! contain` is native code around the module, and would show what any thread does.

use super::{Confidential, Ladder, LevelConfidentiality, Rung};
use crate::experiment::compare::Comparisons;
use crate::experiment::isolation_cost::LevelFigures;
use crate::experiment::ratio::line_of;
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::stats::{Percentile, RunOutline};
use protocol::plan::{Isolation, IsolationLevel};

/// What a module sees of others: it has no instruction that reads another memory than its own.
pub(super) const CONFIDENTIALITY: LevelConfidentiality = LevelConfidentiality {
    isolation: IsolationLevel::alone(Isolation::Thread),
    confidential: Confidential::Yes,
    is_tried: false,
};

pub(super) const COST_NOTE: &str = "wasm: rt_venue of threads whose strategy is a module, against the same player in Rust (native), as many, on the same core, in pairs of runs; \
     each sends its next order once the one before has returned; its CPU is of those runs too, do not subtract it from that of threads";

pub(super) const FAULTS_NOTE: &str = "wasm: a module cannot express these; what it can do wrong is tried by the tests of contrib/examples/wasm-strategy";

/// Returns `true` if the launcher of a ladder had a strategy that runs in a Wasm runtime.
pub(super) fn is_measured(ladder: &Ladder) -> bool {
    ladder.rungs.iter().any(|rung| rung.level == Rung::WASM && rung.missing.is_none())
}

impl Rung {
    /// The name of the ladder's row for WebAssembly strategies, and of their strategy kind.
    pub const WASM: &'static str = "wasm";

    /// Adds what a comparison of native strategies (A) and modules (B) found.
    pub(super) fn add_comparison(&mut self, runs: &ExperimentRuns) -> Result<(), String> {
        let found = Comparisons::from_runs(runs)?.comparisons;
        let ([found], [native, modules]) = (&found[..], &runs.points[..]) else {
            return Err("this comparison has not two sides".into());
        };
        // Nothing is due where each order waits for the one before: the endpoint follows.
        let ratio = |percentile| {
            let line = line_of(&found.lines, found.endpoint.measure(), percentile)?;
            line.evidence().difference.map(|found| found.ratio)
        };
        (self.p50, self.p99) = (ratio(Percentile::P50), ratio(Percentile::P99));
        let figures = LevelFigures::from_runs(&usable(modules), Some(&usable(native)));
        let cpu = figures.and_then(|figures| figures.cpu_s_per_million);
        (self.cpu_s_per_million, self.cpu_added) = (cpu.map(|cpu| cpu.value), cpu.and_then(|cpu| cpu.added));
        Ok(())
    }
}

/// Returns the complete and valid runs of a side with their repeats.
fn usable(side: &Point) -> Vec<(u32, &RunOutline)> {
    let runs = side.runs.iter().map(|run| (run.repeat, &run.outline));
    runs.filter(|(_, run)| run.is_usable()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::ladder;
    use super::super::{costs, protection};
    use super::*;
    use crate::experiment::{Experiment, Kind, RunEntry};
    use crate::fixture;
    use crate::stats::{LevelUsage, StrategyUsage, fixtures};

    /// A run whose strategies took this CPU time for an order.
    fn run(repeat: u32, ns: f64, cpu_us: u64) -> RunOutline {
        let strategy =
            StrategyUsage { returned: 1_000, cpu_ns: cpu_us * 1_000_000, ..StrategyUsage::default() };
        let level = Isolation::Thread.into();
        let usage = LevelUsage { level, again: 0, strategies: vec![strategy], interrupts: None, turns: None };
        let mut run = RunOutline { usage: vec![usage], ..fixtures::run(repeat as usize, ns) };
        run.measures.remove("rt_venue_from_due");
        run
    }

    fn compared(sides: [(&str, f64, u64); 2]) -> ExperimentRuns {
        let plan: Experiment = fixture("golden/experiment.json");
        let experiment = Experiment { kind: Kind::Compare, rows: Vec::new(), axes: Vec::new(), ..plan };
        let side = |(name, ns, cpu): (&str, f64, u64)| Point {
            name: name.into(),
            values: [].into(),
            is_aa_test: false,
            settings: [].into(),
            runs: (0..8)
                .map(|repeat| RunEntry {
                    repeat,
                    folder: String::new(),
                    outline: run(repeat, ns + f64::from(repeat), cpu + u64::from(repeat)),
                })
                .collect(),
        };
        ExperimentRuns { experiment, points: sides.map(side).into() }
    }

    #[test]
    fn planted_cost_of_modules_is_found() {
        let mut rung = Rung::new(Rung::WASM, None);
        rung.add_comparison(&compared([("a: native", 300.0, 10), ("b: wasm", 330.0, 12)])).unwrap();
        let (p50, added) = (rung.p50.unwrap(), rung.cpu_added.unwrap());
        assert!((p50.value - 1.1).abs() < 0.01, "{p50:?}");
        assert!((added.value - 2.0).abs() < 1e-9, "{added:?}");
        // The broken variant: sides that were swapped.
        rung.add_comparison(&compared([("a: wasm", 330.0, 12), ("b: native", 300.0, 10)])).unwrap();
        assert!(rung.cpu_added.unwrap().value < 0.0 && rung.p50.unwrap().value < 1.0);
    }

    #[test]
    fn module_that_was_not_measured_has_no_notes() {
        let mut ladder = ladder();
        ladder.rungs.push(Rung::new(Rung::WASM, Some("no such strategy".into())));
        let text = |ladder: &Ladder| costs(ladder).terminal(false) + &protection(ladder).terminal(false);
        assert!(text(&ladder).contains("wasm: no such strategy"));
        assert!(!text(&ladder).contains("cannot express"));
        ladder.rungs[4].missing = None;
        ladder.rungs[4].add_confidentiality(&[]);
        let found = text(&ladder);
        assert!(found.contains("cannot express") && found.contains("yes (rule)"), "{found}");
    }
}

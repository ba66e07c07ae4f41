//! The maximum order rate of strategies: runs to which more orders are offered than the strategies
//! can send.

use super::PredictPart;
use crate::experiment::Experiment;
use protocol::plan::Isolation;
use record::numbers::plain;
use serde::{Deserialize, Serialize};

/// The measured maximum order rate, in orders a second, of strategies at one isolation level on
/// their cores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredCeiling {
    /// Orders a second that the strategies sent.
    pub per_s: f64,
    /// Whether the strategies sent less than was offered, so that the rate is their maximum. If
    /// not, the ceiling is higher.
    pub is_reached: bool,
}

impl MeasuredCeiling {
    /// Reads from an experiment the maximum order rates of threads and of the isolation level that
    /// is predicted; `None` until both are measured.
    pub fn both(experiment: &Experiment) -> Option<[Self; 2]> {
        let of = |is_thread: bool| {
            let runs = experiment.made().filter(|row| PredictPart::of(row) == Some(PredictPart::Ceiling));
            let mut runs = runs.filter_map(|row| row.outline().filter(|run| run.is_usable()));
            let run = runs.find(|run| run.isolation.is_only(Isolation::Thread) == is_thread)?;
            Some(Self { per_s: run.achieved_per_s?, is_reached: !run.has_kept_up() })
        };
        Some([of(true)?, of(false)?])
    }

    /// Returns the ceiling in words: `812,000/s`, or `over 990,000/s`.
    pub(super) fn name(&self) -> String {
        let over = if self.is_reached { "" } else { "over " };
        format!("{over}{}/s", plain(self.per_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Axis, Figures, Kind, Row, Setting};
    use crate::stats::{RunOutline, fixtures};

    fn row(isolation: Isolation, achieved_per_s: f64) -> Row {
        let run = RunOutline {
            isolation: isolation.into(),
            offered_per_s: Some(1e6),
            achieved_per_s: Some(achieved_per_s),
            ..fixtures::run(1, 1e6)
        };
        let values = [(Axis::Part, PredictPart::Ceiling.name().to_owned())].into();
        Row {
            setting: Setting { values, ..Setting::default() },
            figures: Figures::from_outline(&run),
            ..Row::default()
        }
    }

    #[test]
    fn ceiling_is_reached_only_by_runs_that_fell_behind() {
        let saved: Experiment = crate::fixture("golden/experiment.json");
        let mut experiment = Experiment { kind: Kind::Predict, rows: Vec::new(), ..saved };
        experiment.rows = vec![row(Isolation::Process, 995_000.0)];
        assert_eq!(MeasuredCeiling::both(&experiment), None, "no threads yet");
        experiment.rows.push(row(Isolation::Thread, 812_000.0));
        let found = MeasuredCeiling::both(&experiment).unwrap();
        assert_eq!(found.map(|one| one.name()), ["812,000/s", "over 995,000/s"]);
    }
}

//! Converts the runs of a prediction to measured cells of the model.

use super::PredictQuestion;
use crate::experiment::{Axis, Experiment, Row};
use crate::stats::RunOutline;
use protocol::plan::{Isolation, IsolationLevel};
use serde::{Deserialize, Serialize};
use statistics::CoreCell;
use system::named_enum;
use verdict::summary::{CrossoverSummary, LevelSummary, Measure, StrategyCosts};

named_enum! {
    /// What a run of a prediction is for.
    PredictPart {
        /// The first one: how much a core carries, about.
        Pilot = "pilot",
        /// The model is fitted to it.
        Fitted = "fitted",
        /// Left out of the fit, drawn before it.
        HeldOut = "held-out",
        /// What was asked, measured after it was predicted.
        Asked = "asked",
        /// More orders than the asked strategies can send.
        Ceiling = "ceiling",
    }
}

impl PredictPart {
    /// Returns the purpose of a row's run in a prediction, such as `fitted` or `held-out`; `None`
    /// if the row has none.
    pub fn of(row: &Row) -> Option<Self> {
        row.setting.values.get(&Axis::Part).and_then(|text| Self::from_name(text))
    }

    /// Returns `true` if the prediction's model is fitted to runs made for this purpose: `pilot`
    /// (the first run) and `fitted`.
    pub fn is_fitted(self) -> bool {
        matches!(self, Self::Pilot | Self::Fitted)
    }
}

/// Wake-ups a second of a parked strategy that has nothing to do: no wait is longer than 10 ms.
const IDLE_WAKES_PER_S: f64 = 100.0;

/// Fewest switches an order that are taken for measured.
const MIN_SWITCHES: f64 = 0.01;

/// The measured costs of a run in which threads and strategies at another isolation level took
/// turns on the same cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredCell {
    /// The part of the prediction for which the run was made.
    pub part: PredictPart,
    /// The folder of the run; empty if an earlier prediction made it.
    pub folder: String,
    /// Number of strategies at each level.
    pub strategies: u32,
    /// Number of cores that the strategies share.
    pub cores: u32,
    /// Orders a second of all strategies of a level together.
    pub rate_per_s: f64,
    /// The measured costs, for each of those cores.
    pub cell: CoreCell,
    /// Ratio of the p50 of the second group of threads to that of the first: the A/A test. Null
    /// where there is one group.
    pub aa_ratio: Option<f64>,
    /// Ratio of the level's p50 to that of the threads, block by block, with the ends of its
    /// interval. Null with too few blocks.
    pub ratio: Option<[f64; 3]>,
    /// Memory of a strategy's process at the level, with page tables, in bytes.
    pub memory_bytes: Option<f64>,
    /// Whether the run is valid, so that it counts.
    pub is_usable: bool,
}

impl MeasuredCell {
    /// Reads all runs of a prediction that were made, in their order. A run without figures of both
    /// levels is left out.
    pub fn all(experiment: &Experiment) -> Vec<Self> {
        experiment.made().filter_map(|row| Self::from_row(experiment, row)).collect()
    }

    fn from_row(experiment: &Experiment, row: &Row) -> Option<Self> {
        let run = row.outline()?;
        let asked = PredictQuestion::of_cell(&experiment.settings_of(row))?;
        let level = run.levels.iter().find(|own| own.level != Isolation::Thread)?;
        let threads: Vec<&LevelSummary> =
            run.levels.iter().filter(|own| own.level == Isolation::Thread).collect();
        let cost = |isolation: IsolationLevel| {
            run.costs.iter().find(|cost: &&StrategyCosts| cost.isolation == isolation)
        };
        let costs = [cost(Isolation::Thread.into())?, cost(level.level)?];
        let p50 = |own: &LevelSummary| Some(own.measures.get(Measure::RtVenueFromDue.name())?.p50_ns? as f64);
        let thread_p50s: Vec<f64> = threads.iter().copied().filter_map(p50).collect();
        let places = run.levels.len() as f64;
        let rate_per_s = run.offered_per_s?;
        let orders_each = run.returned as f64 / f64::from(run.strategies.max(1));
        let (strategies, cores) =
            (f64::from(level.strategies), f64::from(asked.cores.min(level.strategies.into()).max(1)));
        let idle_wakes = IDLE_WAKES_PER_S * (places - 1.0) * strategies / rate_per_s;
        let switches = costs.map(|cost| {
            let all = (cost.voluntary_switches + cost.involuntary_switches) / orders_each.max(1.0);
            (all - idle_wakes).max(MIN_SWITCHES)
        });
        let cpu_ns = [costs[0].cpu_s_per_million? * 1e3, costs[1].cpu_s_per_million? * 1e3];
        let thread_ns = thread_p50s.iter().sum::<f64>() / thread_p50s.len().max(1) as f64;
        let crossover: Option<CrossoverSummary> = row.figures.part("crossover").ok().flatten();
        let ratio = crossover.and_then(|found| {
            let own = found.levels.iter().find(|own| own.level != Isolation::Thread)?.p50?;
            Some([own.value, own.low, own.high])
        });
        Some(Self {
            part: PredictPart::of(row)?,
            folder: row.folder.clone(),
            strategies: level.strategies.into(),
            cores: asked.cores,
            rate_per_s,
            cell: CoreCell {
                strategies: strategies / cores,
                rate_per_s: rate_per_s / cores,
                idle_wakes,
                switches,
                cpu_ns,
                p50_ns: [thread_ns, p50(level)?],
            },
            aa_ratio: (thread_p50s.len() > 1).then(|| thread_p50s[1] / thread_p50s[0]),
            ratio,
            memory_bytes: costs[1]
                .private_bytes
                .zip(costs[1].page_table_bytes)
                .map(|(own, pages)| own + pages),
            is_usable: is_usable(&run),
        })
    }
}

/// Returns `true` if a run counts: valid, and its senders kept up.
fn is_usable(run: &RunOutline) -> bool {
    run.is_usable() && run.has_kept_up()
}

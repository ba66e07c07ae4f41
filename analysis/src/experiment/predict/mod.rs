//! `predict`: the costs of strategies as threads and as processes, with the error of the
//! prediction.
//!
//! A row is a run in which threads and strategies at another level take turns on the same cores.
//! The model ([`statistics::SharedCoreModel`]) is fitted to some rows and predicts the others.

mod ceiling;
mod cells;
mod core_each;
mod report;

pub use ceiling::MeasuredCeiling;
pub use cells::{MeasuredCell, PredictPart};
pub use core_each::{CoreEach, PathCosts};

use super::{Answer, Experiment, KindEntry, Row, SettingTexts, sweep};
use protocol::plan::{Isolation, IsolationLevel, IsolationLevels};
use record::document::answer_json;
use record::fitness::Fitness;
use record::numbers::{counted, plain};
use record::spread::median;
use record::switch_price::SwitchPrice;
use record::wake_times::WakeTimes;
use serde::{Deserialize, Serialize};
pub use statistics::{CorePrediction, SharedCoreModel};

/// The entry of `launcher predict` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. The command predicts the costs of strategies
/// that share cores.
pub const KIND: KindEntry = KindEntry {
    title: "What strategies will cost as processes",
    summary: |experiment| match PredictQuestion::of_experiment(experiment) {
        Some(asked) => format!("prediction for {}", asked.name()),
        None => format!("grid of {}", counted(experiment.settings().len() as u64, "cell")),
    },
    answer: |experiment, _| {
        let found = Prediction::from_experiment(experiment);
        let json = answer_json("bulkhead.predict/1", &found).map_err(|error| error.to_string())?;
        Ok(Answer { report: report::report(experiment, &found), json })
    },
    ..sweep::RUNS
};

/// The question of `launcher predict`: a number of strategies, a number of cores and an order rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictQuestion {
    /// Number of strategies.
    pub strategies: u32,
    /// Number of cores that the strategies share.
    pub cores: u32,
    /// Orders a second of all strategies together.
    pub rate_per_s: f64,
}

impl PredictQuestion {
    /// The name of the prediction's question among the figures of an experiment.
    pub const NAME: &'static str = "asked";

    /// Returns the question that a prediction experiment was asked; `None` if it predicts a grid of
    /// combinations instead.
    pub fn of_experiment(experiment: &Experiment) -> Option<Self> {
        experiment.figures.part(Self::NAME).ok().flatten()
    }

    /// Returns the strategies of one level and their cores in the settings of a run, with a rate of
    /// 0. `None` without any.
    fn of_cell(settings: &SettingTexts) -> Option<Self> {
        let number = |key: &str| settings.get(key)?.parse::<u32>().ok();
        let levels = settings.get("isolation")?.parse::<IsolationLevels>().ok()?;
        let strategies = number("strategies")? / levels.as_slice().len() as u32;
        Some(Self { strategies, cores: number("strategy_cores").unwrap_or(1).max(1), rate_per_s: 0.0 })
    }

    /// Returns the question in words: `24 strategies on 1 core at 50,000 orders/s`.
    pub fn name(&self) -> String {
        let [strategies, cores] = [(self.strategies, "strategy"), (self.cores, "core")]
            .map(|(count, noun)| counted(count.into(), noun));
        format!("{strategies} on {cores} at {} orders/s", plain(self.rate_per_s))
    }

    /// Returns the cores that have a strategy.
    fn used_cores(&self) -> f64 {
        f64::from(self.cores.min(self.strategies).max(1))
    }

    /// Predicts the costs of the strategies in question, as threads and as processes.
    pub fn predict(&self, model: &SharedCoreModel) -> [CorePrediction; 2] {
        self.predict_next_to(model, 0.0)
    }

    /// Predicts threads and processes next to strategies that have no turn.
    fn predict_next_to(&self, model: &SharedCoreModel, idle_wakes: f64) -> [CorePrediction; 2] {
        let cores = self.used_cores();
        let each = model.predict(f64::from(self.strategies) / cores, self.rate_per_s / cores, idle_wakes);
        each.map(|one| CorePrediction { full_per_s: one.full_per_s * cores, ..one })
    }

    /// Returns the least number of strategies on the same cores at the same rate for which a figure
    /// of a process is 5 % above that of a thread. `None` if no number up to 256 is predicted so.
    fn first_above(
        &self,
        model: &SharedCoreModel,
        figure: fn(&CorePrediction) -> Option<f64>,
    ) -> Option<u32> {
        (self.cores..=MAX_STRATEGIES).find(|strategies| {
            let [thread, process] = Self { strategies: *strategies, ..*self }.predict(model);
            figure(&thread).zip(figure(&process)).is_some_and(|(thread, process)| process >= 1.05 * thread)
        })
    }
}

/// Highest order rate of a prediction's grid, as a multiple of the highest rate in the runs to
/// which the model was fitted.
pub const EXTRAPOLATED: f64 = 1.5;

/// Maximum number of strategies in a run of a prediction.
pub const MAX_STRATEGIES: u32 = 256;

/// A combination of strategies, cores and rate whose costs were predicted before it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedCell {
    /// The measured costs of the cell.
    pub measured: MeasuredCell,
    /// The predicted costs of the cell, as threads and as processes.
    pub predicted: [CorePrediction; 2],
}

/// The median absolute errors of predicted latencies and CPU times over several measured
/// combinations, relative (0.1 for 10 %) except one in nanoseconds. A combination is a number of
/// strategies, a number of cores and a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictionErrors {
    /// Number of predicted cells.
    pub cells: usize,
    /// Number of cells without a predicted latency, at one level at least: the core is nearly full
    /// by the formula.
    #[serde(alias = "near_ceiling")]
    pub beyond_range: usize,
    /// Relative errors of p50, of threads and of processes.
    pub p50: Option<f64>,
    /// Relative errors of the CPU time per order, of threads and of processes.
    pub cpu: Option<f64>,
    /// Relative error of the latency that a process adds to p50.
    pub added_p50: Option<f64>,
    /// Error of the latency that a process adds to p50, in nanoseconds.
    pub added_p50_ns: Option<f64>,
    /// Relative error of the CPU time that a process adds.
    pub added_cpu: Option<f64>,
}

/// The answer of `launcher predict`: predicted and measured costs, with the errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The question; null for a grid.
    pub asked: Option<PredictQuestion>,
    /// The isolation level that is compared with threads.
    pub level: Option<IsolationLevel>,
    /// The folder of the earlier prediction to whose runs the model is fitted; null if it is fitted
    /// to this one's.
    pub calibration: Option<String>,
    /// The cost of a switch between address spaces on this machine.
    pub switch: Vec<SwitchPrice>,
    /// How long an idle core of this machine takes to run what wakes it; null in older predictions.
    pub wake: Option<WakeTimes>,
    /// The fitted model; null until its runs are made.
    pub model: Option<SharedCoreModel>,
    /// The predicted costs for the question, as threads and as processes.
    pub predicted: Option<[CorePrediction; 2]>,
    /// The measured maximum rate of the requested strategies, as threads and as processes; null
    /// until then.
    pub ceilings: Option<[MeasuredCeiling; 2]>,
    /// Private memory of a strategy at the level, in bytes.
    pub memory_bytes: Option<f64>,
    /// The minimum number of strategies for which a process costs 5 % more CPU time than a thread,
    /// on the same cores at the same rate.
    pub five_percent_cpu: Option<u32>,
    /// The minimum number of strategies for which a process has a 5 % higher p50 than a thread, on
    /// the same cores at the same rate.
    pub five_percent_p50: Option<u32>,
    /// Cells that were predicted before they were measured.
    pub held_out: Vec<PredictedCell>,
    /// The errors over the held-out cells.
    pub errors: PredictionErrors,
    /// The result for strategies that spin on a core each, which need no model; null for others.
    pub core_each: Option<CoreEach>,
    /// Cells to which the model is fitted.
    pub fitted: Vec<MeasuredCell>,
}

impl Prediction {
    /// Reads the prediction from the rows of an experiment made so far.
    pub fn from_experiment(experiment: &Experiment) -> Self {
        let asked = PredictQuestion::of_experiment(experiment);
        let (fitted, others): (Vec<MeasuredCell>, Vec<MeasuredCell>) =
            MeasuredCell::all(experiment).into_iter().partition(|cell| cell.part.is_fitted());
        let model = fit(&fitted);
        let predict = |model: SharedCoreModel| {
            let cell = |measured: MeasuredCell| {
                let MeasuredCell { strategies, cores, rate_per_s, .. } = measured;
                let idle_wakes = measured.cell.idle_wakes;
                let predicted =
                    PredictQuestion { strategies, cores, rate_per_s }.predict_next_to(&model, idle_wakes);
                PredictedCell { measured, predicted }
            };
            others.into_iter().map(cell).collect::<Vec<_>>()
        };
        let held_out = model.map_or_else(Vec::new, predict);
        let above = |figure| asked.zip(model).and_then(|(asked, model)| asked.first_above(&model, figure));
        let level = |row: &Row| {
            let texts = experiment.settings_of(row);
            let levels = texts.get("isolation")?.parse::<IsolationLevels>().ok()?;
            levels.distinct().find(|level| *level != Isolation::Thread)
        };
        let memory: Vec<f64> = fitted.iter().filter_map(|cell| cell.memory_bytes).collect();
        Self {
            asked,
            level: experiment.rows.iter().find_map(level),
            calibration: experiment.figures.part("calibration").ok().flatten(),
            switch: experiment.figures.part("switch").ok().flatten().unwrap_or_default(),
            wake: experiment.figures.part("wake").ok().flatten(),
            model,
            predicted: asked.zip(model).map(|(asked, model)| asked.predict(&model)),
            ceilings: MeasuredCeiling::both(experiment),
            memory_bytes: median(&memory),
            five_percent_cpu: above(|one| Some(one.cpu_ns)),
            five_percent_p50: above(|one| one.p50_ns),
            errors: errors(&held_out),
            core_each: CoreEach::from_experiment(experiment),
            held_out,
            fitted,
        }
    }

    /// Returns why the measured error may not be quoted.
    fn fitness(&self, experiment: &Experiment) -> Fitness {
        (sweep::RUNS.fitness)(experiment)
    }
}

/// Fits the model of strategies that share a core to the usable measurements in `cells`; `None` if
/// they are too few.
pub fn fit(cells: &[MeasuredCell]) -> Option<SharedCoreModel> {
    let usable = cells.iter().filter(|cell| cell.is_usable).map(|cell| cell.cell);
    SharedCoreModel::fit(&usable.collect::<Vec<_>>())
}

fn errors(cells: &[PredictedCell]) -> PredictionErrors {
    let usable = || cells.iter().filter(|cell| cell.measured.is_usable);
    let both = |of: &dyn Fn(&PredictedCell, usize) -> Option<f64>| {
        let all: Vec<f64> = usable().flat_map(|cell| [of(cell, 0), of(cell, 1)]).flatten().collect();
        median(&all)
    };
    let one =
        |of: &dyn Fn(&PredictedCell) -> Option<f64>| median(&usable().filter_map(of).collect::<Vec<_>>());
    let added = |[thread, process]: [f64; 2]| process - thread;
    let added_ns = |cell: &PredictedCell| {
        let [thread, process] = cell.predicted;
        Some((added([thread.p50_ns?, process.p50_ns?]), added(cell.measured.cell.p50_ns)))
    };
    let is_beyond = |cell: &&PredictedCell| cell.predicted.iter().any(|level| level.p50_ns.is_none());
    PredictionErrors {
        cells: usable().count(),
        beyond_range: usable().filter(is_beyond).count(),
        p50: both(&|cell, level| {
            Some((cell.predicted[level].p50_ns? / cell.measured.cell.p50_ns[level] - 1.0).abs())
        }),
        cpu: both(&|cell, level| {
            Some((cell.predicted[level].cpu_ns / cell.measured.cell.cpu_ns[level] - 1.0).abs())
        }),
        added_p50: one(&|cell| {
            added_ns(cell).map(|(predicted, measured)| (predicted / measured - 1.0).abs())
        }),
        added_p50_ns: one(&|cell| added_ns(cell).map(|(predicted, measured)| (predicted - measured).abs())),
        added_cpu: one(&|cell| {
            let predicted = added(cell.predicted.map(|level| level.cpu_ns));
            let measured = added(cell.measured.cell.cpu_ns);
            (measured != 0.0).then(|| (predicted / measured - 1.0).abs())
        }),
    }
}

//! `lab`: the cost of each queue with each way of waiting, run by run.

mod against;
mod cell;
mod charts;
mod figures;
mod fitness;
mod report;
mod run;
mod seed;
mod tables;

pub use cell::LabCell;
pub use report::report;
pub use run::{LabLatency, LabRun, SideCost, histogram, percentile};

use super::{Answer, Axis, Experiment, KindEntry, RowKind, Setting, sweep};
use record::document::answer_json;
use record::fitness::Fitness;
use record::machine::Machine;
use record::numbers::counted;
use serde::{Deserialize, Serialize};
use system::named_enum;

/// The entry of `launcher lab` in the table of experiment kinds: title, kind of rows, and functions
/// that compute report, JSON and fitness. The command is the queue benchmark.
pub const KIND: KindEntry = KindEntry {
    title: "Which queue, which way of waiting",
    rows: RowKind::QueueRun,
    is_complete: |row| {
        row.figures
            .part::<Vec<String>>("problems")
            .is_ok_and(|found| found.is_none_or(|found| found.is_empty()))
    },
    summary: |experiment| {
        let cells = counted(experiment.settings().len() as u64, "cell");
        format!("lab of {cells}, {} each", counted(experiment.repeats.into(), "run"))
    },
    fitness: |experiment| {
        Lab::from_experiment(experiment).map_or_else(|why| Fitness::new(vec![why]), |lab| lab.fitness())
    },
    check: |experiment| Lab::from_experiment(experiment).map(drop),
    answer: |experiment, _| {
        let lab = Lab::from_experiment(experiment)?;
        let document = LabDocument { lab: &lab, figures: figures::summaries(&lab) };
        let json = answer_json("bulkhead.lab/2", &document).map_err(|error| error.to_string())?;
        Ok(Answer { report: report(&lab), json })
    },
    ..sweep::RUNS
};

/// The settings that the queue benchmark varies, like nested loops: the first is the outermost, the
/// last the innermost.
pub const AXES: [Axis; 7] = [
    Axis::Technique,
    Axis::Isolation,
    Axis::Producers,
    Axis::Consumers,
    Axis::Producer,
    Axis::Consumer,
    Axis::Wait,
];

named_enum! {
    /// How an end of a queue waits: a consumer that finds it empty, a producer that finds it full.
    Wait {
        /// Polls again at once, with the CPU's pause hint.
        Busy = "busy",
        /// Yields the core (`sched_yield`), then polls again.
        Yield = "yield",
        /// Sleeps for a fixed time, then polls again.
        Poll = "poll",
        /// Sleeps on a futex until the other end rings.
        Park = "park",
    }
}

named_enum! {
    /// Whether an end has work for each event in addition to handing it on.
    Speed {
        /// Nothing.
        Fast = "fast",
        /// Works or sleeps for each event.
        Slow = "slow",
    }
}

/// The answer of `launcher lab`, the queue benchmark: each combination of settings and its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lab {
    /// bulkhead's version.
    pub version: String,
    /// Time at which the lab began, UTC (RFC 3339).
    pub started: String,
    /// The machine that was measured.
    pub machine: Machine,
    /// The settings that all cells share.
    #[serde(flatten)]
    pub plan: LabPlan,
    /// Remarks, one line each.
    pub notes: Vec<String>,
    /// The cells of the lab, which are compared with each other.
    pub cells: Vec<LabCell>,
}

/// The settings that all cells of the queue benchmark share, saved among the figures of the whole
/// experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabPlan {
    /// Number of events in a run, of all producers together.
    pub events: u64,
    /// Number of runs of each cell that has no number of its own.
    pub runs: u32,
    /// Requested number of slots of a queue.
    pub capacity_asked: u64,
    /// Number of slots of a queue: the next power of two; a cell has another number if its queue is
    /// exact.
    pub capacity: u32,
    /// Work or sleep per event of a slow end: `work:5us`, `sleep:1ms`.
    pub slow: String,
    /// Half-width of the random variation of the slow end's delay, as a share of the delay.
    pub jitter: f64,
    /// Sleep of the way of waiting [`Wait::Poll`], in nanoseconds.
    pub poll_ns: u64,
    /// The timer slack of every thread, in nanoseconds (`PR_SET_TIMERSLACK`).
    pub slack_ns: u64,
    /// Seed of the jitter; run n has this seed plus n.
    pub seed: u64,
    /// The cores of producers and consumers in turn; empty: not pinned.
    pub cores: Vec<u32>,
    /// Whether a kernel that lacks a sandbox feature is accepted.
    pub weaker_sandbox: bool,
    /// Cost of one reading of the clock, in nanoseconds.
    pub clock_read_ns: f64,
    /// MeasuredLabCell duration of a sleep of one millisecond on this machine.
    pub sleep: Option<SleepSample>,
    /// Reasons why `launcher doctor` called the machine unfit before the lab began; empty if it did
    /// not.
    #[serde(default)]
    pub unfit: Vec<String>,
}

/// Median durations of `sleep(1 ms)` on this machine, in nanoseconds, with the default timer slack
/// and with 1 ns of slack.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SleepSample {
    /// Median duration with the default timer slack of a process (50 µs), in nanoseconds.
    pub default_ns: u64,
    /// Median duration with `PR_SET_TIMERSLACK` of 1 ns, in nanoseconds.
    pub precise_ns: u64,
    /// Number of measured sleeps of each kind.
    pub samples: u32,
}

/// The output of `--json`: the lab with its runs, and the figures of each measured cell.
#[derive(Serialize)]
struct LabDocument<'a> {
    #[serde(flatten)]
    lab: &'a Lab,
    figures: Vec<figures::CellSummary>,
}

impl LabPlan {
    /// Reads the settings that all cells of a queue benchmark share.
    ///
    /// # Errors
    /// A figure that is missing, or of another type.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        experiment.figures.record().map_err(|error| error.to_string())
    }

    /// Returns the number of events (messages) in a run of a cell of the queue benchmark.
    pub fn events_of(&self, cell: &LabCell) -> u64 {
        cell.events.unwrap_or(self.events)
    }

    /// Returns the number of runs of a cell of the queue benchmark.
    pub fn runs_of(&self, cell: &LabCell) -> u32 {
        cell.runs.unwrap_or(self.runs)
    }

    /// Returns the number of slots in the queue of a benchmark cell.
    pub fn slots_of(&self, cell: &LabCell) -> u32 {
        cell.slots.unwrap_or(self.capacity)
    }

    /// Returns `true` if a cell has a slow producer or consumer that sleeps for each event, and
    /// waiting ends sleep too (poll or park).
    pub fn sleeps(&self, cell: &LabCell) -> bool {
        let is_slow = |speed| speed == Speed::Slow;
        let waits = if cell.consumers == 0 {
            is_slow(cell.producer)
        } else {
            is_slow(cell.producer) || is_slow(cell.consumer)
        };
        waits && self.slow.starts_with("sleep:") && matches!(cell.wait, Wait::Poll | Wait::Park)
    }
}

impl Lab {
    /// Reads the queue benchmark from the rows of its experiment.
    ///
    /// # Errors
    /// A row whose settings or figures are not those of a lab.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        let cell = |setting: Setting| -> Result<LabCell, String> {
            let rows = experiment.made().filter(|row| row.setting.name == setting.name);
            let made: Result<Vec<LabRun>, _> = rows.map(|row| row.figures.record()).collect();
            let mut made = made.map_err(|error| format!("{}: {error}", setting.name))?;
            made.sort_by_key(|run| run.number);
            Ok(LabCell { made, ..LabCell::from_setting(&setting)? })
        };
        let lab = Self {
            version: experiment.version.clone(),
            started: experiment.started.clone(),
            machine: experiment.machine.clone(),
            plan: LabPlan::from_experiment(experiment)?,
            notes: experiment.notes.clone(),
            cells: experiment.settings().into_iter().map(cell).collect::<Result<_, _>>()?,
        };
        lab.check()?;
        Ok(lab)
    }

    /// Returns the number of valid runs of the queue benchmark, and the number of planned runs.
    pub fn progress(&self) -> (usize, usize) {
        let planned = self.cells.iter().map(|cell| self.plan.runs_of(cell) as usize);
        (self.cells.iter().map(|cell| cell.valid_runs().count()).sum(), planned.sum())
    }

    /// Returns the maximum number of the benchmark's runs that were made at the same time.
    pub fn side_by_side(&self) -> u32 {
        self.cells.iter().flat_map(LabCell::valid_runs).map(|run| run.side_by_side).max().unwrap_or(0)
    }

    fn check(&self) -> Result<(), String> {
        for cell in &self.cells {
            let name = cell.name();
            cell.latencies().map_err(|why| format!("{name}: histogram: {why}"))?;
            let runs = self.plan.runs_of(cell);
            if let Some(run) = cell.made.iter().find(|run| run.number >= runs) {
                return Err(format!("{name}: run {} of {runs}", run.number));
            }
            if cell.producers == 0 {
                return Err(format!("{name}: no producer"));
            }
        }
        let capacity = self.plan.capacity;
        if capacity.is_power_of_two() { Ok(()) } else { Err(format!("capacity {capacity}")) }
    }
}

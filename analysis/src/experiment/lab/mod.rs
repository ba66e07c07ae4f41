//! `lab`: the cost of each queue with each way of waiting, run by run.

mod against;
mod charts;
mod figures;
mod fitness;
mod report;
mod seed;
mod tables;

pub use report::report;

use super::{Answer, Axis, Experiment, Figures, KindEntry, RowKind, Setting, sweep};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use protocol::plan::{Isolation, Technique};
use record::document::answer_json;
use record::fitness::Fitness;
use record::machine::Machine;
use record::numbers::counted;
use serde::{Deserialize, Serialize};
use system::named_enum;

/// The entry of `launcher lab`.
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

/// The axes of a lab, the slowest one first.
pub const AXES: [Axis; 7] = [
    Axis::Technique,
    Axis::Isolation,
    Axis::Producers,
    Axis::Consumers,
    Axis::Producer,
    Axis::Consumer,
    Axis::Wait,
];

/// The settings of a row: what distinguishes the cells of a lab.
const SETTINGS: [&str; 11] = [
    "technique",
    "isolation",
    "producers",
    "consumers",
    "producer",
    "consumer",
    "wait",
    "events",
    "runs",
    "slots",
    "capacity",
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
    /// Time at which the lab began, RFC 3339.
    pub started: String,
    /// The machine that was measured.
    pub machine: Machine,
    /// What all cells share.
    #[serde(flatten)]
    pub plan: LabPlan,
    /// Remarks, one line each.
    pub notes: Vec<String>,
    /// The cells that are measured against each other.
    pub cells: Vec<LabCell>,
}

/// What all cells of a lab share: among the figures of the experiment as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabPlan {
    /// Events of a run, of all producers together.
    pub events: u64,
    /// Runs of each cell that has no other number of its own.
    pub runs: u32,
    /// Slots of a queue, as requested.
    pub capacity_asked: u64,
    /// Slots of a queue: the next power of two; a cell has others if its queue is exact.
    pub capacity: u32,
    /// The meaning of slow: `work:5us`, `sleep:1ms`.
    pub slow: String,
    /// Range of the slow side's delay to both sides, as a share of it.
    pub jitter: f64,
    /// Sleep of [`Wait::Poll`], in nanoseconds.
    pub poll_ns: u64,
    /// The timer slack of every thread, in nanoseconds (`PR_SET_TIMERSLACK`).
    pub slack_ns: u64,
    /// Seed of the jitter; run n has this seed plus n.
    pub seed: u64,
    /// The cores of producers and consumers in turn; empty: not pinned.
    pub cores: Vec<u32>,
    /// Continue if the kernel lacks a sandbox feature.
    pub weaker_sandbox: bool,
    /// Cost of one reading of the clock, in nanoseconds.
    pub clock_read_ns: f64,
    /// Duration of a sleep of a millisecond on this machine.
    pub sleep: Option<SleepSample>,
    /// Why `launcher doctor` called the machine unfit before the lab began; empty if it did not.
    #[serde(default)]
    pub unfit: Vec<String>,
}

/// The duration of `sleep(1 ms)` on this machine: medians in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SleepSample {
    /// Median with the default timer slack of a process (50 µs).
    pub default_ns: u64,
    /// Median with `PR_SET_TIMERSLACK` of 1 ns.
    pub precise_ns: u64,
    /// Sleeps of each kind.
    pub samples: u32,
}

/// One combination of settings of the queue benchmark, and its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabCell {
    /// The technique that carries the events.
    pub technique: Technique,
    /// The isolation level between the ends.
    pub isolation: Isolation,
    /// Number of producers.
    pub producers: u16,
    /// Number of consumers; each gets every event.
    pub consumers: u16,
    /// Whether the producers are fast or slow.
    pub producer: Speed,
    /// Whether the consumers are fast or slow.
    pub consumer: Speed,
    /// Wait strategy of both ends.
    pub wait: Wait,
    /// Events of a run of this cell; `None`: as many as the lab's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Runs of this cell; `None`: as many as the lab's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Slots of this cell's queue; `None`: as many as the lab's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Events that the queue holds at most; `None`: no count bounds it, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The runs, by their number.
    #[serde(default)]
    pub made: Vec<LabRun>,
}

/// The output of `--json`: the lab with its runs, and the figures of each measured cell.
#[derive(Serialize)]
struct LabDocument<'a> {
    #[serde(flatten)]
    lab: &'a Lab,
    figures: Vec<figures::CellSummary>,
}

/// One run of the queue benchmark with one combination of settings. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabRun {
    /// Number of the run, from 0.
    pub number: u32,
    /// Time from the first event made to the last one taken.
    pub run_ns: u64,
    /// Events taken, by all consumers together.
    pub taken: u64,
    /// Time from an event made to that event taken; null where nothing was taken.
    pub latency: Option<LabLatency>,
    /// The latencies, in nanoseconds: HdrHistogram's V2 format with deflate, in base64; empty
    /// without any.
    #[serde(default)]
    pub histogram: String,
    /// Resources of all producers together.
    pub producer: SideCost,
    /// Resources of all consumers together.
    pub consumer: SideCost,
    /// Each producer's share of the first half of what the first consumer took.
    pub shares: Vec<f64>,
    /// The longest that each producer waited for room.
    pub longest_wait_ns: Vec<u64>,
    /// Runs that were made side by side, this one included, not pinned; 0: it was made alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub side_by_side: u32,
    /// Failed checks, or why the run ended early; empty if all is well.
    pub problems: Vec<String>,
}

const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Latencies of one run. A percentile with fewer than ten events beyond it is null.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LabLatency {
    pub mean_ns: f64,
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub p999_ns: Option<u64>,
    pub max_ns: u64,
}

/// CPU time and context switches of one end of a queue in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideCost {
    /// CPU time of the side's threads, user and system, while they ran.
    pub cpu_ns: u64,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Context switches that the kernel forced on the side's threads.
    pub involuntary: u64,
    /// Number of waits: the queue was empty, or full.
    #[serde(rename = "looks")]
    pub polls: u64,
    /// Number of times the side's threads came back from a yield or a sleep.
    pub wakes: u64,
}

impl SideCost {
    /// Returns the sum of two ends' CPU times and context switches.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            voluntary: self.voluntary.saturating_add(other.voluntary),
            involuntary: self.involuntary.saturating_add(other.involuntary),
            polls: self.polls.saturating_add(other.polls),
            wakes: self.wakes.saturating_add(other.wakes),
        }
    }
}

/// The least number of samples beyond a percentile that is given.
const MIN_SAMPLES_BEYOND: f64 = 10.0;

/// Creates an empty histogram of latencies, with three significant digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are allowed")
}

/// Returns a percentile of a histogram, if at least ten samples are beyond it.
pub fn percentile(histogram: &Histogram<u64>, share: f64) -> Option<u64> {
    (histogram.len() as f64 * (1.0 - share) >= MIN_SAMPLES_BEYOND - 1e-6)
        .then(|| histogram.value_at_quantile(share))
}

impl LabLatency {
    /// Summarizes a run's latencies, in nanoseconds; `None` without any.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self {
            mean_ns: histogram.mean(),
            p50_ns: percentile(histogram, 0.5),
            p90_ns: percentile(histogram, 0.9),
            p99_ns: percentile(histogram, 0.99),
            p999_ns: percentile(histogram, 0.999),
            max_ns: histogram.max(),
        })
    }
}

impl LabRun {
    /// Adds the latencies, packed.
    pub fn pack_latencies(&mut self, latencies: &Histogram<u64>) -> Result<(), String> {
        let mut packed = Vec::new();
        if !latencies.is_empty() {
            let packing = V2DeflateSerializer::new().serialize(latencies, &mut packed);
            packing.map_err(|error| format!("{error:?}"))?;
        }
        self.histogram = STANDARD.encode(packed);
        Ok(())
    }
}

impl LabCell {
    /// Reads the cell of a row, without runs.
    ///
    /// # Errors
    /// A setting that is missing, or that cannot be read.
    pub fn from_setting(setting: &Setting) -> Result<Self, String> {
        let cell = Figures::default().with_settings(&setting.settings).record();
        cell.map_err(|error| format!("{}: {error}", setting.name))
    }

    /// Returns the cell as the setting of its rows.
    pub fn setting(&self) -> Setting {
        Setting::from_texts(self.name(), Figures::from_record(self).take_settings(&SETTINGS), &AXES)
    }

    /// Returns the latencies of all valid runs of this combination of settings.
    pub fn latencies(&self) -> Result<Histogram<u64>, String> {
        let mut all = histogram();
        for run in self.valid_runs().filter(|run| !run.histogram.is_empty()) {
            let packed = STANDARD.decode(&run.histogram).map_err(|error| error.to_string())?;
            let read = Deserializer::new().deserialize(&mut packed.as_slice());
            let one: Histogram<u64> = read.map_err(|error| format!("{error:?}"))?;
            all.add(&one).map_err(|error| error.to_string())?;
        }
        Ok(all)
    }

    /// Returns the runs in which every check passed.
    pub fn valid_runs(&self) -> impl Iterator<Item = &LabRun> + Clone {
        self.made.iter().filter(|run| run.problems.is_empty())
    }

    /// Returns the speeds of producer and consumer: `fast→slow`.
    pub fn speeds(&self) -> String {
        format!("{}→{}", self.producer, self.consumer)
    }

    /// Returns queue, speeds and waiting in one line.
    pub fn name(&self) -> String {
        let ends = match (self.producers, self.consumers) {
            (1, 1) => String::new(),
            (producers, consumers) => format!(" {producers}→{consumers}"),
        };
        format!("{} {}{ends} {} {}", self.technique, self.isolation, self.speeds(), self.wait)
    }

    /// Returns the queue, without the speeds of its ends and the way of waiting.
    pub fn carrier(&self) -> String {
        let ends = match (self.producers, self.consumers) {
            (1, 1) => String::new(),
            (producers, consumers) => format!(", {producers} to {consumers}"),
        };
        format!("{}, {}{ends}", self.technique, self.isolation)
    }
}

impl LabPlan {
    /// Reads what all cells of an experiment share.
    ///
    /// # Errors
    /// A figure that is missing, or of another type.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        experiment.figures.record().map_err(|error| error.to_string())
    }

    /// Returns the number of events in a run of a cell.
    pub fn events_of(&self, cell: &LabCell) -> u64 {
        cell.events.unwrap_or(self.events)
    }

    /// Returns the number of runs of a cell.
    pub fn runs_of(&self, cell: &LabCell) -> u32 {
        cell.runs.unwrap_or(self.runs)
    }

    /// Returns the number of slots in a cell's queue.
    pub fn slots_of(&self, cell: &LabCell) -> u32 {
        cell.slots.unwrap_or(self.capacity)
    }

    /// Returns `true` if no end of a cell uses a core while it waits or is slow: all of them sleep.
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
    /// Reads the lab in the rows of an experiment.
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

    /// Returns the number of finished runs, and that of all planned ones.
    pub fn progress(&self) -> (usize, usize) {
        let planned = self.cells.iter().map(|cell| self.plan.runs_of(cell) as usize);
        (self.cells.iter().map(|cell| cell.valid_runs().count()).sum(), planned.sum())
    }

    /// Returns the greatest number of runs that were made side by side.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let mut histogram = histogram();
        (1..=1000).for_each(|value| histogram.record(value).unwrap());
        let latency = LabLatency::from_histogram(&histogram).unwrap();
        assert_eq!((latency.p50_ns, latency.p90_ns, latency.p99_ns), (Some(500), Some(900), Some(990)));
        assert_eq!((latency.p999_ns, latency.max_ns), (None, 1000));
        assert_eq!(LabLatency::from_histogram(&super::histogram()), None);
    }

    #[test]
    fn the_latencies_of_runs_add_up() {
        let golden = Lab::from_experiment(&crate::fixture("saved/lab.json")).unwrap();
        let run = |number, problems: &[&str], latencies: &Histogram<u64>| {
            let problems = problems.iter().map(|text| (*text).to_owned()).collect();
            let mut run = LabRun { number, problems, ..golden.cells[0].made[0].clone() };
            run.pack_latencies(latencies).unwrap();
            run
        };
        let (mut one, mut far) = (histogram(), histogram());
        one.record(700).unwrap();
        far.record(700_000_000).unwrap();
        let with = |made| LabCell { made, ..golden.cells[0].clone() }.latencies();
        let failed = with(vec![run(0, &["lost"], &one), run(1, &[], &one)]);
        assert_eq!(failed.unwrap().len(), 1, "not those of the one that failed");
        let both = with(vec![run(0, &[], &far), run(1, &[], &one)]);
        assert_eq!(both.unwrap().len(), 2, "also far above the first run's values");
        assert!(with(vec![LabRun { histogram: "AAAA".into(), ..run(0, &[], &far) }]).is_err());
    }
}

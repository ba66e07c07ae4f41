//! `board`: the results of the board benchmark, case by case.

mod report;
mod seed_tables;
mod thresholds;
mod time_plot;
mod timeline;

pub use report::report;
pub use thresholds::{BoardThreshold, BoardWarning, BoardWarnings, THRESHOLDS};
pub use timeline::{BoardSlice, ThreadLatencies, latency_csv};
pub use verdict::chart::percentile_plot::curve;

use super::{Answer, Axis, Experiment, ExperimentState, Figures, KindEntry, Row, RowKind, sweep};
use protocol::plan::Isolation;
use record::document::answer_json;
use record::fitness::{Fitness, preemption_reason};
use record::machine::Machine;
use record::numbers::counted;
use serde::{Deserialize, Serialize};
use verdict::summary::Distribution;

/// The entry of `launcher board` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. The command measures a value board (latest
/// values in shared memory).
pub const KIND: KindEntry = KindEntry {
    title: "The board: one writer, any number of readers",
    rows: RowKind::BoardRun,
    is_complete: |_| true,
    summary: |experiment| format!("board of {}", counted(experiment.made().count() as u64, "case")),
    fitness: |experiment| {
        Boards::from_experiment(experiment)
            .map_or_else(|why| Fitness::new(vec![why]), |boards| boards.fitness())
    },
    check: |experiment| Boards::from_experiment(experiment).map(drop),
    answer: |experiment, _| {
        let boards = Boards::from_experiment(experiment)?;
        let json = answer_json("bulkhead.board/1", &boards).map_err(|error| error.to_string())?;
        Ok(Answer { report: report(&boards), json })
    },
    ..sweep::RUNS
};

/// The answer of `launcher board`, the benchmark of a value board with many readers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Boards {
    /// The version of bulkhead.
    pub version: String,
    /// Time at which the benchmark began, UTC.
    pub started: String,
    /// The machine on which the benchmark ran.
    pub machine: Machine,
    /// Whether the benchmark was ended before all cases were measured.
    pub interrupted: bool,
    /// The limits of figures beyond which a case gets a warning.
    pub warn: BoardWarnings,
    /// The measured cases, in the order in which they were measured.
    pub cases: Vec<BoardCase>,
    /// Reasons why `launcher doctor` called the machine unfit before the benchmark began; empty if
    /// it did not.
    pub unfit: Vec<String>,
    /// Remarks, one line each.
    pub notes: Vec<String>,
}

/// The settings that all cases of a board benchmark share, saved among the figures of the whole
/// experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoardPlan {
    /// The limits of figures beyond which a case gets a warning.
    pub warn: BoardWarnings,
    /// Reasons why `launcher doctor` called the machine unfit before the benchmark began.
    pub unfit: Vec<String>,
    /// Duration of a case, in nanoseconds.
    pub duration_ns: u64,
    /// Seed of the times at which writes are due.
    pub seed: u64,
    /// The requested cores, the writer's first; `None`: all.
    pub cores: Option<Vec<u32>>,
    /// Nanoseconds from one decision tick to the next; `None`: there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decide_every_ns: Option<u64>,
}

/// The settings that a board benchmark varies, like nested loops: the first is the outermost, the
/// last the innermost.
pub const AXES: [Axis; 7] =
    [Axis::Mode, Axis::SizeBytes, Axis::Readers, Axis::Waiting, Axis::Isolation, Axis::On, Axis::Nodes];

/// The settings of a row: what distinguishes the cases of a board's benchmark.
const SETTINGS: [&str; 10] =
    ["mode", "readers", "size_bytes", "cells", "slots", "isolation", "waiting", "on", "nodes", "carrier"];

impl BoardPlan {
    /// Reads the settings that all cases of a board benchmark share.
    ///
    /// # Errors
    /// A figure of another type.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        experiment.figures.record().map_err(|error| error.to_string())
    }
}

impl Boards {
    /// Reads the results of a board benchmark from the rows of its experiment.
    ///
    /// # Errors
    /// A row whose settings or figures are not those of a case.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        let BoardPlan { warn, unfit, .. } = BoardPlan::from_experiment(experiment)?;
        let case = |row: &Row| row.figures.with_settings(&row.setting.settings).record();
        let cases: Result<_, _> = experiment.made().map(case).collect();
        Ok(Self {
            version: experiment.version.clone(),
            started: experiment.started.clone(),
            machine: experiment.machine.clone(),
            interrupted: experiment.state != ExperimentState::Complete,
            warn,
            cases: cases.map_err(|error| error.to_string())?,
            unfit,
            notes: experiment.notes.clone(),
        })
    }
}

/// One combination of settings of the board benchmark: a writer and its readers under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardCase {
    /// The write load, as on the command line: `poisson:10000`.
    pub mode: String,
    /// Number of readers.
    pub readers: u64,
    /// Size of a value, in bytes.
    pub size_bytes: u64,
    /// Number of cells of the board.
    pub cells: u64,
    /// Number of slots of a cell, each for one version.
    pub slots: u64,
    /// The isolation level between writer and readers.
    pub isolation: Isolation,
    /// Wait strategy of the readers.
    pub waiting: String,
    /// Where the board is: `memory`, or the folder on a file system.
    pub on: String,
    /// The NUMA nodes of writer and readers: `0:1`; empty: not chosen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nodes: String,
    /// Name of the measured data structure: `board`.
    pub carrier: String,
    /// Nanoseconds from the start to the end of the last write.
    pub duration_ns: u64,
    /// Number of writes that were due in the case's duration; `None`: as many as could be made.
    pub scheduled: Option<u64>,
    /// The writer's core; `None`: the kernel's choice.
    pub writer_core: Option<u32>,
    /// The readers' cores, in turn.
    pub reader_cores: Vec<u32>,
    /// Whether readers share their cores with others.
    pub shared: bool,
    /// The clock from which times are read.
    pub clock: String,
    /// Nanoseconds per clock tick, over the case.
    pub ns_per_tick: f64,
    /// The figures of the writer.
    pub writer: BoardWriter,
    /// The figures of all readers together, added up from all logs.
    pub all: BoardReading,
    /// The figures of each reader.
    pub each: Vec<BoardReader>,
    /// Deaths of writers and readers.
    pub deaths: Vec<BoardDeath>,
    /// Figures of each sixtieth of the case's duration; empty in documents of some earlier builds.
    pub timeline: Vec<BoardSlice>,
    /// Percentile curves, for the page.
    pub curves: Vec<BoardCurve>,
    /// How far apart the readers decided; null without decision ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<BoardSkew>,
    /// Figures that reached their limits.
    #[serde(default)]
    pub warnings: Vec<BoardWarning>,
    /// Reasons why the case is not valid; empty for a valid case.
    pub problems: Vec<String>,
}

/// How much all readers of a board differ at a decision tick (the writer's periodic signal to
/// read): in versions read and read times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoardSkew {
    /// Number of decision ticks for which every reader read, of the last 4,096.
    pub decisions: u64,
    /// Number of those decision ticks for which readers of the newest value had different versions.
    pub differing: u64,
    /// The greatest distance between the versions that readers had for one decision tick.
    pub max_versions: u64,
    /// Time from the first reader's read to the last one's, over all decision ticks.
    pub apart: Distribution,
    /// Number of decision ticks for which a reader found the named version overwritten.
    pub overwritten: u64,
}

/// Counts and latencies of the writer in a run of the board benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoardWriter {
    /// Number of writes.
    pub writes: u64,
    /// Number of writes a second.
    pub writes_per_s: f64,
    /// Nanoseconds from the beginning to the end of a write.
    pub write: Distribution,
    /// 95th percentile of a write in nanoseconds, as in the seed's table; from 200 writes on.
    pub write_p95_ns: Option<u64>,
    /// Nanoseconds from a write's due time to its end; `None`: nothing is due under stress.
    pub from_due: Option<Distribution>,
    /// The kernel's counts of the writer; `None` if it died.
    pub usage: Option<BoardUsage>,
}

/// Counts and latencies of all readers in a run of the board benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoardReading {
    /// Number of values that the readers read.
    pub reads: u64,
    /// Number of values read a second.
    pub reads_per_s: f64,
    /// Number of versions that were overwritten before they were read.
    pub missed: u64,
    /// Share of missed versions among those written for these readers, 0 to 1; `None` without any.
    pub missed_share: Option<f64>,
    /// Number of written versions that were neither read nor counted as missed, because a reader
    /// died.
    pub unseen: u64,
    /// Number of values whose content was not that of their version.
    pub torn: u64,
    /// Number of reads that were given up because the writer overtook the reader.
    pub overtaken: u64,
    /// Time from the beginning of a write until the reader has the value.
    pub propagation: Distribution,
    /// Time from seeing a version until the reader has the value.
    pub read: Distribution,
    /// 95th percentile of a read in nanoseconds, as in the seed's table; from 200 reads on.
    pub read_p95_ns: Option<u64>,
    /// Age of a reader's value: from the due time of the next version until it has a newer one.
    /// `None`: nothing is due under stress.
    pub stale: Option<Distribution>,
}

/// Counts and latencies of one reader in a run of the board benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardReader {
    /// Name of the reader: `reader-3`.
    pub name: String,
    /// The core of the reader.
    pub core: Option<u32>,
    /// The values that the reader received.
    pub reading: BoardReading,
    /// The kernel's counts of the reader; `None` if it died.
    pub usage: Option<BoardUsage>,
}

/// CPU time, context switches and page faults of a thread of the board benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardUsage {
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Context switches that the thread asked for.
    pub voluntary_switches: u64,
    /// Context switches that the kernel forced on the thread.
    pub involuntary_switches: u64,
    /// Number of page faults.
    pub faults: u64,
}

/// The death of a writer or a reader process in the board benchmark: process, signal and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardDeath {
    /// Name of the process: `board-writer`, `board-reader-3`.
    pub process: String,
    /// How the process ended: `signal 9 (SIGKILL)`.
    pub how: String,
    /// Time at which the death was observed, in nanoseconds from the start.
    pub at_ns: u64,
    /// Whether a successor of the dead process continued.
    pub succeeded: bool,
}

/// The percentile curve, in nanoseconds, of one latency that the board benchmark measures, such as
/// the duration of a write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardCurve {
    /// Name of the measured duration: `write`, `propagation`, …
    pub measure: String,
    /// Points of the curve, `(1/(1 − p), nanoseconds)`, rising, as far as ten samples are beyond.
    pub points: Vec<(f64, u64)>,
}

impl Boards {
    /// Returns whether the board benchmark's latencies may be quoted, with reasons against it:
    /// invalid or missing cases, an unfit machine, unsuitable cores or preempted threads.
    pub fn fitness(&self) -> Fitness {
        let mut reasons = Vec::new();
        let invalid = self.cases.iter().filter(|case| !case.is_valid()).count();
        if invalid > 0 || self.cases.is_empty() {
            reasons.push(format!("{invalid} of {} cases are not sound", self.cases.len()));
        }
        if self.interrupted {
            reasons.push("interrupted before all cases were measured".into());
        }
        for case in &self.cases {
            let cores: Vec<u32> = case.writer_core.iter().chain(&case.reader_cores).copied().collect();
            let threads = case.readers as usize + 1;
            for reason in Fitness::from_machine(&self.machine, &cores, threads, &self.unfit).reasons {
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
            let usages = case.each.iter().map(|reader| (reader.name.as_str(), reader.usage));
            let preempted = usages.chain([("writer", case.writer.usage)]).find_map(|(thread, usage)| {
                preemption_reason(thread, usage?.involuntary_switches, case.duration_ns)
            });
            reasons.extend(preempted);
        }
        Fitness::new(reasons)
    }
}

impl BoardCase {
    /// Returns the measured figures of a board benchmark's case by name, without the settings that
    /// distinguish cases.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures::from_record(self);
        let _ = figures.take_settings(&SETTINGS);
        figures
    }

    /// Returns the share (0 to 1) of the board's written versions that readers missed; `None`
    /// without readers.
    pub fn missed_share(&self) -> Option<f64> {
        let written = self.writer.writes.saturating_mul(self.readers);
        (written > 0).then(|| self.all.missed as f64 / written as f64)
    }

    /// Returns `true` if the board's case has no problem, such as a torn read, missing writes, or
    /// versions neither read nor counted as missed.
    pub fn is_valid(&self) -> bool {
        self.problems.is_empty()
    }
}

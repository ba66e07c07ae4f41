//! `survey`: the results of every experiment on one machine.

mod brief;
mod card;
mod index;
mod picture;
mod report;

pub use brief::issue_line;
pub use card::{svg_card, text_card};
pub use index::{SurveyIndex, survey_index};
pub(super) use picture::STYLE as CARD_STYLE;
pub use report::report;

use super::{
    Answer, Axis, Comparisons, Containments, Disturbances, Experiment, ExperimentState, Figures,
    IsolationCosts, KindEntry, Row, RowKind, Setting, sweep,
};
use crate::stats::Spread;
use record::document::{Document, DocumentError};
use record::fitness::Fitness;
use record::machine::Machine;
use record::machine_check::MachineCheck;
use record::numbers::counted;
use record::switch_price::SwitchPrice;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use system::named_enum;

named_enum! {
    /// A part of a survey, in the order in which they are measured.
    SurveyPart {
        /// The round trip of a cache line between each two cores.
        Cores = "cores",
        /// Engine and exchange are killed and recover from their journals.
        Recovery = "recovery",
        /// Faults of a strategy.
        Containment = "containment",
        /// What a strategy that starts processes does to its neighbors.
        Disturbance = "disturbance",
        /// What a journal costs an order.
        Journal = "journal",
        /// What each isolation level costs.
        Bill = "bill",
        /// Rings per producer against one shared queue.
        Queue = "queue",
    }
}

/// The entry of `launcher survey` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. The command makes several short experiments on
/// one machine.
pub const KIND: KindEntry = KindEntry {
    title: "Survey",
    keeps_failures: true,
    rows: RowKind::SurveyPart,
    summary: |experiment| {
        let minutes = experiment.figures.part::<u64>("minutes").ok().flatten().unwrap_or(0);
        let is_complete = experiment.state == ExperimentState::Complete;
        let state = if is_complete { "" } else { ", incomplete" };
        format!("survey of at most {}{state}", counted(minutes, "minute"))
    },
    fitness: |experiment| {
        Survey::from_experiment(experiment)
            .map_or_else(|why| Fitness::new(vec![why]), |survey| survey.fitness)
    },
    check: |experiment| Survey::from_experiment(experiment).map(drop),
    answer: |experiment, _| {
        let json = experiment.json().map_err(|error| error.to_string())?;
        Ok(Answer { report: report(&Survey::from_experiment(experiment)?), json })
    },
    ..sweep::RUNS
};

/// The results of `launcher survey`: those of each short experiment on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Version of bulkhead.
    pub version: String,
    /// Time at which the survey began, RFC 3339.
    pub started: String,
    /// The time limit of the survey, in minutes.
    pub minutes: u32,
    /// Duration of the survey, in seconds.
    pub took_s: f64,
    /// Whether the survey ran to its end; `false` while it runs and after an interruption.
    pub complete: bool,
    /// The machine, without its host name.
    pub machine: Machine,
    /// Whether the survey's latencies may be quoted.
    pub fitness: Fitness,
    /// The results of `launcher doctor` before anything was measured.
    pub checks: Vec<MachineCheck>,
    /// The cost of a switch between address spaces, by the memory of each side; empty in older
    /// surveys and where it could not be measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switch: Vec<SwitchPrice>,
    /// The parts that were begun.
    pub parts: Vec<PartRecord>,
    /// Round trips of a cache line between cores.
    pub cores: Option<CoreMatrix>,
    /// Results of crash recovery of engine and exchange.
    pub recovery: Vec<Recovery>,
    /// Containment of strategy faults.
    pub containment: Option<Containments>,
    /// Effect on its neighbors of a strategy that starts processes; null in older surveys.
    #[serde(default)]
    pub disturbance: Option<Disturbances>,
    /// Comparison of a run with a journal with one without.
    pub journal: Option<Comparisons>,
    /// Cost of each isolation level, with the techniques over shared memory.
    #[serde(rename = "bill")]
    pub isolation_costs: Option<IsolationCosts>,
    /// Comparison of `spsc-mux` with crossbeam's `ArrayQueue`, at each rate.
    pub queue: Option<Comparisons>,
}

/// One experiment of `launcher survey`, which runs several on one machine: its commands, duration
/// and outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartRecord {
    /// The part of the survey, by name.
    pub part: SurveyPart,
    /// The commands by which a user can measure the part alone.
    pub commands: Vec<String>,
    /// Duration of this part, in seconds.
    pub took_s: f64,
    /// Reason why the part has no result, or less than planned; null if nothing is missing.
    pub shortfall: Option<String>,
}

/// The core-to-core round trips of a cache line between all pairs of a machine's CPU cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreMatrix {
    /// The measured cores.
    pub cores: Vec<u32>,
    /// Each pair that was measured, `a` before `b` in `cores`.
    pub pairs: Vec<CorePair>,
}

/// The round trip of a cache line between two CPU cores, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorePair {
    /// Number of the core that asks.
    pub a: u32,
    /// Number of the core that answers.
    pub b: u32,
    /// Median round trip in nanoseconds if both sides wait for each other in lockstep.
    pub synchronized_ns: f64,
    /// Median round trip in nanoseconds if both sides work for a random time before each store.
    pub unsynchronized_ns: f64,
}

/// The results of a run in which an engine role was killed repeatedly and recovered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Name of the role that was killed.
    pub role: String,
    /// Number of deaths of the role.
    pub killed: usize,
    /// Number of successors that recovered with the whole state of the journal.
    pub recovered: usize,
    /// Number of orders sent.
    pub sent: u64,
    /// Number of orders whose report returned.
    pub returned: u64,
    /// Time from each detection until the successor worked, in nanoseconds.
    pub recover_ns: Vec<u64>,
    /// Reason why the run was not valid; empty if it was.
    pub problem: String,
}

impl CoreMatrix {
    /// Returns median and range of a figure over all pairs of CPU cores; `None` without pairs.
    /// Values that are not positive are left out: a core changed its frequency within the
    /// measurement.
    pub fn spread(&self, of: impl Fn(&CorePair) -> f64) -> Option<Spread> {
        Spread::from_values(self.pairs.iter().map(of).filter(|ns| *ns > 0.0))
    }

    /// Returns the round trip of a cache line between two CPU cores, given in either order.
    pub fn pair(&self, a: u32, b: u32) -> Option<&CorePair> {
        self.pairs.iter().find(|pair| (pair.a, pair.b) == (a, b) || (pair.a, pair.b) == (b, a))
    }
}

impl Survey {
    /// Returns the date on which the survey began.
    fn day(&self) -> &str {
        self.started.split('T').next().unwrap_or_default()
    }

    /// Returns the reason why one of the survey's experiments has no result, or less than planned.
    pub fn shortfall(&self, part: SurveyPart) -> Option<&str> {
        self.parts.iter().find(|record| record.part == part)?.shortfall.as_deref()
    }
}

impl Survey {
    /// Reads the survey in the rows of an experiment.
    ///
    /// # Errors
    /// A row whose settings or figures are not those of a survey.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        let mut all = experiment.figures.clone();
        all.insert("version", &experiment.version);
        all.insert("started", &experiment.started);
        all.insert("machine", &experiment.machine);
        all.insert("complete", &(experiment.state == ExperimentState::Complete));
        all.insert("parts", &records(experiment, PART));
        for part in SurveyPart::ALL {
            let (list, _) = part.rows();
            if list.is_empty() {
                all.insert(part.name(), &records(experiment, part.name()));
            } else if all.has(part.name()) {
                all.insert(&format!("{part}.{list}"), &records(experiment, part.name()));
            }
        }
        let survey: Self = all.record().map_err(|error| error.to_string())?;
        survey.check()?;
        Ok(survey)
    }

    /// Reads the survey that is saved in a folder.
    ///
    /// # Errors
    /// The document is absent, damaged, of another version, or not a survey's.
    pub fn read(folder: &Path) -> Result<Self, DocumentError> {
        Experiment::read_as(folder, Self::from_experiment)
    }

    fn check(&self) -> Result<(), String> {
        let pairs = self.cores.iter().flat_map(|matrix| matrix.pairs.iter().map(move |pair| (matrix, pair)));
        for (matrix, pair) in pairs {
            if !matrix.cores.contains(&pair.a) || !matrix.cores.contains(&pair.b) {
                return Err(format!("cores {} and {}: not among the measured cores", pair.a, pair.b));
            }
        }
        let lost = self.recovery.iter().find(|run| run.returned > run.sent || run.recovered > run.killed);
        lost.map_or(Ok(()), |run| Err(format!("{}: more came back than there were", run.role)))
    }
}

/// The setting that names the part to which a row belongs.
const OF: &str = "of";
/// The name of the rows that tell how the parts went.
const PART: &str = "part";

impl SurveyPart {
    /// Returns the settings that identify the row in which a survey records how this part ended.
    pub fn setting(self) -> Setting {
        let settings = [(OF, PART), (PART, self.name())].map(|(key, text)| (key.to_owned(), text.to_owned()));
        Setting::from_texts(format!("{PART} {}", self as usize), settings.into(), &[Axis::Part])
    }

    /// Returns the list in the part's answer whose records are rows, and those of their fields that
    /// are settings. An answer that is a list has no name for it.
    const fn rows(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Cores => ("pairs", &["a", "b"]),
            Self::Recovery => ("", &["role"]),
            Self::Containment | Self::Disturbance => ("rows", &["isolation", "technique", "fault"]),
            Self::Journal | Self::Queue => ("comparisons", &["a", "b"]),
            Self::Bill => ("rows", &["isolation", "technique", "variant"]),
        }
    }

    /// Converts the main list in this part's results, such as its pairs of cores, to survey rows,
    /// and adds the other results to `figures`.
    pub fn found_rows(self, found: &impl Serialize, figures: &mut Figures) -> Vec<Row> {
        let (list, settings) = self.rows();
        let name = if list.is_empty() { self.name().to_owned() } else { format!("{self}.{list}") };
        figures.insert(self.name(), found);
        let records: Vec<Value> = figures.part(&name).ok().flatten().unwrap_or_default();
        figures.insert(&name, &Vec::<Value>::new());
        let row = |(number, record): (usize, &Value)| {
            let mut figures = Figures::from_record(record);
            let mut settings = figures.take_settings(settings);
            settings.insert(OF.to_owned(), self.name().to_owned());
            let setting = Setting { name: format!("{self} {number}"), settings, ..Setting::default() };
            Row { setting, figures, ..Row::default() }
        };
        records.iter().enumerate().map(row).collect()
    }
}

/// Reads the records of a part.
fn records(experiment: &Experiment, of: &str) -> Vec<Value> {
    let rows = experiment.made().filter(|row| row.setting.settings.get(OF).is_some_and(|name| name == of));
    let record = |row: &Row| {
        let mut settings = row.setting.settings.clone();
        settings.remove(OF);
        row.figures.with_settings(&settings).record().ok()
    };
    rows.filter_map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_measurement_of_a_pair_is_left_out() {
        let pair = |unsynchronized_ns| CorePair { a: 0, b: 1, synchronized_ns: 100.0, unsynchronized_ns };
        let matrix = CoreMatrix { cores: vec![0, 1], pairs: [-316.0, 200.0, 300.0].map(pair).to_vec() };
        let spread = matrix.spread(|pair| pair.unsynchronized_ns).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (200.0, 250.0, 300.0));
    }
}

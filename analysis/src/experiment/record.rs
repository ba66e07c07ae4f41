//! `experiment.json`: the plan of an experiment and its rows so far. A killed one resumes from it.
//!
//! A row is a run: its settings and, once it is made, its figures. Rows are in the order in which
//! their runs are made. Everything else that an experiment shows is a query over its rows.

use super::{Axis, AxisRecord, Endpoint, Figures, Kind, SettingTexts};
use crate::stats::RunOutline;
use record::machine::Machine;
use serde::{Deserialize, Serialize};
use shm::process::start_time;
use std::collections::BTreeMap;
use system::named_enum;
use system::process::is_running;

named_enum! {
    /// The state of an experiment: running, interrupted or complete.
    ExperimentState {
        /// A launcher measures, or was killed while it did.
        Running = "running",
        /// Ctrl-C, or a run that could not be begun.
        Interrupted = "interrupted",
        /// All runs are done.
        Complete = "complete",
    }
}

/// The document `experiment.json`: the plan of an experiment and its rows so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// bulkhead's version.
    pub version: String,
    /// Time at which the experiment began, UTC.
    pub started: String,
    /// The kind of the experiment, which decides the answer that its rows give.
    pub kind: Kind,
    /// The preset, if one was requested.
    #[serde(default)]
    pub preset: Option<String>,
    /// Progress of the experiment.
    pub state: ExperimentState,
    /// Whether the experiment is planned for several hosts, whose runs are in the folder `runs`.
    #[serde(default)]
    pub is_shared: bool,
    /// Process id and start time (`/proc/PID/stat`, field 22) of the launcher that measures or did.
    pub launcher: (u32, u64),
    /// The machine on which the experiment is measured.
    pub machine: Machine,
    /// The compared figures of the experiment and their margin, declared before it begins.
    pub endpoint: Endpoint,
    /// Requested number of repeats.
    pub asked_repeats: u32,
    /// Number of runs of each setting: more than requested if lost pairs were replaced.
    pub repeats: u32,
    /// Maximum time of the measurement if lost pairs are replaced, in seconds. `None`: as long as
    /// it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_s: Option<u64>,
    /// The seed of the first repeat; those of the others count up from it.
    pub seed: u64,
    /// Whether the runs' stamp logs are kept.
    pub keep_logs: bool,
    /// Whether a kernel that lacks a sandbox feature is accepted.
    #[serde(default)]
    pub weaker_sandbox: bool,
    /// Maximum time for the processes of a run to become ready, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Remarks on settings that were left out or decided. One line each.
    pub notes: Vec<String>,
    /// Settings that all rows share, as texts of the command line.
    pub base: SettingTexts,
    /// The varied settings with their values.
    pub axes: Vec<AxisRecord>,
    /// Pairs of settings that were compared after the measurement, by name, and those that could
    /// not be.
    #[serde(default)]
    pub compared: Option<ComparedSettings>,
    /// Limits and figures of the experiment as a whole.
    #[serde(default)]
    pub figures: Figures,
    /// The runs, in the order in which they are made.
    pub rows: Vec<Row>,
}

/// The pairs of an experiment's settings that were compared after the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedSettings {
    /// The names of settings A and B of each pair.
    pub pairs: Vec<[String; 2]>,
    /// Remarks on settings that were left out.
    pub notes: Vec<String>,
}

/// One combination of values that an experiment measures: a value for each axis (varied setting).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Name of the combination, unique in the experiment: `isolation=thread work=500ns`.
    pub name: String,
    /// The requested value on each axis.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<Axis, String>,
    /// Whether this combination repeats another one, as the A/A test of the experiment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aa_test: bool,
    /// The settings of the runs without seed and folder; saved without those that all rows share.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: SettingTexts,
}

/// A run of an experiment, made or to be made: its settings and its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The settings of the run.
    #[serde(flatten)]
    pub setting: Setting,
    /// Number of the repeat, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// Seed of the run's schedule.
    #[serde(default)]
    pub seed: u64,
    /// Folder of the run, within the experiment's; empty until the run is made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// The measured figures of the run; none until it is made.
    #[serde(default, skip_serializing_if = "Figures::is_empty")]
    pub figures: Figures,
}

impl Setting {
    /// Creates a combination of an experiment's settings from texts, with its values on these axes.
    pub fn from_texts(name: String, settings: SettingTexts, axes: &[Axis]) -> Self {
        let value = |axis: &Axis| Some((*axis, settings.get(&axis.key())?.clone()));
        Self { name, values: axes.iter().filter_map(value).collect(), is_aa_test: false, settings }
    }
}

impl Row {
    /// Returns `true` if the row's run was made, with success or not.
    pub fn is_made(&self) -> bool {
        !self.figures.is_empty()
    }

    /// Returns the outline of the row's run (what comparisons need of its summary). `None` until it
    /// is made.
    pub fn outline(&self) -> Option<RunOutline> {
        self.figures.record().ok()
    }
}

impl Figures {
    /// Creates the figures of a run from its outline.
    pub fn from_outline(outline: &RunOutline) -> Self {
        let mut figures = Self::from_record(outline);
        figures.insert("taken_out", &outline.excluded_share());
        figures
    }
}

impl Experiment {
    /// Creates an experiment of this kind that has no rows yet and is measured by this process.
    pub fn new(kind: Kind, version: &str, started: &str, machine: &Machine) -> Self {
        Self {
            version: version.to_owned(),
            started: started.to_owned(),
            kind,
            preset: None,
            state: ExperimentState::Running,
            is_shared: false,
            launcher: (0, 0),
            machine: machine.clone(),
            endpoint: Endpoint::default(),
            asked_repeats: 1,
            repeats: 1,
            time_limit_s: None,
            seed: 1,
            keep_logs: false,
            weaker_sandbox: false,
            start_timeout_ns: 0,
            notes: Vec::new(),
            base: SettingTexts::new(),
            axes: Vec::new(),
            compared: None,
            figures: Figures::default(),
            rows: Vec::new(),
        }
    }

    /// Returns each combination of values that the experiment measures, once, in the order of the
    /// plan. What `base` has, which all rows share, is not repeated in them.
    pub fn settings(&self) -> Vec<Setting> {
        let mut found: Vec<Setting> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        for row in &self.rows {
            if names.insert(row.setting.name.as_str()) {
                found.push(row.setting.clone());
            }
        }
        found
    }

    /// Returns all settings of a row, including those that all rows share.
    pub fn settings_of(&self, row: &Row) -> SettingTexts {
        let mut all = self.base.clone();
        all.extend(row.setting.settings.iter().map(|(key, text)| (key.clone(), text.clone())));
        all
    }

    /// Returns one of the experiment's varied settings with its values; `None` if the experiment
    /// does not vary it.
    pub fn axis(&self, axis: Axis) -> Option<&AxisRecord> {
        self.axes.iter().find(|record| record.axis == axis)
    }

    /// Returns `true` if the experiment has several values on this axis.
    pub(super) fn is_varied(&self, axis: Axis) -> bool {
        self.axis(axis).is_some_and(|record| record.values.len() > 1)
    }

    /// Returns the folders of all runs that were made, within the experiment's folder.
    pub fn folders(&self) -> Vec<String> {
        let several =
            |row: &Row| row.figures.part::<Vec<String>>("folders").ok().flatten().unwrap_or_default();
        self.made().flat_map(|row| [vec![row.folder.clone()], several(row)].concat()).collect()
    }

    /// Iterates over the experiment's rows whose runs were made.
    pub fn made(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_made())
    }

    /// Returns `true` if the launcher that measures the experiment is still running.
    pub fn is_being_measured(&self) -> bool {
        let (pid, start) = self.launcher;
        self.state == ExperimentState::Running && is_running(pid, start)
    }

    /// Records this process as the launcher that measures this experiment.
    pub fn set_launcher(&mut self) {
        let pid = std::process::id();
        self.launcher = (pid, start_time(pid).unwrap_or(0));
        self.state = ExperimentState::Running;
    }
}

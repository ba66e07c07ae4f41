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
    /// What is asked of the rows.
    pub kind: Kind,
    /// The preset, if one was requested.
    #[serde(default)]
    pub preset: Option<String>,
    /// Progress of the experiment.
    pub state: ExperimentState,
    /// Whether it is planned for several hosts, whose runs are in the folder `runs`.
    #[serde(default)]
    pub is_shared: bool,
    /// The launcher that measures or did: process id and start time (`/proc/PID/stat`, field 22).
    pub launcher: (u32, u64),
    /// The machine on which the experiment is measured.
    pub machine: Machine,
    /// The figures that the experiment is about and their margin, declared before it begins.
    pub endpoint: Endpoint,
    /// Repeats that were asked for.
    pub asked_repeats: u32,
    /// Runs of each setting: more than were asked for if lost pairs were replaced.
    pub repeats: u32,
    /// Time that measuring may take if lost pairs are replaced, in seconds. `None`: as long as it
    /// takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_s: Option<u64>,
    /// The seed of the first repeat; the others count up from it.
    pub seed: u64,
    /// Whether stamp logs are kept.
    pub keep_logs: bool,
    /// Whether a kernel that lacks a piece of the sandbox is good enough.
    #[serde(default)]
    pub weaker_sandbox: bool,
    /// Time that processes may take to get ready, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Remarks on settings that were left out or decided. One line each.
    pub notes: Vec<String>,
    /// Settings that all rows share: texts as on the command line.
    pub base: SettingTexts,
    /// The axes that vary.
    pub axes: Vec<AxisRecord>,
    /// Pairs of settings that were compared afterwards, by name, and those that could not be.
    #[serde(default)]
    pub compared: Option<ComparedSettings>,
    /// Limits and figures of the experiment as a whole.
    #[serde(default)]
    pub figures: Figures,
    /// The runs, in the order in which they are made.
    pub rows: Vec<Row>,
}

/// Pairs of settings of an experiment that were compared with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedSettings {
    /// The names of A and B.
    pub pairs: Vec<[String; 2]>,
    /// Remarks on settings that were left out.
    pub notes: Vec<String>,
}

/// One combination of the settings of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Unique in the experiment, for people: `isolation=thread work=500ns`.
    pub name: String,
    /// The value on each axis, as it was asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<Axis, String>,
    /// Whether it repeats another combination, as the A/A test of the experiment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_aa_test: bool,
    /// The settings of its runs but seed and folder; saved without those that all rows share.
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
    /// What the run measured; none until it is made.
    #[serde(default, skip_serializing_if = "Figures::is_empty")]
    pub figures: Figures,
}

impl Setting {
    /// Creates a setting of these texts, which has values on these axes.
    pub fn from_texts(name: String, settings: SettingTexts, axes: &[Axis]) -> Self {
        let value = |axis: &Axis| Some((*axis, settings.get(&axis.key())?.clone()));
        Self { name, values: axes.iter().filter_map(value).collect(), is_aa_test: false, settings }
    }
}

impl Row {
    /// Returns `true` if the run was made, with success or not.
    pub fn is_made(&self) -> bool {
        !self.figures.is_empty()
    }

    /// Returns the outline of the row's run. `None` until it is made.
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
    /// Creates an experiment without rows, that this process measures.
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

    /// Returns every combination of settings, without those that all share, in the order of the
    /// plan.
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

    /// Returns all settings of a row, also those that all rows share.
    pub fn settings_of(&self, row: &Row) -> SettingTexts {
        let mut all = self.base.clone();
        all.extend(row.setting.settings.iter().map(|(key, text)| (key.clone(), text.clone())));
        all
    }

    /// Returns a varied setting with its values; `None` if the experiment does not vary it.
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

    /// Iterates over the rows whose runs were made.
    pub fn made(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_made())
    }

    /// Returns `true` if the launcher that measures the experiment is still running.
    pub fn is_being_measured(&self) -> bool {
        let (pid, start) = self.launcher;
        self.state == ExperimentState::Running && is_running(pid, start)
    }

    /// Records this process as the launcher that measures the experiment.
    pub fn set_launcher(&mut self) {
        let pid = std::process::id();
        self.launcher = (pid, start_time(pid).unwrap_or(0));
        self.state = ExperimentState::Running;
    }
}

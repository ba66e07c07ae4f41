//! `sweep.json`: the plan of a sweep, and its runs so far. A killed sweep resumes from it.

mod charts;
mod csv;
mod ranking;
mod report;
mod search;
mod tables;

pub use csv::runs_csv;
pub use report::{condition_line, conditions, notes, report};
pub(super) use report::{point_sections, report_frame};
pub use search::{RateSearch, RateStep, SearchRecord};

use super::axis::Axis;
use crate::document::Document;
use crate::fitness::Fitness;
use crate::machine::Machine;
use crate::stats::{RunOutline, Spread};
use serde::{Deserialize, Serialize};
use shm::process::start_time;
use std::collections::BTreeMap;
use system::named_enum;
use system::process::is_running;

/// Settings by name, each as its text on the command line.
pub type SettingTexts = BTreeMap<String, String>;

named_enum! {
    /// The state of a sweep: running, interrupted or complete.
    SweepState {
        /// A launcher measures, or was killed while it did.
        Running = "running",
        /// Ctrl-C, or a run that could not be begun.
        Interrupted = "interrupted",
        /// All runs are done.
        Complete = "complete",
    }
}

/// The document `sweep.json`: the plan of a sweep and its runs so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// bulkhead's version.
    pub version: String,
    /// Time at which the sweep began, UTC.
    pub started: String,
    /// `sweep`, `bill`, `compare`, `contain` or `max-rate`.
    pub kind: String,
    /// The preset, if one was requested.
    pub preset: Option<String>,
    /// Progress of the sweep.
    pub state: SweepState,
    /// The launcher that measures or did: process id and start time (`/proc/PID/stat`, field 22).
    pub launcher: (u32, u64),
    /// The machine on which the sweep is measured.
    pub machine: Machine,
    /// Settings of all points: texts as on the command line.
    pub base: SettingTexts,
    /// The axes that vary.
    pub axes: Vec<AxisRecord>,
    /// Runs of each point.
    pub repeats: u32,
    /// The seed of the first repeat; the others count up from it.
    pub seed: u64,
    /// Whether stamp logs are kept.
    pub keep_logs: bool,
    /// Whether a kernel that lacks a piece of the sandbox is good enough.
    #[serde(default)]
    pub weaker_sandbox: bool,
    /// Time that processes may take to get ready, in nanoseconds.
    pub start_timeout_ns: u64,
    /// Notes on points that were left out, and on settings that were decided. One line each.
    pub notes: Vec<String>,
    /// Every combination that is measured.
    pub points: Vec<SweepPoint>,
    /// The search for the highest rate, if this is one.
    #[serde(default)]
    pub search: Option<SearchRecord>,
    /// Whether a failed run is a finding: not tried again, and no failure of the experiment.
    #[serde(default)]
    pub keeps_failures: bool,
}

/// A setting that a sweep varies, with its values in the order of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisRecord {
    /// The setting that varies.
    pub axis: Axis,
    /// The values of the axis.
    pub values: Vec<String>,
}

/// One combination of the settings that a sweep varies, with its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// Unique in the sweep, for people: `isolation=thread work=500ns`.
    pub name: String,
    /// The value on each axis.
    pub values: BTreeMap<Axis, String>,
    /// All settings of the runs of this point but seed and folder.
    pub settings: SettingTexts,
    /// The measured runs, by repeat.
    pub runs: Vec<RunEntry>,
}

/// One run of a sweep, at one combination of its varied settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Seed of the run's schedule.
    pub seed: u64,
    /// Folder of the run, within the sweep's.
    pub folder: String,
    /// Figures of the run.
    pub outline: RunOutline,
}

impl Document for SweepRecord {
    const FILE: &'static str = "sweep.json";
    const NAME: &'static str = "bulkhead.sweep";
    const VERSION: u32 = 2;
    const ABSENT: &'static str = "not the folder of a sweep";
    const REMEDY: &'static str = "fetch it from a copy, or measure again: the runs' own folders are whole";
    const SYNCED: bool = true;

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }
}

/// `plan.json`: a sweep that is planned on one host and executed on several. Its runs follow from
/// it: each point and repeat, in the order in which one host would make them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// The sweep to measure, without any measurement.
    pub sweep: SweepRecord,
}

impl Document for SweepPlan {
    const FILE: &'static str = "plan.json";
    const NAME: &'static str = "bulkhead.sweep-plan";
    const VERSION: u32 = 2;
    const ABSENT: &'static str = "not the folder of a planned sweep (launcher sweep --plan FOLDER makes one)";
    const REMEDY: &'static str = "fetch it from a copy, or plan again in a new folder";
    const SYNCED: bool = true;

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }
}

impl SweepPoint {
    /// Returns the outlines of all runs with this combination of settings.
    pub fn outlines(&self) -> Vec<RunOutline> {
        self.runs.iter().map(|run| run.outline.clone()).collect()
    }

    /// Returns the summaries of the complete and valid runs with this combination of settings.
    pub fn sound(&self) -> impl Iterator<Item = &RunOutline> {
        self.runs.iter().map(|run| &run.outline).filter(|outline| outline.is_sound())
    }

    /// Returns median and range of a figure over the sound runs; `None` unless each of them has it.
    pub fn spread(&self, figure: impl Fn(&RunOutline) -> Option<f64>) -> Option<Spread> {
        Spread::from_values(self.sound().map(figure).collect::<Option<Vec<f64>>>()?)
    }

    /// Returns the combination's name: the values of all varied settings, except one.
    pub fn name_without(&self, axes: &[AxisRecord], left_out: Option<Axis>) -> String {
        let others = axes.iter().filter(|axis| Some(axis.axis) != left_out && axis.values.len() > 1);
        let name = |axis: &AxisRecord| {
            let value = self.values.get(&axis.axis)?;
            // Names need no explanation; a number needs the name of its axis.
            let is_number = value.starts_with(|c: char| c.is_ascii_digit());
            Some(if is_number { format!("{} {value}", axis.axis) } else { value.clone() })
        };
        let names: Vec<String> = others.filter_map(name).collect();
        match (names.is_empty(), axes.is_empty()) {
            (false, _) => names.join(", "),
            // The sides of a comparison are distinguished by their names, not by an axis.
            (true, true) => self.name.clone(),
            (true, false) => "all".into(),
        }
    }

    /// Returns `true` if the repeat's run is complete, or with `also_failed` at least ended.
    pub fn has_run(&self, repeat: u32, also_failed: bool) -> bool {
        self.runs.iter().any(|run| run.repeat == repeat && (also_failed || run.outline.complete))
    }
}

impl SweepRecord {
    /// Returns the seed of the schedule for a repeat number.
    pub const fn seed_of(&self, repeat: u32) -> u64 {
        self.seed.wrapping_add(repeat as u64)
    }

    /// Returns a varied setting with its values; `None` if the sweep does not vary it.
    pub fn axis(&self, axis: Axis) -> Option<&AxisRecord> {
        self.axes.iter().find(|record| record.axis == axis)
    }

    /// Iterates over every measured run.
    pub fn runs(&self) -> impl Iterator<Item = &RunEntry> {
        self.points.iter().flat_map(|point| &point.runs)
    }

    /// Returns the number of runs of the complete sweep; of a search that of the runs made.
    pub fn planned_runs(&self) -> usize {
        match &self.search {
            Some(_) => self.runs().count(),
            None => self.points.len() * self.repeats as usize,
        }
    }

    /// Returns whether the latencies may be quoted: judged over all planned runs.
    pub fn fitness(&self) -> Fitness {
        if let Some(search) = &self.search {
            return search.fitness();
        }
        let runs = self.runs().map(|run| {
            let outline = &run.outline;
            (outline.is_sound() && outline.fit_for_latency, outline.reasons.as_slice())
        });
        Fitness::from_runs(runs, self.planned_runs())
    }

    /// Returns the folders of all measured runs, within the sweep's folder.
    pub fn folders(&self) -> Vec<&str> {
        let searched = self.search.iter().flat_map(SearchRecord::folders);
        self.runs().map(|run| run.folder.as_str()).chain(searched).collect()
    }

    /// Returns `true` if the launcher that measures the sweep is still running.
    pub fn is_being_measured(&self) -> bool {
        let (pid, start) = self.launcher;
        self.state == SweepState::Running && is_running(pid, start)
    }

    /// Records this process as the launcher that measures the sweep.
    pub fn take_over(&mut self) {
        let pid = std::process::id();
        self.launcher = (pid, start_time(pid).unwrap_or(0));
        self.state = SweepState::Running;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn point_is_named_by_what_varies() {
        let axis = |axis, values: &[&str]| AxisRecord {
            axis,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let axes = [
            axis(Axis::Technique, &["a", "b"]),
            axis(Axis::Work, &["0ns", "1us"]),
            axis(Axis::Idle, &["spin"]),
        ];
        let values = [(Axis::Technique, "b"), (Axis::Work, "1us"), (Axis::Idle, "spin")];
        let point = SweepPoint {
            name: "x".into(),
            values: values.map(|(axis, value)| (axis, value.into())).into(),
            settings: SettingTexts::new(),
            runs: Vec::new(),
        };
        let names = [Some(Axis::Work), Some(Axis::Technique), None].map(|out| point.name_without(&axes, out));
        assert_eq!(names, ["b", "work 1us", "b, work 1us"]);
        assert_eq!(point.name_without(&axes[1..], Some(Axis::Work)), "all");
        assert_eq!(point.name_without(&[], None), "x", "the sides of a comparison");
    }
}

//! The rows of an experiment by setting, from which queries over runs of the engine start.

use super::{Axis, AxisRecord, Experiment, ExperimentState, Row, Setting, SettingTexts};
use crate::stats::{MIN_PAIRS, RunOutline, Spread, median};
use protocol::plan::{IsolationLevel, IsolationLevels};
use record::fitness::Fitness;
use record::numbers::{counted, duration};
use std::collections::BTreeMap;
use std::ops::Deref;
use verdict::summary::Measure;

/// An experiment with its rows grouped by setting.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentRuns {
    pub(super) experiment: Experiment,
    /// Every combination of settings, with its runs.
    pub points: Vec<Point>,
}

impl Deref for ExperimentRuns {
    type Target = Experiment;

    fn deref(&self) -> &Experiment {
        &self.experiment
    }
}

/// One combination of an experiment's settings, with the runs that were made; not a point on an
/// order's path.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Name of the combination, unique in the experiment: `isolation=thread work=500ns`.
    pub name: String,
    /// The value on each axis.
    pub values: BTreeMap<Axis, String>,
    /// Whether this combination repeats another one, as the A/A test of the experiment.
    pub is_aa_test: bool,
    /// All settings of the runs without seed and folder.
    pub settings: SettingTexts,
    /// The runs that were made, by repeat.
    pub runs: Vec<RunEntry>,
}

/// One run of an experiment that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEntry {
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Folder of the run, within the experiment's.
    pub folder: String,
    /// Figures of the run.
    pub outline: RunOutline,
}

impl ExperimentRuns {
    /// Groups the rows (runs) of an experiment by setting.
    pub fn new(experiment: &Experiment) -> Self {
        let mut points: Vec<Point> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for row in &experiment.rows {
            let run = row.outline();
            for (setting, place) in by_level(&row.setting) {
                let at = *places.entry(setting.name.clone()).or_insert_with(|| {
                    let settings = experiment.settings_of(row);
                    let Setting { name, values, is_aa_test, .. } = setting;
                    points.push(Point { name, values, is_aa_test, settings, runs: Vec::new() });
                    points.len() - 1
                });
                let outline = run.as_ref().and_then(|run| match place {
                    Some(place) => run
                        .levels
                        .iter()
                        .find(|own| (own.level, own.again) == place)
                        .map(|own| run.of_level(own)),
                    None => Some(run.clone()),
                });
                let (repeat, folder) = (row.repeat, row.folder.clone());
                points[at].runs.extend(outline.map(|outline| RunEntry { repeat, folder, outline }));
            }
        }
        points.iter_mut().for_each(|point| point.runs.sort_by_key(|run| run.repeat));
        Self { experiment: experiment.clone(), points }
    }

    /// Iterates over every run of the experiment that was made.
    pub fn runs(&self) -> impl Iterator<Item = &RunEntry> {
        self.points.iter().flat_map(|point| &point.runs)
    }

    /// Returns whether the experiment's latencies may be quoted, judged over all planned runs.
    pub fn fitness(&self) -> Fitness {
        // A run with several levels is one run, and is in a point for each of them.
        let outlines: Vec<RunOutline> = self.rows.iter().filter_map(Row::outline).collect();
        let runs = outlines
            .iter()
            .map(|outline| (outline.is_usable() && outline.fit_for_latency, outline.reasons.as_slice()));
        Fitness::from_runs(runs, self.rows.len())
    }

    /// Describes what the orders of the warm-up would change; `None` if none were left out.
    pub(super) fn warm_up_note(&self) -> Option<String> {
        let medians = |of: fn(&RunOutline) -> Option<u64>| {
            let usable = self.runs().filter(|run| run.outline.is_usable());
            median(&usable.map(|run| of(&run.outline).map(|ns| ns as f64)).collect::<Option<Vec<_>>>()?)
        };
        let with = medians(|run| run.with_warm_up_p50_ns)?;
        let without = medians(|run| run.measure(Measure::RtVenueFromDue).p50_ns)?;
        let [with, without] = [with, without].map(|ns| duration(ns as u64));
        Some(format!("warm-up, left out: rt_venue_from_due p50 over all runs is {without}, with it {with}"))
    }

    /// Returns `true` if all runs of the experiment were made.
    pub fn is_complete(&self) -> bool {
        self.state == ExperimentState::Complete
    }
}

/// Returns a setting for each level of a setting whose runs have strategies at several, with the
/// level and the number of earlier ones that are the same; else the setting itself. A level that is
/// named twice is an A/A test.
fn by_level(setting: &Setting) -> Vec<(Setting, Option<(IsolationLevel, usize)>)> {
    let mixed = setting.values.get(&Axis::Isolation).filter(|text| text.contains('+'));
    let levels = mixed.and_then(|text| text.parse::<IsolationLevels>().ok());
    let (Some(text), Some(levels)) = (mixed, levels) else { return vec![(setting.clone(), None)] };
    let own = |(level, again): (IsolationLevel, usize)| {
        let mut own = setting.clone();
        own.name = own.name.replace(text.as_str(), &level.to_string());
        if again > 0 {
            (own.is_aa_test, own.name) = (true, format!("{} A/A", own.name));
        }
        own.values.insert(Axis::Isolation, level.to_string());
        (own, Some((level, again)))
    };
    levels.places().filter(|(_, again)| *again < 2).map(own).collect()
}

/// Returns what is in the folder of an experiment of runs: `sweep of 2 settings, 5 repeats`.
pub(super) fn summary(experiment: &Experiment) -> String {
    let settings = counted(experiment.settings().len() as u64, "setting");
    format!("{} of {settings}, {}", experiment.kind, counted(experiment.repeats.into(), "repeat"))
}

/// Returns the note that comparisons get no verdict with this number of repeats, and how many are
/// needed.
pub fn too_few_repeats(repeats: u32) -> String {
    let made = counted(repeats.into(), "repeat");
    format!("no verdicts: {made}, {MIN_PAIRS} are needed (--repeats {MIN_PAIRS})")
}

/// Returns whether the latencies of an experiment of runs may be quoted.
pub(super) fn fitness(experiment: &Experiment) -> Fitness {
    ExperimentRuns::new(experiment).fitness()
}

/// Checks that every row that was made has the outline of a run.
pub(super) fn check(experiment: &Experiment) -> Result<(), String> {
    let check_row = |row: &Row| match row.figures.record::<RunOutline>() {
        Ok(_) => Ok(()),
        // A run whose fault overwrote its log has only the fault's outcome.
        Err(_) if experiment.kind.entry().keeps_failures && !row.figures.has("run") => Ok(()),
        Err(error) => Err(format!("{}, repeat {}: {error}", row.setting.name, row.repeat)),
    };
    experiment.made().try_for_each(check_row)
}

impl Point {
    /// Returns the outlines of all runs with this combination of settings.
    pub fn outlines(&self) -> Vec<RunOutline> {
        self.runs.iter().map(|run| run.outline.clone()).collect()
    }

    /// Returns the outlines of the complete and valid runs with this combination of settings.
    pub fn usable_runs(&self) -> impl Iterator<Item = &RunOutline> {
        self.runs.iter().map(|run| &run.outline).filter(|outline| outline.is_usable())
    }

    /// Returns median and range of a figure over the usable runs with this combination of settings;
    /// `None` unless all have it.
    pub fn spread(&self, figure: impl Fn(&RunOutline) -> Option<f64>) -> Option<Spread> {
        Spread::from_values(self.usable_runs().map(figure).collect::<Option<Vec<f64>>>()?)
    }

    /// Returns the value that this combination of settings has on an axis, also on one that is not
    /// varied.
    pub fn value(&self, axis: Axis) -> Option<&str> {
        self.values.get(&axis).or_else(|| self.settings.get(&axis.key())).map(String::as_str)
    }

    /// Returns the name of this combination of settings: the values of all varied settings, except
    /// one.
    pub fn name_without(&self, axes: &[AxisRecord], left_out: Option<Axis>) -> String {
        let others = axes.iter().filter(|axis| Some(axis.axis) != left_out && axis.values.len() > 1);
        let name = |axis: &AxisRecord| {
            let value = self.values.get(&axis.axis)?;
            // Names need no explanation; a number needs the name of its axis.
            let is_number = value.starts_with(|c: char| c.is_ascii_digit());
            Some(if is_number { format!("{} {value}", axis.axis) } else { value.clone() })
        };
        let names: Vec<String> = others.filter_map(name).collect();
        let aa_test = if self.is_aa_test { " (A/A)" } else { "" };
        let name = match (names.is_empty(), axes.is_empty()) {
            (false, _) => names.join(", "),
            // The sides of a comparison are distinguished by their names, not by an axis.
            (true, true) => self.name.clone(),
            (true, false) => "all".into(),
        };
        name + aa_test
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
        let point = Point {
            name: "x".into(),
            values: values.map(|(axis, value)| (axis, value.into())).into(),
            is_aa_test: false,
            settings: SettingTexts::new(),
            runs: Vec::new(),
        };
        let names = [Some(Axis::Work), Some(Axis::Technique), None].map(|out| point.name_without(&axes, out));
        assert_eq!(names, ["b", "work 1us", "b, work 1us"]);
        assert_eq!(point.name_without(&axes[1..], Some(Axis::Work)), "all");
        assert_eq!(point.name_without(&[], None), "x", "the sides of a comparison");
    }
}

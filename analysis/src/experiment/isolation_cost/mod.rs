//! `bill`: the cost of each isolation level with each technique.

mod brief;
mod capacity;
mod growth;
mod headline;
mod level_figures;
mod level_tables;
mod native;
mod pooled;
mod report;
mod rows;
#[cfg(test)]
mod simulated;

pub use capacity::{Capacity, LevelCapacity};
pub use growth::Growth;
pub(super) use headline::{answer, headline_technique};
pub use level_figures::{LevelFigure, LevelFigures, StolenShare, TurnRatios};
pub use native::{NATIVE, native_techniques};
pub use report::report;

use super::runs::{ExperimentRuns, too_few_repeats};
use super::sweep::{self, condition_line};
use super::{Answer, Endpoint, Experiment, KindEntry, ProtectionCost};
use crate::stats::{ComparisonLine, MIN_PAIRS, correct_secondary};
use growth::growth_picture;
use protocol::plan::{IsolationLevel, Technique};
use record::document::answer_json;
use serde::{Deserialize, Serialize};
use verdict::summary::StrategyCosts;

/// The entry of `launcher bill` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. The command measures what isolation levels
/// cost.
pub const KIND: KindEntry = KindEntry {
    title: "The bill",
    has_pairs: true,
    has_verdicts: true,
    answer: |experiment, folder| {
        let runs = ExperimentRuns::new(experiment);
        if runs.is_complete() { answer_so_far(experiment) } else { sweep::answer(experiment, folder) }
    },
    headlines: |experiment| {
        let runs = ExperimentRuns::new(experiment);
        let endpoint = rows::endpoint(&runs);
        let rows = rows::rows(&runs).map_or_else(|_| Vec::new(), |(rows, _)| rows).into_iter();
        // Of each row with its reference, and with threads.
        let lines = rows.flat_map(|row| {
            let against = row.differences.into_iter().find(|line| endpoint.is_of(line));
            against.into_iter().chain(row.adds.into_iter().next().map(|cost| cost.line))
        });
        lines.collect()
    },
    ..sweep::RUNS
};

/// Why a bill has no picture.
const NO_CURVES: &str = "no level was measured against threads with enough repeats; measure them: \
                         launcher bill --isolation thread,process --strategies 1,2,4 --idle park";

/// Draws a bill's picture, the cost that isolation levels add along a setting, as a whole SVG file.
///
/// # Errors
/// The experiment is no bill, or no level has enough runs.
pub fn picture(experiment: &Experiment) -> Result<String, String> {
    let bill = IsolationCosts::from_runs(&ExperimentRuns::new(experiment))?;
    growth_picture(&bill).ok_or_else(|| NO_CURVES.into())
}

/// Returns the answer (report and JSON) of a bill, the experiment on isolation costs, from the runs
/// made so far.
pub fn answer_so_far(experiment: &Experiment) -> Result<Answer, String> {
    let runs = ExperimentRuns::new(experiment);
    let isolation_costs = IsolationCosts::from_runs(&runs)?;
    let json = answer_json("bulkhead.bill/2", &isolation_costs).map_err(|error| error.to_string())?;
    Ok(Answer { report: report(&runs, &isolation_costs), json })
}

/// Default number of repeats of a bill, the experiment on isolation costs. Of 100 simulated bills
/// with this number, the A/A test declares equivalence in at least 80 and a difference in at most
/// 5.
pub const REPEATS: u32 = 15;

/// The name of what each level contains, among the figures of a bill.
const CONTAINS: &str = "contains";

/// An isolation level, a hand-off technique, and the number of faults that they contain together,
/// as text: `11 of 12`.
pub type LevelContains = (IsolationLevel, Technique, String);

/// The answer of `launcher bill`: the cost of each isolation level with each technique.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IsolationCosts {
    /// The declared figures and their equivalence margin.
    #[serde(default = "Endpoint::legacy")]
    pub endpoint: Endpoint,
    /// Rows by isolation level, then by technique.
    pub rows: Vec<IsolationCostRow>,
    /// The costs that levels add along the varied settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<Growth>,
    /// The highest rate of each level within a latency limit; null if it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// The measuring conditions in one line; empty if they are not known.
    #[serde(default)]
    pub conditions: String,
    /// Remarks on the row. One line each.
    pub notes: Vec<String>,
}

/// The cost of one isolation level with one technique: medians over repeated runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IsolationCostRow {
    /// The isolation level.
    pub isolation: IsolationLevel,
    /// The technique of the hand-offs.
    pub technique: Technique,
    /// Further settings that distinguish the row: `process gateways`, `stamps ends`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// The values of the varied conditions, which the row shares with its reference.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Number of complete and valid runs.
    pub runs: usize,
    /// rt_venue_from_due at p50, p99 and p99.9 in nanoseconds; null if unknown, or saved by an
    /// older launcher.
    #[serde(default)]
    pub from_due_ns: [Option<f64>; 3],
    /// rt_venue_from_due at p50, p99 and p99.9 in nanoseconds, of the orders that no steal of the
    /// hypervisor affected.
    #[serde(default)]
    pub without_steal_ns: [Option<f64>; 3],
    /// Median of rt_venue, in nanoseconds.
    pub p50_ns: Option<f64>,
    /// p99 of rt_venue, in nanoseconds.
    pub p99_ns: Option<f64>,
    /// p99.9 of rt_venue, in nanoseconds.
    pub p999_ns: Option<f64>,
    /// p99 of rt_venue in nanoseconds, of the orders that no stall of the machine affected.
    #[serde(default)]
    pub stall_free_p99_ns: Option<f64>,
    /// p99.9 of rt_venue in nanoseconds, of the orders that no stall of the machine affected.
    #[serde(default)]
    pub stall_free_p999_ns: Option<f64>,
    /// The share of the orders that the two stall-free latencies omit, 0 to 1.
    #[serde(default)]
    pub taken_out: Option<f64>,
    /// The row with which this one is compared; null for a reference.
    pub reference: Option<Reference>,
    /// rt_venue_from_due against the reference at p50, p99 and p99.9, then rt_venue, then the same
    /// without the machine's stalls; empty for a reference.
    pub differences: Vec<ComparisonLine>,
    /// The cost that the level adds to threads at the endpoint: over all runs, and by core
    /// placement if the machine moved its cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adds: Vec<LevelCost>,
    /// The cost that the level adds to the monolith at the endpoint: threads over a queue on the
    /// heap, with messages by value. Null if that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adds_to_native: Option<LevelCost>,
    /// Reasons that weaken the comparison.
    pub caveats: Vec<String>,
    /// CPU seconds for a million orders, all threads together: spinning is not free.
    pub cpu_s_per_million: Option<f64>,
    /// Time from the first spawn of a process to the start of trading, in nanoseconds.
    pub startup_ns: Option<f64>,
    /// Proportional set size of all processes in the middle of the run, in bytes.
    pub pss_bytes: Option<f64>,
    /// Number of page faults of all threads.
    pub page_faults: Option<f64>,
    /// Number of context switches of all threads.
    pub context_switches: Option<f64>,
    /// The number of faults that the level contains, as text: `11 of 12`; null until containment is
    /// measured.
    #[serde(default)]
    pub contains: Option<String>,
    /// The costs of a strategy besides latency, medians; null for runs of older launchers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<StrategyCosts>,
    /// The certain figures of the level's strategies, with intervals; null for runs of older
    /// launchers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_figures: Option<LevelFigures>,
}

/// The latency that an isolation level adds, compared with threads that use the same hand-off
/// technique.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelCost {
    /// The core-to-core round trip of the runs' placement, in nanoseconds; null: over all runs.
    pub floor_ns: Option<f64>,
    /// The endpoint's headline percentile compared with the same technique in threads.
    pub line: ComparisonLine,
    /// The comparisons of the endpoint's other percentiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<ComparisonLine>,
}

impl LevelCost {
    /// Iterates over the level's comparisons with threads, at all latency percentiles that the
    /// experiment compares.
    pub fn lines(&self) -> impl Iterator<Item = &ComparisonLine> {
        std::iter::once(&self.line).chain(&self.further)
    }
}

/// The reference of a bill's row: the isolation level and technique with which it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The isolation level of the reference.
    pub isolation: IsolationLevel,
    /// The technique of the reference.
    pub technique: Technique,
}

impl IsolationCosts {
    /// Computes the costs of isolation levels from an experiment's runs.
    ///
    /// # Errors
    /// The experiment varies what a bill does not have.
    pub fn from_runs(record: &ExperimentRuns) -> Result<Self, String> {
        let ((mut rows, growth), endpoint) = (rows::rows(record)?, rows::endpoint(record));
        correct_secondary(rows.iter_mut().flat_map(|row| row.family_lines(&endpoint)));
        let mut notes = sweep::notes(record);
        let contains: Option<Vec<LevelContains>> =
            record.figures.part(CONTAINS).map_err(|error| error.to_string())?;
        for row in &mut rows {
            let is_it = |(isolation, technique, _): &&LevelContains| {
                (*isolation, *technique) == (row.isolation, row.technique)
            };
            let found = contains.iter().flatten().find(is_it);
            row.contains = found.map(|(_, _, summary)| summary.clone());
        }
        notes.extend(ProtectionCost::from_experiment(record)?.map(|cost| cost.note()));
        if record.repeats < MIN_PAIRS as u32 {
            notes.push(too_few_repeats(record.repeats));
        }
        let method = rows.iter().flat_map(|row| &row.differences).find_map(|line| line.difference);
        notes.extend(method.map(|found| format!("95 % intervals: {}", found.method.describe())));
        notes.push(format!(
            "endpoint, declared before: {}, margin the larger of {}; all else is secondary, with Holm's correction",
            endpoint.describe(),
            endpoint.margin.to_string().replace(',', " and ")
        ));
        let capacity = Capacity::from_bill(record)?;
        Ok(Self { endpoint, rows, growth, capacity, conditions: condition_line(record), notes })
    }
}

impl Experiment {
    /// Adds to a bill (experiment on isolation costs) the number of faults that each level
    /// contains, measured by another experiment.
    pub fn set_contains(&mut self, contains: &[LevelContains], cost: Option<ProtectionCost>) {
        self.figures.insert(CONTAINS, &contains);
        self.figures.insert(ProtectionCost::NAME, &cost);
    }
}

impl IsolationCostRow {
    /// The text in the field `variant` of a bill's row that marks the row as a repeated measurement
    /// of its reference, for the A/A test.
    pub const AA_TEST: &'static str = "A/A";

    /// Iterates over the figures, and those that are one placement's alone; each with whether it is
    /// of the endpoint.
    fn family_lines(&mut self, endpoint: &Endpoint) -> impl Iterator<Item = (&mut ComparisonLine, bool)> {
        let of_placement = self.adds.iter_mut().filter(|cost| cost.floor_ns.is_some());
        let of_placement =
            of_placement.flat_map(|cost| std::iter::once(&mut cost.line).chain(&mut cost.further));
        let differences = self.differences.iter_mut().map(|line| {
            let is_declared = endpoint.is_of(line);
            (line, is_declared)
        });
        differences.chain(of_placement.map(|line| (line, false)))
    }

    /// Returns the name of the row's isolation level, followed in parentheses by the settings that
    /// distinguish the row: `process (stamps ends)` for `--stamps ends`.
    pub fn level(&self) -> String {
        let messages = native::messages_of(self.isolation, self.technique);
        let level = messages.map_or_else(|| self.isolation.to_string(), |_| NATIVE.to_owned());
        let parts = [messages.unwrap_or_default(), &self.condition, &self.variant];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if parts.is_empty() { level } else { format!("{level} ({})", parts.join(", ")) }
    }

    /// Returns `true` if the row is one of the arm `native`.
    pub(super) fn is_native(&self) -> bool {
        native::messages_of(self.isolation, self.technique).is_some()
    }

    /// Returns the isolation level with its variant, without the conditions.
    pub(super) fn level_at_condition(&self) -> String {
        Self { condition: String::new(), ..self.clone() }.level()
    }

    /// Returns the technique, with the conditions that vary.
    pub(super) fn technique_at_condition(&self) -> String {
        match self.condition.as_str() {
            "" => self.technique.to_string(),
            condition => format!("{}, {condition}", self.technique),
        }
    }
}

//! `contain`: the outcome of each fault, with each technique at each level.

mod brief;
mod charts;
pub mod disturb;
mod report;

pub(super) use report::answer;
pub use report::report;

use super::runs::{self, ExperimentRuns};
use super::sweep::{self, condition_line};
use super::{Answer, Experiment, Figures, KindEntry};
use crate::grouping::distinct;
use merge::OrderLosses;
use protocol::plan::{FaultKind, Isolation, IsolationLevel, IsolationLevels, Journaling, Technique};
use record::document::answer_json;
use serde::{Deserialize, Serialize};
use system::named_enum;
use verdict::summary::{AroundFault, VenueIncident};

/// Factor by which a surviving strategy's longest wait must grow in an incident to count as harm.
/// Waits up to [`MIN_WAIT_NS`] never count.
pub const WAIT_FACTOR: u64 = 4;
/// Longest wait of a surviving strategy, in nanoseconds, that never counts as harm: the machine
/// causes such waits without a fault.
pub const MIN_WAIT_NS: u64 = 50_000_000;

named_enum! {
    /// The outcome of a fault, with its name in tables.
    Contained {
        /// All other strategies' orders came back, and none of them waited for the victim.
        Yes = "yes",
        /// All others' orders came back, but some waited: far longer than before the fault, or for
        /// most of the liveness deadline, after which the launcher kills a silent victim.
        Waited = "late",
        /// The run ended, or the others lost orders.
        No = "NO",
        /// There was nothing to contain: the fault never came.
        Nothing = "nothing",
    }
}

named_enum! {
    /// Whether a strategy's memory is hidden from others, with its name in tables.
    Confidential {
        /// Others have it mapped.
        No = "no",
        /// Others have not mapped it, but may open it by its name.
        AgainstMistakes = "against mistakes",
        /// Others are refused it.
        Yes = "yes",
    }
}

impl Confidential {
    /// Returns what the rules of a level say of runs in which all strategies have that level and
    /// the engine's user.
    fn by_rule(level: IsolationLevel) -> Self {
        match level.kind() {
            Isolation::Thread | Isolation::Keys => Self::No,
            // Strategies of one group share an address space.
            _ if level.group_size() > 1 => Self::No,
            Isolation::Process => Self::AgainstMistakes,
            Isolation::Container | Isolation::Sandbox => Self::Yes,
        }
    }
}

/// Explains the column with [`LevelConfidentiality::cell`] below a table.
pub(in crate::experiment) const CONFIDENTIAL_NOTE: &str = "confidential: whether a strategy is refused another one's memory (against mistakes: it has it not mapped, but may open it \
     by name), as the fault read-others tried; (rule): not tried, by what the level separates";

/// Whether an isolation level hides a strategy's memory from others, and whether that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelConfidentiality {
    /// The isolation level.
    pub isolation: IsolationLevel,
    /// Whether the level hides memory.
    pub confidential: Confidential,
    /// Whether a strategy tried to read (the fault `read-others`); else the level's design decides.
    pub is_tried: bool,
}

impl LevelConfidentiality {
    /// Returns whether an isolation level hides a strategy's memory: as faults in `rows` tried, or,
    /// if none did, as the level is designed.
    pub fn of(isolation: IsolationLevel, rows: &[Containment]) -> Self {
        let tried = rows.iter().filter(|row| row.others.is_empty() && row.isolation == isolation);
        // One read is enough.
        match tried.filter_map(|row| row.confidential).min_by_key(|found| *found as usize) {
            Some(confidential) => Self { isolation, confidential, is_tried: true },
            None => Self { isolation, confidential: Confidential::by_rule(isolation), is_tried: false },
        }
    }

    /// Formats the level's confidentiality of memory as a table cell: `no` or `yes` if it was
    /// tried, `yes (rule)` if by the level's design.
    pub fn cell(&self) -> String {
        format!("{}{}", self.confidential, if self.is_tried { "" } else { " (rule)" })
    }
}

/// The entry of `launcher contain` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. The command injects faults at isolation levels.
pub const KIND: KindEntry = KindEntry {
    title: "What isolation buys",
    keeps_failures: true,
    check: |experiment| {
        runs::check(experiment).and_then(|()| Containments::from_experiment(experiment).map(drop))
    },
    answer: |experiment, folder| {
        let all = Containments::from_experiment(experiment)?;
        let json = answer_json("bulkhead.contain/2", &all).map_err(|error| error.to_string())?;
        Ok(Answer { report: report(&all, folder, &ExperimentRuns::new(experiment)), json })
    },
    ..sweep::RUNS
};

/// The outcome of an injected fault of a strategy, a venue or an engine role, as saved among the
/// figures of its run.
pub enum FaultOutcome {
    /// The outcome of a strategy's fault.
    Strategy(Containment),
    /// The outcome of a venue's fault.
    Venue(VenueContainment),
    /// The outcome of a fault of an engine role.
    Role(RoleContainment),
}

/// The names of the three among the figures of a row.
const STRATEGY: &str = "strategy";
const VENUE: &str = "venue";
const ROLE: &str = "role";

impl Figures {
    /// Adds the outcome of an injected fault to the figures of its run.
    pub fn insert_outcome(&mut self, outcome: &FaultOutcome) {
        match outcome {
            FaultOutcome::Strategy(outcome) => self.insert(STRATEGY, outcome),
            FaultOutcome::Venue(outcome) => self.insert(VENUE, outcome),
            FaultOutcome::Role(outcome) => self.insert(ROLE, outcome),
        }
    }
}

/// The verdict in words of `launcher disturb` on whether a fault left the other strategies
/// undisturbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undisturbed {
    /// The isolation level of all strategies.
    pub isolation: IsolationLevel,
    /// The technique of the hand-offs.
    pub technique: Technique,
    /// The name of the fault: `kill`, `hang in a push, half-written`.
    pub fault: String,
    /// The verdict in words.
    pub verdict: String,
}

/// The name of what was found undisturbed, among the figures of an experiment.
const UNDISTURBED: &str = "undisturbed";

impl Experiment {
    /// Adds to a containment experiment the results of `launcher disturb` for the same faults.
    pub fn set_undisturbed(&mut self, found: &[Undisturbed]) {
        self.figures.insert(UNDISTURBED, &found);
    }
}

/// The answer of `launcher contain`: the outcome of each fault by technique and isolation level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Containments {
    /// Description of the machine.
    pub machine: String,
    /// Rows by isolation level, technique and fault.
    pub rows: Vec<Containment>,
    /// Whether each level of unmixed runs hides a strategy's memory.
    #[serde(default)]
    pub confidentiality: Vec<LevelConfidentiality>,
    /// Outcomes of venues that had a fault.
    #[serde(default)]
    pub venues: Vec<VenueContainment>,
    /// Outcomes of roles of the engine that had a fault.
    #[serde(default)]
    pub roles: Vec<RoleContainment>,
    /// The cost of crash protection in a push and a pop.
    pub cost: Option<ProtectionCost>,
    /// The measuring conditions in one line; empty if they are not known.
    #[serde(default)]
    pub conditions: String,
    /// Remarks, one line each.
    pub notes: Vec<String>,
}

impl Containments {
    /// Collects the outcomes of a containment experiment's faults.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        fn all<T: serde::de::DeserializeOwned>(
            experiment: &Experiment,
            name: &str,
        ) -> Result<Vec<T>, String> {
            let found = experiment.made().filter_map(|row| row.figures.part(name).transpose());
            found.collect::<Result<_, _>>().map_err(|error| format!("{name}: {error}"))
        }
        let record = ExperimentRuns::new(experiment);
        let mut rows: Vec<Containment> = all(experiment, STRATEGY)?;
        let found: Vec<Undisturbed> = experiment
            .figures
            .part(UNDISTURBED)
            .map_err(|error| format!("{UNDISTURBED}: {error}"))?
            .unwrap_or_default();
        for row in &mut rows {
            let is_same = |found: &&Undisturbed| {
                row.others.is_empty()
                    && (found.isolation, found.technique, &found.fault)
                        == (row.isolation, row.technique, &row.fault)
            };
            row.undisturbed = found.iter().find(is_same).map(|found| found.verdict.clone());
        }
        let unmixed = rows.iter().filter(|row| row.others.is_empty());
        let levels = distinct(unmixed.map(|row| row.isolation));
        let cost = ProtectionCost::from_experiment(experiment)?;
        let mut notes = sweep::notes(&record);
        notes.extend(cost.map(|cost| cost.note()));
        Ok(Self {
            machine: experiment.machine.cpu_model.clone(),
            confidentiality: levels.into_iter().map(|level| LevelConfidentiality::of(level, &rows)).collect(),
            rows,
            venues: all(experiment, VENUE)?,
            roles: all(experiment, ROLE)?,
            cost,
            conditions: condition_line(&record),
            notes,
        })
    }

    /// Returns, for each tried pair of isolation level and technique, how many faults were
    /// contained: `11 of 12, 1 late`. The late one is not among the 11: some orders of others
    /// waited. Runs that mix levels are left out.
    pub fn summaries(&self) -> Vec<(IsolationLevel, Technique, String)> {
        let unmixed = self.rows.iter().filter(|row| row.others.is_empty());
        let tried = distinct(unmixed.map(|row| (row.isolation, row.technique)));
        let summary =
            |(isolation, technique)| Some((isolation, technique, self.summary_for(isolation, technique)?));
        tried.into_iter().filter_map(summary).collect()
    }

    /// Returns how many faults a level contains with a technique, if tried: `11 of 12, 1 late`.
    fn summary_for(&self, isolation: IsolationLevel, technique: Technique) -> Option<String> {
        let is_of = |row: &&Containment| {
            row.others.is_empty() && (row.isolation, row.technique) == (isolation, technique)
        };
        let rows = || self.rows.iter().filter(is_of);
        let count = |contained| rows().filter(|row| row.contained == contained).count();
        let (all, yes, late) = (rows().count(), count(Contained::Yes), count(Contained::Waited));
        let late = if late > 0 { format!(", {late} late") } else { String::new() };
        let nothing = match count(Contained::Nothing) {
            0 => String::new(),
            nothing => format!(", {nothing} never came"),
        };
        (all > 0).then(|| format!("{yes} of {all}{late}{nothing}"))
    }
}

/// The outcome of one injected fault of a strategy, with one hand-off technique at one isolation
/// level. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Containment {
    /// The isolation level of the strategy with the fault.
    pub isolation: IsolationLevel,
    /// The isolation levels of the other strategies, in a run that mixes levels; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<IsolationLevel>,
    /// The technique of the hand-offs.
    pub technique: Technique,
    /// The name of the fault: `kill`, `hang in a push, half-written`.
    pub fault: String,
    /// Whether the fault's effects stayed with its strategy.
    pub contained: Contained,
    /// For a fault that reads: whether the memory of others was hidden from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidential: Option<Confidential>,
    /// The observed effect: `signal 9 (SIGKILL)`, `quarantined: bad-cursor`, or why the run ended.
    pub seen: String,
    /// Outcomes of the faulty strategy's orders for which it received no report.
    pub losses: OrderLosses,
    /// Number of the other strategies' orders that never returned; null if the fault overwrote the
    /// log that would show it.
    #[serde(default)]
    pub lost_of_others: Option<u64>,
    /// Nanoseconds from the fault, where that is known, until its detection.
    pub detect_ns: Option<u64>,
    /// Nanoseconds from the detection until the engine had repaired the faulty strategy's memory.
    pub repair_ns: Option<u64>,
    /// Nanoseconds from the repair until the next incarnation traded.
    pub restart_ns: Option<u64>,
    /// The others' round trip without the venue (`rt_venue`) before the fault, and after it; null
    /// in documents of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<AroundFault>,
    /// p99.9 of the others' `rt_venue` before the incident, in nanoseconds; null: too few orders.
    pub before_p999_ns: Option<u64>,
    /// Maximum of the others' `rt_venue` before the incident, in nanoseconds.
    pub before_max_ns: Option<u64>,
    /// p99.9 of `rt_venue` of the others' orders that the incident affected, in nanoseconds.
    pub during_p999_ns: Option<u64>,
    /// Maximum of `rt_venue` of the others' orders that the incident affected, in nanoseconds.
    pub during_max_ns: Option<u64>,
    /// Whether the fault left the others undisturbed, in words, as `launcher disturb` measured;
    /// null until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undisturbed: Option<String>,
    /// The run's folder.
    pub folder: String,
}

impl Containment {
    /// Returns the isolation levels in words, the faulty strategy's first: `process`, or `process,
    /// others thread` in a run that mixes levels.
    pub fn levels(&self) -> String {
        let others: Vec<String> = self.others.iter().map(|level| level.to_string()).collect();
        let others =
            if others.is_empty() { String::new() } else { format!(", others {}", others.join(" and ")) };
        format!("{}{others}", self.isolation)
    }
}

/// The outcome of one venue fault with one technique at one isolation level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VenueContainment {
    /// The isolation levels of the strategies.
    pub isolation: IsolationLevels,
    /// The technique of the hand-offs.
    pub technique: Technique,
    /// Whether the fault's effects stayed with its venue.
    pub contained: Contained,
    /// The venue fault and its effects on orders.
    pub incident: VenueIncident,
    /// Number of orders of any venue that never returned.
    pub lost: u64,
    /// The run's folder.
    pub folder: String,
}

/// The outcome of one injected fault of an engine role (such as `exchange-0` or `gateway-1`), with
/// one kind of journal. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleContainment {
    /// The isolation levels of the strategies.
    pub isolation: IsolationLevels,
    /// The technique of the hand-offs.
    pub technique: Technique,
    /// The role that had the fault: `exchange-0`, `engine`, `gateway-1`.
    pub role: String,
    /// The injected fault.
    pub fault: FaultKind,
    /// The journal of the role.
    pub journal: Journaling,
    /// Whether the role recovered: [`Contained::Yes`] with every order; of a gateway: the others
    /// lost nothing.
    pub contained: Contained,
    /// The observed effect: `signal 9 (SIGKILL)`, or why the run ended.
    pub seen: String,
    /// Number of orders that never returned.
    pub lost: u64,
    /// Number of orders at the role during its absence; for a gateway those that ended as
    /// `venue-unknown`.
    pub in_flight: u64,
    /// Nanoseconds from the fault until its detection.
    pub detect_ns: Option<u64>,
    /// Nanoseconds from the detection until the role's successor ran its duty cycles.
    pub recover_ns: Option<u64>,
    /// Nanoseconds from the fault until the successor took its first order.
    pub served_ns: Option<u64>,
    /// The longest round trip of orders at the role during its absence, in nanoseconds.
    pub longest_ns: Option<u64>,
    /// The run's folder.
    pub folder: String,
}

/// The cost of a ring's crash protection: nanoseconds of a push and a pop with and without it.
/// Measured with `array-queue` (and `channel`, the same ring).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtectionCost {
    /// Median time of a push and a pop without crash protection, in nanoseconds.
    pub bare_ns: f64,
    /// Median time of a push and a pop with crash protection, in nanoseconds.
    pub protected_ns: f64,
    /// The median ratio of neighboring samples, with protection to without.
    pub ratio: f64,
    /// The quartiles of the measured ratios, which show the machine's own noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_middle: Option<(f64, f64)>,
}

impl ProtectionCost {
    /// The name of the crash protection's cost among the figures of an experiment.
    pub const NAME: &'static str = "cost";

    /// Returns the cost of crash protection that is saved in an experiment, measured by it or
    /// copied to it; `None` without one.
    pub fn from_experiment(experiment: &Experiment) -> Result<Option<Self>, String> {
        experiment.figures.part(Self::NAME).map_err(|error| format!("{}: {error}", Self::NAME))
    }

    /// Returns the note below a containment table: what crash protection adds to a ring's push and
    /// pop, in nanoseconds.
    pub fn note(&self) -> String {
        let noise = self.ratio_middle.map_or_else(String::new, |(low, high)| {
            let unsure = if low <= 1.0 && high >= 1.0 { ": no cost seen above the noise" } else { "" };
            format!(", half of the samples {low:.3} to {high:.3}{unsure}")
        });
        format!(
            "the protection costs array-queue and channel {:+.1} ns a push and pop on this machine ({:.1} → {:.1} ns, ratio {:.3}{noise}), \
             spsc-mux nothing: it has none and needs none",
            self.protected_ns - self.bare_ns,
            self.bare_ns,
            self.protected_ns,
            self.ratio
        )
    }
}

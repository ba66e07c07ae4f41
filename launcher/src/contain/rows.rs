//! A row of the containment table: what one fault did.

use super::cost::Cost;
use super::matrix::{Cell, VICTIM};
use crate::merge::Toll;
use crate::record::Outcome;
use crate::summary::Summary;
use protocol::plan::{Isolation, Target, Technique, When};
use serde::{Deserialize, Serialize};

/// The version of `contain.json`.
pub const CONTAIN_SCHEMA: &str = "bulkhead.contain/1";
/// Its name.
pub const CONTAIN_FILE: &str = "contain.json";

/// How many times as long as before somebody waited who counts as hurt, if it was also at least [`HURT_NS`].
const HURT_TIMES: u64 = 4;
/// Shorter waits are this machine's own: see the README on its noise.
const HURT_NS: u64 = 50_000_000;

/// Whether the fault stayed where it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contained {
    /// All others' orders came back, and none of them waited for it.
    Yes,
    /// All others' orders came back, but some waited for the deadline.
    Waited,
    /// The run ended, or the others lost orders.
    No,
    /// Nothing happened that could be contained: the fault never struck, or its strategy never came to harm.
    Nothing,
}

impl Contained {
    /// What the table says.
    pub const fn word(self) -> &'static str {
        match self {
            Contained::Yes => "yes",
            Contained::Waited => "late",
            Contained::No => "NO",
            Contained::Nothing => "nothing",
        }
    }
}

/// All rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Containments {
    /// [`CONTAIN_SCHEMA`].
    pub schema: String,
    /// The machine, in words.
    pub machine: String,
    /// By level, technique and fault.
    pub rows: Vec<Row>,
    /// What the protection costs a push and a pop.
    pub cost: Option<Cost>,
    /// What to know about them. One line each.
    pub notes: Vec<String>,
}

impl Containments {
    /// What one level contains with one technique, as the bill says it: `11 of 12, 1 late`. `None`: it was not tried.
    pub fn of(&self, isolation: Isolation, technique: Technique) -> Option<String> {
        let rows = || self.rows.iter().filter(|row| (row.isolation, row.technique) == (isolation, technique));
        let count = |contained| rows().filter(|row| row.contained == contained).count();
        let (all, yes, late) = (rows().count(), count(Contained::Yes), count(Contained::Waited));
        let late = if late > 0 { format!(", {late} late") } else { String::new() };
        let nothing = match count(Contained::Nothing) {
            0 => String::new(),
            nothing => format!(", {nothing} never struck"),
        };
        (all > 0).then(|| format!("{yes} of {all}{late}{nothing}"))
    }
}

/// What one fault did to one technique at one level. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The level.
    pub isolation: Isolation,
    /// The technique.
    pub technique: Technique,
    /// The fault: `kill`, `hang in a push, half-written`.
    pub fault: String,
    /// Whether it stayed where it began.
    pub contained: Contained,
    /// What the engine or the launcher saw: `signal 9 (SIGKILL)`, `quarantined: bad-cursor`, or why the run ended.
    pub seen: String,
    /// Orders of the struck strategy that it got no report of.
    pub toll: Toll,
    /// Orders of the others that never came back.
    pub lost_of_others: u64,
    /// From the fault, where its time is known, until it was noticed.
    pub detect_ns: Option<u64>,
    /// From there until the engine had repaired what the dead one left.
    pub repair_ns: Option<u64>,
    /// From there until the next incarnation traded.
    pub restart_ns: Option<u64>,
    /// The others' rt_venue before: p99.9 (null: too few orders) and the greatest.
    pub before_p999_ns: Option<u64>,
    /// See `before_p999_ns`.
    pub before_max_ns: Option<u64>,
    /// The same for the orders that the incident touched.
    pub during_p999_ns: Option<u64>,
    /// See `during_p999_ns`.
    pub during_max_ns: Option<u64>,
    /// The run's folder.
    pub folder: String,
}

/// What a cell's run shows.
pub fn row(cell: &Cell, summary: &Summary, folder: &str) -> Row {
    let containment = summary.containment.clone().unwrap_or_default();
    let victim = match cell.scenario.fault.target {
        Target::Strategy(index) => index,
        _ => VICTIM,
    };
    let incident = summary.incidents.iter().find(|incident| incident.strategy == victim);
    let (before, during) = (&containment.survivors_before, &containment.survivors_during);
    let struck_ns = match cell.scenario.fault.when {
        Some(When::At { ns }) => incident.map(|incident| incident.injected_ns.unwrap_or(ns)),
        _ => None,
    };
    let survived = summary.outcome == Outcome::Complete && summary.valid;
    // One who waited is known by its worst order: there are too few for a percentile. Whatever the machine did before, who
    // waited for most of the deadline did not wait for the machine.
    let waited = during.max_ns.is_some_and(|during| {
        let unlike_before = during > before.max_ns.unwrap_or(0).saturating_mul(HURT_TIMES);
        during > HURT_NS && (unlike_before || during > summary.plan.liveness_ns / 2)
    });
    let lost_of_others = if survived { containment.lost_of_survivors } else { lost_of_others(summary) };
    Row {
        isolation: cell.isolation,
        technique: cell.technique,
        fault: cell.scenario.name.clone(),
        contained: match (survived, incident.is_some(), waited) {
            (false, ..) => Contained::No,
            // Each kind of fault ends in an incident once it has struck: what it does no strategy survives.
            (true, false, _) => Contained::Nothing,
            (true, true, true) => Contained::Waited,
            (true, true, false) => Contained::Yes,
        },
        seen: seen(summary, incident.map(|incident| incident.cause.as_str())),
        toll: containment.orders,
        lost_of_others,
        detect_ns: struck_ns
            .zip(incident)
            .map(|(struck, incident)| incident.detected_ns.saturating_sub(struck)),
        repair_ns: incident.and_then(|incident| incident.detect_to_repair_ns),
        restart_ns: incident.and_then(|incident| incident.repair_to_restart_ns),
        before_p999_ns: before.p999_ns,
        before_max_ns: before.max_ns,
        during_p999_ns: during.p999_ns,
        during_max_ns: during.max_ns,
        folder: folder.to_owned(),
    }
}

/// In a run that ended, nothing that was open comes back, whoever's it was; the struck one's cannot be told apart there.
fn lost_of_others(summary: &Summary) -> u64 {
    let orders = &summary.orders;
    orders.lost + orders.orphaned + orders.cancelled
}

fn seen(summary: &Summary, cause: Option<&str>) -> String {
    let first = summary.violations.first();
    match (&summary.outcome, cause) {
        (Outcome::Failed { process, what, .. }, _) => format!("{process}: {what}"),
        (Outcome::Interrupted, _) => "interrupted".into(),
        (Outcome::Complete, _) if first.is_some() => {
            format!("invalid: {}", first.map_or("", |violation| &violation.first))
        }
        (Outcome::Complete, Some(cause)) => cause.to_owned(),
        (Outcome::Complete, None) => "nobody died: the fault never struck".into(),
    }
}

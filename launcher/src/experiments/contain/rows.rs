//! A row of the containment table: what one fault did.

use super::matrix::{Cell, VICTIM};
pub use analysis::experiment::{CONTAIN_FILE, CONTAIN_SCHEMA, Contained, Containment as Row, Containments};
use analysis::record::Outcome;
use analysis::summary::Summary;
use protocol::plan::When;

/// How many times as long as before somebody waited who counts as hurt, if it was also at least [`HURT_NS`].
const HURT_TIMES: u64 = 4;
/// Shorter waits are this machine's own: see the README on its noise.
const HURT_NS: u64 = 50_000_000;

/// What a cell's run shows.
pub fn row(cell: &Cell, summary: &Summary, folder: &str) -> Row {
    let containment = summary.containment.clone().unwrap_or_default();
    let incident = summary.incidents.iter().find(|incident| incident.strategy == VICTIM);
    let (before, during) = (&containment.survivors_before, &containment.survivors_during);
    let struck_ns = match cell.scenario.fault.when {
        Some(When::At { ns }) => incident.map(|incident| incident.injected_ns.unwrap_or(ns)),
        _ => None,
    };
    let survived = summary.outcome == Outcome::Complete && summary.valid;
    // One who waited is known by its worst order: there are too few for a percentile.
    let waited = during.max_ns.is_some_and(|during| {
        during > HURT_NS && during > before.max_ns.unwrap_or(0).saturating_mul(HURT_TIMES)
    });
    let lost_of_others = if survived { containment.lost_of_survivors } else { lost_of_others(summary) };
    Row {
        isolation: cell.isolation,
        technique: cell.technique,
        fault: cell.scenario.name.clone(),
        contained: match (survived, waited) {
            (false, _) => Contained::No,
            (true, true) => Contained::Waited,
            (true, false) => Contained::Yes,
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
        (Outcome::Complete, None) => "nobody died".into(),
    }
}

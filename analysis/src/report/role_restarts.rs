//! Report of engine roles that died and were restarted from their journals.

use super::units::{count, duration_or_dash as time};
use crate::escape::single_line;
use crate::summary::{RoleRestartSummary, Summary};
use crate::table::Grid;

const MAX_CAUSES: usize = 8;

/// Returns the tables of engine roles that were restarted; none for a run without any.
pub(super) fn grids(summary: &Summary) -> Vec<Grid> {
    restarts(summary).into_iter().chain(steps(summary)).collect()
}

/// Returns the table of the steps from a death to the first order, if the processes reported them.
fn steps(summary: &Summary) -> Option<Grid> {
    let reported: Vec<&RoleRestartSummary> =
        summary.role_restarts.iter().filter(|restart| restart.steps.running_ns.is_some()).collect();
    let between =
        |from: Option<u64>, to: Option<u64>| time(to.zip(from).map(|(to, from)| to.saturating_sub(from)));
    let served = |restart: &RoleRestartSummary| {
        Some(restart.fault_ns.unwrap_or(restart.detected_ns) + restart.first_served_ns?)
    };
    let grid = Grid::from_rows(
        "restart-steps",
        "from the death to the first order, step by step",
        1,
        &[
            ("died", &|restart: &&RoleRestartSummary| restart.role.clone()),
            ("detected", &|restart| between(restart.fault_ns, Some(restart.detected_ns))),
            ("proven", &|restart| between(Some(restart.detected_ns), restart.steps.restarted_ns)),
            ("woken", &|restart| between(restart.steps.restarted_ns, restart.steps.begun_ns)),
            ("replayed", &|restart| between(restart.steps.begun_ns, restart.steps.replayed_ns)),
            ("running", &|restart| between(restart.steps.replayed_ns, restart.steps.running_ns)),
            ("first order", &|restart| between(restart.steps.running_ns, served(restart))),
        ],
        &reported,
    );
    (!grid.rows.is_empty()).then(|| {
        grid.note(
            "each after the one before. proven: the kernel confirms the death, and the standby is promoted. woken: it begins to recover. \
             replayed: all of the journal is applied, and rings and logs are compared with it. running: its loops are built.",
        )
    })
}

/// Returns the table of the restarts; `None` for a run without any.
fn restarts(summary: &Summary) -> Option<Grid> {
    let at = |restart: &RoleRestartSummary| {
        format!("{:.3}", restart.fault_ns.unwrap_or(restart.detected_ns) as f64 / 1e9)
    };
    let detected = |restart: &RoleRestartSummary| {
        time(restart.fault_ns.map(|fault| restart.detected_ns.saturating_sub(fault)))
    };
    let mut grid = Grid::from_rows(
        "comebacks",
        "engine roles that died and came back from their journals",
        1,
        &[
            ("died", &|restart: &RoleRestartSummary| restart.role.clone()),
            ("at (s)", &at),
            ("detected", &detected),
            ("recovered", &|restart| time(restart.detect_to_recovery_ns)),
            ("served", &|restart| time(restart.first_served_ns)),
            ("records", &|restart| count(restart.records)),
            ("again", &|restart| count(restart.replayed)),
            ("there", &|restart| count(restart.in_flight)),
            ("answered", &|restart| count(restart.answered)),
            ("longest", &|restart| time(restart.longest_ns)),
        ],
        &summary.role_restarts,
    );
    let cause = |restart: &RoleRestartSummary| {
        format!("{} at {} s: {}", restart.role, at(restart), single_line(&restart.cause))
    };
    grid.notes = summary.role_restarts.iter().take(MAX_CAUSES).map(cause).collect();
    (!grid.rows.is_empty()).then(|| {
        grid.note(
            "detected: after the fault. recovered: after the detection. served: its first order, after the death. again: records that were \
             carried out again, the others were in a snapshot. there: orders that were at it, or came, while it was away; longest: the \
             round trip of those.",
        )
    })
}

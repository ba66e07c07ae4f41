//! Report of engine roles that died and were restarted from their journals.

use super::units::{count, duration_or_dash as time};
use crate::escape::single_line;
use crate::summary::{RoleRestartSummary, Summary};
use crate::table::Grid;

const MAX_CAUSES: usize = 8;

/// Returns the table of engine roles that were restarted; `None` for a run without any.
pub(super) fn grid(summary: &Summary) -> Option<Grid> {
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

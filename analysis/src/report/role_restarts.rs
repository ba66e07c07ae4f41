//! Report of engine roles that died and were restarted from their journals.

use super::units::{count, duration_or_dash as time};
use crate::escape::single_line;
use crate::summary::{RoleRestartSummary, Summary};
use crate::table::Grid;

const MAX_CAUSES: usize = 8;

/// Returns the table of engine roles that were restarted; `None` for a run without any.
pub(super) fn grid(summary: &Summary) -> Option<Grid> {
    let at = |comeback: &RoleRestartSummary| {
        format!("{:.3}", comeback.fault_ns.unwrap_or(comeback.detected_ns) as f64 / 1e9)
    };
    let detected = |comeback: &RoleRestartSummary| {
        time(comeback.fault_ns.map(|fault| comeback.detected_ns.saturating_sub(fault)))
    };
    let mut grid = Grid::from_rows(
        "comebacks",
        "engine roles that died and came back from their journals",
        1,
        &[
            ("died", &|comeback: &RoleRestartSummary| comeback.role.clone()),
            ("at (s)", &at),
            ("detected", &detected),
            ("recovered", &|comeback| time(comeback.detect_to_recovery_ns)),
            ("served", &|comeback| time(comeback.first_served_ns)),
            ("records", &|comeback| count(comeback.records)),
            ("again", &|comeback| count(comeback.replayed)),
            ("there", &|comeback| count(comeback.in_flight)),
            ("answered", &|comeback| count(comeback.answered)),
            ("longest", &|comeback| time(comeback.longest_ns)),
        ],
        &summary.role_restarts,
    );
    let cause = |comeback: &RoleRestartSummary| {
        format!("{} at {} s: {}", comeback.role, at(comeback), single_line(&comeback.cause))
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

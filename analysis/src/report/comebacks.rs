//! Roles of the engine that died and came back from their journals.

use super::units::{count, duration_or_dash};
use crate::escape::in_a_line;
use crate::summary::{ComebackSummary, Summary};
use crate::table::{Grid, GridRow};

/// The causes of so many deaths are named below the table.
const CAUSES: usize = 8;

/// The table; nothing for a run in which nobody came back.
pub(crate) fn grid(summary: &Summary) -> Option<Grid> {
    let row = |comeback: &ComebackSummary| {
        let detected = comeback.fault_ns.map(|fault| comeback.detected_ns.saturating_sub(fault));
        GridRow::plain(vec![
            comeback.role.clone(),
            format!("{:.3}", comeback.fault_ns.unwrap_or(comeback.detected_ns) as f64 / 1e9),
            duration_or_dash(detected),
            duration_or_dash(comeback.detect_to_recovery_ns),
            duration_or_dash(comeback.first_served_ns),
            count(comeback.records),
            count(comeback.again),
            count(comeback.in_flight),
            count(comeback.answered),
            duration_or_dash(comeback.longest_ns),
        ])
    };
    let head = [
        "died",
        "at (s)",
        "detected",
        "recovered",
        "served",
        "records",
        "again",
        "there",
        "answered",
        "longest",
    ];
    let causes = summary.comebacks.iter().take(CAUSES).map(|comeback| {
        let at = comeback.fault_ns.unwrap_or(comeback.detected_ns) as f64 / 1e9;
        format!("{} at {at:.3} s: {}", comeback.role, in_a_line(&comeback.cause))
    });
    (!summary.comebacks.is_empty()).then(|| Grid {
        name: "comebacks".into(),
        title: "engine roles that died and came back from their journals".into(),
        head: head.map(str::to_owned).into(),
        keys: 1,
        rows: summary.comebacks.iter().map(row).collect(),
        notes: causes
            .chain([
            "detected: after the fault. recovered: after the detection. served: its first order, after the death. \
             again: records that were carried out again, the others were in a snapshot. there: orders that were at it, or came, while it was away; longest: the round trip of those."
                .into(),
            ])
            .collect(),
    })
}

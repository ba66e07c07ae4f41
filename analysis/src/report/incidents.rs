//! Report of incidents: each death of a strategy, and the totals.

use super::tables::{STAGE_COLUMNS, cell, ruled, stage_cells, table};
use super::units::{count, duration_or_dash, short};
use crate::escape::single_line;
use crate::summary::{Containment, IncidentSummary, Summary, worst};
use crate::table::{fit_to_width, width};
use comfy_table::{CellAlignment, Table, TableStyle};

/// Maximum number of listed incidents: those with the greatest effect on survivors.
const MAX_INCIDENTS: usize = 8;
/// Maximum length of a cause in characters; less if the row exceeds the terminal.
const CAUSE_WIDTH: usize = 30;

/// Returns the totals over all strategy deaths of a run as texts.
pub(super) fn totals(containment: &Containment) -> Vec<String> {
    let Containment { incidents, strategies, quarantined, restarted, orders, lost_of_survivors, .. } =
        containment;
    let deaths = if *incidents == 1 { "death" } else { "deaths" };
    let whose = if *strategies == 1 { "strategy" } else { "strategies" };
    vec![
        format!("{} {deaths} of {} {whose}", count(*incidents), count(*strategies)),
        format!("quarantined {}", count(*quarantined)),
        format!("restarted {}", count(*restarted)),
        format!("orders cancelled {}", count(orders.cancelled)),
        format!("orphaned {}", count(orders.orphaned)),
        format!("lost {}", count(orders.lost)),
        format!("lost by survivors {}", count(*lost_of_survivors)),
    ]
}

/// Returns the name of a dead strategy's incarnation: `3`, or `3.12` after a restart.
pub(crate) fn name(incident: &IncidentSummary) -> String {
    match incident.epoch {
        0 => incident.strategy.to_string(),
        epoch => format!("{}.{epoch}", incident.strategy),
    }
}

/// Returns the cause of a strategy's death on one line without control characters.
pub(crate) fn cause(incident: &IncidentSummary) -> String {
    single_line(&incident.cause)
}

/// Returns at most `width` characters of a text.
fn truncate(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.into(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Returns the lines of the incident table for the terminal.
pub(super) fn incident_lines(summary: &Summary) -> Vec<String> {
    let shown = worst(&summary.incidents, MAX_INCIDENTS);
    let hidden = summary.incidents.len() - shown.len();
    let mut lines = lines_with(&shown, CAUSE_WIDTH);
    let widest = table_with(&shown, CAUSE_WIDTH).lines().map(|line| line.chars().count()).max().unwrap_or(0);
    if let Some(excess) = widest.checked_sub(width()) {
        // Only the longest cause is truncated, which may be shorter than the maximum.
        let longest = shown.iter().map(|incident| cause(incident).chars().count()).max().unwrap_or(0);
        lines = lines_with(&shown, longest.min(CAUSE_WIDTH).saturating_sub(excess).max(1));
    }
    if hidden > 0 {
        lines.push(format!("… and {} more, felt less: see summary.json", count(hidden as u64)));
    }
    lines
}

fn lines_with(incidents: &[&IncidentSummary], cause_width: usize) -> Vec<String> {
    fit_to_width(&table_with(incidents, cause_width))
}

fn table_with(incidents: &[&IncidentSummary], cause_width: usize) -> Table {
    let columns = ["died", "at (s)", "cause", "repair", "restart", "orders", "touched", "max"];
    let mut table = left(table(ruled(), &columns), &[2]);
    for incident in incidents {
        table.add_row([
            name(incident),
            format!("{:.3}", incident.detected_ns as f64 / 1e9),
            truncate(&cause(incident), cause_width),
            duration_or_dash(incident.detect_to_repair_ns),
            duration_or_dash(incident.repair_to_restart_ns),
            short(incident.orders.total()),
            short(incident.survivors.orders),
            duration_or_dash(incident.survivors.max_ns),
        ]);
    }
    table
}

/// Returns the table of latency distributions over all strategy deaths of a run.
pub(super) fn distributions(containment: &Containment, style: TableStyle) -> Table {
    let mut columns = STAGE_COLUMNS;
    columns[0] = "all incidents";
    let mut table = table(style, &columns);
    for (name, figures) in containment.distributions() {
        table.add_row(stage_cells(name, figures));
    }
    table
}

/// Returns the lines of the table of distributions over all strategy deaths, for the terminal.
pub(super) fn distribution_lines(containment: &Containment) -> Vec<String> {
    fit_to_width(&distributions(containment, ruled()))
}

/// Returns the table of a run's strategy deaths with all columns.
pub(super) fn incidents(summary: &Summary, style: TableStyle, max_rows: usize) -> Table {
    let columns = [
        "died",
        "at (s)",
        "cause",
        "repair",
        "restart",
        "cancelled",
        "orphaned",
        "lost",
        "touched",
        "p50",
        "p99.9",
        "max",
    ];
    let mut table = left(table(style, &columns), &[2]);
    for incident in worst(&summary.incidents, max_rows) {
        let IncidentSummary { orders, survivors, .. } = incident;
        table.add_row([
            name(incident),
            format!("{:.3}", incident.detected_ns as f64 / 1e9),
            cell(style, &incident.cause),
            duration_or_dash(incident.detect_to_repair_ns),
            duration_or_dash(incident.repair_to_restart_ns),
            count(orders.cancelled),
            count(orders.orphaned),
            count(orders.lost),
            count(survivors.orders),
            duration_or_dash(survivors.p50_ns),
            duration_or_dash(survivors.p999_ns),
            duration_or_dash(survivors.max_ns),
        ]);
    }
    table
}

/// Left-aligns columns.
fn left(mut table: Table, columns: &[usize]) -> Table {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    table
}

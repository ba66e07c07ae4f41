//! Report of incidents: each death of a strategy, and the totals.

use super::tables::PERCENTILES;
use super::units::{count, counted, duration_or_dash as time, short};
use crate::summary::{Containment, Distribution, IncidentSummary, Summary, worst};
use crate::table::{Column, Grid};
use protocol::index::StrategyIndex;
use record::cpu_shortage::CpuShortage;
use record::escape::single_line;
use std::collections::BTreeSet;

const MAX_CAUSE_WIDTH: usize = 30;

pub(super) fn totals(containment: &Containment) -> Vec<String> {
    let Containment { incidents, strategies, quarantined, restarted, orders, lost_of_survivors, .. } =
        containment;
    let of = counted(*strategies, "strategy");
    let what = match containment.by_operators {
        0 => format!("{} of {of}", counted(*incidents, "death")),
        ended => {
            let deaths = counted(incidents.saturating_sub(ended), "death");
            format!("{deaths} and {} by operators of {of}", counted(ended, "end"))
        }
    };
    vec![
        what,
        format!("quarantined {}", count(*quarantined)),
        format!("restarted {}", count(*restarted)),
        format!("orders cancelled {}", count(orders.cancelled)),
        format!("orphaned {}", count(orders.orphaned)),
        format!("lost {}", count(orders.lost)),
        format!("lost by survivors {}", count(*lost_of_survivors)),
    ]
}

/// Returns the name of an incarnation: `3`, or `3.12` after a restart.
pub(super) fn life_name(strategy: StrategyIndex, epoch: u16) -> String {
    match epoch {
        0 => strategy.to_string(),
        epoch => format!("{strategy}.{epoch}"),
    }
}

/// Returns the name of the incarnation that died: the strategy's index, and after a restart the
/// epoch, such as `3.12`.
pub fn name(incident: &IncidentSummary) -> String {
    life_name(incident.strategy, incident.epoch)
}

/// Returns the cause of a strategy's death as text on one line, shortened.
pub fn cause(incident: &IncidentSummary) -> String {
    shortened(&incident.cause)
}

/// Returns a cause on one line, shortened.
pub(super) fn shortened(cause: &str) -> String {
    let cause = single_line(cause);
    match cause.char_indices().nth(MAX_CAUSE_WIDTH) {
        None => cause,
        Some(_) => cause.chars().take(MAX_CAUSE_WIDTH - 1).chain(['…']).collect(),
    }
}

/// Returns a line for each time in which a strategy lacked CPU time: its silence, its slow exit.
fn shortages(incident: &IncidentSummary) -> Vec<String> {
    let IncidentSummary { silence, slow_exit, .. } = incident;
    let line = |what: &str, found: &CpuShortage| format!("{} {what}: {}", name(incident), found.describe());
    let silence = silence.as_ref().map(|found| line("was silent", found));
    silence.into_iter().chain(slow_exit.as_ref().map(|found| line("ended late", found))).collect()
}

/// Returns a line for each group of strategies that died with their process.
fn groups(incidents: &[&IncidentSummary]) -> Vec<String> {
    let groups = incidents.iter().map(|incident| &incident.group).filter(|group| !group.is_empty());
    let groups: BTreeSet<&Vec<StrategyIndex>> = groups.collect();
    let names = |group: &Vec<StrategyIndex>| {
        group.iter().map(|strategy| strategy.to_string()).collect::<Vec<_>>().join(", ")
    };
    groups.into_iter().map(|group| format!("{} shared a process, and died together", names(group))).collect()
}

/// Returns the tables of a run's incidents: at most `max` of them, those with the greatest effect
/// on survivors, and the distributions over all.
pub(super) fn grids(summary: &Summary, max: usize) -> Vec<Grid> {
    let Some(containment) = &summary.containment else { return Vec::new() };
    let shown = worst(&summary.incidents, max);
    let mut incidents = Grid::from_rows(
        "incidents",
        "",
        3,
        &[
            ("died", &|row: &&IncidentSummary| name(row)),
            ("at (s)", &|row| format!("{:.3}", row.detected_ns as f64 / 1e9)),
            ("cause", &|row| cause(row)),
            ("repair", &|row| time(row.detect_to_repair_ns)),
            ("restart", &|row| time(row.repair_to_restart_ns)),
            ("cancelled", &|row| short(row.orders.cancelled)),
            ("orphaned", &|row| short(row.orders.orphaned)),
            ("lost", &|row| short(row.orders.lost)),
            ("touched", &|row| short(row.survivors.orders)),
            ("p50", &|row| time(row.survivors.p50_ns)),
            ("p99.9", &|row| time(row.survivors.p999_ns)),
            ("max", &|row| time(row.survivors.max_ns)),
        ],
        &shown,
    );
    let hidden = summary.incidents.len() - shown.len();
    if hidden > 0 {
        let hidden = count(hidden as u64);
        incidents = incidents.note(format!("… and {hidden} more, felt less: see summary.json"));
    }
    incidents = incidents.note(
        "touched: on its way through the engine between the fault (or the detection) and 10 ms after the repair",
    );
    for note in groups(&shown).into_iter().chain(shown.iter().flat_map(|incident| shortages(incident))) {
        incidents = incidents.note(note);
    }
    type Named = (&'static str, Distribution);
    let percentiles = PERCENTILES.map(|(head, cell)| (head, move |row: &Named| cell(&row.1)));
    let samples = |row: &Named| short(row.1.count);
    let mut columns: Vec<Column<'_, Named>> =
        vec![("all incidents", &|row| row.0.to_owned()), ("samples", &samples)];
    columns.extend(percentiles.iter().map(|(head, cell)| (*head, cell as _)));
    vec![incidents, Grid::from_rows("all_incidents", "", 1, &columns, &containment.distributions())]
}

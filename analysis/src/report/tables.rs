//! The tables of stages and of threads in a run's report.

use super::units::{count, duration, duration_or_dash, percent, short};
use crate::escape::{markdown, single_line};
use crate::summary::{Distribution, Measure, Summary, ThreadSummary};
use crate::table::{fit_to_width, split_columns, width};
pub use crate::table::{ruled, table};
use comfy_table::{Table, TableStyle};
use protocol::flow::Stage;

/// Maximum number of listed threads: those of the engine, then the most disturbed strategies.
const MAX_THREADS: usize = 12;

/// Column heads of the stage table.
pub(super) const STAGE_COLUMNS: [&str; 7] = ["stage", "p50", "p90", "p99", "p99.9", "p99.99", "max"];

/// Returns the cells of a row of the stage table.
pub(super) fn stage_cells(name: &str, figures: &Distribution) -> [String; 7] {
    let Distribution { p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns, .. } = *figures;
    let values = [p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns].map(duration_or_dash);
    let mut cells = std::array::from_fn(|_| String::new());
    cells[0] = name.into();
    cells[1..].clone_from_slice(&values);
    cells
}

/// Returns the table of stages and their percentiles; the names are the keys of the summary.
/// `stall-free` shows the share of orders that it is about.
pub(super) fn stages(summary: &Summary, style: TableStyle) -> Table {
    let mut table = table(style, &STAGE_COLUMNS);
    for measure in summary.measures() {
        // A part is listed below the measure that it is part of.
        let name = match (measure, &summary.stall_free) {
            (Measure::Exchange(_), _) => format!("· {}", measure.name()),
            (Measure::StallFree, Some(free)) => {
                format!("· stall-free on {}", percent(Some(1.0 - free.excluded_share)))
            }
            _ => measure.name().to_owned(),
        };
        table.add_row(stage_cells(&name, summary.distribution(measure)));
    }
    table
}

/// Returns the lines of the stage table for the terminal, with rules between its sections. The
/// sections are stages, sums and the remaining measures.
pub(super) fn stage_lines(summary: &Summary) -> Vec<String> {
    let table = stages(summary, ruled());
    let mut lines: Vec<String> = table.lines().collect();
    if let Some(rule) = lines.get(1).cloned() {
        // Head and rule are lines 0 and 1. The higher index is inserted first, so that the lower
        // one stays valid.
        let last = summary.measures().last().filter(|last| Measure::MARKET.contains(last));
        let before_market = last.map(|_| Measure::GatewayLateness);
        for after in before_market.into_iter().chain([Measure::RtVenueFromDue, Measure::Stage(Stage::Return)])
        {
            let Some(index) = summary.measures().position(|measure| measure == after) else { continue };
            let index = 2 + index + 1;
            if index <= lines.len() {
                lines.insert(index, rule.clone());
            }
        }
    }
    split_columns(lines, &table, width())
}

/// Returns the lines of the thread table for the terminal.
pub(super) fn thread_lines(summary: &Summary) -> Vec<String> {
    let mut table =
        table(ruled(), &["thread", "core", "stamps", "vol", "invol", "faults", "cpu", "max gap", "busy"]);
    let (shown, hidden) = listed_threads(summary);
    for thread in shown {
        table.add_row([
            thread.role.clone() + if thread.restarts(&summary.incidents) > 0 { " *" } else { "" },
            thread.core.map_or_else(|| "–".into(), |core| short(core.into())),
            short(thread.records),
            short(thread.voluntary_switches),
            short(thread.involuntary_switches),
            short(thread.minor_faults.saturating_add(thread.major_faults)),
            duration(thread.cpu_ns),
            duration(thread.longest_gap_ns),
            percent(thread.utilization),
        ]);
    }
    let mut lines = fit_to_width(&table);
    if summary.processes.iter().any(|thread| thread.restarts(&summary.incidents) > 0) {
        lines.push("* started again: all but stamps is of its last incarnation".into());
    }
    if hidden > 0 {
        lines.push(format!("… and {} strategies with shorter gaps: see summary.json", count(hidden as u64)));
    }
    lines
}

/// Returns the listed threads in the order of the plan, and the number of omitted ones.
fn listed_threads(summary: &Summary) -> (Vec<&ThreadSummary>, usize) {
    let threads = &summary.processes;
    if threads.len() <= MAX_THREADS {
        return (threads.iter().collect(), 0);
    }
    let is_strategy = |thread: &ThreadSummary| thread.role.starts_with("strategy-");
    let (mut strategies, mut shown): (Vec<usize>, Vec<usize>) =
        (0..threads.len()).partition(|index| is_strategy(&threads[*index]));
    strategies.sort_by_key(|index| std::cmp::Reverse(threads[*index].longest_gap_ns));
    strategies.truncate(MAX_THREADS.saturating_sub(shown.len()).max(3));
    shown.extend(strategies);
    shown.sort_unstable();
    let hidden = threads.len() - shown.len();
    (shown.into_iter().map(|index| &threads[index]).collect(), hidden)
}

/// Escapes an external text, such as a name, for a cell of a table.
pub(super) fn cell(style: TableStyle, text: &str) -> String {
    if style == comfy_table::presets::ASCII_MARKDOWN { markdown(text) } else { single_line(text) }
}

//! Inspection of a run's slowest orders: shares by cause, percentiles without the machine's stalls,
//! each of the worst orders.

use super::{Format, print_json, print_lines};
use crate::report::export::write_table;
use crate::report::grid::wrap_indented;
use crate::report::stall_free_grid;
use crate::table::{Column, Grid};
use merge::merge;
use merge::tail::{Cause, ExplainedOrder, NanosByCause, Tail, TailShare};
use protocol::index::StrategyIndex;
use protocol::plan::IsolationLevels;
use record::document::Document;
use record::numbers::{count, duration, percent};
use record::run::RunRecord;
use record::screen::width;
use std::io::{self, Write};
use std::path::Path;

const INDENT: &str = "      ";

/// The columns of the CSV, which has a row for each stage of an order.
const STAGE_COLUMNS: [&str; 13] = [
    "order",
    "at_ns",
    "rt_venue_ns",
    "touched",
    "stage",
    "thread",
    "machine_ns",
    "memory_ns",
    "backlog_ns",
    "queueing_ns",
    "usual_ns",
    "unexplained_ns",
    "wake_up_ns",
];

/// Prints the slowest orders of a run, with the causes of their time.
pub(super) fn inspect(
    folder: &Path,
    worst: usize,
    format: Format,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let record = RunRecord::read(folder)?;
    let merged = merge(folder, &record, |_, _| {})?;
    let tail = Tail::from_run(&record, &merged, worst);
    if tail.orders == 0 {
        anyhow::bail!(
            "{}: no order has all stamps t1 to t8: nothing can be said about its slowest ones",
            folder.display()
        );
    }
    match format {
        Format::Text => text(&tail, record.plan.isolation, out)?,
        Format::Json => print_json(out, &tail)?,
        Format::Csv => {
            let rows = tail.worst.iter().flat_map(|order| {
                let ExplainedOrder { order, at_ns, rt_venue_ns, stall_affected, stages } = order;
                stages.iter().map(move |(stage, thread, NanosByCause(causes))| {
                    (order, at_ns, rt_venue_ns, stall_affected, stage, thread, causes)
                })
            });
            write_table(out, &STAGE_COLUMNS, rows)?;
        }
    }
    Ok(())
}

/// Returns the isolation level of an order's strategy in words; empty if all have the same level.
fn level_of(order: &str, isolation: IsolationLevels) -> String {
    let strategy =
        order.split(['.', '/']).next().and_then(|strategy| strategy.parse().ok()).map(StrategyIndex);
    let level = strategy.filter(|_| isolation.only().is_none()).map(|strategy| isolation.level_of(strategy));
    level.map_or_else(String::new, |level| format!(" ({level})"))
}

fn text(tail: &Tail, isolation: IsolationLevels, out: &mut impl Write) -> io::Result<()> {
    let orders = count(tail.orders);
    writeln!(out, "run {}: why the slowest of {orders} orders were slow (rt_venue)\n", tail.run)?;
    write!(out, "{}", stall_free_grid(tail).terminal(false))?;
    if let Some(widest) = tail.slowest.first() {
        let total = |share: &TailShare| (share.fraction.clone(), share.causes_ns, share.causes_ns.total());
        let shares = tail.slowest.iter().map(total).collect();
        write!(out, "\n{}", cause_grid("slowest", shares).terminal(false))?;
        // By stage only for the widest fraction; the narrower ones are in the JSON.
        let total = widest.causes_ns.total();
        let stages = widest.stages.iter().map(|(stage, causes)| (stage.clone(), *causes, total)).collect();
        write!(out, "\n{}", cause_grid("of the slowest 1 %", stages).terminal(false))?;
    }
    writeln!(out)?;
    for order in &tail.worst {
        let at = order.at_ns as f64 / 1e9;
        let level = level_of(&order.order, isolation);
        writeln!(out, "order {}{level}, sent at {at:.6} s: {}", order.order, duration(order.rt_venue_ns))?;
        for (stage, thread, causes) in &order.stages {
            let parts: Vec<String> =
                causes.nonzero().map(|(cause, ns)| format!("{} {}", cause.name(), duration(ns))).collect();
            let total = duration(causes.total());
            let (head, parts) = (format!("  {stage:<18} {total:>9} on {thread}:"), parts.join(", "));
            // Text that does not fit on the line continues below it.
            match head.chars().count() + 1 + parts.chars().count() <= width() {
                true => writeln!(out, "{head} {parts}")?,
                false => writeln!(out, "{head}\n{INDENT}{}", wrap_indented(&parts, INDENT))?,
            }
        }
    }
    if !tail.notes.is_empty() {
        writeln!(out)?;
    }
    print_lines(out, tail.notes.iter().map(|note| wrap_indented(&format!("note: {note}"), "  ")))
}

/// Returns a table of the shares of the causes in some times, each with the whole that it is part
/// of.
fn cause_grid(head: &str, times: Vec<(String, NanosByCause, u64)>) -> Grid {
    let share = |cause| {
        move |(_, causes, total): &(String, NanosByCause, u64)| {
            percent((*total > 0).then(|| causes.get(cause) as f64 / *total as f64))
        }
    };
    let shares = Cause::DISPLAY_ORDER.map(|cause| (cause.name(), share(cause)));
    let mut columns: Vec<Column<'_, (String, NanosByCause, u64)>> = vec![(head, &|row| row.0.clone())];
    columns.extend(shares.iter().map(|(name, share)| (*name, share as _)));
    Grid::from_rows("causes", "", 1, &columns, &times)
}

//! Inspection of a run's slowest orders: shares by cause, percentiles without the machine's stalls,
//! each of the worst orders.

use super::{Format, InspectError, print_csv, print_json, print_lines};
use crate::document::Document;
use crate::merge::merge;
use crate::numbers::{count, duration, duration_or_dash, percent};
use crate::record::RunRecord;
use crate::report::grid::wrap_indented;
use crate::report::tables::{ruled, table};
use crate::report::{fit_to_width, width};
use crate::tail::{Cause, ExplainedOrder, NanosByCause, Tail, TailPercentiles};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Indent of continuation lines.
const INDENT: &str = "      ";

/// A row of the CSV: a stage of one order.
#[derive(Serialize)]
struct WorstStageRow<'a> {
    order: &'a str,
    at_ns: u64,
    rt_venue_ns: u64,
    touched: bool,
    stage: &'a str,
    thread: &'a str,
    machine_ns: u64,
    memory_ns: u64,
    backlog_ns: u64,
    queueing_ns: u64,
    usual_ns: u64,
    unexplained_ns: u64,
    wake_up_ns: u64,
}

/// Prints the slowest orders of a run, with the causes of their time.
pub(super) fn inspect(
    folder: &Path,
    worst: usize,
    format: Format,
    out: &mut impl Write,
) -> Result<(), InspectError> {
    let record = RunRecord::read(folder)?;
    let merged = merge(folder, &record, |_, _| {})?;
    let tail = Tail::from_run(&record, &merged, worst);
    if tail.orders == 0 {
        return Err(InspectError::NothingMeasured { path: folder.display().to_string() });
    }
    match format {
        Format::Text => text(&tail, out)?,
        Format::Json => print_json(out, &tail)?,
        Format::Csv => print_csv(out, &tail.worst.iter().flat_map(worst_stage_rows).collect::<Vec<_>>())?,
    }
    Ok(())
}

fn worst_stage_rows(order: &ExplainedOrder) -> impl Iterator<Item = WorstStageRow<'_>> {
    order.stages.iter().map(move |(stage, thread, causes)| {
        let NanosByCause(
            [machine_ns, memory_ns, backlog_ns, queueing_ns, usual_ns, unexplained_ns, wake_up_ns],
        ) = *causes;
        WorstStageRow {
            order: &order.order,
            at_ns: order.at_ns,
            rt_venue_ns: order.rt_venue_ns,
            touched: order.stall_affected,
            stage,
            thread,
            machine_ns,
            memory_ns,
            backlog_ns,
            queueing_ns,
            usual_ns,
            unexplained_ns,
            wake_up_ns,
        }
    })
}

fn text(tail: &Tail, out: &mut impl Write) -> io::Result<()> {
    let Tail { orders, stall_affected: touched, .. } = tail;
    writeln!(out, "run {}: why the slowest of {} orders were slow (rt_venue)\n", tail.run, count(*orders))?;
    let mut figures = table(ruled(), &["orders", "p50", "p99", "p99.9", "share"]);
    let free = orders - touched;
    for (name, TailPercentiles { p50_ns, p99_ns, p999_ns }, counted) in
        [("all", tail.all, *orders), ("untouched by the machine's stalls", tail.stall_free, free)]
    {
        let [p50, p99, p999] = [p50_ns, p99_ns, p999_ns].map(duration_or_dash);
        figures.add_row([name.into(), p50, p99, p999, percent(Some(counted as f64 / *orders as f64))]);
    }
    print_lines(out, fit_to_width(&figures))?;
    if !tail.slowest.is_empty() {
        writeln!(out)?;
        let head: Vec<&str> = ["slowest"].into_iter().chain(Cause::DISPLAY_ORDER.map(Cause::name)).collect();
        let mut shares = table(ruled(), &head);
        for share in &tail.slowest {
            shares.add_row(shares_of(&share.fraction, &share.causes_ns, share.causes_ns.total()));
        }
        print_lines(out, fit_to_width(&shares))?;
        // By stage only for the widest fraction; the narrower ones are in the JSON.
        writeln!(out)?;
        let head: Vec<&str> =
            ["of the slowest 1 %"].into_iter().chain(Cause::DISPLAY_ORDER.map(Cause::name)).collect();
        let mut stages = table(ruled(), &head);
        let whole = tail.slowest[0].causes_ns.total();
        for (stage, causes) in &tail.slowest[0].stages {
            stages.add_row(shares_of(stage, causes, whole));
        }
        print_lines(out, fit_to_width(&stages))?;
    }
    writeln!(out)?;
    for order in &tail.worst {
        let at = order.at_ns as f64 / 1e9;
        writeln!(out, "order {}, sent at {at:.6} s: {}", order.order, duration(order.rt_venue_ns))?;
        for (stage, thread, causes) in &order.stages {
            let parts: Vec<String> =
                causes.nonzero().map(|(cause, ns)| format!("{} {}", cause.name(), duration(ns))).collect();
            let whole = duration(causes.total());
            let (head, parts) = (format!("  {stage:<18} {whole:>9} on {thread}:"), parts.join(", "));
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

fn shares_of(name: &str, causes: &NanosByCause, whole: u64) -> Vec<String> {
    let share = |cause| percent((whole > 0).then(|| causes.get(cause) as f64 / whole as f64));
    [name.to_owned()].into_iter().chain(Cause::DISPLAY_ORDER.map(share)).collect()
}

//! Inspection of a run's folder: one row for each log, and the problems of each.

use super::time::{LogTimebase, signed};
use super::truncation::MergedCounts;
use super::{Format, check_no_problems, print_json, print_lines};
use crate::report::export::write_csv;
use crate::report::grid::wrap_indented;
use crate::report::units::{duration, short};
use crate::table::{Column, Grid};
use merge::folder;
use protocol::plan::Role;
use protocol::stamps::{Point, Record};
use protocol::status::StatusField;
use record::document::Document;
use record::logfile::{EXTENSION, file_name};
use record::run::{Incident, RunOutcome, RunRecord};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// The state of a spare strategy's thread, if no operator has added it.
const NOT_STARTED: &str = "spare, not started";

/// A row of the listing: one log. Values that need a readable log are null without one.
#[derive(Default, Serialize)]
struct LogRow {
    thread: String,
    file: String,
    state: Option<&'static str>,
    pid: Option<u64>,
    core: Option<u32>,
    records: u64,
    /// Number of epochs (incarnations) that stamped orders; only for strategies.
    epochs: Option<u64>,
    /// First and last stamp, in seconds since the start of the schedule.
    first_s: Option<f64>,
    last_s: Option<f64>,
    voluntary_switches: Option<u64>,
    involuntary_switches: Option<u64>,
    minor_faults: Option<u64>,
    major_faults: Option<u64>,
    longest_gap_ns: Option<u64>,
    damage: Option<String>,
}

#[derive(Serialize)]
struct FolderListing<'a> {
    folder: String,
    run: &'a str,
    started: &'a str,
    outcome: &'a RunOutcome,
    incidents: &'a [Incident],
    logs: &'a [LogRow],
    problems: &'a [String],
}

/// Prints one row for each log in a run's folder, and the problems of each.
pub(super) fn inspect(folder: &Path, format: Format, out: &mut impl Write) -> anyhow::Result<()> {
    let record = RunRecord::read(folder)?;
    let base = LogTimebase::new(&record);
    let merged = MergedCounts::read(folder);
    let lines: Vec<LogRow> = (0..record.plan.threads.len())
        .map(|thread| read_log_row(folder, &record, thread, &base, &merged))
        .collect();
    let mut problems: Vec<String> = lines.iter().filter_map(|line| line.damage.clone()).collect();
    problems.extend(unplanned_logs(folder, &record));
    match format {
        Format::Text => text(&record, &lines, &problems, out)?,
        Format::Csv => write_csv(out, &lines)?,
        Format::Json => {
            let listing = FolderListing {
                folder: folder.display().to_string(),
                run: &record.plan.run,
                started: &record.started,
                outcome: &record.outcome,
                incidents: &record.incidents,
                logs: &lines,
                problems: &problems,
            };
            print_json(out, &listing)?;
        }
    }
    check_no_problems(folder, &problems)
}

/// Reads one log to its end or its first damage.
fn read_log_row(
    folder: &Path,
    record: &RunRecord,
    thread: usize,
    base: &LogTimebase,
    merged: &MergedCounts,
) -> LogRow {
    let name = record.plan.threads[thread].name.as_str();
    let line = LogRow { thread: name.into(), file: file_name(name), ..LogRow::default() };
    let mut log = match folder::open(folder, &record.plan, thread) {
        Ok(log) => log,
        Err(error) => return LogRow { damage: Some(error.to_string()), ..line },
    };
    let own = match record.plan.threads[thread].roles.as_slice() {
        [Role::Strategy(index)] => Some(*index),
        _ => None,
    };
    // First and last stamp of an event; due times and releases are planned times and do not count.
    let mut time_span: Option<(u64, u64)> = None;
    let happened = |point: Point| {
        point.is_of_order() && point.is_time() && !matches!(point, Point::Due | Point::Release)
    };
    let (mut epochs, mut last, mut sums) = (BTreeSet::new(), None, 0);
    let damage = loop {
        match log.next_block() {
            Ok(Some(block)) => {
                for Record { point, id, value, .. } in block.records() {
                    sums += u64::from(point == Point::Checksum);
                    if happened(point) {
                        let (first, _) = time_span.unwrap_or((value, 0));
                        time_span = Some((first, value));
                    }
                    if own == Some(id.strategy()) && last != Some(id.epoch()) {
                        last = Some(id.epoch());
                        epochs.insert(id.epoch());
                    }
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let status = log.status();
    let word = |field| Some(status.get(field));
    let cut = || {
        let missing = merged.missing_tail(name, status, log.records(), sums);
        missing.map(|what| format!("{}: {what}", file_name(name)))
    };
    let is_added = |spare| record.additions.iter().any(|addition| addition.strategy == spare);
    let is_spare = own.is_some_and(|own| record.plan.trading().is_spare(own) && !is_added(own));
    LogRow {
        state: Some(if is_spare { NOT_STARTED } else { status.state().name() }),
        pid: word(StatusField::Pid),
        core: status.core(),
        records: log.records(),
        epochs: own.map(|_| epochs.len() as u64),
        first_s: time_span.map(|(first, _)| base.seconds(first)),
        last_s: time_span.map(|(_, last)| base.seconds(last)),
        voluntary_switches: word(StatusField::VoluntarySwitches),
        involuntary_switches: word(StatusField::InvoluntarySwitches),
        minor_faults: word(StatusField::MinorFaults),
        major_faults: word(StatusField::MajorFaults),
        longest_gap_ns: Some(base.between_ns(0, status.get(StatusField::LongestGapTicks)).round() as u64),
        damage: damage.or_else(cut),
        ..line
    }
}

/// Returns the logs in the folder that belong to no thread of the plan.
fn unplanned_logs(folder: &Path, record: &RunRecord) -> Vec<String> {
    let known = |name: &str| record.plan.threads.iter().any(|thread| file_name(&thread.name) == name);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut unplanned: Vec<String> =
        names.filter(|name| name.ends_with(&format!(".{EXTENSION}")) && !known(name)).collect();
    unplanned.sort();
    let run = &record.plan.run;
    unplanned
        .iter()
        .map(|name| format!("{name}: run {run} has no such thread: move it out of the folder"))
        .collect()
}

fn text(record: &RunRecord, lines: &[LogRow], problems: &[String], out: &mut impl Write) -> io::Result<()> {
    let ended = match &record.outcome {
        RunOutcome::Complete => "complete".into(),
        RunOutcome::Interrupted => "interrupted".into(),
        RunOutcome::Failed { process, what, .. } => format!("failed ({process}: {what})"),
    };
    let deaths = match record.incidents.len() {
        0 => String::new(),
        1 => ", 1 death".into(),
        many => format!(", {many} deaths"),
    };
    let head = format!("run {}, {}, {ended}{deaths}", record.plan.run, record.started);
    writeln!(out, "{}\n", wrap_indented(&head, "  "))?;
    let dash = || "–".to_owned();
    let number = |value: Option<u64>| value.map_or_else(dash, short);
    let seconds = |value: Option<f64>| value.map_or_else(dash, |seconds| signed(seconds * 1e9));
    // Shown only if some strategy has more than one epoch: the table is already wide.
    let with_epochs = lines.iter().any(|line| line.epochs > Some(1));
    let faults =
        |line: &LogRow| number(line.minor_faults.zip(line.major_faults).map(|(a, b)| a.saturating_add(b)));
    let columns: [Column<'_, LogRow>; 11] = [
        ("thread", &|line| match line.state {
            Some(NOT_STARTED) => format!("{} ({NOT_STARTED})", line.thread),
            _ => line.thread.clone(),
        }),
        ("pid", &|line| line.pid.map_or_else(dash, |pid| pid.to_string())),
        ("core", &|line| line.core.map_or_else(dash, |core| core.to_string())),
        ("stamps", &|line| short(line.records)),
        ("first", &|line| seconds(line.first_s)),
        ("last", &|line| seconds(line.last_s)),
        ("vol", &|line| number(line.voluntary_switches)),
        ("invol", &|line| number(line.involuntary_switches)),
        ("faults", &faults),
        ("gap", &|line| line.longest_gap_ns.map_or_else(dash, duration)),
        ("epochs", &|line| number(line.epochs)),
    ];
    let columns = &columns[..columns.len() - usize::from(!with_epochs)];
    write!(out, "{}", Grid::from_rows("logs", "", 1, columns, lines).terminal(false))?;
    if !problems.is_empty() {
        writeln!(out)?;
    }
    print_lines(out, problems.iter().map(|problem| format!("problem: {problem}")))
}

//! Inspection of one log: header, status and records.

use super::time::LogTimebase;
use super::truncation::MergedCounts;
use super::{Format, Options, no_such_order, print_lines};
use crate::report::units::{count, counted};
use anyhow::bail;
use protocol::stamps::{Gap, LinkEnd, Point, Record, TopOfBookWritten};
use protocol::status::StatusField;
use record::logfile::{EXTENSION, LogError, LogReader};
use serde::Serialize;
use shm::memory::header::Header;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;

const DEFAULT_RECORDS: u64 = 10;

/// Status fields that are meaningful by themselves, with their JSON names.
const FIELDS: [(&str, StatusField); 15] = [
    ("tid", StatusField::Tid),
    ("heartbeat_ticks", StatusField::HeartbeatTicks),
    ("cycles", StatusField::Cycles),
    ("busy_cycles", StatusField::BusyCycles),
    ("busy_ticks", StatusField::BusyTicks),
    ("longest_gap_ticks", StatusField::LongestGapTicks),
    ("started_ticks", StatusField::StartedTicks),
    ("ended_ticks", StatusField::EndedTicks),
    ("voluntary_switches", StatusField::VoluntarySwitches),
    ("involuntary_switches", StatusField::InvoluntarySwitches),
    ("minor_faults", StatusField::MinorFaults),
    ("major_faults", StatusField::MajorFaults),
    ("cpu_ns", StatusField::CpuNs),
    ("records_dropped", StatusField::RecordsDropped),
    ("allocations_plus_one", StatusField::AllocationsPlusOne),
];

#[derive(Serialize)]
struct StampRow {
    number: u64,
    point: &'static str,
    order: String,
    /// Ticks; the reason's code for `rejected`, the checksum for `checksum`.
    value: u64,
    /// Seconds since the start of the run; `None` without `run.json` or if the record holds no
    /// time.
    seconds: Option<f64>,
}

/// Prints header, status and records of one stamp log.
pub(super) fn inspect(path: &Path, options: &Options, out: &mut impl Write) -> anyhow::Result<()> {
    let mut log = LogReader::open(path, None)?;
    let timebase = LogTimebase::for_log(path);
    let is_other = timebase.as_ref().is_some_and(|base| base.run_hash != log.header().run);
    let base = timebase.filter(|_| !is_other);
    let scan = match options.format {
        Format::Text => text(&mut log, options, base.as_ref(), out),
        Format::Json => json(&mut log, options, base.as_ref(), out),
        Format::Csv => csv(&mut log, options, base.as_ref(), out),
    }?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let thread = name.trim_end_matches(EXTENSION).trim_end_matches('.');
    let merged_counts = path.parent().map_or_else(|| MergedCounts::read(Path::new(".")), MergedCounts::read);
    let truncation = merged_counts.missing_tail(thread, log.status(), scan.total, scan.sums);
    let file = path.display();
    match (scan.damage, truncation, options.order) {
        (Some(damage), ..) => Err(damage.into()),
        (None, Some(what), _) => bail!("{file}: {what}"),
        _ if is_other => {
            bail!("{file}: belongs to another run than the run.json next to it: move it out of that folder")
        }
        (.., Some(order)) if scan.matching == 0 => Err(no_such_order(path, order)),
        _ => Ok(()),
    }
}

fn text(
    log: &mut LogReader,
    options: &Options,
    base: Option<&LogTimebase>,
    out: &mut impl Write,
) -> io::Result<LogScan> {
    let (header, status) = (*log.header(), log.status().clone());
    let name = base.and_then(|base| base.threads.get(usize::try_from(header.index).ok()?).cloned());
    writeln!(out, "{}", log.file())?;
    writeln!(
        out,
        "  thread {}{}, room for {} records, created by pid {}",
        header.index,
        name.map_or_else(String::new, |name| format!(" ({name})")),
        count(header.capacity),
        header.creator_pid
    )?;
    let core = status.core().map_or_else(|| "not pinned".into(), |core| format!("core {core}"));
    writeln!(out, "  {}, pid {}, {core}", status.state().name(), status.get(StatusField::Pid))?;
    let error = status.error();
    if !error.is_empty() {
        writeln!(out, "  error: {error}")?;
    }
    for (name, field) in FIELDS.iter().filter(|(_, field)| status.get(*field) != 0) {
        writeln!(out, "  {name:22} {:>20}", count(status.get(*field)))?;
    }
    for agent in log.counters().announced() {
        writeln!(out, "  {}", agent.role())?;
        for (label, value) in agent.labeled().filter(|(_, value)| *value != 0) {
            writeln!(out, "    {:20} {:>20} {}", label.name, count(value), label.unit)?;
        }
    }
    writeln!(out)?;
    writeln!(out, "{:>12}  {:>16}  {:9}  {:16}  meaning", "record", "seconds", "point", "order")?;
    let mut next = 0;
    let by_default = if options.order.is_some() { u64::MAX } else { DEFAULT_RECORDS };
    let scan = scan(log, options, by_default, |number, record| {
        if options.order.is_none() && number != next {
            writeln!(out, "{:>12}", "…")?;
        }
        next = number + 1;
        let StampRow { point, order, value, seconds, .. } = stamp_row(number, record, base);
        let when = match (seconds, record.point) {
            (_, point) if !point.is_time() => String::new(),
            (Some(seconds), _) => format!("{seconds:.9}"),
            (None, _) => format!("{value} ticks"),
        };
        let reason =
            if record.point == Point::Rejected { format!(", reason {value}") } else { String::new() };
        let meaning = record.point.meaning();
        print_lines(out, [format!("{number:>12}  {when:>16}  {point:9}  {order:16}  {meaning}{reason}")])
    })?;
    match options.order {
        None if scan.matching > scan.printed => {
            writeln!(
                out,
                "{} of {} records, more with --head N and --tail N",
                count(scan.printed),
                count(scan.total)
            )?;
        }
        None => writeln!(out, "{}", counted(scan.total, "record"))?,
        Some(order) => {
            writeln!(out, "{} of {} records are of order {order}", scan.matching, count(scan.total))?
        }
    }
    Ok(scan)
}

/// Writes one JSON object record by record, so that a log of any size needs constant memory.
fn json(
    log: &mut LogReader,
    options: &Options,
    base: Option<&LogTimebase>,
    out: &mut impl Write,
) -> io::Result<LogScan> {
    let status = log.status().clone();
    let Header { bytes, capacity, creator_pid, run, index, .. } = *log.header();
    let words: serde_json::Map<_, _> =
        FIELDS.iter().map(|(name, field)| ((*name).to_owned(), status.get(*field).into())).collect();
    let agents = log.counters().announced().map(|agent| {
        let counters = agent.labeled().map(|(label, value)| (label.name.to_owned(), value.into()));
        let counters = counters.collect::<serde_json::Map<String, serde_json::Value>>();
        serde_json::json!({ "role": agent.role().to_string(), "counters": counters })
    });
    let agents: Vec<serde_json::Value> = agents.collect();
    let front = serde_json::json!({
        "file": log.file(),
        "thread": base.and_then(|base| base.threads.get(usize::try_from(index).ok()?)),
        "header": {
            "bytes": bytes, "capacity": capacity, "creator_pid": creator_pid,
            "run_hash": format!("{run:016x}"), "index": index,
        },
        "state": status.state().name(),
        "pid": status.get(StatusField::Pid),
        "core": status.core(),
        "error": status.error(),
        "status": words,
        "agents": agents,
    });
    // The object without its closing brace: records, total and damage follow.
    let front = front.to_string();
    write!(out, "{},\"records\":[", front.strip_suffix('}').unwrap_or(&front))?;
    let mut first = true;
    let scan = scan(log, options, u64::MAX, |number, record| {
        write!(out, "{}", if std::mem::take(&mut first) { "\n" } else { ",\n" })?;
        Ok(serde_json::to_writer(&mut *out, &stamp_row(number, record, base))?)
    })?;
    let damage = serde_json::to_string(&scan.damage.as_ref().map(ToString::to_string))?;
    writeln!(out, "\n],\"total\":{},\"damage\":{damage}}}", scan.total)?;
    Ok(scan)
}

fn csv(
    log: &mut LogReader,
    options: &Options,
    base: Option<&LogTimebase>,
    out: &mut impl Write,
) -> io::Result<LogScan> {
    let mut writer = csv::Writer::from_writer(out);
    let scan = scan(log, options, u64::MAX, |number, record| {
        writer.serialize(stamp_row(number, record, base)).map_err(crate::report::export::io_error)
    })?;
    writer.flush()?;
    Ok(scan)
}

fn stamp_row(number: u64, record: Record, base: Option<&LogTimebase>) -> StampRow {
    StampRow {
        number,
        point: record.point.name(),
        order: subject(&record),
        value: record.value,
        seconds: base.filter(|_| record.point.is_time()).map(|base| base.seconds(record.value)),
    }
}

/// Returns the subject of a record: an order, the end of a link, a gap or a top of book.
fn subject(record: &Record) -> String {
    if let Some(TopOfBookWritten { venue, instrument, version, .. }) = TopOfBookWritten::from_record(record) {
        return format!("venue {venue} instrument {instrument} version {version}");
    }
    match (Gap::from_record(record), LinkEnd::from_id(record.id)) {
        (Some(gap), _) => gap.to_string(),
        (None, Some(end)) if record.point == Point::Checksum => end.to_string(),
        _ => record.id.to_string(),
    }
}

pub(super) struct LogScan {
    pub total: u64,
    /// Number of records that match the requested order, or of all records without one.
    pub matching: u64,
    pub printed: u64,
    pub sums: u64,
    pub damage: Option<LogError>,
}

/// Reads a whole log and passes on what the options request: the first `head` matching records
/// (`default_head` without head and tail), then the last `tail` of the remaining ones.
fn scan(
    log: &mut LogReader,
    options: &Options,
    default_head: u64,
    mut print: impl FnMut(u64, Record) -> io::Result<()>,
) -> io::Result<LogScan> {
    let tail = options.tail.unwrap_or(0);
    let head = options.head.unwrap_or(if options.tail.is_some() { 0 } else { default_head });
    let is_wanted =
        |record: &Record| options.order.is_none_or(|order| order == record.id && record.point.is_of_order());
    let mut last = VecDeque::new();
    let mut scan = LogScan { total: 0, matching: 0, printed: 0, sums: 0, damage: None };
    loop {
        let block = match log.next_block() {
            Ok(Some(block)) => block,
            Ok(None) => break,
            Err(damage) => {
                scan.damage = Some(damage);
                break;
            }
        };
        for (number, record) in (block.first..).zip(block.records()) {
            scan.total += 1;
            scan.sums += u64::from(record.point == Point::Checksum);
            if !is_wanted(&record) {
                continue;
            }
            scan.matching += 1;
            if scan.matching <= head {
                scan.printed += 1;
                print(number, record)?;
            } else if tail > 0 {
                if last.len() as u64 >= tail {
                    last.pop_front();
                }
                last.push_back((number, record));
            }
        }
    }
    for (number, record) in last {
        scan.printed += 1;
        print(number, record)?;
    }
    Ok(scan)
}

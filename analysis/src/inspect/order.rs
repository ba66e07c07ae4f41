//! Prints one order: each of its stamps in all logs of a run, in path order.

use super::time::{LogTimebase, signed};
use super::{Format, check_no_problems, no_such_order, print_csv, print_json, print_lines};
use crate::document::Document;
use crate::logfile::LogReader;
use crate::merge::{OrderEnd, bit, folder, order_name};
use crate::record::RunRecord;
use crate::report::grid::wrap_indented;
use crate::summary::Measure;
use crate::table::Grid;
use protocol::flow::{ExchangeStage, Stage};
use protocol::plan::Role;
use protocol::stamps::{Point, Record, TopOfBookWritten};
use protocol::status::StatusField;
use protocol::wire::{OrderId, Report};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Points in the order of an order's path.
const PATH: [Point; 19] = [
    Point::TopOfBook,
    Point::Due,
    Point::StrategySend,
    Point::OrchRecvSubmit,
    Point::Rejected,
    Point::OrchDispatch,
    Point::GatewayRecv,
    Point::Release,
    Point::Instrument,
    Point::ExchangeRecv,
    Point::Trigger,
    Point::ExchangeDone,
    Point::Cancelled,
    Point::GatewayDone,
    Point::FillQuantity,
    Point::FillPrice,
    Point::OrchRecvCompletion,
    Point::OrchReturn,
    Point::StrategyRecv,
];

/// A printed stamp of the order.
#[derive(Serialize)]
struct PathStep {
    point: &'static str,
    meaning: &'static str,
    /// Number of the report that the stamp belongs to, from 0; 0 for stamps before the first
    /// report.
    report: u8,
    thread: String,
    pid: u64,
    /// Number of the record in the thread's log.
    record: u64,
    /// Ticks, or the code of the reason for a rejection.
    value: u64,
    /// Seconds since the start of the schedule.
    seconds: Option<f64>,
    since_due_ns: Option<f64>,
    since_t1_ns: Option<f64>,
    /// Stage that ends at this stamp, if its first stamp exists.
    stage: Option<&'static str>,
    stage_ns: Option<f64>,
}

/// A stamp found in a log.
struct FoundStamp {
    point: Point,
    /// Number of the report, as in [`PathStep`].
    report: u8,
    detail: u8,
    value: u64,
    record: u64,
    thread: String,
    pid: u64,
}

/// The printed path of an order.
#[derive(Serialize)]
struct OrderPath<'a> {
    run: &'a str,
    order: String,
    became: &'a str,
    round_trip_ns: Option<f64>,
    rt_venue_ns: Option<f64>,
    steps: &'a [PathStep],
    problems: &'a [String],
}

/// Prints the path of one order: each of its stamps in all logs of a run.
pub(super) fn inspect(
    folder: &Path,
    order: OrderId,
    format: Format,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let record = RunRecord::read(folder)?;
    let base = LogTimebase::new(&record);
    let mut problems = Vec::new();
    let mut found = Vec::new();
    let is_of_order = |record: &Record| record.id == order && record.point.is_of_order();
    for thread in 0..record.plan.threads.len() {
        if let Err(problem) = search(folder, &record, thread, is_of_order, &mut found) {
            problems.push(problem);
        }
    }
    if let Some(touch) = triggered_by(&found)
        && let Err(problem) = search_touch(folder, &record, touch, &mut found)
    {
        problems.push(format!("{}: {problem}", order_name(order)));
    }
    let rank = |point: Point| PATH.iter().position(|other| *other == point);
    found.sort_by_key(|found| (found.report, rank(found.point)));
    let is_same = |pair: &&[FoundStamp]| (pair[0].point, pair[0].report) == (pair[1].point, pair[1].report);
    for pair in found.windows(2).filter(is_same) {
        problems.push(format!(
            "{}: {} twice",
            order_name(order),
            point_label(pair[0].point.name(), pair[0].report)
        ));
    }
    let steps = path_steps(&found, &base);
    let at = |point: Point| found.iter().find(|found| found.point == point).map(|found| found.value);
    let between = |from, to| Some(base.between_ns(at(from)?, at(to)?));
    let points = found.iter().fold(0, |points, found| points | bit(found.point));
    let round_trip = between(Point::StrategySend, Point::StrategyRecv);
    let venue = between(Point::GatewayRecv, Point::GatewayDone);
    let path = OrderPath {
        run: &record.plan.run,
        order: order.to_string(),
        became: OrderEnd::from_points(points, has_died(&record, order)).name(),
        round_trip_ns: round_trip,
        rt_venue_ns: round_trip.zip(venue).map(|(round_trip, venue)| round_trip - venue),
        steps: &steps,
        problems: &problems,
    };
    match format {
        _ if steps.is_empty() && problems.is_empty() => {
            return Err(no_such_order(folder, order));
        }
        Format::Text => text(&path, out)?,
        Format::Json => print_json(out, &path)?,
        Format::Csv => print_csv(out, &steps)?,
    }
    check_no_problems(folder, &problems)
}

/// Returns `true` if the order's incarnation died during the run.
fn has_died(record: &RunRecord, order: OrderId) -> bool {
    let its = (order.strategy(), order.epoch());
    record.incidents.iter().any(|incident| (incident.strategy, incident.epoch) == its)
}

/// Returns the number of the report that a record belongs to.
fn report_of(record: &Record) -> u8 {
    match record.point {
        Point::GatewayDone => Report::parse_detail(record.detail).0,
        Point::OrchRecvCompletion
        | Point::OrchReturn
        | Point::StrategyRecv
        | Point::Cancelled
        | Point::ExchangeDone
        | Point::FillQuantity
        | Point::FillPrice => record.detail,
        _ => 0,
    }
}

/// Formats a point's name, with the report's number for further reports.
fn point_label(point: &str, report: u8) -> String {
    if report == 0 { point.into() } else { format!("{point} ({report})") }
}

/// Adds the records of one log that `is_wanted` selects. Returns the problem of a log that cannot
/// be read to its end.
fn search(
    folder: &Path,
    record: &RunRecord,
    thread: usize,
    is_wanted: impl Fn(&Record) -> bool,
    found: &mut Vec<FoundStamp>,
) -> Result<(), String> {
    let mut log: LogReader = folder::open(folder, &record.plan, thread).map_err(|error| error.to_string())?;
    let name = record.plan.threads.get(thread).map_or("", |thread| thread.name.as_str());
    let pid = log.status().get(StatusField::Pid);
    while let Some(block) = log.next_block().map_err(|error| error.to_string())? {
        let counted = (block.first..).zip(block.records()).filter(|(_, record)| is_wanted(record));
        found.extend(counted.map(|(number, record)| FoundStamp {
            point: record.point,
            report: report_of(&record),
            detail: record.detail,
            value: record.value,
            record: number,
            thread: name.into(),
            pid,
        }));
    }
    Ok(())
}

/// Returns the top-of-book version that triggered the order according to its strategy. The time of
/// the write is not known yet.
fn triggered_by(found: &[FoundStamp]) -> Option<TopOfBookWritten> {
    let value = |point: Point| found.iter().find(|found| found.point == point).map(|found| found.value);
    let venue = found.iter().find(|found| found.point == Point::GatewayRecv)?.detail.into();
    let instrument = value(Point::Instrument).unwrap_or(0) as u16;
    Some(TopOfBookWritten { venue, instrument, version: value(Point::Trigger)?, ticks: 0 })
}

/// Adds the time of that write from the log of the exchange. Returns a problem if the version was
/// never written.
fn search_touch(
    folder: &Path,
    record: &RunRecord,
    touch: TopOfBookWritten,
    found: &mut Vec<FoundStamp>,
) -> Result<(), String> {
    let never = || format!("triggered by version {} of its touch, which was never written", touch.version);
    let thread = record.plan.thread_of(Role::Exchange(touch.venue)).ok_or_else(never)?;
    let is_it = |record: &Record| {
        let written = TopOfBookWritten::from_record(record);
        written.is_some_and(|written| TopOfBookWritten { ticks: 0, ..written } == touch)
    };
    let before = found.len();
    search(folder, record, thread, is_it, found)?;
    if found.len() == before { Err(never()) } else { Ok(()) }
}

fn path_steps(found: &[FoundStamp], base: &LogTimebase) -> Vec<PathStep> {
    let at = |point: Point| found.iter().find(|found| found.point == point).map(|found| found.value);
    let stage_of = |end: &FoundStamp| {
        let part = |end: Point| ExchangeStage::ALL.into_iter().find(|part| part.info().to == end);
        if end.point == Point::StrategySend {
            return Some((Measure::TickToTrade.name(), at(Point::TopOfBook)?));
        }
        let stage = match Stage::ending_with(end.point) {
            Some(stage) => stage.info(),
            None => part(end.point)?.info(),
        };
        // Stages of a further report begin with its own stamps, those of the venue with the stamps
        // of the order.
        let is_of_venue = matches!(end.point, Point::GatewayDone | Point::ExchangeDone);
        let report = if is_of_venue { 0 } else { end.report };
        let begin = found.iter().find(|found| (found.point, found.report) == (stage.from, report))?;
        Some((stage.name, begin.value))
    };
    let step = |found: &FoundStamp| {
        let is_time = found.point.is_time();
        let since =
            |from: Option<u64>| from.filter(|_| is_time).map(|from| base.between_ns(from, found.value));
        let stage = stage_of(found);
        PathStep {
            point: found.point.name(),
            meaning: found.point.meaning(),
            report: found.report,
            thread: found.thread.clone(),
            pid: found.pid,
            record: found.record,
            value: found.value,
            seconds: is_time.then(|| base.seconds(found.value)),
            since_due_ns: since(at(Point::Due)),
            since_t1_ns: since(at(Point::StrategySend)),
            stage: stage.map(|(name, _)| name),
            stage_ns: stage.map(|(_, from)| base.between_ns(from, found.value)),
        }
    };
    found.iter().map(step).collect()
}

fn text(path: &OrderPath, out: &mut impl Write) -> io::Result<()> {
    let mut head = format!("order {} of run {}: {}", path.order, path.run, path.became);
    if let Some(round_trip) = path.round_trip_ns {
        head += &format!(", round trip {}", signed(round_trip));
    }
    if let Some(rt_venue) = path.rt_venue_ns {
        head += &format!(", without the venue {}", signed(rt_venue));
    }
    let sent = path.steps.iter().find(|step| step.point == Point::StrategySend.name());
    if let Some(late) = sent.and_then(|sent| sent.since_due_ns) {
        head += &format!("; sent {} after it was due", signed(late));
    }
    writeln!(out, "{}\n", wrap_indented(&head, "  "))?;
    let stage = |step: &PathStep| match step.point == Point::Rejected.name() {
        true => format!("reason {}", step.value),
        false => step.stage.unwrap_or("").into(),
    };
    let grid = Grid::from_rows(
        "path",
        "",
        3,
        &[
            ("point", &|step: &PathStep| point_label(step.point, step.report)),
            ("thread", &|step| step.thread.clone()),
            ("stage", &stage),
            ("took", &|step| step.stage_ns.map_or_else(String::new, signed)),
            ("since t1", &|step| step.since_t1_ns.map_or_else(|| "–".into(), signed)),
        ],
        path.steps,
    );
    write!(out, "{}", grid.terminal(false))?;
    let mut pids: Vec<String> =
        path.steps.iter().map(|step| format!("{} {}", step.thread, step.pid)).collect();
    pids.sort();
    pids.dedup();
    if !pids.is_empty() {
        writeln!(out, "\n{}", wrap_indented(&format!("process ids: {}", pids.join(", ")), "  "))?;
    }
    if !path.problems.is_empty() {
        writeln!(out)?;
    }
    print_lines(out, path.problems.iter().map(|problem| format!("problem: {problem}")))
}

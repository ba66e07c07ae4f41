//! Prints one order: each of its stamps in all logs of a run, in path order.

use super::time::{LogTimebase, signed};
use super::{Format, check_no_problems, no_such_order, print_json, print_lines};
use crate::report::export::write_csv;
use crate::report::grid::wrap_indented;
use crate::summary::Measure;
use crate::table::Grid;
use merge::{OrderEnd, bit, folder, order_name};
use protocol::flow::{ExchangeStage, Stage};
use protocol::index::{GatewayIndex, VenueIndex};
use protocol::plan::{Plan, Role};
use protocol::stamps::{Point, Record, TopOfBookWritten};
use protocol::status::StatusField;
use protocol::wire::{OrderId, Report};
use record::document::Document;
use record::run::{Incident, RunRecord};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

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

#[derive(Serialize)]
struct PathStep {
    #[serde(skip)]
    stamped: Point,
    #[serde(skip)]
    detail: u8,
    point: &'static str,
    meaning: &'static str,
    /// Number of the report that the stamp belongs to, from 0; 0 for stamps before the first
    /// report.
    report: u8,
    thread: String,
    pid: u64,
    record: u64,
    /// Ticks, or the code of the reason for a rejection.
    value: u64,
    seconds: Option<f64>,
    since_due_ns: Option<f64>,
    /// Time since t1, the strategy's send ([`Point::StrategySend`]).
    since_t1_ns: Option<f64>,
    /// Stage that ends at this stamp, if its first stamp exists.
    stage: Option<&'static str>,
    stage_ns: Option<f64>,
}

#[derive(Serialize)]
struct OrderPath<'a> {
    run: &'a str,
    order: String,
    /// Isolation level of the order's strategy, in a run that mixes levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
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
    let mut steps = Vec::new();
    let is_of_order = |record: &Record| record.id == order && record.point.is_of_order();
    for thread in 0..record.plan.threads.len() {
        if let Err(problem) = search(folder, &record.plan, thread, is_of_order, &mut steps) {
            problems.push(problem);
        }
    }
    if let Some(trigger) = triggered_by(&record.plan, &steps)
        && let Err(problem) = search_trigger(folder, &record.plan, trigger, &mut steps)
    {
        problems.push(format!("{}: {problem}", order_name(order)));
    }
    let rank = |point: Point| PATH.iter().position(|other| *other == point);
    steps.sort_by_key(|step| (step.report, rank(step.stamped)));
    let is_same = |pair: &&[PathStep]| (pair[0].point, pair[0].report) == (pair[1].point, pair[1].report);
    for pair in steps.windows(2).filter(is_same) {
        let point = point_label(pair[0].point, pair[0].report);
        problems.push(format!("{}: {point} twice", order_name(order)));
    }
    add_times(&mut steps, &base);
    let at = |point: Point| value_at(&steps, point);
    let elapsed = |from, to| Some(base.between_ns(at(from)?, at(to)?));
    let points = steps.iter().fold(0, |points, step| points | bit(step.stamped));
    let round_trip = elapsed(Point::StrategySend, Point::StrategyRecv);
    let venue = elapsed(Point::GatewayRecv, Point::GatewayDone);
    let is_its_death =
        |incident: &Incident| (incident.strategy, incident.epoch) == (order.strategy(), order.epoch());
    let level = record.plan.isolation.level_of(order.strategy());
    let path = OrderPath {
        run: &record.plan.run,
        order: order.to_string(),
        level: record.plan.isolation.only().is_none().then(|| level.to_string()),
        became: OrderEnd::from_points(points, record.incidents.iter().any(is_its_death)).name(),
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
        Format::Csv => write_csv(out, &steps)?,
    }
    check_no_problems(folder, &problems)
}

fn report_of(record: &Record) -> u8 {
    match record.point {
        Point::GatewayDone => Report::parse_stamp_detail(record.detail).0,
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
    plan: &Plan,
    thread: usize,
    is_wanted: impl Fn(&Record) -> bool,
    path_steps: &mut Vec<PathStep>,
) -> Result<(), String> {
    let mut log = folder::open(folder, plan, thread).map_err(|error| error.to_string())?;
    let pid = log.status().get(StatusField::Pid);
    while let Some(block) = log.next_block().map_err(|error| error.to_string())? {
        let counted = (block.first..).zip(block.records()).filter(|(_, record)| is_wanted(record));
        path_steps.extend(counted.map(|(number, record)| PathStep {
            stamped: record.point,
            detail: record.detail,
            point: record.point.name(),
            meaning: record.point.meaning(),
            report: report_of(&record),
            value: record.value,
            record: number,
            seconds: None,
            since_due_ns: None,
            since_t1_ns: None,
            stage: None,
            stage_ns: None,
            thread: plan.threads[thread].name.clone(),
            pid,
        }));
    }
    Ok(())
}

/// Returns the top-of-book version that triggered the order according to its strategy. The time of
/// the write is not known yet.
fn triggered_by(plan: &Plan, path_steps: &[PathStep]) -> Option<TopOfBookWritten> {
    let gateway = path_steps.iter().find(|step| step.stamped == Point::GatewayRecv)?.detail;
    let venue = plan.trading().venue_of(GatewayIndex(gateway.into()));
    let instrument = value_at(path_steps, Point::Instrument).unwrap_or(0) as u16;
    let version = value_at(path_steps, Point::Trigger)?;
    Some(TopOfBookWritten { venue: venue.0, instrument, version, ticks: 0 })
}

fn value_at(steps: &[PathStep], point: Point) -> Option<u64> {
    steps.iter().find(|step| step.stamped == point).map(|step| step.value)
}

/// Adds the exchange's write of the top-of-book version that triggered the order, with its time.
/// Returns a problem if the version was never written.
fn search_trigger(
    folder: &Path,
    plan: &Plan,
    trigger: TopOfBookWritten,
    path_steps: &mut Vec<PathStep>,
) -> Result<(), String> {
    let never_written =
        || format!("triggered by version {} of its touch, which was never written", trigger.version);
    let thread = plan.thread_of(Role::Exchange(VenueIndex(trigger.venue))).ok_or_else(never_written)?;
    let is_trigger = |record: &Record| {
        let written = TopOfBookWritten::from_record(record);
        written.is_some_and(|written| TopOfBookWritten { ticks: 0, ..written } == trigger)
    };
    let before = path_steps.len();
    search(folder, plan, thread, is_trigger, path_steps)?;
    if path_steps.len() == before { Err(never_written()) } else { Ok(()) }
}

/// Adds to each stamp its times and the stage that ends at it.
fn add_times(steps: &mut [PathStep], base: &LogTimebase) {
    let stamps: Vec<(Point, u8, u64)> =
        steps.iter().map(|step| (step.stamped, step.report, step.value)).collect();
    let [due, sent, touch] =
        [Point::Due, Point::StrategySend, Point::TopOfBook].map(|point| value_at(steps, point));
    let stage_of = |end: &PathStep| {
        let part = |end: Point| ExchangeStage::ALL.into_iter().find(|part| part.info().to == end);
        if end.stamped == Point::StrategySend {
            return Some((Measure::TickToTrade.name(), touch?));
        }
        let stage = match Stage::ending_with(end.stamped) {
            Some(stage) => stage.info(),
            None => part(end.stamped)?.info(),
        };
        // Stages of a further report begin with its own stamps, those of the venue with the stamps
        // of the order.
        let is_of_venue = matches!(end.stamped, Point::GatewayDone | Point::ExchangeDone);
        let report = if is_of_venue { 0 } else { end.report };
        let (.., begin) = stamps.iter().find(|stamp| (stamp.0, stamp.1) == (stage.from, report))?;
        Some((stage.name, *begin))
    };
    for step in steps.iter_mut().filter(|step| step.stamped.is_time()) {
        let value = step.value;
        let elapsed_since = |from: u64| base.between_ns(from, value);
        step.seconds = Some(base.seconds(step.value));
        (step.since_due_ns, step.since_t1_ns) = (due.map(elapsed_since), sent.map(elapsed_since));
    }
    for step in steps {
        let stage = stage_of(step);
        step.stage = stage.map(|(name, _)| name);
        step.stage_ns = stage.map(|(_, from)| base.between_ns(from, step.value));
    }
}

fn text(path: &OrderPath, out: &mut impl Write) -> io::Result<()> {
    let level = path.level.as_ref().map_or_else(String::new, |level| format!(" ({level})"));
    let mut head = format!("order {}{level} of run {}: {}", path.order, path.run, path.became);
    if let Some(round_trip) = path.round_trip_ns {
        head += &format!(", round trip {}", signed(round_trip));
    }
    if let Some(without_venue) = path.rt_venue_ns {
        head += &format!(", without the venue {}", signed(without_venue));
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

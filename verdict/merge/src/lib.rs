//! The merge: joins all stamp logs of a run by order, exactly and in linear time, checks them, and
//! measures figures, causes of the tail and the time line.
//!
//! Nothing is sampled or sorted. A stamp costs one indexed store, an order 88 bytes. Violations (a
//! duplicate stamp, a gap, a report out of order, time going back) are counted and named. `check`
//! describes which stamps orders of dead strategies need; all other orders need all.

#![forbid(unsafe_code)]

mod accounts;
pub mod cause;
mod check;
mod context;
mod counters;
pub mod crossover;
mod current_log;
mod deaths;
mod epochs;
mod exchange;
pub mod figures;
pub mod folder;
mod further_reports;
mod hand_offs;
pub mod hlog;
mod join;
pub mod leave_one_out;
mod links;
mod market;
mod orders;
pub mod percentile_breakdown;
mod radix_select;
mod report_check;
mod row;
mod switches;
mod table;
pub mod tail;
mod thread_log;
pub mod timeline;
mod violation;

pub use accounts::{Account, Position};
pub use epochs::Epochs;
pub use folder::LogStore;
pub use further_reports::FurtherReport;
pub use market::Trigger;
pub use orders::{OrderCounts, OrderEnd, OrderLosses, StampSpan};
use protocol::index::{GatewayIndex, StrategyIndex};
pub use row::{ExchangeStamps, OrderRow, bit};
pub use switches::KillActivation;
pub use thread_log::ThreadLog;
pub use violation::{Violation, ViolationKind, order_name};

use check::CheckTotals;
use context::CheckContext;
use deaths::Deaths;
use join::Join;
use protocol::labels::FULL;
use protocol::plan::{Fault, FaultTarget, Isolation, Plan, PlanError, Role};
use protocol::reject::Reject;
use protocol::stamps::{Point, RECORD_BYTES};
use protocol::status::StatusField;
use protocol::wire::OrderId;
use record::document::Document;
use record::logfile::{LogError, LogFault, RECORDS_AT};
use record::numbers::counted;
use record::run::{RunOutcome, RunRecord};
use table::PartitionBounds;
use thiserror::Error;
use violation::{Findings, Violations};

/// An error that makes it impossible to merge a run's logs. Faults of single orders are
/// [`Violation`]s.
#[derive(Debug, Error)]
pub enum MergeError {
    /// A log is missing, truncated or overwritten.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The record of the run holds an impossible plan.
    #[error("{file}: {0}", file = RunRecord::FILE)]
    Plan(#[from] PlanError),
    /// Not enough memory for the table of orders.
    #[error("no memory for {bytes} more bytes of the table of orders: merge on a larger machine")]
    Memory {
        /// Number of bytes that were requested.
        bytes: u64,
    },
}

/// All orders of a run with their stamps, joined from its logs, and the violations found.
#[derive(Debug)]
pub struct MergedRun {
    /// Counts of orders by outcome.
    pub orders: OrderCounts,
    /// First and last stamps of the run.
    pub span: StampSpan,
    /// Violations by kind; empty in a valid run.
    pub violations: Vec<Violation>,
    /// Notes on checks that were impossible and on excluded data.
    pub notes: Vec<String>,
    /// Facts about each thread's log, in the order of the plan.
    pub threads: Vec<ThreadLog>,
    /// Number of records in all logs.
    pub records: u64,
    /// Outcomes of the orders of each dead incarnation, in the order of the record's incidents.
    pub losses: Vec<OrderLosses>,
    /// Orders lost by incarnations that survived; in a complete run each is a violation.
    pub lost_of_survivors: u64,
    /// Final positions of each strategy, by the logged fills.
    pub positions: Vec<Position>,
    /// Kill switches that were turned on.
    pub kills: Vec<KillActivation>,
    /// Refused orders by the code of the reason, without zero counts.
    pub rejections: Vec<(u8, u64)>,
    /// Whether any venue of the plan is an exchange.
    pub has_exchange: bool,
    /// Number of top-of-book versions that exchanges wrote to their boards.
    pub touches_written: u64,
    /// Tick at which the warm-up ends; 0 without a window.
    warm_up_end: u64,
    /// The epochs of a run whose levels take turns; `None` for other runs.
    pub epochs: Option<Epochs>,
    /// Strategies that disturb on request, whose own orders tell nothing about their neighbors.
    disturbing: Vec<StrategyIndex>,
    touches: market::TouchVersions,
    table: table::OrderTable,
    chains: further_reports::FurtherReports,
}

/// The first share of the schedule's window, 0 to 1, in which orders are warm-up and in no
/// percentile.
pub const WARM_UP: f64 = 0.1;

impl MergedRun {
    /// Iterates over the run's merged table in blocks of rows, each with the id of its first row.
    /// The order is that of [`MergedRun::orders`].
    pub fn blocks(&self) -> impl Iterator<Item = (OrderId, &[OrderRow])> {
        self.table.blocks()
    }

    /// Iterates over the run's orders that have a stamp, by strategy and sequence number, each with
    /// its stamps.
    pub fn orders(&self) -> impl Iterator<Item = (OrderId, &OrderRow)> {
        self.table.rows().filter(|(_, row)| row.points() != 0)
    }

    /// Iterates over the orders of one strategy with their stamps.
    pub fn orders_of(&self, strategy: StrategyIndex) -> impl Iterator<Item = (OrderId, &OrderRow)> {
        self.table.rows_of(strategy).filter(|(_, row)| row.points() != 0)
    }

    /// Iterates over all reports but each order's first, with the order's id and the report's
    /// number.
    pub fn further_reports(&self) -> impl Iterator<Item = (OrderId, u8, &FurtherReport)> {
        self.chains.iter()
    }

    /// Returns the stamps that the exchange took for one order; empty if its venue is not an
    /// exchange.
    pub fn at_exchange(&self, id: OrderId) -> ExchangeStamps {
        self.table.at_exchange(id)
    }

    /// Returns the top-of-book version that an order's strategy names as its trigger, with the time
    /// at which the exchange wrote it. `None` without one.
    pub fn trigger(&self, id: OrderId) -> Option<Trigger> {
        let partition = self.table.partition_of(id.strategy(), id.epoch())?;
        self.touches.trigger(partition, id.sequence())
    }

    /// Iterates over the run's measured orders: those that returned and have every stamp, in order
    /// of time.
    pub fn measured(&self) -> impl Iterator<Item = (OrderId, &OrderRow)> {
        self.table.rows().filter(|(_, row)| row.is_measured())
    }

    /// Returns `true` if an order counts in the percentiles: measured, due after the warm-up, and
    /// of a strategy without a disturbing fault.
    pub fn is_counted(&self, id: OrderId, row: &OrderRow) -> bool {
        self.is_past_warm_up(row) && !self.is_disturbing(id.strategy())
    }

    /// Returns `true` if an order is measured and due neither in the warm-up nor in a washout
    /// (beginning of a crossover epoch).
    pub fn is_past_warm_up(&self, row: &OrderRow) -> bool {
        let is_counted =
            |due| due >= self.warm_up_end && self.epochs.is_none_or(|epochs| !epochs.is_washout(due));
        row.is_measured() && row.at(Point::Due).is_none_or(is_counted)
    }

    /// Returns `true` if the plan gives this strategy a fault that may disturb other strategies
    /// while it trades, such as a storm of forks.
    pub fn is_disturbing(&self, strategy: StrategyIndex) -> bool {
        self.disturbing.contains(&strategy)
    }
}

/// Merges all stamp logs of a run, in a folder or in memory, into one table of orders. The folder
/// is a [`Path`](std::path::Path). `progress` is called about every 65,000 records with the merged
/// and the total number.
///
/// A log that ends within a record is an error, except in a failed run, which gives what it has. A
/// damaged or forged log of a strategy in its own process is not an error: the strategy is in no
/// figure, and a note is added.
pub fn merge(
    logs: &(impl LogStore + ?Sized),
    record: &RunRecord,
    mut progress: impl FnMut(u64, u64),
) -> Result<MergedRun, MergeError> {
    merge_logs(&logs, record, &mut progress)
}

/// Merges the logs. Compiled once, in this crate, for every store.
fn merge_logs(
    logs: &dyn LogStore,
    record: &RunRecord,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<MergedRun, MergeError> {
    let plan = &record.plan;
    plan.validate()?;
    let (sizes, total) = record_counts(logs, plan)?;
    let mut deaths = Deaths::new(record);
    let bounds = partition_bounds(plan, &sizes, &deaths);

    let mut joined = Findings::default();
    let mut notes = Vec::new();
    let mut threads: Vec<Option<ThreadLog>> = vec![None; plan.threads.len()];
    let mut join = Join::new(plan, &mut deaths, bounds, &mut joined);
    let mut done = 0;
    for thread in reading_order(plan) {
        let (log, note) = read_log(logs, record, thread, &mut join, &mut |records| {
            done += records;
            progress(done, total);
        })?;
        notes.extend(note);
        threads[thread] = Some(log);
    }
    let Join {
        mut table,
        mut links,
        further_reports: mut chains,
        mut accounts,
        mut switches,
        mut touches,
        rejections,
        ..
    } = join;
    let is_unknown = |id| table.row(id).is_some_and(|row| row.reason() == Some(Reject::VenueUnknown.code()));
    chains.split_off_engine_reports(is_unknown);
    chains.drop_unpushed(|id| {
        let gateway = table.row(id).and_then(|row| Some(row.pushed()?.0));
        gateway.is_some_and(|gateway| record.plan.validates_venue(GatewayIndex(gateway as u16)))
            || is_unknown(id)
    });
    accounts.finish();
    joined.certain().append(std::mem::take(&mut accounts.found));
    joined.certain().append(std::mem::take(&mut switches.found));
    joined.certain().append(std::mem::take(&mut touches.found));
    let mut threads: Vec<ThreadLog> = threads.into_iter().flatten().collect();

    let (counted, findings) = loop {
        let mut findings = joined.clone();
        let context = CheckContext::new(record, &deaths, &switches, &chains);
        let counted = check::check(&mut table, &context, &mut findings);
        exchange::check(&mut table, &context, &mut findings);
        touches.check(&table, &context, &mut findings);
        counters::check(&context, &threads, &table, &mut findings);
        links.check(&context, &threads, &mut findings);
        chains.check(&table, &context, &mut findings);
        chains.check_engine_reports(&table, &context, &mut findings);
        if context.is_complete {
            accounts.check(&mut findings);
        }
        switches.check(&table, plan.trading(), &mut findings);
        let contradiction_of = |(strategy, found): (StrategyIndex, &Violations)| {
            let is_new =
                plan.isolation.kind_of(strategy) == Isolation::Sandbox && !deaths.is_untrusted(strategy);
            found.first().filter(|_| is_new).map(|first| (strategy, contradiction_note(first, found.total())))
        };
        let contradicting: Vec<(StrategyIndex, String)> =
            findings.accused().filter_map(contradiction_of).collect();
        if contradicting.is_empty() {
            break (counted, findings);
        }
        for (strategy, why) in contradicting {
            deaths.distrust(strategy);
            table.distrust(strategy);
            links.forget(strategy);
            joined.disregard(strategy);
            if let Some(log) =
                plan.thread_of(Role::Strategy(strategy)).and_then(|index| threads.get_mut(index))
            {
                notes.push(doubted_note(&log.name, &why));
                *log = ThreadLog::unproven(std::mem::take(&mut log.name), log.records);
            }
        }
    };
    let CheckTotals { mut orders, mut span, losses, lost_of_survivors } = counted;
    chains.extend_span(&mut span, &table, &deaths);
    orders.scheduled = plan.trading().orders.iter().fold(0, |sum: u64, orders| sum.saturating_add(*orders));
    for (log, thread) in threads.iter().zip(&plan.threads) {
        orders.full = orders.full.saturating_add(log.counters.total(&thread.roles, FULL));
    }
    orders.further_reports = chains.count();
    Ok(MergedRun {
        chains,
        orders,
        span,
        violations: findings.into_sorted(),
        notes,
        threads,
        records: done,
        losses,
        lost_of_survivors,
        positions: accounts.into_positions(),
        kills: switches.kills,
        rejections: (0..).zip(rejections).filter(|(_, count)| *count > 0).collect(),
        has_exchange: plan.trading().books().next().is_some(),
        touches_written: touches.count(),
        warm_up_end: warm_up_end(record),
        epochs: Epochs::from_record(record),
        disturbing: disturbing(&record.plan),
        touches,
        table,
    })
}

fn disturbing(plan: &Plan) -> Vec<StrategyIndex> {
    let of = |fault: &Fault| match fault.target {
        FaultTarget::Strategy(strategy) if fault.kind.is_disturbance() => Some(strategy),
        _ => None,
    };
    plan.faults.iter().filter_map(of).collect()
}

fn warm_up_end(record: &RunRecord) -> u64 {
    let ticks = record.input.window_ns as f64 * WARM_UP / record::run::ns_per_tick(record);
    // Saturates. A run without a window (closed pacing) has no warm-up.
    if ticks > 0.0 { record.clock.start_ticks.saturating_add(ticks as u64) } else { 0 }
}

/// Reads one log. Returns its facts and a note on damage that is not an error. `progress` receives
/// the number of additional records.
fn read_log(
    logs: &dyn LogStore,
    record: &RunRecord,
    thread: usize,
    join: &mut Join,
    progress: &mut dyn FnMut(u64),
) -> Result<(ThreadLog, Option<String>), MergeError> {
    let name = record.plan.threads[thread].name.clone();
    let is_untrusted = join.deaths.is_untrusted_log(&record.plan.threads[thread]);
    join.begin(thread);
    let author = join.source.author;
    let is_cut_by_failure = |error: &LogError| {
        error.fault == LogFault::Cut && matches!(record.outcome, RunOutcome::Failed { .. })
    };
    // Whether a failure of the run explains the damage, and the damage.
    let tolerate = |error: LogError, used: &str| {
        let is_doubtful = is_untrusted || author.is_some();
        match is_cut_by_failure(&error) || (is_doubtful && error.fault != LogFault::Unreadable) {
            true => Ok((is_cut_by_failure(&error), format!("{error}; {used}"))),
            false => Err(error),
        }
    };
    let mut damage = None;
    let mut facts = ThreadLog { is_untrusted: false, ..ThreadLog::unproven(name, 0) };
    match folder::open(logs, &record.plan, thread) {
        Ok(mut log) => {
            loop {
                match log.next_block() {
                    Ok(Some(block)) => {
                        for record in block.records() {
                            join.ingest(record)?;
                        }
                        progress(block.bytes.len() as u64);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        damage = Some(tolerate(error, "its whole records were used")?);
                        break;
                    }
                }
            }
            facts.records = log.records();
            (facts.status, facts.counters) = (log.status().clone(), log.counters().clone());
        }
        Err(error) => damage = Some(tolerate(error, "nothing of it was used")?),
    }
    let source = &mut join.source;
    if is_untrusted {
        let note = untrusted_note(&facts.name, damage.map(|(_, what)| what), source.ignored);
        return Ok((ThreadLog::unproven(facts.name, facts.records), Some(note)));
    }
    // Records that no correct strategy writes: from here on the log is untrusted.
    let forged = match &damage {
        Some((false, what)) => Some(what.clone()),
        _ => source.own_violations.first().map(|first| first.first.clone()).or_else(|| {
            match facts.status.get(StatusField::RecordsDropped) {
                0 => None,
                dropped => Some(format!("{} did not fit its log", counted(dropped, "record"))),
            }
        }),
    };
    if let Some((strategy, why)) = author.zip(forged) {
        join.distrust(strategy);
        let note = doubted_note(&facts.name, &why);
        return Ok((ThreadLog::unproven(facts.name, facts.records), Some(note)));
    }
    (facts.gaps, facts.sleeps) = (std::mem::take(&mut source.gaps), std::mem::take(&mut source.sleeps));
    let backwards = source.backward_steps.first();
    facts.went_back = backwards.map_or(0, |found| found.count);
    let note = backwards
        .map(|found| format!("time goes back {}: first {}", counted(found.count, "time"), found.first));
    Ok((facts, damage.map(|(_, what)| what).or(note)))
}

/// The effect of an untrusted log on the figures.
const NO_PROOF: &str = "prove nothing: its orders are in no figure and count by what the engine stamped";

/// Formats the note on a strategy that misbehaved by the record.
fn untrusted_note(name: &str, damage: Option<String>, ignored: u64) -> String {
    let damage = damage.map_or_else(String::new, |damage| format!("; {damage}"));
    let nonsense = match ignored {
        0 => String::new(),
        ignored => format!("; {ignored} records in it that make no sense were passed over"),
    };
    format!(
        "the log and the counters of {name}, which may have overwritten them, {NO_PROOF}{damage}{nonsense}"
    )
}

/// Formats the note on a strategy whose own log shows that it is invalid.
fn doubted_note(name: &str, why: &str) -> String {
    format!("the log and the counters of {name} are damaged or forged ({why}) and {NO_PROOF}")
}

fn contradiction_note(first: &Violation, total: u64) -> String {
    match total {
        1 => first.first.clone(),
        total => format!("{total} contradictions, first {}", first.first),
    }
}

fn record_counts(logs: &dyn LogStore, plan: &Plan) -> Result<(Vec<u64>, u64), LogError> {
    let records = |bytes: u64| bytes.saturating_sub(RECORDS_AT) / RECORD_BYTES as u64;
    let size = |thread| logs.bytes(plan, thread).map(records);
    let sizes = (0..plan.threads.len()).map(size).collect::<Result<Vec<_>, _>>()?;
    let total = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
    Ok((sizes, total))
}

/// Returns the limits of each strategy's partitions, from the size of its own log and of the
/// orchestrator's. A strategy that hides its stamps hides nothing that the engine stamped.
fn partition_bounds(plan: &Plan, sizes: &[u64], deaths: &Deaths) -> Vec<PartitionBounds> {
    let of = |role| plan.thread_of(role).and_then(|thread| sizes.get(thread)).copied().unwrap_or(0);
    let engine = of(Role::Orchestrator);
    let bounds = |(strategy, planned): (usize, &u64)| {
        let strategy = strategy as u16;
        let records = of(Role::Strategy(StrategyIndex(strategy))).max(engine);
        PartitionBounds::new(
            *planned,
            records,
            deaths.last_epoch(StrategyIndex(strategy)),
            deaths.is_untrusted(StrategyIndex(strategy)),
        )
    };
    plan.trading().orders.iter().enumerate().map(bounds).collect()
}

/// Returns the reading order of the logs: strategies first, the orchestrator's thread last (see
/// [`join`]).
fn reading_order(plan: &Plan) -> Vec<usize> {
    let mut order: Vec<usize> = (0..plan.threads.len()).collect();
    order.sort_by_key(|thread| {
        let roles = &plan.threads[*thread].roles;
        let is_strategy = |role: &Role| matches!(role, Role::Strategy(_));
        if roles.contains(&Role::Orchestrator) { 2 } else { u8::from(!roles.iter().any(is_strategy)) }
    });
    order
}

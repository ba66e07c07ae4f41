//! The merge: all stamp logs of a run joined by order, exact and linear, and checked.
//!
//! Nothing is sampled and nothing is sorted. A stamp costs one indexed store, an order 88 bytes,
//! and what cannot be true of an honest run (a stamp twice, a gap, a report out of turn, time going
//! backwards) is counted and named. Strategies that died in the middle of the run owe what `check`
//! says; the living owe everything.

mod accounts;
mod chain;
mod check;
mod counters;
mod deaths;
mod exchange;
pub(crate) mod folder;
mod gaps;
mod hand_offs;
mod join;
mod links;
mod market;
mod orders;
mod row;
mod source;
mod switches;
mod table;
mod thread_log;
mod violation;

pub use accounts::{Account, Position};
pub use chain::Chained;
pub use folder::{Logs, log_path};
pub use market::Trigger;
pub use orders::{Losses, OrderEnd, Orders, Span};
pub use row::{AtExchange, OrderRow, bit};
pub use switches::Kill;
pub use thread_log::ThreadLog;
pub use violation::{Violation, ViolationKind, name_of};

use crate::document::Document;
use crate::logfile::{LogError, RECORDS_AT};
use crate::record::{RunOutcome, RunRecord};
use check::{Context, Counted};
use deaths::Deaths;
use join::Join;
use protocol::counters::ThreadCounters;
use protocol::labels::FULL;
use protocol::plan::{Plan, PlanError, Role};
use protocol::reject::Reject;
use protocol::stamps::RECORD_BYTES;
use protocol::status::StatusField;
use protocol::wire::OrderId;
use std::path::PathBuf;
use system::scratch::{Column, ColumnStore, Plain};
use table::Bounds;
use thiserror::Error;
use thread_log::nothing;
use violation::{Findings, Violations};

/// A run that cannot be merged at all. What is wrong with single orders is a [`Violation`].
#[derive(Debug, Error)]
pub enum MergeError {
    /// A log is missing, cut or overwritten.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The record holds a plan that no run can have had.
    #[error("{file}: {0}", file = RunRecord::FILE)]
    Plan(#[from] PlanError),
    /// Not enough memory for the table.
    #[error(
        "no memory for {bytes} more bytes of the table of orders: merge on a larger machine, or with --max-memory where the disk has room"
    )]
    Memory {
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// Not enough room for the table on the disk.
    #[error(
        "{folder}: no room on this disk for {bytes} more bytes of the table of orders: free some, or copy the run to where there is",
        folder = .folder.display()
    )]
    Disk {
        /// Bytes that were asked for.
        bytes: u64,
        /// Where the table is.
        folder: PathBuf,
    },
}

impl MergeError {
    /// There is no room for so many bytes more.
    fn no_room(room: &ColumnStore, bytes: u64) -> Self {
        match room.folder() {
            None => Self::Memory { bytes },
            Some(folder) => Self::Disk { bytes, folder: folder.to_owned() },
        }
    }
}

/// A run, joined.
#[derive(Debug)]
pub struct Merged {
    /// Where every order went.
    pub orders: Orders,
    /// The outermost stamps.
    pub span: Span,
    /// What must not have happened, by kind; empty in a valid run.
    pub violations: Vec<Violation>,
    /// What could not be checked or was left out, in words.
    pub notes: Vec<String>,
    /// The logs, in the order of the plan's threads.
    pub threads: Vec<ThreadLog>,
    /// Stamps in all logs.
    pub records: u64,
    /// What became of the orders of each incarnation that died, in the order of the record's
    /// incidents.
    pub losses: Vec<Losses>,
    /// Orders lost by incarnations that lived; in a complete run each is a violation.
    pub lost_of_survivors: u64,
    /// What each strategy holds in the end, by the logged fills.
    pub positions: Vec<Position>,
    /// The kill switches that were turned on.
    pub kills: Vec<Kill>,
    /// Refused orders by the code of the reason; those that there are.
    pub rejections: Vec<(u8, u64)>,
    /// Whether some venue of the plan is an exchange.
    pub has_exchange: bool,
    /// Versions of touches that exchanges wrote to their boards.
    pub touches_written: u64,
    touches: market::Touches,
    table: table::Table,
    chains: chain::Chains,
    room: ColumnStore,
}

impl Merged {
    /// A column of so many zeros where the table is.
    ///
    /// # Errors
    /// There is no room for it.
    pub(crate) fn column<T: Plain>(&self, len: usize) -> Result<Column<T>, MergeError> {
        let mut column = self.room.column();
        let bytes = len.saturating_mul(size_of::<T>()) as u64;
        column.resize(len).map_err(|_| MergeError::no_room(&self.room, bytes))?;
        Ok(column)
    }

    /// How much may be resident, in bytes; `None`: nobody said.
    pub(crate) fn most_resident(&self) -> Option<u64> {
        self.room.max_resident()
    }

    /// Gives back what is resident of the table, where that is too much. To be called now and then
    /// while it is gone through.
    #[inline]
    pub(crate) fn relieve(&self) {
        self.room.release_resident();
    }

    /// The table in blocks of rows, each with the id of its first; in the order of
    /// [`Merged::orders`].
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (OrderId, &[OrderRow])> {
        self.table.blocks()
    }

    /// Every order that has some stamp, by strategy and sequence.
    pub fn orders(&self) -> impl Iterator<Item = (OrderId, &OrderRow)> {
        self.table.rows().filter(|(_, row)| row.points() != 0)
    }

    /// The same of one strategy.
    pub fn orders_of(&self, strategy: u16) -> impl Iterator<Item = (OrderId, &OrderRow)> {
        self.table.rows_of(strategy).filter(|(_, row)| row.points() != 0)
    }

    /// Every report but the first of its order, with the order and the report's number.
    pub fn further_reports(&self) -> impl Iterator<Item = (OrderId, u8, &Chained)> {
        self.chains.iter()
    }

    /// What the exchange of an order's venue stamped of it; empty stamps where the venue is none.
    pub fn at_exchange(&self, id: OrderId) -> AtExchange {
        self.table.at_exchange(id)
    }

    /// What triggered an order, by its own word, and when that was written, by the exchange's;
    /// `None`: nothing.
    pub fn trigger(&self, id: OrderId) -> Option<Trigger> {
        let lane = self.table.lane_of(id.strategy(), id.epoch())?;
        self.touches.trigger(lane, id.sequence())
    }

    /// The orders that count in the figures: returned, with every stamp, in time.
    pub fn measured(&self) -> impl Iterator<Item = (OrderId, &OrderRow)> {
        self.table.rows().filter(|(_, row)| row.is_measured())
    }
}

/// Joins all logs of a run; they are in a folder (a [`Path`](std::path::Path)) or in memory.
/// `progress` hears, about every 65,000 stamps, how many are done of how many.
///
/// A log that is cut inside a record is an error, except in a run that failed: there it gives what
/// it has. A damaged or forged log of a strategy in a process of its own is no error: the strategy
/// is in no figure then, and a note says so.
///
/// # Errors
/// [`MergeError`]: a log cannot be believed, the plan is impossible, or there is not enough memory.
pub fn merge<L: Logs + ?Sized>(
    logs: &L,
    record: &RunRecord,
    progress: impl FnMut(u64, u64),
) -> Result<Merged, MergeError> {
    merge_in(&ColumnStore::memory(), logs, record, progress)
}

/// The same with the table in that room: the same to the last bit, whatever it is.
///
/// # Errors
/// As [`merge`].
pub fn merge_in<L: Logs + ?Sized>(
    room: &ColumnStore,
    logs: &L,
    record: &RunRecord,
    mut progress: impl FnMut(u64, u64),
) -> Result<Merged, MergeError> {
    let plan = &record.plan;
    plan.validate()?;
    let (sizes, total) = sizes(logs, plan)?;
    let mut deaths = Deaths::new(record);
    let bounds = bounds(plan, &sizes, &deaths);

    let mut joined = Findings::default();
    let mut notes = Vec::new();
    let mut threads: Vec<Option<ThreadLog>> = vec![None; plan.threads.len()];
    let mut join = Join::new(plan, &mut deaths, bounds, room, &mut joined);
    let mut done = 0;
    for thread in reading_order(plan) {
        let (log, note) = read(logs, record, thread, &mut join, |records| {
            done += records;
            progress(done, total);
        })?;
        notes.extend(note);
        threads[thread] = Some(log);
    }
    let Join {
        mut table,
        mut links,
        mut chains,
        gaps,
        mut accounts,
        mut switches,
        mut touches,
        rejections,
        ..
    } = join;
    let is_unknown = |id| table.row(id).is_some_and(|row| row.reason() == Some(Reject::VenueUnknown.code()));
    chains.split_off_engine_reports(is_unknown);
    chains.drop_unheard(|id| {
        let gateway = table.row(id).and_then(|row| Some(row.pushed()?.0));
        gateway.is_some_and(|gateway| record.plan.validates_venue(gateway as u16)) || is_unknown(id)
    });
    accounts.end();
    joined.firm.append(accounts.take_found());
    joined.firm.append(std::mem::take(&mut switches.found));
    joined.firm.append(std::mem::take(&mut touches.found));
    let mut threads: Vec<ThreadLog> = threads.into_iter().flatten().collect();

    let (counted, findings) = loop {
        let mut findings = joined.clone();
        let context = Context::new(record, &deaths, &switches, &chains);
        let counted = check::check(&mut table, &context, record.incidents.len(), &mut findings);
        exchange::check(&mut table, &chains, record, &deaths, context.engine_gone(), &mut findings);
        touches.check(&table, record, &deaths, context.engine_gone(), &mut findings);
        counters::check(record, &threads, &deaths, &table, &mut findings);
        links.check(record, &threads, &deaths, &mut findings);
        chains.check(&table, record, &deaths, &switches, &mut findings);
        chains.check_engine_reports(&table, record, &deaths, &mut findings);
        if record.outcome == RunOutcome::Complete {
            accounts.check(&mut findings);
        }
        let row = |id: OrderId| {
            let lane = table.lane_of(id.strategy(), id.epoch())?;
            Some((table.row(id)?, lane.instrument(id.sequence())))
        };
        switches.check(row, plan.trading(), &mut findings);
        let lies = |(strategy, found): (u16, &Violations)| {
            let is_new = deaths.may_lie() && !deaths.is_untrusted(strategy);
            found.first().filter(|_| is_new).map(|first| (strategy, contradiction(first, found.total())))
        };
        let liars: Vec<(u16, String)> = findings.accused().filter_map(lies).collect();
        if liars.is_empty() {
            break (counted, findings);
        }
        for (strategy, why) in liars {
            deaths.distrust(strategy);
            table.excuse(strategy);
            links.forget(strategy);
            joined.disregard(strategy);
            if let Some(log) =
                plan.thread_of(Role::Strategy(strategy)).and_then(|place| threads.get_mut(place))
            {
                notes.push(doubted(&log.name, &why));
                *log = ThreadLog::unproven(std::mem::take(&mut log.name), log.records);
            }
        }
    };
    let Counted { mut orders, mut span, losses, lost_of_survivors } = counted;
    chains.extend(&mut span, &table, &deaths);
    orders.scheduled = plan.trading().orders.iter().fold(0, |sum: u64, orders| sum.saturating_add(*orders));
    for (log, thread) in threads.iter().zip(&plan.threads) {
        orders.full = orders.full.saturating_add(log.counters.total(&thread.roles, FULL));
    }
    for (log, own) in threads.iter_mut().zip(gaps).filter(|(log, _)| !log.is_untrusted) {
        (log.gaps, log.sleeps) = (own.gaps, own.sleeps);
    }
    orders.further_reports = chains.count();
    let violations = findings.into_sorted();
    Ok(Merged {
        chains,
        orders,
        span,
        violations,
        notes,
        threads,
        records: done,
        losses,
        lost_of_survivors,
        positions: accounts.into_positions(),
        kills: switches.into_kills(),
        rejections: (0..).zip(rejections).filter(|(_, count)| *count > 0).collect(),
        has_exchange: plan.trading().books().next().is_some(),
        touches_written: touches.count(),
        touches,
        table,
        room: room.clone(),
    })
}

/// Takes the records of one log; beside what is known about it, a note on what is wrong with it
/// where that is no error. `progress` hears how many more were taken.
fn read<L: Logs + ?Sized>(
    logs: &L,
    record: &RunRecord,
    thread: usize,
    join: &mut Join,
    mut progress: impl FnMut(u64),
) -> Result<(ThreadLog, Option<String>), MergeError> {
    let name = record.plan.threads[thread].name.clone();
    let is_untrusted = join.deaths.is_untrusted_log(&record.plan.threads[thread]);
    let has_failed = matches!(record.outcome, RunOutcome::Failed { .. });
    join.begin(thread);
    let author = join.author();
    let is_cut_by_failure = |error: &LogError| error.is_cut() && has_failed;
    let is_tolerable = |error: &LogError| {
        is_cut_by_failure(error)
            || ((is_untrusted || author.is_some()) && !matches!(error, LogError::Io { .. }))
    };
    let mut damage = None;
    let (mut records, mut status, mut counters) = (0, nothing(), ThreadCounters::default());
    match folder::open(logs, &record.plan, thread) {
        Ok(mut log) => {
            loop {
                match log.next_block() {
                    Ok(Some(block)) => {
                        for record in block.records() {
                            join.take(record)?;
                        }
                        progress(block.len() as u64);
                        join.table.relieve();
                    }
                    Ok(None) => break,
                    Err(error) if is_tolerable(&error) => {
                        damage = Some((
                            is_cut_by_failure(&error),
                            format!("{error}; its whole records were used"),
                        ));
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            (records, status, counters) = (log.records(), log.status().clone(), log.counters().clone());
        }
        Err(error) if is_tolerable(&error) => {
            damage = Some((is_cut_by_failure(&error), format!("{error}; nothing of it was used")));
        }
        Err(error) => return Err(error.into()),
    }
    if is_untrusted {
        let note = untrusted(&name, damage.map(|(_, what)| what), join.ignored());
        return Ok((ThreadLog::unproven(name, records), Some(note)));
    }
    // What no honest strategy leaves in its log: from here on the log proves nothing.
    let forged = match &damage {
        Some((false, what)) => Some(what.clone()),
        _ => join.nonsense().map(|first| first.first.clone()).or_else(|| {
            match status.get(StatusField::RecordsDropped) {
                0 => None,
                dropped if record.plan.spill.is_some() => {
                    Some(format!("{dropped} records were lost: the spiller was behind"))
                }
                dropped => Some(format!("{dropped} records did not fit its log")),
            }
        }),
    };
    if let Some((strategy, why)) = author.zip(forged) {
        join.distrust(strategy);
        let note = doubted(&name, &why);
        return Ok((ThreadLog::unproven(name, records), Some(note)));
    }
    let backwards = join.went_back();
    let note = backwards.map(|found| format!("time goes back {} times: first {}", found.count, found.first));
    let log = ThreadLog {
        name,
        records,
        status,
        counters,
        is_untrusted,
        went_back: backwards.map_or(0, |found| found.count),
        gaps: Vec::new(),
        sleeps: Vec::new(),
    };
    Ok((log, damage.map(|(_, what)| what).or(note)))
}

/// What a log that proves nothing means for the figures.
const NO_PROOF: &str = "prove nothing: its orders are in no figure and count by what the engine stamped";

/// Of a strategy that misbehaved, by the record.
fn untrusted(name: &str, damage: Option<String>, ignored: u64) -> String {
    let damage = damage.map_or_else(String::new, |damage| format!("; {damage}"));
    let nonsense = match ignored {
        0 => String::new(),
        ignored => format!("; {ignored} records in it that make no sense were passed over"),
    };
    format!(
        "the log and the counters of {name}, which may have overwritten them, {NO_PROOF}{damage}{nonsense}"
    )
}

/// Of a strategy whose own log gives it away.
fn doubted(name: &str, why: &str) -> String {
    format!("the log and the counters of {name} are damaged or forged ({why}) and {NO_PROOF}")
}

/// How a strategy's word contradicts the engine's.
fn contradiction(first: &Violation, total: u64) -> String {
    match total {
        1 => first.first.clone(),
        total => format!("{total} contradictions, first {}", first.first),
    }
}

/// How many records each log can hold by its size, and all of them.
fn sizes<L: Logs + ?Sized>(logs: &L, plan: &Plan) -> Result<(Vec<u64>, u64), LogError> {
    let records = |bytes: u64| bytes.saturating_sub(RECORDS_AT) / RECORD_BYTES as u64;
    let size = |thread| logs.bytes(plan, thread).map(records);
    let sizes = (0..plan.threads.len()).map(size).collect::<Result<Vec<_>, _>>()?;
    let total = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
    Ok((sizes, total))
}

/// How far the lanes of each strategy may grow: as far as its own log or the orchestrator's
/// suggests. A strategy that hides what it sent hides nothing of what the engine stamped.
fn bounds(plan: &Plan, sizes: &[u64], deaths: &Deaths) -> Vec<Bounds> {
    let of = |role| plan.thread_of(role).and_then(|thread| sizes.get(thread)).copied().unwrap_or(0);
    let engine = of(Role::Orchestrator);
    let bounds = |(strategy, planned): (usize, &u64)| {
        let strategy = strategy as u16;
        let records = of(Role::Strategy(strategy)).max(engine);
        Bounds::new(*planned, records, deaths.last_epoch(strategy), deaths.is_untrusted(strategy))
    };
    plan.trading().orders.iter().enumerate().map(bounds).collect()
}

/// Strategies first, the orchestrator's thread last: see [`join`].
fn reading_order(plan: &Plan) -> Vec<usize> {
    let mut order: Vec<usize> = (0..plan.threads.len()).collect();
    order.sort_by_key(|thread| {
        let roles = &plan.threads[*thread].roles;
        let is_strategy = |role: &Role| matches!(role, Role::Strategy(_));
        if roles.contains(&Role::Orchestrator) { 2 } else { u8::from(!roles.iter().any(is_strategy)) }
    });
    order
}

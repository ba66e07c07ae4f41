//! The merge: all stamp logs of a run joined by order, exact and linear, and checked.
//!
//! Nothing is sampled and nothing is sorted. A stamp costs one indexed store, an order 88 bytes, and what cannot be
//! true of an honest run (a stamp twice, a gap, a report out of turn, time going backwards) is counted and named.
//! Strategies that died in the middle of the run owe what `check` says; the living owe everything.

mod check;
mod counters;
mod deaths;
pub(crate) mod folder;
mod join;
mod orders;
mod table;
mod violation;

pub use folder::{FolderError, Logs, RUN_FILE, log_path, read_record};
pub use orders::{End, Orders, Span, Toll};
pub use table::{Row, bit};
pub use violation::{Kind, Violation, name_of};

use crate::logfile::{EXTENSION, LogError, RECORDS_AT};
use crate::record::{Outcome, RunRecord};
use check::{Context, Counted};
use deaths::Deaths;
use join::Join;
use protocol::plan::{Plan, PlanError, Role};
use protocol::stamps::RECORD_BYTES;
use protocol::status::{Field, STATUS_WORDS, Status};
use protocol::wire::OrderId;
use table::Bounds;
use thiserror::Error;
use violation::Violations;

/// A run that cannot be merged at all. What is wrong with single orders is a [`Violation`].
#[derive(Debug, Error)]
pub enum MergeError {
    /// A log is missing, cut or overwritten.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The record holds a plan that no run can have had.
    #[error("{RUN_FILE}: {0}")]
    Plan(#[from] PlanError),
    /// Not enough memory for the table.
    #[error("no memory for {bytes} more bytes of the table of orders: merge on a larger machine")]
    Memory {
        /// Bytes that were asked for.
        bytes: u64,
    },
}

/// What the merge knows about one thread's log.
#[derive(Clone, Debug)]
pub struct ThreadLog {
    /// The thread's name in the plan.
    pub name: String,
    /// Records in its log.
    pub records: u64,
    /// Its status block, as it was at the end; empty if it proves nothing.
    pub status: Status,
    /// Log and status block prove nothing: the strategy was quarantined, and may have written anything there.
    pub is_untrusted: bool,
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
    /// What became of the orders of each incarnation that died, in the order of the record's incidents.
    pub tolls: Vec<Toll>,
    /// Orders lost by incarnations that lived; in a complete run each is a violation.
    pub lost_of_survivors: u64,
    table: table::Table,
}

impl Merged {
    /// Every order that has some stamp, by strategy and sequence.
    pub fn orders(&self) -> impl Iterator<Item = (OrderId, &Row)> {
        self.table.rows().filter(|(_, row)| row.points() != 0)
    }

    /// The orders that count in the figures: returned, with every stamp, in time.
    pub fn measured(&self) -> impl Iterator<Item = (OrderId, &Row)> {
        self.table.rows().filter(|(_, row)| row.is_measured())
    }
}

/// The name of a thread's log in the run's folder.
pub fn file_name(thread: &str) -> String {
    format!("{thread}.{EXTENSION}")
}

/// Joins all logs of a run; they are in a folder (a [`Path`](std::path::Path)) or in memory. `progress` hears, about every 65,000 stamps, how many are done of how many.
///
/// A log that is cut inside a record is an error, except in a run that failed: there it gives what it has. So does the log
/// of a strategy that was quarantined, whatever is wrong with it.
///
/// # Errors
/// [`MergeError`]: a log cannot be believed, the plan is impossible, or there is not enough memory.
pub fn merge<L: Logs + ?Sized>(
    logs: &L,
    record: &RunRecord,
    mut progress: impl FnMut(u64, u64),
) -> Result<Merged, MergeError> {
    let plan = &record.plan;
    plan.validate()?;
    let (sizes, total) = sizes(logs, plan)?;
    let deaths = Deaths::new(record);
    let bounds = bounds(plan, &sizes, &deaths);

    let mut violations = Violations::default();
    let mut notes = Vec::new();
    let mut threads: Vec<Option<ThreadLog>> = vec![None; plan.threads.len()];
    let mut join = Join::new(plan, &deaths, bounds, &mut violations);
    let mut done = 0;
    for thread in reading_order(plan) {
        let is_untrusted = deaths.is_untrusted_log(&plan.threads[thread]);
        let (log, damage) = read(logs, record, thread, is_untrusted, &mut join, |records| {
            done += records;
            progress(done, total);
        })?;
        notes.extend(damage);
        if is_untrusted {
            notes.push(untrusted(&log.name, join.ignored()));
        }
        threads[thread] = Some(log);
    }
    let Join { mut table, .. } = join;
    let threads: Vec<ThreadLog> = threads.into_iter().flatten().collect();

    let context = Context::new(record, &deaths);
    let Counted { mut orders, span, tolls, lost_of_survivors } =
        check::check(&mut table, &context, record.incidents.len(), &mut violations);
    orders.scheduled = plan.orders.iter().fold(0, |sum: u64, orders| sum.saturating_add(*orders));
    counters::check(record, &threads, &deaths, &table, &mut violations);
    for (log, thread) in threads.iter().zip(&plan.threads) {
        orders.full = orders.full.saturating_add(log.counters.total(&thread.roles, counters::FULL));
    }
    notes.extend(unchecked(plan));
    let violations = violations.into_sorted();
    Ok(Merged { orders, span, violations, notes, threads, records: done, tolls, lost_of_survivors, table })
}

/// Takes the records of one log; beside what is known about it, what is wrong with it where that is no error. `progress`
/// hears how many more were taken.
fn read<L: Logs + ?Sized>(
    logs: &L,
    record: &RunRecord,
    thread: usize,
    is_untrusted: bool,
    join: &mut Join,
    mut progress: impl FnMut(u64),
) -> Result<(ThreadLog, Option<String>), MergeError> {
    let name = record.plan.threads[thread].name.clone();
    let nothing = || Status::from_words([0; STATUS_WORDS]);
    let has_failed = matches!(record.outcome, Outcome::Failed { .. });
    let is_tolerable = |error: &LogError| {
        (error.is_cut() && has_failed) || (is_untrusted && !matches!(error, LogError::Io { .. }))
    };
    let mut damage = None;
    join.begin(thread);
    let mut log = match folder::open(logs, &record.plan, thread) {
        Ok(log) => log,
        Err(error) if is_tolerable(&error) => {
            let counters = Counters::default();
            let log = ThreadLog { name, records: 0, status: nothing(), counters, is_untrusted };
            return Ok((log, Some(format!("{error}; nothing of it was used"))));
        }
        Err(error) => return Err(error.into()),
    };
    loop {
        match log.next_block() {
            Ok(Some(block)) => {
                for record in block.records() {
                    join.take(record)?;
                }
                progress(block.len() as u64);
            }
            Ok(None) => break,
            Err(error) if is_tolerable(&error) => {
                damage = Some(format!("{error}; its whole records were used"));
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let (status, counters) = match is_untrusted {
        true => (nothing(), Counters::default()),
        false => (log.status().clone(), log.counters().clone()),
    };
    Ok((ThreadLog { name, records: log.records(), status, counters, is_untrusted }, damage))
}

/// What a log that proves nothing means for the figures.
fn untrusted(name: &str, ignored: u64) -> String {
    let nonsense = match ignored {
        0 => String::new(),
        ignored => format!("; {ignored} records in it that make no sense were passed over"),
    };
    format!(
        "the log and the counters of {name}, which may have overwritten them, prove nothing: its orders are in no \
         figure and count by what the engine stamped{nonsense}"
    )
}

/// How many records each log can hold by its size, and all of them.
fn sizes<L: Logs + ?Sized>(logs: &L, plan: &Plan) -> Result<(Vec<u64>, u64), LogError> {
    let records = |bytes: u64| bytes.saturating_sub(RECORDS_AT) / RECORD_BYTES as u64;
    let size = |thread| logs.bytes(plan, thread).map(records);
    let sizes = (0..plan.threads.len()).map(size).collect::<Result<Vec<_>, _>>()?;
    let total = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
    Ok((sizes, total))
}

/// How far the lanes of each strategy may grow: as far as its log suggests.
fn bounds(plan: &Plan, sizes: &[u64], deaths: &Deaths) -> Vec<Bounds> {
    let bounds = |(strategy, planned): (usize, &u64)| {
        let strategy = strategy as u16;
        let thread = plan.thread_of(Role::Strategy(strategy));
        let records = thread.and_then(|thread| sizes.get(thread)).copied().unwrap_or(0);
        Bounds::new(*planned, records, deaths.last_epoch(strategy), deaths.is_untrusted(strategy))
    };
    plan.orders.iter().enumerate().map(bounds).collect()
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

/// What the stamps of this plan cannot tell.
fn unchecked(plan: &Plan) -> Option<String> {
    let gateways = |roles: &[Role]| roles.iter().filter(|role| matches!(role, Role::Gateway(_))).count();
    let thread = plan.threads.iter().find(|thread| gateways(&thread.roles) > 1)?;
    Some(format!(
        "the order of hand-offs to and from the {} gateways on thread {} was not checked: stamps name no venue",
        gateways(&thread.roles),
        thread.name
    ))
}

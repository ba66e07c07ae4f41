//! The merge: all stamp logs of a run joined by order, exact and linear, and checked.
//!
//! Nothing is sampled and nothing is sorted. A stamp costs one indexed store, an order 88 bytes, and what cannot be
//! true of an honest run (a stamp twice, a gap, a report out of turn, time going backwards) is counted and named.

mod check;
pub(crate) mod folder;
mod join;
mod table;
mod violation;

pub use check::{Orders, Span};
pub use folder::{FolderError, RUN_FILE, log_path, read_record};
pub use table::{Row, bit};
pub use violation::{Kind, Violation, name_of};

use crate::logfile::{EXTENSION, LogError, RECORDS_AT};
use crate::record::{Outcome, RunRecord};
use check::Context;
use join::Join;
use shm::plan::{Plan, PlanError, Role};
use shm::stamps::RECORD_BYTES;
use shm::status::{Field, State, Status};
use shm::wire::OrderId;
use std::path::Path;
use thiserror::Error;
use violation::Violations;

/// Rows that a lane may have beyond what its strategy's log suggests: for orders whose other stamps are lost.
const SPARE_ROWS: u64 = 4096;

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
    /// Its status block, as it was at the end.
    pub status: Status,
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

/// Joins all logs of a run's folder. `progress` hears, about every 65,000 stamps, how many are done of how many.
///
/// A log that is cut inside a record is an error, except in a run that failed: there it gives what it has.
///
/// # Errors
/// [`MergeError`]: a log cannot be believed, the plan is impossible, or there is not enough memory.
pub fn merge(
    folder: &Path,
    record: &RunRecord,
    mut progress: impl FnMut(u64, u64),
) -> Result<Merged, MergeError> {
    let plan = &record.plan;
    plan.validate()?;
    let (sizes, total) = sizes(folder, plan)?;
    let limits = limits(plan, &sizes);

    let mut violations = Violations::default();
    let mut notes = Vec::new();
    let mut threads: Vec<Option<ThreadLog>> = vec![None; plan.threads.len()];
    let mut join = Join::new(plan, &limits, &mut violations);
    let mut done = 0;
    for thread in reading_order(plan) {
        let name = &plan.threads[thread].name;
        let mut log = folder::open(folder, plan, thread)?;
        join.begin(thread);
        loop {
            match log.next_block() {
                Ok(Some(block)) => {
                    for record in block.records() {
                        join.take(record)?;
                    }
                    done += block.len() as u64;
                    progress(done, total);
                }
                Ok(None) => break,
                Err(error) if error.is_cut() && matches!(record.outcome, Outcome::Failed { .. }) => {
                    notes.push(format!("{error}; its whole records were used"));
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let status = log.status().clone();
        threads[thread] = Some(ThreadLog { name: name.clone(), records: log.records(), status });
    }
    let Join { mut table, .. } = join;
    let threads: Vec<ThreadLog> = threads.into_iter().flatten().collect();

    let (mut orders, span) = check::check(&mut table, &Context::new(record), &mut violations);
    orders.scheduled = plan.orders.iter().fold(0, |sum: u64, orders| sum.saturating_add(*orders));
    check_counters(record, &threads, &table, &mut violations);
    for log in &threads {
        orders.full = orders.full.saturating_add(log.status.get(Field::Full));
    }
    notes.extend(unchecked(plan));
    Ok(Merged { orders, span, violations: violations.into_sorted(), notes, threads, records: done, table })
}

/// How many records each log can hold by its size, and all of them.
fn sizes(folder: &Path, plan: &Plan) -> Result<(Vec<u64>, u64), LogError> {
    let size = |thread: &shm::plan::ThreadPlan| {
        let path = log_path(folder, &thread.name);
        match std::fs::metadata(&path) {
            Ok(facts) => Ok(facts.len().saturating_sub(RECORDS_AT) / RECORD_BYTES as u64),
            Err(source) => Err(LogError::Io { file: path.display().to_string(), source }),
        }
    };
    let sizes = plan.threads.iter().map(size).collect::<Result<Vec<_>, _>>()?;
    let total = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
    Ok((sizes, total))
}

/// The rows that each strategy may need: no more than planned, and no more than its log has records, with room
/// for orders that it stamped once and the engine stamped later. What memory is used follows the files.
fn limits(plan: &Plan, sizes: &[u64]) -> Vec<u64> {
    let limit = |(strategy, planned): (usize, &u64)| {
        let thread = plan.thread_of(Role::Strategy(strategy as u16));
        let records = thread.and_then(|thread| sizes.get(thread)).copied().unwrap_or(0);
        (*planned).min(records.saturating_mul(2).saturating_add(SPARE_ROWS))
    };
    plan.orders.iter().enumerate().map(limit).collect()
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

/// Compares what the threads counted with what they stamped, where both are final.
fn check_counters(record: &RunRecord, logs: &[ThreadLog], table: &table::Table, violations: &mut Violations) {
    for (log, thread) in logs.iter().zip(&record.plan.threads) {
        let (name, dropped) = (&log.name, log.status.get(Field::RecordsDropped));
        violations.add_many(Kind::RecordsDropped, dropped, || {
            format!("{name}: {dropped} records did not fit the log of {}", thread.log_records)
        });
        let own = |strategy: u16| thread.roles.contains(&Role::Strategy(strategy));
        let only_strategies = thread.roles.iter().all(|role| matches!(role, Role::Strategy(_)));
        let finished = record.outcome == Outcome::Complete && log.status.state() == State::Done;
        if !only_strategies || !finished || dropped > 0 {
            continue;
        }
        let lanes = table.lanes.iter().filter(|lane| own(lane.strategy));
        let sent = lanes.flat_map(|lane| &lane.rows).filter(|row| row.has(shm::stamps::Point::StrategySend));
        let (stamped, counted) = (sent.count() as u64, log.status.get(Field::Sent));
        if stamped != counted {
            violations.add(Kind::Counters, || {
                format!("{name}: counted {counted} orders sent, its log has {stamped}: records are missing")
            });
        }
    }
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

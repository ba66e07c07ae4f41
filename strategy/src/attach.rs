//! Attaches a strategy to its run: builds its context and session from the plan.

use crate::{Context, Session};
use protocol::index::StrategyIndex;
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::segments;
use protocol::stamps::{Point, count_point};
use protocol::trading::return_path;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Producer;
use thiserror::Error;

/// The error that a strategy cannot be attached to its run.
#[derive(Debug, Error)]
pub enum AttachError {
    /// A shared-memory segment of the strategy is missing or invalid.
    #[error(transparent)]
    Segment(#[from] RegionError),
    /// The plan has no strategy with this index.
    #[error("the plan has no thread for strategy {0}")]
    NoThread(u16),
}

fn thread(plan: &Plan, index: StrategyIndex) -> Result<&ThreadPlan, AttachError> {
    let thread = plan.thread_of(Role::Strategy(index)).ok_or(AttachError::NoThread(index.0))?;
    Ok(&plan.threads[thread])
}

/// Builds from the plan the context (identity, schedule and settings) of the incarnation `epoch` of
/// a strategy.
pub fn context(
    plan: &Plan,
    index: StrategyIndex,
    epoch: u16,
    attached: &mut Attached<'_>,
) -> Result<Context, AttachError> {
    let (schedule, entries) = segments::attach_schedule(attached, index)?;
    let trading = plan.trading();
    let orders = trading.orders.get(index.as_usize()).copied().unwrap_or(0);
    let sent_before = match epoch {
        0 => 0,
        _ => {
            let log = segments::attach_log(attached, &thread(plan, index)?.name)?;
            count_point(&log, Point::StrategySend) as u64
        }
    };
    let mut context = Context::new(index.0, schedule, entries, trading.pacing_of(index));
    (context.strategies, context.venues, context.epoch) = (trading.strategies, trading.venues, epoch);
    (context.orders, context.sent_before) = (orders.saturating_sub(sent_before), sent_before);
    context.max_open = trading.max_open.into();
    if context.is_successor() {
        context = context.with_inherited_positions(segments::attach_inherited_positions(attached, index)?);
    }
    Ok(context)
}

/// Builds a strategy's session, its connection to the engine; orders are sent through the producer
/// `submit`.
pub fn session<P: Producer>(
    plan: &Plan,
    context: &Context,
    submit: P,
    attached: &mut Attached<'_>,
) -> Result<Session<P>, AttachError> {
    let index = context.strategy;
    let bell = segments::bell_of(attached, plan, thread(plan, StrategyIndex(index))?, Role::Orchestrator)?;
    let returns = attached.receiver(&return_path(StrategyIndex(index)))?;
    let session = Session::new(index, context.max_open, submit, bell, returns).with_epoch(context.epoch);
    Ok(session.with_budget(context.orders))
}

//! Recovers the roles of a process. An engine with a journal recovers its orchestrator and its
//! gateways after crashed ones.
//!
//! The orchestrator's journal determines what was sent to each gateway and taken from it. The rings
//! around a gateway show how far it got: between its inbox and its session, and back, messages go
//! one to one and in order.
//!
//! ```text
//!  orchestrator ─ inbox ─▶ gateway ─ session out ─▶ exchange   sent: count of the session
//!               ◀ completion ─     ◀ session in ──             handed over: count of completion
//! ```

use super::book;
use super::build::{new_core, outputs, send_queues};
use super::gateway_recovery;
use super::recovered::{
    FollowedJournal, RecoveredEngine, RecoveredRoles, StandbyState, open_log, thread_of, watermarks_in_log,
};
use super::recovery_environment::RecoveryEnvironment;
use anyhow::{Context as _, Result};
use journal::Options;
use orchestrator::Replica;
use protocol::control::Control;
use protocol::index::GatewayIndex;
use protocol::journals;
use protocol::log_scan::LogTotals;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::segments::{self, completion_link, submit_link};
use protocol::trading::{inbox, session_in, session_out};
use shm::attached::Attached;
use shm::memory::ReadOnlyWords;
use shm::ring::spsc_mux;
use std::path::PathBuf;

/// Recovers the roles of a process that have a journal or a predecessor, from a hot standby's state
/// if there is one. Called before the roles are built.
pub fn recover(
    plan: &Plan,
    process: &ProcessPlan,
    control: &Control,
    standby: Option<StandbyState>,
    attached: &mut Attached<'_>,
    environment: &dyn RecoveryEnvironment,
) -> Result<RecoveredRoles> {
    let mut recovered = RecoveredRoles::default();
    let (engine, mut exchange) = match standby {
        Some(StandbyState::Engine(followed)) => (Some(*followed), None),
        Some(StandbyState::Exchange(followed)) => (None, Some(*followed)),
        None => (None, None),
    };
    if let Some(options) = book::journal_options(plan.trading()) {
        if plan.engine_has_journal() && plan.roles_of(process).any(|role| role == Role::Orchestrator) {
            recover_engine(plan, options.clone(), engine, attached, environment, &mut recovered)?;
        }
        for role in plan.roles_of(process) {
            let Role::Exchange(venue) = role else { continue };
            let (options, followed) = (options.clone(), exchange.take());
            let agent = book::recover(plan, venue, options, followed, control, attached, environment)?;
            recovered.exchanges.insert(venue, agent);
        }
    }
    recovered.gateways.extend(gateway_recovery::recover(plan, process, control, attached, environment)?);
    Ok(recovered)
}

fn recover_engine(
    plan: &Plan,
    options: Options,
    followed: Option<FollowedJournal<Replica>>,
    attached: &mut Attached<'_>,
    environment: &dyn RecoveryEnvironment,
    recovered: &mut RecoveredRoles,
) -> Result<()> {
    let is_restartable = plan.engine_is_restartable();
    let options = environment.journal_options(options);
    let options = book::with_inherited_lock(options, attached, Role::Orchestrator)?;
    let now = environment.now(plan);
    let thread = thread_of(plan, Role::Orchestrator)?;
    let logged = orchestrator_log(plan, attached)?;
    let FollowedJournal { replica, mut totals, queues } =
        followed.unwrap_or_else(|| FollowedJournal::none(LogTotals::default(), send_queues(plan)));
    totals.scan(&logged);
    let mut watermarks = watermarks_in_log(&totals);
    for gateway in GatewayIndex::first(plan.trading().gateways()).filter(|_| is_restartable) {
        watermarks.sent.push(attached.resume_own_sender(&session_out(gateway))?.published());
        // The inbox's reader is gone: its messages are sent again.
        let left = attached.resume_own_sender(&inbox(gateway))?.published();
        attached.resume_receiver(&inbox(gateway))?.skip_to(left);
    }
    let folder = journal_folder(plan);
    let watermarks = environment.engine_outputs(watermarks);
    let outputs = outputs(plan, is_restartable, queues, attached)?
        .with_commands(segments::attach_command_channel(attached)?);
    let (replica, reader) = match replica {
        Some((replica, reader)) => (replica, Some(reader)),
        None => (Replica::new(new_core(plan)?, plan.stamps), None),
    };
    let promoted = replica.promote(reader, (&folder, &options), watermarks, outputs, now);
    let (successor, found) =
        promoted.with_context(|| format!("the engine's journal in {}", folder.display()))?;
    environment.on_journal_open(&folder, successor.watermark());
    let mut writer = open_log(plan, thread, attached)?;
    found.unlogged.iter().for_each(|record| writer.append_record(*record));
    for (index, past) in GatewayIndex::first(u16::MAX).zip(&found.gateways).filter(|_| is_restartable) {
        let resume_point =
            gateway_recovery::from_engine_journal(plan, index, past, environment.now(plan), attached)?;
        recovered.gateways.insert(index, resume_point);
    }
    recovered.engine = Some(RecoveredEngine { successor, found, now: environment.now(plan) });
    Ok(())
}

pub(super) fn journal_folder(plan: &Plan) -> PathBuf {
    journals::folder(plan, Role::Orchestrator)
}

pub(super) fn orchestrator_log(plan: &Plan, attached: &mut Attached<'_>) -> Result<ReadOnlyWords> {
    Ok(segments::attach_log(attached, &thread_of(plan, Role::Orchestrator)?.name)?)
}

/// Maps the segments that the engine's threads will use.
pub(super) fn map_segments(plan: &Plan, attached: &mut Attached<'_>) -> Result<()> {
    let trading = plan.trading();
    for gateway in GatewayIndex::first(trading.gateways()) {
        // Not as a successor, which repairs the ring: the running engine uses it.
        attached.sender(&session_out(gateway))?;
        attached.receiver(&session_in(gateway))?;
        attached.receiver(&inbox(gateway))?;
        attached.receiver(&spsc_mux::ring_name(&completion_link(plan), gateway.as_usize()))?;
    }
    for strategy in 0..trading.strategies {
        attached.receiver(&spsc_mux::ring_name(&submit_link(plan), strategy.into()))?;
    }
    segments::attach_inherited_positions_writers(attached, plan)?;
    segments::attach_command_channel(attached)?;
    Ok(())
}

//! Recovery of an engine with a journal: its orchestrator and its gateways resume after crashed
//! ones.
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
use super::build::{new_core, outputs};
use super::gateway_recovery;
use super::recovered::{self, open_log, thread_of};
use super::takeover::Takeover;
use anyhow::{Context as _, Result};
use orchestrator::Replica;
use protocol::journals;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::segments::{self, completion_link, submit_link};
use protocol::trading::{inbox, session_in, session_out};
use shm::attached::Attached;
use shm::memory::ReadOnlyWords;
use shm::ring::spsc_mux;
use std::path::PathBuf;

/// Recovers the engine from its journal, if the process is the engine's and has one. Called before
/// its threads are built.
pub fn recover(plan: &Plan, process: &ProcessPlan, attached: &mut Attached<'_>) -> Result<()> {
    if !plan.engine_has_journal() || !plan.roles_of(process).any(|role| role == Role::Orchestrator) {
        return Ok(());
    }
    let Some(options) = book::journal_options(plan.trading()) else { return Ok(()) };
    let is_restartable = plan.engine_is_restartable();
    let takeover = Takeover::from_attached(attached);
    let options = takeover.journal_options(options);
    let options = book::with_inherited_lock(options, attached, Role::Orchestrator)?;
    let now = (takeover.now)(plan);
    let thread = thread_of(plan, Role::Orchestrator)?;
    let logged = orchestrator_log(plan, attached)?;
    let (followed, mut totals) = recovered::standby(attached, Role::Orchestrator).take().unwrap_or_default();
    totals.scan(&logged);
    let mut watermarks = recovered::watermarks_in_log(&totals);
    for gateway in (0..plan.trading().venues).filter(|_| is_restartable) {
        watermarks.sent.push(attached.resume_sender(&session_out(gateway))?.published());
        // The inbox's reader is gone: its messages are sent again.
        let left = attached.resume_sender(&inbox(gateway))?.published();
        attached.resume_receiver(&inbox(gateway))?.skip_to(left);
    }
    let folder = journal_folder(plan);
    takeover.alter_engine(&mut watermarks, &folder);
    let outputs =
        outputs(plan, is_restartable, attached)?.with_commands(segments::command_channel(attached)?);
    let (replica, reader) = takeover.replica(followed, || Ok(Replica::new(new_core(plan)?, plan.stamps)))?;
    let recovered = replica.promote(reader, (&folder, &options), watermarks, outputs, now);
    let (successor, mut recovered) =
        recovered.with_context(|| format!("the engine's journal in {}", folder.display()))?;
    takeover.on_journal_open(&folder, Some(successor.watermark()));
    takeover.alter_recovered(&mut recovered);
    let mut writer = open_log(plan, thread, attached)?;
    recovered.unlogged.iter().for_each(|record| writer.append_record(*record));
    for (index, past) in (0..).zip(&recovered.gateways).filter(|_| is_restartable) {
        let resume_point =
            gateway_recovery::from_engine_journal(plan, index, past, (takeover.now)(plan), attached)?;
        recovered::gateway(attached, index).store(takeover.alter_gateway(resume_point));
    }
    recovered::engine(attached).store((successor, recovered));
    Ok(())
}

pub(super) fn journal_folder(plan: &Plan) -> PathBuf {
    journals::folder(plan, Role::Orchestrator)
}

pub(super) fn orchestrator_log(plan: &Plan, attached: &mut Attached<'_>) -> Result<ReadOnlyWords> {
    Ok(segments::log(attached, &thread_of(plan, Role::Orchestrator)?.name)?)
}

/// Maps the segments that the engine's threads will use.
pub(super) fn map_segments(plan: &Plan, attached: &mut Attached<'_>) -> Result<()> {
    let trading = plan.trading();
    for gateway in 0..trading.venues {
        // Not as a successor, which repairs the ring: the running engine uses it.
        attached.sender(&session_out(gateway))?;
        attached.receiver(&session_in(gateway))?;
        attached.receiver(&inbox(gateway))?;
        attached.receiver(&spsc_mux::ring_name(&completion_link(plan), gateway.into()))?;
    }
    for strategy in 0..trading.strategies {
        attached.receiver(&spsc_mux::ring_name(&submit_link(plan), strategy.into()))?;
    }
    segments::command_channel(attached)?;
    Ok(())
}

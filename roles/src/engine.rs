//! The engine with a journal: how its orchestrator and its gateways are built, in the place of
//! those that have died if there were any.
//!
//! The orchestrator's journal says what was sent to each gateway and taken from it. How far a
//! gateway was with that, the rings around it say: between its inbox and its session, and back,
//! messages go one to one and in their order.
//!
//! ```text
//!  orchestrator ─ inbox ─▶ gateway ─ session out ─▶ exchange        sent: as many as the session has
//!               ◀ completion ─     ◀ session in ──                  handed over: as many as the completion hand-off has
//! ```

use super::book;
use super::build::{core_of, outputs};
use super::estate::{self, Engine, log_of, recovery, thread_of};
use super::gateway_estate;
use super::takeover::Takeover;
use anyhow::{Context as _, Result};
use journal::JournalFollower;
use orchestrator::Replica;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::segments::{self, completion_link, submit_link};
use protocol::tally::{self, PriorLog};
use protocol::trading::{inbox, session_in, session_out};
use shm::attached::Attached;
use shm::ring::spsc_mux;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// Recovers the engine, if that process is the engine's and keeps a journal: before its threads are
/// built.
///
/// # Errors
/// A segment or a journal that is not what it should be.
pub fn recover(plan: &Plan, process: &ProcessPlan, attached: &mut Attached<'_>) -> Result<()> {
    if !plan.engine_has_journal() || !plan.roles_of(process).any(|role| role == Role::Orchestrator) {
        return Ok(());
    }
    let Some(options) = book::journal_options(plan.trading()) else { return Ok(()) };
    let comes_back = plan.engine_is_restartable();
    let takeover = Takeover::of(attached);
    let options = takeover.of_options(options);
    let now = (takeover.now)(plan);
    let thread = thread_of(plan, Role::Orchestrator)?;
    let logged = past_of_orchestrator(plan, attached)?;
    let (followed, mut tally) = estate::take(attached).unwrap_or_default();
    logged.look(&mut tally);
    let mut estate = estate::of_log(&logged, &tally);
    for gateway in (0..plan.trading().gateways()).filter(|_| comes_back) {
        estate.sent.push(attached.resume_sender(&session_out(gateway))?.published());
        // Nobody is there to take what is in the inbox: it comes again.
        let left = attached.resume_sender(&inbox(gateway))?.published();
        attached.resume_receiver(&inbox(gateway))?.skip_to(left);
    }
    let folder = journal_folder(plan);
    takeover.of_engine(&mut estate, &folder);
    let outputs = outputs(plan, comes_back, attached)?.commanded(segments::desk(attached)?);
    let (replica, reader) = match followed.map(JournalFollower::into_parts) {
        Some((replica, mut reader)) => {
            takeover.of_reader(&mut reader);
            (replica, Some(reader))
        }
        None => (Replica::new(core_of(plan)?, plan.stamps), None),
    };
    let recovered = replica.promote(reader, (&folder, &options), estate, outputs, now);
    let (successor, mut recovered) =
        recovered.with_context(|| format!("the engine's journal in {}", folder.display()))?;
    takeover.of_opened(&folder, Some(successor.watermark()));
    takeover.of_recovered(&mut recovered);
    let mut writer = log_of(plan, thread, attached)?;
    recovered.unlogged.iter().for_each(|record| writer.append_record(*record));
    for (index, past) in (0..).zip(&recovered.gateways).filter(|_| comes_back) {
        let estate = gateway_estate::of_engine(plan, index, past, (takeover.now)(plan), attached)?;
        estate::keep_gateway(attached, index, takeover.of_gateway(estate));
    }
    let engine = Engine { successor: Some(successor), recovered };
    *recovery(attached).lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
    Ok(())
}

/// Where the engine's journal is.
pub(super) fn journal_folder(plan: &Plan) -> PathBuf {
    Path::new(&plan.folder).join("journal-engine")
}

/// The log that the orchestrator stamps.
pub(super) fn past_of_orchestrator(plan: &Plan, attached: &mut Attached<'_>) -> Result<PriorLog> {
    Ok(tally::past(attached, plan, thread_of(plan, Role::Orchestrator)?)?)
}

/// Maps what the engine's threads will use, ahead of them.
pub(super) fn map(plan: &Plan, attached: &mut Attached<'_>) -> Result<()> {
    let trading = plan.trading();
    for gateway in 0..trading.gateways() {
        // Not as heirs: those tidy up, and the living one is at work.
        attached.sender(&session_out(gateway))?;
        attached.receiver(&session_in(gateway))?;
        attached.receiver(&inbox(gateway))?;
        attached.receiver(&spsc_mux::ring_name(&completion_link(plan), gateway.into()))?;
    }
    for strategy in 0..trading.strategies {
        attached.receiver(&spsc_mux::ring_name(&submit_link(plan), strategy.into()))?;
    }
    segments::desk(attached)?;
    Ok(())
}

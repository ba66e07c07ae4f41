//! The engine with a journal: how its orchestrator and its gateways are built, in the place of those that have died if there were any.
//!
//! The orchestrator's journal says what was sent to each gateway and taken from it. How far a gateway was with that, the rings around it
//! say: between its inbox and its session, and back, messages go one to one and in their order.
//!
//! ```text
//!  orchestrator ─ inbox ─▶ gateway ─ session out ─▶ exchange        sent: as many as the session has
//!               ◀ completion ─     ◀ session in ──                  handed over: as many as the completion hand-off has
//! ```

use super::book;
use super::build::{core_of, outputs};
use super::estate::{self, Engine, recovery};
use super::takeover::Takeover;
use anyhow::{Context, Result};
use gateway::GatewayEstate;
use gateway::gateway_log::{GatewayLog, LastMessages, given};
use journal::Follower;
use orchestrator::{GatewayPast, Replica};
use protocol::checksum::digest;
use protocol::log_file::{self, file_name};
use protocol::plan::{Plan, ProcessPlan, Role, ThreadPlan};
use protocol::segments::{self, completion_link, submit_link};
use protocol::spill::CHUNK_RECORDS;
use protocol::stamps::StampLog;
use protocol::tally::{self, Past};
use protocol::trading::{inbox, session_in, session_out};
use protocol::wire::{Instruction, Message, Report};
use shm::attached::Attached;
use shm::ring::{spsc, spsc_mux};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// Recovers the engine, if that process is the engine's and keeps a journal: before its threads are built.
///
/// # Errors
/// A segment or a journal that is not what it should be.
pub fn recover(plan: &Plan, process: &ProcessPlan, attached: &mut Attached<'_>) -> Result<()> {
    if !plan.engine_has_journal() || !plan.roles_of(process).any(|role| role == Role::Orchestrator) {
        return Ok(());
    }
    let Some(options) = book::journal_options(plan.trading()) else { return Ok(()) };
    let comes_back = plan.engine_comes_back();
    let takeover = Takeover::of(attached);
    let options = takeover.of_options(options);
    let now = (takeover.now)(plan);
    let thread = thread_of(plan, Role::Orchestrator)?;
    let logged = past_of_orchestrator(plan, attached)?;
    let (followed, mut tally) = estate::take(attached).unwrap_or_default();
    logged.look(&mut tally);
    let mut estate = estate::of_log(&logged, &tally);
    for gateway in (0..plan.trading().gateways()).filter(|_| comes_back) {
        estate.sent.push(attached.heir(&session_out(gateway))?.published());
        // Nobody is there to take what is in the inbox: it comes again.
        let left = attached.heir(&inbox(gateway))?.published();
        attached.successor(&inbox(gateway))?.skip_to(left);
    }
    let folder = journal_folder(plan);
    takeover.of_engine(&mut estate, &folder);
    let outputs = outputs(plan, comes_back, attached)?.commanded(segments::desk(attached)?);
    let (replica, reader) = match followed.map(Follower::into_parts) {
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
    let mut gateways = Vec::new();
    for (index, past) in (0..).zip(&recovered.gateways).filter(|_| comes_back) {
        let gateway = recover_gateway(plan, index, past, (takeover.now)(plan), attached)?;
        gateways.push(takeover.of_gateway(gateway));
    }
    let engine = Engine { successor: Some(successor), recovered, gateways };
    *recovery(attached).lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
    Ok(())
}

/// Where the engine's journal is.
pub(super) fn journal_folder(plan: &Plan) -> PathBuf {
    Path::new(&plan.folder).join("journal-engine")
}

/// The log that the orchestrator stamps.
pub(super) fn past_of_orchestrator(plan: &Plan, attached: &mut Attached<'_>) -> Result<Past> {
    Ok(tally::past(attached, plan, thread_of(plan, Role::Orchestrator)?)?)
}

/// A thread's log, to go on with.
fn log_of(plan: &Plan, thread: &ThreadPlan, attached: &mut Attached<'_>) -> Result<StampLog> {
    let words = segments::thread(attached, &thread.name)?;
    Ok(segments::stamp_log(attached, plan, thread, &words)?)
}

/// The keys of a chunk of a thread's log that has left memory.
fn saved_keys(plan: &Plan, thread: &ThreadPlan, chunk: u64) -> io::Result<Vec<u64>> {
    let path = Path::new(&plan.folder).join(file_name(&thread.name));
    log_file::keys_at(&path, chunk * CHUNK_RECORDS, CHUNK_RECORDS as usize)
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

fn thread_of(plan: &Plan, role: Role) -> Result<&ThreadPlan> {
    let thread = plan.thread_of(role).with_context(|| format!("{role} has no thread"))?;
    Ok(&plan.threads[thread])
}

/// What a gateway has left behind. Its log gets what it had no time to write.
fn recover_gateway(
    plan: &Plan,
    index: u16,
    past: &GatewayPast,
    now: u64,
    attached: &mut Attached<'_>,
) -> Result<GatewayEstate> {
    let out = attached.heir(&session_out(index))?;
    let ring = spsc_mux::ring_name(&completion_link(plan), index.into());
    let completion = attached.heir(&ring)?;
    let completed = completion.published();
    let mut taken = attached.successor(&ring)?;
    let mut reported = past.reported;
    // What the orchestrator wrote down and did not give back is counted already.
    let written = past.reports.saturating_sub(taken.taken());
    let on_the_way = all_of(&mut taken);
    let handed_over = on_the_way.iter().skip(written as usize);
    handed_over.for_each(|message| reported.add(digest(message)));
    let mut session = attached.successor(&session_in(index))?;
    session.skip_to(completed);
    let open: Vec<Option<Report>> =
        all_of(&mut session).into_iter().map(|message| Report::from_message(message).ok()).collect();
    let last_report = completion.last_published().and_then(|message| Report::from_message(message).ok());
    let order_of = |message: Message| match Instruction::from_message(message) {
        Ok(Instruction::Order(order)) => Some(order),
        _ => None,
    };
    let last_order = out.last_published().and_then(order_of);
    let first = past.first.and_then(order_of);
    let thread = thread_of(plan, Role::Gateway(index))?;
    let last = LastMessages { gateway: index, last_order, first, last_report, open: &open };
    let there = tally::past(attached, plan, thread)?;
    let there = last.found_in(&there, |chunk| saved_keys(plan, thread, chunk));
    let (there, _) = there.with_context(|| format!("what has left the log of {}", thread.name))?;
    let mut log = GatewayLog::new(log_of(plan, thread, attached)?, there);
    if let Some(order) = &last_order {
        log.order(order, None, index);
    }
    if let Some(order) = &first {
        log.order(order, Some(now), index);
    }
    if let Some(report) = &last_report {
        log.report(report, now);
    }
    let stamped = given(&open, |report| log.is_stamped(report));
    for report in open.iter().flatten() {
        if log.is_stamped(report) {
            log.report(report, now);
        }
    }
    stamped.iter().for_each(|message| reported.add(digest(message)));
    let mut dispatched = past.sent;
    past.first.iter().for_each(|message| dispatched.add(digest(message)));
    let orders = past.orders + u64::from(first.is_some());
    Ok(GatewayEstate { orders, dispatched, first: past.first, completed, stamped, reported })
}

/// All that a ring holds now, without giving anything back.
fn all_of(ring: &mut spsc::Consumer) -> Vec<Message> {
    std::iter::from_fn(|| ring.take().ok().flatten()).collect()
}

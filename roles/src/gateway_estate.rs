//! Recovers a dead gateway for its successor, with its engine or in a process of its own.
//!
//! Between its inbox and its session with the exchange, and back, messages go one to one and in
//! their order. So counts say how far it was:
//!
//! | left behind | what follows from it |
//! |---|---|
//! | messages in the session | so many of its inbox have gone out; the successor takes the others |
//! | reports that the engine has had of it | so many of the session are not sent again |
//! | stamps of later reports in its log | these are sent and not stamped again; all others are taken from the session as new |
//!
//! The log gets what the dead one had no time to write.

use super::estate::{self, log_of, thread_of};
use anyhow::{Context, Result};
use gateway::GatewayResumePoint;
use gateway::gateway_log::{GatewayLog, LastMessages, given};
use orchestrator::GatewayPast;
use protocol::checksum::digest;
use protocol::control::Control;
use protocol::log_file::{self, file_name};
use protocol::plan::{Plan, ProcessPlan, Role, ThreadPlan};
use protocol::segments::completion_link;
use protocol::spill::CHUNK_RECORDS;
use protocol::supervision::{self, GatewayRepair, REPAIRS, Repairs};
use protocol::tally;
use protocol::trading::{inbox, session_in, session_out};
use protocol::wire::{Instruction, Message, Order, Report};
use shm::attached::Attached;
use shm::ring::{spsc, spsc_mux};
use std::io;
use std::path::Path;
use system::clock::Clock;

/// Recovers the gateways of a process that takes the place of a dead one: before its threads are
/// built.
///
/// # Errors
/// A segment that is not what it should be.
pub(super) fn recover(
    plan: &Plan,
    process: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<()> {
    if !plan.restarts_gateways_of(process) {
        return Ok(());
    }
    for role in plan.roles_of(process) {
        let index = role.index();
        if !control.gateway_life(index).fenced {
            continue;
        }
        let repair = Repairs::new(attached.view(REPAIRS, supervision::KIND)?).of_gateway(index);
        let estate = match plan.resumes_gateway(index) {
            true => of_session(plan, index, &repair, attached)?,
            // Its venue has died with it, and begins with nothing.
            false => GatewayResumePoint {
                orders: repair.counts.orders,
                completed: repair.counts.reports,
                ..GatewayResumePoint::default()
            },
        };
        estate::keep_gateway(attached, index, estate);
    }
    Ok(())
}

/// Of a gateway that died alone: the engine is there, and has taken all that was handed over. The
/// inbox stays as it is.
fn of_session(
    plan: &Plan,
    index: u16,
    repair: &GatewayRepair,
    attached: &mut Attached<'_>,
) -> Result<GatewayResumePoint> {
    let out = attached.resume_sender(&session_out(index))?;
    let mut inbox = attached.resume_receiver(&inbox(index))?;
    inbox.skip_to(out.published());
    let unsummed = repair.inbox_end.saturating_sub(inbox.taken());
    let waiting = all_of(&mut inbox);
    let open = open_reports(index, repair.counts.reports, attached)?;
    let last = LastMessages {
        gateway: index,
        last_order: out.last_published().and_then(order_of),
        first: waiting.first().copied().and_then(order_of),
        last_report: None,
        last_done: (repair.counts.last_report != 0).then_some(repair.counts.last_report),
        open: &open,
    };
    let (log, stamped) = mend(&last, plan, plan.clock.now(), attached)?;
    let waiting_orders = waiting.into_iter().filter_map(order_of).count() as u64;
    Ok(GatewayResumePoint {
        orders: repair.counts.orders.saturating_sub(waiting_orders),
        stamped_order: last.first.filter(|order| log.has_order(order, index)).map(|order| order.id),
        unsummed,
        completed: repair.counts.reports,
        stamped,
        ..GatewayResumePoint::default()
    })
}

/// Of a gateway that died with its engine, by the engine's journal. What is in the inbox comes
/// again.
pub(super) fn of_engine(
    plan: &Plan,
    index: u16,
    past: &GatewayPast,
    now: u64,
    attached: &mut Attached<'_>,
) -> Result<GatewayResumePoint> {
    let out = attached.resume_sender(&session_out(index))?;
    let ring = spsc_mux::ring_name(&completion_link(plan), index.into());
    let completion = attached.resume_sender(&ring)?;
    let completed = completion.published();
    let mut taken = attached.resume_receiver(&ring)?;
    let mut reported = past.reported;
    // What the orchestrator wrote down and did not give back is counted already.
    let written = past.reports.saturating_sub(taken.taken());
    let on_the_way = all_of(&mut taken);
    let handed_over = on_the_way.iter().skip(written as usize);
    handed_over.for_each(|message| reported.add(digest(message)));
    let open = open_reports(index, completed, attached)?;
    let last = LastMessages {
        gateway: index,
        last_order: out.last_published().and_then(order_of),
        first: past.first.and_then(order_of),
        last_report: completion.last_published().and_then(|message| Report::from_message(message).ok()),
        last_done: None,
        open: &open,
    };
    let (mut log, stamped) = mend(&last, plan, now, attached)?;
    if let Some(order) = &last.first {
        log.order(order, Some(now), index);
    }
    stamped.iter().for_each(|message| reported.add(digest(message)));
    let mut dispatched = past.sent;
    past.first.iter().for_each(|message| dispatched.add(digest(message)));
    let orders = past.orders + u64::from(last.first.is_some());
    let first = past.first;
    Ok(GatewayResumePoint {
        orders,
        dispatched,
        first,
        completed,
        stamped,
        reported,
        ..GatewayResumePoint::default()
    })
}

fn order_of(message: Message) -> Option<Order> {
    match Instruction::from_message(message) {
        Ok(Instruction::Order(order)) => Some(order),
        _ => None,
    }
}

/// Reports that the session still has after the first `completed`; `None`: one that cannot be read.
fn open_reports(index: u16, completed: u64, attached: &mut Attached<'_>) -> Result<Vec<Option<Report>>> {
    let mut session = attached.resume_receiver(&session_in(index))?;
    session.skip_to(completed);
    Ok(all_of(&mut session).into_iter().map(|message| Report::from_message(message).ok()).collect())
}

/// Completes the log of a dead gateway. Returns it, and the reports that were stamped and not
/// handed over.
fn mend(
    last: &LastMessages<'_>,
    plan: &Plan,
    now: u64,
    attached: &mut Attached<'_>,
) -> Result<(GatewayLog, Vec<Message>)> {
    let thread = thread_of(plan, Role::Gateway(last.gateway))?;
    let there = tally::past(attached, plan, thread)?;
    let there = last.found_in(&there, |chunk| saved_keys(plan, thread, chunk));
    let (there, _) = there.with_context(|| format!("what has left the log of {}", thread.name))?;
    let mut log = GatewayLog::new(log_of(plan, thread, attached)?, there);
    if let Some(order) = &last.last_order {
        log.order(order, None, last.gateway);
    }
    if let Some(report) = &last.last_report {
        log.report(report, now);
    }
    let stamped = given(last.open, |report| log.is_stamped(report));
    for report in last.open.iter().flatten() {
        if log.is_stamped(report) {
            log.report(report, now);
        }
    }
    Ok((log, stamped))
}

/// The keys of a chunk of a thread's log that has left memory.
fn saved_keys(plan: &Plan, thread: &ThreadPlan, chunk: u64) -> io::Result<Vec<u64>> {
    let path = Path::new(&plan.folder).join(file_name(&thread.name));
    log_file::keys_at(&path, chunk * CHUNK_RECORDS, CHUNK_RECORDS as usize)
}

/// All that a ring holds now, without giving anything back.
fn all_of(ring: &mut spsc::Consumer) -> Vec<Message> {
    std::iter::from_fn(|| ring.take().ok().flatten()).collect()
}

//! Recovers a dead gateway for its successor, with its engine or in a process of its own.
//!
//! Between its inbox and its session with the exchange, and back, messages go one to one and in
//! order. So counts show how far it got:
//!
//! | found | meaning |
//! |---|---|
//! | messages in the session | number of its inbox messages sent; the successor takes the others |
//! | reports that the engine took from it | number of the session's reports not sent again |
//! | stamps of later reports in its log | sent and not stamped again; the others are new |
//!
//! The log gets the records that the crashed gateway had no time to write.

use super::recovered::{open_log, thread_of};
use super::recovery_environment::RecoveryEnvironment;
use anyhow::Result;
use gateway::GatewayResumePoint;
use gateway::gateway_log::{GatewayLog, LastMessages, stamped_reports};
use orchestrator::RecoveredGateway;
use protocol::checksum::digest;
use protocol::control::Control;
use protocol::index::GatewayIndex;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::segments::{self, completion_link};
use protocol::supervision::{self, GatewayRepair, REPAIRS, Repairs};
use protocol::trading::{inbox, session_in, session_out};
use protocol::wire::{Instruction, Message, Order, Report};
use shm::attached::Attached;
use shm::ring::{spsc, spsc_mux};
use std::collections::BTreeMap;

/// Recovers the gateways of a process that replaces a crashed one. Returns the positions at which
/// they resume.
pub(super) fn recover(
    plan: &Plan,
    process: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    environment: &dyn RecoveryEnvironment,
) -> Result<BTreeMap<GatewayIndex, GatewayResumePoint>> {
    let mut resume_points = BTreeMap::new();
    if !plan.should_restart_gateways(process) {
        return Ok(resume_points);
    }
    for role in plan.roles_of(process) {
        let index = GatewayIndex(role.index());
        if !control.gateway_incarnation(index).fenced {
            continue;
        }
        let repair = Repairs::new(attached.view(REPAIRS, supervision::KIND)?).gateway_repair(index);
        let resume_point = match plan.can_resume_gateway(index) {
            true => from_session(plan, index, &repair, environment.now(plan), attached)?,
            // Its venue crashed with it and starts empty.
            false => GatewayResumePoint {
                orders: repair.counts.orders,
                completed: repair.counts.reports,
                ..GatewayResumePoint::default()
            },
        };
        resume_points.insert(index, resume_point);
    }
    Ok(resume_points)
}

/// Returns the resume point of a gateway that crashed alone: the running engine has taken all that
/// was handed over, and the inbox stays.
fn from_session(
    plan: &Plan,
    index: GatewayIndex,
    repair: &GatewayRepair,
    now: u64,
    attached: &mut Attached<'_>,
) -> Result<GatewayResumePoint> {
    let out = attached.resume_sender(&session_out(index))?;
    let mut inbox = attached.resume_receiver(&inbox(index))?;
    inbox.skip_to(out.published());
    let unchecksummed = repair.inbox_end.saturating_sub(inbox.taken());
    let waiting = all_messages(&mut inbox);
    let open = open_reports(index, repair.counts.reports, attached)?;
    let last = LastMessages {
        gateway: index.0,
        last_order: out.last_published().and_then(order_of),
        next_order: waiting.first().copied().and_then(order_of),
        last_report: None,
        last_done: (repair.counts.last_report != 0).then_some(repair.counts.last_report),
        open: &open,
    };
    let (log, stamped) = complete_log(&last, plan, now, attached)?;
    let waiting_orders = waiting.into_iter().filter_map(order_of).count() as u64;
    Ok(GatewayResumePoint {
        orders: repair.counts.orders.saturating_sub(waiting_orders),
        stamped_order: last.next_order.filter(|order| log.has_order(order, index.0)).map(|order| order.id),
        unchecksummed,
        completed: repair.counts.reports,
        stamped,
        ..GatewayResumePoint::default()
    })
}

/// Returns the position at which a gateway resumes that crashed with its engine, from the engine's
/// journal. The inbox's messages are sent again.
pub(super) fn from_engine_journal(
    plan: &Plan,
    index: GatewayIndex,
    past: &RecoveredGateway,
    now: u64,
    attached: &mut Attached<'_>,
) -> Result<GatewayResumePoint> {
    let out = attached.resume_sender(&session_out(index))?;
    let ring = spsc_mux::ring_name(&completion_link(plan), index.as_usize());
    let completion = attached.resume_sender(&ring)?;
    let completed = completion.published();
    let mut taken = attached.resume_receiver(&ring)?;
    let mut reported = past.reported;
    // Journaled messages whose slots were not released are counted already.
    let written = past.reports.saturating_sub(taken.taken());
    let on_the_way = all_messages(&mut taken);
    let handed_over = on_the_way.iter().skip(written as usize);
    handed_over.for_each(|message| reported.add(digest(message)));
    let open = open_reports(index, completed, attached)?;
    let last = LastMessages {
        gateway: index.0,
        last_order: out.last_published().and_then(order_of),
        next_order: past.next_message.and_then(order_of),
        last_report: completion.last_published().and_then(|message| Report::from_message(message).ok()),
        last_done: None,
        open: &open,
    };
    let (mut log, stamped) = complete_log(&last, plan, now, attached)?;
    if let Some(order) = &last.next_order {
        log.order(order, Some(now), index.0);
    }
    stamped.iter().for_each(|message| reported.add(digest(message)));
    let mut dispatched = past.sent;
    past.next_message.iter().for_each(|message| dispatched.add(digest(message)));
    let orders = past.orders + u64::from(last.next_order.is_some());
    let first = past.next_message;
    Ok(GatewayResumePoint {
        orders,
        dispatched,
        unsent_message: first,
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

/// Returns the session's reports after the first `completed`; `None`: cannot be decoded.
fn open_reports(
    index: GatewayIndex,
    completed: u64,
    attached: &mut Attached<'_>,
) -> Result<Vec<Option<Report>>> {
    let mut session = attached.resume_receiver(&session_in(index))?;
    session.skip_to(completed);
    Ok(all_messages(&mut session).into_iter().map(|message| Report::from_message(message).ok()).collect())
}

/// Completes the log of a crashed gateway. Returns it, and the messages that were stamped and not
/// handed over.
fn complete_log(
    last: &LastMessages<'_>,
    plan: &Plan,
    now: u64,
    attached: &mut Attached<'_>,
) -> Result<(GatewayLog, Vec<Message>)> {
    let thread = thread_of(plan, Role::Gateway(GatewayIndex(last.gateway)))?;
    let (present, _) = last.find_in(&segments::attach_log(attached, &thread.name)?);
    let mut log = GatewayLog::new(open_log(plan, thread, attached)?, present);
    if let Some(order) = &last.last_order {
        log.order(order, None, last.gateway);
    }
    if let Some(report) = &last.last_report {
        log.report(report, now);
    }
    let stamped = stamped_reports(last.open, |report| log.is_stamped(report));
    for report in last.open.iter().flatten() {
        if log.is_stamped(report) {
            log.report(report, now);
        }
    }
    Ok((log, stamped))
}

/// Returns all messages in a ring, without releasing their slots.
fn all_messages(ring: &mut spsc::Consumer) -> Vec<Message> {
    std::iter::from_fn(|| ring.take().ok().flatten()).collect()
}

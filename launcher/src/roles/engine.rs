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
use super::build::{ends, orchestrator_parts};
use super::estate::{self, Engine, recovery};
use super::takeover::Takeover;
use anyhow::{Context, Result};
use gateway::GatewayEstate;
use journal::Follower;
use orchestrator::{Ends, GatewayPast, Shadow};
use protocol::checksum::digest;
use protocol::control::Control;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::segments::{self, completion_link, submit_link};
use protocol::stamps::{Point, Record, StampLog, key_with, keys_in};
use protocol::trading::{inbox, session_in, session_out};
use protocol::wire::{Instruction, Message, NOTHING, Order, Report, Side};
use shm::attached::Attached;
use shm::clock::Timebase;
use shm::memory::View;
use shm::ring::{spsc, spsc_mux};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// Recovers the engine, if that process is the engine's and keeps a journal: before its threads are built.
///
/// # Errors
/// A segment or a journal that is not what it should be.
pub(crate) fn recover(
    plan: &Plan,
    process: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<()> {
    if !plan.engine_has_journal() || !plan.roles_of(process).any(|role| role == Role::Orchestrator) {
        return Ok(());
    }
    let Some(options) = book::journal_options(plan.trading()) else { return Ok(()) };
    let comes_back = plan.engine_comes_back();
    let takeover = Takeover::of(attached);
    let now = (takeover.now)(plan);
    let thread = thread_of(plan, Role::Orchestrator)?;
    let log = log_of_orchestrator(plan, attached)?;
    let (followed, mut count) = estate::take(attached).unwrap_or_default();
    count.look(&log);
    let mut estate = count.estate;
    for gateway in (0..plan.trading().gateways()).filter(|_| comes_back) {
        estate.sent.push(attached.heir(&session_out(gateway))?.published());
        // Nobody is there to take what is in the inbox: it comes again.
        let left = attached.heir(&inbox(gateway))?.published();
        attached.successor(&inbox(gateway))?.skip_to(left);
    }
    let folder = journal_folder(plan);
    takeover.of_engine(&mut estate, &folder);
    let time = Timebase { start_ticks: control.start_ticks(), ns_per_tick: plan.ns_per_tick };
    let ends = ends(plan, comes_back, attached)?;
    let (shadow, ends, reader) = match followed.map(Follower::into_parts) {
        Some((shadow, reader)) => (shadow, ends, Some(reader)),
        None => {
            let orchestrator = orchestrator_parts(plan, ends, attached)?;
            let (shadow, ends) = Shadow::new(orchestrator, time, plan.stamps);
            (shadow, ends, None)
        }
    };
    let ends = Ends { desk: Some(segments::desk(attached)?), ..ends };
    let recovered = shadow.come_back(reader, (&folder, &options), estate, ends, now);
    let (orchestrator, mut recovered) =
        recovered.with_context(|| format!("the engine's journal in {}", folder.display()))?;
    takeover.of_recovered(&mut recovered);
    let words = segments::thread(attached, thread)?;
    let mut writer = StampLog::new(&words);
    recovered.unlogged.iter().for_each(|record| writer.append_record(*record));
    let mut gateways = Vec::new();
    for (index, past) in (0..).zip(&recovered.gateways).filter(|_| comes_back) {
        let gateway = recover_gateway(plan, index, past, (takeover.now)(plan), attached)?;
        gateways.push(takeover.of_gateway(gateway));
    }
    let engine = Engine { orchestrator: Some(orchestrator), recovered, gateways };
    *recovery(attached).lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
    Ok(())
}

/// Where the engine's journal is.
pub(super) fn journal_folder(plan: &Plan) -> PathBuf {
    Path::new(&plan.folder).join("journal-engine")
}

/// The log that the orchestrator stamps.
pub(super) fn log_of_orchestrator(plan: &Plan, attached: &mut Attached<'_>) -> Result<View> {
    Ok(segments::log(attached, thread_of(plan, Role::Orchestrator)?)?)
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

fn thread_of(plan: &Plan, role: Role) -> Result<&str> {
    let thread = plan.thread_of(role).with_context(|| format!("{role} has no thread"))?;
    Ok(&plan.threads[thread].name)
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
    let orders: Vec<Order> = last_order.into_iter().chain(first).collect();

    let wanted: HashSet<u64> = orders
        .iter()
        .flat_map(|order| order_keys(order, index))
        .chain(last_report.iter().chain(open.iter().flatten()).flat_map(report_keys))
        .collect();
    let words = segments::thread(attached, thread_of(plan, Role::Gateway(index))?)?;
    let there = keys_in(&words.clone().into(), &wanted);
    let mut log = Rest { log: StampLog::new(&words), there: &there };
    if let Some(order) = &last_order {
        log.order(order, None, index);
    }
    if let Some(order) = &first {
        log.order(order, Some(now), index);
    }
    if let Some(report) = &last_report {
        log.report(report, now);
    }
    let is_stamped = |report: &Report| report_keys(report)[..2].iter().any(|key| there.contains(key));
    let stamped = given(&open, is_stamped);
    open.iter().flatten().filter(|report| is_stamped(report)).for_each(|report| log.report(report, now));
    stamped.iter().for_each(|message| reported.add(digest(message)));
    let mut dispatched = past.sent;
    past.first.iter().for_each(|message| dispatched.add(digest(message)));
    let orders = past.orders + u64::from(first.is_some());
    Ok(GatewayEstate { orders, dispatched, first: past.first, completed, stamped, reported })
}

/// What a gateway had given of what its session still has, up to the last message that it gave: reports that it had stamped, and in the
/// place of what it refused what says nothing. All of it waited for room.
fn given(open: &[Option<Report>], is_stamped: impl Fn(&Report) -> bool) -> Vec<Message> {
    let is_given = |report: &Option<Report>| report.as_ref().is_some_and(&is_stamped);
    let count = open.iter().rposition(is_given).map_or(0, |last| last + 1);
    let message = |report: &Option<Report>| {
        report.as_ref().filter(|report| is_stamped(report)).map_or(NOTHING, Report::to_message)
    };
    open[..count].iter().map(message).collect()
}

/// All that a ring holds now, without giving anything back.
fn all_of(ring: &mut spsc::Consumer) -> Vec<Message> {
    std::iter::from_fn(|| ring.take().ok().flatten()).collect()
}

fn order_keys(order: &Order, gateway: u16) -> [u64; 2] {
    [key_with(Point::GatewayRecv, order.id, gateway as u8), key_with(Point::Instrument, order.id, 0)]
}

fn report_keys(report: &Report) -> [u64; 4] {
    let Report { id, number, .. } = *report;
    [
        key_with(Point::Cancelled, id, number),
        key_with(Point::GatewayDone, id, report.detail()),
        key_with(Point::FillQuantity, id, number),
        key_with(Point::FillPrice, id, number),
    ]
}

/// A gateway's log, and what of it is there.
struct Rest<'a> {
    log: StampLog,
    there: &'a HashSet<u64>,
}

impl Rest<'_> {
    fn append(&mut self, record: Record) {
        if !self.there.contains(&key_with(record.point, record.id, record.detail)) {
            self.log.append_record(record);
        }
    }

    /// What a gateway logs of an order that it takes; its stamp, if that may be missing.
    fn order(&mut self, order: &Order, stamp: Option<u64>, gateway: u16) {
        let id = order.id;
        if let Some(value) = stamp {
            self.append(Record { point: Point::GatewayRecv, id, detail: gateway as u8, value });
        }
        if order.instrument != 0 {
            self.append(Record { point: Point::Instrument, id, detail: 0, value: order.instrument.into() });
        }
    }

    /// What it logs of a report that it gives.
    fn report(&mut self, report: &Report, now: u64) {
        let Report { id, number, .. } = *report;
        self.append(Record { point: Point::GatewayDone, id, detail: report.detail(), value: now });
        if report.filled > 0 {
            let signed = match report.side {
                Side::Buy => report.filled,
                Side::Sell => report.filled.wrapping_neg(),
            };
            self.append(Record { point: Point::FillQuantity, id, detail: number, value: signed });
            let price = report.price.cast_unsigned();
            self.append(Record { point: Point::FillPrice, id, detail: number, value: price });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::wire::OrderId;

    #[test]
    fn what_was_given_is_known_by_its_stamps_and_what_is_no_report_is_counted() {
        let report = |n| {
            let order = Order { price: 1, quantity: 1, ..Order::new(OrderId::new(0, 0, n), 0) };
            gateway::in_full(&order)
        };
        let open = [None, Some(report(0)), None, Some(report(1)), Some(report(2)), None];
        let given_of = |stamped: u64| given(&open, |report| report.id.sequence() < stamped);
        assert_eq!(given_of(0), Vec::<Message>::new(), "nothing is known of the first: it is taken again");
        assert_eq!(given_of(1), [NOTHING, report(0).to_message()]);
        assert_eq!(given_of(2), [NOTHING, report(0).to_message(), NOTHING, report(1).to_message()]);
        assert_eq!(given_of(3).len(), 5);
    }
}

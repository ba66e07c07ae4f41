//! What an orchestrator with a journal does beside: it writes down what it takes before it gives the slot back, and lets reports wait
//! for the disk where that is wanted. None of it is on the way of an order without a journal.

use super::returns::Pushed;
use super::{BATCH, Event, Orchestrator};
use journal::Writer;
use protocol::agent::Cycle;
use protocol::checksum::digest;
use protocol::stamps::Point;
use protocol::wire::{Message, Order, OrderId, Report};
use shm::clock::Clock;
use shm::ring::Consumer;

/// A report that waits for the disk.
pub(crate) struct HeldReport {
    id: OrderId,
    number: u8,
    /// Its strategy.
    strategy: usize,
    message: Message,
    /// The record that must be there first.
    record: u64,
}

impl<R: Consumer> Orchestrator<R> {
    /// Writes down what is about to be acted on; whether it may be. True where there is no journal.
    #[inline]
    pub(crate) fn keep(&mut self, event: &Event, now: u64) -> bool {
        let Some(journal) = &mut self.journal else { return true };
        match event.append(journal, now) {
            Ok(()) => true,
            Err(error) => {
                self.failed = Some(format!("stops: its journal fails: {error}"));
                false
            }
        }
    }

    /// As [`Orchestrator::settle`], and what is taken is written down.
    #[inline(never)]
    pub(crate) fn settle_kept<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH {
            let Some((_, message)) = self.next_report(cycle.now) else { break };
            taken += 1;
            self.take_report(message, cycle);
        }
        self.reports += taken as u64;
        taken
    }

    /// As [`Orchestrator::dispatch`], and what is taken is written down.
    #[inline(never)]
    pub(crate) fn dispatch_kept<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH {
            let Some((from, message)) = self.next_order(cycle) else { break };
            taken += 1;
            self.accept(from, message, cycle);
        }
        if let Some((from, fault)) = self.submit.take_fault() {
            self.peer_fault(from, fault, cycle);
        }
        taken
    }

    /// The next report, written down. Its slot is given back then: what is not in the journal a successor takes again.
    #[inline(never)]
    pub(crate) fn next_report(&mut self, now: u64) -> Option<(Option<usize>, Message)> {
        let (from, message) = self.completion.take()?;
        let gateway = from.map(|gateway| gateway as u16);
        if !self.keep(&Event::Reported { gateway, message }, now) {
            return None;
        }
        self.completion.release();
        Some((from, message))
    }

    /// The next order, written down in the same way, behind what is known of fences; with it is decided whether it goes at once.
    #[inline(never)]
    pub(crate) fn next_order<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> Option<(Option<usize>, Message)> {
        // First: it may change which rings there are.
        self.catches_up(cycle);
        let (from, message) = self.submit.take()?;
        let has_room = Order::from_message(message).is_ok_and(|order| self.has_room_for(&order));
        self.decided = Some(has_room);
        let event = Event::Submitted { from: from.map(|strategy| strategy as u16), has_room, message };
        if !self.keep(&event, cycle.now) {
            return None;
        }
        self.submit.release();
        Some((from, message))
    }

    /// Whether the inbox of an order's gateway has room; an order may name a strategy or a venue that there is not.
    fn has_room_for(&mut self, order: &Order) -> bool {
        let is_known = usize::from(order.id.strategy()) < self.lines.len();
        is_known && {
            let gateway = self.gateway(order);
            self.inboxes.get_mut(gateway).is_some_and(|inbox| inbox.ring.has_room())
        }
    }

    /// Whether a report must wait for the disk.
    pub(crate) fn must_hold(&self) -> bool {
        let waits = |journal: &Writer| {
            journal.waits() && (!self.held.is_empty() || journal.settled() < journal.last())
        };
        self.journal.as_ref().is_some_and(waits)
    }

    /// Lets a report wait for the disk; its digest.
    pub(crate) fn hold(&mut self, strategy: usize, report: &Report, message: &Message) -> u64 {
        let record = self.journal.as_ref().map_or(0, Writer::last);
        let (id, number) = (report.id, report.number);
        self.held.push_back(HeldReport { id, number, strategy, message: *message, record });
        let digest = digest(message);
        self.returns[strategy].sum.add(digest);
        digest
    }

    /// Returns the reports whose records are on the disk; whether the journal is in order.
    #[inline]
    pub(crate) fn goes_on<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> bool {
        if !self.held.is_empty() {
            self.return_held(cycle);
        }
        self.failed.is_none()
    }

    #[inline(never)]
    fn return_held<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        if let Some(error) = self.journal.as_ref().and_then(Writer::failure) {
            self.failed = Some(format!("stops: its journal fails: {error}"));
            return;
        }
        let settled = self.journal.as_ref().map_or(u64::MAX, Writer::settled);
        while let Some(held) = self.held.pop_front_if(|held| held.record <= settled) {
            let HeldReport { id, number, strategy, message, .. } = held;
            // Also one whose strategy has died meanwhile: which reports have their stamp follows from their order.
            cycle.pass_with(Point::OrchReturn, id, number);
            if !self.lines[strategy].is_current(id) {
                self.orphan(strategy);
                continue;
            }
            match self.returns[strategy].push(&message) {
                Pushed::Returned => self.returned += 1,
                Pushed::Waits => {
                    self.full += 1;
                    self.returns_wait = true;
                }
                Pushed::Dropped => self.drops(strategy, cycle),
            }
        }
    }
}

//! Orders that passed the checks and wait for room in their gateway's inbox: how they get there, and how they leave.

use super::{BATCH, Event, Orchestrator};
use crate::risk::Reject;
use crate::waiting::Gap;
use protocol::agent::Cycle;
use protocol::checksum::digest;
use protocol::wire::{CancelScope, Message, Order};
use shm::clock::Clock;
use shm::ring::Consumer;

impl<R: Consumer> Orchestrator<R> {
    /// An order whose gateway takes none now. Nothing of it is stamped before it is dispatched: until then it can be rejected.
    #[cold]
    pub(crate) fn wait<C: Clock>(
        &mut self,
        from: Option<usize>,
        order: &Order,
        message: &Message,
        cycle: &mut Cycle<C>,
    ) {
        self.lines[usize::from(order.id.strategy())].taken.add(digest(message));
        self.full += 1;
        if self.waiting.push(self.gateway(order), message) {
            self.opens(order);
            self.waiting_peak = self.waiting_peak.max(self.waiting.len());
            return;
        }
        if let Some(left) = self.venue_budget(order) {
            *left += 1;
        }
        self.reject(from, order, Reject::VenueBusy, cycle);
    }

    /// Dispatches what waits, venue by venue, as far as there is room; how many.
    #[cold]
    pub(crate) fn flush_waiting<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut flushed = 0;
        for venue in 0..self.inboxes.len() {
            for _ in 0..BATCH {
                if !self.waiting.has(venue)
                    || !self.inboxes[venue].ring.has_room()
                    || !self.keep(&Event::Flushed { gateway: venue as u16 }, cycle.now)
                {
                    break;
                }
                self.flush_one(venue, cycle);
                flushed += 1;
            }
        }
        flushed
    }

    /// Dispatches the first order that waits for a gateway whose inbox has room.
    pub(crate) fn flush_one<C: Clock>(&mut self, gateway: usize, cycle: &mut Cycle<C>) {
        let Some(message) = self.waiting.pop(gateway) else { return };
        // It was an order when it was taken.
        let Ok(order) = Order::from_message(message) else { return };
        self.send(&order, &message, cycle);
    }

    /// Takes the orders that the scope concerns out of the waiting room and rejects them: they have not left the engine, so no
    /// venue need be told.
    #[cold]
    pub(crate) fn turn_away<C: Clock>(&mut self, scope: CancelScope, reason: Reject, cycle: &mut Cycle<C>) {
        self.turn_away_if(|order| scope.concerns(order.id, order.instrument), reason, cycle);
    }

    /// The same with those that are meant.
    #[cold]
    pub(crate) fn turn_away_if<C: Clock>(
        &mut self,
        is_meant: impl Fn(&Order) -> bool,
        reason: Reject,
        cycle: &mut Cycle<C>,
    ) {
        let orders = |message: &Message| Order::from_message(*message).ok();
        for venue in 0..self.inboxes.len() {
            let mut gap = Gap::FRONT;
            let wanted = |message: &Message| orders(message).is_some_and(|order| is_meant(&order));
            while let Some(order) = self.waiting.take(venue, &mut gap, wanted).as_ref().and_then(orders) {
                let is_current = self.lines[usize::from(order.id.strategy())].is_current(order.id);
                self.withdraws(&order, is_current);
                if is_current {
                    self.reject(None, &order, reason, cycle);
                } else {
                    self.refuse_waiting(order.id, cycle);
                }
            }
        }
    }
}

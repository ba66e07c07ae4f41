//! A strategy that sends what no honest one does: a producer between its session and the ring.

use protocol::wire::{MAX_EPOCH, Order, OrderId};
use shm::ring::step::whole;
use shm::ring::{Full, Message, Producer, Step};
use shm::sync::{AtomicU64, Ordering};
use std::ops::ControlFlow;
use std::sync::Arc;
use system::names;

names! {
    /// What is sent in place of an order.
    Attack {
        /// Words that are no order.
        Garbage = "garbage",
        /// The order of another strategy.
        ForeignId = "foreign-id",
        /// An order of an incarnation that there is not.
        WrongEpoch = "wrong-epoch",
        /// The order, twice.
        Repeat = "repeat",
        /// The order after the next one.
        Gap = "gap",
        /// An order to a venue that there is not.
        UnknownVenue = "unknown-venue",
    }
}

/// The producer of a hostile strategy.
pub(super) struct Hostile<P> {
    pub inner: P,
    pub attack: Attack,
    /// The first order that is tampered with.
    pub from: u64,
    /// Strategies of the run.
    pub strategies: u16,
    /// Messages that were tampered with and taken by the ring.
    pub sent: Arc<AtomicU64>,
}

impl<P: Producer> Producer for Hostile<P> {
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.push(message))
    }

    fn withdraw(&mut self) {
        self.inner.withdraw();
    }
}

impl<P: Producer> Hostile<P> {
    fn push(&mut self, message: &Message) -> Result<(), Full> {
        let Some(order) = Order::from_message(*message).ok().filter(|order| order.id.sequence() >= self.from)
        else {
            return self.inner.try_push(message);
        };
        let id = order.id;
        let (strategy, epoch, sequence) = (id.strategy(), id.epoch(), id.sequence());
        let forged = |id| Order { id, ..order }.to_message();
        let tampered = match self.attack {
            Attack::Garbage => [u64::MAX - sequence; shm::ring::MESSAGE_WORDS],
            Attack::ForeignId => forged(OrderId::new((strategy + 1) % self.strategies, 0, sequence)),
            Attack::WrongEpoch => forged(OrderId::new(strategy, (epoch + 1).min(MAX_EPOCH), sequence)),
            Attack::Repeat => *message,
            Attack::Gap => forged(OrderId::new(strategy, epoch, sequence + 1)),
            Attack::UnknownVenue => Order { venue: u16::MAX, ..order }.to_message(),
        };
        self.inner.try_push(&tampered)?;
        let mut sent = 1;
        if self.attack == Attack::Repeat {
            sent = u64::from(self.inner.try_push(&tampered).is_ok());
        }
        self.sent.fetch_add(sent, Ordering::Relaxed);
        Ok(())
    }
}

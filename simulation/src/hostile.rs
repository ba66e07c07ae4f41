//! A hostile strategy: a producer between its session and the ring tampers with its messages.

use anyhow::Result;
use protocol::agent::Agent;
use protocol::index::StrategyIndex;
use protocol::plan::Plan;
use protocol::segments::submit_link;
use protocol::wire::{MAX_EPOCH, Order, OrderId, OrderRequest};
use roles::{BoxedEnds, BoxedProducer};
use shm::attached::Attached;
use shm::ring::step::whole;
use shm::ring::{Full, Message, Producer, Step};
use shm::sync::{AtomicU64, Ordering};
use std::ops::ControlFlow;
use std::sync::Arc;
use system::clock;
use system::named_enum;

named_enum! {
    /// What is sent instead of an order.
    Attack {
        /// Words that do not form an order.
        Garbage = "garbage",
        /// The order of another strategy.
        ForeignId = "foreign-id",
        /// An order of a nonexistent incarnation.
        WrongEpoch = "wrong-epoch",
        /// The order, twice.
        Repeat = "repeat",
        /// The order after the next one.
        Gap = "gap",
        /// An order to a nonexistent venue.
        UnknownVenue = "unknown-venue",
    }
}

/// Builds the first incarnation of a hostile strategy, which attacks from `first_order` on. It
/// counts the messages that it tampered with.
///
/// # Errors
/// A segment that does not match the plan.
pub(super) fn agent(
    plan: &Plan,
    strategy: StrategyIndex,
    ends: BoxedEnds,
    (attack, first_order, tampered_count): (Attack, u64, Arc<AtomicU64>),
    attached: &mut Attached<'_>,
) -> Result<Box<dyn Agent<clock::AnyClock>>> {
    let inner = (ends.producer)(&submit_link(plan), strategy.as_usize(), attached)?;
    let strategies = plan.trading().strategies;
    let submit =
        BoxedProducer::new(HostileProducer { inner, attack, first_order, strategies, tampered_count });
    Ok(Box::new(roles::strategy(plan, strategy, 0, submit, attached)?))
}

/// The producer of a hostile strategy.
struct HostileProducer {
    inner: BoxedProducer,
    attack: Attack,
    /// The first order that is tampered with.
    first_order: u64,
    /// Strategies of the run.
    strategies: u16,
    /// Messages that were tampered with and taken by the ring.
    tampered_count: Arc<AtomicU64>,
}

impl Producer for HostileProducer {
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

impl HostileProducer {
    fn push(&mut self, message: &Message) -> Result<(), Full> {
        let Some(order) =
            Order::from_message(*message).ok().filter(|order| order.id.sequence() >= self.first_order)
        else {
            return self.inner.try_push(message);
        };
        let id = order.id;
        let (strategy, epoch, sequence) = (id.strategy().0, id.epoch(), id.sequence());
        let forged = |id| Order { id, ..order }.to_message();
        let tampered = match self.attack {
            Attack::Garbage => [u64::MAX - sequence; shm::ring::MESSAGE_WORDS],
            Attack::ForeignId => forged(OrderId::new((strategy + 1) % self.strategies, 0, sequence)),
            Attack::WrongEpoch => forged(OrderId::new(strategy, (epoch + 1).min(MAX_EPOCH), sequence)),
            Attack::Repeat => *message,
            Attack::Gap => forged(OrderId::new(strategy, epoch, sequence + 1)),
            Attack::UnknownVenue => {
                OrderRequest { venue: u16::MAX, ..order.request }.with_id(order.id).to_message()
            }
        };
        self.inner.try_push(&tampered)?;
        let mut message_count = 1;
        if self.attack == Attack::Repeat {
            message_count = u64::from(self.inner.try_push(&tampered).is_ok());
        }
        self.tampered_count.fetch_add(message_count, Ordering::Relaxed);
        Ok(())
    }
}

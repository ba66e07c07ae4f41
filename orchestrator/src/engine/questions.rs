//! Queries of the state machine that the shell makes before it creates an input. Answers change
//! nothing.

use super::{Core, Counts, Input};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::supervision::Incarnation;
use protocol::wire::{Message, Order, OrderId};

impl Core {
    /// Returns the totals, without an order that is not booked yet.
    #[inline(always)]
    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns `true` if a message claims to be its strategy's next order.
    #[inline(always)]
    pub(crate) fn is_next_order(&self, message: &Message) -> bool {
        let id = OrderId::from_word(message[0]);
        self.sessions.get(id.strategy()).is_some_and(|session| session.is_next(id))
    }

    /// Returns `true` if an order in the queue to its gateway must not be sent any more. Its sender
    /// or its gateway is dead, or a kill switch stops it.
    #[cold]
    pub fn should_recall(&self, message: &Message) -> bool {
        let Ok(order) = Order::from_message(*message) else { return false };
        let strategy = order.id.strategy();
        self.sessions.get(strategy).is_some_and(|session| {
            let is_down = || self.is_down(self.gateway_of(strategy, order.request.venue));
            !session.is_current(order.id) || self.risk.is_stopped(&order) || is_down()
        })
    }

    /// Returns `true` if an order or a report is of its strategy's current incarnation.
    pub(crate) fn is_current(&self, id: OrderId) -> bool {
        self.sessions[id.strategy()].is_current(id)
    }

    /// Returns the input for a strategy's incarnation; `None` if its session stays as it is.
    pub(crate) fn lifecycle_input(&self, strategy: StrategyIndex, life: Incarnation) -> Option<Input> {
        let session = &self.sessions[strategy];
        let is_changed = session.is_begun_by(life) || session.is_ended_by(life);
        is_changed.then_some(Input::Lifecycle { strategy, life })
    }

    /// Returns the input for a gateway's incarnation; `None` if it changes nothing for its session.
    pub(crate) fn gateway_life_input(&self, gateway: GatewayIndex, life: Incarnation) -> Option<Input> {
        self.gateways[gateway].is_changed_by(life).then_some(Input::GatewayLife { gateway, life })
    }

    /// Returns `true` while the memory of a dead strategy or gateway is being drained.
    #[inline(always)]
    pub(crate) const fn has_retirements(&self) -> bool {
        self.dying > 0
    }

    /// Returns `true` while a dead strategy's orders are being drained.
    pub(crate) fn is_dying(&self, strategy: StrategyIndex) -> bool {
        self.sessions[strategy].is_dying()
    }

    /// Returns `true` while a dead gateway's reports are being drained.
    pub(crate) fn is_closing(&self, gateway: GatewayIndex) -> bool {
        self.gateways[gateway].is_closing()
    }
}

//! The strategy that pays a planted cost.

use crate::cost::{Cost, Payment};
use launcher::protocol::index::StrategyIndex;
use launcher::protocol::plan::Role;
use launcher::protocol::wire::OrderId;
use launcher::strategy::{Context, MarketTick, OrderRequest, Orders, Player, Refused, Strategy};
use launcher::system::clock::Timebase;

/// Where a strategy lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In the engine's process: the level `thread`.
    Thread,
    /// In a process of its own: every other level.
    Process,
}

impl Side {
    /// Returns where a strategy of this process lives. A process of its own was started with the
    /// strategy's name among its words.
    pub fn of(context: &Context) -> Self {
        let name = Role::Strategy(StrategyIndex(context.strategy)).to_string();
        if std::env::args().any(|word| word == name) { Self::Process } else { Self::Thread }
    }
}

/// The built-in strategy with a planted cost: CPU time, a page fault, a sleep or a stall between
/// the due time of an order and its sending.
pub struct Planted {
    player: Player,
    payment: Option<Payment>,
}

impl Planted {
    /// Creates the strategy with a cost of each order; `None`: it costs what the player costs.
    pub fn new(context: &Context, cost: Option<Cost>) -> Self {
        Self { player: context.player(), payment: cost.map(Payment::new) }
    }
}

/// Orders that are paid for before they are sent.
struct Paid<'a, O> {
    orders: &'a mut O,
    payment: &'a mut Option<Payment>,
}

impl<O: Orders> Orders for Paid<'_, O> {
    #[inline]
    fn send_due(&mut self, order: OrderRequest, due: Option<u64>) -> Result<OrderId, Refused> {
        if let Some(payment) = self.payment {
            payment.pay();
        }
        self.orders.send_due(order, due)
    }
    #[inline]
    fn next_tick(&mut self) -> Option<MarketTick> {
        self.orders.next_tick()
    }
    #[inline]
    fn open(&self) -> u64 {
        self.orders.open()
    }
    #[inline]
    fn now(&self) -> u64 {
        self.orders.now()
    }
    #[inline]
    fn time(&self) -> Timebase {
        self.orders.time()
    }
}

impl Strategy for Planted {
    #[inline(always)]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        self.player.on_cycle(&mut Paid { orders, payment: &mut self.payment })
    }

    fn next_due(&self) -> u64 {
        self.player.next_due()
    }

    fn finished(&self) -> bool {
        self.player.finished()
    }
}

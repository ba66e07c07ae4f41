//! A liquidity taker: trades against resting orders at the times of its schedule.
//!
//! Each new order of the schedule becomes an immediate-or-cancel order of the same side and
//! quantity, whose limit is [`MAX_SLIPPAGE`] worse than the scheduled price. Scheduled cancels are
//! skipped, because none of its orders rests.
//!
//! With market data, an order that would not trade at the current top of book waits for one at
//! which it would; at the latest it is sent when the next order is due.

use crate::player::{OrderShaper, Player};
use crate::{MarketTick, Orders, Strategy, TopOfBook};
use protocol::wire::{Operation, OrderId, OrderRequest, OrderTerms, OrderType, SelfTrade, Side, TimeInForce};

/// In cents.
const MAX_SLIPPAGE: i64 = 100;

/// A strategy that takes liquidity: it trades against resting orders at the times of its schedule.
pub struct Taker {
    player: Player,
    state: TakerState,
}

#[derive(Default)]
struct TakerState {
    /// The last top of book of each venue, of instrument 0, which its schedule trades.
    touches: Vec<Option<TopOfBook>>,
    /// The order that waits for a top of book at which it trades, with its intended time in ticks.
    waiting: Option<(OrderRequest, Option<u64>)>,
}

impl Taker {
    /// Creates a taker that trades at the first `venues` venues, at the times of the run's schedule
    /// of orders, which `player` reads.
    pub fn new(player: Player, venues: u16) -> Self {
        Self { player, state: TakerState { touches: vec![None; venues.into()], waiting: None } }
    }
}

fn immediate_order(scheduled: &OrderRequest) -> Option<OrderRequest> {
    if scheduled.operation != Operation::New || scheduled.quantity == 0 {
        return None;
    }
    let terms = OrderTerms {
        time_in_force: TimeInForce::ImmediateOrCancel,
        self_trade: SelfTrade::CancelNewest,
        ..scheduled.terms
    };
    let price = match scheduled.side {
        // A recorded market order has no price.
        _ if scheduled.price == 0 || scheduled.terms.order_type == OrderType::Market => scheduled.price,
        Side::Buy => scheduled.price.saturating_add(MAX_SLIPPAGE),
        Side::Sell => scheduled.price.saturating_sub(MAX_SLIPPAGE).max(1),
    };
    Some(OrderRequest { price, terms, ..*scheduled })
}

fn can_trade(order: &OrderRequest, touch: &TopOfBook) -> bool {
    let best = match order.side {
        Side::Buy => touch.offer,
        Side::Sell => touch.bid,
    };
    best.is_some_and(|best| match order.side {
        _ if order.price == 0 || order.terms.order_type == OrderType::Market => true,
        Side::Buy => best.price <= order.price,
        Side::Sell => best.price >= order.price,
    })
}

impl OrderShaper for TakerState {
    fn shape_order(&mut self, scheduled: &OrderRequest, due: Option<u64>) -> Option<OrderRequest> {
        let order = immediate_order(scheduled)?;
        let touch = self.touches.get(usize::from(order.venue)).copied().flatten();
        // At most one order waits: orders that are due together are sent.
        if self.waiting.is_some() || touch.is_none_or(|touch| can_trade(&order, &touch)) {
            return Some(order);
        }
        self.waiting = Some((order, due));
        None
    }

    fn on_sent(&mut self, _: &OrderRequest, _: OrderId) {}
}

impl TakerState {
    /// Updates the market data. Returns the waiting order if it now would trade, with its trigger
    /// and its intended time.
    fn record_tick(&mut self, tick: &MarketTick, now: u64) -> Option<(OrderRequest, Option<u64>)> {
        if tick.instrument != 0 {
            return None;
        }
        *self.touches.get_mut(usize::from(tick.venue))? = Some(tick.top);
        let (order, due) = self.waiting?;
        if order.venue != tick.venue || !can_trade(&order, &tick.top) {
            return None;
        }
        // Its intended time is when it could first trade.
        let due = due.map(|due| tick.written.min(now).max(due));
        Some((OrderRequest { trigger: tick.version, ..order }, due))
    }
}

impl Strategy for Taker {
    const ON_MARKET_DATA: bool = true;

    #[inline(never)]
    fn on_market_data(&mut self, tick: &MarketTick, orders: &mut impl Orders) {
        if let Some((order, due)) = self.state.record_tick(tick, orders.now())
            && orders.send_due(order, due).is_ok()
        {
            self.state.waiting = None;
        }
    }

    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.player.due() > orders.now() && !(self.state.waiting.is_some() && self.player.finished()) {
            return 0;
        }
        let mut sent = 0;
        if let Some((order, due)) = self.state.waiting {
            if orders.send_due(order, due).is_err() {
                return 0;
            }
            self.state.waiting = None;
            sent += 1;
        }
        sent + self.player.send_due(orders, &mut self.state)
    }

    fn next_due(&self) -> u64 {
        if self.state.waiting.is_some() && self.player.finished() { 0 } else { self.player.next_due() }
    }

    fn finished(&self) -> bool {
        self.player.finished() && self.state.waiting.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quote;

    #[test]
    fn taker_sends_ioc_at_worse_price() {
        let scheduled = OrderRequest { price: 1_000, quantity: 3, ..OrderRequest::to_venue(0) };
        let taken = immediate_order(&scheduled).unwrap();
        assert_eq!((taken.price, taken.quantity), (1_000 + MAX_SLIPPAGE, 3));
        assert_eq!(taken.terms.time_in_force, TimeInForce::ImmediateOrCancel);
        let sell = immediate_order(&OrderRequest { side: Side::Sell, ..scheduled }).unwrap();
        assert_eq!(sell.price, 1_000 - MAX_SLIPPAGE);
        assert_eq!(
            immediate_order(&OrderRequest { side: Side::Sell, price: 50, ..scheduled }).unwrap().price,
            1
        );
        assert_eq!(
            immediate_order(&OrderRequest { price: 0, ..scheduled }).unwrap().price,
            0,
            "at any price"
        );
        assert_eq!(immediate_order(&OrderRequest { price: i64::MAX, ..scheduled }).unwrap().price, i64::MAX);
        assert_eq!(immediate_order(&OrderRequest { operation: Operation::Cancel, ..scheduled }), None);
    }

    fn tick(version: u64, offer: i64) -> MarketTick {
        let offer = Some(Quote { price: offer, quantity: 5 });
        let touch = TopOfBook { offer, ..TopOfBook::default() };
        MarketTick { venue: 1, instrument: 0, version, written: 70, missed: 0, top: touch }
    }

    #[test]
    fn taker_waits_for_tradable_quote_and_names_trigger() {
        let scheduled = OrderRequest { price: 1_000, quantity: 3, ..OrderRequest::to_venue(1) };
        let due = Some(50);
        let mut state = TakerState { touches: vec![None; 2], waiting: None };
        assert!(state.shape_order(&scheduled, due).is_some(), "no market data yet");
        assert_eq!(state.record_tick(&tick(1, 1_101), 60), None, "nothing waits");
        assert_eq!(state.shape_order(&scheduled, due), None);
        assert_eq!(state.record_tick(&tick(2, 1_101), 60), None, "the offer is above its limit");
        let other_venue = MarketTick { venue: 0, ..tick(9, 1_000) };
        assert_eq!(state.record_tick(&other_venue, 60), None, "a quote at another venue");
        assert_eq!(state.record_tick(&MarketTick { instrument: 1, ..tick(9, 1_000) }, 60), None);
        let (order, at) = state.record_tick(&tick(3, 1_100), 80).unwrap();
        assert_eq!((order.trigger, at, order.price), (3, Some(70), 1_100));
        assert_eq!(state.record_tick(&tick(3, 1_100), 60).unwrap().1, Some(60), "never later than now");
        assert!(state.shape_order(&scheduled, due).is_some(), "it trades with the current offer");
        assert_eq!(state.record_tick(&MarketTick { venue: 77, ..tick(1, 1) }, 1), None, "no such venue");
    }
}

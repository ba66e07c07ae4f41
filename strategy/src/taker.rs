//! A taker: takes what others have put into the book, at the times of its schedule.
//!
//! Each new order of the schedule becomes an immediate-or-cancel order of the same side and
//! quantity, whose limit is [`REACH`] worse than the scheduled price: it pays for being served at
//! once. A scheduled cancel is left out, as nothing of it ever rests.
//!
//! Where there is market data it looks before it fires. What would take nothing now, because the
//! venue's touch shows nobody within its limit, waits for a touch that does, and fires on that one;
//! at the latest it is sent when the next order is due.

use crate::player::{Player, Shape};
use crate::{MarketTick, NewOrder, Orders, Strategy, TopOfBook};
use protocol::wire::{Operation, OrderId, OrderTerms, OrderType, SelfTrade, Side, TimeInForce};

/// How much worse than the scheduled price it takes, in cents.
pub const REACH: i64 = 100;

/// See the module.
pub struct Taker {
    player: Player,
    desk: Desk,
}

/// What it knows.
#[derive(Default)]
struct Desk {
    /// What was last heard of each venue, of instrument 0, which is what its schedule trades.
    heard: Vec<Option<TopOfBook>>,
    /// What waits for a touch that it can take.
    waiting: Option<NewOrder>,
}

impl Taker {
    /// A taker at so many venues that follows these times.
    pub fn new(player: Player, venues: u16) -> Self {
        Self { player, desk: Desk { heard: vec![None; venues.into()], waiting: None } }
    }
}

/// Takes at once, or not at all.
fn at_once(scheduled: &NewOrder) -> Option<NewOrder> {
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
        Side::Buy => scheduled.price.saturating_add(REACH),
        Side::Sell => scheduled.price.saturating_sub(REACH).max(1),
    };
    Some(NewOrder { price, terms, ..*scheduled })
}

/// Whether the order would take something of that touch.
fn takes(order: &NewOrder, touch: &TopOfBook) -> bool {
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

impl Shape for Desk {
    fn shape(&mut self, scheduled: &NewOrder) -> Option<NewOrder> {
        let order = at_once(scheduled)?;
        let touch = self.heard.get(usize::from(order.venue)).copied().flatten();
        // One waits, no more: orders that are due together have no time to wait.
        if self.waiting.is_some() || touch.is_none_or(|touch| takes(&order, &touch)) {
            return Some(order);
        }
        self.waiting = Some(order);
        None
    }

    fn sent(&mut self, _: &NewOrder, _: OrderId) {}
}

impl Desk {
    /// What waits and can take something of that touch, triggered by it.
    fn hear(&mut self, tick: &MarketTick, now: u64) -> Option<NewOrder> {
        if tick.instrument != 0 {
            return None;
        }
        *self.heard.get_mut(usize::from(tick.venue))? = Some(tick.top);
        let waiting = self.waiting.filter(|order| order.venue == tick.venue && takes(order, &tick.top))?;
        // It was due when there was somebody to trade with.
        let due = waiting.due.map(|due| tick.written.min(now).max(due));
        Some(NewOrder { trigger: tick.version, due, ..waiting })
    }
}

impl Strategy for Taker {
    const ON_MARKET_DATA: bool = true;

    #[inline(never)]
    fn on_market_data(&mut self, tick: &MarketTick, orders: &mut impl Orders) {
        if let Some(order) = self.desk.hear(tick, orders.now())
            && orders.send(order).is_ok()
        {
            self.desk.waiting = None;
        }
    }

    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.player.due() > orders.now() && !(self.desk.waiting.is_some() && self.player.finished()) {
            return 0;
        }
        let mut sent = 0;
        if let Some(order) = self.desk.waiting {
            if orders.send(order).is_err() {
                return 0;
            }
            self.desk.waiting = None;
            sent += 1;
        }
        sent + self.player.send_due(orders, &mut self.desk)
    }

    fn next_due(&self) -> u64 {
        if self.desk.waiting.is_some() && self.player.finished() { 0 } else { self.player.next_due() }
    }

    fn finished(&self) -> bool {
        self.player.finished() && self.desk.waiting.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quote;

    #[test]
    fn it_takes_at_once_at_a_worse_price_than_was_scheduled() {
        let scheduled = NewOrder { price: 1_000, quantity: 3, ..NewOrder::to_venue(0) };
        let taken = at_once(&scheduled).unwrap();
        assert_eq!((taken.price, taken.quantity), (1_000 + REACH, 3));
        assert_eq!(taken.terms.time_in_force, TimeInForce::ImmediateOrCancel);
        let sold = at_once(&NewOrder { side: Side::Sell, ..scheduled }).unwrap();
        assert_eq!(sold.price, 1_000 - REACH);
        assert_eq!(at_once(&NewOrder { side: Side::Sell, price: 50, ..scheduled }).unwrap().price, 1);
        assert_eq!(at_once(&NewOrder { price: 0, ..scheduled }).unwrap().price, 0, "at any price");
        assert_eq!(at_once(&NewOrder { price: i64::MAX, ..scheduled }).unwrap().price, i64::MAX);
    }

    #[test]
    fn nothing_of_it_rests_so_it_cancels_nothing() {
        let cancel = NewOrder { operation: Operation::Cancel, quantity: 0, ..NewOrder::to_venue(0) };
        assert_eq!(at_once(&cancel), None);
    }

    fn tick(version: u64, offer: i64) -> MarketTick {
        let offer = Some(Quote { price: offer, quantity: 5 });
        let touch = TopOfBook { offer, ..TopOfBook::default() };
        MarketTick { venue: 1, instrument: 0, version, written: 70, missed: 0, top: touch }
    }

    #[test]
    fn it_waits_for_a_touch_that_it_can_take_and_says_which_one_it_was() {
        let scheduled = NewOrder { price: 1_000, quantity: 3, due: Some(50), ..NewOrder::to_venue(1) };
        let mut desk = Desk { heard: vec![None; 2], waiting: None };
        assert!(desk.shape(&scheduled).is_some(), "it knows nothing of the market");
        assert_eq!(desk.hear(&tick(1, 1_101), 60), None, "nothing waits");
        assert_eq!(desk.shape(&scheduled), None);
        assert_eq!(desk.hear(&tick(2, 1_101), 60), None, "beyond its limit");
        assert_eq!(desk.hear(&MarketTick { venue: 0, ..tick(9, 1_000) }, 60), None, "at another venue");
        assert_eq!(desk.hear(&MarketTick { instrument: 1, ..tick(9, 1_000) }, 60), None);
        let fired = desk.hear(&tick(3, 1_100), 80).unwrap();
        assert_eq!((fired.trigger, fired.due, fired.price), (3, Some(70), 1_100));
        assert_eq!(desk.hear(&tick(3, 1_100), 60).unwrap().due, Some(60), "never later than now");
        assert!(desk.shape(&scheduled).is_some(), "it takes what is there now");
        assert_eq!(desk.hear(&MarketTick { venue: 77, ..tick(1, 1) }, 1), None, "no such venue");
    }
}

//! One instrument's book: both sides sorted, waiting stop orders, and how orders trade.

use exchange::{CancelReason, Event, Instrument, NewOrder, OrderType, SelfTrade, Side, TimeInForce};
use std::collections::VecDeque;

/// An order that is open: in the book, or a stop order that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    pub order: NewOrder,
    pub leaves: u64,
    pub shown: u64,
    pub arrival: u64,
    /// It is a stop order that was not triggered yet.
    pub waits: bool,
}

#[derive(Clone)]
pub struct Book {
    pub rules: Instrument,
    /// Bids and offers, in priority.
    pub orders: [Vec<OpenOrder>; 2],
    /// Waiting buy stops from the lowest, sell stops from the highest, in order of arrival.
    pub stops: [Vec<OpenOrder>; 2],
    /// Triggered stop orders, which wait until the current order is done.
    queue: VecDeque<OpenOrder>,
    pub auction: bool,
    pub last: Option<i64>,
}

fn opposite(side: Side) -> Side {
    match side {
        Side::Buy => Side::Sell,
        Side::Sell => Side::Buy,
    }
}

/// Returns `true` if price `a` has priority over price `b` on this side of the book.
fn has_priority(side: Side, a: i64, b: i64) -> bool {
    match side {
        Side::Buy => a > b,
        Side::Sell => a < b,
    }
}

/// Returns `true` if a trade at this price triggers a stop order.
pub fn triggers(trade: i64, order: &NewOrder) -> bool {
    match order.side {
        Side::Buy => order.stop_price <= trade,
        Side::Sell => order.stop_price >= trade,
    }
}

fn at_any_price(order: &NewOrder) -> bool {
    matches!(order.order_type, OrderType::Market | OrderType::Stop)
}

impl OpenOrder {
    /// Returns the price that events report: a waiting order's stop price, 0 for any price.
    pub fn price(&self) -> i64 {
        match self.order.price {
            _ if self.waits => self.order.stop_price,
            _ if at_any_price(&self.order) => 0,
            price => price,
        }
    }

    /// Returns the event of the order's cancellation.
    pub fn cancelled(&self, reason: CancelReason) -> Event {
        let NewOrder { id, side, .. } = self.order;
        Event::Cancelled { id, side, price: self.price(), leaves: self.leaves, reason }
    }

    /// Displays a full part, or the remainder.
    fn refresh(&mut self) {
        self.shown = if self.order.display == 0 { self.leaves } else { self.order.display.min(self.leaves) };
    }

    /// Reduces the open quantity, hidden quantity first.
    pub fn reduce(&mut self, quantity: u64) {
        self.leaves -= quantity;
        self.shown = self.shown.min(self.leaves);
    }
}

impl Book {
    pub fn new(rules: Instrument) -> Book {
        let none = || [Vec::new(), Vec::new()];
        Book { rules, orders: none(), stops: none(), queue: VecDeque::new(), auction: false, last: None }
    }

    /// Adds an order at the end of its price's queue.
    pub fn rest(&mut self, mut open: OpenOrder) {
        open.refresh();
        let (side, price) = (open.order.side, open.order.price);
        let orders = &mut self.orders[side as usize];
        let index = orders
            .iter()
            .position(|other| has_priority(side, price, other.order.price))
            .unwrap_or(orders.len());
        orders.insert(index, open);
    }

    pub fn wait(&mut self, mut open: OpenOrder) {
        open.waits = true;
        let (side, price) = (open.order.side, open.order.stop_price);
        let stops = &mut self.stops[side as usize];
        let index = stops
            .iter()
            .position(|other| has_priority(opposite(side), price, other.order.stop_price))
            .unwrap_or(stops.len());
        stops.insert(index, open);
    }

    pub fn reaches(&self, side: Side, price: i64) -> bool {
        self.orders[opposite(side) as usize]
            .first()
            .is_some_and(|best| !has_priority(side, best.order.price, price))
    }

    fn trigger(&mut self, trade: i64) {
        for stops in &mut self.stops {
            while stops.first().is_some_and(|first| triggers(trade, &first.order)) {
                self.queue.push_back(OpenOrder { waits: false, ..stops.remove(0) });
            }
        }
    }

    fn record_trade(
        &mut self,
        maker: &OpenOrder,
        taker: &OpenOrder,
        price: i64,
        quantity: u64,
        trades: &mut u64,
        events: &mut Vec<Event>,
    ) {
        events.push(Event::Trade {
            number: *trades,
            instrument: maker.order.instrument,
            maker: maker.order.id,
            taker: taker.order.id,
            taker_side: taker.order.side,
            price,
            quantity,
            maker_leaves: maker.leaves,
            taker_leaves: taker.leaves,
        });
        *trades += 1;
        self.last = Some(price);
    }

    /// Matches an order as far as its price allows. Returns its remainder.
    pub fn match_with(
        &mut self,
        mut taker: OpenOrder,
        trades: &mut u64,
        events: &mut Vec<Event>,
    ) -> Option<OpenOrder> {
        let (side, opposite_side) = (taker.order.side, opposite(taker.order.side) as usize);
        while taker.leaves > 0 && (at_any_price(&taker.order) || self.reaches(side, taker.order.price)) {
            if self.orders[opposite_side].is_empty() {
                break;
            }
            let mut maker = self.orders[opposite_side].remove(0);
            if maker.order.owner == taker.order.owner && taker.order.self_trade != SelfTrade::Allow {
                let stays = prevent(&mut maker, &mut taker, events);
                if stays {
                    self.orders[opposite_side].insert(0, maker);
                }
                if taker.leaves == 0 {
                    return None;
                }
                continue;
            }
            let quantity = taker.leaves.min(maker.shown);
            taker.leaves -= quantity;
            maker.leaves -= quantity;
            maker.shown -= quantity;
            let price = maker.order.price;
            self.record_trade(&maker, &taker, price, quantity, trades, events);
            if maker.shown > 0 {
                self.orders[opposite_side].insert(0, maker);
            } else if maker.leaves > 0 {
                self.rest(maker);
            }
            self.trigger(price);
        }
        (taker.leaves > 0).then_some(taker)
    }

    /// Returns the quantity that an order must trade at once, if any: all of it, or its minimum.
    fn required(order: &NewOrder) -> Option<(u64, CancelReason)> {
        match order.time_in_force {
            TimeInForce::FillOrKill => Some((order.quantity, CancelReason::FillOrKill)),
            _ if order.minimum > 0 => Some((order.minimum, CancelReason::Minimum)),
            _ => None,
        }
    }

    /// Returns the quantity that an order would trade, by matching it in a copy.
    fn would_trade(&self, taker: &OpenOrder) -> u64 {
        let mut events = Vec::new();
        self.clone().match_with(taker.clone(), &mut 0, &mut events);
        let quantity = |event: &Event| if let Event::Trade { quantity, .. } = event { *quantity } else { 0 };
        events.iter().map(quantity).sum()
    }

    /// Executes a new or triggered order.
    pub fn execute(&mut self, taker: OpenOrder, trades: &mut u64, events: &mut Vec<Event>) {
        let order = taker.order;
        if let Some((required, reason)) = Book::required(&order)
            && self.would_trade(&taker) < required
        {
            events.push(taker.cancelled(reason));
            return;
        }
        if let Some(remainder) = self.match_with(taker, trades, events) {
            if at_any_price(&order) {
                events.push(remainder.cancelled(CancelReason::NoLiquidity));
            } else if order.time_in_force == TimeInForce::ImmediateOrCancel {
                events.push(remainder.cancelled(CancelReason::Immediate));
            } else {
                self.rest(remainder);
            }
        }
    }

    pub fn execute_triggered(&mut self, trades: &mut u64, events: &mut Vec<Event>) {
        while let Some(stop) = self.queue.pop_front() {
            events.push(Event::Triggered { id: stop.order.id });
            self.execute(stop, trades, events);
        }
    }

    /// Returns volume and surplus of an auction at a price.
    fn volume(&self, price: i64) -> (u64, u64) {
        let sum = |side: Side| {
            let index = |open: &&OpenOrder| !has_priority(side, price, open.order.price);
            self.orders[side as usize].iter().filter(index).map(|open| open.leaves).sum::<u64>()
        };
        let (bid, offered) = (sum(Side::Buy), sum(Side::Sell));
        (bid.min(offered), bid.abs_diff(offered))
    }

    /// Returns the auction's price and volume; considers every tick between lowest and highest
    /// order.
    fn auction_price(&self) -> Option<(i64, u64)> {
        let prices = || self.orders.iter().flatten().map(|open| open.order.price);
        let (low, high) = (prices().min()?, prices().max()?);
        let tick = self.rules.tick;
        let rank = |price: i64| {
            let (volume, surplus) = self.volume(price);
            let distance = price.abs_diff(self.rules.reference_price);
            (volume, std::cmp::Reverse(surplus), std::cmp::Reverse(distance), price)
        };
        let best = (low / tick..=high / tick).map(|step| step * tick).max_by_key(|price| rank(*price))?;
        let (volume, _) = self.volume(best);
        (volume > 0).then_some((best, volume))
    }

    pub fn uncross(&mut self, instrument: u16, trades: &mut u64, events: &mut Vec<Event>) {
        self.auction = false;
        let (price, volume) = self.auction_price().unwrap_or((0, 0));
        events.push(Event::Uncrossed { instrument, price, volume });
        let mut remaining = volume;
        while remaining > 0 {
            let (mut buy, mut sell) = (self.orders[0].remove(0), self.orders[1].remove(0));
            let quantity = buy.leaves.min(sell.leaves);
            remaining -= quantity;
            for order in [&mut buy, &mut sell] {
                order.leaves -= quantity;
                order.shown = order.shown.saturating_sub(quantity);
                if order.shown == 0 {
                    order.refresh();
                }
            }
            self.record_trade(&sell, &buy, price, quantity, trades, events);
            for order in [buy, sell] {
                if order.leaves > 0 {
                    self.orders[order.order.side as usize].insert(0, order);
                }
            }
        }
        if let Some(last) = self.last {
            self.trigger(last);
        }
        self.execute_triggered(trades, events);
    }
}

/// Prevents a self-trade. Returns `true` if the resting order stays.
fn prevent(maker: &mut OpenOrder, taker: &mut OpenOrder, events: &mut Vec<Event>) -> bool {
    let (newest, oldest, quantity) = match taker.order.self_trade {
        SelfTrade::Allow => unreachable!(),
        SelfTrade::CancelNewest => (true, false, 0),
        SelfTrade::CancelOldest => (false, true, 0),
        SelfTrade::CancelBoth => (true, true, 0),
        SelfTrade::Decrement => {
            (taker.leaves <= maker.leaves, maker.leaves <= taker.leaves, taker.leaves.min(maker.leaves))
        }
    };
    for (open, is_cancelled) in [(&mut *maker, oldest), (&mut *taker, newest)] {
        let id = open.order.id;
        if is_cancelled {
            events.push(open.cancelled(CancelReason::SelfTrade));
            open.leaves = 0;
        } else if quantity > 0 {
            open.reduce(quantity);
            events.push(Event::Reduced { id, leaves: open.leaves });
        }
    }
    !oldest
}

impl Book {
    pub fn find(&self, id: u64) -> Option<&OpenOrder> {
        self.orders.iter().chain(&self.stops).flatten().find(|open| open.order.id == id)
    }

    /// Removes the first order that `wanted` accepts: of bids, offers, buy stops, sell stops.
    pub fn remove_first(&mut self, wanted: impl Fn(&OpenOrder) -> bool) -> Option<OpenOrder> {
        let mut lists = self.orders.iter_mut().chain(&mut self.stops);
        lists.find_map(|list| list.iter().position(&wanted).map(|index| list.remove(index)))
    }
}

//! A market maker: quotes a bid and an offer at each venue around its estimate of the fair price.
//!
//! It follows the times of its schedule. When an order is due it places, moves or, after
//! [`MAX_REPLACES`] moves (an order has a limited number of reports), cancels its quote on that
//! order's side. The fair price is an average of its fills, initially the price of the first
//! scheduled order. A sale to it moves both quotes down, a purchase moves them up, which reduces
//! its position.
//!
//! With market data it quotes around the top of book: the fair price is kept between the others'
//! bid and offer, and no quote would trade at once. When a side has no quotes, or its own is more
//! than [`STALE_DISTANCE`] from its target, it acts immediately instead of waiting for a due order.
//! Each early order replaces a later scheduled one, at most [`MAX_EARLY`] per venue and side. It is
//! a simple model, without adverse selection.

use crate::player::{OrderShaper, Player};
use crate::{MarketTick, Orders, Strategy, TopOfBook};
use protocol::market::Quote as Best;
use protocol::wire::{Operation, OrderId, OrderRequest, OrderTerms, Report, SelfTrade, Side};

/// Distance of quotes from the fair price, in cents.
const HALF_SPREAD: i64 = 10;
/// Shift of quotes against a position of one [`QUOTE_QUANTITY`], in cents.
const SKEW: i64 = 2;
/// Maximum shift of quotes by a position, in cents.
const MAX_SKEW: i64 = 60;
/// Quantity of each quote, in 1e-8 units.
const QUOTE_QUANTITY: u64 = 100_000_000;
/// Number of price changes of a quote before a new order replaces it.
const MAX_REPLACES: u32 = 32;
/// Distance of a quote from its target above which new market data makes the market maker act, in
/// cents.
const STALE_DISTANCE: i64 = 5;
/// Maximum number of orders per venue and side that are sent before they are due.
const MAX_EARLY: u64 = 8;
/// Each fill moves the fair price by one part in this many of the difference.
const FAIR_PRICE_SMOOTHING: i64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quote {
    id: OrderId,
    price: i64,
    replaces: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct SideState {
    quote: Option<Quote>,
    scheduled_left: u64,
    /// Number of them that were sent early.
    sent_early: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct VenueTouch {
    version: u64,
    touch: TopOfBook,
}

/// A market maker strategy, which quotes a bid and an offer at each venue.
pub struct Maker {
    player: Player,
    state: MakerState,
}

#[derive(Default)]
struct MakerState {
    /// Fair price in cents; `None` before the first price.
    fair: Option<i64>,
    /// Bought less sold, in 1e-8 units.
    position: i64,
    sides: Vec<[SideState; 2]>,
    /// The last market data of each venue, of instrument 0, which its schedule trades.
    touches: Vec<Option<VenueTouch>>,
}

impl Maker {
    /// Creates a market maker that quotes at the first `venues` venues, at the times of the run's
    /// schedule of orders, which `player` reads. `due` has venue and side of the orders to come.
    pub fn new(player: Player, venues: u16, due: impl Iterator<Item = (u16, Side)>) -> Self {
        let mut state = MakerState::new(venues);
        for (venue, side) in due {
            if let Some(entry) = state.side_mut(venue, side) {
                entry.scheduled_left += 1;
            }
        }
        Self { player, state }
    }
}

impl MakerState {
    fn new(venues: u16) -> Self {
        let venues = usize::from(venues);
        Self { sides: vec![Default::default(); venues], touches: vec![None; venues], ..Self::default() }
    }

    /// Returns the price of a quote; one that would trade at once is moved away from the other
    /// side.
    fn price(&self, fair: i64, venue: u16, side: Side) -> i64 {
        let lots_held = self.position / QUOTE_QUANTITY as i64;
        let skewed = fair.saturating_sub(lots_held.saturating_mul(SKEW).clamp(-MAX_SKEW, MAX_SKEW));
        let touch = self.touches.get(usize::from(venue)).copied().flatten().unwrap_or_default().touch;
        let price = match side {
            Side::Buy => {
                let price = skewed.saturating_sub(HALF_SPREAD);
                touch.offer.map_or(price, |offer| price.min(offer.price - 1))
            }
            Side::Sell => {
                let price = skewed.saturating_add(HALF_SPREAD);
                touch.bid.map_or(price, |bid| price.max(bid.price.saturating_add(1)))
            }
        };
        price.max(1)
    }

    fn side_mut(&mut self, venue: u16, side: Side) -> Option<&mut SideState> {
        Some(&mut self.sides.get_mut(usize::from(venue))?[usize::from(side == Side::Sell)])
    }

    fn quote_action(&self, order: OrderRequest) -> Option<OrderRequest> {
        let entry = self.sides.get(usize::from(order.venue))?[usize::from(order.side == Side::Sell)];
        let price = self.price(self.fair?, order.venue, order.side);
        let order = OrderRequest {
            price,
            quantity: QUOTE_QUANTITY,
            target: 0,
            terms: OrderTerms::default(),
            ..order
        };
        Some(match entry.quote {
            None => {
                // The quote never takes liquidity, nor trades with the maker's own orders.
                let self_trade = SelfTrade::CancelNewest;
                let terms = OrderTerms { post_only: true, self_trade, ..order.terms };
                OrderRequest { operation: Operation::New, terms, ..order }
            }
            Some(quote) if quote.replaces < MAX_REPLACES => {
                OrderRequest { operation: Operation::Replace, target: quote.id.sequence(), ..order }
            }
            Some(quote) => {
                let target = quote.id.sequence();
                OrderRequest { operation: Operation::Cancel, target, price: 0, quantity: 0, ..order }
            }
        })
    }

    fn record_tick(&mut self, tick: &MarketTick) {
        let best_of_others = |best: Option<Best>, entry: &SideState| {
            best.map(|best| best.price).filter(|price| entry.quote.is_none_or(|own| own.price != *price))
        };
        let Some([buy, sell]) = self.sides.get(usize::from(tick.venue)) else { return };
        let (bid, offer) = (best_of_others(tick.top.bid, buy), best_of_others(tick.top.offer, sell));
        if let Some(fair) = &mut self.fair {
            *fair = (*fair).max(bid.unwrap_or(i64::MIN)).min(offer.unwrap_or(i64::MAX));
        }
        self.touches[usize::from(tick.venue)] = Some(VenueTouch { version: tick.version, touch: tick.top });
    }

    fn early_order(&self, venue: u16, side: Side) -> Option<OrderRequest> {
        let entry = self.sides.get(usize::from(venue))?[usize::from(side == Side::Sell)];
        let VenueTouch { version, touch } = self.touches.get(usize::from(venue)).copied().flatten()?;
        if entry.sent_early >= MAX_EARLY.min(entry.scheduled_left) || touch.auction {
            return None;
        }
        let target_price = self.price(self.fair?, venue, side);
        let is_side_empty = match side {
            Side::Buy => touch.bid.is_none(),
            Side::Sell => touch.offer.is_none(),
        };
        let is_needed = match entry.quote {
            None => is_side_empty,
            Some(quote) => {
                quote.replaces < MAX_REPLACES && quote.price.abs_diff(target_price) > STALE_DISTANCE as u64
            }
        };
        let order = OrderRequest { side, trigger: version, ..OrderRequest::to_venue(venue) };
        if is_needed { self.quote_action(order) } else { None }
    }

    fn send_early(&mut self, venue: u16, orders: &mut impl Orders) {
        for side in [Side::Buy, Side::Sell] {
            if let Some(order) = self.early_order(venue, side)
                && let Ok(id) = orders.send_due(order, Some(orders.now()))
            {
                self.record_sent(&order, id);
                if let Some(entry) = self.side_mut(venue, side) {
                    entry.sent_early += 1;
                }
            }
        }
    }

    fn record_sent(&mut self, order: &OrderRequest, id: OrderId) {
        let Some(SideState { quote, .. }) = self.side_mut(order.venue, order.side) else { return };
        match (order.operation, &mut *quote) {
            (Operation::New, _) => *quote = Some(Quote { id, price: order.price, replaces: 0 }),
            (Operation::Replace, Some(quote)) => {
                quote.price = order.price;
                quote.replaces += 1;
            }
            _ => {}
        }
    }

    fn record_report(&mut self, report: &Report) {
        if report.filled > 0 {
            let filled = report.filled.cast_signed();
            self.position += if report.side == Side::Buy { filled } else { -filled };
            let fair = self.fair.unwrap_or(report.price);
            self.fair = Some(fair + (report.price - fair) / FAIR_PRICE_SMOOTHING);
        }
        if let Some(SideState { quote, .. }) = self.side_mut(report.venue, report.side)
            && report.is_last
            && quote.is_some_and(|quote| quote.id == report.id)
        {
            *quote = None;
        }
    }
}

impl OrderShaper for MakerState {
    fn shape_order(&mut self, scheduled: &OrderRequest, _: Option<u64>) -> Option<OrderRequest> {
        if self.fair.is_none() && scheduled.price > 0 {
            self.fair = Some(scheduled.price);
        }
        let entry = self.side_mut(scheduled.venue, scheduled.side)?;
        if entry.sent_early > 0 {
            (entry.sent_early, entry.scheduled_left) =
                (entry.sent_early - 1, entry.scheduled_left.saturating_sub(1));
            return None;
        }
        self.quote_action(*scheduled)
    }

    fn on_sent(&mut self, order: &OrderRequest, id: OrderId) {
        if let Some(entry) = self.side_mut(order.venue, order.side) {
            entry.scheduled_left = entry.scheduled_left.saturating_sub(1);
        }
        self.record_sent(order, id);
    }
}

impl Strategy for Maker {
    const ON_MARKET_DATA: bool = true;

    #[inline(never)]
    fn on_market_data(&mut self, tick: &MarketTick, orders: &mut impl Orders) {
        if tick.instrument == 0 {
            self.state.record_tick(tick);
            self.state.send_early(tick.venue, orders);
        }
    }

    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.player.due() > orders.now() { 0 } else { self.player.send_due(orders, &mut self.state) }
    }

    #[inline(never)]
    fn on_report(&mut self, report: &Report, orders: &mut impl Orders) {
        self.state.record_report(report);
        // The market data comes before the report of the fill that changed it.
        if report.is_last && report.filled > 0 {
            self.state.send_early(report.venue, orders);
        }
    }

    fn next_due(&self) -> u64 {
        self.player.next_due()
    }

    fn finished(&self) -> bool {
        self.player.finished()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> MakerState {
        let mut state = MakerState::new(2);
        state.sides.as_flattened_mut().iter_mut().for_each(|entry| entry.scheduled_left = 100);
        state
    }

    fn scheduled(side: Side, price: i64) -> OrderRequest {
        OrderRequest { side, price, quantity: 7, ..OrderRequest::to_venue(1) }
    }

    /// Returns the maker's order for a due order of this side.
    fn next_order(state: &mut MakerState, side: Side, sequence: u64) -> OrderRequest {
        let order = state.shape_order(&scheduled(side, 1_000), None).unwrap();
        state.on_sent(&order, OrderId::new(0, 0, sequence));
        order
    }

    fn report(sequence: u64, side: Side, price: i64, filled: u64, is_last: bool) -> Report {
        let request = OrderRequest { side, price, quantity: filled, ..OrderRequest::to_venue(1) };
        let order = request.with_id(OrderId::new(0, 0, sequence));
        Report { is_last, ..Report::full_fill(&order) }
    }

    #[test]
    fn maker_quotes_both_sides_and_moves_quotes() {
        let mut state = state();
        assert_eq!(state.shape_order(&scheduled(Side::Buy, 0), None), None, "no price is known yet");
        let bid = next_order(&mut state, Side::Buy, 0);
        assert_eq!((bid.operation, bid.price, bid.quantity), (Operation::New, 990, QUOTE_QUANTITY));
        assert!(bid.terms.post_only && bid.venue == 1);
        let offer = next_order(&mut state, Side::Sell, 1);
        assert_eq!((offer.operation, offer.price), (Operation::New, 1_010));
        let moved = next_order(&mut state, Side::Buy, 2);
        let replace = (Operation::Replace, 0, OrderTerms::default());
        assert_eq!((moved.operation, moved.target, moved.terms), replace);
    }

    #[test]
    fn fill_moves_both_quotes_against_position() {
        let mut state = state();
        next_order(&mut state, Side::Buy, 0);
        state.record_report(&report(0, Side::Buy, 990, 10 * QUOTE_QUANTITY, true));
        assert_eq!(state.position, 10 * QUOTE_QUANTITY as i64);
        // 1000 - 10 / 4, less 10 times the skew.
        let bid = next_order(&mut state, Side::Buy, 1);
        assert_eq!(
            (bid.operation, bid.price),
            (Operation::New, 998 - 20 - 10),
            "the filled quote is replaced by a new order"
        );
        assert_eq!(next_order(&mut state, Side::Sell, 2).price, 998 - 20 + 10);
        state.record_report(&report(2, Side::Sell, 988, 1_000 * QUOTE_QUANTITY, false));
        let offer = next_order(&mut state, Side::Sell, 3);
        assert_eq!((offer.operation, offer.price), (Operation::Replace, 996 + MAX_SKEW + 10));
    }

    #[test]
    fn quote_is_replaced_before_report_numbers_run_out() {
        let mut state = state();
        let operations: Vec<Operation> = (0..u64::from(MAX_REPLACES) + 2)
            .map(|n| next_order(&mut state, Side::Sell, n).operation)
            .collect();
        assert_eq!(operations[0], Operation::New);
        assert!(
            operations[1..=MAX_REPLACES as usize].iter().all(|operation| *operation == Operation::Replace)
        );
        assert_eq!(operations[MAX_REPLACES as usize + 1], Operation::Cancel);
        state.record_report(&report(0, Side::Sell, 1_010, 0, true));
        assert_eq!(next_order(&mut state, Side::Sell, 99).operation, Operation::New);
    }

    #[test]
    fn foreign_reports_and_unknown_venues_are_ignored() {
        let mut state = state();
        next_order(&mut state, Side::Buy, 0);
        state.record_report(&report(9, Side::Buy, 990, 0, true));
        state.record_report(&Report { venue: 77, ..report(0, Side::Buy, 990, 0, true) });
        assert_eq!(next_order(&mut state, Side::Buy, 1).operation, Operation::Replace);
        assert_eq!(state.shape_order(&OrderRequest { venue: 77, ..scheduled(Side::Buy, 1) }, None), None);
    }

    fn best(price: i64) -> Option<Best> {
        Some(Best { price, quantity: QUOTE_QUANTITY })
    }

    fn receive_tick(state: &mut MakerState, version: u64, bid: Option<Best>, offer: Option<Best>) {
        let touch = TopOfBook { bid, offer, ..TopOfBook::default() };
        state.record_tick(&MarketTick {
            venue: 1,
            instrument: 0,
            version,
            written: 3,
            missed: 0,
            top: touch,
        });
    }

    #[test]
    fn maker_quotes_around_top_of_book() {
        let mut state = state();
        next_order(&mut state, Side::Buy, 0);
        receive_tick(&mut state, 1, best(990), best(1_050));
        assert_eq!(state.fair, Some(1_000), "its own bid, and an offer above its fair price");
        receive_tick(&mut state, 2, best(1_020), best(1_050));
        assert_eq!(state.fair, Some(1_020), "others bid more");
        receive_tick(&mut state, 3, best(990), best(1_002));
        assert_eq!(state.fair, Some(1_002), "others offer for less");
        // Long: it would sell at 1,002 + 10 - 20. The quote must not trade immediately.
        state.position = 10 * QUOTE_QUANTITY as i64;
        receive_tick(&mut state, 4, best(1_000), best(1_002));
        assert_eq!(state.price(1_002, 1, Side::Sell), 1_001);
        state.position = -state.position;
        assert_eq!(state.price(1_002, 1, Side::Buy), 1_001);
        assert_eq!(state.price(1_002, 0, Side::Buy), 1_012, "no market data of that venue");
    }

    #[test]
    fn early_order_replaces_scheduled_order() {
        let mut state = state();
        next_order(&mut state, Side::Buy, 0);
        assert_eq!(state.early_order(1, Side::Sell), None, "no market data yet");
        receive_tick(&mut state, 5, best(990), None);
        let offer = state.early_order(1, Side::Sell).unwrap();
        assert_eq!((offer.operation, offer.price, offer.trigger), (Operation::New, 1_010, 5));
        assert_eq!(state.early_order(1, Side::Buy), None, "its bid is at its target");
        receive_tick(&mut state, 6, best(1_016), None);
        let moved = state.early_order(1, Side::Buy).unwrap();
        let changed = (moved.operation, moved.target, moved.price, moved.trigger);
        assert_eq!(changed, (Operation::Replace, 0, 1_006, 6));

        state.record_sent(&moved, OrderId::new(0, 0, 1));
        state.side_mut(1, Side::Buy).unwrap().sent_early += 1;
        assert_eq!(state.early_order(1, Side::Buy), None);
        assert_eq!(state.shape_order(&scheduled(Side::Buy, 1_000), None), None, "this order was sent early");
        let next = state.shape_order(&scheduled(Side::Buy, 1_000), None).unwrap();
        assert_eq!(next.operation, Operation::Replace);
        let entry = *state.side_mut(1, Side::Buy).unwrap();
        assert_eq!((entry.sent_early, entry.scheduled_left), (0, 98));

        let side = state.side_mut(1, Side::Sell).unwrap();
        side.sent_early = MAX_EARLY;
        assert_eq!(state.early_order(1, Side::Sell), None, "the maximum of early orders");
        let side = state.side_mut(1, Side::Sell).unwrap();
        (side.sent_early, side.scheduled_left) = (2, 2);
        assert_eq!(state.early_order(1, Side::Sell), None, "no more than its schedule has");
        assert_eq!(state.early_order(77, Side::Sell), None, "no such venue");
    }
}

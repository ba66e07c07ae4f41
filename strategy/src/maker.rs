//! A market maker: keeps a bid and an offer in the book of each venue, around what it believes that
//! the instrument is worth.
//!
//! It follows the times of its schedule. Whenever an order would be due it looks after its quote on
//! that order's side: places it, moves it, or takes it away once it has been moved [`MOVES`] times
//! (an order can have only so many reports). What it believes is the middle of its own fills, at
//! the start the price of the first order in its schedule. Whoever sells to it pushes both of its
//! prices down, whoever buys from it pushes them up: that brings its position back.
//!
//! Where there is market data it quotes around the live touch. It believes in no price that others
//! outbid or undercut, and quotes none that would trade at once. When a touch shows that nobody
//! quotes on a side, or that its quote there is more than [`STALE`] from where it wants it, it acts
//! at once instead of waiting until an order is due; what it did early it leaves out later, at most
//! [`EARLY`] orders for each venue and side, so that it sends no more than its schedule has. It is
//! a small model of the real thing: it does not fear the better informed.

use crate::player::{Player, Shape};
use crate::{MarketTick, NewOrder, Orders, Strategy, TopOfBook};
use protocol::market::Quote as Best;
use protocol::wire::{Operation, OrderId, OrderTerms, Report, SelfTrade, Side};

/// How far each quote lies from the price that it believes in, in cents.
pub const HALF_SPREAD: i64 = 10;
/// By how much a position of one [`QUOTE`] moves both quotes against it, in cents.
pub const SKEW: i64 = 2;
/// How far a position moves them at most, in cents.
pub const MOST_SKEW: i64 = 60;
/// What a quote is for, in 1e-8 units.
pub const QUOTE: u64 = 100_000_000;
/// How often a quote is moved before it gives way to a new one.
pub const MOVES: u32 = 32;
/// How far a quote may lie from where it wants it before a new touch makes it act, in cents.
pub const STALE: i64 = 5;
/// Orders of a venue and side that it sends before they are due, at most.
pub const EARLY: u64 = 8;
/// Each fill moves what it believes by this part of the difference.
const MEMORY: i64 = 4;

/// A quote in a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quote {
    id: OrderId,
    price: i64,
    moves: u32,
}

/// What it knows of one side of a venue.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    quote: Option<Quote>,
    /// Orders of the schedule that are still to come.
    left: u64,
    /// How many of them were sent early.
    early: u64,
}

/// What it last heard of a venue.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    version: u64,
    touch: TopOfBook,
}

/// See the module.
pub struct Maker {
    player: Player,
    desk: Desk,
}

/// What it knows.
#[derive(Default)]
struct Desk {
    /// What it believes, in cents; `None` before it has seen a price.
    fair: Option<i64>,
    /// Bought less sold, in 1e-8 units.
    position: i64,
    /// Of each venue its bid and its offer.
    places: Vec<[Place; 2]>,
    /// Of each venue what was last heard of instrument 0, which is what its schedule trades.
    heard: Vec<Option<Heard>>,
}

impl Maker {
    /// A maker at so many venues that follows these times; `due`: venue and side of the orders that
    /// will be.
    pub fn new(player: Player, venues: u16, due: impl Iterator<Item = (u16, Side)>) -> Self {
        let mut desk = Desk::new(venues);
        for (venue, side) in due {
            if let Some(place) = desk.place(venue, side) {
                place.left += 1;
            }
        }
        Self { player, desk }
    }
}

impl Desk {
    fn new(venues: u16) -> Self {
        let (places, heard) = (vec![[Place::default(); 2]; venues.into()], vec![None; venues.into()]);
        Self { places, heard, ..Self::default() }
    }

    /// The price of a quote: one that would trade at once is moved out of the way of the other
    /// side.
    fn price(&self, fair: i64, venue: u16, side: Side) -> i64 {
        let held = self.position / QUOTE as i64;
        let skewed = fair.saturating_sub(held.saturating_mul(SKEW).clamp(-MOST_SKEW, MOST_SKEW));
        let touch = self.heard.get(usize::from(venue)).copied().flatten().unwrap_or_default().touch;
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

    fn place(&mut self, venue: u16, side: Side) -> Option<&mut Place> {
        Some(&mut self.places.get_mut(usize::from(venue))?[usize::from(side == Side::Sell)])
    }

    /// What it does about its quote on a side now.
    fn act(&self, order: NewOrder) -> Option<NewOrder> {
        let place = self.places.get(usize::from(order.venue))?[usize::from(order.side == Side::Sell)];
        let price = self.price(self.fair?, order.venue, order.side);
        let order = NewOrder { price, quantity: QUOTE, target: 0, terms: OrderTerms::default(), ..order };
        Some(match place.quote {
            None => {
                // It waits for others to come; never takes, also not from itself.
                let terms =
                    OrderTerms { post_only: true, self_trade: SelfTrade::CancelNewest, ..order.terms };
                NewOrder { operation: Operation::New, terms, ..order }
            }
            Some(quote) if quote.moves < MOVES => {
                NewOrder { operation: Operation::Replace, target: quote.id.sequence(), ..order }
            }
            Some(quote) => {
                let target = quote.id.sequence();
                NewOrder { operation: Operation::Cancel, target, price: 0, quantity: 0, ..order }
            }
        })
    }

    /// Takes in what there is to see at a venue.
    fn hear(&mut self, tick: &MarketTick) {
        let others = |best: Option<Best>, place: &Place| {
            best.map(|best| best.price).filter(|price| place.quote.is_none_or(|own| own.price != *price))
        };
        let Some([buy, sell]) = self.places.get(usize::from(tick.venue)) else { return };
        let (bid, offer) = (others(tick.top.bid, buy), others(tick.top.offer, sell));
        if let Some(fair) = &mut self.fair {
            *fair = (*fair).max(bid.unwrap_or(i64::MIN)).min(offer.unwrap_or(i64::MAX));
        }
        self.heard[usize::from(tick.venue)] = Some(Heard { version: tick.version, touch: tick.top });
    }

    /// What it sends before it is due, because of what it has heard of a venue.
    fn early(&self, venue: u16, side: Side, now: u64) -> Option<NewOrder> {
        let place = self.places.get(usize::from(venue))?[usize::from(side == Side::Sell)];
        let Heard { version, touch } = self.heard.get(usize::from(venue)).copied().flatten()?;
        if place.early >= EARLY.min(place.left) || touch.auction {
            return None;
        }
        let wanted = self.price(self.fair?, venue, side);
        let is_bare = match side {
            Side::Buy => touch.bid.is_none(),
            Side::Sell => touch.offer.is_none(),
        };
        let is_needed = match place.quote {
            None => is_bare,
            Some(quote) => quote.moves < MOVES && quote.price.abs_diff(wanted) > STALE as u64,
        };
        let order = NewOrder { side, trigger: version, due: Some(now), ..NewOrder::to_venue(venue) };
        if is_needed { self.act(order) } else { None }
    }

    /// Sends what a venue's touch asks for.
    fn react(&mut self, venue: u16, orders: &mut impl Orders) {
        for side in [Side::Buy, Side::Sell] {
            if let Some(order) = self.early(venue, side, orders.now())
                && let Ok(id) = orders.send(order)
            {
                self.note(&order, id);
                if let Some(place) = self.place(venue, side) {
                    place.early += 1;
                }
            }
        }
    }

    fn note(&mut self, order: &NewOrder, id: OrderId) {
        let Some(Place { quote, .. }) = self.place(order.venue, order.side) else { return };
        match (order.operation, &mut *quote) {
            (Operation::New, _) => *quote = Some(Quote { id, price: order.price, moves: 0 }),
            (Operation::Replace, Some(quote)) => {
                quote.price = order.price;
                quote.moves += 1;
            }
            _ => {}
        }
    }
}

impl Shape for Desk {
    fn shape(&mut self, scheduled: &NewOrder) -> Option<NewOrder> {
        if self.fair.is_none() && scheduled.price > 0 {
            self.fair = Some(scheduled.price);
        }
        let place = self.place(scheduled.venue, scheduled.side)?;
        if place.early > 0 {
            (place.early, place.left) = (place.early - 1, place.left.saturating_sub(1));
            return None;
        }
        self.act(*scheduled)
    }

    fn sent(&mut self, order: &NewOrder, id: OrderId) {
        if let Some(place) = self.place(order.venue, order.side) {
            place.left = place.left.saturating_sub(1);
        }
        self.note(order, id);
    }
}

impl Desk {
    fn learn(&mut self, report: &Report) {
        if report.filled > 0 {
            let filled = report.filled.cast_signed();
            self.position += if report.side == Side::Buy { filled } else { -filled };
            let fair = self.fair.unwrap_or(report.price);
            self.fair = Some(fair + (report.price - fair) / MEMORY);
        }
        if let Some(Place { quote, .. }) = self.place(report.venue, report.side)
            && report.is_last
            && quote.is_some_and(|quote| quote.id == report.id)
        {
            *quote = None;
        }
    }
}

impl Strategy for Maker {
    const ON_MARKET_DATA: bool = true;

    #[inline(never)]
    fn on_market_data(&mut self, tick: &MarketTick, orders: &mut impl Orders) {
        if tick.instrument == 0 {
            self.desk.hear(tick);
            self.desk.react(tick.venue, orders);
        }
    }

    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.player.due() > orders.now() { 0 } else { self.player.send_due(orders, &mut self.desk) }
    }

    #[inline(never)]
    fn on_report(&mut self, report: &Report, orders: &mut impl Orders) {
        self.desk.learn(report);
        // The touch comes before the report of the fill that emptied it.
        if report.is_last && report.filled > 0 {
            self.desk.react(report.venue, orders);
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
    use protocol::wire::OrderStatus;

    fn desk() -> Desk {
        let mut desk = Desk::new(2);
        desk.places.as_flattened_mut().iter_mut().for_each(|place| place.left = 100);
        desk
    }

    fn due(side: Side, price: i64) -> NewOrder {
        NewOrder { side, price, quantity: 7, due: Some(5), ..NewOrder::to_venue(1) }
    }

    /// What it does when an order of that side is due.
    fn act(desk: &mut Desk, side: Side, sequence: u64) -> NewOrder {
        let order = desk.shape(&due(side, 1_000)).unwrap();
        desk.sent(&order, OrderId::new(0, 0, sequence));
        order
    }

    fn report(sequence: u64, side: Side, price: i64, filled: u64, is_last: bool) -> Report {
        Report {
            id: OrderId::new(0, 0, sequence),
            venue: 1,
            instrument: 0,
            status: OrderStatus::PartiallyFilled,
            reason: 0,
            side,
            price,
            filled,
            leaves: 0,
            cumulative: filled,
            number: 0,
            is_last,
        }
    }

    #[test]
    fn it_quotes_on_both_sides_and_moves_what_it_has() {
        let mut desk = desk();
        assert_eq!(desk.shape(&due(Side::Buy, 0)), None, "it has seen no price yet");
        let bid = act(&mut desk, Side::Buy, 0);
        assert_eq!((bid.operation, bid.price, bid.quantity, bid.due), (Operation::New, 990, QUOTE, Some(5)));
        assert!(bid.terms.post_only && bid.venue == 1);
        let offer = act(&mut desk, Side::Sell, 1);
        assert_eq!((offer.operation, offer.price), (Operation::New, 1_010));
        let moved = act(&mut desk, Side::Buy, 2);
        assert_eq!(
            (moved.operation, moved.target, moved.terms),
            (Operation::Replace, 0, OrderTerms::default())
        );
    }

    #[test]
    fn a_fill_moves_both_prices_against_its_position() {
        let mut desk = desk();
        act(&mut desk, Side::Buy, 0);
        desk.learn(&report(0, Side::Buy, 990, 10 * QUOTE, true));
        assert_eq!(desk.position, 10 * QUOTE as i64);
        // 1000 - 10 / 4, less 10 times the skew.
        let bid = act(&mut desk, Side::Buy, 1);
        assert_eq!((bid.operation, bid.price), (Operation::New, 998 - 20 - 10), "the old one is gone");
        assert_eq!(act(&mut desk, Side::Sell, 2).price, 998 - 20 + 10);
        desk.learn(&report(2, Side::Sell, 988, 1_000 * QUOTE, false));
        let offer = act(&mut desk, Side::Sell, 3);
        assert_eq!((offer.operation, offer.price), (Operation::Replace, 996 + MOST_SKEW + 10));
    }

    #[test]
    fn a_quote_gives_way_before_it_has_had_too_many_reports() {
        let mut desk = desk();
        let acts: Vec<Operation> =
            (0..u64::from(MOVES) + 2).map(|n| act(&mut desk, Side::Sell, n).operation).collect();
        assert_eq!(acts[0], Operation::New);
        assert!(acts[1..=MOVES as usize].iter().all(|operation| *operation == Operation::Replace));
        assert_eq!(acts[MOVES as usize + 1], Operation::Cancel);
        desk.learn(&report(0, Side::Sell, 1_010, 0, true));
        assert_eq!(act(&mut desk, Side::Sell, 99).operation, Operation::New);
    }

    #[test]
    fn another_s_report_and_a_venue_that_there_is_not_change_nothing() {
        let mut desk = desk();
        act(&mut desk, Side::Buy, 0);
        desk.learn(&report(9, Side::Buy, 990, 0, true));
        desk.learn(&Report { venue: 77, ..report(0, Side::Buy, 990, 0, true) });
        assert_eq!(act(&mut desk, Side::Buy, 1).operation, Operation::Replace);
        assert_eq!(desk.shape(&NewOrder { venue: 77, ..due(Side::Buy, 1) }), None);
    }

    fn best(price: i64) -> Option<Best> {
        Some(Best { price, quantity: QUOTE })
    }

    fn hear(desk: &mut Desk, version: u64, bid: Option<Best>, offer: Option<Best>) {
        let touch = TopOfBook { bid, offer, ..TopOfBook::default() };
        desk.hear(&MarketTick { venue: 1, instrument: 0, version, written: 3, missed: 0, top: touch });
    }

    #[test]
    fn it_quotes_around_the_live_touch() {
        let mut desk = desk();
        act(&mut desk, Side::Buy, 0);
        hear(&mut desk, 1, best(990), best(1_050));
        assert_eq!(desk.fair, Some(1_000), "its own bid, and an offer above what it believes");
        hear(&mut desk, 2, best(1_020), best(1_050));
        assert_eq!(desk.fair, Some(1_020), "others pay more");
        hear(&mut desk, 3, best(990), best(1_002));
        assert_eq!(desk.fair, Some(1_002), "others ask less");
        // Long: it would sell at 1,002 + 10 - 20. Nobody is to be met at once.
        desk.position = 10 * QUOTE as i64;
        hear(&mut desk, 4, best(1_000), best(1_002));
        assert_eq!(desk.price(1_002, 1, Side::Sell), 1_001);
        desk.position = -desk.position;
        assert_eq!(desk.price(1_002, 1, Side::Buy), 1_001);
        assert_eq!(desk.price(1_002, 0, Side::Buy), 1_012, "it knows nothing of that venue");
    }

    #[test]
    fn a_bare_side_and_a_stale_quote_make_it_act_early_and_it_leaves_that_out_later() {
        let mut desk = desk();
        act(&mut desk, Side::Buy, 0);
        assert_eq!(desk.early(1, Side::Sell, 70), None, "it has heard nothing");
        hear(&mut desk, 5, best(990), None);
        let offer = desk.early(1, Side::Sell, 70).unwrap();
        assert_eq!(
            (offer.operation, offer.price, offer.trigger, offer.due),
            (Operation::New, 1_010, 5, Some(70))
        );
        assert_eq!(desk.early(1, Side::Buy, 70), None, "its bid is where it wants it");
        hear(&mut desk, 6, best(1_016), None);
        let moved = desk.early(1, Side::Buy, 70).unwrap();
        assert_eq!(
            (moved.operation, moved.target, moved.price, moved.trigger),
            (Operation::Replace, 0, 1_006, 6)
        );

        desk.note(&moved, OrderId::new(0, 0, 1));
        desk.place(1, Side::Buy).unwrap().early += 1;
        assert_eq!(desk.early(1, Side::Buy, 70), None);
        assert_eq!(desk.shape(&due(Side::Buy, 1_000)), None, "that one was sent early");
        assert_eq!(desk.shape(&due(Side::Buy, 1_000)).map(|order| order.operation), Some(Operation::Replace));
        let place = *desk.place(1, Side::Buy).unwrap();
        assert_eq!((place.early, place.left), (0, 98));

        let side = desk.place(1, Side::Sell).unwrap();
        side.early = EARLY;
        assert_eq!(desk.early(1, Side::Sell, 70), None, "not too many");
        let side = desk.place(1, Side::Sell).unwrap();
        (side.early, side.left) = (2, 2);
        assert_eq!(desk.early(1, Side::Sell, 70), None, "no more than its schedule has");
        assert_eq!(desk.early(77, Side::Sell, 70), None, "no such venue");
    }
}

//! A market maker: keeps a bid and an offer in the book of each venue, around what it believes that the instrument is worth.
//!
//! It follows the times of its schedule. Whenever an order would be due it looks after its quote on that order's side: places it,
//! moves it, or takes it away once it has been moved [`MOVES`] times (an order can have only so many reports). What it believes is
//! the middle of its own fills, at the start the price of the first order in its schedule. Whoever sells to it pushes both of its
//! prices down, whoever buys from it pushes them up: that brings its position back. It is a small model of the real thing: it sees
//! no market data but its own reports, and does not fear the better informed.

use crate::player::{Player, Shape};
use crate::{NewOrder, Orders, Strategy};
use protocol::wire::{Operation, OrderId, Report, SelfTrade, Side, Terms};

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
/// Each fill moves what it believes by this part of the difference.
const MEMORY: i64 = 4;

/// A quote in a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quote {
    id: OrderId,
    price: i64,
    moves: u32,
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
    quotes: Vec<[Option<Quote>; 2]>,
}

impl Maker {
    /// A maker at so many venues that follows these times.
    pub fn new(player: Player, venues: u16) -> Self {
        Self { player, desk: Desk { quotes: vec![[None; 2]; venues.into()], ..Desk::default() } }
    }
}

impl Desk {
    /// The price of a quote.
    fn price(&self, fair: i64, side: Side) -> i64 {
        let held = self.position / QUOTE as i64;
        let skewed = fair - (held * SKEW).clamp(-MOST_SKEW, MOST_SKEW);
        let price = match side {
            Side::Buy => skewed - HALF_SPREAD,
            Side::Sell => skewed + HALF_SPREAD,
        };
        price.max(1)
    }

    fn quote(&mut self, venue: u16, side: Side) -> Option<&mut Option<Quote>> {
        Some(&mut self.quotes.get_mut(usize::from(venue))?[usize::from(side == Side::Sell)])
    }
}

impl Shape for Desk {
    fn shape(&mut self, scheduled: &NewOrder) -> Option<NewOrder> {
        if self.fair.is_none() && scheduled.price > 0 {
            self.fair = Some(scheduled.price);
        }
        let price = self.price(self.fair?, scheduled.side);
        let quote = *self.quote(scheduled.venue, scheduled.side)?;
        let order = NewOrder { price, quantity: QUOTE, target: 0, terms: Terms::default(), ..*scheduled };
        Some(match quote {
            None => {
                // It waits for others to come; never takes, also not from itself.
                let terms = Terms { post_only: true, self_trade: SelfTrade::CancelNewest, ..order.terms };
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

    fn sent(&mut self, order: &NewOrder, id: OrderId) {
        let Some(quote) = self.quote(order.venue, order.side) else { return };
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

impl Desk {
    fn learn(&mut self, report: &Report) {
        if report.filled > 0 {
            let filled = report.filled.cast_signed();
            self.position += if report.side == Side::Buy { filled } else { -filled };
            let fair = self.fair.unwrap_or(report.price);
            self.fair = Some(fair + (report.price - fair) / MEMORY);
        }
        if let Some(quote) = self.quote(report.venue, report.side)
            && report.is_last
            && quote.is_some_and(|quote| quote.id == report.id)
        {
            *quote = None;
        }
    }
}

impl Strategy for Maker {
    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.player.due() > orders.now() { 0 } else { self.player.send_due(orders, &mut self.desk) }
    }

    #[inline(never)]
    fn on_report(&mut self, report: &Report, _: &mut impl Orders) {
        self.desk.learn(report);
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
        Desk { quotes: vec![[None; 2]; 2], ..Desk::default() }
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
        assert_eq!((moved.operation, moved.target, moved.terms), (Operation::Replace, 0, Terms::default()));
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
}

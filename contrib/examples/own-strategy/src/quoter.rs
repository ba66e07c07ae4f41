//! A user-defined strategy that keeps state and reacts to reports.

use launcher::protocol::wire::{Report, Side};
use launcher::strategy::{Context, OrderRequest, Orders, Strategy};

const LOT: u64 = 100;
const MOST: u64 = 300;

/// A strategy that buys until its position is `MOST` (a quantity of 300), then sells everything and
/// starts again. It has one order open at a time, each at the next venue. It bids lower after each
/// buy and asks higher after each partly filled sale.
pub struct Quoter {
    held: u64,
    selling: bool,
    price: i64,
    venue: u16,
    venues: u16,
}

impl Quoter {
    /// Creates a quoting strategy without a position, whose first venue depends on its index in the
    /// run.
    pub fn new(context: &Context) -> Self {
        Self {
            held: 0,
            selling: false,
            price: 10_000,
            venue: context.strategy % context.venues,
            venues: context.venues,
        }
    }

    fn quote(&mut self, orders: &mut impl Orders) -> usize {
        let (side, quantity) = if self.selling { (Side::Sell, self.held) } else { (Side::Buy, LOT) };
        let order = OrderRequest { side, quantity, price: self.price, ..OrderRequest::to_venue(self.venue) };
        // Refused: too many are open, or all orders of the plan are sent. The next cycle tries
        // again.
        if orders.send(order).is_err() {
            return 0;
        }
        self.venue = (self.venue + 1) % self.venues;
        1
    }
}

impl Strategy for Quoter {
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if orders.open() == 0 { self.quote(orders) } else { 0 }
    }

    fn on_report(&mut self, report: &Report, orders: &mut impl Orders) {
        match report.side {
            Side::Buy => self.held += report.filled,
            Side::Sell => {
                // A sale without a position is impossible: a venue that reports one is wrong, and
                // the panic ends this process only.
                self.held = self.held.checked_sub(report.filled).expect("sold no more than was held");
            }
        }
        if !report.is_last {
            return;
        }
        self.price += match report.side {
            Side::Buy => -1,
            Side::Sell => i64::from(self.held > 0),
        };
        self.selling = self.held >= MOST || (self.selling && self.held > 0);
        self.quote(orders);
    }

    /// Never by itself: it sends all orders that the plan has for it.
    fn finished(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use launcher::protocol::wire::Order;
    use launcher::strategy::{Event, testing};

    #[test]
    fn it_buys_three_lots_and_sells_them() {
        let quoter = Quoter { held: 0, selling: false, price: 100, venue: 0, venues: 2 };
        let events = testing::play_against_echo(quoter, 8);
        let sent: Vec<Order> = events
            .iter()
            .filter_map(|event| if let Event::Sent(order) = event { Some(*order) } else { None })
            .take(5)
            .collect();
        let sides: Vec<Side> = sent.iter().map(|order| order.request.side).collect();
        assert_eq!(sides, [Side::Buy, Side::Buy, Side::Buy, Side::Sell, Side::Buy]);
        assert_eq!(
            (sent[3].request.quantity, sent[3].request.price),
            (300, 97),
            "all of it, and three bids lower"
        );
        assert_eq!(sent.iter().map(|order| order.request.venue).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
    }
}

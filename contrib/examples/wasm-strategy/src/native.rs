//! The player in Rust, with which the module is compared.

use launcher::protocol::wire::{Report, Side};
use launcher::strategy::{Context, OrderRequest, Orders, Strategy};

/// 0.01 units, in 1e-8 units.
const LOT: u64 = 1_000_000;

/// Price of a unit in cents.
const PRICE: i64 = 41_300;

/// The strategy of `modules/player.wat` in Rust: one order at a time, each at the next venue, buys
/// and sales in turn.
pub struct NativePlayer {
    is_open: bool,
    venue: u16,
    venues: u16,
    side: Side,
}

impl NativePlayer {
    /// Creates a player whose first venue depends on its index in the run.
    pub fn new(context: &Context) -> Self {
        let venue = context.strategy % context.venues;
        Self { is_open: false, venue, venues: context.venues, side: Side::Buy }
    }
}

impl Strategy for NativePlayer {
    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.is_open {
            return 0;
        }
        let order = OrderRequest {
            side: self.side,
            quantity: LOT,
            price: PRICE,
            ..OrderRequest::to_venue(self.venue)
        };
        if orders.send(order).is_err() {
            return 0;
        }
        self.is_open = true;
        self.venue = if self.venue + 1 == self.venues { 0 } else { self.venue + 1 };
        self.side = if self.side == Side::Buy { Side::Sell } else { Side::Buy };
        1
    }

    #[inline]
    fn on_report(&mut self, report: &Report, _: &mut impl Orders) {
        if report.is_last {
            self.is_open = false;
        }
    }

    fn finished(&self) -> bool {
        false
    }
}

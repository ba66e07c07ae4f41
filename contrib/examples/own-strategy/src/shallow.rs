//! A user-defined venue with one report per order.

use launcher::gateway::{DelayModel, in_full};
use launcher::protocol::wire::{Order, Report};

/// Maximum quantity filled per order.
const DEPTH: u64 = 120;
const DELAY_NS: u64 = 1_000_000;

/// A venue with little liquidity: fills at most `DEPTH` of each order, after a millisecond.
pub struct Shallow;

impl DelayModel for Shallow {
    fn delay_ns(&mut self, _: &Order) -> u64 {
        DELAY_NS
    }

    fn execute(&mut self, order: &Order) -> Report {
        let full = in_full(order);
        Report { filled: full.filled.min(DEPTH), ..full }
    }
}

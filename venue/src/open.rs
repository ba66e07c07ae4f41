//! Open orders as the exchange's side of the sessions knows them: next report number, filled
//! quantity.

use protocol::wire::{Order, Side};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// An open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOrder {
    /// The number of its next report.
    pub number: u8,
    /// Its side.
    pub side: Side,
    /// What it trades.
    pub instrument: u16,
    /// Its limit price.
    pub price: i64,
    /// What was filled of it in all.
    pub filled: u64,
    /// What is open of it.
    pub leaves: u64,
}

impl OpenOrder {
    /// An order that has just arrived.
    pub const fn new(order: &Order) -> Self {
        Self {
            number: 0,
            side: order.side,
            instrument: order.instrument,
            price: order.price,
            filled: 0,
            leaves: order.quantity,
        }
    }
}

/// The open orders by their ids. Room for so many is set aside at the start; more would be
/// allocated.
pub type OpenOrders = HashMap<u64, OpenOrder, BuildHasherDefault<IdHasher>>;

/// Spreads the ids of orders, which differ in a few low bits: one multiplication (Fibonacci
/// hashing, Knuth vol. 3, 6.4). Ids come from strategies; one that chooses them to collide slows
/// down the venue that it trades at, as by sending more orders.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, id: u64) {
        let spread = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // The table takes the place from the low bits and its marks from the high ones.
        self.0 = spread ^ spread >> 32;
    }
}

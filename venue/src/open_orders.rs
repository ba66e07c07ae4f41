//! Open orders of strategies at an exchange: next report number, filled and open quantity.

use protocol::wire::{Order, Side};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// An open order of a strategy at an exchange: its next report number and its quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOrder {
    pub number: u8,
    pub side: Side,
    pub instrument: u16,
    /// Limit price in cents.
    pub price: i64,
    /// Total quantity filled, in 1e-8 units.
    pub filled: u64,
    /// Open quantity, in 1e-8 units.
    pub leaves: u64,
}

impl OpenOrder {
    pub const fn new(order: &Order) -> Self {
        Self {
            number: 0,
            side: order.request.side,
            instrument: order.request.instrument,
            price: order.request.price,
            filled: 0,
            leaves: order.request.quantity,
        }
    }
}

/// The open orders of an exchange by id. Capacity is reserved at the start.
pub type OpenOrders = HashMap<u64, OpenOrder, BuildHasherDefault<IdHasher>>;

/// A hasher for order ids, by one multiplication. Ids that collide slow down their venue only.
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
        // The table takes the bucket from the low bits and its tags from the high ones.
        self.0 = spread ^ spread >> 32;
    }
}

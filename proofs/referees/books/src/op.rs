//! Operations with the same meaning in every book, and random numbers for loads.

/// An operation on an order book. Ids are unique within a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A limit order, good till cancel.
    Add {
        id: u64,
        buy: bool,
        price: u64,
        quantity: u64,
    },
    /// A limit order, immediate or cancel.
    Take {
        id: u64,
        buy: bool,
        price: u64,
        quantity: u64,
    },
    Market {
        id: u64,
        buy: bool,
        quantity: u64,
    },
    Cancel {
        id: u64,
    },
    /// Another price, the same quantity; `quantity` is the open quantity.
    Move {
        id: u64,
        price: u64,
        quantity: u64,
    },
}

impl Op {
    /// Returns the price of the operation, if it has one.
    pub fn price(&self) -> Option<u64> {
        match *self {
            Op::Add { price, .. } | Op::Take { price, .. } | Op::Move { price, .. } => Some(price),
            Op::Market { .. } | Op::Cancel { .. } => None,
        }
    }
}

/// A random number generator (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(x ^ (x >> 31)) * u128::from(bound)) >> 64) as u64
    }
}

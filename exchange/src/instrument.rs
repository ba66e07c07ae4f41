//! Instruments, and the capacity that each needs.

use thiserror::Error;

/// An instrument: which prices and quantities its orders may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Prices are multiples of it; from 1 to 2^62.
    pub tick: i64,
    /// Quantities are multiples of it; above 0.
    pub lot: u64,
    /// The lowest price of the band, above 0.
    pub price_low: i64,
    /// The highest, at most 2^62.
    pub price_high: i64,
    /// The largest quantity of an order.
    pub max_quantity: u64,
    /// Decides between prices of an auction that are equally good; inside of the band.
    pub reference_price: i64,
}

impl Default for Instrument {
    /// Ticks and lots of 1, any price to 2^40 and any quantity to 2^40, reference price 1.
    fn default() -> Self {
        Instrument {
            tick: 1,
            lot: 1,
            price_low: 1,
            price_high: 1 << 40,
            max_quantity: 1 << 40,
            reference_price: 1,
        }
    }
}

impl Instrument {
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match () {
            () if self.tick <= 0 || self.tick > 1 << 62 => Err("the tick is not from 1 to 2^62"),
            () if self.lot == 0 => Err("the lot is 0"),
            () if self.price_low <= 0 => Err("the band's lowest price is not above 0"),
            () if self.price_high < self.price_low => Err("the band's highest price is below its lowest"),
            () if self.price_high > 1 << 62 => Err("the band's highest price is above 2^62"),
            () if self.max_quantity < self.lot => Err("the largest quantity is below a lot"),
            () if !(self.price_low..=self.price_high).contains(&self.reference_price) => {
                Err("the reference price is outside of the band")
            }
            () => Ok(()),
        }
    }

    pub(crate) fn price_fits(&self, price: i64) -> bool {
        (self.price_low..=self.price_high).contains(&price) && (self.tick == 1 || price % self.tick == 0)
    }

    pub(crate) fn quantity_fits(&self, quantity: u64) -> bool {
        quantity <= self.max_quantity && (self.lot == 1 || quantity.is_multiple_of(self.lot))
    }
}

/// How much is set aside at the start. Nothing is allocated later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Orders that can be open at once, over all instruments; waiting stop orders count.
    pub orders: usize,
    /// Price levels that can be in use at once, over all instruments, both sides and stop prices.
    /// Each waiting stop-limit order takes one more, for when it is triggered. An order that could
    /// rest is rejected as full when those that it may need (stop-limit: 2; limit that does not
    /// rest, market: 0; others: 1) are not free. Twice the number of orders always suffices.
    pub levels: usize,
}

impl Capacity {
    /// Room for so many orders at any prices.
    pub fn orders(orders: usize) -> Self {
        Capacity { orders, levels: 2 * orders }
    }
}

/// Why there can be no exchange of this kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// An instrument contradicts itself.
    #[error("instrument {index}: {problem}")]
    Instrument {
        /// Which.
        index: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// More than 65,535 instruments, or none.
    #[error("{0} instruments; 1 to 65535 are possible")]
    Instruments(usize),
    /// No orders or levels, or more than a 32-bit index can name.
    #[error("room for {0} orders or levels; 1 to 2^31 are possible")]
    Capacity(usize),
    /// The quantities of all orders could add up to more than 64 bits hold.
    #[error(
        "instrument {index}: {orders} orders of the largest quantity add up to more than 2^64; lower one of them"
    )]
    QuantityOverflow {
        /// Which instrument.
        index: usize,
        /// How many orders there is room for.
        orders: usize,
    },
}

//! Instruments and the capacity of an exchange.

use thiserror::Error;

/// An instrument: the prices and quantities that its orders may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Instrument {
    /// Tick size, from 1 to 2^62: prices are multiples of the tick size, counted from 0.
    pub tick: i64,
    /// Lot size, above 0: quantities are multiples of the lot size.
    pub lot: u64,
    /// Lowest price of the price band, above 0.
    pub price_low: i64,
    /// Highest price of the price band, at most 2^62.
    pub price_high: i64,
    /// Maximum quantity of an order.
    pub max_quantity: u64,
    /// Reference price, inside the price band: breaks ties between prices of an auction.
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

    #[inline(always)]
    pub(crate) fn is_valid_price(&self, price: i64) -> bool {
        (self.price_low..=self.price_high).contains(&price) && (self.tick == 1 || price % self.tick == 0)
    }

    #[inline]
    pub(crate) fn is_valid_quantity(&self, quantity: u64) -> bool {
        quantity <= self.max_quantity && (self.lot == 1 || quantity.is_multiple_of(self.lot))
    }
}

/// The numbers of orders and price levels for which an exchange allocates memory at its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Capacity {
    /// Maximum number of open orders over all instruments, waiting stop orders included.
    pub orders: usize,
    /// Maximum number of price levels in use over all instruments, both sides and stop prices. Each
    /// waiting stop-limit order reserves one more, for its limit price. An order is rejected as
    /// `Full` unless the levels that it may need are free: 2 for a stop-limit order, 0 for a market
    /// order or a limit order that cannot rest, 1 for others. Twice `orders` always suffices.
    pub levels: usize,
}

impl Capacity {
    /// Creates an exchange's capacity for `orders` open orders at any prices.
    pub fn for_orders(orders: usize) -> Self {
        Capacity { orders, levels: 2 * orders }
    }
}

/// The error that an exchange cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An instrument is invalid.
    #[error("instrument {index}: {problem}")]
    Instrument {
        /// Index of the instrument.
        index: usize,
        /// Description of the problem.
        problem: &'static str,
    },
    /// The number of instruments is 0 or above 65,535.
    #[error("{0} instruments; 1 to 65535 are possible")]
    Instruments(usize),
    /// The capacity is 0 orders or levels, or more than 2^30.
    #[error("a capacity of {0} orders or levels; 1 to 2^30 are possible")]
    Capacity(usize),
    /// The quantities of all orders could add up to more than 64 bits hold.
    #[error(
        "instrument {index}: {orders} orders of the largest quantity add up to more than 2^64; lower one of them"
    )]
    QuantityOverflow {
        /// Index of the instrument.
        index: usize,
        /// Capacity of orders.
        orders: usize,
    },
}

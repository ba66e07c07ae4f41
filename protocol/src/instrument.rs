//! Instruments: the prices and quantities that orders may have.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum number of instruments of a run.
pub const MAX_INSTRUMENTS: usize = 4_096;

/// Maximum price (cents) and quantity (1e-8 units) of an order: their products fit 128 bits, and
/// open quantities fit 64.
pub const MAX_VALUE: u64 = 1 << 62;

system::named_enum! {
    /// What an instrument's reference price is, for collars, market orders and exposure.
    ReferenceKind {
        /// The price of the last trade reported to the engine; before the first trade, the
        /// instrument's given price.
        LastTrade = "last-trade",
        /// Always the instrument's given price.
        Given = "given",
    }
}

/// An instrument that can be traded. Orders refer to it by its index in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Instrument {
    /// The instrument's name for people.
    pub name: String,
    /// Tick size in cents, above 0: prices are multiples of the tick size.
    pub tick: i64,
    /// Lot size in 1e-8 units, above 0: quantities are multiples of the lot size.
    pub lot: u64,
    /// The lowest price of the price band, in cents; above 0.
    pub price_low: i64,
    /// The highest price of the price band, in cents; at most [`MAX_VALUE`].
    pub price_high: i64,
    /// The largest quantity of an order, in 1e-8 units; from one lot to [`MAX_VALUE`].
    pub max_quantity: u64,
    /// The given reference price, in cents, inside of the band; 0: none.
    pub reference_price: i64,
    /// The source of the reference price.
    pub reference: ReferenceKind,
}

impl Default for Instrument {
    /// An instrument with any price above 0 and any quantity, without a reference price.
    fn default() -> Self {
        Self {
            name: String::new(),
            tick: 1,
            lot: 1,
            price_low: 1,
            price_high: MAX_VALUE as i64,
            max_quantity: MAX_VALUE,
            reference_price: 0,
            reference: ReferenceKind::LastTrade,
        }
    }
}

/// The error that a field of an instrument is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InstrumentError {
    /// The tick size is not positive.
    #[error("the tick is {0}, and must be 1 or more")]
    Tick(i64),
    /// The lot size is 0.
    #[error("the lot is 0, and must be 1 or more")]
    Lot,
    /// The price band is empty or out of range.
    #[error(
        "the price band is {0} to {1}: it must begin at 1 or more, and end there or above, at most at 2^62"
    )]
    Band(i64, i64),
    /// The largest quantity is out of range.
    #[error("the largest quantity is {0}: it must be a lot to 2^62")]
    Quantity(u64),
    /// The reference price is outside the band.
    #[error("the reference price {0} is outside of the price band")]
    Reference(i64),
}

impl Instrument {
    /// Checks the instrument's tick size, lot size, price band, maximum quantity and reference
    /// price.
    pub fn check(&self) -> Result<(), InstrumentError> {
        let band = self.price_low..=self.price_high;
        match () {
            () if self.tick < 1 => Err(InstrumentError::Tick(self.tick)),
            () if self.lot < 1 => Err(InstrumentError::Lot),
            () if self.price_low < 1 || band.is_empty() || self.price_high > MAX_VALUE as i64 => {
                Err(InstrumentError::Band(self.price_low, self.price_high))
            }
            () if !(self.lot..=MAX_VALUE).contains(&self.max_quantity) => {
                Err(InstrumentError::Quantity(self.max_quantity))
            }
            () if self.reference_price != 0 && !band.contains(&self.reference_price) => {
                Err(InstrumentError::Reference(self.reference_price))
            }
            () => Ok(()),
        }
    }
}

/// A divisor prepared for fast tests whether numbers are multiples of it, without a division. A
/// multiple of an odd number d, times the inverse of d modulo 2^64, is the quotient; any other
/// number becomes larger than every quotient. Powers of two are rotated to the top.
#[derive(Clone, Copy, Debug, Default)]
pub struct Multiple {
    inverse: u64,
    max_quotient: u64,
    shift: u32,
}

impl Multiple {
    /// Prepares a divisor above 0 for tests whether numbers are multiples of it.
    pub const fn new(divisor: u64) -> Self {
        let shift = divisor.trailing_zeros();
        let odd = divisor >> shift;
        // Newton's method: each round doubles the number of correct bits, from three.
        let mut inverse = odd;
        let mut round = 0;
        while round < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
            round += 1;
        }
        Self { inverse, max_quotient: u64::MAX / divisor, shift }
    }

    /// Returns `true` if a number is a multiple of the divisor.
    #[inline(always)]
    pub const fn divides(&self, number: u64) -> bool {
        number.wrapping_mul(self.inverse).rotate_right(self.shift) <= self.max_quotient
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_field_has_its_bounds() {
        let good = Instrument { tick: 5, lot: 10, price_low: 10, price_high: 90, ..Instrument::default() };
        assert_eq!((good.check(), Instrument::default().check()), (Ok(()), Ok(())));
        for (bad, why) in [
            (Instrument { tick: 0, ..good.clone() }, InstrumentError::Tick(0)),
            (Instrument { lot: 0, ..good.clone() }, InstrumentError::Lot),
            (Instrument { price_low: 0, ..good.clone() }, InstrumentError::Band(0, 90)),
            (Instrument { price_high: 9, ..good.clone() }, InstrumentError::Band(10, 9)),
            (Instrument { price_high: i64::MAX, ..good.clone() }, InstrumentError::Band(10, i64::MAX)),
            (Instrument { max_quantity: 9, ..good.clone() }, InstrumentError::Quantity(9)),
            (
                Instrument { max_quantity: MAX_VALUE + 1, ..good.clone() },
                InstrumentError::Quantity(MAX_VALUE + 1),
            ),
            (Instrument { reference_price: 91, ..good.clone() }, InstrumentError::Reference(91)),
        ] {
            assert_eq!(bad.check(), Err(why));
        }
        assert_eq!(Instrument { reference_price: 90, ..good }.check(), Ok(()));
    }

    proptest! {
        #[test]
        fn multiple_agrees_with_remainder(divisor in 1u64.., number: u64, small in 1u64..5_000, quotient: u64) {
            for divisor in [divisor, small, 1 << (divisor % 64)] {
                let multiple = Multiple::new(divisor);
                for number in [number, number % (4 * small), divisor, (quotient % (u64::MAX / divisor)) * divisor, 0] {
                    prop_assert_eq!(multiple.divides(number), number % divisor == 0, "{} of {}", number, divisor);
                }
            }
        }
    }
}

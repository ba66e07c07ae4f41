//! Price checks of an instrument's orders: tick, lot, band and collar; and its reference price.

use protocol::instrument::{Instrument, Multiple, ReferenceKind};
use protocol::limits::{OFF, RiskControl};
use protocol::reject::Reject;
use serde::{Deserialize, Serialize};

/// The price rules of an instrument, and its reference price. Band and collar are one range, so
/// that a price costs two comparisons.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct Listing {
    low: i64,
    high: i64,
    /// The reference price in cents; 0: none yet.
    pub(super) reference: i64,
    #[serde(skip)]
    pub(super) rules: InstrumentRules,
    /// In basis points of the reference price, and in ticks; each may be [`OFF`].
    collar: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InstrumentRules {
    tick: Multiple,
    lot: Multiple,
    follows_trades: bool,
    band: (i64, i64),
    tick_size: i64,
    pub(super) max_quantity: u64,
}

impl Listing {
    pub(crate) fn new(instrument: &Instrument) -> Self {
        let rules = InstrumentRules {
            tick: Multiple::new(instrument.tick.cast_unsigned().max(1)),
            lot: Multiple::new(instrument.lot.max(1)),
            follows_trades: instrument.reference == ReferenceKind::LastTrade,
            band: (instrument.price_low, instrument.price_high),
            tick_size: instrument.tick,
            max_quantity: instrument.max_quantity,
        };
        let (low, high) = rules.band;
        let reference = instrument.reference_price;
        Self { low, high, reference, rules, collar: (OFF, OFF) }
    }

    pub(crate) fn set(&mut self, control: RiskControl, value: u64) {
        match control {
            RiskControl::PriceCollar => self.collar.0 = value,
            RiskControl::PriceCollarTicks => self.collar.1 = value,
            _ => return,
        }
        self.set_range();
    }

    /// Sets the instrument's reference price to that of a trade. Returns the change of the
    /// reference price.
    #[inline]
    pub(crate) fn record_trade(&mut self, price: i64) -> i64 {
        if !self.rules.follows_trades || price <= 0 || price == self.reference {
            return 0;
        }
        let moved = price.wrapping_sub(self.reference);
        self.reference = price;
        if self.collar != (OFF, OFF) {
            self.set_range();
        }
        moved
    }

    fn set_range(&mut self) {
        (self.low, self.high) = self.rules.band;
        if self.collar == (OFF, OFF) {
            return;
        }
        if self.reference == 0 {
            (self.low, self.high) = (i64::MAX, i64::MIN);
            return;
        }
        let reference = i128::from(self.reference);
        let width = |limit, unit| if limit == OFF { i128::MAX / 4 } else { i128::from(limit) * unit };
        let (points, ticks) = self.collar;
        let max = (width(points, reference) / 10_000).min(width(ticks, self.rules.tick_size.into()));
        let within = |price: i128| price.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        self.low = self.low.max(within(reference - max));
        self.high = self.high.min(within(reference + max));
    }

    #[inline(always)]
    pub(crate) fn check_price(&self, price: i64) -> Result<(), Reject> {
        if price < self.low || price > self.high {
            return Err(self.price_reject(price));
        }
        if self.rules.tick.divides(price.cast_unsigned()) { Ok(()) } else { Err(Reject::OddTick) }
    }

    #[inline(always)]
    pub(crate) fn check_lot(&self, quantity: u64) -> Result<(), Reject> {
        if self.rules.lot.divides(quantity) { Ok(()) } else { Err(Reject::OddLot) }
    }

    #[cold]
    fn price_reject(&self, price: i64) -> Reject {
        let (low, high) = self.rules.band;
        match () {
            () if price < 0 => Reject::BadPrice,
            () if price < low || price > high => Reject::PriceBand,
            () if self.reference == 0 => Reject::NoReference,
            () => Reject::PriceCollar,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instrument() -> Instrument {
        Instrument {
            tick: 5,
            lot: 100,
            price_low: 500,
            price_high: 2_000,
            reference_price: 1_000,
            ..Instrument::default()
        }
    }

    #[test]
    fn prices_and_quantities_have_bounds_and_steps() {
        let traded = Listing::new(&instrument());
        for (price, wanted) in [
            (495, Err(Reject::PriceBand)),
            (500, Ok(())),
            (501, Err(Reject::OddTick)),
            (2_000, Ok(())),
            (2_005, Err(Reject::PriceBand)),
            (-5, Err(Reject::BadPrice)),
        ] {
            assert_eq!(traded.check_price(price), wanted, "{price}");
        }
        assert_eq!((traded.check_lot(300), traded.check_lot(250)), (Ok(()), Err(Reject::OddLot)));
    }

    #[test]
    fn narrower_collar_around_last_trade_applies() {
        let mut traded = Listing::new(&instrument());
        traded.set(RiskControl::PriceCollar, 1_000);
        let bounds = |traded: &Listing, low, high| {
            assert_eq!((traded.check_price(low), traded.check_price(high)), (Ok(()), Ok(())));
            for price in [low - 5, high + 5] {
                assert_eq!(traded.check_price(price), Err(Reject::PriceCollar), "{price}");
            }
        };
        bounds(&traded, 900, 1_100);
        assert_eq!(
            (traded.record_trade(1_200), traded.record_trade(1_200), traded.record_trade(0)),
            (200, 0, 0)
        );
        bounds(&traded, 1_080, 1_320);
        traded.set(RiskControl::PriceCollarTicks, 2);
        bounds(&traded, 1_190, 1_210);
        traded.set(RiskControl::PriceCollar, OFF);
        traded.set(RiskControl::PriceCollarTicks, OFF);
        assert_eq!(traded.check_price(2_000), Ok(()));
        traded.set(RiskControl::PriceCollar, 0);
        bounds(&traded, 1_200, 1_200);
    }

    #[test]
    fn collar_without_reference_price_rejects_all() {
        let mut traded = Listing::new(&Instrument { reference_price: 0, ..instrument() });
        assert_eq!(traded.check_price(1_000), Ok(()));
        traded.set(RiskControl::PriceCollar, 100);
        assert_eq!(traded.check_price(1_000), Err(Reject::NoReference));
        assert_eq!(traded.check_price(2_005), Err(Reject::PriceBand));
        traded.record_trade(1_000);
        assert_eq!(traded.check_price(1_000), Ok(()));
    }

    #[test]
    fn given_reference_price_is_never_moved() {
        let given = Instrument { reference: ReferenceKind::Given, ..instrument() };
        let mut traded = Listing::new(&given);
        assert_eq!((traded.record_trade(1_500), traded.reference), (0, 1_000));
    }
}

//! What orders in an instrument are checked against: tick, lot, price band, price collar, reference price.

use super::multiple::Multiple;
use protocol::instrument::{Instrument, ReferenceKind};
use protocol::limits::OFF;
use protocol::reject::Reject;
use serde::{Deserialize, Serialize};

/// An instrument, prepared. Band and collar are one window, so that a price in order costs two comparisons.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Traded {
    low: i64,
    high: i64,
    /// The reference price; 0: none.
    reference: i64,
    tick: Multiple,
    lot: Multiple,
    /// A kill switch is on for it.
    pub(crate) is_killed: bool,
    follows_trades: bool,
    band: (i64, i64),
    tick_size: i64,
    /// In basis points of the reference price, and in ticks.
    collar: (u64, u64),
}

/// What of an instrument changes: whether it is killed the switches say, the window follows from the rest.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct TradedState {
    reference: i64,
    collar: (u64, u64),
}

impl Traded {
    pub(crate) fn new(instrument: &Instrument) -> Self {
        let mut traded = Self {
            low: 0,
            high: 0,
            reference: instrument.reference_price,
            tick: Multiple::of(instrument.tick.cast_unsigned().max(1)),
            lot: Multiple::of(instrument.lot.max(1)),
            is_killed: false,
            follows_trades: instrument.reference == ReferenceKind::LastTrade,
            band: (instrument.price_low, instrument.price_high),
            tick_size: instrument.tick,
            collar: (OFF, OFF),
        };
        traded.reckon();
        traded
    }

    /// Sets the collar, in basis points and in ticks; [`OFF`] each.
    pub(crate) fn set_collar(&mut self, points: Option<u64>, ticks: Option<u64>) {
        self.collar = (points.unwrap_or(self.collar.0), ticks.unwrap_or(self.collar.1));
        self.reckon();
    }

    /// The reference price; 0: none.
    #[inline(always)]
    pub(crate) const fn reference(&self) -> i64 {
        self.reference
    }

    /// A trade at that price; by how much the reference price moved.
    #[inline]
    pub(crate) fn trades(&mut self, price: i64) -> i64 {
        if !self.follows_trades || price <= 0 || price == self.reference {
            return 0;
        }
        let moved = price.wrapping_sub(self.reference);
        self.reference = price;
        if self.collar != (OFF, OFF) {
            self.reckon();
        }
        moved
    }

    /// What was set or has happened since the start.
    pub(super) fn state(&self) -> TradedState {
        TradedState { reference: self.reference, collar: self.collar }
    }

    /// Goes on from there.
    pub(super) fn restore(&mut self, state: &TradedState) {
        (self.reference, self.collar) = (state.reference, state.collar);
        self.reckon();
    }

    /// The window of prices.
    fn reckon(&mut self) {
        (self.low, self.high) = self.band;
        if self.collar == (OFF, OFF) {
            return;
        }
        if self.reference == 0 {
            // No price is in it.
            (self.low, self.high) = (i64::MAX, i64::MIN);
            return;
        }
        let (points, ticks) = self.collar;
        let reference = i128::from(self.reference);
        let by_points = if points == OFF { i128::MAX / 4 } else { reference * i128::from(points) / 10_000 };
        let by_ticks =
            if ticks == OFF { i128::MAX / 4 } else { i128::from(ticks) * i128::from(self.tick_size) };
        let most = by_points.min(by_ticks);
        let within = |price: i128| price.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        self.low = self.low.max(within(reference - most));
        self.high = self.high.min(within(reference + most));
    }

    /// Checks a limit or stop price, above 0.
    #[inline(always)]
    pub(crate) fn check_price(&self, price: i64) -> Result<(), Reject> {
        if price < self.low || price > self.high {
            return Err(self.explain(price));
        }
        if !self.tick.has(price.cast_unsigned()) {
            return Err(Reject::OddTick);
        }
        Ok(())
    }

    /// Checks a quantity.
    #[inline(always)]
    pub(crate) fn check_lot(&self, quantity: u64) -> Result<(), Reject> {
        if self.lot.has(quantity) { Ok(()) } else { Err(Reject::OddLot) }
    }

    #[cold]
    fn explain(&self, price: i64) -> Reject {
        match () {
            () if price < 0 => Reject::BadPrice,
            () if price < self.band.0 || price > self.band.1 => Reject::PriceBand,
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
        let traded = Traded::new(&instrument());
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
    fn a_collar_is_around_the_last_trade_and_the_narrower_one_counts() {
        let mut traded = Traded::new(&instrument());
        traded.set_collar(Some(1_000), None);
        let bounds = |traded: &Traded, low, high| {
            assert_eq!((traded.check_price(low), traded.check_price(high)), (Ok(()), Ok(())));
            for price in [low - 5, high + 5] {
                assert_eq!(traded.check_price(price), Err(Reject::PriceCollar), "{price}");
            }
        };
        bounds(&traded, 900, 1_100);
        assert_eq!((traded.trades(1_200), traded.trades(1_200), traded.trades(0)), (200, 0, 0));
        bounds(&traded, 1_080, 1_320);
        traded.set_collar(None, Some(2));
        bounds(&traded, 1_190, 1_210);
        traded.set_collar(Some(OFF), Some(OFF));
        assert_eq!(traded.check_price(2_000), Ok(()));
        traded.set_collar(Some(0), None);
        bounds(&traded, 1_200, 1_200);
    }

    #[test]
    fn without_a_reference_price_a_collar_lets_nothing_through() {
        let mut traded = Traded::new(&Instrument { reference_price: 0, ..instrument() });
        assert_eq!(traded.check_price(1_000), Ok(()));
        traded.set_collar(Some(100), None);
        assert_eq!(traded.check_price(1_000), Err(Reject::NoReference));
        assert_eq!(traded.check_price(2_005), Err(Reject::PriceBand));
        traded.trades(1_000);
        assert_eq!(traded.check_price(1_000), Ok(()));
    }

    #[test]
    fn a_given_reference_price_stays() {
        let given = Instrument { reference: ReferenceKind::Given, ..instrument() };
        let mut traded = Traded::new(&given);
        assert_eq!((traded.trades(1_500), traded.reference()), (0, 1_000));
    }
}

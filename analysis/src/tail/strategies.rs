//! The slowest orders of each strategy by cause, in runs that distinguish strategies.

use super::traces::Ways;
use super::{NanosByCause, Parts};
use crate::radix_select::Bits;
use crate::summary::StrategyTail;
use protocol::plan::Plan;

/// Analyzed fraction of a strategy's orders: one of this many.
const ONE_OF: u64 = 100;

/// The totals that are built while orders are explained.
#[derive(Default)]
pub(super) struct Tails {
    /// For each trace: whether it is among its strategy's slowest.
    is_slow: Bits,
    /// Ticks by strategy; empty if strategies are not distinguished.
    parts: Vec<Parts>,
}

impl Tails {
    /// Creates empty totals.
    pub fn of(ways: &Ways<'_>, plan: &Plan) -> Self {
        if !plan.trading().has_several_kinds() {
            return Self::default();
        }
        let strategies = plan.trading().strategies;
        let mut is_slow = Bits::new(ways.count as usize);
        for strategy in 0..strategies {
            let own = ways.iter(Some(strategy)).count() as u64;
            ways.mark_slowest(Some(strategy), own / ONE_OF, &mut is_slow);
        }
        Self { is_slow, parts: vec![Parts::default(); strategies.into()] }
    }

    /// Adds a span of an order.
    #[inline]
    pub fn take(&mut self, order: usize, ways: &Ways<'_>, parts: &Parts) {
        if self.is_slow.get(order)
            && let Some(sum) = self.parts.get_mut(usize::from(ways.strategy_of(order)))
        {
            sum.add(parts);
        }
    }

    /// Returns the tail of each strategy with explained orders.
    pub fn told(
        &self,
        ways: &Ways<'_>,
        touched: &Bits,
        ns: impl Fn(&Parts) -> NanosByCause,
    ) -> Vec<StrategyTail> {
        let of = |(strategy, parts): (u16, &Parts)| {
            let mut own = StrategyTail { strategy, causes_ns: ns(parts), ..StrategyTail::default() };
            for way in ways.iter(Some(strategy)) {
                own.explained += 1;
                own.touched += u64::from(touched.get(way.order as usize));
                own.orders += u64::from(self.is_slow.get(way.order as usize));
            }
            own
        };
        (0..).zip(&self.parts).map(of).filter(|own| own.orders > 0).collect()
    }
}

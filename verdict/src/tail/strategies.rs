//! The slowest orders of each strategy by cause, in runs that distinguish strategies.

use super::attribute::add_ticks;
use super::traces::OrderTraces;
use super::{NanosByCause, TicksByCause};
use crate::radix_select::BitSet;
use crate::summary::StrategyTail;
use protocol::index::StrategyIndex;
use protocol::plan::Plan;

/// Analyzed fraction of a strategy's orders: one of this many.
const TAIL_FRACTION: u64 = 100;

/// Totals by strategy and cause over the slowest orders of each strategy.
#[derive(Default)]
pub(super) struct StrategyTails {
    /// For each trace: whether it is among its strategy's slowest.
    is_slow: BitSet,
    /// Ticks by strategy; empty if strategies are not distinguished.
    ticks: Vec<TicksByCause>,
}

impl StrategyTails {
    /// Creates empty totals of slow orders' causes for the strategies of a plan.
    pub fn new(traces: &OrderTraces<'_>, plan: &Plan) -> Self {
        if !plan.trading().has_several_kinds() && plan.isolation.only().is_some() {
            return Self::default();
        }
        let strategies = plan.trading().strategies;
        let mut is_slow = BitSet::new(traces.count as usize);
        for strategy in StrategyIndex::first(strategies) {
            let own = traces.iter(Some(strategy)).count() as u64;
            traces.mark_slowest(Some(strategy), own / TAIL_FRACTION, &mut is_slow);
        }
        Self { is_slow, ticks: vec![TicksByCause::default(); strategies.into()] }
    }

    /// Adds a stage of an order, with its ticks by cause, to the totals of the order's strategy.
    #[inline]
    pub fn record(&mut self, order: u32, traces: &OrderTraces<'_>, causes: &TicksByCause) {
        if self.is_slow.get(order as usize)
            && let Some(sum) = self.ticks.get_mut(traces.strategy_of(order).as_usize())
        {
            add_ticks(sum, causes);
        }
    }

    /// Returns the causes of slow orders for each strategy that has any.
    pub fn finish(
        &self,
        traces: &OrderTraces<'_>,
        touched: &BitSet,
        ns: impl Fn(&TicksByCause) -> NanosByCause,
    ) -> Vec<StrategyTail> {
        let summarize_tail = |(strategy, causes): (StrategyIndex, &TicksByCause)| {
            let mut own = StrategyTail { strategy, causes_ns: ns(causes), ..StrategyTail::default() };
            for trace in traces.iter(Some(strategy)) {
                own.explained += 1;
                own.stall_affected += u64::from(touched.get(trace.order as usize));
                own.orders += u64::from(self.is_slow.get(trace.order as usize));
            }
            own
        };
        StrategyIndex::first(u16::MAX)
            .zip(&self.ticks)
            .map(summarize_tail)
            .filter(|own| own.orders > 0)
            .collect()
    }
}

//! The slowest orders of each strategy by cause, in runs that distinguish strategies.

use super::attribute::add_ticks;
use super::traces::OrderTraces;
use super::{Cause, NanosByCause, TicksByCause};
use crate::radix_select::BitSet;
use protocol::index::StrategyIndex;
use protocol::plan::Plan;
use serde::{Deserialize, Serialize};

/// Analyzed fraction of a strategy's orders: one of this many.
const TAIL_FRACTION: u64 = 100;

/// The causes of the slowest 1 % of a strategy's orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyTail {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Number of the strategy's orders that were explained.
    pub explained: u64,
    /// Number of the strategy's orders that a gap or the backlog after one affected.
    #[serde(rename = "touched")]
    pub stall_affected: u64,
    /// Number of orders in the slowest 1 %.
    pub orders: u64,
    /// Time of the slowest orders by cause, in nanoseconds: machine, memory, backlog, queueing,
    /// usual, unexplained, wake-up.
    pub causes_ns: NanosByCause,
}

impl StrategyTail {
    /// Returns a cause's share in the time of the strategy's slowest orders, 0 to 1.
    pub fn share(&self, cause: Cause) -> Option<f64> {
        let all = self.causes_ns.total();
        (all > 0).then(|| self.causes_ns.get(cause) as f64 / all as f64)
    }
}

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

    /// Adds a stage's ticks by cause to the totals of the order's strategy, if the order is among
    /// the strategy's slowest 1 %.
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

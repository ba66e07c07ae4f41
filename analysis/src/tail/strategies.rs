//! The slowest orders of each strategy by cause, where strategies are told apart.

use super::ways::Way;
use super::{Cause, Parts};
use crate::summary::StrategyTail;
use protocol::plan::Plan;
use std::cmp::Reverse;

/// The slowest of so many of a strategy's orders are looked at.
const ONE_OF: usize = 100;

/// What is added up while the orders are explained.
pub(super) struct Tails {
    /// Of each way, whether it is one of its strategy's slowest; empty: strategies are not told apart.
    is_slow: Vec<bool>,
    parts: Vec<Parts>,
}

impl Tails {
    /// Nothing added yet.
    pub fn of(ways: &[Way<'_>], plan: &Plan) -> Self {
        if !plan.trading().has_several_kinds() {
            return Self { is_slow: Vec::new(), parts: Vec::new() };
        }
        let mut orders: Vec<u32> = (0..ways.len() as u32).collect();
        let way = |order: &u32| &ways[*order as usize];
        orders.sort_unstable_by_key(|order| {
            let way = way(order);
            (way.id.strategy(), Reverse(way.rt_venue), way.row.began(), way.id.word())
        });
        let mut is_slow = vec![false; ways.len()];
        for own in orders.chunk_by(|one, other| way(one).id.strategy() == way(other).id.strategy()) {
            own.iter().take(own.len() / ONE_OF).for_each(|order| is_slow[*order as usize] = true);
        }
        Self { is_slow, parts: vec![Parts::default(); plan.trading().strategies.into()] }
    }

    /// A passage of that order has these parts.
    #[inline]
    pub fn take(&mut self, order: usize, way: &Way<'_>, parts: &Parts) {
        if self.is_slow.get(order) == Some(&true)
            && let Some(sum) = self.parts.get_mut(usize::from(way.id.strategy()))
        {
            sum.add(parts);
        }
    }

    /// Each strategy that has some.
    pub fn told(
        &self,
        ways: &[Way<'_>],
        touched: &[bool],
        ns: impl Fn(&Parts) -> [u64; Cause::ALL.len()],
    ) -> Vec<StrategyTail> {
        let mut all: Vec<StrategyTail> = (0..)
            .zip(&self.parts)
            .map(|(strategy, parts)| StrategyTail {
                strategy,
                causes_ns: ns(parts),
                ..StrategyTail::default()
            })
            .collect();
        for ((way, is_slow), is_touched) in ways.iter().zip(&self.is_slow).zip(touched) {
            if let Some(own) = all.get_mut(usize::from(way.id.strategy())) {
                own.explained += 1;
                own.touched += u64::from(*is_touched);
                own.orders += u64::from(*is_slow);
            }
        }
        all.retain(|own| own.orders > 0);
        all
    }
}

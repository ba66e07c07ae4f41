//! Crossover in time: groups of strategies take turns with the orders of one schedule.
//!
//! Two groups that trade at the same time on the same cores wait for each other, so a difference
//! between them is hidden or made up. Two runs differ in the time and in the state of the machine.
//! In a crossover all groups live in one run, and one group at a time is offered orders.

use super::Schedule;
use super::draws::{DrawStream, Draws};

/// How groups of strategies take turns to trade within one run (a crossover): number of groups,
/// length of a turn, and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Number of strategy groups, at least 1. Strategy `i` is in group `i` modulo their number.
    pub groups: u16,
    /// Length of one group's turn (an epoch) in nanoseconds, above 0.
    pub epoch_ns: u64,
    /// Seed of the random order in which the groups take turns.
    pub seed: u64,
}

impl Schedule {
    /// Splits each strategy's orders by time among `groups` strategies, and returns the schedule
    /// with `groups` times as many strategies. Due times, requests and the number of orders stay.
    ///
    /// A block is as many epochs as there are groups. In each block every group has one epoch, in
    /// an order drawn from the seed: whatever drifts or repeats in the machine meets all groups
    /// alike. The orders of a recording lose their recorded order.
    #[must_use]
    pub fn in_turns(self, turns: Turns) -> Self {
        let groups = usize::from(turns.groups.max(1));
        let mut order = BlockOrder::new(turns);
        let mut words: Vec<_> = (0..self.words.len() * groups).map(|_| Vec::new()).collect();
        for (strategy, entries) in self.words.into_iter().enumerate() {
            for entry in entries {
                let epoch = entry[0] / turns.epoch_ns.max(1);
                words[strategy * groups + order.group_of(epoch)].push(entry);
            }
        }
        words.iter_mut().for_each(Vec::shrink_to_fit);
        Self { words, strategy_order: Vec::new(), ..self }
    }
}

/// The groups of the epochs, drawn block by block up to the latest epoch that was asked for.
struct BlockOrder {
    draws: Draws,
    groups: usize,
    drawn: Vec<usize>,
}

impl BlockOrder {
    fn new(turns: Turns) -> Self {
        let draws = Draws::new(turns.seed, DrawStream::Epoch);
        Self { draws, groups: usize::from(turns.groups.max(1)), drawn: Vec::new() }
    }

    fn group_of(&mut self, epoch: u64) -> usize {
        while self.drawn.len() as u64 <= epoch {
            let begin = self.drawn.len();
            self.drawn.extend(0..self.groups);
            // Fisher and Yates.
            for last in (1..self.groups).rev() {
                let other = self.draws.below(last as u64 + 1) as usize;
                self.drawn.swap(begin + last, begin + other);
            }
        }
        self.drawn[epoch as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{sample, spec::tests::small};
    use super::*;
    use protocol::index::StrategyIndex;
    use std::collections::BTreeSet;

    const MS: u64 = 1_000_000;
    const TURNS: Turns = Turns { groups: 3, epoch_ns: 10 * MS, seed: 7 };

    #[test]
    fn one_group_at_a_time_has_orders() {
        let plain = sample(&small()).unwrap();
        let crossed = plain.clone().in_turns(TURNS);
        assert_eq!((crossed.strategies(), crossed.total()), (12, plain.total()));
        assert_eq!(crossed.window_ns(), plain.window_ns());
        let mut groups = vec![BTreeSet::new(); 100];
        for strategy in StrategyIndex::first(12) {
            assert!(crossed.entries(strategy).is_sorted_by_key(|entry| entry.fire_ns));
            for entry in crossed.entries(strategy) {
                groups[(entry.fire_ns / (10 * MS)) as usize].insert(strategy.as_usize() % 3);
            }
        }
        // A hundred orders an epoch: none is empty.
        assert!(groups.iter().all(|groups| groups.len() == 1), "{groups:?}");
        for block in groups.chunks_exact(3) {
            assert_eq!(block.iter().flatten().collect::<BTreeSet<_>>().len(), 3, "{block:?}");
        }
        let orders: BTreeSet<_> = groups.chunks_exact(3).map(|block| format!("{block:?}")).collect();
        assert!(orders.len() > 3, "the order of the turns is drawn: {orders:?}");
    }

    #[test]
    fn strategies_of_all_groups_share_the_orders_of_one() {
        let plain = sample(&small()).unwrap();
        let crossed = plain.clone().in_turns(TURNS);
        for strategy in StrategyIndex::first(4) {
            let mut shared: Vec<_> = (0..3)
                .flat_map(|group| crossed.words(StrategyIndex(strategy.0 * 3 + group)).to_vec())
                .collect();
            shared.sort_by_key(|words| words[0]);
            assert_eq!(shared, plain.words(strategy));
        }
    }

    #[test]
    fn seed_alone_decides_the_order_of_the_turns() {
        let order = |turns: Turns, strategies| {
            let spec = super::super::Spec { strategies, ..small() };
            let crossed = sample(&spec).unwrap().in_turns(turns);
            let all = StrategyIndex::first(crossed.strategies());
            let mut all: Vec<_> = all
                .flat_map(|strategy| {
                    crossed.entries(strategy).map(move |entry| (entry.fire_ns, strategy.0 % 3))
                })
                .collect();
            all.sort();
            all
        };
        assert_eq!(order(TURNS, 4), order(TURNS, 1));
        assert_ne!(order(TURNS, 4), order(Turns { seed: 8, ..TURNS }, 4));
    }
}

//! Which protection key the strategies of level `keys` and their segments have.
//!
//! A process has 15 keys besides the default one, which all other memory carries. One of them is
//! for segments that several such strategies write, such as a contended ring. The others go to the
//! strategies in turn, so with more of them than keys some share one.

use crate::index::StrategyIndex;
use crate::plan::{Isolation, Plan};
use crate::role::Role;
use crate::topology::{RunSegment, SegmentRights};
use shm::attached::Access;

/// Maximum number of memory protection keys (pkeys) for strategies; one more is for segments that
/// several strategies write.
pub const STRATEGY_KEYS: usize = 14;

/// A memory protection key of a run's plan, before the kernel has given it a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlannedKey {
    /// The key of a strategy, or of several if there are too few.
    Strategy(usize),
    /// The key of memory that strategies with different keys write.
    Shared,
}

impl Plan {
    /// Returns the strategies with the isolation level `keys`, in the order of their index.
    pub fn strategies_with_keys(&self) -> impl Iterator<Item = StrategyIndex> + '_ {
        let strategies = StrategyIndex::first(self.trading().strategies);
        strategies.filter(|strategy| self.isolation.kind_of(*strategy) == Isolation::Keys)
    }

    /// Returns the memory protection key of a strategy; `None` unless its isolation level is
    /// `keys`.
    pub fn key_of(&self, strategy: StrategyIndex) -> Option<PlannedKey> {
        let rank = self.strategies_with_keys().position(|other| other == strategy)?;
        Some(PlannedKey::Strategy(rank % STRATEGY_KEYS))
    }

    /// Returns the number of memory protection keys that the plan's strategies have, without the
    /// key for jointly written memory.
    pub fn strategy_keys(&self) -> usize {
        self.strategies_with_keys().count().min(STRATEGY_KEYS)
    }
}

impl RunSegment {
    /// Returns the protection key of the segment's memory; `None` if no strategy with a key writes
    /// it.
    pub fn key(&self, plan: &Plan) -> Option<PlannedKey> {
        let SegmentRights::Roles(rights) = &self.rights else { return None };
        let mut keys = rights.iter().filter_map(|(role, access)| match role {
            Role::Strategy(strategy) if *access == Access::Write => plan.key_of(*strategy),
            _ => None,
        });
        let first = keys.next()?;
        Some(if keys.all(|other| other == first) { first } else { PlannedKey::Shared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{IsolationLevels, Technique, Trading};
    use crate::topology::segments;

    fn plan(levels: &str, strategies: u16, technique: &str) -> Plan {
        let isolation: IsolationLevels = levels.parse().unwrap();
        let technique = Technique::from_name(technique).unwrap();
        let plan = Plan::for_trading(Trading::new(strategies, 1));
        Plan { isolation, technique, ..plan }.arranged()
    }

    fn key_of_segment(plan: &Plan, name: &str) -> Option<PlannedKey> {
        let found = segments(plan).into_iter().find(|segment| segment.spec.name == name);
        found.unwrap_or_else(|| panic!("{name}")).key(plan)
    }

    #[test]
    fn only_strategies_of_the_level_have_keys() {
        let plan = plan("thread+keys", 4, "spsc-mux");
        let keys: Vec<_> = (0..4).map(|index| plan.key_of(StrategyIndex(index))).collect();
        assert_eq!(keys, [None, Some(PlannedKey::Strategy(0)), None, Some(PlannedKey::Strategy(1))]);
        assert_eq!(plan.strategy_keys(), 2);
        assert_eq!(key_of_segment(&plan, "thread-strategy-0"), None);
        assert_eq!(key_of_segment(&plan, "thread-strategy-3"), Some(PlannedKey::Strategy(1)));
        assert_eq!(key_of_segment(&plan, "bell-strategy-1"), Some(PlannedKey::Strategy(0)));
        assert_eq!(key_of_segment(&plan, "thread-engine"), None);
        assert_eq!(key_of_segment(&plan, "repairs"), None);
    }

    #[test]
    fn strategies_beyond_keys_share_them() {
        let plan = plan("keys", 20, "spsc-mux");
        assert_eq!(plan.key_of(StrategyIndex(15)), plan.key_of(StrategyIndex(1)));
        assert_eq!(plan.strategy_keys(), STRATEGY_KEYS);
    }

    #[test]
    fn segment_of_several_keys_has_the_shared_one() {
        let shared = |plan: &Plan| -> Vec<String> {
            let all = segments(plan).into_iter();
            all.filter(|segment| segment.key(plan) == Some(PlannedKey::Shared))
                .map(|segment| segment.spec.name)
                .collect()
        };
        assert_eq!(shared(&plan("keys", 3, "spsc-mux")), [""; 0]);
        assert!(!shared(&plan("keys", 3, "array-queue")).is_empty());
        assert_eq!(shared(&plan("keys", 1, "array-queue")), [""; 0]);
    }
}

//! Bursts of deaths: external kills of a strategy, the engine and an exchange within one duty cycle
//! of each other, in every order, and again while they are restarted.
//!
//! The launcher knows nothing of these kills in advance. So restarts are charged and wait for their
//! backoff, unlike those after a fault of the plan.

use protocol::faults::Draws;
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::plan::{Plan, Role};

/// Maximum time between two kills of a burst: about one turn of each thread.
const MAX_GAP_NS: u64 = 64;
/// Maximum time between the last kill of a burst and the next burst.
const MAX_PAUSE_NS: u64 = 4_000;

/// Draws the kills of a crash-recovery run, in the order of their times: none in one of four runs.
pub(super) fn draw(seed: u64, plan: &Plan, window_ns: u64) -> Vec<(u64, Role)> {
    let mut draws = Draws::new(seed, Draws::BURSTS);
    let mut kills = Vec::new();
    let mut now = draws.below(2 * window_ns);
    for _ in 0..draws.below(4) {
        let trading = plan.trading();
        let strategy = Role::Strategy(StrategyIndex(draws.below(trading.strategies.into()) as u16));
        let exchange = Role::Exchange(VenueIndex(draws.below(trading.venues.into()) as u16));
        let mut victims = vec![strategy, Role::Orchestrator, exchange];
        // A permutation; in two of three bursts without its last one.
        victims.swap(0, draws.below(3) as usize);
        victims.swap(1, 1 + draws.below(2) as usize);
        victims.truncate(if draws.below(3) == 0 { 3 } else { 2 });
        for victim in victims {
            kills.push((now, victim));
            now += draws.below(MAX_GAP_NS);
        }
        now += draws.below(MAX_PAUSE_NS);
    }
    kills
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::fixtures::planned;
    use protocol::role::RoleKind;
    use record::machine::Machine;
    use std::collections::BTreeSet;

    #[test]
    fn bursts_kill_three_roles_in_every_order() {
        let settings = "strategies=2 venues=2 venue=book exchange=process journal=process on_death=restart";
        let (_, plan, _) = planned(settings, &Machine::default()).unwrap();
        let mut orders = BTreeSet::new();
        for seed in 0..200 {
            let bursts = draw(seed, &plan, 10_000);
            assert!(bursts.is_sorted_by_key(|(ns, _)| *ns));
            for three in bursts.windows(3).filter(|three| three[2].0 - three[0].0 < 2 * MAX_GAP_NS) {
                orders.insert(three.iter().map(|(_, role)| role.kind() as u8).collect::<Vec<_>>());
            }
        }
        let kinds = [RoleKind::Strategy, RoleKind::Orchestrator, RoleKind::Exchange].map(|kind| kind as u8);
        let is_each_once = |order: &&Vec<u8>| kinds.iter().all(|kind| order.contains(kind));
        assert_eq!(orders.iter().filter(is_each_once).count(), 6, "{orders:?}");
    }
}

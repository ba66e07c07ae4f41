//! Fences and repairs: what the launcher and the engine publish for each other.

use super::*;
use protocol::control::{ControlWriter, PLAN};
use protocol::supervision::{ProofOfDeath, REPAIRS_WORDS, Repairs, RepairsWriter};

pub(super) fn supervised(capacity: usize) -> (Bench, ControlWriter, Repairs) {
    supervise(bench(capacity, 100))
}

/// The bench, supervised: with the launcher's side of fences and repairs.
pub(super) fn supervise<J: InputLog>(mut bench: Bench<J>) -> (Bench<J>, ControlWriter, Repairs) {
    let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
    let repairs = Region::heap(REPAIRS_WORDS).words();
    let supervision = Supervision::new(launching.control());
    bench.orchestrator = bench.orchestrator.supervised(supervision, RepairsWriter::new(&repairs), 0);
    (bench, launching, Repairs::new(repairs.into()))
}

/// The death of a simulated process without agents.
pub(super) fn death() -> ProofOfDeath {
    ProofOfDeath::from_simulated::<VirtualClock>(Box::new(Vec::<Orchestrator<Mux>>::new()))
}

#[test]
fn first_order_of_new_incarnation_may_precede_its_fence() {
    // In a ring that strategies share, and through a pipe or a socket of its own, which nobody has
    // to open again.
    for from in [None, Some(0)] {
        let (mut bench, launching, repairs) = supervised(8);
        launching.fence(0, 0, &death());
        (0..8).for_each(|_| _ = bench.cycle());
        assert_eq!(bench.orchestrator.core.sessions[0].state, SessionState::Dead);
        // In the middle of a duty cycle, which has looked at the fences already.
        launching.revive(0, 1);
        for sequence in 0..2 {
            let order = Order { id: OrderId::new(0, 1, sequence), ..order(0, 0, 0) };
            let input = bench.orchestrator.order_input(from, order.to_message(), &mut bench.cycle);
            bench.orchestrator.record_and_apply(input, |_| (), &mut bench.cycle);
        }
        assert_eq!((bench.faults(), repairs.strategy_repair(0).refused), (0, 0), "{from:?}");
        assert_eq!(repairs.strategy_repair(0).quarantined, None, "{from:?}");
        assert_eq!(bench.orchestrator.core.counts.dispatched, 2, "{from:?}");
    }
}

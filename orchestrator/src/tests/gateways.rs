//! Gateways that crash and restart.

use super::incidents::{death, supervised};
use super::*;
use protocol::control::ControlWriter;
use protocol::supervision::{GatewayRepair, Repairs};
use protocol::wire::{CancelScope, ENGINE_REPORT, Instruction, Operation, OrderStatus};

/// A supervised bench whose gateways may die, with a completion ring for each of the two gateways.
fn mortal(capacity: usize) -> (Bench, spsc::Producer, ControlWriter, Repairs) {
    let (mut bench, launching, repairs) = supervised(capacity);
    let (first, first_end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
    let (second, second_end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
    bench.orchestrator.completion = Mux::new(vec![first_end, second_end]);
    bench.completion = first;
    (bench, second, launching, repairs)
}

impl Bench {
    fn take_all(&mut self, venue: usize) -> Vec<Instruction> {
        std::iter::from_fn(|| self.inboxes[venue].try_pop().unwrap())
            .map(|message| Instruction::from_message(message).unwrap())
            .collect()
    }

    fn reasons(&mut self, strategy: usize) -> Vec<(u64, u8)> {
        self.reports(strategy).iter().map(|report| (report.id.sequence(), report.reason)).collect()
    }
}

const UNKNOWN: u8 = Reject::VenueUnknown.code();
const DOWN: u8 = Reject::VenueDown.code();

#[test]
fn open_orders_of_a_dead_gateway_are_reported() {
    let (mut bench, _other, launching, repairs) = mortal(8);
    let cancel = Order { operation: Operation::Cancel, quantity: 0, ..order(0, 2, 0) };
    let nowhere = Order { operation: Operation::Replace, target: 77, ..order(0, 3, 0) };
    for sent in [order(0, 0, 0), order(0, 1, 1), cancel, nowhere] {
        bench.send(&sent, 0);
    }
    bench.send(&order(1, 0, 0), 1);
    bench.cycle();
    launching.fence_gateway(0, 0, &death());
    bench.cycle();
    bench.cycle();
    let closed = bench.reports(0);
    let ids: Vec<u64> = closed.iter().map(|report| report.id.sequence()).collect();
    assert_eq!(ids, [0, 2, 3], "also what holds no quantity, and not what is at the other venue");
    for report in &closed {
        assert_eq!((report.status, report.reason), (OrderStatus::Expired, UNKNOWN));
        assert!(report.is_last && report.number == ENGINE_REPORT);
    }
    assert_eq!(bench.reasons(1), [(0, UNKNOWN)]);
    assert_eq!((bench.position(0).0, bench.position(1).0), (1, 0));
    let repair = repairs.gateway_repair(0);
    assert_eq!((repair.repaired, repair.counts.unknown), (Some(0), 4));
    assert_eq!(repairs.gateway_repair(1), GatewayRepair::default());
    let counts = bench.orchestrator.core.counts;
    assert_eq!((counts.dispatched, counts.settled), (5, 4), "one is open at the other venue");
    let account = bench.orchestrator.core.positions.account(0, 0);
    assert_eq!(account.open_sell, 7, "nothing is reserved for what is closed");
}

#[test]
fn new_orders_for_a_dead_gateway_are_rejected() {
    let (mut bench, _other, launching, _repairs) = mortal(8);
    launching.fence_gateway(0, 0, &death());
    bench.cycle();
    bench.send(&order(0, 0, 0), 0);
    bench.send(&Order { operation: Operation::Cancel, ..order(0, 1, 0) }, 0);
    bench.send(&order(0, 2, 1), 0);
    bench.cycle();
    assert_eq!(bench.reasons(0), [(0, DOWN), (1, DOWN)]);
    assert_eq!(bench.take_all(1).len(), 1, "the other venue trades on");
    assert!(bench.take_all(0).is_empty());
    assert!(bench.next_deadline_is_idle(), "nothing is waited for");
}

impl Bench {
    fn next_deadline_is_idle(&self) -> bool {
        self.orchestrator.next_deadline_is_idle()
    }
}

impl<J: InputLog> Orchestrator<Mux, J> {
    fn next_deadline_is_idle(&self) -> bool {
        Agent::<VirtualClock>::next_deadline(self, false) == u64::MAX
    }
}

#[test]
fn queued_orders_of_dead_gateway_are_recalled() {
    let (mut bench, _other, launching, repairs) = mortal(2);
    for sequence in 0..2 {
        bench.send(&order(0, sequence, 0), 0);
    }
    bench.cycle();
    for sequence in 2..4 {
        bench.send(&order(0, sequence, 0), 0);
    }
    bench.cycle();
    assert_eq!(bench.queued(), 2);
    launching.fence_gateway(0, 0, &death());
    bench.cycle();
    let reasons = bench.reasons(0);
    bench.cycle();
    let reasons = [reasons, bench.reasons(0)].concat();
    assert_eq!(reasons, [(2, DOWN), (3, DOWN), (0, UNKNOWN), (1, UNKNOWN)]);
    assert_eq!((bench.queued(), repairs.gateway_repair(0).counts.unknown), (0, 2));
    assert!(bench.next_deadline_is_idle());
}

#[test]
fn last_reports_of_a_dead_gateway_come_first() {
    let (mut bench, _other, launching, _repairs) = mortal(8);
    for sequence in 0..3 {
        bench.send(&order(0, sequence, 0), 0);
    }
    bench.cycle();
    let part = Report { filled: 3, leaves: 4, is_last: false, ..report(&order(0, 1, 0)) };
    bench.completion.try_push(&report(&order(0, 0, 0)).to_message()).unwrap();
    bench.completion.try_push(&part.to_message()).unwrap();
    launching.fence_gateway(0, 0, &death());
    for _ in 0..3 {
        bench.cycle();
    }
    assert_eq!(bench.reasons(0), [(0, 0), (1, 0), (1, UNKNOWN), (2, UNKNOWN)]);
    assert_eq!(bench.position(0), (0, -10), "what was filled counts");
    assert_eq!(bench.orchestrator.core.positions.account(0, 0).open_sell, 0);
}

#[test]
fn cancels_for_a_dead_gateway_are_not_queued() {
    let (mut bench, _other, launching, repairs) = mortal(2);
    for sequence in 0..2 {
        bench.send(&order(0, sequence, 0), 0);
    }
    bench.send(&order(1, 0, 0), 1);
    bench.cycle();
    launching.fence(1, 0, &death());
    launching.fence_gateway(0, 0, &death());
    for _ in 0..4 {
        bench.cycle();
    }
    assert_eq!((repairs.strategy_repair(1).repaired, repairs.gateway_repair(0).repaired), (Some(0), Some(0)));
    assert_eq!(bench.queued(), 0, "also the cancel that had been queued before");
    let scope = CancelScope::for_strategy(OrderId::new(1, 0, 0));
    assert_eq!(bench.take_all(1), [Instruction::CancelAll(scope)], "the other venue is told");
    assert_eq!(
        repairs.strategy_repair(1).orphaned + repairs.strategy_repair(1).refused,
        1,
        "the dead strategy's order has ended"
    );
    assert!(bench.next_deadline_is_idle());
}

#[test]
fn a_gateway_that_is_back_takes_orders() {
    let (mut bench, _other, launching, repairs) = mortal(8);
    bench.send(&order(0, 0, 0), 0);
    bench.cycle();
    launching.fence_gateway(0, 0, &death());
    bench.cycle();
    assert_eq!(bench.reasons(0), [(0, UNKNOWN)]);
    // The launcher resets the ring; here both ends are new.
    let (ring, end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
    bench.orchestrator.outputs.gateways[0] = Sender::new(ring, None, 8);
    bench.inboxes[0] = end;
    launching.revive_gateway(0, 1);
    bench.send(&order(0, 1, 0), 0);
    bench.cycle();
    assert_eq!(bench.take_all(0), [Instruction::Order(order(0, 1, 0))]);
    launching.fence_gateway(0, 1, &death());
    bench.cycle();
    assert_eq!((bench.reasons(0), repairs.gateway_repair(0).counts.unknown), (vec![(1, UNKNOWN)], 2));
    assert_eq!(repairs.gateway_repair(0).repaired, Some(1));
}

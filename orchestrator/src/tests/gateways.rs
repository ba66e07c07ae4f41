//! Gateways that crash and restart.

use super::*;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::supervision::GatewayRepair;
use protocol::wire::{ENGINE_REPORT, Operation, OrderRequest, OrderStatus};

/// A supervised bench whose gateways may die, with a completion ring for each of the two gateways.
fn mortal(capacity: usize) -> (Bench, spsc::Producer, ControlWriter, Repairs) {
    let (mut bench, launching, repairs) = supervised(capacity);
    let (first, first_end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
    let (second, second_end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
    bench.orchestrator.hand_offs.completion = Mux::new(vec![first_end, second_end]);
    bench.completion = first;
    (bench, second, launching, repairs)
}

impl Bench {
    fn reasons(&mut self, strategy: usize) -> Vec<(u64, u8)> {
        self.reports(strategy).iter().map(|report| (report.id.sequence(), report.reason)).collect()
    }

    fn is_idle(&self) -> bool {
        Agent::<VirtualClock>::next_deadline(&self.orchestrator, false) == u64::MAX
    }
}

const UNKNOWN: u8 = Reject::VenueUnknown.code();
const DOWN: u8 = Reject::VenueDown.code();

#[test]
fn open_orders_of_a_dead_gateway_are_reported() {
    let (mut bench, _other, launching, repairs) = mortal(8);
    let cancel = OrderRequest { operation: Operation::Cancel, quantity: 0, ..order(0, 2, 0).request }
        .with_id(order(0, 2, 0).id);
    let nowhere = OrderRequest { operation: Operation::Replace, target: 77, ..order(0, 3, 0).request }
        .with_id(order(0, 3, 0).id);
    [order(0, 0, 0), order(0, 1, 1), cancel, nowhere, order(1, 0, 0)]
        .iter()
        .for_each(|sent| bench.send(sent));
    bench.cycle();
    launching.fence_gateway(GatewayIndex(0), 0, &death());
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
    let repair = repairs.gateway_repair(GatewayIndex(0));
    assert_eq!((repair.repaired, repair.counts.unknown), (Some(0), 4));
    assert_eq!(repairs.gateway_repair(GatewayIndex(1)), GatewayRepair::default());
    let counts = bench.orchestrator.core.counts;
    assert_eq!((counts.dispatched, counts.settled), (5, 4), "one is open at the other venue");
    let account = bench.orchestrator.core.positions.account(StrategyIndex(0), 0);
    assert_eq!(account.open_sell, 7, "nothing is reserved for what is closed");
}

#[test]
fn queued_orders_of_dead_gateway_are_recalled() {
    let (mut bench, _other, launching, repairs) = mortal(2);
    for sequences in [0..2, 2..4] {
        sequences.for_each(|sequence| bench.send(&order(0, sequence, 0)));
        bench.cycle();
    }
    assert_eq!(bench.queued(), 2);
    launching.fence_gateway(GatewayIndex(0), 0, &death());
    bench.cycle();
    let reasons = bench.reasons(0);
    bench.cycle();
    let reasons = [reasons, bench.reasons(0)].concat();
    assert_eq!(reasons, [(2, DOWN), (3, DOWN), (0, UNKNOWN), (1, UNKNOWN)]);
    assert_eq!((bench.queued(), repairs.gateway_repair(GatewayIndex(0)).counts.unknown), (0, 2));
    assert!(bench.is_idle());
}

#[test]
fn last_reports_of_a_dead_gateway_come_first() {
    let (mut bench, _other, launching, _repairs) = mortal(8);
    (0..3).for_each(|sequence| bench.send(&order(0, sequence, 0)));
    bench.cycle();
    let part = Report { filled: 3, leaves: 4, is_last: false, ..Report::full_fill(&order(0, 1, 0)) };
    bench.fill(&order(0, 0, 0));
    bench.completion.try_push(&part.to_message()).unwrap();
    launching.fence_gateway(GatewayIndex(0), 0, &death());
    (0..3).for_each(|_| _ = bench.cycle());
    assert_eq!(bench.reasons(0), [(0, 0), (1, 0), (1, UNKNOWN), (2, UNKNOWN)]);
    assert_eq!(bench.position(0), (0, -10), "what was filled counts");
    assert_eq!(bench.orchestrator.core.positions.account(StrategyIndex(0), 0).open_sell, 0);
}

#[test]
fn cancels_for_a_dead_gateway_are_not_queued() {
    let (mut bench, _other, launching, repairs) = mortal(2);
    [order(0, 0, 0), order(0, 1, 0), order(1, 0, 0)].iter().for_each(|sent| bench.send(sent));
    bench.cycle();
    launching.fence(StrategyIndex(1), 0, &death());
    launching.fence_gateway(GatewayIndex(0), 0, &death());
    (0..4).for_each(|_| _ = bench.cycle());
    assert_eq!(
        (
            repairs.strategy_repair(StrategyIndex(1)).repaired,
            repairs.gateway_repair(GatewayIndex(0)).repaired
        ),
        (Some(0), Some(0))
    );
    assert_eq!(bench.queued(), 0, "also the cancel that had been queued before");
    let scope = CancelScope::for_strategy(OrderId::new(1, 0, 0));
    assert_eq!(bench.take_all(1), [Instruction::CancelAll(scope)], "the other venue gets it");
    let repair = repairs.strategy_repair(StrategyIndex(1));
    assert_eq!(repair.orphaned + repair.refused, 1, "the dead strategy's order has ended");
    assert!(bench.is_idle());
}

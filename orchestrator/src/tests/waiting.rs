//! Messages that wait for room in their gateway's inbox.

use super::*;
use proptest::prelude::*;
use protocol::index::{GatewayIndex, StrategyIndex};

impl Bench {
    /// Up to `max` orders that a gateway takes from its inbox.
    fn take(&mut self, venue: usize, max: usize) -> Vec<OrderId> {
        let taken = std::iter::from_fn(|| self.inboxes[venue].try_pop().unwrap());
        taken.take(max).map(|message| Order::from_message(message).unwrap().id).collect()
    }

    /// Lets the last queued order of a gateway overtake the others.
    fn reorder_queue(&mut self, gateway: GatewayIndex) {
        let sender = &mut self.orchestrator.outputs.gateways[gateway];
        if let Some(first) = sender.recall(|_| true) {
            sender.enqueue_all([first]);
        }
    }
}

/// Plays steps of `(venue, orders sent to it, orders taken by its gateway)`. `Err`: what went
/// wrong.
fn trade(steps: &[(usize, usize, usize)], is_broken: bool) -> Result<(), String> {
    let mut bench = bench(4, 1000);
    let mut next = [0; 2];
    let (mut sent, mut taken) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for &(venue, orders, takes) in steps {
        for n in 0..orders {
            let strategy = n % 2;
            let order = order(strategy as u16, next[strategy], venue as u16);
            bench.send(&order);
            next[strategy] += 1;
            sent[venue].push(order.id);
            // One at a time, so that the order in which they are taken is known.
            bench.cycle();
            if let Some(report) = bench.reports(strategy).first() {
                return Err(format!("{report:?}"));
            }
        }
        if is_broken {
            bench.reorder_queue(GatewayIndex(venue as u16));
        }
        taken[venue].extend(bench.take(venue, takes));
        bench.cycle();
    }
    for _ in 0..200 {
        for (venue, taken) in taken.iter_mut().enumerate() {
            taken.extend(bench.take(venue, 4));
        }
        bench.cycle();
    }
    if taken != sent {
        return Err(format!("the venues got {taken:?}, they were sent {sent:?}"));
    }
    let open: u64 = (0..2).map(|strategy| bench.position(strategy).0).sum();
    let dispatched = bench.orchestrator.core.counts.dispatched;
    if (open, dispatched) != (taken.iter().map(Vec::len).sum::<usize>() as u64, open) {
        return Err(format!("{open} open of {dispatched} dispatched"));
    }
    Ok(())
}

proptest! {
    #[test]
    fn queued_orders_reach_their_venue_in_order(
        steps in prop::collection::vec((0usize..2, 0usize..7, 0usize..5), 0..30),
    ) {
        trade(&steps, false).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn overtaking_in_queue_is_detected() {
    let steps = [(0, 6, 1), (0, 4, 1), (0, 3, 4)];
    trade(&steps, false).unwrap();
    assert!(trade(&steps, true).is_err());
}

#[test]
fn queued_orders_of_dead_strategy_are_recalled() {
    let (mut bench, launching, repairs) = supervised(2);
    for sent in (0..4).map(|n| order(0, n, 0)).chain([order(1, 0, 0)]) {
        bench.send(&sent);
        bench.cycle();
    }
    assert_eq!(bench.queued(), 3);
    launching.fence(StrategyIndex(0), 0, &death());
    bench.cycle();
    let mut taken = Vec::new();
    for _ in 0..8 {
        taken.extend(bench.take_all(0));
        bench.cycle();
    }
    let cancel = Instruction::CancelAll(CancelScope::for_strategy(OrderId::new(0, 0, 0)));
    let orders = [order(0, 0, 0), order(0, 1, 0), order(1, 0, 0)].map(Instruction::Order);
    assert_eq!(taken, [&orders[..], &[cancel]].concat());
    assert_eq!(
        (
            repairs.strategy_repair(StrategyIndex(0)).refused,
            repairs.strategy_repair(StrategyIndex(0)).repaired
        ),
        (2, Some(0))
    );
    assert!(bench.reports(0).is_empty(), "nobody is there to take a report");
}

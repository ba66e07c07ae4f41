//! Orders that wait for room in their gateway's inbox.

use super::incidents::{death, supervised};
use super::*;
use proptest::prelude::*;
use protocol::wire::CancelScope;

impl Bench {
    /// What a gateway takes from its inbox, at most so many.
    fn take(&mut self, venue: usize, most: usize) -> Vec<OrderId> {
        let taken = std::iter::from_fn(|| self.inboxes[venue].try_pop().unwrap());
        taken.take(most).map(|message| Order::from_message(message).unwrap().id).collect()
    }
}

/// What a run of steps shows: `(venue, orders sent to it, orders taken by its gateway)` for each step. `Err`: what went wrong.
fn trade(steps: &[(usize, usize, usize)], limit: u32, is_broken: bool) -> Result<(), String> {
    let mut bench = bench(4, 1000);
    bench.orchestrator = bench.orchestrator.waiting(2 * limit, limit);
    bench.orchestrator.is_broken = is_broken;
    let mut next = [0; 2];
    let (mut sent, mut taken) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let mut busy = Vec::new();
    for &(venue, orders, takes) in steps {
        for n in 0..orders {
            let strategy = n % 2;
            let order = order(strategy as u16, next[strategy], venue as u16);
            bench.send(&order, strategy);
            next[strategy] += 1;
            sent[venue].push(order.id);
            // One at a time, so that the order in which they are taken is known.
            let held_up = bench.orchestrator.dispatched;
            bench.cycle();
            let goes = bench.orchestrator.dispatched > held_up;
            let reports = bench.reports(strategy);
            if !goes && reports.is_empty() && bench.orchestrator.waiting.len() == 0 {
                return Err(format!("{:?} is neither dispatched nor rejected nor waits", order.id));
            }
            for report in reports {
                if report.reason != Reject::VenueBusy as u8 {
                    return Err(format!("{report:?}"));
                }
                busy.push(report.id);
            }
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
    for venue in 0..2 {
        let expected: Vec<OrderId> = sent[venue].iter().copied().filter(|id| !busy.contains(id)).collect();
        if taken[venue] != expected {
            return Err(format!("venue {venue} got {:?}, in order were {expected:?}", taken[venue]));
        }
    }
    let open: u64 = (0..2).map(|strategy| bench.orchestrator.positions.of(strategy).open).sum();
    let dispatched = taken.iter().map(Vec::len).sum::<usize>() as u64;
    if (open, bench.orchestrator.dispatched) != (dispatched, dispatched) {
        return Err(format!("{open} open of {dispatched} dispatched"));
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_waits_keeps_its_place_at_its_venue_and_none_is_lost(
        steps in prop::collection::vec((0usize..2, 0usize..7, 0usize..5), 0..30), limit in 1u32..6,
    ) {
        trade(&steps, limit, false).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn one_that_lets_orders_past_those_that_wait_is_found() {
    // The inbox of 4 is full, two wait; room comes, and the next order takes it.
    let steps = [(0, 6, 1), (0, 4, 1), (0, 3, 4)];
    trade(&steps, 10, false).unwrap();
    // With room that the waiting have not taken yet: the flush of a cycle comes first, so it must meet more than a batch.
    let mut bench = bench(64, 1000);
    bench.orchestrator = bench.orchestrator.waiting(100, 100);
    bench.orchestrator.is_broken = true;
    for n in 0..100 {
        bench.send(&order(0, n, 0), 0);
        bench.cycle();
    }
    let mut taken = bench.take(0, 40);
    (100..103).for_each(|n| bench.send(&order(0, n, 0), 0));
    for _ in 0..20 {
        bench.cycle();
        taken.extend(bench.take(0, 64));
    }
    assert_eq!(taken.len(), 103);
    assert!(!taken.is_sorted(), "the broken one was not found");
}

#[test]
fn an_order_that_finds_its_line_full_is_rejected_and_the_other_venue_s_is_not() {
    let mut bench = bench(2, 100);
    bench.orchestrator = bench.orchestrator.waiting(8, 3);
    (0..7).for_each(|n| {
        bench.send(&order(0, n, 0), 0);
        bench.cycle();
    });
    let reports = bench.reports(0);
    let ids: Vec<(u64, u8)> = reports.iter().map(|report| (report.id.sequence(), report.reason)).collect();
    assert_eq!(
        ids,
        [(5, Reject::VenueBusy as u8), (6, Reject::VenueBusy as u8)],
        "two in the inbox, three wait"
    );
    assert_eq!(bench.orchestrator.positions.of(0).open, 5);
    bench.send(&order(1, 0, 1), 1);
    bench.cycle();
    assert_eq!(bench.take(1, 9).len(), 1);
    // An order is stamped as dispatched when it is, and one that is rejected never.
    let dispatched =
        |bench: &Bench| bench.points().iter().filter(|point| **point == Point::OrchDispatch).count();
    assert_eq!(dispatched(&bench), 3);
    assert_eq!(bench.take(0, 1).len(), 1);
    bench.cycle();
    assert_eq!(dispatched(&bench), 4);
}

#[test]
fn what_waits_of_the_dead_never_leaves_and_their_venues_are_told_at_once() {
    let (mut bench, launching, repairs) = supervised(2);
    for n in 0..4 {
        bench.send(&order(0, n, 0), 0);
        bench.cycle();
    }
    bench.send(&order(1, 0, 0), 1);
    bench.cycle();
    assert_eq!(bench.orchestrator.waiting.len(), 3);
    launching.fence(0, 0, &death());
    bench.cycle();
    assert_eq!(bench.orchestrator.waiting.len(), 1, "only the living one's");
    let mut cancels = 0;
    let mut orders = Vec::new();
    for _ in 0..8 {
        while let Some(message) = bench.inboxes[0].try_pop().unwrap() {
            match protocol::wire::Instruction::from_message(message).unwrap() {
                protocol::wire::Instruction::Order(order) => orders.push(order.id),
                protocol::wire::Instruction::CancelAll(_) => cancels += 1,
            }
        }
        bench.cycle();
    }
    assert_eq!(cancels, 1);
    let ids: Vec<(u16, u64)> = orders.iter().map(|id| (id.strategy(), id.sequence())).collect();
    assert_eq!(ids, [(0, 0), (0, 1), (1, 0)]);
    assert_eq!(repairs.of(0).refused, 2);
    assert!(bench.reports(0).is_empty(), "nobody is there to take a report");
}

#[test]
fn what_waits_of_the_living_is_turned_away_with_a_report() {
    let mut bench = bench(2, 100);
    for n in 0..4 {
        bench.send(&order(0, n, 0), 0);
        bench.send(&order(1, n, 0), 1);
        bench.cycle();
    }
    let scope = CancelScope { strategy: Some(OrderId::new(1, 0, 0)), instrument: None };
    let open = bench.orchestrator.positions.of(1).open;
    bench.orchestrator.turn_away(scope, Reject::Killed, &mut bench.cycle);
    let reports = bench.reports(1);
    assert!(reports.iter().all(|report| report.reason == Reject::Killed as u8));
    assert_eq!(bench.orchestrator.positions.of(1).open, open - 3);
    assert_eq!(bench.orchestrator.waiting.len(), 3, "the other one's wait on");
}

//! Strategies that crash or misbehave.

use super::*;
use protocol::commands::CommandStatus;
use protocol::wire::CancelScope;

const FLOOD: u64 = TOLERATED_OFFENSES as u64;

#[test]
fn next_incarnation_restarts_sequence_and_refuses_old_ids() {
    let mut bench = bench(100);
    bench.send(&order(0, 0, 0));
    let effects = bench.fence(0, 0, true);
    let cancel = [Instruction::CancelAll(CancelScope::for_strategy(OrderId::new(0, 0, 0)))];
    assert_eq!((sent(&effects, 0), sent(&effects, 1)), (cancel.into(), cancel.into()));
    assert!(effects.contains(&Effect::Close(StrategyIndex(0))) && effects.contains(&Effect::Recall));
    let retired = LifecycleNotice::Retired { strategy: StrategyIndex(0), epoch: 0, noticed: 0 };
    assert_eq!(
        bench.apply(Input::Retired { strategy: StrategyIndex(0) }),
        [Effect::LifecycleNotice(retired)]
    );
    assert_eq!(bench.fence(0, 1, false), [Effect::Reopen(StrategyIndex(0))]);
    let next = Order { id: OrderId::new(0, 1, 0), ..order(0, 0, 0) };
    assert_eq!(sent(&bench.send(&next), 0), [Instruction::Order(next)]);
    assert_eq!(bench.position(0).0, 1, "the dead one's open order does not count");
    assert_eq!(sent(&bench.send(&order(0, 1, 0)), 0), []);
    assert_eq!(bench.quarantined(0), Some(ProtocolViolation::WrongEpoch));
}

#[test]
fn spare_strategy_trades_once_it_is_added() {
    let mut bench = bench_of(&RiskSetup { spares: 1, ..SETUP });
    let add = |bench: &mut Bench, number, strategy| {
        bench.command(number, Command::AddStrategy { strategy: StrategyIndex(strategy) }).first().copied()
    };
    let refused = |number, why| Some(Effect::OperatorNotice(OperatorNotice::CommandRefused { number, why }));
    assert_eq!(add(&mut bench, 0, 0), refused(0, CommandStatus::NotDown));
    assert_eq!(add(&mut bench, 1, 2), refused(1, CommandStatus::NoSuchScope));
    assert_eq!(sent(&bench.send(&order(1, 0, 0)), 0), [], "its first incarnation never runs");
    assert_eq!(bench.fence(1, 0, true), [], "there is nothing to repair");
    let seen = OperatorNotice::CommandSeen { number: 2, ticks: None, orders: 0 };
    assert_eq!(add(&mut bench, 2, 1), Some(Effect::OperatorNotice(seen)));
    assert_eq!(add(&mut bench, 3, 1), refused(3, CommandStatus::NotDown), "it is being added");
    assert_eq!(bench.fence(1, 1, false), [Effect::Reopen(StrategyIndex(1))]);
    let next = Order { id: OrderId::new(1, 1, 0), ..order(1, 0, 0) };
    assert_eq!(sent(&bench.send(&next), 0), [Instruction::Order(next)]);
    assert_eq!(add(&mut bench, 4, 1), refused(4, CommandStatus::NotDown));
    bench.fence(1, 1, true);
    bench.apply(Input::Retired { strategy: StrategyIndex(1) });
    let seen = OperatorNotice::CommandSeen { number: 5, ticks: None, orders: 0 };
    assert_eq!(add(&mut bench, 5, 1), Some(Effect::OperatorNotice(seen)), "it is down again");
}

#[test]
fn restart_and_death_between_polls_is_retired() {
    let mut bench = bench(100);
    bench.fence(0, 0, true);
    bench.apply(Input::Retired { strategy: StrategyIndex(0) });
    let effects = bench.fence(0, 1, true);
    assert!(effects.starts_with(&[Effect::Reopen(StrategyIndex(0)), Effect::Close(StrategyIndex(0))]));
    let retired = LifecycleNotice::Retired { strategy: StrategyIndex(0), epoch: 1, noticed: 0 };
    assert_eq!(
        bench.apply(Input::Retired { strategy: StrategyIndex(0) }),
        [Effect::LifecycleNotice(retired)]
    );
}

#[test]
fn report_of_dead_incarnation_is_settled_and_not_returned() {
    let mut bench = bench(100);
    bench.send(&order(0, 0, 0));
    bench.fence(0, 0, true);
    let effects = bench.fill(&order(0, 0, 0));
    assert_eq!(returned(&effects, 0), []);
    assert!(effects.contains(&Effect::LifecycleNotice(LifecycleNotice::DeadCounts {
        strategy: StrategyIndex(0),
        refused: 0,
        orphaned: 1
    })));
    assert_eq!(bench.position(0).1, -7);
}

#[test]
fn each_violation_is_named_and_others_continue() {
    let with_id = |strategy, epoch, sequence| {
        Order { id: OrderId::new(strategy, epoch, sequence), ..order(0, 0, 0) }.to_message()
    };
    let cancel = Instruction::CancelAll(CancelScope::for_strategy(OrderId::new(1, 0, 0)));
    for (message, why) in [
        ([u64::MAX; 7], ProtocolViolation::Garbage),
        (cancel.to_message(), ProtocolViolation::Garbage),
        (with_id(1, 0, 0), ProtocolViolation::ForeignId),
        (with_id(200, 0, 0), ProtocolViolation::ForeignId),
        (with_id(0, 1, 0), ProtocolViolation::WrongEpoch),
        (with_id(0, 0, 1), ProtocolViolation::OutOfSequence),
    ] {
        let mut bench = bench(100);
        let effects = bench.apply(Input::Order { from: Some(StrategyIndex(0)), message });
        assert_eq!((bench.quarantined(0), points(&effects)), (Some(why), vec![]));
        assert_eq!(sent(&bench.send(&order(0, 0, 0)), 0), [], "nothing more is taken from it");
        assert_eq!(sent(&bench.send(&order(1, 0, 1)), 1).len(), 1);
        assert_eq!(bench.quarantined(1), None);
    }
}

#[test]
fn a_flood_is_quarantined_and_a_mistake_is_not() {
    for (venue, first, why) in [(9, 0, ProtocolViolation::UnknownVenue), (0, 2, ProtocolViolation::Flood)] {
        let mut bench = bench(2);
        (0..FLOOD + first).for_each(|n| _ = bench.send(&order(0, n, venue)));
        assert_eq!(bench.quarantined(0), None, "so many may be a mistake");
        bench.send(&order(0, FLOOD + first, venue));
        assert_eq!(bench.quarantined(0), Some(why));
    }
}

#[test]
fn more_orders_than_the_plan_has_are_a_flood() {
    let mut bench = bench_of(&RiskSetup { orders: &[2, 2], ..SETUP });
    (0..3).for_each(|n| _ = bench.send(&order(0, n, 0)));
    assert_eq!(bench.quarantined(0), Some(ProtocolViolation::Flood));
    assert_eq!(sent(&bench.out, 0).len(), 2);
    assert_eq!(points(&bench.out).len(), 4, "nothing is stamped that has no room");
}

#[test]
fn orders_beyond_venue_budget_are_rejected_then_quarantined() {
    // Strategy 0: one to each venue. Strategy 1: 300 to venue 1.
    let mut bench = bench_of(&RiskSetup { venue_orders: &[1, 1, 0, 300], ..SETUP });
    (0..10).for_each(|n| _ = bench.send(&order(0, n, 0)));
    (0..3).for_each(|n| _ = bench.send(&order(1, n, 1)));
    assert_eq!(sent(&bench.out, 0).len(), 1, "the gateway's log has room for one");
    assert_eq!(sent(&bench.out, 1).len(), 3, "the other strategy loses nothing");
    let refused: Vec<(u64, u8)> = (1..10).map(|n| (n, Reject::NotPlanned.code())).collect();
    assert_eq!((returned(&bench.out, 0), bench.quarantined(0)), (refused, None), "so many may be a mistake");
    (10..12 + FLOOD).for_each(|n| _ = bench.send(&order(0, n, 0)));
    assert_eq!(bench.quarantined(0), Some(ProtocolViolation::Flood));
}

#[test]
fn shared_ring_violations_quarantine_nobody() {
    for (venue, orders) in [(9, 10_000), (0, 10_000), (0, 3)] {
        let mut bench = bench(2);
        bench.core.sessions[StrategyIndex(0)].budget = orders;
        (0..3 * FLOOD).for_each(|n| _ = bench.send_shared(&order(0, n, venue)));
        assert_eq!(bench.quarantined(0), None, "its name is all that is known");
        assert!(bench.core.counts.faults > FLOOD, "it is counted: {}", bench.core.counts.faults);
        assert_eq!(bench.core.sessions[StrategyIndex(0)].state, SessionState::Alive);
    }
}

#[test]
fn shared_ring_refuses_late_orders_of_dead() {
    let mut bench = bench(100);
    bench.core.sessions[StrategyIndex(0)].begin_incarnation(2);
    let of = |epoch, sequence| Order { id: OrderId::new(0, epoch, sequence), ..order(0, 0, 0) };
    bench.send_shared(&of(1, 5));
    bench.send_shared(&of(2, 0));
    bench.fence(0, 2, true);
    bench.send_shared(&of(2, 1));
    assert_eq!((bench.count(Point::Rejected), bench.count(Point::OrchDispatch)), (2, 1));
    assert_eq!((bench.core.sessions[StrategyIndex(0)].refused, bench.quarantined(0)), (2, None));
}

#[test]
fn flood_leftovers_in_shared_ring_are_not_stamped() {
    let mut bench = bench_of(&RiskSetup { orders: &[1, 1], ..SETUP });
    bench.fence(0, 0, true);
    (0..3).for_each(|n| _ = bench.send_shared(&order(0, n, 0)));
    assert_eq!((bench.count(Point::OrchRecvSubmit), bench.count(Point::Rejected)), (1, 1));
    assert_eq!(bench.core.counts.faults, 2);
}

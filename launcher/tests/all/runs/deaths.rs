//! Strategies that die in the middle of a run: every order in exactly one category, nothing excused but what a death
//! explains.

use super::fixture::{Fixture, START, Shape};
use super::killing::{Death, GONE};
use super::merging::run;
use analysis::merge::{Losses, Orders, ViolationKind};
use analysis::record::{Incident, Outcome};
use proptest::prelude::*;
use protocol::plan::Threading;
use protocol::stamps::{Point, Record};
use protocol::supervision::Misconduct;
use protocol::wire::OrderId;

/// Long enough that each category has orders: 5 µs between two orders of a strategy, delays of 25 to 75 µs.
pub(crate) const SHAPE: Shape = Shape {
    strategies: 3,
    venues: 2,
    orders: 40,
    threading: Threading::Dedicated,
    pacing: protocol::plan::Pacing::Scheduled,
    reject_every: 7,
    fills: false,
    book: false,
    market: false,
    period: 3_000,
    delay: 50_000,
};
/// When strategy 1 sends its 20th order (counted from 0), in ticks since the start.
pub(crate) const T1_OF_20: u64 = (20 * 3 + 1) * 3_000 + 100;

/// The run with these deaths in it.
pub(crate) fn killed(deaths: &[Death]) -> Fixture {
    let mut fixture = Fixture::new(SHAPE);
    deaths.iter().for_each(|death| fixture.kill(*death));
    fixture
}

/// Every order is in exactly one category.
pub(crate) fn all_accounted(orders: &Orders) {
    let sum = orders.returned + orders.rejected + orders.cancelled + orders.orphaned + orders.lost;
    assert_eq!(orders.sent, sum, "{orders:?}");
}

/// Spoils a run in which strategy 1 was killed, and expects exactly one violation.
fn spoiled(spoil: impl FnOnce(&mut Fixture)) -> (ViolationKind, String) {
    let mut fixture = killed(&[Death::of(1, T1_OF_20 + 50)]);
    assert_eq!(run(&fixture).violations, []);
    spoil(&mut fixture);
    let merged = run(&fixture);
    all_accounted(&merged.orders);
    let [violation] = merged.violations.as_slice() else {
        panic!("one violation expected, got {:?}", merged.violations)
    };
    (violation.kind, violation.first.clone())
}

/// An order of the dead strategy that ended in a certain way: the first with that point and without t7.
fn order_with(fixture: &Fixture, point: Point) -> OrderId {
    let has = |point: Point, id: OrderId| {
        fixture.logs.iter().flatten().any(|record| record.point == point && record.id == id)
    };
    let ids = (0..40).map(|sequence| OrderId::new(1, 0, sequence));
    ids.into_iter().find(|id| has(point, *id) && !has(Point::OrchReturn, *id)).unwrap()
}

#[test]
fn every_order_of_the_dead_is_in_one_category() {
    // Order 20 stands in the submit ring at the fence; the ones before it are at their venues.
    let merged = run(&killed(&[Death::of(1, T1_OF_20)]));
    assert_eq!(merged.violations, []);
    let orders = merged.orders;
    all_accounted(&orders);
    assert_eq!(orders.sent, 40 + 21 + 40);
    assert_eq!((orders.lost, orders.orphaned), (0, 1));
    assert!(orders.cancelled >= 3, "{orders:?}");
    assert_eq!(merged.losses, [Losses { lost: 0, cancelled: orders.cancelled, orphaned: 1 }]);
    assert_eq!((merged.losses[0].all(), merged.lost_of_survivors), (orders.cancelled + 1, 0));
    // Cancelled and refused orders are in no figure.
    let refused: Vec<_> = merged.orders().filter(|(_, row)| row.reason() == Some(GONE as u8)).collect();
    assert_eq!(refused.len(), 1);
    assert!(merged.measured().all(|(_, row)| !row.has(Point::Cancelled)));
    assert_eq!(merged.measured().count() as u64, orders.returned);
}

#[test]
fn the_order_in_the_push_may_be_lost_and_no_other() {
    let unfinished = Death { unfinished: true, ..Death::of(1, T1_OF_20 + 50) };
    let merged = run(&killed(&[unfinished]));
    assert_eq!((merged.violations.as_slice(), merged.losses[0].lost), ([].as_slice(), 1));
    all_accounted(&merged.orders);

    // The one before it too: that one had been pushed.
    let mut fixture = killed(&[unfinished]);
    let pushed = OrderId::new(1, 0, 19);
    for log in &mut fixture.logs[3..] {
        log.retain(|record| record.id != pushed);
    }
    let merged = run(&fixture);
    assert_eq!((merged.violations.len(), merged.violations[0].kind), (1, ViolationKind::Lost));
    assert!(merged.violations[0].first.starts_with("strategy 1 order 19: lost, and not in the last push"));
    assert_eq!((merged.orders.lost, merged.lost_of_survivors), (2, 0));
}

#[test]
fn an_order_that_the_engine_had_is_never_lost() {
    let (kind, first) = spoiled(|fixture| {
        let id = order_with(fixture, Point::Cancelled);
        for point in [Point::Cancelled, Point::GatewayDone, Point::OrchRecvCompletion] {
            fixture.remove(point, id);
        }
    });
    assert_eq!(kind, ViolationKind::Lost);
    assert!(first.ends_with("it has t1 t2 t3 t4 due release"), "{first}");
    // A cancel must reach the engine.
    let (kind, first) = spoiled(|fixture| {
        fixture.remove(Point::OrchRecvCompletion, order_with(fixture, Point::Cancelled));
    });
    assert_eq!(kind, ViolationKind::MissingPoint);
    assert!(first.ends_with("has no t6"), "{first}");
}

#[test]
fn no_death_excuses_a_ghost() {
    let (kind, first) = spoiled(|fixture| {
        fixture.remove(Point::StrategySend, OrderId::new(1, 0, 19));
    });
    assert_eq!(kind, ViolationKind::NeverSent);
    assert!(first.contains("strategy 1 order 19: t2 t3 t4"), "{first}");
}

#[test]
fn the_living_are_not_retired() {
    let cancel = |fixture: &mut Fixture, id: OrderId| {
        let (thread, place) = fixture.find(Point::GatewayDone, id);
        let done = fixture.logs[thread][place];
        fixture.logs[thread].insert(place, Record { point: Point::Cancelled, ..done });
    };
    let (kind, first) = spoiled(|fixture| cancel(fixture, OrderId::new(0, 0, 5)));
    assert_eq!(kind, ViolationKind::NotDead);
    assert!(first.starts_with("strategy 0 order 5: ended as an order of the dead, yet its strategy lived"));
    // Neither does a report reach the dead.
    let (kind, first) = spoiled(|fixture| {
        let id = order_with(fixture, Point::Cancelled);
        let (thread, place) = fixture.find(Point::OrchRecvCompletion, id);
        let taken = fixture.logs[thread][place];
        fixture.logs[thread].insert(place + 1, Record { point: Point::OrchReturn, ..taken });
    });
    assert_eq!(kind, ViolationKind::NotDead);
    assert!(first.contains("yet a report was given to its strategy"), "{first}");
}

#[test]
fn survivors_owe_everything() {
    let (kind, first) = spoiled(|fixture| {
        for point in [Point::OrchReturn, Point::StrategyRecv] {
            fixture.remove(point, OrderId::new(2, 0, 20));
        }
    });
    assert_eq!(
        (kind, first.contains("strategy 2 order 20: sent and never returned")),
        (ViolationKind::Lost, true)
    );
    let mut fixture = killed(&[Death::of(1, T1_OF_20)]);
    for point in [Point::OrchReturn, Point::StrategyRecv] {
        fixture.remove(point, OrderId::new(2, 0, 20));
    }
    assert_eq!(run(&fixture).lost_of_survivors, 1);
}

#[test]
fn an_interrupted_run_may_lose_orders_of_the_dead_as_well() {
    let mut fixture = killed(&[Death::of(1, T1_OF_20 + 50)]);
    let id = order_with(&fixture, Point::Cancelled);
    fixture.remove(Point::OrchRecvCompletion, id);
    fixture.record.outcome = Outcome::Interrupted;
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    all_accounted(&merged.orders);
}

#[test]
fn incarnations_count_apart_and_counters_are_of_the_last() {
    let again = |at| Death { restart: Some(20_000), ..Death::of(1, at) };
    let fixture = killed(&[again(T1_OF_20 - 100_000), Death { unfinished: true, ..again(T1_OF_20) }]);
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    all_accounted(&merged.orders);
    assert_eq!((merged.losses.len(), merged.losses[1].lost), (2, 1));
    let epochs = |epoch| merged.orders().filter(|(id, _)| (id.strategy(), id.epoch()) == (1, epoch)).count();
    assert!((0..3).all(|epoch| epochs(epoch) > 5) && epochs(3) == 0);

    let mut wrong = fixture;
    let sent = wrong.counters[1][1];
    wrong.counter("strategy-1", "sent", sent + 1);
    let merged = run(&wrong);
    assert_eq!((merged.violations.len(), merged.violations[0].kind), (1, ViolationKind::Counters));
    assert!(merged.violations[0].first.contains(&format!("its log has {sent}")));
}

#[test]
fn a_second_incarnation_ends_the_first() {
    // The first incarnation's orders are stamped after those of the second.
    let again = Death { restart: Some(20_000), ..Death::of(1, T1_OF_20) };
    let words =
        |first, what| format!("order {first}: {what} after the next incarnation of its strategy had begun");
    let mut fixture = killed(&[again]);
    fixture.swap(Point::OrchRecvSubmit, OrderId::new(1, 0, 19), OrderId::new(1, 1, 0));
    let merged = run(&fixture);
    let [violation] = merged.violations.as_slice() else { panic!("{:?}", merged.violations) };
    assert_eq!(violation.kind, ViolationKind::SubmitOrder);
    assert!(violation.first.ends_with(&words(19, "dispatched")), "{violation:?}");
    // In its own log that is the strategy's own affair.
    let mut fixture = killed(&[again]);
    fixture.swap(Point::StrategySend, OrderId::new(1, 0, 20), OrderId::new(1, 1, 0));
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert!(merged.notes[0].contains(&words(20, "sent")), "{:?}", merged.notes);
    // What is refused may come out of a shared ring as late as it will.
    let mut fixture = killed(&[again]);
    let (thread, place) = fixture.find(Point::Rejected, OrderId::new(1, 0, 20));
    let log = &mut fixture.logs[thread];
    let (rejected, taken) = (log.remove(place), log.remove(place - 1));
    assert_eq!(taken.point, Point::OrchRecvSubmit);
    log.extend([taken, rejected]);
    assert_eq!(run(&fixture).violations, []);
}

#[test]
fn an_epoch_that_the_record_does_not_have_is_named() {
    let (kind, first) = spoiled(|fixture| {
        let orchestrator = fixture.thread("orchestrator");
        let id = OrderId::new(1, 2, 0);
        fixture.logs[orchestrator].push(Record { point: Point::OrchRecvSubmit, id, detail: 0, value: START });
    });
    assert_eq!(kind, ViolationKind::NotInPlan);
    assert_eq!(first, "strategy 1 epoch 2 order 0: t2, but by the record its last epoch was 1");

    // A launcher that was killed wrote no incidents down, and no exits.
    let mut fixture = killed(&[Death { restart: Some(20_000), ..Death::of(1, T1_OF_20) }]);
    fixture.record.incidents.clear();
    assert_eq!(run(&fixture).violations[0].kind, ViolationKind::NotInPlan);
    fixture.record.outcome =
        Outcome::Failed { process: "launcher".into(), pid: 1, what: "died before the run had ended".into() };
    assert_eq!(
        run(&fixture).violations[0].kind,
        ViolationKind::NotInPlan,
        "one that lived to the end knows all incidents"
    );
    fixture.record.exits.clear();
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    all_accounted(&merged.orders);
}

/// A strategy that died after every second order.
pub(crate) fn mortal(epochs: u16) -> Fixture {
    let orders = u64::from(epochs) * 2;
    let mut fixture = Fixture::new(Shape { orders, strategies: 2, delay: 100, period: 5_000, ..SHAPE });
    for record in fixture.logs.iter_mut().flatten().filter(|record| record.id.strategy() == 1) {
        let sequence = record.id.sequence();
        record.id = OrderId::new(1, (sequence / 2) as u16, sequence % 2);
    }
    fixture.record.incidents = (0..epochs - 1)
        .map(|epoch| Incident {
            strategy: 1,
            epoch,
            pid: 4_001,
            cause: "signal 9 (SIGKILL)".into(),
            quarantined: None,
            fault_ns: None,
            detected_ns: u64::from(epoch) * 10_000 + 9_000,
            fenced_ns: u64::from(epoch) * 10_000 + 9_100,
            repaired_ns: Some(u64::from(epoch) * 10_000 + 9_200),
            restarted_ns: Some(u64::from(epoch) * 10_000 + 9_500),
            stayed_down: None,
        })
        .collect();
    fixture.counter("strategy-1", "sent", 2);
    fixture
}

#[test]
fn a_thousand_epochs_are_merged() {
    let merged = run(&mortal(1_000));
    assert_eq!(merged.violations, []);
    assert_eq!((merged.orders.sent, merged.orders.lost), (4_000, 0));
    assert_eq!(merged.orders().filter(|(id, _)| id.epoch() == 999).count(), 2);
    assert_eq!(merged.losses, vec![Losses::default(); 999]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_deaths_leave_every_order_accounted_for(
        deaths in prop::collection::vec((0u16..3, 0u64..60_000, any::<bool>(), 0u64..90_000), 1..12), shared: bool,
    ) {
        let threading = if shared { Threading::Shared } else { Threading::Dedicated };
        let mut fixture = Fixture::new(Shape { threading, orders: 100, ..SHAPE });
        let mut next = [0; 3];
        for (strategy, after, unfinished, later) in deaths {
            let at = &mut next[usize::from(strategy)];
            *at += after;
            fixture.kill(Death { unfinished, restart: Some(later), ..Death::of(strategy, *at) });
            *at += later;
        }
        let merged = run(&fixture);
        prop_assert_eq!(&merged.violations, &[]);
        all_accounted(&merged.orders);
        let losses = |of: fn(&Losses) -> u64| merged.losses.iter().map(of).sum::<u64>();
        prop_assert_eq!(losses(|losses| losses.lost), merged.orders.lost);
        prop_assert_eq!(losses(|losses| losses.cancelled), merged.orders.cancelled);
        prop_assert_eq!(losses(|losses| losses.orphaned), merged.orders.orphaned);
        prop_assert_eq!(merged.measured().count() as u64, merged.orders.returned);
    }

    #[test]
    fn any_cut_leaves_every_order_accounted_for(
        strategy in 0u16..3, cut in 0usize..120, others in prop::collection::vec((0usize..6, 0usize..300), 0..3),
        is_quarantined: bool, outcome in 0..3,
    ) {
        let quarantined = is_quarantined.then_some(Misconduct::Flood);
        let mut fixture = killed(&[Death { quarantined, ..Death::of(strategy, T1_OF_20) }]);
        fixture.logs[usize::from(strategy)].truncate(cut);
        for (thread, cut) in others {
            fixture.logs[thread].truncate(cut);
        }
        match outcome {
            0 => {}
            1 => fixture.record.outcome = Outcome::Interrupted,
            _ => fixture.fail("engine"),
        }
        all_accounted(&run(&fixture).orders);
    }
}

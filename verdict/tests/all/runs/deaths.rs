//! Strategies that die during a run: every order is in exactly one category, and a death exempts
//! only what it explains.

use crate::common::{all_accounted, check_each, only, run, stamp};
use crate::fixture::killing::{GONE, StrategyDeath};
use crate::fixture::{Fixture, START, Shape};
use merge::ViolationKind as Kind;
use merge::{MergedRun, OrderLosses};
use proptest::prelude::*;
use protocol::index::StrategyIndex;
use protocol::plan::{Isolation, Threading};
use protocol::stamps::{Point, Record};
use protocol::supervision::ProtocolViolation;
use protocol::wire::OrderId;
use record::run::{Incident, RunOutcome};

/// Long enough that each category has orders: 5 µs between two orders of a strategy, delays of 25
/// to 75 µs.
const SHAPE: Shape = Shape { strategies: 3, orders: 40, reject_every: 7, period: 3_000, ..Shape::PLAIN };
/// Time at which strategy 1 sends its order 20 (from 0), in ticks since the start.
pub const T1_OF_20: u64 = (20 * 3 + 1) * 3_000 + 100;

pub fn run_with_killed(deaths: &[StrategyDeath]) -> Fixture {
    let mut fixture = Fixture::new(SHAPE);
    deaths.iter().for_each(|death| fixture.kill(*death));
    fixture
}

fn one_killed() -> Fixture {
    run_with_killed(&[StrategyDeath::new(1, T1_OF_20 + 50)])
}

/// Returns a run in which strategy 1 was killed and restarted.
fn run_with_restart() -> Fixture {
    run_with_killed(&[StrategyDeath { restart: Some(20_000), ..StrategyDeath::new(1, T1_OF_20) }])
}

/// Returns the first order of the dead strategy that was canceled.
fn first_cancelled(fixture: &Fixture) -> OrderId {
    let has = |point: Point, id: OrderId| {
        fixture.logs.iter().flatten().any(|record| record.point == point && record.id == id)
    };
    let mut ids = (0..40).map(|sequence| OrderId::new(1, 0, sequence));
    ids.find(|id| has(Point::Cancelled, *id) && !has(Point::OrchReturn, *id)).unwrap()
}

/// Removes the report of an order of a survivor.
fn remove_survivor_report(fixture: &mut Fixture) {
    for point in [Point::OrchReturn, Point::StrategyRecv] {
        fixture.remove(point, OrderId::new(2, 0, 20));
    }
}

#[test]
fn dead_strategy_orders_are_each_in_one_category() {
    // Order 20 is in the submit ring at the fence; the ones before it are at their venues.
    let mut fixture = run_with_killed(&[StrategyDeath::new(1, T1_OF_20)]);
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    let orders = merged.orders;
    all_accounted(&orders);
    assert_eq!((orders.sent, orders.lost, orders.orphaned), (40 + 21 + 40, 0, 1));
    assert!(orders.cancelled >= 3, "{orders:?}");
    assert_eq!(merged.losses, [OrderLosses { lost: 0, cancelled: orders.cancelled, orphaned: 1 }]);
    assert_eq!((merged.losses[0].total(), merged.lost_of_survivors), (orders.cancelled + 1, 0));
    // Canceled and refused orders are in no figure.
    let refused = merged.orders().filter(|(_, row)| row.reason() == Some(GONE as u8)).count();
    assert_eq!(refused, 1);
    assert!(merged.measured().all(|(_, row)| !row.has(Point::Cancelled)));
    assert_eq!(merged.measured().count() as u64, orders.returned);
    remove_survivor_report(&mut fixture);
    assert_eq!(run(&fixture).lost_of_survivors, 1);
}

#[test]
fn only_the_order_being_pushed_can_be_lost() {
    let mut fixture =
        run_with_killed(&[StrategyDeath { unfinished: true, ..StrategyDeath::new(1, T1_OF_20 + 50) }]);
    let merged = run(&fixture);
    assert_eq!((merged.violations.as_slice(), merged.losses[0].lost), ([].as_slice(), 1));
    all_accounted(&merged.orders);

    // Its predecessor too: that one had been pushed.
    let pushed = OrderId::new(1, 0, 19);
    fixture.logs[3..].iter_mut().for_each(|log| log.retain(|record| record.id != pushed));
    let merged = run(&fixture);
    assert_eq!((merged.violations.len(), merged.violations[0].kind), (1, Kind::Lost));
    assert!(merged.violations[0].first.starts_with("strategy 1 order 19: lost, and not in the last push"));
    assert_eq!((merged.orders.lost, merged.lost_of_survivors), (2, 0));
}

#[test]
fn death_exempts_no_other_violation() {
    assert_eq!(run(&one_killed()).violations, []);
    check_each(
        one_killed,
        &[
            // An order that the engine received is never lost, and a cancel must reach the engine.
            (Kind::Lost, "it has t1 t2 t3 t4 due release", |f| {
                let id = first_cancelled(f);
                for point in [Point::Cancelled, Point::GatewayDone, Point::OrchRecvCompletion] {
                    f.remove(point, id);
                }
            }),
            (Kind::MissingPoint, "has no t6", |f| f.remove(Point::OrchRecvCompletion, first_cancelled(f))),
            (Kind::NeverSent, "strategy 1 order 19: t2 t3 t4", |f| {
                f.remove(Point::StrategySend, OrderId::new(1, 0, 19))
            }),
            (
                Kind::NotDead,
                "strategy 0 order 5: ended as an order of the dead, yet its strategy lived",
                |f| {
                    let id = OrderId::new(0, 0, 5);
                    let done = *f.stamp(Point::GatewayDone, id);
                    f.insert_at(Point::GatewayDone, id, 0, Record { point: Point::Cancelled, ..done });
                },
            ),
            (Kind::NotDead, "yet a report was given to its strategy", |f| {
                let id = first_cancelled(f);
                let taken = *f.stamp(Point::OrchRecvCompletion, id);
                f.insert_at(Point::OrchRecvCompletion, id, 1, Record { point: Point::OrchReturn, ..taken });
            }),
            (Kind::Lost, "strategy 2 order 20: sent and never returned", remove_survivor_report),
            (
                Kind::NotInPlan,
                "strategy 1 epoch 2 order 0: t2, but by the record its last epoch was 1",
                |f| f.push("orchestrator", stamp(Point::OrchRecvSubmit, OrderId::new(1, 2, 0), START)),
            ),
        ],
    );
}

#[test]
fn interrupted_run_can_lose_dead_strategy_orders() {
    let mut fixture = one_killed();
    fixture.remove(Point::OrchRecvCompletion, first_cancelled(&fixture));
    fixture.record.outcome = RunOutcome::Interrupted;
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    all_accounted(&merged.orders);
}

#[test]
fn incarnations_are_separate_and_counters_are_last() {
    let restarted_death = |at| StrategyDeath { restart: Some(20_000), ..StrategyDeath::new(1, at) };
    let mut fixture = run_with_killed(&[
        restarted_death(T1_OF_20 - 100_000),
        StrategyDeath { unfinished: true, ..restarted_death(T1_OF_20) },
    ]);
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    all_accounted(&merged.orders);
    assert_eq!((merged.losses.len(), merged.losses[1].lost), (2, 1));
    let epochs =
        |epoch| merged.orders().filter(|(id, _)| (id.strategy().0, id.epoch()) == (1, epoch)).count();
    assert!((0..3).all(|epoch| epochs(epoch) > 5) && epochs(3) == 0);

    let sent = fixture.counters[1][1];
    fixture.counter("strategy-1", "sent", sent + 1);
    let (kind, first) = only(&run(&fixture));
    assert!(kind == Kind::Counters && first.contains(&format!("its log has {sent}")), "{first}");
}

#[test]
fn second_incarnation_ends_the_first() {
    // The first incarnation's orders are stamped after those of the second.
    let expected =
        |first, what| format!("order {first}: {what} after the next incarnation of its strategy had begun");
    let mut fixture = run_with_restart();
    fixture.swap(Point::OrchRecvSubmit, OrderId::new(1, 0, 19), OrderId::new(1, 1, 0));
    let (kind, first) = only(&run(&fixture));
    assert!(kind == Kind::SubmitOrder && first.ends_with(&expected(19, "dispatched")), "{first}");
    // In its own log that affects only the strategy.
    let mut fixture = run_with_restart();
    fixture.swap(Point::StrategySend, OrderId::new(1, 0, 20), OrderId::new(1, 1, 0));
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert!(merged.notes[0].contains(&expected(20, "sent")), "{:?}", merged.notes);
    // A refused order may come out of a shared ring arbitrarily late.
    let mut fixture = run_with_restart();
    let (thread, index) = fixture.find(Point::Rejected, OrderId::new(1, 0, 20));
    let log = &mut fixture.logs[thread];
    let (rejected, taken) = (log.remove(index), log.remove(index - 1));
    assert_eq!(taken.point, Point::OrchRecvSubmit);
    log.extend([taken, rejected]);
    assert_eq!(run(&fixture).violations, []);
}

/// A killed launcher recorded neither incidents nor exits.
#[test]
fn epochs_are_accepted_without_recorded_incidents() {
    let first = |merged: &MergedRun| merged.violations[0].kind;
    let mut fixture = run_with_restart();
    fixture.record.incidents.clear();
    assert_eq!(first(&run(&fixture)), Kind::NotInPlan);
    let what = "died before the run had ended".into();
    fixture.record.outcome = RunOutcome::Failed { process: "launcher".into(), pid: 1, what };
    assert_eq!(first(&run(&fixture)), Kind::NotInPlan, "one that lived to the end knows all incidents");
    fixture.record.exits.clear();
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    all_accounted(&merged.orders);
}

/// A thread that hung, was fenced and ran again: what it logs then is not believed.
#[test]
fn orders_logged_after_abandonment_count_as_never_sent() {
    let mut fixture = one_killed();
    fixture.record.plan.isolation = Isolation::Thread.into();
    let before = run(&fixture);
    assert_eq!(before.violations, []);
    let log = fixture.thread("strategy-1");
    for sequence in 21..25 {
        let id = OrderId::new(1, 0, sequence);
        let value = START + T1_OF_20 + 100_000 + sequence * 100;
        fixture.logs[log].push(Record { point: Point::StrategySend, id, detail: 0, value });
    }
    let found = run(&fixture);
    assert_eq!(found.violations.first().map(|violation| violation.kind), Some(Kind::Lost), "a dead process");
    fixture.record.incidents[0].abandoned = true;
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    all_accounted(&merged.orders);
    assert_eq!((merged.orders.lost, merged.lost_of_survivors), (0, 0));
    assert!(merged.orders.sent <= before.orders.sent, "{:?}", merged.orders);
}

/// Returns a run with a strategy that died after every second order.
pub fn run_with_deaths(epochs: u16) -> Fixture {
    let orders = u64::from(epochs) * 2;
    let mut fixture = Fixture::new(Shape { orders, strategies: 2, delay: 100, period: 5_000, ..SHAPE });
    for record in fixture.logs.iter_mut().flatten().filter(|record| record.id.strategy().0 == 1) {
        let sequence = record.id.sequence();
        record.id = OrderId::new(1, (sequence / 2) as u16, sequence % 2);
    }
    let incident = |epoch: u16| {
        let ns = u64::from(epoch) * 10_000 + 9_000;
        Incident {
            strategy: StrategyIndex(1),
            epoch,
            pid: 4_001,
            cause: "signal 9 (SIGKILL)".into(),
            detected_ns: ns,
            fenced_ns: ns + 100,
            repaired_ns: Some(ns + 200),
            restarted_ns: Some(ns + 500),
            ..Incident::default()
        }
    };
    fixture.record.incidents = (0..epochs - 1).map(incident).collect();
    fixture.counter("strategy-1", "sent", 2);
    fixture
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_deaths_account_for_every_order(
        deaths in prop::collection::vec((0u16..3, 0u64..60_000, any::<bool>(), 0u64..90_000), 1..12), shared: bool,
    ) {
        let threading = if shared { Threading::Shared } else { Threading::Dedicated };
        let mut fixture = Fixture::new(Shape { threading, orders: 100, ..SHAPE });
        let mut next = [0; 3];
        for (strategy, after, unfinished, later) in deaths {
            let at = &mut next[usize::from(strategy)];
            *at += after;
            fixture.kill(StrategyDeath { unfinished, restart: Some(later), ..StrategyDeath::new(strategy, *at) });
            *at += later;
        }
        let merged = run(&fixture);
        prop_assert_eq!(&merged.violations, &[]);
        all_accounted(&merged.orders);
        let losses = |of: fn(&OrderLosses) -> u64| merged.losses.iter().map(of).sum::<u64>();
        prop_assert_eq!(losses(|losses| losses.lost), merged.orders.lost);
        prop_assert_eq!(losses(|losses| losses.cancelled), merged.orders.cancelled);
        prop_assert_eq!(losses(|losses| losses.orphaned), merged.orders.orphaned);
        prop_assert_eq!(merged.measured().count() as u64, merged.orders.returned);
    }

    #[test]
    fn arbitrary_truncation_accounts_for_every_order(
        strategy in 0u16..3, cut in 0usize..120, others in prop::collection::vec((0usize..6, 0usize..300), 0..3),
        is_quarantined: bool, outcome in 0..3,
    ) {
        let quarantined = is_quarantined.then_some(ProtocolViolation::Flood);
        let mut fixture = run_with_killed(&[StrategyDeath { quarantined, ..StrategyDeath::new(strategy, T1_OF_20) }]);
        fixture.logs[usize::from(strategy)].truncate(cut);
        for (thread, cut) in others {
            fixture.logs[thread].truncate(cut);
        }
        match outcome {
            0 => {}
            1 => fixture.record.outcome = RunOutcome::Interrupted,
            _ => fixture.fail("engine"),
        }
        all_accounted(&run(&fixture).orders);
    }
}

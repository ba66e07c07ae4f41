//! The merge: exact counts of honest runs, and every kind of violation detected and named.

use crate::common::{Defect, all_accounted, check_each, kinds, only, run, stamp};
use crate::fixture::{Fixture, SESSION, STAGES, START, Shape, sort_by_event};
use merge::ViolationKind as Kind;
use merge::{MergedRun, OrderCounts};
use proptest::prelude::*;
use protocol::flow::REPORT_PATH;
use protocol::plan::{Pacing, Threading};
use protocol::stamps::{Point, Record};
use protocol::status::StatusField;
use protocol::wire::OrderId;
use record::run::RunOutcome;

const ID: OrderId = OrderId::new(1, 0, 7);
/// The next order, at its venue: with two strategies and two venues, each strategy has its own.
const NEXT: OrderId = OrderId::new(1, 0, 8);
const NAME: &str = "strategy 1 order 7: ";

fn honest() -> Fixture {
    Fixture::new(Shape::PLAIN)
}

fn run_with_defect(introduce: impl FnOnce(&mut Fixture)) -> MergedRun {
    let mut fixture = honest();
    introduce(&mut fixture);
    run(&fixture)
}

#[test]
fn honest_run_is_counted_exactly() {
    let merged = run(&Fixture::new(Shape { reject_every: 5, ..Shape::PLAIN }));
    assert_eq!((merged.violations.as_slice(), merged.notes.len()), (&[][..], 0));
    let expected =
        OrderCounts { scheduled: 40, sent: 40, returned: 32, rejected: 8, ..OrderCounts::default() };
    assert_eq!(merged.orders, expected);
    // In addition to the stamps: the checksums of both ends of each link.
    assert_eq!(merged.records, 32 * 10 + 8 * 6 + 2 * 4 + 2 * 4 - 1);
    assert_eq!(merged.measured().count(), 32);
    let rejected: Vec<_> = merged.orders().filter_map(|(_, row)| row.reason()).collect();
    assert_eq!(rejected, [3; 8]);
    assert_eq!(merged.span.first_sent, START + 100);
}

/// Orders name their venue at t4, so two gateways on one thread are distinguished.
#[test]
fn gateways_sharing_a_thread_are_checked_separately() {
    let shape = Shape { threading: Threading::Shared, strategies: 1, ..Shape::PLAIN };
    let [first, second, third] = [4, 5, 6].map(|sequence| OrderId::new(0, 0, sequence));
    // The first and the third go to venue 0, the second to venue 1: nothing orders the
    // two venues.
    for (point, other, expected) in [
        (Point::GatewayRecv, third, &[Kind::DispatchOrder][..]),
        (Point::OrchRecvCompletion, third, &[Kind::CompletionOrder]),
        (Point::GatewayRecv, second, &[]),
    ] {
        let mut fixture = Fixture::new(shape);
        fixture.swap(point, first, other);
        assert_eq!(kinds(&run(&fixture)), expected);
    }
    let merged = run_with_defect(|fixture| fixture.stamp(Point::GatewayRecv, ID).detail ^= 1);
    assert_eq!(merged.violations[0].kind, Kind::Misplaced);
    assert!(merged.violations[0].first.contains("t4 names a gateway that is none of its thread's"));
}

/// In the detail of a t5: more reports follow.
const MORE: u8 = 1 << 7;

/// Adds reports 1 and 2 to an order, each slightly after its predecessor.
pub(super) fn with_reports(fixture: &mut Fixture, id: OrderId) {
    let path = [Point::GatewayDone, Point::OrchRecvCompletion, Point::OrchReturn, Point::StrategyRecv];
    let is_stamped = fixture.logs.iter().flatten().any(|r| r.point == Point::ExchangeDone && r.id == id);
    let by_exchange = is_stamped.then_some(Point::ExchangeDone);
    for number in [1, 2] {
        for point in by_exchange.into_iter().chain(path) {
            let (thread, index) = fixture.find(point, id);
            let first = fixture.logs[thread][index];
            let detail = if point == Point::GatewayDone && number == 1 { number | MORE } else { number };
            let later = Record { detail, value: first.value + 20 * u64::from(number), ..first };
            fixture.logs[thread].push(later);
        }
    }
    fixture.stamp(Point::GatewayDone, id).detail = MORE;
    fixture.logs.iter_mut().for_each(|log| sort_by_event(log));
}

#[test]
fn order_has_all_reports_of_its_venue() {
    let merged = run_with_defect(|fixture| {
        with_reports(fixture, ID);
        with_reports(fixture, OrderId::new(0, 0, 3));
    });
    assert_eq!(merged.violations, []);
    assert_eq!((merged.orders.returned, merged.orders.duplicated, merged.orders.further_reports), (40, 0, 4));
    // The order's own path runs to its first report.
    let stamps = |merged: &MergedRun| merged.measured().map(|(_, row)| row.stamps()).collect::<Vec<_>>();
    assert_eq!(stamps(&merged), stamps(&run(&honest())));
    let (id, number, report) = merged.further_reports().nth(3).unwrap();
    assert_eq!((id, number), (ID, 2));
    assert!(report.at(Point::StrategyRecv) > report.at(Point::GatewayDone));
}

#[test]
fn each_further_report_defect_is_named() {
    fn is(record: &Record, point: Point, detail: u8) -> bool {
        (record.id, record.point, record.detail) == (ID, point, detail)
    }
    fn change_last_flag(log: &mut [Record], from: u8, to: u8) {
        let found = log.iter_mut().filter(|record| is(record, Point::GatewayDone, from));
        found.for_each(|record| record.detail = to);
    }
    type Change = fn(&mut Vec<Record>);
    let cases: [(Kind, &str, Change); 7] = [
        (Kind::MissingPoint, "report 2 has no t7", |log| {
            log.retain(|record| !is(record, Point::OrchReturn, 2));
        }),
        (Kind::Duplicate, "t6 of report 1 twice", |log| {
            let twin = log.iter().find(|record| is(record, Point::OrchRecvCompletion, 1)).copied();
            log.extend(twin);
        }),
        (Kind::MissingPoint, "report 2 has no report before it", |log| {
            let is_report = |record: &Record| REPORT_PATH.contains(&record.point);
            log.retain(|record| record.id != ID || record.detail & !MORE != 1 || !is_report(record));
        }),
        (Kind::CompletionOrder, "", |log| {
            let at = |number| log.iter().position(|record| is(record, Point::OrchRecvCompletion, number));
            if let (Some(a), Some(b)) = (at(1), at(2)) {
                log.swap(a, b);
            }
        }),
        // The last report is marked at t5.
        (Kind::LastReport, "report 1 follows the last one", |log| change_last_flag(log, MORE, 0)),
        (Kind::LastReport, "report 2 follows the last one", |log| change_last_flag(log, 1 | MORE, 1)),
        (Kind::LastReport, "report 2 is not the last, and none follows", |log| {
            change_last_flag(log, 2, 2 | MORE)
        }),
    ];
    for (kind, expected, change) in cases {
        let merged = run_with_defect(|fixture| {
            with_reports(fixture, ID);
            fixture.logs.iter_mut().for_each(change);
        });
        let first = &merged.violations[0];
        assert!(first.kind == kind && first.first.contains(expected), "{kind:?} {expected}: {first:?}");
        assert!(first.first.starts_with(NAME) || kind == Kind::CompletionOrder, "{first:?}");
    }
}

#[test]
fn each_violation_is_detected_and_named() {
    let far = "strategy 1 order 4294967295: t2, but the plan has 20 orders for it";
    check_each(
        honest,
        &[
            (Kind::Duplicate, "strategy 1 order 7: t4 twice", |f| f.double(Point::GatewayRecv, ID)),
            (Kind::Gap, "strategy 1 order 7: never sent, though later ones were", |f| {
                f.logs.iter_mut().for_each(|log| log.retain(|record| record.id != ID));
                f.counter("strategy-1", "sent", 19);
            }),
            (Kind::NotInPlan, "strategy 9 order 1: the plan has no such strategy", |f| {
                f.push("orchestrator", stamp(Point::OrchRecvSubmit, OrderId::new(9, 0, 1), 1))
            }),
            (Kind::NotInPlan, "strategy 1 order 4000: t2, but the plan has 20 orders for it", |f| {
                f.push("orchestrator", stamp(Point::OrchRecvSubmit, OrderId::new(1, 0, 4000), 1))
            }),
            (Kind::NotInPlan, far, |f| {
                f.push("orchestrator", stamp(Point::OrchRecvSubmit, OrderId::new(1, 0, u64::MAX), 1))
            }),
            (Kind::NeverSent, "strategy 1 order 7: t2 t3", |f| {
                f.remove(Point::StrategySend, ID);
                f.counter("strategy-1", "sent", 19);
            }),
            (Kind::Misplaced, "strategy 1 order 7: t8 stands in gateway-0.stamps", |f| {
                f.push("gateway-0", stamp(Point::StrategyRecv, ID, START))
            }),
            // Every hand-off is first in, first out. Which of the two completions comes first
            // depends on their delays.
            (Kind::SubmitOrder, NAME, |f| f.swap(Point::OrchRecvSubmit, ID, NEXT)),
            (Kind::CompletionOrder, "", |f| f.swap(Point::OrchRecvCompletion, ID, NEXT)),
            (Kind::ReturnOrder, "", |f| f.swap(Point::OrchReturn, ID, NEXT)),
            (Kind::DispatchOrder, "", |f| f.swap(Point::OrchDispatch, ID, NEXT)),
            (Kind::TimeOrder, "strategy 1 order 7: t1 before due", |f| f.set(Point::Due, ID, |t| t + 101)),
            (Kind::TimeOrder, "strategy 1 order 7: t5 before release", |f| {
                f.set(Point::Release, ID, |t| t + 51)
            }),
            (Kind::RejectedDispatched, "t3 t4", reject),
            (Kind::LastReport, "strategy 1 order 7: its one report is not the last", |f| {
                f.stamp(Point::GatewayDone, ID).detail = MORE;
            }),
            (Kind::RecordsDropped, "gateway-1: 1 record did not fit the log", |f| {
                f.status("gateway-1", StatusField::RecordsDropped, 1)
            }),
            (Kind::Counters, "counted 21 orders sent, its log has 20", |f| {
                f.counter("strategy-0", "sent", 21)
            }),
            (Kind::PeerFaults, "orchestrator: was handed 200 messages", |f| {
                f.counter("orchestrator", "protocol-errors", 200)
            }),
            (Kind::PeerFaults, "gateway-0", |f| f.counter("gateway-0", "protocol-errors", 1)),
            (Kind::Lost, "7: sent and never returned; it has t1 t2 t3 t4 t5 due release", |f| f.lose(ID)),
            (Kind::Checksum, "inbox of gateway-1: a log ends without its checksum", |f| {
                let thread = f.thread("gateway-1");
                f.sums[thread].remove(0);
            }),
        ],
    );
}

fn reject(fixture: &mut Fixture) {
    fixture.insert_at(Point::OrchRecvSubmit, ID, 1, stamp(Point::Rejected, ID, 1));
}

#[test]
fn orders_with_violations_are_counted() {
    let counts = |introduce: Defect| run_with_defect(introduce).orders;
    assert_eq!(counts(|f| f.double(Point::GatewayRecv, ID)).duplicated, 1);
    let orders = counts(|f| f.logs.iter_mut().for_each(|log| log.retain(|r| r.id != ID)));
    assert_eq!((orders.sent, orders.returned), (39, 39));
    let orders = counts(reject);
    assert_eq!((orders.returned, orders.rejected), (39, 1));
    let orders = counts(|f| f.lose(ID));
    assert_eq!((orders.sent, orders.returned, orders.lost), (40, 39, 1));
}

#[test]
fn time_going_back_is_detected() {
    for (point, expected) in [
        (Point::OrchRecvSubmit, "t2 before t1"),
        (Point::OrchDispatch, "t3 before t2"),
        (Point::GatewayDone, "t5 before t4"),
        (Point::OrchRecvCompletion, "t6 before t5"),
        (Point::StrategyRecv, "t8 before t7"),
        (Point::Release, "release before t4"),
    ] {
        // A strategy's log in which time goes back is untrusted: there the stamp stays after its
        // predecessor.
        let earlier = |ticks| if point == Point::StrategyRecv { ticks - STAGES[7] - 1 } else { 1 };
        let merged = run_with_defect(|fixture| fixture.set(point, ID, earlier));
        let violation = merged.violations.iter().find(|violation| violation.kind == Kind::TimeOrder).unwrap();
        assert_eq!(violation.first, format!("{NAME}{expected}"));
        assert_eq!(merged.measured().count(), 39, "an impossible order is in no figure");
    }
}

#[test]
fn missing_stamp_is_named() {
    let path = [Point::OrchRecvSubmit, Point::OrchDispatch, Point::GatewayRecv, Point::GatewayDone];
    let back = [Point::OrchRecvCompletion, Point::OrchReturn, Point::Due, Point::Release];
    for point in path.into_iter().chain(back) {
        let found = only(&run_with_defect(|fixture| fixture.remove(point, ID)));
        assert_eq!(found, (Kind::MissingPoint, format!("{NAME}has no {}", point.name())));
    }
}

/// Messages in flight when a run was interrupted are unknown, and a failed run has reported its
/// cause.
#[test]
fn interrupted_run_can_lose_orders_and_checksums() {
    let cases: [Defect; 3] =
        [|f| f.lose(ID), |f| f.sums[0][0].1 = 7, |f| f.counter("orchestrator", "protocol-errors", 1)];
    for (number, introduce) in cases.into_iter().enumerate() {
        let merged = run_with_defect(|fixture| {
            introduce(fixture);
            match number {
                2 => fixture.fail("strategy-1"),
                _ => fixture.record.outcome = RunOutcome::Interrupted,
            }
        });
        assert_eq!((merged.violations.len(), merged.orders.lost), (0, u64::from(number == 0)));
    }
}

#[test]
fn checksums_of_link_ends_must_match() {
    for (thread, index, expected) in [
        ("strategy-0", 0, "submit of strategy-0: what was taken is not what was pushed"),
        ("strategy-1", 1, "return of strategy-1: what was taken"),
        ("gateway-1", 0, "inbox of gateway-1: what was taken"),
        ("gateway-0", 1, "completion of the gateways: what was taken"),
        ("orchestrator", 2, "submit of strategy-1: what was taken"),
    ] {
        let (kind, first) = only(&run_with_defect(|fixture| {
            let thread = fixture.thread(thread);
            fixture.sums[thread][index].1 ^= 1 << 40;
        }));
        assert!(kind == Kind::Checksum && first.starts_with(expected), "{first}");
    }
}

#[test]
fn killed_strategy_loses_orders_and_nothing_else() {
    let merged = run_with_defect(|fixture| {
        fixture.logs[1].retain(|record| record.value < START + 150_000);
        // The engine never received what it had not sent; one order was pushed before its stamp was
        // stored.
        let own = fixture.logs[1].clone();
        let is_sent = |id: OrderId| own.iter().any(|r| r.id == id && r.point == Point::StrategySend);
        for log in &mut fixture.logs[2..] {
            log.retain(|record| record.id.strategy().0 == 0 || is_sent(record.id));
        }
        fixture.remove(Point::StrategySend, OrderId::new(1, 0, 6));
        fixture.fail("strategy-1");
    });
    assert_eq!(merged.violations, []);
    all_accounted(&merged.orders);
    assert!(merged.orders.lost > 0 && merged.orders.returned >= 20, "{:?}", merged.orders);
}

#[test]
fn huge_planned_order_count_costs_nothing() {
    let merged = run_with_defect(|fixture| {
        fixture.record.plan.trading_mut().orders = vec![u64::MAX; 2];
        fixture.push("orchestrator", stamp(Point::OrchRecvSubmit, OrderId::new(1, 0, 1 << 31), 1));
    });
    assert_eq!((merged.orders.scheduled, merged.orders.returned), (u64::MAX, 40));
    assert_eq!(merged.violations[0].kind, Kind::NeverSent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn arbitrary_honest_run_merges_to_exact_counts(
        strategies in 1u16..6, venues in 1u16..5, orders in 1u64..60, reject_every in 0u64..7,
        shared: bool, closed: bool, period in 1u64..20_000, delay in 0u64..200_000,
    ) {
        // An order's time at an exchange is at least both session times.
        let (book, delay) = (orders % 3 == 0, delay + SESSION.iter().sum::<u64>());
        let shape = Shape {
            strategies, venues, orders, reject_every, period, delay, fills: orders % 2 == 0, book,
            market: orders % 6 == 0,
            threading: if shared { Threading::Shared } else { Threading::Dedicated },
            pacing: if closed { Pacing::Closed } else { Pacing::Scheduled },
        };
        let merged = run(&Fixture::new(shape));
        prop_assert_eq!(&merged.violations, &[]);
        let all = orders * u64::from(strategies);
        let rejected = orders.checked_div(reject_every).unwrap_or(0) * u64::from(strategies);
        prop_assert_eq!(merged.orders, OrderCounts {
            scheduled: all, sent: all, returned: all - rejected, rejected, ..OrderCounts::default()
        });
        prop_assert_eq!(merged.measured().count() as u64, all - rejected);
    }
}

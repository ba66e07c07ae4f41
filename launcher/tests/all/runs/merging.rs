//! The merge: exact counts of honest runs, and every kind of violation found and named.

use super::fixture::{Fixture, SESSION, STAGES, START, Shape};
use analysis::document::Document;
use analysis::merge::{MergeError, Merged, Orders, ViolationKind, merge};
use analysis::record::Outcome;
use analysis::record::RunRecord;
use proptest::prelude::*;
use protocol::plan::{Pacing, Threading};
use protocol::stamps::{Point, Record};
use protocol::status::Field;
use protocol::wire::OrderId;

/// Writes and merges.
pub(crate) fn run(fixture: &Fixture) -> Merged {
    try_run(fixture).unwrap()
}

fn try_run(fixture: &Fixture) -> Result<Merged, MergeError> {
    let folder = fixture.write();
    let record = RunRecord::read(folder.path()).unwrap();
    assert_eq!(record, fixture.record);
    let mut last = (0, 0);
    let merged = merge(folder.path(), &record, |done, total| {
        assert!(done >= last.0 && done <= total);
        last = (done, total);
    })?;
    assert_eq!(last.0, merged.records);
    Ok(merged)
}

const ID: OrderId = OrderId::new(1, 0, 7);
/// The order after it, at the same venue: with two strategies and two venues, each strategy has its own.
const NEXT: OrderId = OrderId::new(1, 0, 8);
const NAME: &str = "strategy 1 order 7: ";

/// Spoils an honest run and expects exactly one violation.
fn spoiled(spoil: impl FnOnce(&mut Fixture)) -> (ViolationKind, String, Merged) {
    let mut fixture = Fixture::new(Shape::default());
    spoil(&mut fixture);
    let merged = run(&fixture);
    let [violation] = merged.violations.as_slice() else {
        panic!("one violation expected, got {:?}", merged.violations)
    };
    assert_eq!(violation.count, 1, "{violation:?}");
    (violation.kind, violation.first.clone(), merged)
}

#[test]
fn an_honest_run_is_counted_exactly() {
    let merged = run(&Fixture::new(Shape { reject_every: 5, ..Shape::default() }));
    assert_eq!(merged.violations, []);
    assert_eq!(merged.notes, [""; 0]);
    assert_eq!(
        merged.orders,
        Orders { scheduled: 40, sent: 40, returned: 32, rejected: 8, ..Orders::default() }
    );
    // Beside the stamps the checksums of both ends of each link.
    assert_eq!(merged.records, 32 * 10 + 8 * 6 + 2 * 4 + 2 * 4 - 1);
    assert_eq!(merged.measured().count(), 32);
    let rejected: Vec<_> = merged.orders().filter_map(|(_, row)| row.reason()).collect();
    assert_eq!(rejected, [3; 8]);
    assert_eq!(merged.span.first_sent, START + 100);
}

#[test]
fn a_shared_engine_is_joined_from_one_log() {
    let merged = run(&Fixture::new(Shape { threading: Threading::Shared, ..Shape::default() }));
    assert_eq!(merged.violations, []);
    assert_eq!(merged.orders.returned, 40);
    assert_eq!(merged.notes, [""; 0]);
}

/// Orders name their venue at t4, so two gateways on one thread are told apart.
#[test]
fn gateways_that_share_a_thread_are_checked_each() {
    let shape = Shape { threading: Threading::Shared, strategies: 1, ..Shape::default() };
    let (first, second, third) = (OrderId::new(0, 0, 4), OrderId::new(0, 0, 5), OrderId::new(0, 0, 6));
    for (point, kind) in [
        (Point::GatewayRecv, ViolationKind::DispatchOrder),
        (Point::OrchRecvCompletion, ViolationKind::CompletionOrder),
    ] {
        // The first and the third go to venue 0.
        let mut fixture = Fixture::new(shape);
        fixture.swap(point, first, third);
        let merged = run(&fixture);
        let found: Vec<ViolationKind> = merged.violations.iter().map(|violation| violation.kind).collect();
        assert_eq!(found, [kind], "{:?}", merged.violations);
    }
    // The second goes to venue 1: there is no order between the two.
    let mut fixture = Fixture::new(shape);
    fixture.swap(Point::GatewayRecv, first, second);
    assert_eq!(run(&fixture).violations, []);
    let mut fixture = Fixture::new(Shape::default());
    let (thread, place) = fixture.find(Point::GatewayRecv, ID);
    fixture.logs[thread][place].detail ^= 1;
    let merged = run(&fixture);
    assert_eq!(merged.violations[0].kind, ViolationKind::Misplaced);
    assert!(merged.violations[0].first.contains("t4 names a gateway that is none of its thread's"));
}

/// In the detail of a t5: more reports follow.
const MORE: u8 = 1 << 7;

/// Adds reports 1 and 2 to an order, each a little behind the one before it.
pub(crate) fn with_reports(fixture: &mut Fixture, id: OrderId) {
    let path = [Point::GatewayDone, Point::OrchRecvCompletion, Point::OrchReturn, Point::StrategyRecv];
    let is_stamped = fixture.logs.iter().flatten().any(|r| r.point == Point::ExchangeDone && r.id == id);
    let by_exchange = is_stamped.then_some(Point::ExchangeDone);
    for number in [1, 2] {
        for point in by_exchange.into_iter().chain(path) {
            let (thread, place) = fixture.find(point, id);
            let first = fixture.logs[thread][place];
            let detail = if point == Point::GatewayDone && number == 1 { number | MORE } else { number };
            let later = Record { detail, value: first.value + 20 * u64::from(number), ..first };
            fixture.logs[thread].push(later);
        }
    }
    let (thread, place) = fixture.find(Point::GatewayDone, id);
    fixture.logs[thread][place].detail = MORE;
    for log in &mut fixture.logs {
        crate::runs::fixture::sort_by_event(log);
    }
}

#[test]
fn an_order_has_as_many_reports_as_its_venue_gives() {
    let whole = run(&Fixture::new(Shape::default()));
    let mut fixture = Fixture::new(Shape::default());
    with_reports(&mut fixture, ID);
    with_reports(&mut fixture, OrderId::new(0, 0, 3));
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert_eq!((merged.orders.returned, merged.orders.duplicated, merged.orders.further_reports), (40, 0, 4));
    // The order's own path runs to its first report.
    let stamps = |merged: &Merged| merged.measured().map(|(_, row)| row.stamps()).collect::<Vec<_>>();
    assert_eq!(stamps(&merged), stamps(&whole));
    let (id, number, report) = merged.further_reports().nth(3).unwrap();
    assert_eq!((id, number), (ID, 2));
    assert!(report.at(Point::StrategyRecv) > report.at(Point::GatewayDone));

    let spoiled = |spoil: &dyn Fn(&mut Vec<Record>)| {
        let mut fixture = Fixture::new(Shape::default());
        with_reports(&mut fixture, ID);
        fixture.logs.iter_mut().for_each(spoil);
        let merged = run(&fixture);
        let first = merged.violations.first().map(|violation| (violation.kind, violation.first.clone()));
        first.unwrap_or_else(|| panic!("a violation expected"))
    };
    let is = |record: &Record, point, detail| (record.id, record.point, record.detail) == (ID, point, detail);
    let (kind, first) = spoiled(&|log| log.retain(|record| !is(record, Point::OrchReturn, 2)));
    assert_eq!((kind, first), (ViolationKind::MissingPoint, format!("{NAME}report 2 has no t7")));
    let (kind, first) = spoiled(&|log| {
        let twin = log.iter().find(|record| is(record, Point::OrchRecvCompletion, 1)).copied();
        log.extend(twin);
    });
    assert_eq!((kind, first), (ViolationKind::Duplicate, format!("{NAME}t6 of report 1 twice")));
    let (kind, first) = spoiled(&|log| {
        let is_report = |point| protocol::flow::REPORT_PATH.contains(&point);
        log.retain(|record| record.id != ID || record.detail & !MORE != 1 || !is_report(record.point));
    });
    assert_eq!(
        (kind, first),
        (ViolationKind::MissingPoint, format!("{NAME}report 2 has no report before it"))
    );
    let (kind, _) = spoiled(&|log| {
        let at = |number| log.iter().position(|record| is(record, Point::OrchRecvCompletion, number));
        if let (Some(a), Some(b)) = (at(1), at(2)) {
            log.swap(a, b);
        }
    });
    assert_eq!(kind, ViolationKind::CompletionOrder);
    // Which report is the last stands at t5.
    for (from, to, what) in [
        (MORE, 0, "report 1 follows the last one"),
        (1 | MORE, 1, "report 2 follows the last one"),
        (2, 2 | MORE, "report 2 is not the last, and none follows"),
    ] {
        let (kind, first) = spoiled(&|log| {
            for record in log.iter_mut().filter(|record| is(record, Point::GatewayDone, from)) {
                record.detail = to;
            }
        });
        assert_eq!((kind, first), (ViolationKind::LastReport, format!("{NAME}{what}")));
    }
    let (kind, first, _) = self::spoiled(|fixture| {
        let (thread, place) = fixture.find(Point::GatewayDone, ID);
        fixture.logs[thread][place].detail = MORE;
    });
    assert_eq!((kind, first), (ViolationKind::LastReport, format!("{NAME}its one report is not the last")));
}

#[test]
fn closed_pacing_has_no_due_times() {
    let merged = run(&Fixture::new(Shape { pacing: Pacing::Closed, ..Shape::default() }));
    assert_eq!(merged.violations, []);
    assert_eq!(merged.measured().count(), 40);
}

#[test]
fn a_duplicate_is_named() {
    let (kind, first, merged) = spoiled(|fixture| {
        let (thread, place) = fixture.find(Point::GatewayRecv, ID);
        let twin = fixture.logs[thread][place];
        fixture.logs[thread].push(twin);
    });
    assert_eq!((kind, first), (ViolationKind::Duplicate, format!("{NAME}t4 twice")));
    assert_eq!(merged.orders.duplicated, 1);
}

#[test]
fn a_gap_is_named() {
    let (kind, first, merged) = spoiled(|fixture| {
        for log in &mut fixture.logs {
            log.retain(|record| record.id != ID);
        }
        fixture.counter("strategy-1", "sent", 19);
    });
    assert_eq!((kind, first), (ViolationKind::Gap, format!("{NAME}never sent, though later ones were")));
    assert_eq!((merged.orders.sent, merged.orders.returned), (39, 39));
}

#[test]
fn orders_outside_the_plan_are_named() {
    for (id, words) in [
        (OrderId::new(9, 0, 1), "strategy 9 order 1: the plan has no such strategy"),
        (OrderId::new(1, 0, 4000), "strategy 1 order 4000: t2, but the plan has 20 orders for it"),
        (OrderId::new(1, 0, u64::MAX), "strategy 1 order 4294967295: t2, but the plan has 20 orders for it"),
    ] {
        let (kind, first, _) = spoiled(|fixture| {
            let orchestrator = fixture.thread("orchestrator");
            fixture.logs[orchestrator].push(Record { point: Point::OrchRecvSubmit, id, detail: 0, value: 1 });
        });
        assert_eq!((kind, first.as_str()), (ViolationKind::NotInPlan, words));
    }
}

#[test]
fn an_order_that_nobody_sent_is_named() {
    let mut fixture = Fixture::new(Shape::default());
    fixture.remove(Point::StrategySend, ID);
    fixture.counter("strategy-1", "sent", 19);
    let merged = run(&fixture);
    let [violation] = merged.violations.as_slice() else { panic!("{:?}", merged.violations) };
    assert_eq!(violation.kind, ViolationKind::NeverSent);
    assert!(violation.first.starts_with(NAME) && violation.first.contains("t2 t3"), "{}", violation.first);
}

#[test]
fn a_stamp_in_a_foreign_log_is_named() {
    let (kind, first, _) = spoiled(|fixture| {
        let forged = Record { point: Point::StrategyRecv, id: ID, detail: 0, value: START };
        let gateway = fixture.thread("gateway-0");
        fixture.logs[gateway].push(forged);
    });
    assert_eq!((kind, first), (ViolationKind::Misplaced, format!("{NAME}t8 stands in gateway-0.stamps")));
}

#[test]
fn every_hand_off_is_first_in_first_out() {
    let (kind, first, _) = spoiled(|fixture| fixture.swap(Point::OrchRecvSubmit, ID, NEXT));
    assert_eq!(kind, ViolationKind::SubmitOrder);
    assert!(first.starts_with(NAME), "{first}");

    // Both went to gateway 1; which of the two comes first depends on their delays.
    let (kind, _, _) = spoiled(|fixture| fixture.swap(Point::OrchRecvCompletion, ID, NEXT));
    assert_eq!(kind, ViolationKind::CompletionOrder);
    let (kind, _, _) = spoiled(|fixture| fixture.swap(Point::OrchReturn, ID, NEXT));
    assert_eq!(kind, ViolationKind::ReturnOrder);
    let (kind, _, _) = spoiled(|fixture| fixture.swap(Point::OrchDispatch, ID, NEXT));
    assert_eq!(kind, ViolationKind::DispatchOrder);
}

#[test]
fn time_never_goes_back() {
    for (point, words) in [
        (Point::OrchRecvSubmit, "t2 before t1"),
        (Point::OrchDispatch, "t3 before t2"),
        (Point::GatewayDone, "t5 before t4"),
        (Point::OrchRecvCompletion, "t6 before t5"),
        (Point::StrategyRecv, "t8 before t7"),
        (Point::Release, "release before t4"),
    ] {
        let mut fixture = Fixture::new(Shape::default());
        // A strategy's log in which time goes back proves nothing: there the stamp stays behind the one in front of it.
        let earlier = |ticks| if point == Point::StrategyRecv { ticks - STAGES[7] - 1 } else { 1 };
        fixture.set(point, ID, earlier);
        let merged = run(&fixture);
        let violation =
            merged.violations.iter().find(|violation| violation.kind == ViolationKind::TimeOrder).unwrap();
        assert_eq!(violation.first, format!("{NAME}{words}"));
        assert_eq!(merged.measured().count(), 39, "an impossible order is in no figure");
    }
    let (kind, first, _) = spoiled(|fixture| fixture.set(Point::Due, ID, |due| due + 101));
    assert_eq!((kind, first), (ViolationKind::TimeOrder, format!("{NAME}t1 before due")));
    let (kind, first, _) = spoiled(|fixture| fixture.set(Point::Release, ID, |release| release + 51));
    assert_eq!((kind, first), (ViolationKind::TimeOrder, format!("{NAME}t5 before release")));
}

#[test]
fn a_missing_stamp_is_named() {
    for point in Point::ALL {
        if matches!(
            point,
            Point::StrategySend
                | Point::StrategyRecv
                | Point::Rejected
                | Point::Cancelled
                | Point::Checksum
                | Point::Gap
                | Point::Instrument
                | Point::FillQuantity
                | Point::FillPrice
                | Point::Position
                | Point::KillSeen
                | Point::KillDone
                | Point::ExchangeRecv
                | Point::ExchangeDone
                | Point::Trigger
                | Point::Touch
                | Point::Slept
        ) {
            continue;
        }
        let (kind, first, _) = spoiled(|fixture| {
            fixture.remove(point, ID);
        });
        assert_eq!((kind, first), (ViolationKind::MissingPoint, format!("{NAME}has no {}", point.name())));
    }
}

#[test]
fn a_rejected_order_must_not_reach_a_gateway() {
    let (kind, first, merged) = spoiled(|fixture| {
        let (thread, place) = fixture.find(Point::OrchRecvSubmit, ID);
        fixture.logs[thread]
            .insert(place + 1, Record { point: Point::Rejected, id: ID, detail: 0, value: 1 });
    });
    assert_eq!(kind, ViolationKind::RejectedDispatched);
    assert!(first.starts_with(NAME) && first.contains("t3 t4"), "{first}");
    assert_eq!((merged.orders.returned, merged.orders.rejected), (39, 1));
}

#[test]
fn a_lost_order_is_a_violation_unless_the_run_broke_off() {
    let lose = |fixture: &mut Fixture| {
        for point in [Point::OrchRecvCompletion, Point::OrchReturn, Point::StrategyRecv] {
            fixture.remove(point, ID);
        }
    };
    let (kind, first, merged) = spoiled(lose);
    assert_eq!(kind, ViolationKind::Lost);
    assert_eq!(first, format!("{NAME}sent and never returned; it has t1 t2 t3 t4 t5 due release"));
    assert_eq!((merged.orders.sent, merged.orders.returned, merged.orders.lost), (40, 39, 1));

    let mut fixture = Fixture::new(Shape::default());
    lose(&mut fixture);
    fixture.record.outcome = Outcome::Interrupted;
    let merged = run(&fixture);
    assert_eq!((merged.violations.len(), merged.orders.lost), (0, 1));
}

#[test]
fn dropped_records_and_wrong_counters_are_named() {
    let (kind, first, _) = spoiled(|fixture| fixture.status("gateway-1", Field::RecordsDropped, 1));
    assert_eq!(kind, ViolationKind::RecordsDropped);
    assert!(first.starts_with("gateway-1: 1 records did not fit the log"), "{first}");
    let (kind, first, _) = spoiled(|fixture| fixture.counter("strategy-0", "sent", 21));
    assert_eq!(kind, ViolationKind::Counters);
    assert!(first.contains("counted 21 orders sent, its log has 20"), "{first}");
}

#[test]
fn what_arrived_must_be_what_was_pushed() {
    for (thread, place, words) in [
        ("strategy-0", 0, "submit of strategy-0: what was taken is not what was pushed"),
        ("strategy-1", 1, "return of strategy-1: what was taken"),
        ("gateway-1", 0, "inbox of gateway-1: what was taken"),
        ("gateway-0", 1, "completion of the gateways: what was taken"),
        ("orchestrator", 2, "submit of strategy-1: what was taken"),
    ] {
        let (kind, first, _) = spoiled(|fixture| {
            let thread = fixture.thread(thread);
            fixture.sums[thread][place].1 ^= 1 << 40;
        });
        assert_eq!(kind, ViolationKind::Checksum);
        assert!(first.starts_with(words), "{first}");
    }
    let (kind, first, _) = spoiled(|fixture| {
        let thread = fixture.thread("gateway-1");
        fixture.sums[thread].remove(0);
    });
    assert_eq!(kind, ViolationKind::Checksum);
    assert!(first.contains("inbox of gateway-1: a log ends without its checksum"), "{first}");
    // Nobody knows what was on its way when a run was interrupted.
    let mut fixture = Fixture::new(Shape::default());
    fixture.sums[0][0].1 = 7;
    fixture.record.outcome = Outcome::Interrupted;
    assert_eq!(run(&fixture).violations, []);
}

#[test]
fn peer_faults_need_an_explanation() {
    let (kind, first, _) = spoiled(|fixture| fixture.counter("orchestrator", "protocol-errors", 200));
    assert_eq!(kind, ViolationKind::PeerFaults);
    assert!(first.starts_with("orchestrator: was handed 200 messages"), "{first}");
    let (kind, ..) = spoiled(|fixture| fixture.counter("gateway-0", "protocol-errors", 1));
    assert_eq!(kind, ViolationKind::PeerFaults);
    // A run that failed has told why.
    let mut fixture = Fixture::new(Shape::default());
    fixture.counter("orchestrator", "protocol-errors", 1);
    fixture.fail("strategy-1");
    assert_eq!(run(&fixture).violations, []);
}

#[test]
fn a_killed_strategy_loses_orders_and_nothing_else() {
    let mut fixture = Fixture::new(Shape::default());
    let killed_at = START + 150_000;
    fixture.logs[1].retain(|record| record.value < killed_at);
    // What it had not sent, the engine never saw; one order was pushed before its stamp was stored.
    let sent = |id: OrderId, log: &[Record]| log.iter().any(|r| r.id == id && r.point == Point::StrategySend);
    let own = fixture.logs[1].clone();
    for log in &mut fixture.logs[2..] {
        log.retain(|record| record.id.strategy() == 0 || sent(record.id, &own));
    }
    fixture.remove(Point::StrategySend, OrderId::new(1, 0, 6));
    fixture.fail("strategy-1");
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    let orders = merged.orders;
    let ended = orders.returned + orders.rejected + orders.cancelled + orders.orphaned;
    assert_eq!(orders.sent, ended + orders.lost);
    assert!(orders.lost > 0 && orders.returned >= 20, "{orders:?}");
}

#[test]
fn a_record_that_promises_the_moon_costs_nothing() {
    let mut fixture = Fixture::new(Shape::default());
    fixture.record.plan.trading_mut().orders = vec![u64::MAX; 2];
    let (thread, _) = fixture.find(Point::OrchDispatch, ID);
    let far = OrderId::new(1, 0, 1 << 31);
    fixture.logs[thread].push(Record { point: Point::OrchRecvSubmit, id: far, detail: 0, value: 1 });
    let merged = run(&fixture);
    assert_eq!(merged.orders.scheduled, u64::MAX);
    assert_eq!(merged.orders.returned, 40);
    assert_eq!(merged.violations[0].kind, ViolationKind::NeverSent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_honest_run_merges_to_exact_counts(
        strategies in 1u16..6, venues in 1u16..5, orders in 1u64..60, reject_every in 0u64..7,
        shared: bool, closed: bool, period in 1u64..20_000, delay in 0u64..200_000,
    ) {
        // An order is at an exchange for no shorter than the ways there and back are.
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
        prop_assert_eq!(merged.orders, Orders {
            scheduled: all, sent: all, returned: all - rejected, rejected, ..Orders::default()
        });
        prop_assert_eq!(merged.measured().count() as u64, all - rejected);
    }
}

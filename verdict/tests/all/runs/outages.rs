//! Gateways that die during a run: what the merge accepts for their orders, and what it rejects.

use crate::common::{Defect, all_accounted, check_each, kinds, only, run, stamp};
use crate::fixture::{Fixture, Shape};
use merge::{Violation, ViolationKind as Kind};
use protocol::index::GatewayIndex;
use protocol::plan::{OnDeath, Placement, ProcessPlan, ThreadPlan};
use protocol::reject::Reject;
use protocol::stamps::{Point, Record};
use protocol::wire::{ENGINE_REPORT, OrderId};
use record::run::{Outage, ProcessExit, StayedDown};

const SHAPE: Shape = Shape { strategies: 3, orders: 40, period: 3_000, ..Shape::PLAIN };

fn outage(gateway: u16) -> Outage {
    Outage {
        process: format!("gateway-{gateway}"),
        gateways: vec![GatewayIndex(gateway)],
        pid: 77,
        cause: "signal 9 (SIGKILL)".into(),
        detected_ns: 1,
        fenced_ns: 2,
        repaired_ns: Some(3),
        unknown: 1,
        ..Outage::default()
    }
}

/// Gateways in their own processes, with exchanges: their successors resume the sessions.
fn let_sessions_resume(fixture: &mut Fixture) {
    let plan = &mut fixture.record.plan;
    (plan.on_death, plan.placement) = (OnDeath::Restart, Placement::EachGateway);
    let process = |(index, thread): (usize, &ThreadPlan)| ProcessPlan {
        name: thread.name.clone(),
        threads: vec![index as u32],
    };
    plan.processes = plan.threads.iter().enumerate().map(process).collect();
    let exit = |process: &ProcessPlan| ProcessExit {
        process: process.name.clone(),
        pid: 4000 + process.threads[0],
        how: "exit 0".into(),
        usage: None,
    };
    fixture.record.exits = plan.processes.iter().map(exit).collect();
    assert!(plan.can_resume_gateway(GatewayIndex(1)));
}

fn resumed() -> Outage {
    Outage { restarted_ns: Some(4), unknown: 0, ..outage(1) }
}

/// Returns the last order of strategy 0 that gateway 1 had.
fn victim(fixture: &Fixture) -> OrderId {
    let is_there = |record: &&Record| {
        record.point == Point::GatewayRecv && record.detail == 1 && record.id.strategy().0 == 0
    };
    fixture.logs.iter().flatten().rfind(is_there).unwrap().id
}

/// Returns a run in which gateway 1 died with one open order, which the engine then closed.
/// `is_stamped`: the gateway had stamped its report.
fn run_with_dead_gateway(is_stamped: bool) -> Fixture {
    let mut fixture = Fixture::new(SHAPE);
    let id = victim(&fixture);
    close(&mut fixture, id);
    if !is_stamped {
        fixture.remove(Point::GatewayDone, id);
        fixture.remove(Point::Release, id);
    }
    fixture.record.outages = vec![outage(1)];
    fixture
}

/// Changes a returned order to one that the engine closed because its gateway died with its stamped
/// report.
fn close(fixture: &mut Fixture, id: OrderId) {
    fixture.remove(Point::OrchRecvCompletion, id);
    for point in [Point::OrchReturn, Point::StrategyRecv] {
        fixture.stamp(point, id).detail = ENGINE_REPORT;
    }
    let closed = stamp(Point::Rejected, id, Reject::VenueUnknown as u64);
    fixture.insert_at(Point::OrchReturn, id, 0, closed);
}

#[test]
fn order_of_dead_gateway_is_closed_once() {
    for is_stamped in [false, true] {
        let fixture = run_with_dead_gateway(is_stamped);
        let merged = run(&fixture);
        assert_eq!(merged.violations, [], "{is_stamped}");
        all_accounted(&merged.orders);
        let orders = merged.orders;
        assert_eq!((orders.sent, orders.returned, orders.rejected), (120, 119, 1));
        assert_eq!((orders.further_reports, orders.lost), (0, 0));
        assert_eq!(merged.rejections, [(Reject::VenueUnknown.code(), 1)]);
        let id = victim(&fixture);
        assert!(merged.measured().all(|(measured, _)| measured != id), "it is in no figure");
    }
}

#[test]
fn fill_lost_with_gateway_is_excluded_from_position() {
    // Later orders of the gateway were processed, as from its next incarnation; without a death the
    // fill is missed.
    for (outages, is_excluded) in
        [(vec![Outage { restarted_ns: Some(4), ..outage(1) }], true), (vec![], false)]
    {
        let mut fixture = Fixture::new(Shape { fills: true, ..SHAPE });
        let has_fill = |record: &&Record| record.point == Point::FillQuantity && record.id.strategy().0 == 0;
        let fills: Vec<Record> = fixture.logs.iter().flatten().filter(has_fill).copied().collect();
        let fill = fills.iter().find(|fill| fixture.stamp(Point::GatewayRecv, fill.id).detail == 1).unwrap();
        assert!(fill.value != 0);
        close(&mut fixture, fill.id);
        fixture.record.outages = outages;
        // The synthetic engine's positions include all fills.
        let found = kinds(&run(&fixture));
        assert_eq!(found.contains(&Kind::Position), is_excluded, "{found:?}");
    }
}

#[test]
fn resumed_session_loses_no_order() {
    for (is_given_up, expected) in [(false, 1), (true, 0)] {
        let mut fixture = Fixture::new(Shape { book: true, ..SHAPE });
        let_sessions_resume(&mut fixture);
        fixture.record.outages = vec![resumed()];
        assert_eq!(run(&fixture).violations, [], "an honest run");
        let id = victim(&fixture);
        close(&mut fixture, id);
        if is_given_up {
            let why = "none of them made progress".into();
            let stayed_down = Some(StayedDown { restarts: 8, why });
            fixture.record.outages.push(Outage { stayed_down, ..outage(1) });
        }
        let violations = run(&fixture).violations;
        assert_eq!(violations.len(), expected, "{violations:?}");
        let is_found = |found: &Violation| found.first.contains("or its session was resumed");
        assert!(violations.iter().all(is_found), "{violations:?}");
    }
}

#[test]
fn resumed_session_loses_no_fill() {
    for is_resumable in [true, false] {
        let mut fixture = Fixture::new(Shape { fills: true, book: true, ..SHAPE });
        if is_resumable {
            let_sessions_resume(&mut fixture);
        }
        fixture.record.outages = vec![resumed()];
        fixture.lose(victim(&fixture));
        let kinds = kinds(&run(&fixture));
        assert!(kinds.contains(&Kind::Lost), "{kinds:?}");
        // The synthetic engine's positions include all fills.
        assert_eq!(kinds.contains(&Kind::Position), !is_resumable, "{kinds:?}");
    }
}

#[test]
fn closed_order_needs_dead_gateway_dispatch_and_return() {
    let lived = "yet by the record its gateway lived";
    check_each(
        || run_with_dead_gateway(false),
        &[
            (Kind::RejectedDispatched, lived, |f| f.record.outages.clear()),
            (Kind::RejectedDispatched, lived, |f| f.record.outages = vec![outage(0)]),
            (Kind::RejectedDispatched, "yet it was not dispatched", |f| {
                f.remove(Point::OrchDispatch, victim(f))
            }),
            (Kind::MissingPoint, "has no t7", |f| f.remove(Point::OrchReturn, victim(f))),
        ],
    );
    // Nothing shows that the engine closed it, or its strategy never receives the report.
    let cases: [Defect; 2] =
        [|f| f.remove(Point::Rejected, victim(f)), |f| f.remove(Point::StrategyRecv, victim(f))];
    for introduce in cases {
        let mut fixture = run_with_dead_gateway(false);
        introduce(&mut fixture);
        let merged = run(&fixture);
        all_accounted(&merged.orders);
        assert!(merged.orders.lost == 1 && kinds(&merged).contains(&Kind::Lost), "{:?}", merged.violations);
    }
}

#[test]
fn closed_order_has_no_last_report() {
    let mut fixture = run_with_dead_gateway(true);
    let id = victim(&fixture);
    let returned = fixture.stamp(Point::OrchReturn, id).value;
    fixture.insert_at(Point::Rejected, id, 0, stamp(Point::OrchRecvCompletion, id, returned));
    let (_, first) = only(&run(&fixture));
    assert!(first.contains("yet the engine had its last report"), "{first}");
}

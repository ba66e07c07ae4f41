//! Gateways that die while the run goes on: what the merge accepts of their orders, and that it accepts nothing else.

use super::deaths::all_accounted;
use super::fixture::{Fixture, Shape};
use super::merging::run;
use analysis::merge::{Violation, ViolationKind};
use analysis::record::{Exit, Outage, StayedDown};
use protocol::plan::{OnDeath, Placement, ProcessPlan, ThreadPlan, Threading};
use protocol::reject::Reject;
use protocol::stamps::{Point, Record};
use protocol::wire::{ENGINE_REPORT, OrderId};

const SHAPE: Shape = Shape {
    strategies: 3,
    venues: 2,
    orders: 40,
    threading: Threading::Dedicated,
    pacing: protocol::plan::Pacing::Scheduled,
    reject_every: 0,
    period: 3_000,
    fills: false,
    book: false,
    market: false,
    delay: 50_000,
};

fn outage(gateway: u16) -> Outage {
    Outage {
        process: format!("gateway-{gateway}"),
        gateways: vec![gateway],
        pid: 77,
        cause: "signal 9 (SIGKILL)".into(),
        fault_ns: None,
        detected_ns: 1,
        fenced_ns: 2,
        repaired_ns: Some(3),
        unknown: 1,
        restarted_ns: None,
        served_ns: None,
        stayed_down: None,
    }
}

/// Gateways in processes of their own, before exchanges: their successors resume the sessions.
fn let_sessions_resume(fixture: &mut Fixture) {
    let plan = &mut fixture.record.plan;
    (plan.on_death, plan.placement) = (OnDeath::Restart, Placement::EachGateway);
    let process = |(index, thread): (usize, &ThreadPlan)| ProcessPlan {
        name: thread.name.clone(),
        threads: vec![index as u32],
    };
    plan.processes = plan.threads.iter().enumerate().map(process).collect();
    let exit = |process: &ProcessPlan| Exit {
        process: process.name.clone(),
        pid: 4000 + process.threads[0],
        how: "exit 0".into(),
        usage: None,
    };
    fixture.record.exits = plan.processes.iter().map(exit).collect();
    assert!(plan.resumes_gateway(1));
}

fn resumed() -> Outage {
    Outage { restarted_ns: Some(4), unknown: 0, ..outage(1) }
}

/// The last order of strategy 0 that gateway 1 had.
fn victim(fixture: &Fixture) -> OrderId {
    let is_there = |record: &&Record| {
        record.point == Point::GatewayRecv && record.detail == 1 && record.id.strategy() == 0
    };
    fixture.logs.iter().flatten().rfind(is_there).unwrap().id
}

/// A run in which gateway 1 died with one order open, which the engine then closed. `is_stamped`: the gateway had stamped its report.
fn died(is_stamped: bool) -> (Fixture, OrderId) {
    let mut fixture = Fixture::new(SHAPE);
    let id = victim(&fixture);
    close(&mut fixture, id);
    if !is_stamped {
        fixture.remove(Point::GatewayDone, id);
        fixture.remove(Point::Release, id);
    }
    fixture.record.outages = vec![outage(1)];
    (fixture, id)
}

/// Makes an order that came back one that the engine closed, because its gateway died with its stamped report.
fn close(fixture: &mut Fixture, id: OrderId) {
    fixture.remove(Point::OrchRecvCompletion, id);
    for point in [Point::OrchReturn, Point::StrategyRecv] {
        let (thread, place) = fixture.find(point, id);
        fixture.logs[thread][place].detail = ENGINE_REPORT;
    }
    let (thread, place) = fixture.find(Point::OrchReturn, id);
    let value = Reject::VenueUnknown as u64;
    fixture.logs[thread].insert(place, Record { point: Point::Rejected, id, detail: 0, value });
}

/// Spoils such a run, and expects exactly one violation.
fn spoiled(spoil: impl FnOnce(&mut Fixture, OrderId)) -> (ViolationKind, String) {
    let (mut fixture, id) = died(false);
    spoil(&mut fixture, id);
    let merged = run(&fixture);
    all_accounted(&merged.orders);
    let [violation] = merged.violations.as_slice() else {
        panic!("one violation expected, got {:?}", merged.violations)
    };
    (violation.kind, violation.first.clone())
}

#[test]
fn order_of_dead_gateway_is_closed_once() {
    for is_stamped in [false, true] {
        let (fixture, id) = died(is_stamped);
        let merged = run(&fixture);
        assert_eq!(merged.violations, [], "{is_stamped}");
        all_accounted(&merged.orders);
        let orders = merged.orders;
        assert_eq!((orders.sent, orders.returned, orders.rejected), (120, 119, 1));
        assert_eq!((orders.further_reports, orders.lost), (0, 0));
        assert_eq!(merged.rejections, [(Reject::VenueUnknown.code(), 1)]);
        assert!(merged.measured().all(|(measured, _)| measured != id), "it is in no figure");
    }
}

#[test]
fn fill_that_died_with_its_gateway_is_in_no_position() {
    // Others of the gateway were taken after it, as from a next incarnation; and without a death the fill is missed.
    for (outages, wanted) in [(vec![Outage { restarted_ns: Some(4), ..outage(1) }], 0), (vec![], 2)] {
        let mut fixture = Fixture::new(Shape { fills: true, ..SHAPE });
        let has_fill = |record: &&Record| record.point == Point::FillQuantity && record.id.strategy() == 0;
        let is_at = |id: OrderId| {
            let (thread, place) = fixture.find(Point::GatewayRecv, id);
            fixture.logs[thread][place].detail == 1
        };
        let id =
            fixture.logs.iter().flatten().filter(has_fill).map(|fill| fill.id).find(|id| is_at(*id)).unwrap();
        let (thread, place) = fixture.find(Point::FillQuantity, id);
        let quantity = fixture.logs[thread][place].value;
        close(&mut fixture, id);
        fixture.record.outages = outages;
        let merged = run(&fixture);
        // The made-up engine states what all fills make: without this one its figures differ.
        let positions =
            merged.violations.iter().filter(|found| found.kind == ViolationKind::Position).count();
        assert!(quantity != 0);
        assert_eq!(positions == 0, wanted == 2, "{:?}", merged.violations);
    }
}

#[test]
fn resumed_session_loses_no_order() {
    for (is_given_up, wanted) in [(false, 1), (true, 0)] {
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
        assert_eq!(violations.len(), wanted, "{violations:?}");
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
        let id = victim(&fixture);
        for point in [Point::OrchRecvCompletion, Point::OrchReturn, Point::StrategyRecv] {
            fixture.remove(point, id);
        }
        let kinds: Vec<ViolationKind> = run(&fixture).violations.iter().map(|found| found.kind).collect();
        assert!(kinds.contains(&ViolationKind::Lost), "{kinds:?}");
        // The made-up engine states what all fills make: it agrees where this one counts.
        assert_eq!(kinds.contains(&ViolationKind::Position), !is_resumable, "{kinds:?}");
    }
}

#[test]
fn closed_order_needs_a_dead_gateway() {
    for outages in [vec![], vec![outage(0)]] {
        let (kind, first) = spoiled(|fixture, _| fixture.record.outages = outages);
        assert_eq!(kind, ViolationKind::RejectedDispatched);
        assert!(first.contains("yet by the record its gateway lived"), "{first}");
    }
}

#[test]
fn closed_order_has_no_last_report() {
    let (mut fixture, id) = died(true);
    let (thread, place) = fixture.find(Point::Rejected, id);
    let Record { value, .. } = fixture.logs[thread][place + 1];
    let taken = Record { point: Point::OrchRecvCompletion, id, detail: 0, value };
    fixture.logs[thread].insert(place, taken);
    let violations = run(&fixture).violations;
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert!(violations[0].first.contains("yet the engine had its last report"), "{violations:?}");
}

#[test]
fn closed_order_was_dispatched_and_is_returned() {
    let (kind, first) = spoiled(|fixture, id| _ = fixture.remove(Point::OrchDispatch, id));
    assert_eq!(kind, ViolationKind::RejectedDispatched);
    assert!(first.contains("yet it was not dispatched"), "{first}");
    let (kind, first) = spoiled(|fixture, id| _ = fixture.remove(Point::OrchReturn, id));
    assert_eq!(kind, ViolationKind::MissingPoint);
    assert!(first.contains("has no t7"), "{first}");
    let (mut fixture, id) = died(false);
    fixture.remove(Point::Rejected, id);
    let kinds: Vec<ViolationKind> = run(&fixture).violations.iter().map(|found| found.kind).collect();
    assert!(kinds.contains(&ViolationKind::Lost), "nothing says that the engine closed it: {kinds:?}");
}

#[test]
fn closed_order_is_lost_if_its_strategy_never_hears() {
    let (mut fixture, id) = died(false);
    fixture.remove(Point::StrategyRecv, id);
    let merged = run(&fixture);
    all_accounted(&merged.orders);
    assert_eq!(merged.orders.lost, 1);
    assert!(
        merged.violations.iter().any(|found| found.kind == ViolationKind::Lost),
        "{:?}",
        merged.violations
    );
}

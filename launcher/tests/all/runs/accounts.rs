//! Positions from the logged fills against the orchestrator's, and orders behind kill switches: honest runs are counted exactly,
//! every lie is found.

use super::fixture::{Fixture, Shape, fill_of};
use super::merging::{run, with_reports};
use analysis::merge::{Account, ViolationKind};
use protocol::kill::{Cause, Scope, Switch};
use protocol::plan::Threading;
use protocol::stamps::{Point, PositionField, Record};
use protocol::wire::OrderId;

const FILLS: Shape = Shape {
    strategies: 2,
    venues: 2,
    orders: 20,
    threading: Threading::Dedicated,
    pacing: protocol::plan::Pacing::Scheduled,
    reject_every: 0,
    fills: true,
    book: false,
    market: false,
    period: 10_000,
    delay: 50_000,
};
const ID: OrderId = OrderId::new(1, 0, 7);

#[test]
fn positions_are_those_of_the_fills() {
    for threading in [Threading::Dedicated, Threading::Shared] {
        let merged = run(&Fixture::new(Shape { threading, ..FILLS }));
        assert_eq!(merged.violations, []);
        let mut wanted = Account::default();
        // Strategy 1 has every other number.
        (0..20)
            .map(|sequence| fill_of(2 * sequence + 1))
            .filter(|(instrument, ..)| *instrument == 1)
            .for_each(|(_, quantity, price)| wanted.fill(quantity, price));
        let found =
            merged.positions.iter().find(|position| (position.strategy, position.instrument) == (1, 1));
        let found = found.unwrap().account;
        // What is realised depends on the order in which the orchestrator took the reports.
        assert_eq!((found.net, found.cost, found.fills), (wanted.net, wanted.cost, wanted.fills));
        assert_ne!(found.realised, wanted.realised);
        assert_eq!(merged.positions.iter().map(|position| position.account.fills).sum::<u64>(), 40);
        assert!(merged.positions.iter().all(|position| position.last_price.is_some()));
    }
}

/// Spoils an honest run with fills; the kinds of violations that are found, and the first example of all.
fn spoiled(spoil: impl FnOnce(&mut Fixture)) -> (Vec<ViolationKind>, String) {
    let mut fixture = Fixture::new(FILLS);
    spoil(&mut fixture);
    let merged = run(&fixture);
    let kinds = merged.violations.iter().map(|violation| violation.kind).collect();
    (kinds, merged.violations.first().map(|violation| violation.first.clone()).unwrap_or_default())
}

#[test]
fn a_log_that_lies_about_a_fill_is_found() {
    use ViolationKind::{Fill, Position};
    let (kinds, what) = spoiled(|run| run.set(Point::FillQuantity, ID, |quantity| quantity + 1));
    assert_eq!(kinds, [Position]);
    assert!(
        what.starts_with("strategy 1 instrument ") && what.contains("by the gateways' reports"),
        "{what}"
    );
    let negated = |quantity: u64| quantity.wrapping_neg();
    assert_eq!(spoiled(|run| run.set(Point::FillQuantity, ID, negated)).0, [Position]);
    assert_eq!(spoiled(|run| run.set(Point::FillPrice, ID, |price| price + 1)).0, [Position]);
    // Left out as a whole, or half of it.
    let without =
        |points: &[Point]| spoiled(|run| points.iter().for_each(|point| _ = run.remove(*point, ID)));
    assert_eq!(without(&[Point::FillQuantity, Point::FillPrice]).0, [Position]);
    let (kinds, what) = without(&[Point::FillPrice]);
    assert_eq!(kinds, [Fill, Position]);
    assert_eq!(what, "strategy 1 order 7: the fill of report 0 has no price");
    let (kinds, what) = without(&[Point::FillQuantity]);
    assert_eq!(kinds, [Fill, Position]);
    assert_eq!(what, "strategy 1 order 7: a price of report 0, which has no fill");
    // Doubled.
    let (kinds, what) = spoiled(|run| {
        let (thread, place) = run.find(Point::FillQuantity, ID);
        let pair = [run.logs[thread][place], run.logs[thread][place + 1]];
        run.logs[thread].splice(place..place, pair);
    });
    assert_eq!((kinds, what.as_str()), (vec![Fill], "strategy 1 order 7: report 0 is filled twice"));
    // Of a report that there is not, of another order, and of nothing.
    let (kinds, what) = spoiled(|run| {
        let (thread, place) = run.find(Point::FillQuantity, ID);
        (0..2).for_each(|next| run.logs[thread][place + next].detail = 3);
    });
    assert_eq!(kinds, [Fill, Position]);
    assert_eq!(what, "strategy 1 order 7: a fill of report 3, which has no t5 before it");
    let (kinds, _) = spoiled(|run| {
        let (thread, place) = run.find(Point::FillQuantity, ID);
        (0..2).for_each(|next| run.logs[thread][place + next].id = OrderId::new(1, 0, 9));
    });
    assert_eq!(kinds, [Fill, Position]);
    assert_eq!(spoiled(|run| run.set(Point::FillQuantity, ID, |_| 0)).0, [Fill, Position]);
}

#[test]
fn the_instrument_of_a_fill_counts() {
    let id = (0..20)
        .find(|sequence| fill_of(2 * sequence + 1).0 == 1)
        .map(|sequence| OrderId::new(1, 0, sequence));
    let (kinds, what) = spoiled(|run| _ = run.remove(Point::Instrument, id.unwrap()));
    assert_eq!(kinds, [ViolationKind::Position], "{what}");
    let (kinds, _) = spoiled(|run| run.set(Point::Instrument, id.unwrap(), |_| 5_000));
    assert_eq!(kinds, [ViolationKind::Fill, ViolationKind::Position]);
}

#[test]
fn an_orchestrator_that_forgets_a_fill_is_found() {
    for field in [
        PositionField::Net,
        PositionField::CostLow,
        PositionField::CostHigh,
        PositionField::RealisedLow,
        PositionField::RealisedHigh,
        PositionField::Fills,
        PositionField::OpenBuy,
        PositionField::OpenSell,
    ] {
        let stated = |record: &Record| record.point == Point::Position && record.detail == field as u8;
        let (kinds, what) = spoiled(|run| {
            let thread = run.thread("orchestrator");
            let record = run.logs[thread].iter_mut().find(|record| stated(record)).unwrap();
            record.value = record.value.wrapping_sub(1);
        });
        assert_eq!(kinds, [ViolationKind::Position], "{field:?}");
        assert!(what.contains(&format!("{field:?}")), "{what}");
    }
    // One figure is not there, also where it would be 0.
    for field in PositionField::ALL {
        let (kinds, what) = spoiled(|run| {
            let thread = run.thread("orchestrator");
            let is_it = |record: &Record| {
                (record.point, record.detail) == (Point::Position, field as u8)
                    && record.id == OrderId::new(1, 0, 1)
            };
            run.logs[thread].retain(|record| !is_it(record));
        });
        assert_eq!(kinds, [ViolationKind::Position], "{field:?}");
        assert!(
            what.contains(&format!("1 instrument 1: {field:?}")) && what.contains("nothing by"),
            "{what}"
        );
    }
    // All of them; a run that broke off may have none.
    let without = |run: &mut Fixture| {
        let thread = run.thread("orchestrator");
        run.logs[thread].retain(|record| record.point != Point::Position);
    };
    assert_eq!(spoiled(without).0, [ViolationKind::Position]);
    let (kinds, _) = spoiled(|run| {
        without(run);
        run.fail("engine");
    });
    assert_eq!(kinds, []);
    // A whole account.
    let (kinds, what) = spoiled(|run| {
        let thread = run.thread("orchestrator");
        run.logs[thread].retain(|record| record.point != Point::Position || record.id.strategy() != 1);
    });
    assert_eq!(kinds, [ViolationKind::Position]);
    assert!(what.contains("nothing by the orchestrator"), "{what}");
    // One that is none, and one twice.
    for (id, detail) in
        [(OrderId::new(9, 0, 0), 0), (OrderId::new(0, 0, 1 << 20), 0), (OrderId::new(0, 0, 0), 9)]
    {
        let record = Record { point: Point::Position, id, detail, value: 1 };
        let (kinds, _) = spoiled(|run| {
            let thread = run.thread("orchestrator");
            run.logs[thread].push(record);
        });
        assert_eq!(kinds, [ViolationKind::Position]);
    }
    let (kinds, what) = spoiled(|run| {
        let thread = run.thread("orchestrator");
        let last = *run.logs[thread].last().unwrap();
        run.logs[thread].push(last);
    });
    assert_eq!(kinds, [ViolationKind::Position]);
    assert!(what.contains("stated twice"), "{what}");
}

/// The honest run with a kill switch that is seen just before the t3 of an order, and revived later.
fn killed(scope: Scope, threading: Threading, excused: bool) -> (Vec<ViolationKind>, String) {
    let mut fixture = Fixture::new(Shape { threading, ..FILLS });
    let (thread, place) = fixture.find(Point::OrchDispatch, ID);
    let t3 = fixture.logs[thread][place].value;
    let record = |is_on, number, point, value| {
        let (id, detail) = Switch { number, scope, is_on, cause: Cause::Operator }.to_record();
        Record { point, id, detail, value }
    };
    let seen = [record(true, 0, Point::KillSeen, t3 - 5), record(true, 0, Point::KillDone, t3 - 1)];
    fixture.logs[thread][place].detail = u8::from(excused);
    fixture.logs[thread].insert(place + 1, record(false, 1, Point::KillSeen, t3 + 1));
    fixture.logs[thread].splice(place..place, seen);
    let merged = run(&fixture);
    let [kill] = merged.kills.as_slice() else { panic!("{:?}", merged.kills) };
    assert_eq!((kill.seen, kill.done, kill.revived), (t3 - 5, Some(t3 - 1), Some(t3 + 1)));
    let kinds = merged.violations.iter().map(|violation| violation.kind).collect();
    (kinds, merged.violations.first().map(|violation| violation.first.clone()).unwrap_or_default())
}

#[test]
fn an_order_that_a_kill_switch_let_through_is_found() {
    let instrument = fill_of(2 * 7 + 1).0;
    for threading in [Threading::Dedicated, Threading::Shared] {
        for scope in [Scope::All, Scope::Strategy(1), Scope::Venue(1), Scope::Instrument(instrument)] {
            let (kinds, what) = killed(scope, threading, false);
            assert_eq!(kinds, [ViolationKind::Killed], "{scope} {threading}");
            let wanted =
                format!("strategy 1 order 7: dispatched although the kill switch of {scope} had been seen");
            assert_eq!(what, wanted);
            assert_eq!(killed(scope, threading, true).0, [], "a cancel may pass");
        }
        for scope in [Scope::Strategy(0), Scope::Venue(0), Scope::Instrument(1 - instrument)] {
            assert_eq!(killed(scope, threading, false).0, [], "{scope} {threading}");
        }
    }
}

#[test]
fn a_switch_is_off_once_its_scope_or_everybody_is_revived() {
    let instrument = fill_of(2 * 7 + 1).0;
    for scope in [Scope::Strategy(1), Scope::Venue(1), Scope::Instrument(instrument)] {
        for (revived, is_off) in [(scope, true), (Scope::All, true), (Scope::Credential(0), false)] {
            let mut fixture = Fixture::new(FILLS);
            let (thread, place) = fixture.find(Point::OrchDispatch, ID);
            let t3 = fixture.logs[thread][place].value;
            let turned = |is_on, number, scope| {
                let (id, detail) = Switch { number, scope, is_on, cause: Cause::Operator }.to_record();
                // At one tick: what comes first stands first.
                Record { point: Point::KillSeen, id, detail, value: t3 }
            };
            let behind = place + 1..place + 1;
            fixture.logs[thread].splice(behind, [turned(true, 2, scope), turned(false, 3, scope)]);
            fixture.logs[thread].splice(place..place, [turned(true, 0, scope), turned(false, 1, revived)]);
            let kinds: Vec<ViolationKind> = run(&fixture).violations.iter().map(|found| found.kind).collect();
            let wanted: &[ViolationKind] = if is_off { &[] } else { &[ViolationKind::Killed] };
            assert_eq!(kinds, wanted, "{scope}, revived: {revived}");
        }
    }
}

/// An order that had rested, as its first report says, when a switch was turned and its last report came.
#[test]
fn a_kill_switch_cancels_what_had_been_accepted_before() {
    for is_killed in [true, false] {
        let mut fixture = Fixture::new(Shape { fills: false, ..FILLS });
        with_reports(&mut fixture, ID);
        let (thread, _) = fixture.find(Point::GatewayDone, ID);
        let is_last = |record: &Record| {
            let points = (record.point, record.id, record.detail);
            points == (Point::GatewayDone, ID, 2)
        };
        let place = fixture.logs[thread].iter().position(is_last).unwrap();
        let last = fixture.logs[thread][place];
        fixture.logs[thread].insert(place, Record { point: Point::Cancelled, ..last });
        let orchestrator = fixture.thread("orchestrator");
        let (id, detail) =
            Switch { number: 0, scope: Scope::Strategy(1), is_on: true, cause: Cause::Operator }.to_record();
        let seen = Record { point: Point::KillSeen, id, detail, value: last.value - 1 };
        if is_killed {
            fixture.logs[orchestrator].push(seen);
        }
        let kinds: Vec<ViolationKind> = run(&fixture).violations.iter().map(|found| found.kind).collect();
        let wanted: &[ViolationKind] = if is_killed { &[] } else { &[ViolationKind::NotDead] };
        assert_eq!(kinds, wanted, "{is_killed}");
    }
}

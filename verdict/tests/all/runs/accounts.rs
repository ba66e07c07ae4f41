//! Positions from the logged fills compared with the orchestrator's, and orders after kill
//! switches: honest runs are counted exactly, every defect is detected.

use super::merging::with_reports;
use crate::common::{kinds, run, stamp};
use crate::fixture::{Fixture, Shape, fill_of};
use merge::ViolationKind::{self, Fill, Killed, NotDead, Position};
use merge::{Account, MergedRun};
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::kill::{KillCause, KillSwitch, Scope};
use protocol::plan::Threading;
use protocol::stamps::{Point, PositionField, Record};
use protocol::wire::OrderId;

const FILLS: Shape = Shape { fills: true, ..Shape::PLAIN };
const ID: OrderId = OrderId::new(1, 0, 7);

#[test]
fn positions_match_fills() {
    for threading in [Threading::Dedicated, Threading::Shared] {
        let merged = run(&Fixture::new(Shape { threading, ..FILLS }));
        assert_eq!(merged.violations, []);
        let mut expected = Account::default();
        // Strategy 1 has every other number.
        (0..20)
            .map(|sequence| fill_of(2 * sequence + 1))
            .filter(|(instrument, ..)| *instrument == 1)
            .for_each(|(_, quantity, price)| expected.fill(quantity, price));
        let position = merged
            .positions
            .iter()
            .find(|position| (position.strategy, position.instrument) == (StrategyIndex(1), 1));
        let position = position.unwrap().account;
        // Realized profit depends on the order in which the orchestrator processed the reports.
        assert_eq!(
            (position.net, position.cost, position.fills),
            (expected.net, expected.cost, expected.fills)
        );
        assert_ne!(position.realized, expected.realized);
        assert_eq!(merged.positions.iter().map(|position| position.account.fills).sum::<u64>(), 40);
        assert!(merged.positions.iter().all(|position| position.last_price.is_some()));
    }
}

/// Returns the kinds of violations of a run, and the first example of all.
fn violations_and_example(merged: &MergedRun) -> (Vec<ViolationKind>, String) {
    (kinds(merged), merged.violations.first().map(|violation| violation.first.clone()).unwrap_or_default())
}

fn run_with_defect(introduce: impl FnOnce(&mut Fixture)) -> (Vec<ViolationKind>, String) {
    let mut fixture = Fixture::new(FILLS);
    introduce(&mut fixture);
    violations_and_example(&run(&fixture))
}

fn change_fill(run: &mut Fixture, change: impl Fn(&mut Record)) {
    let (thread, index) = run.find(Point::FillQuantity, ID);
    run.logs[thread][index..index + 2].iter_mut().for_each(change);
}

#[test]
fn forged_fill_records_are_detected() {
    type FillDefect = fn(&mut Fixture);
    let false_records: [(&[ViolationKind], &str, FillDefect); 10] = [
        (&[Position], "by the gateways' reports", |run| run.set(Point::FillQuantity, ID, |n| n + 1)),
        (&[Position], "", |run| run.set(Point::FillQuantity, ID, u64::wrapping_neg)),
        (&[Position], "", |run| run.set(Point::FillPrice, ID, |price| price + 1)),
        (&[Position], "", |run| {
            run.remove(Point::FillQuantity, ID);
            run.remove(Point::FillPrice, ID);
        }),
        (&[Fill, Position], "order 7: the fill of report 0 has no price", |run| {
            run.remove(Point::FillPrice, ID)
        }),
        (&[Fill, Position], "order 7: a price of report 0, which has no fill", |run| {
            run.remove(Point::FillQuantity, ID)
        }),
        (&[Fill], "order 7: report 0 is filled twice", |run| {
            let (thread, index) = run.find(Point::FillQuantity, ID);
            let pair = [run.logs[thread][index], run.logs[thread][index + 1]];
            run.logs[thread].splice(index..index, pair);
        }),
        // For a report that does not exist, of another order, and of none.
        (&[Fill, Position], "order 7: a fill of report 3, which has no t5 before it", |run| {
            change_fill(run, |record| record.detail = 3);
        }),
        (&[Fill, Position], "", |run| change_fill(run, |record| record.id = OrderId::new(1, 0, 9))),
        (&[Fill, Position], "", |run| run.set(Point::FillQuantity, ID, |_| 0)),
    ];
    for (expected, detail, defect) in false_records {
        let (kinds, first) = run_with_defect(defect);
        assert_eq!(kinds, expected, "{detail}: {first}");
        assert!(first.starts_with("strategy 1 ") && first.contains(detail), "{detail}: {first}");
    }
}

#[test]
fn fill_counts_for_its_instrument() {
    let sequence = (0..20).find(|sequence| fill_of(2 * sequence + 1).0 == 1).unwrap();
    let id = OrderId::new(1, 0, sequence);
    assert_eq!(run_with_defect(|run| run.remove(Point::Instrument, id)).0, [Position]);
    assert_eq!(run_with_defect(|run| run.set(Point::Instrument, id, |_| 5_000)).0, [Fill, Position]);
}

/// Changes the orchestrator's log of a run with fills, so that its positions differ.
fn run_with_false_position(change: impl FnOnce(&mut Vec<Record>)) -> String {
    let (kinds, what) = run_with_defect(|run| {
        let thread = run.thread("orchestrator");
        change(&mut run.logs[thread]);
    });
    assert_eq!(kinds, [Position], "{what}");
    what
}

#[test]
fn each_wrong_position_figure_is_detected() {
    for field in PositionField::ALL {
        let is_it = |record: &Record| (record.point, record.detail) == (Point::Position, field as u8);
        let what = run_with_false_position(|log| {
            let record = log.iter_mut().find(|record| is_it(record)).unwrap();
            record.value = record.value.wrapping_sub(1);
        });
        assert!(what.contains(&format!("{field:?}")), "{what}");
        // One figure is missing, even where it would be 0.
        let what = run_with_false_position(|log| {
            log.retain(|record| !is_it(record) || record.id != OrderId::new(1, 0, 1))
        });
        assert!(
            what.contains(&format!("1 instrument 1: {field:?}")) && what.contains("nothing by"),
            "{what}"
        );
    }
}

#[test]
fn missing_unknown_or_duplicate_accounts_are_detected() {
    let without = |log: &mut Vec<Record>| log.retain(|record| record.point != Point::Position);
    run_with_false_position(without);
    let broken_off = run_with_defect(|run| {
        let thread = run.thread("orchestrator");
        without(&mut run.logs[thread]);
        run.fail("engine");
    });
    assert_eq!(broken_off.0, [], "a run that broke off may have none");
    let is_whole = |record: &Record| record.point == Point::Position && record.id.strategy().0 == 1;
    let what = run_with_false_position(|log| log.retain(|record| !is_whole(record)));
    assert!(what.contains("nothing by the orchestrator"), "{what}");
    for (id, detail) in
        [(OrderId::new(9, 0, 0), 0), (OrderId::new(0, 0, 1 << 20), 0), (OrderId::new(0, 0, 0), 9)]
    {
        run_with_false_position(|log| log.push(Record { detail, ..stamp(Point::Position, id, 1) }));
    }
    let what = run_with_false_position(|log| log.extend(log.last().copied()));
    assert!(what.contains("stated twice"), "{what}");
}

/// Returns the record of a switch that an operator turns.
fn switch_record(is_on: bool, number: u32, scope: Scope, point: Point, value: u64) -> Record {
    let (id, detail) = KillSwitch { number, scope, is_on, cause: KillCause::Operator }.to_record();
    Record { point, id, detail, value }
}

/// Merges the honest run with a kill switch that is seen just before the t3 of an order, and
/// revived later.
fn run_with_kill_switch(scope: Scope, threading: Threading, is_cancel: bool) -> (Vec<ViolationKind>, String) {
    let mut fixture = Fixture::new(Shape { threading, ..FILLS });
    let (thread, index) = fixture.find(Point::OrchDispatch, ID);
    let log = &mut fixture.logs[thread];
    let t3 = log[index].value;
    log[index].detail = u8::from(is_cancel);
    log.insert(index + 1, switch_record(false, 1, scope, Point::KillSeen, t3 + 1));
    let on = [(Point::KillSeen, t3 - 5), (Point::KillDone, t3 - 1)];
    log.splice(index..index, on.map(|(point, value)| switch_record(true, 0, scope, point, value)));
    let merged = run(&fixture);
    let [kill] = merged.kills.as_slice() else { panic!("{:?}", merged.kills) };
    assert_eq!((kill.seen, kill.done, kill.revived), (t3 - 5, Some(t3 - 1), Some(t3 + 1)));
    violations_and_example(&merged)
}

#[test]
fn order_dispatched_despite_kill_switch_is_detected() {
    let instrument = fill_of(2 * 7 + 1).0;
    for threading in [Threading::Dedicated, Threading::Shared] {
        for scope in [
            Scope::All,
            Scope::Strategy(StrategyIndex(1)),
            Scope::Venue(VenueIndex(1)),
            Scope::Instrument(instrument),
        ] {
            let detail =
                format!("strategy 1 order 7: dispatched although the kill switch of {scope} had been seen");
            assert_eq!(run_with_kill_switch(scope, threading, false), (vec![Killed], detail), "{threading}");
            assert_eq!(run_with_kill_switch(scope, threading, true).0, [], "a cancel may pass");
        }
        for scope in [
            Scope::Strategy(StrategyIndex(0)),
            Scope::Venue(VenueIndex(0)),
            Scope::Instrument(1 - instrument),
        ] {
            assert_eq!(run_with_kill_switch(scope, threading, false).0, [], "{scope} {threading}");
        }
    }
}

#[test]
fn kill_switch_ends_when_its_scope_is_revived() {
    let instrument = fill_of(2 * 7 + 1).0;
    for scope in
        [Scope::Strategy(StrategyIndex(1)), Scope::Venue(VenueIndex(1)), Scope::Instrument(instrument)]
    {
        for (revived, is_off) in [(scope, true), (Scope::All, true), (Scope::Credential(0), false)] {
            let mut fixture = Fixture::new(FILLS);
            let (thread, index) = fixture.find(Point::OrchDispatch, ID);
            let log = &mut fixture.logs[thread];
            let t3 = log[index].value;
            // At one tick: log order decides.
            let seen = |is_on, number, scope| switch_record(is_on, number, scope, Point::KillSeen, t3);
            log.splice(index + 1..index + 1, [seen(true, 2, scope), seen(false, 3, scope)]);
            log.splice(index..index, [seen(true, 0, scope), seen(false, 1, revived)]);
            let expected: &[ViolationKind] = if is_off { &[] } else { &[Killed] };
            assert_eq!(kinds(&run(&fixture)), expected, "{scope}, revived: {revived}");
        }
    }
}

/// An order that was resting, by its first report, when a switch was turned and its last report
/// came.
#[test]
fn kill_switch_cancels_accepted_orders() {
    for is_killed in [true, false] {
        let mut fixture = Fixture::new(Shape::PLAIN);
        with_reports(&mut fixture, ID);
        let (thread, _) = fixture.find(Point::GatewayDone, ID);
        let log = &mut fixture.logs[thread];
        let is_last = |r: &Record| (r.point, r.id, r.detail) == (Point::GatewayDone, ID, 2);
        let index = log.iter().position(is_last).unwrap();
        let last = log[index];
        log.insert(index, Record { point: Point::Cancelled, ..last });
        if is_killed {
            let seen =
                switch_record(true, 0, Scope::Strategy(StrategyIndex(1)), Point::KillSeen, last.value - 1);
            fixture.push("orchestrator", seen);
        }
        let expected: &[ViolationKind] = if is_killed { &[] } else { &[NotDead] };
        assert_eq!(kinds(&run(&fixture)), expected, "{is_killed}");
    }
}

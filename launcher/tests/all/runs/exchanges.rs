//! Venues that are exchanges: their part of venue_service, to the tick, and what their logs must not say.

use super::figures::summary;
use super::fixture::{Fixture, SESSION, STAGES, Shape};
use super::merging::{run, with_reports};
use analysis::merge::ViolationKind;
use analysis::record::Outcome;
use analysis::report::{csv, markdown, terminal};
use analysis::summary::{Figures, Measure};
use protocol::flow::Stage;
use protocol::plan::{Fault, FaultKind, Target, Threading, When};
use protocol::stamps::{Point, Record};
use protocol::wire::OrderId;

const ID: OrderId = OrderId::new(1, 0, 7);
const NAME: &str = "strategy 1 order 7: ";

fn book() -> Shape {
    Shape { book: true, ..Shape::default() }
}

#[test]
fn the_parts_of_each_order_sum_to_its_time_at_the_venue() {
    for threading in [Threading::Dedicated, Threading::Shared] {
        let mut fixture = Fixture::new(Shape { threading, ..book() });
        with_reports(&mut fixture, ID);
        let merged = run(&fixture);
        assert_eq!(merged.violations, []);
        let mut measured = 0;
        for (id, row) in merged.measured() {
            let parts = merged.at_exchange(id).parts(row).unwrap();
            assert_eq!((parts[0], parts[2]), (SESSION[0], SESSION[1]));
            assert_eq!(Some(parts.iter().sum()), row.stage(Stage::VenueService));
            measured += 1;
        }
        assert_eq!(measured, 40);
        let figures = Figures::measure(&merged, 1.0);
        let part = |number: usize| figures.distribution(Measure::EXCHANGE[number]);
        assert_eq!((part(0).count, part(0).min_ns, part(0).max_ns), (40, Some(120), Some(120)));
        let venue = figures.distribution(Measure::Stage(Stage::VenueService));
        let means = (0..3).map(|number| part(number).mean_ns.unwrap()).sum::<f64>();
        assert!((means - venue.mean_ns.unwrap()).abs() < 1e-6);
    }
}

#[test]
fn reports_show_the_parts_where_there_is_an_exchange_and_only_there() {
    let told = |shape| {
        let summary = summary(&Fixture::new(shape));
        let (mut table, mut document) = (Vec::new(), Vec::new());
        csv(&summary, &mut table).unwrap();
        markdown(&summary, &mut document).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let json = serde_json::to_string(&summary.exchange).unwrap();
        [terminal(&summary, false), text(table), text(document), json]
    };
    let parts = ["session_out", "match", "session_back"];
    for text in told(book()) {
        let places = parts.map(|part| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}")));
        assert!(places.is_sorted(), "{text}");
    }
    let [text, table, ..] = told(book());
    let line = text.lines().find(|line| line.starts_with("· session_out")).unwrap();
    assert!(line.contains(" 60 ns"), "{line}");
    let next = table.lines().skip_while(|line| !line.starts_with("venue_service,")).nth(1).unwrap();
    assert!(next.starts_with("session_out,40,60,60,"), "{table}");
    for text in told(Shape::default()) {
        assert!(parts.iter().all(|part| !text.contains(part)), "{text}");
    }
}

/// Spoils an honest run and expects exactly one violation.
fn spoiled(spoil: impl FnOnce(&mut Fixture)) -> (ViolationKind, String) {
    let mut fixture = Fixture::new(book());
    spoil(&mut fixture);
    let merged = run(&fixture);
    let [violation] = merged.violations.as_slice() else {
        panic!("one violation expected, got {:?}", merged.violations)
    };
    assert_eq!(violation.count, 1, "{violation:?}");
    (violation.kind, violation.first.clone())
}

#[test]
fn a_missing_stamp_of_an_exchange_is_named() {
    for point in [Point::ExchangeRecv, Point::ExchangeDone] {
        let (kind, first) = spoiled(|run| _ = run.remove(point, ID));
        assert_eq!((kind, first), (ViolationKind::MissingPoint, format!("{NAME}has no {}", point.name())));
    }
    let (kind, first) = spoiled(|run| {
        run.remove(Point::ExchangeRecv, ID);
        run.remove(Point::ExchangeDone, ID);
    });
    assert_eq!((kind, first), (ViolationKind::MissingPoint, format!("{NAME}has no exchange-recv")));
    // In a run that broke off some may be missing.
    let mut fixture = Fixture::new(book());
    fixture.remove(Point::ExchangeDone, ID);
    fixture.fail("engine");
    assert!(matches!(fixture.record.outcome, Outcome::Failed { .. }));
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
}

#[test]
fn a_fault_of_one_venue_excuses_no_other() {
    let venue_of = |run: &Fixture, id| {
        let (thread, place) = run.find(Point::GatewayRecv, id);
        u16::from(run.logs[thread][place].detail)
    };
    let later = |run: &mut Fixture, id| run.set(Point::ExchangeDone, id, |ticks| ticks + 1_000);
    for excuse in ["a fault of its venue", "a fault of the other venue", "a limit"] {
        for spoils in 0..5 {
            let mut fixture = Fixture::new(book());
            with_reports(&mut fixture, ID);
            let own = venue_of(&fixture, ID);
            match excuse {
                "a limit" => fixture.record.plan.trading_mut().venue_limit = 1_000,
                _ => {
                    let venue = if excuse == "a fault of its venue" { own } else { 1 - own };
                    fixture.record.plan.faults.push(Fault {
                        kind: FaultKind::Mute,
                        target: Target::Venue(venue),
                        when: When::At { ns: 0 },
                        every_ns: None,
                        lasts_ns: None,
                    });
                }
            }
            match spoils {
                0 => _ = fixture.remove(Point::ExchangeRecv, ID),
                1 => _ = fixture.remove(Point::ExchangeDone, ID),
                2 => later(&mut fixture, ID),
                // A report that the gateway did not hear, or not believe.
                3 => {
                    let thread = fixture.thread(&format!("exchange-{own}"));
                    let unheard = Record { point: Point::ExchangeDone, id: ID, detail: 3, value: 9_000_000 };
                    fixture.logs[thread].push(unheard);
                }
                _ => {
                    let thread = fixture.thread(&format!("exchange-{own}"));
                    fixture.logs[thread].retain(|record| (record.id, record.detail) != (ID, 2));
                }
            }
            let is_found = !run(&fixture).violations.is_empty();
            assert_eq!(is_found, excuse == "a fault of the other venue", "{excuse}, {spoils}");
        }
    }
}

#[test]
fn an_exchange_that_lies_about_the_time_is_found() {
    let venue = STAGES[4] + 50_000;
    for (point, shift, words) in [
        (Point::ExchangeRecv, -(SESSION[0] as i64) - 1, "exchange-recv before t4"),
        (Point::ExchangeRecv, 3 * venue as i64, "exchange-done before exchange-recv"),
        (Point::ExchangeDone, SESSION[1] as i64 + 1, "t5 before exchange-done"),
    ] {
        let (kind, first) = spoiled(|run| run.set(point, ID, |ticks| ticks.wrapping_add_signed(shift)));
        assert_eq!((kind, first), (ViolationKind::TimeOrder, format!("{NAME}{words}")));
    }
    let mut fixture = Fixture::new(book());
    fixture.set(Point::ExchangeDone, ID, |ticks| ticks + 1_000);
    assert_eq!(run(&fixture).measured().count(), 39, "an impossible order is in no figure");
}

#[test]
fn a_forged_stamp_of_an_exchange_is_found() {
    // Twice.
    for point in [Point::ExchangeRecv, Point::ExchangeDone] {
        let (kind, first) = spoiled(|run| {
            let (thread, place) = run.find(point, ID);
            let again = run.logs[thread][place];
            run.logs[thread].push(again);
        });
        assert_eq!((kind, first), (ViolationKind::Duplicate, format!("{NAME}{} twice", point.name())));
    }
    // By the exchange of another venue.
    let elsewhere = |run: &mut Fixture| {
        let stamps = [Point::ExchangeRecv, Point::ExchangeDone].map(|point| run.remove(point, ID));
        let other = run.thread("exchange-0");
        run.logs[other].extend(stamps);
    };
    let (kind, first) = spoiled(elsewhere);
    let words = "is in exchange-0.stamps, and no gateway of that exchange had it";
    assert_eq!((kind, first), (ViolationKind::Misplaced, format!("{NAME}{words}")));
    // By who is none, of what is none, and of an order that no venue had.
    let record = |id, detail| Record { point: Point::ExchangeDone, id, detail, value: 9_000_000 };
    let (kind, first) = spoiled(|run| {
        let thread = run.thread("gateway-1");
        run.logs[thread].push(record(ID, 0));
    });
    assert_eq!(kind, ViolationKind::Misplaced);
    assert!(first.contains("exchange-done stands in gateway-1.stamps"), "{first}");
    let (kind, _) = spoiled(|run| {
        let thread = run.thread("exchange-0");
        run.logs[thread].push(record(OrderId::new(0, 0, 1_000), 0));
    });
    assert_eq!(kind, ViolationKind::NotInPlan);
    let mut fixture = Fixture::new(Shape { reject_every: 5, ..book() });
    let refused = OrderId::new(0, 0, 4);
    let thread = fixture.thread("exchange-0");
    fixture.logs[thread].push(record(refused, 0));
    assert_eq!(run(&fixture).violations[0].kind, ViolationKind::Misplaced);
    // A report that nobody had.
    let mut fixture = Fixture::new(book());
    let thread = fixture.thread("exchange-1");
    fixture.logs[thread].push(record(ID, 1));
    let kinds: Vec<ViolationKind> = run(&fixture).violations.iter().map(|found| found.kind).collect();
    assert_eq!(kinds, [ViolationKind::LastReport, ViolationKind::MissingPoint]);
}

#[test]
fn further_reports_have_the_stamp_of_the_exchange_too() {
    let spoiled = |spoil: &dyn Fn(&mut Record) -> bool| {
        let mut fixture = Fixture::new(book());
        with_reports(&mut fixture, ID);
        let thread = fixture.thread("exchange-1");
        let of_second =
            |record: &Record| (record.point, record.id, record.detail) == (Point::ExchangeDone, ID, 2);
        fixture.logs[thread].retain_mut(|record| !of_second(record) || spoil(record));
        let merged = run(&fixture);
        let [violation] = merged.violations.as_slice() else { panic!("{:?}", merged.violations) };
        (violation.kind, violation.first.clone())
    };
    let named = |what: &str| format!("{NAME}report 2 {what}");
    let (kind, first) = spoiled(&|_| false);
    assert_eq!((kind, first), (ViolationKind::MissingPoint, named("has no exchange-done")));
    let (kind, first) = spoiled(&|record| {
        record.value += 1_000;
        true
    });
    assert_eq!((kind, first), (ViolationKind::TimeOrder, named("has a t5 before the exchange gave it")));
    let (kind, _) = spoiled(&|record| {
        record.value = 1;
        true
    });
    assert_eq!(kind, ViolationKind::TimeOrder);
}

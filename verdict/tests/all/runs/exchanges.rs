//! Venues that are exchanges: their stages of venue_service, to the tick, and violations in their
//! logs.

use super::merging::with_reports;
use crate::common::{check_each, exported, fault, kinds, only, run, summary};
use crate::fixture::{Fixture, SESSION, Shape};
use merge::ViolationKind as Kind;
use protocol::flow::Stage;
use protocol::index::VenueIndex;
use protocol::plan::{FaultKind, FaultTarget, Threading};
use protocol::stamps::{Point, Record};
use protocol::wire::OrderId;
use verdict::report::terminal;
use verdict::summary::{Figures, Measure};

const ID: OrderId = OrderId::new(1, 0, 7);
const NAME: &str = "strategy 1 order 7: ";

const BOOK: Shape = Shape { book: true, ..Shape::PLAIN };

fn honest() -> Fixture {
    Fixture::new(BOOK)
}

#[test]
fn exchange_stages_sum_to_venue_service() {
    for threading in [Threading::Dedicated, Threading::Shared] {
        let mut fixture = Fixture::new(Shape { threading, ..BOOK });
        with_reports(&mut fixture, ID);
        let merged = run(&fixture);
        assert_eq!(merged.violations, []);
        let mut measured = 0;
        for (id, row) in merged.measured() {
            let parts = merged.at_exchange(id).stage_ticks(row).unwrap();
            assert_eq!((parts[0], parts[2]), (SESSION[0], SESSION[1]));
            assert_eq!(Some(parts.iter().sum()), row.stage(Stage::VenueService));
            measured += 1;
        }
        assert_eq!(measured, 40);
        let figures = Figures::measure(&merged, fixture.record.plan.isolation, 1.0);
        let part = |number: usize| figures.distribution(Measure::EXCHANGE[number]);
        assert_eq!((part(0).count, part(0).min_ns, part(0).max_ns), (40, Some(120), Some(120)));
        let venue = figures.distribution(Measure::Stage(Stage::VenueService));
        let means = (0..3).map(|number| part(number).mean_ns.unwrap()).sum::<f64>();
        assert!((means - venue.mean_ns.unwrap()).abs() < 1e-6);
    }
}

#[test]
fn reports_show_exchange_stages_only_with_exchange() {
    let outputs = |shape| {
        let summary = summary(&Fixture::new(shape));
        let [table, document] = exported(&summary);
        [terminal(&summary, false), table, document, serde_json::to_string(&summary.exchange).unwrap()]
    };
    let parts = ["session_out", "match", "session_back"];
    for text in outputs(BOOK) {
        let places = parts.map(|part| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}")));
        assert!(places.is_sorted(), "{text}");
    }
    let [text, table, ..] = outputs(BOOK);
    let line = text.lines().find(|line| line.starts_with("· session_out")).unwrap();
    assert!(line.contains(" 60 ns"), "{line}");
    let next = table.lines().skip_while(|line| !line.starts_with("venue_service,")).nth(1).unwrap();
    assert!(next.starts_with("session_out,40,60,60,"), "{table}");
    for text in outputs(Shape::PLAIN) {
        assert!(parts.iter().all(|part| !text.contains(part)), "{text}");
    }
}

/// Returns a report of an exchange that was not requested.
fn done(id: OrderId, detail: u8) -> Record {
    Record { point: Point::ExchangeDone, id, detail, value: 9_000_000 }
}

#[test]
fn each_exchange_violation_is_detected_and_named() {
    let misplaced = "strategy 1 order 7: is in exchange-0.stamps, and no gateway of that exchange had it";
    check_each(
        honest,
        &[
            (Kind::MissingPoint, "strategy 1 order 7: has no exchange-recv", |f| {
                f.remove(Point::ExchangeRecv, ID)
            }),
            (Kind::MissingPoint, "strategy 1 order 7: has no exchange-done", |f| {
                f.remove(Point::ExchangeDone, ID)
            }),
            (Kind::MissingPoint, "strategy 1 order 7: has no exchange-recv", |f| {
                f.remove(Point::ExchangeRecv, ID);
                f.remove(Point::ExchangeDone, ID);
            }),
            (Kind::TimeOrder, "strategy 1 order 7: exchange-recv before t4", |f| {
                f.set(Point::ExchangeRecv, ID, |ticks| ticks - SESSION[0] - 1)
            }),
            (Kind::TimeOrder, "strategy 1 order 7: exchange-done before exchange-recv", |f| {
                f.set(Point::ExchangeRecv, ID, |ticks| ticks + 3 * 50_050)
            }),
            (Kind::TimeOrder, "strategy 1 order 7: t5 before exchange-done", |f| {
                f.set(Point::ExchangeDone, ID, |ticks| ticks + SESSION[1] + 1)
            }),
            (Kind::Duplicate, "strategy 1 order 7: exchange-recv twice", |f| {
                f.double(Point::ExchangeRecv, ID)
            }),
            (Kind::Duplicate, "strategy 1 order 7: exchange-done twice", |f| {
                f.double(Point::ExchangeDone, ID)
            }),
            // By the exchange of another venue, by a thread that is not an exchange, and for an
            // order that does not exist.
            (Kind::Misplaced, misplaced, |f| {
                for point in [Point::ExchangeRecv, Point::ExchangeDone] {
                    let stamp = f.take(point, ID);
                    f.push("exchange-0", stamp);
                }
            }),
            (Kind::Misplaced, "exchange-done stands in gateway-1.stamps", |f| {
                f.push("gateway-1", done(ID, 0))
            }),
            (Kind::NotInPlan, "", |f| f.push("exchange-0", done(OrderId::new(0, 0, 1_000), 0))),
        ],
    );
    let mut fixture = honest();
    fixture.set(Point::ExchangeDone, ID, |ticks| ticks + 1_000);
    assert_eq!(run(&fixture).measured().count(), 39, "an impossible order is in no figure");
    // An order that no venue had, and a report that no gateway had.
    let mut fixture = Fixture::new(Shape { reject_every: 5, ..BOOK });
    fixture.push("exchange-0", done(OrderId::new(0, 0, 4), 0));
    assert_eq!(run(&fixture).violations[0].kind, Kind::Misplaced);
    let mut fixture = honest();
    fixture.push("exchange-1", done(ID, 1));
    assert_eq!(kinds(&run(&fixture)), [Kind::LastReport, Kind::MissingPoint]);
    // In a run that broke off some may be missing.
    let mut fixture = honest();
    fixture.remove(Point::ExchangeDone, ID);
    fixture.fail("engine");
    assert_eq!(run(&fixture).violations, []);
}

#[test]
fn venue_fault_exempts_no_other_venue() {
    for place in ["a fault of its venue", "a fault of the other venue"] {
        for defect in 0..5 {
            let mut fixture = honest();
            with_reports(&mut fixture, ID);
            let own = u16::from(fixture.stamp(Point::GatewayRecv, ID).detail);
            let exchange = format!("exchange-{own}");
            let venue = if place == "a fault of its venue" { own } else { 1 - own };
            fixture.record.plan.faults.push(fault(FaultKind::Mute, FaultTarget::Venue(VenueIndex(venue)), 0));
            match defect {
                0 => fixture.remove(Point::ExchangeRecv, ID),
                1 => fixture.remove(Point::ExchangeDone, ID),
                2 => fixture.set(Point::ExchangeDone, ID, |ticks| ticks + 1_000),
                // A report that the gateway did not receive or rejected.
                3 => fixture.push(&exchange, done(ID, 3)),
                _ => {
                    let thread = fixture.thread(&exchange);
                    fixture.logs[thread].retain(|record| (record.id, record.detail) != (ID, 2));
                }
            }
            let is_found = !run(&fixture).violations.is_empty();
            assert_eq!(is_found, place == "a fault of the other venue", "{place}, {defect}");
        }
    }
}

#[test]
fn further_reports_need_exchange_stamps() {
    type Change = fn(u64) -> Option<u64>;
    let cases: [(Kind, &str, Change); 3] = [
        (Kind::MissingPoint, "report 2 has no exchange-done", |_| None),
        (Kind::TimeOrder, "report 2 has a t5 before the exchange gave it", |ticks| Some(ticks + 1_000)),
        (Kind::TimeOrder, "", |_| Some(1)),
    ];
    for (kind, expected, change) in cases {
        let mut fixture = honest();
        with_reports(&mut fixture, ID);
        let thread = fixture.thread("exchange-1");
        fixture.logs[thread].retain_mut(|record| {
            let is_second = (record.point, record.id, record.detail) == (Point::ExchangeDone, ID, 2);
            let changed = if is_second { change(record.value) } else { Some(record.value) };
            record.value = changed.unwrap_or_default();
            changed.is_some()
        });
        let (found, first) = only(&run(&fixture));
        assert!(found == kind && first.starts_with(NAME) && first.contains(expected), "{kind:?}: {first}");
    }
}

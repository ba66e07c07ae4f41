//! Venue faults: figures from the stamps compared with a count by hand.

use crate::common::{fault, summary};
use crate::fixture::{Fixture, NS_PER_TICK, START, Shape, sort_by_event};
use protocol::index::VenueIndex;
use protocol::plan::{Fault, FaultKind, FaultTarget};
use protocol::stamps::{Point, Record};
use record::screen::DEFAULT_WIDTH;
use verdict::report::terminal;

const FROM: u64 = START + 1_000_000;
const UNTIL: u64 = FROM + 400_000;
/// Additional delay of orders that arrive while the venue is slow, in ticks.
const LATER: u64 = 500_000;

fn ns(ticks: u64) -> u64 {
    (ticks as f64 * NS_PER_TICK).round() as u64
}

/// Two venues; the second has a fault in the middle of the run.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new(Shape { strategies: 1, orders: 400, ..Shape::PLAIN });
    let slow = fault(FaultKind::Slow, FaultTarget::Venue(VenueIndex(1)), ns(FROM - START));
    fixture.record.plan.faults.push(Fault { lasts_ns: Some(ns(UNTIL - FROM)), ..slow });
    fixture
}

/// Returns t4 and t5 of the orders of a venue.
fn at_venue(fixture: &Fixture, venue: usize) -> Vec<(u64, u64)> {
    let log = &fixture.logs[fixture.thread(&format!("gateway-{venue}"))];
    let of = |point: Point| log.iter().filter(move |record| record.point == point);
    let end = |start: &Record| of(Point::GatewayDone).find(|done| done.id == start.id).unwrap().value;
    of(Point::GatewayRecv).map(|start| (start.value, end(start))).collect()
}

#[test]
fn stuck_orders_and_recovery_follow_from_stamps() {
    let mut fixture = fixture();
    // Orders that arrive during the fault return later.
    let log = &fixture.logs[fixture.thread("gateway-1")];
    let is_late =
        |record: &&Record| record.point == Point::GatewayRecv && (FROM..UNTIL).contains(&record.value);
    let late: Vec<_> = log.iter().filter(is_late).map(|record| record.id).collect();
    assert!(late.len() > 10);
    for id in &late {
        for point in [Point::GatewayDone, Point::OrchRecvCompletion, Point::OrchReturn, Point::StrategyRecv] {
            fixture.set(point, *id, |ticks| ticks + LATER);
        }
    }
    fixture.logs.iter_mut().for_each(|log| sort_by_event(log));
    let summary = summary(&fixture);
    let [incident] = &summary.venue_incidents[..] else { panic!("{:?}", summary.venue_incidents) };
    assert_eq!((incident.venue, incident.fault), (VenueIndex(1), FaultKind::Slow));
    assert_eq!((incident.from_ns, incident.until_ns), (ns(FROM - START), Some(ns(UNTIL - START))));
    let at_faulty_venue = at_venue(&fixture, 1);
    let stuck_or_delayed = at_faulty_venue.iter().filter(|(t4, t5)| *t4 < UNTIL && *t5 >= FROM).count();
    assert_eq!((incident.orders, incident.stuck), (stuck_or_delayed as u64, late.len() as u64));
    let last =
        at_faulty_venue.iter().filter(|(t4, _)| (FROM..UNTIL).contains(t4)).map(|(_, t5)| *t5).max().unwrap();
    assert_eq!(incident.recover_ns, Some(ns(last - UNTIL)));
    let longest = at_faulty_venue.iter().map(|(t4, t5)| t5 - t4).max().unwrap();
    assert_eq!(incident.longest_ns, Some(ns(longest)));
    let before = at_faulty_venue.iter().filter(|(_, t5)| *t5 < FROM).map(|(t4, t5)| t5 - t4).max().unwrap();
    assert_eq!(incident.usual_ns, ns(before));
    // Orders of the other venue, which has no fault.
    let (others_before, others_during) = (&incident.others_before, &incident.others_during);
    assert!(others_before.count > 30 && others_during.count > 15, "{others_before:?} {others_during:?}");
    assert_eq!(others_before.p50_ns, others_during.p50_ns);
    let text = terminal(&summary, false);
    assert!(text.contains("venue-1") && text.contains("slow"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= DEFAULT_WIDTH), "{text}");
}

#[test]
fn venue_without_delay_has_no_stuck_orders() {
    let incident = &summary(&fixture()).venue_incidents[0];
    assert!(incident.orders > 10 && incident.stuck <= 1, "one may be the slowest of all: {incident:?}");
    let mut honest = fixture();
    honest.record.plan.faults.clear();
    assert_eq!(summary(&honest).venue_incidents, []);
}

//! Effects of strategies' deaths on the other strategies, in figures.

use super::deaths::{T1_OF_20, run_with_deaths, run_with_killed};
use crate::common::summary;
use crate::fixture::killing::{DETECTED, REPAIRED, StrategyDeath};
use crate::fixture::{Fixture, RT_VENUE, START, Shape, sort_by_event};
use merge::OrderLosses;
use protocol::checksum::digest;
use protocol::flow::PATH;
use protocol::index::StrategyIndex;
use protocol::stamps::Point;
use protocol::supervision::ProtocolViolation;
use protocol::wire::{CancelScope, Instruction, OrderId};
use verdict::summary::{Distribution, worst};

/// Two strategies with 500 orders each over 20 ms; strategy 1 dies in the middle.
fn one_death() -> Fixture {
    let mut fixture = Fixture::new(Shape { orders: 1_000, period: 20_000, delay: 100_000, ..Shape::PLAIN });
    fixture.kill(StrategyDeath { restart: Some(200_000), ..StrategyDeath::new(1, 20_000_000) });
    fixture
}

fn delay_order(fixture: &mut Fixture, id: OrderId, by: u64) {
    fixture.set(Point::StrategyRecv, id, |t8| t8 + by);
}

/// Returns the first order of strategy 0 that was sent at or after `ticks` since the start.
fn sent_at(fixture: &Fixture, ticks: u64) -> OrderId {
    let log = &fixture.logs[0];
    let sent = |point, value| point == Point::StrategySend && value >= START + ticks;
    log.iter().find(|record| sent(record.point, record.value)).unwrap().id
}

#[test]
fn incident_summary_has_times_cause_and_order_fates() {
    let summary = summary(&one_death());
    assert_eq!(summary.violations, []);
    let [incident] = summary.incidents.as_slice() else { panic!("{:?}", summary.incidents) };
    assert_eq!((incident.strategy, incident.epoch, incident.quarantined), (StrategyIndex(1), 0, None));
    assert_eq!(incident.cause, "signal 9 (SIGKILL)");
    assert_eq!(incident.fault_ns, Some(10_000_000));
    assert_eq!(incident.detected_ns, 10_000_000 + DETECTED / 2);
    assert_eq!(incident.detect_to_repair_ns, Some((REPAIRED - DETECTED) / 2));
    assert_eq!(incident.repair_to_restart_ns, Some((200_000 - REPAIRED) / 2));
    let orders = &summary.orders;
    assert!(orders.cancelled > 2);
    let OrderLosses { cancelled, orphaned, lost } = incident.orders;
    assert_eq!((cancelled, orphaned, lost), (orders.cancelled, orders.orphaned, orders.lost));
    let all = summary.containment.unwrap();
    assert_eq!((all.incidents, all.strategies, all.quarantined, all.restarted), (1, 1, 0, 1));
    assert_eq!((all.orders, all.lost_of_survivors), (incident.orders, 0));
    assert_eq!(all.detect_to_repair.count, 1);
    assert_eq!(all.detect_to_repair.max_ns, incident.detect_to_repair_ns);
}

#[test]
fn only_orders_in_engine_during_incident_are_affected() {
    // Until 10 ms after the repair: to the end of the run. Strategy 0 sends one order every 20 µs.
    let survivors_of = |introduce: fn(&mut Fixture)| {
        let mut fixture = one_death();
        introduce(&mut fixture);
        let summary = summary(&fixture);
        assert_eq!(summary.violations, []);
        (summary.incidents[0].survivors, summary.containment.unwrap())
    };
    let (survivors, all) = survivors_of(|_| {});
    let typical = Some(RT_VENUE / 2);
    assert_eq!((survivors.p50_ns, survivors.max_ns, survivors.p999_ns), (typical, typical, None));
    // Orders that were sent later, and those on their way back then.
    assert!((500..=510).contains(&survivors.orders), "{survivors:?}");
    assert_eq!(all.survivors_during.count, survivors.orders);
    assert_eq!(all.survivors_before.max_ns, typical);
    // Of both strategies; orders at a venue then do not count if they returned later.
    assert!((985..=1_000).contains(&all.survivors_before.count), "{:?}", all.survivors_before);

    // Slow orders long before it.
    let (before, all) = survivors_of(|fixture| delay_order(fixture, OrderId::new(0, 0, 499 - 100), 3_000));
    assert_eq!(before, survivors);
    assert_eq!(all.survivors_before.max_ns, Some((RT_VENUE + 3_000) / 2));
    assert_eq!(all.survivors_during.max_ns, typical);
    // The next incarnation of the dead strategy is not a survivor.
    let (after, _) = survivors_of(|fixture| delay_order(fixture, OrderId::new(1, 1, 5), 3_000));
    assert_eq!(after, survivors);
}

#[test]
fn queued_order_is_affected_however_early_it_was_sent() {
    // Venues answer at once, so that the order before the death had returned before it.
    let mut fixture = Fixture::new(Shape { orders: 1_000, period: 20_000, delay: 100, ..Shape::PLAIN });
    fixture.kill(StrategyDeath::new(1, 20_000_000));
    let quick = summary(&fixture).incidents[0].survivors;
    assert_eq!(quick.max_ns, Some(RT_VENUE / 2));
    let id = sent_at(&fixture, 19_960_000);
    // Received just before the next one.
    let later = 39_950;
    for point in PATH.into_iter().chain([Point::Release]).filter(|point| *point != Point::StrategySend) {
        fixture.set(point, id, |ticks| ticks + later);
    }
    fixture.logs.iter_mut().for_each(|log| sort_by_event(log));
    let summary = summary(&fixture);
    assert_eq!(summary.violations, []);
    let slow = summary.incidents[0].survivors;
    assert_eq!((slow.orders, slow.max_ns), (quick.orders + 1, Some((RT_VENUE + later) / 2)));
}

#[test]
fn mass_cancel_left_at_the_end_is_no_lost_message() {
    let cancel = |epoch| {
        let incarnation = OrderId::new(1, epoch, 0);
        digest(&Instruction::CancelAll(CancelScope::for_strategy(incarnation)).to_message())
    };
    let violations = |left: u64| {
        let mut fixture = one_death();
        let gateway = fixture.thread("gateway-0");
        let taken = &mut fixture.sums[gateway][0].1;
        *taken = taken.wrapping_sub(left);
        summary(&fixture).violations.len()
    };
    assert_eq!([0, cancel(0), cancel(0).wrapping_mul(3)].map(violations), [0; 3]);
    // Too many, one of an incarnation that has not ended, and any other message.
    assert_eq!([cancel(0).wrapping_mul(4), cancel(1), cancel(0) ^ 1].map(violations), [1; 3]);
}

#[test]
fn incident_window_ends_10_ms_after_repair() {
    let mut fixture = Fixture::new(Shape { orders: 1_000, period: 40_000, delay: 100_000, ..Shape::PLAIN });
    fixture.kill(StrategyDeath::new(1, 20_000_000));
    let survivors = |fixture: &Fixture| summary(fixture).incidents[0].survivors;
    let all = survivors(&fixture);
    // 10 ms of 40 µs each.
    assert!((250..=256).contains(&all.orders), "{all:?}");
    let late = sent_at(&fixture, 20_000_000 + REPAIRED + 20_000_000);
    delay_order(&mut fixture, late, 3_000);
    assert_eq!(survivors(&fixture), all);
    let early = OrderId::new(0, 0, late.sequence() - 2);
    delay_order(&mut fixture, early, 3_000);
    assert_eq!(survivors(&fixture).max_ns, Some((RT_VENUE + 3_000) / 2));
    // An incident without a repair ends after the fence.
    fixture.record.incidents[0].repaired_ns = None;
    let summary = summary(&fixture);
    assert_eq!(summary.incidents[0].detect_to_repair_ns, None);
    assert_eq!(summary.containment.unwrap().detect_to_repair, Distribution::default());
}

#[test]
fn many_incidents_pool_each_order_once() {
    let summary = summary(&run_with_deaths(1_000));
    assert_eq!((summary.violations.len(), summary.incidents.len()), (0, 999));
    let all = summary.containment.as_ref().unwrap();
    assert_eq!((all.incidents, all.strategies, all.restarted), (999, 1, 999));
    assert_eq!((summary.orders.sent, summary.orders.lost, all.orders), (4_000, 0, OrderLosses::default()));
    assert_eq!(all.detect_to_repair.p50_ns, Some(200));
    // Each order of strategy 0 that was not rejected counts once, though a thousand incidents
    // overlap it.
    assert!((1_707..=1_715).contains(&all.survivors_during.count), "{all:?}");
    assert!(summary.incidents[100].survivors.orders > 1_000);
    let reason = "1 strategy died 999 times during the run: figures are of the survivors and the gaps";
    assert_eq!(summary.reasons[0], reason);
    assert!(summary.valid && !summary.fit_for_latency);
}

#[test]
fn dead_strategy_counters_are_unknown() {
    let whole = summary(&Fixture::new(Shape::PLAIN));
    assert_eq!((whole.incidents.as_slice(), &whole.containment), ([].as_slice(), &None));
    assert!(whole.in_flight.measured.is_some() && whole.in_flight.max.is_some());

    let fixture = one_death();
    let summary = summary(&fixture);
    let flight = &summary.in_flight;
    assert_eq!((flight.measured, flight.difference, flight.max), (None, None, None));
    assert!(flight.littles_law.is_some());
    // No reason states that the senders fell behind.
    let unexpected = ["fell behind", "Little's law", "pinned"];
    assert!(!summary.reasons.iter().any(|reason| unexpected.iter().any(|word| reason.contains(word))));
    assert!(summary.rate.achieved_per_s < summary.rate.offered_per_s);
}

#[test]
fn quarantined_strategy_counters_are_excluded() {
    let mut fixture = run_with_killed(&[StrategyDeath {
        quarantined: Some(ProtocolViolation::Flood),
        ..StrategyDeath::new(1, T1_OF_20 - 100)
    }]);
    let thread = fixture.thread("strategy-1");
    fixture.statuses[thread].fill(u64::MAX);
    fixture.counters[thread].fill(u64::MAX);
    let summary = summary(&fixture);
    assert!(summary.valid, "{:?}", summary.violations);
    assert_eq!((summary.orders.full, summary.processes[thread].cpu_ns), (0, 0));
    assert!(summary.processes[thread].untrusted && !summary.processes[0].untrusted);
    assert!(!summary.reasons.iter().any(|reason| reason.contains("strategy-1")), "{:?}", summary.reasons);
    assert_eq!(summary.incidents[0].quarantined, Some(ProtocolViolation::Flood));
    assert_eq!(summary.containment.unwrap().quarantined, 1);
    assert_eq!(summary.rt_venue.count, summary.orders.returned - count_returned_of_strategy_1(&fixture));
    fixture.counter("strategy-0", "full", 3);
}

/// Returns the orders of strategy 1 whose report it received.
fn count_returned_of_strategy_1(fixture: &Fixture) -> u64 {
    let rejected: Vec<OrderId> = (fixture.logs.iter().flatten())
        .filter(|record| record.point == Point::Rejected)
        .map(|record| record.id)
        .collect();
    let got = fixture.logs[1].iter().filter(|record| record.point == Point::StrategyRecv);
    got.filter(|record| !rejected.contains(&record.id)).count() as u64
}

#[test]
fn worst_incidents_are_listed_by_time() {
    let summary = summary(&run_with_deaths(100));
    let mut incidents = summary.incidents.clone();
    for (index, incident) in incidents.iter_mut().enumerate() {
        incident.survivors.max_ns = if index == 70 { None } else { Some((index as u64 * 37) % 100) };
    }
    let shown = worst(&incidents, 10);
    assert!(shown.is_sorted_by_key(|incident| incident.detected_ns));
    assert!(shown.iter().all(|incident| incident.survivors.max_ns >= Some(89)), "{shown:?}");
    assert_eq!(worst(&incidents, 1_000).len(), 99);
}

//! Strategies that die or misbehave.

use super::*;
use protocol::control::{Launching, PLAN};
use protocol::supervision::{Death, REPAIRS_WORDS, Repairs};
use protocol::wire::{CancelScope, Instruction};
use std::os::fd::AsFd;

/// A bench whose orchestrator is supervised: the launcher's side of fences and repairs.
pub(super) fn supervised(capacity: usize) -> (Bench, Launching, Repairs) {
    supervise(bench(capacity, 100))
}

/// The bench, supervised: with the launcher's side of fences and repairs.
pub(super) fn supervise<J: InputLog>(mut bench: Bench<J>) -> (Bench<J>, Launching, Repairs) {
    let launching = Launching::new(Region::heap(PLAN + 8).words());
    let repairs = Region::heap(REPAIRS_WORDS).words();
    let supervision = Supervision::new(launching.control());
    bench.orchestrator = bench.orchestrator.supervised(supervision, RepairsWriter::new(&repairs));
    (bench, launching, Repairs::new(repairs.into()))
}

/// The real death of a real process: there is no other way to one.
pub(super) fn death() -> Death {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pidfd = system::process::pidfd_open(child.id()).unwrap();
    child.wait().unwrap();
    Death::confirm(pidfd.as_fd()).unwrap().unwrap()
}

use protocol::supervision::RepairsWriter;

impl Bench {
    fn with_core(&mut self, change: impl FnOnce(Core) -> Core) {
        let nothing = Core::new(&RiskSetup::open_orders(0, 0, 1)).unwrap();
        let core = std::mem::replace(&mut self.orchestrator.core, nothing);
        self.orchestrator.core = change(core);
    }

    fn expecting(&mut self, orders: &[u64]) {
        self.with_core(|core| core.expecting(orders));
    }

    fn expecting_at_venues(&mut self, orders: &[u64]) {
        self.with_core(|core| core.expecting_at_venues(orders));
    }

    pub(super) fn limit_gateways(&mut self, orders: u64) {
        self.with_core(|core| core.with_gateway_limit(Some(orders)));
    }

    fn cycles(&mut self) {
        for _ in 0..8 {
            self.cycle();
        }
    }

    fn instructions(&mut self, venue: usize) -> Vec<Instruction> {
        std::iter::from_fn(|| self.inboxes[venue].try_pop().unwrap())
            .map(|message| Instruction::from_message(message).unwrap())
            .collect()
    }
}

#[test]
fn what_the_dead_had_sent_is_refused_and_its_venues_are_told() {
    let (mut bench, launching, repairs) = supervised(8);
    bench.send(&order(0, 0, 0), 0);
    bench.cycles();
    bench.instructions(0);
    bench.send(&order(0, 1, 0), 0);
    bench.send(&order(1, 0, 1), 1);
    launching.fence(0, 0, &death());
    bench.cycles();
    let everybody = Instruction::CancelAll(CancelScope::of(OrderId::new(0, 0, 0)));
    assert_eq!(bench.instructions(0), [everybody]);
    let mut to_other = bench.instructions(1);
    to_other.sort_by_key(|instruction| *instruction == everybody);
    assert_eq!(to_other, [Instruction::Order(order(1, 0, 1)), everybody], "the living one's order goes on");
    let repair = repairs.of(0);
    assert_eq!((repair.repaired, repair.refused, repairs.of(1).repaired), (Some(0), 1, None));
    assert!(bench.reports(0).is_empty(), "nobody is there to take a report");
    assert!(bench.points().contains(&Point::Rejected));
    // A report of the dead one's order is settled and not returned.
    bench.completion.try_push(&report(&order(0, 0, 0)).to_message()).unwrap();
    bench.cycles();
    assert!(bench.reports(0).is_empty());
    assert_eq!((repairs.of(0).orphaned, bench.position(0).1), (1, -7));
}

#[test]
fn the_next_incarnation_begins_anew_and_the_old_ids_are_refused() {
    let (mut bench, launching, repairs) = supervised(8);
    bench.send(&order(0, 0, 0), 0);
    bench.cycles();
    launching.fence(0, 0, &death());
    bench.cycles();
    assert_eq!(bench.orchestrator.core.sessions[0].state, SessionState::Dead);
    // The launcher makes the ring anew; here both ends are new.
    let (ring, end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
    let (_, other) = spsc::heap_ring::<MESSAGE_WORDS>(8);
    bench.orchestrator.submit = Mux::new(vec![end, other]);
    bench.submit[0] = ring;
    launching.revive(0, 1);
    bench.instructions(0);
    bench.send(&Order { id: OrderId::new(0, 1, 0), ..order(0, 0, 0) }, 0);
    bench.cycles();
    assert_eq!(bench.instructions(0).len(), 1);
    assert_eq!(bench.orchestrator.core.positions.open(0), 1, "the dead one's open order does not count");
    bench.send(&order(0, 1, 0), 0);
    bench.cycles();
    assert_eq!(repairs.of(0).quarantined, Some((1, Misconduct::WrongEpoch)));
    assert!(bench.instructions(0).is_empty());
}

#[test]
fn one_that_was_started_and_died_between_two_looks_is_retired_too() {
    let (mut bench, launching, repairs) = supervised(8);
    launching.fence(0, 0, &death());
    bench.cycles();
    launching.revive(0, 1);
    launching.fence(0, 1, &death());
    bench.cycles();
    assert_eq!(repairs.of(0).repaired, Some(1));
}

#[test]
fn each_misconduct_has_its_name_and_the_other_goes_on() {
    let wrong_id =
        |strategy, epoch, sequence| Order { id: OrderId::new(strategy, epoch, sequence), ..order(0, 0, 0) };
    for (message, why) in [
        ([u64::MAX; MESSAGE_WORDS], Misconduct::Garbage),
        (Instruction::CancelAll(CancelScope::of(OrderId::new(1, 0, 0))).to_message(), Misconduct::Garbage),
        (wrong_id(1, 0, 0).to_message(), Misconduct::ForeignId),
        (wrong_id(200, 0, 0).to_message(), Misconduct::ForeignId),
        (wrong_id(0, 1, 0).to_message(), Misconduct::WrongEpoch),
        (wrong_id(0, 0, 1).to_message(), Misconduct::OutOfSequence),
    ] {
        let (mut bench, _, repairs) = supervised(8);
        bench.submit[0].try_push(&message).unwrap();
        bench.send(&order(0, 0, 0), 0);
        bench.send(&order(1, 0, 1), 1);
        bench.cycles();
        assert_eq!(repairs.of(0).quarantined, Some((0, why)));
        assert_eq!(bench.instructions(0), [], "nothing more is taken from it");
        assert_eq!(bench.instructions(1).len(), 1);
        assert_eq!(repairs.of(1).quarantined, None);
    }
}

#[test]
fn a_flood_is_quarantined_and_a_mistake_is_not() {
    for (venue, why) in [(9, Misconduct::UnknownVenue), (0, Misconduct::Flood)] {
        let (mut bench, _, repairs) = supervised(256);
        bench.orchestrator.core.risk = risk::Risk::new(&RiskSetup::open_orders(2, 2, 2)).unwrap();
        let first = if venue == 0 { 2 } else { 0 };
        for n in 0..u64::from(TOLERATED_OFFENCES) + first {
            bench.send(&order(0, n, venue), 0);
        }
        (0..20).for_each(|_| bench.cycles());
        assert_eq!(repairs.of(0).quarantined, None, "so many may be a mistake");
        bench.send(&order(0, u64::from(TOLERATED_OFFENCES) + first, venue), 0);
        bench.cycles();
        assert_eq!(repairs.of(0).quarantined, Some((0, why)));
    }
}

#[test]
fn more_orders_than_the_plan_has_are_a_flood() {
    let (mut bench, _, repairs) = supervised(8);
    bench.expecting(&[2, 2]);
    (0..3).for_each(|n| bench.send(&order(0, n, 0), 0));
    bench.cycles();
    assert_eq!(repairs.of(0).quarantined, Some((0, Misconduct::Flood)));
    assert_eq!(bench.instructions(0).len(), 2);
    assert_eq!(bench.points().len(), 4, "nothing is stamped that has no room");
}

#[test]
fn first_order_of_new_incarnation_may_precede_its_fence() {
    // In a ring that strategies share, and through a pipe or a socket of its own, which takes nobody to open it again.
    for from in [None, Some(0)] {
        let (mut bench, launching, repairs) = supervised(8);
        launching.fence(0, 0, &death());
        bench.cycles();
        assert_eq!(bench.orchestrator.core.sessions[0].state, SessionState::Dead);
        // In the middle of a duty cycle, which has looked at the fences already.
        launching.revive(0, 1);
        for sequence in 0..2 {
            let order = Order { id: OrderId::new(0, 1, sequence), ..order(0, 0, 0) };
            bench.orchestrator.take_order(from, order.to_message(), |_| (), &mut bench.cycle);
        }
        assert_eq!((bench.faults(), repairs.of(0).refused), (0, 0), "{from:?}");
        assert_eq!(repairs.of(0).quarantined, None, "{from:?}");
        assert_eq!(bench.orchestrator.core.counts().dispatched, 2, "{from:?}");
    }
}

#[test]
fn in_a_shared_ring_nobody_is_quarantined_for_what_another_may_have_written() {
    for (venue, expecting) in [(9, 10_000), (0, 10_000), (0, 3)] {
        let (mut bench, _, repairs) = supervised(256);
        bench.expecting(&[expecting, 10]);
        bench.orchestrator.core.risk = risk::Risk::new(&RiskSetup::open_orders(2, 2, 2)).unwrap();
        for n in 0..3 * u64::from(TOLERATED_OFFENCES) {
            bench.accept(&order(0, n, venue));
        }
        assert_eq!(repairs.of(0).quarantined, None, "its name is all that is known");
        assert!(bench.faults() > u64::from(TOLERATED_OFFENCES), "it is counted: {}", bench.faults());
        assert_eq!(bench.orchestrator.core.sessions[0].state, SessionState::Alive);
    }
}

#[test]
fn more_orders_to_a_venue_than_the_plan_has_are_refused_and_then_a_flood() {
    let (mut bench, _, repairs) = supervised(256);
    // Strategy 0: one to each venue. Strategy 1: 300 to venue 1.
    bench.expecting_at_venues(&[1, 1, 0, 300]);
    for n in 0..10 {
        bench.send(&order(0, n, 0), 0);
    }
    (0..3).for_each(|n| bench.send(&order(1, n, 1), 1));
    bench.cycles();
    assert_eq!(bench.instructions(0).len(), 1, "the gateway's log has room for one");
    assert_eq!(bench.instructions(1).len(), 3, "the other strategy loses nothing");
    let reports = bench.reports(0);
    let refused = reports.iter().filter(|report| report.reason == Reject::NotPlanned as u8).count();
    assert_eq!((reports.len(), refused), (9, 9));
    assert_eq!(repairs.of(0).quarantined, None, "so many may be a mistake");
    (10..12 + u64::from(TOLERATED_OFFENCES)).for_each(|n| bench.send(&order(0, n, 0), 0));
    (0..20).for_each(|_| bench.cycles());
    assert_eq!(repairs.of(0).quarantined, Some((0, Misconduct::Flood)));
}

#[test]
fn in_a_shared_ring_the_orders_of_the_dead_are_refused_whenever_they_come() {
    let (mut bench, launching, repairs) = supervised(8);
    bench.orchestrator.core.sessions[0].open(2);
    let late = Order { id: OrderId::new(0, 1, 5), ..order(0, 5, 0) };
    bench.accept(&late);
    let next = Order { id: OrderId::new(0, 2, 0), ..order(0, 0, 0) };
    bench.accept(&next);
    launching.fence(0, 2, &death());
    bench.cycles();
    let late = Order { id: OrderId::new(0, 2, 1), ..order(0, 1, 0) };
    bench.accept(&late);
    let points = bench.points();
    assert_eq!(points.iter().filter(|point| **point == Point::Rejected).count(), 2);
    assert_eq!(points.iter().filter(|point| **point == Point::OrchDispatch).count(), 1);
    assert_eq!((repairs.of(0).refused, repairs.of(0).quarantined), (2, None));
}

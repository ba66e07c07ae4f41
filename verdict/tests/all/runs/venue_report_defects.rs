//! Venues that violate the rules for several reports an order, in a whole run: the merge detects
//! each.

use super::broken_links::{SOUND, play_with};
use crate::common::kinds;
use gateway::{CancelSweep, Reports, TimerWheel, Venue, VenueInfo, in_full};
use merge::{MergedRun, ViolationKind};
use protocol::wire::{Order, OrderId, OrderStatus, Report};

/// The defect that a venue applies to some of its orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// Marks the second of three reports as last, and the third as well.
    TwoLast,
    /// Marks none as last.
    NoneLast,
    /// Marks only the first as last: as many last reports as orders.
    TooEarly,
    /// Leaves the second out.
    SkipsOne,
    /// Sends the second twice.
    Doubles,
    /// Sends the first after the second.
    Swaps,
    /// Reports an order that was never sent.
    UnknownOrder,
}

/// Accepts each order at once, and fills it in two parts, each after a delay.
struct FaultyVenue {
    defect: Lie,
    open: TimerWheel<(Order, u8)>,
}

impl FaultyVenue {
    fn has_defect(&self, order: &Order) -> bool {
        order.id.sequence() % 16 == 5
    }
}

const PART: u64 = 40;

impl Venue for FaultyVenue {
    const INFO: VenueInfo =
        VenueInfo { reports_per_order: 5, immediate_reports: 1, reports_release_time: true };

    fn has_capacity(&self) -> bool {
        !self.open.is_full()
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        let defect = if self.has_defect(order) { self.defect } else { Lie::None };
        let number = if defect == Lie::Swaps { 1 } else { 0 };
        let accepted =
            Report { status: OrderStatus::Accepted, filled: 0, number, is_last: false, ..in_full(order) };
        reports.send(Report { is_last: defect == Lie::TooEarly, ..accepted }).unwrap();
        self.open.push(now + PART, (*order, 1));
        Some(now)
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        while reports.has_capacity() {
            let Some((order, number)) = self.open.pop_due(now) else { break };
            let defect = if self.has_defect(&order) { self.defect } else { Lie::None };
            let mut report = Report { number, is_last: number == 2, ..in_full(&order) };
            if number == 1 {
                self.open.push(now + PART, (order, 2));
            }
            match (defect, number) {
                (Lie::TwoLast, 1) => report.is_last = true,
                (Lie::NoneLast | Lie::TooEarly, 2) => report.is_last = false,
                (Lie::SkipsOne, 1) => continue,
                (Lie::Doubles, 1) if reports.send(report).is_err() => continue,
                (Lie::Swaps, 1) => report.number = 0,
                (Lie::UnknownOrder, 1) => {
                    report.id = OrderId::new(order.id.strategy().0, 0, 5_000 + order.id.sequence());
                }
                _ => {}
            }
            // No capacity left: only duplicated reports can cause that.
            let _ = reports.send(report);
        }
    }

    fn next_deadline(&self) -> u64 {
        self.open.next_release()
    }

    fn try_cancel_all(&mut self, _: &mut CancelSweep, _: &mut impl Reports) -> bool {
        true
    }
}

fn play(defect: Lie) -> MergedRun {
    play_with(SOUND, || FaultyVenue { defect, open: TimerWheel::with_capacity(64) })
}

#[test]
fn correct_three_report_venue_has_no_violations() {
    let merged = play(Lie::None);
    assert_eq!(merged.violations, []);
    assert_eq!((merged.orders.returned, merged.orders.further_reports), (200, 400));
    assert_eq!(merged.measured().count(), 200);
}

#[test]
fn every_venue_report_defect_is_detected() {
    for (defect, kind) in [
        (Lie::TwoLast, ViolationKind::LastReport),
        (Lie::NoneLast, ViolationKind::LastReport),
        (Lie::TooEarly, ViolationKind::LastReport),
        (Lie::SkipsOne, ViolationKind::MissingPoint),
        (Lie::Doubles, ViolationKind::Duplicate),
        (Lie::Swaps, ViolationKind::TimeOrder),
        (Lie::UnknownOrder, ViolationKind::NotInPlan),
    ] {
        let merged = play(defect);
        assert!(kinds(&merged).contains(&kind), "{defect:?}: {:?}", merged.violations);
    }
}

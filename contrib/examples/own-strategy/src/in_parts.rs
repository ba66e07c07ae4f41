//! A user-defined venue with several reports per order.

use launcher::gateway::{CancelSweep, Reports, TimerWheel, Venue, VenueContext, VenueInfo, in_full};
use launcher::protocol::wire::{Order, OrderStatus, Report};

/// Minimum delay of each fill, in nanoseconds.
const PART_NS: u64 = 500_000;

/// A venue that accepts each order immediately, fills half of it after half of its delay and the
/// rest after its delay: three reports.
pub struct InParts {
    open: TimerWheel<PartialOrder>,
}

/// An order that is not completely filled.
#[derive(Clone, Copy)]
struct PartialOrder {
    order: Order,
    next: u8,
    left: u64,
}

impl InParts {
    /// Creates the venue with memory for as many orders as the plan requires.
    pub fn new(context: &VenueContext) -> Self {
        Self { open: TimerWheel::with_capacity(context.max_held) }
    }
}

fn part_ns(order: &Order) -> u64 {
    PART_NS.max(order.request.delay_ns / 2)
}

impl Venue for InParts {
    const INFO: VenueInfo =
        VenueInfo { reports_per_order: 3, immediate_reports: 1, reports_release_time: true };

    fn has_capacity(&self) -> bool {
        !self.open.is_full()
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        let full = in_full(order);
        let open = PartialOrder { order: *order, next: 1, left: full.filled };
        self.open.push(now + reports.time().ticks(part_ns(order)), open);
        let accepted = Report { status: OrderStatus::Accepted, filled: 0, is_last: false, ..full };
        // Fits: the venue's info promises one immediate report.
        let _ = reports.send(accepted);
        Some(now)
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        while reports.has_capacity() {
            let Some(PartialOrder { order, next, left }) = self.open.pop_due(now) else { break };
            let is_last = next == 2;
            let (status, filled) =
                if is_last { (OrderStatus::Filled, left) } else { (OrderStatus::PartiallyFilled, left / 2) };
            let _ = reports.send(Report { status, filled, number: next, is_last, ..in_full(&order) });
            if !is_last {
                let open = PartialOrder { order, next: next + 1, left: left - filled };
                // Fits: its entry was just freed.
                self.open.push(now + reports.time().ticks(part_ns(&order)), open);
            }
        }
    }

    fn next_deadline(&self) -> u64 {
        self.open.next_release()
    }

    fn try_cancel_all(&mut self, sweep: &mut CancelSweep, reports: &mut impl Reports) -> bool {
        while reports.has_capacity() {
            let Some(open) = self.open.cancel(sweep, |open| (open.order.id, open.order.request.instrument))
            else {
                break;
            };
            let PartialOrder { order, next, .. } = open;
            let cancelled =
                Report { status: OrderStatus::Cancelled, filled: 0, number: next, ..in_full(&order) };
            let _ = reports.send(cancelled);
        }
        self.open.is_swept(sweep)
    }
}

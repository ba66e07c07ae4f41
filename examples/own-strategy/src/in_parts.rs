//! A venue of one's own with several reports an order.

use launcher::gateway::{Reports, Sweep, TimerWheel, Venue, VenueContext, VenueInfo, in_full};
use launcher::protocol::wire::{Order, OrderStatus, Report};

/// The least that it takes for a part, in nanoseconds.
const PART_NS: u64 = 500_000;

/// Accepts each order at once, fills a half of it after half of the order's delay and the rest
/// after as long again: three reports.
pub struct InParts {
    open: TimerWheel<Open>,
}

/// An order that is not filled yet.
#[derive(Clone, Copy)]
struct Open {
    order: Order,
    /// The number of its next report.
    next: u8,
    /// What is still to be filled.
    left: u64,
}

impl InParts {
    /// One that holds as many orders as the plan asks for.
    pub fn new(context: &VenueContext) -> Self {
        Self { open: TimerWheel::with_capacity(context.max_held) }
    }
}

/// What a part of an order takes, in nanoseconds.
fn part_ns(order: &Order) -> u64 {
    PART_NS.max(order.delay_ns / 2)
}

impl Venue for InParts {
    const RECORD: VenueInfo = VenueInfo { reports_an_order: 3, reports_at_once: 1, tells_release: true };

    fn has_room(&self) -> bool {
        !self.open.is_full()
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        let full = in_full(order);
        let open = Open { order: *order, next: 1, left: full.filled };
        self.open.push(now + reports.time().ticks(part_ns(order)), open);
        let accepted = Report { status: OrderStatus::Accepted, filled: 0, is_last: false, ..full };
        // The record promises one report at once, so there is room for it.
        let _ = reports.send(accepted);
        Some(now)
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        while reports.has_room() {
            let Some(Open { order, next, left }) = self.open.pop_due(now) else { break };
            let is_last = next == 2;
            let (status, filled) =
                if is_last { (OrderStatus::Filled, left) } else { (OrderStatus::PartiallyFilled, left / 2) };
            let _ = reports.send(Report { status, filled, number: next, is_last, ..in_full(&order) });
            if !is_last {
                let open = Open { order, next: next + 1, left: left - filled };
                // It has just left its place, so there is one.
                self.open.push(now + reports.time().ticks(part_ns(&order)), open);
            }
        }
    }

    fn next_deadline(&self) -> u64 {
        self.open.next_release()
    }

    fn cancel_all(&mut self, sweep: &mut Sweep, reports: &mut impl Reports) -> bool {
        while reports.has_room() {
            let Some(open) = self.open.cancel(sweep, |open| (open.order.id, open.order.instrument)) else {
                break;
            };
            let Open { order, next, .. } = open;
            let cancelled =
                Report { status: OrderStatus::Cancelled, filled: 0, number: next, ..in_full(&order) };
            let _ = reports.send(cancelled);
        }
        self.open.is_swept(sweep)
    }
}

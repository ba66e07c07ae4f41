//! Maps orders of the far host's strategies to orders of the one strategy at the engine, and back.

use bridge::frame::Echo;
use launcher::protocol::reject::Reject;
use launcher::protocol::wire::{Operation, Order, OrderId, OrderRequest, OrderStatus, Report};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug)]
struct OpenOrder {
    id: OrderId,
    echo: Echo,
}

/// A map between the far host's ids of its open orders and the engine's sequence numbers of the
/// same orders.
#[derive(Debug)]
pub struct OrderMap {
    /// The engine's venue for the far host's orders.
    venue: u16,
    by_sequence: HashMap<u64, OpenOrder>,
    sequences: HashMap<OrderId, u64>,
}

impl OrderMap {
    /// Creates an empty map of the far host's orders to the engine's venue `venue`, with memory for
    /// `max` open orders, at most 65,536.
    pub fn new(venue: u16, max: usize) -> Self {
        // Twice: a table that is at most half full rehashes in place.
        let capacity = 2 * max.min(1 << 16);
        Self {
            venue,
            by_sequence: HashMap::with_capacity(capacity),
            sequences: HashMap::with_capacity(capacity),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_sequence.is_empty()
    }

    /// Converts a far host's order into a request to the engine; `None` for mass cancels and for
    /// cancels or replaces of orders not open. The caller refuses those.
    pub fn to_engine(&self, order: &Order) -> Option<OrderRequest> {
        let target = match order.request.operation {
            Operation::New => 0,
            Operation::Cancel | Operation::Replace => {
                *self.sequences.get(&OrderId::from_word(order.request.target))?
            }
            Operation::MassCancel => return None,
        };
        // Its trigger refers to market data of the other host.
        Some(OrderRequest { venue: self.venue, target, trigger: 0, ..order.request })
    }

    /// Records that an order of the far host was sent to the engine with the number `sequence`.
    pub fn record_sent(&mut self, sequence: u64, order: &Order, echo: Echo) {
        self.by_sequence.insert(sequence, OpenOrder { id: order.id, echo });
        self.sequences.insert(order.id, sequence);
    }

    /// Converts the engine's report on an order into one for the far host; `None` if that order is
    /// not open. Returns with an order's first report (number 0) also the order's clock readings
    /// (`Echo`).
    pub fn for_far_host(&mut self, report: &Report) -> Option<(Report, Option<Echo>)> {
        let sequence = report.id.sequence();
        let OpenOrder { id, echo } = *self.by_sequence.get(&sequence)?;
        if report.is_last {
            self.by_sequence.remove(&sequence);
            self.sequences.remove(&id);
        }
        Some((Report { id, ..*report }, (report.number == 0).then_some(echo)))
    }
}

/// Builds the closing report, without a fill, for an order that gets no more reports from the
/// engine.
pub const fn last_report(
    order: &Order,
    number: u8,
    cumulative: u64,
    status: OrderStatus,
    reason: Reject,
) -> Report {
    Report { status, reason: reason.code(), filled: 0, cumulative, number, ..Report::full_fill(order) }
}

pub const fn refused(order: &Order, reason: Reject) -> Report {
    last_report(order, 0, 0, OrderStatus::Refused, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: Echo = Echo { sent: 1, received: 2 };

    #[test]
    fn report_returns_under_original_id() {
        let mut desk = OrderMap::new(3, 8);
        let order = OrderRequest { price: 5, quantity: 7, ..OrderRequest::to_venue(0) }
            .with_id(OrderId::new(2, 1, 9));
        let new = desk.to_engine(&order).unwrap();
        assert_eq!((new.venue, new.price, new.quantity), (3, 5, 7));
        desk.record_sent(40, &order, ECHO);
        let cancel = OrderRequest {
            operation: Operation::Cancel,
            target: order.id.word(),
            ..OrderRequest::to_venue(0)
        }
        .with_id(OrderId::new(2, 1, 10));
        assert_eq!(desk.to_engine(&cancel).unwrap().target, 40, "the target is the engine's sequence");
        let there = Order { id: OrderId::new(0, 0, 40), ..order };
        let (report, about) = desk.for_far_host(&Report::full_fill(&there)).unwrap();
        assert_eq!((report.id, about, desk.is_empty()), (order.id, Some(ECHO), true));
        assert!(desk.for_far_host(&Report::full_fill(&there)).is_none(), "once");
        assert!(desk.to_engine(&cancel).is_none(), "nothing is open any more");
    }
}

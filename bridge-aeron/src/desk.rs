//! Maps orders of many far strategies to orders of the one strategy at the engine, and back. There
//! it is an order of one of many strategies, in one of its incarnations; here all are orders of one
//! strategy, numbered in the order in which they were sent.

use bridge::frame::Echo;
use launcher::protocol::reject::Reject;
use launcher::protocol::wire::{Operation, Order, OrderId, OrderStatus, Report};
use launcher::strategy::NewOrder;
use std::collections::HashMap;

/// An order that is open at the engine.
#[derive(Clone, Copy, Debug)]
struct Open {
    id: OrderId,
    echo: Echo,
}

/// The orders that are open.
#[derive(Debug)]
pub struct Desk {
    /// The venue of the engine's that the far host's orders go to.
    venue: u16,
    by_sequence: HashMap<u64, Open>,
    sequences: HashMap<OrderId, u64>,
}

impl Desk {
    /// None yet, of at most so many, for that venue.
    pub fn new(venue: u16, most: usize) -> Self {
        // Twice: a table that is at most half full is tidied in place.
        let room = 2 * most.min(1 << 16);
        Self { venue, by_sequence: HashMap::with_capacity(room), sequences: HashMap::with_capacity(room) }
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.by_sequence.len()
    }

    /// The order as the engine is to have it; `None`: it is about an order that is not open here,
    /// and is refused.
    pub fn to_engine(&self, order: &Order) -> Option<NewOrder> {
        let Order { instrument, operation, side, delay_ns, price, quantity, terms, .. } = *order;
        let target = match operation {
            Operation::New => 0,
            Operation::Cancel | Operation::Replace => {
                *self.sequences.get(&OrderId::from_word(order.target))?
            }
            Operation::MassCancel => return None,
        };
        let new = NewOrder::to_venue(self.venue);
        // Its trigger is market data of the other host's.
        Some(NewOrder { instrument, operation, side, delay_ns, price, quantity, target, terms, ..new })
    }

    /// The engine has it, under that sequence.
    pub fn sent(&mut self, sequence: u64, order: &Order, echo: Echo) {
        self.by_sequence.insert(sequence, Open { id: order.id, echo });
        self.sequences.insert(order.id, sequence);
    }

    /// The report as the far host is to have it, and what it is about; `None`: of no order that is
    /// open.
    pub fn to_far(&mut self, report: &Report) -> Option<(Report, Option<Echo>)> {
        let sequence = report.id.sequence();
        let Open { id, echo } = *self.by_sequence.get(&sequence)?;
        if report.is_last {
            self.by_sequence.remove(&sequence);
            self.sequences.remove(&id);
        }
        Some((Report { id, ..*report }, (report.number == 0).then_some(echo)))
    }
}

/// The last report of an order of which nobody says more, with that number: so much of it was
/// filled.
pub const fn last_report(
    order: &Order,
    number: u8,
    cumulative: u64,
    status: OrderStatus,
    reason: Reject,
) -> Report {
    Report {
        id: order.id,
        venue: order.venue,
        instrument: order.instrument,
        status,
        reason: reason.code(),
        side: order.side,
        price: order.price,
        filled: 0,
        leaves: 0,
        cumulative,
        number,
        is_last: true,
    }
}

/// The report of an order that is not sent.
pub const fn refused(order: &Order, reason: Reject) -> Report {
    last_report(order, 0, 0, OrderStatus::Refused, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: Echo = Echo { sent: 1, seen: 2 };

    #[test]
    fn an_order_comes_back_under_its_own_id() {
        let mut desk = Desk::new(3, 8);
        let order = Order { price: 5, quantity: 7, ..Order::new(OrderId::new(2, 1, 9), 0) };
        let new = desk.to_engine(&order).unwrap();
        assert_eq!((new.venue, new.price, new.quantity), (3, 5, 7));
        desk.sent(40, &order, ECHO);
        let cancel = Order {
            operation: Operation::Cancel,
            target: order.id.word(),
            ..Order::new(OrderId::new(2, 1, 10), 0)
        };
        assert_eq!(desk.to_engine(&cancel).unwrap().target, 40, "the target is the engine's sequence");
        let there = Order { id: OrderId::new(0, 0, 40), ..order };
        let (report, about) = desk.to_far(&Report::full_fill(&there)).unwrap();
        assert_eq!((report.id, about, desk.open()), (order.id, Some(ECHO), 0));
        assert!(desk.to_far(&Report::full_fill(&there)).is_none(), "once");
        assert!(desk.to_engine(&cancel).is_none(), "nothing is open any more");
    }
}

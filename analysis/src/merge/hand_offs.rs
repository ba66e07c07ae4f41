//! One checker for each hand-off: first in, first out. Each sees the stamps at its two ends, in the
//! order of their logs.
//!
//! | hand-off | between | what must hold |
//! |---|---|---|
//! | submit | a strategy and the orchestrator | sequences rise at both ends, and no incarnation begins before its predecessor's last order |
//! | inbox | the orchestrator and a gateway | orders arrive in the order of their dispatch |
//! | completion | a gateway and the orchestrator | reports arrive in the order in which they were pushed |
//! | return | the orchestrator and a strategy | reports arrive in the order in which they were returned |
//!
//! Where both ends have times, whichever log is read second compares them; equal times are in
//! order, since a batch has one.

use super::row::OrderRow;
use super::violation::ViolationKind;
use protocol::stamps::Point;
use protocol::wire::OrderId;

/// What is out of order, and whether it takes a strategy's word to see it.
pub(super) struct OutOfOrder {
    pub kind: ViolationKind,
    pub by_strategy: bool,
    pub what: &'static str,
}

/// Whether a stamp is in order.
pub(super) type InOrder = Result<(), OutOfOrder>;

const fn check(in_order: bool, kind: ViolationKind, what: &'static str) -> InOrder {
    if in_order {
        Ok(())
    } else {
        Err(OutOfOrder { kind, by_strategy: matches!(kind, ViolationKind::ReturnOrder), what })
    }
}

/// Submit, of one incarnation: what the next sequence must not be below.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Submit {
    sent: u64,
    taken: u64,
}

impl Submit {
    /// Whether orders of a lower sequence were sent in this incarnation: one past the last.
    pub const fn next_sent(&self) -> u64 {
        self.sent
    }

    #[inline]
    pub fn sent(&mut self, id: OrderId, newest: &mut Newest) -> InOrder {
        check(
            advance(&mut self.sent, id.sequence()),
            ViolationKind::SendOrder,
            "sent after a later one of its strategy",
        )?;
        let is_late = id.epoch() < newest.sent;
        newest.sent = newest.sent.max(id.epoch());
        check(!is_late, ViolationKind::SendOrder, "sent after the next incarnation of its strategy had begun")
    }

    #[inline]
    pub fn taken(&mut self, id: OrderId, newest: &mut Newest) -> InOrder {
        newest.taken = newest.taken.max(id.epoch());
        check(
            advance(&mut self.taken, id.sequence()),
            ViolationKind::SubmitOrder,
            "reached the orchestrator after a later one of its strategy",
        )
    }
}

/// The newest incarnation of a strategy so far: once one has begun, its predecessors are dead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newest {
    /// Among those that sent, in the order of the strategy's log.
    sent: u16,
    /// Among those whose orders were taken, in the order of the orchestrator's log. An order of a
    /// predecessor may still come out of a ring that several write; it is refused then, never
    /// dispatched.
    taken: u16,
}

impl Newest {
    #[inline]
    pub fn dispatched(&self, id: OrderId) -> InOrder {
        let what = "dispatched after the next incarnation of its strategy had begun";
        check(id.epoch() >= self.taken, ViolationKind::SubmitOrder, what)
    }
}

/// Inbox and completion, of one gateway.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gateway {
    /// The latest t4 of the orders dispatched (or t3 of the orders received), whichever log is read
    /// second.
    last_dispatch: u64,
    /// Reports that it has pushed.
    pushed: u64,
    /// The position that the next report to arrive must not be below.
    next_completion: u64,
}

impl Gateway {
    /// One end of the inbox was stamped; `other` is the time at the other end, if its log was read
    /// before.
    #[inline]
    pub fn inbox(&mut self, other: Option<u64>) -> InOrder {
        let in_order = other.is_none_or(|ticks| rises(&mut self.last_dispatch, ticks));
        check(
            in_order,
            ViolationKind::DispatchOrder,
            "reached its gateway in another order than it was dispatched",
        )
    }

    /// A report is pushed: its position among the gateway's.
    #[inline]
    pub const fn push(&mut self) -> u64 {
        self.pushed += 1;
        self.pushed - 1
    }

    /// The report at that position has arrived.
    #[inline]
    pub fn completion(&mut self, position: u64) -> InOrder {
        let in_order = advance(&mut self.next_completion, position);
        check(in_order, ViolationKind::CompletionOrder, "its report arrived after a later one of its gateway")
    }
}

/// Return, of one incarnation: the latest t8 of a report returned (or t7 of one received),
/// whichever log is read second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Return {
    last: u64,
}

impl Return {
    /// One end was stamped; `other` is the time at the other end, if its log was read before.
    #[inline]
    pub fn stamped(&mut self, other: Option<u64>) -> InOrder {
        let in_order = other.is_none_or(|ticks| rises(&mut self.last, ticks));
        check(
            in_order,
            ViolationKind::ReturnOrder,
            "reached its strategy in another order than it was returned",
        )
    }
}

/// The other end of the return hand-off.
#[inline]
pub(super) const fn other_end(point: Point) -> Point {
    if matches!(point, Point::OrchReturn) { Point::StrategyRecv } else { Point::OrchReturn }
}

/// The gateway that an order is at, by its own stamps.
#[inline]
pub(super) fn gateway_of<'a>(gateways: &'a mut [Gateway], row: &OrderRow) -> Option<&'a mut Gateway> {
    row.pushed().and_then(|(gateway, _)| gateways.get_mut(gateway))
}

/// Moves a cursor past `position`; `false` if it was past it before.
#[inline]
fn advance(next: &mut u64, position: u64) -> bool {
    let in_order = position >= *next;
    if in_order {
        *next = position + 1;
    }
    in_order
}

/// Moves a time forward; `false` if it would go back.
#[inline]
fn rises(last: &mut u64, ticks: u64) -> bool {
    let in_order = ticks >= *last;
    if in_order {
        *last = ticks;
    }
    in_order
}

//! Checks that every hand-off delivered first in, first out. A checker sees the stamps of both
//! ends, in log order.
//!
//! | hand-off | between | what must hold |
//! |---|---|---|
//! | submit | strategy → orchestrator | sequences ascend at both ends, epoch by epoch |
//! | inbox | orchestrator → gateway | orders arrive in the order of their dispatch |
//! | completion | gateway → orchestrator | reports arrive in the order of their pushes |
//! | return | orchestrator → strategy | reports arrive in the order of their returns |
//!
//! Where both ends have times, they are compared when the second log is read. Equal times are in
//! order, since a batch has one time.

use super::row::OrderRow;
use super::violation::ViolationKind;
use protocol::index::StrategyIndex;
use protocol::stamps::Point;
use protocol::wire::OrderId;

pub(super) struct OutOfOrder {
    pub kind: ViolationKind,
    pub description: &'static str,
}

impl OutOfOrder {
    /// Returns the order's strategy if the violation rests on that strategy's stamps alone, which
    /// holds at the return hand-off; otherwise `None`.
    pub fn sole_source(&self, id: OrderId) -> Option<StrategyIndex> {
        (self.kind == ViolationKind::ReturnOrder).then_some(id.strategy())
    }
}

pub(super) type OrderCheck = Result<(), OutOfOrder>;

const fn check(in_order: bool, kind: ViolationKind, description: &'static str) -> OrderCheck {
    if in_order { Ok(()) } else { Err(OutOfOrder { kind, description }) }
}

/// Checks that one incarnation's orders pass the submit hand-off in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SubmitOrder {
    /// Minimum sequence of the next sent order: one past that of the last one.
    pub sent: u64,
    taken: u64,
}

impl SubmitOrder {
    /// Checks that an order's stamp t1 (sent) follows those of the strategy's earlier orders.
    #[inline]
    pub fn on_sent(&mut self, id: OrderId, newest: &mut NewestEpochs) -> OrderCheck {
        let in_order = advance(&mut self.sent, id.sequence());
        check(in_order, ViolationKind::SendOrder, "sent after a later one of its strategy")?;
        let is_late = id.epoch() < newest.sent;
        newest.sent = newest.sent.max(id.epoch());
        check(!is_late, ViolationKind::SendOrder, "sent after the next incarnation of its strategy had begun")
    }

    /// Checks that the orchestrator took an order after its incarnation's earlier orders, by
    /// sequence number.
    #[inline]
    pub fn on_taken(&mut self, id: OrderId, newest: &mut NewestEpochs) -> OrderCheck {
        newest.taken = newest.taken.max(id.epoch());
        let in_order = advance(&mut self.taken, id.sequence());
        let description = "reached the orchestrator after a later one of its strategy";
        check(in_order, ViolationKind::SubmitOrder, description)
    }
}

/// The newest epoch of a strategy whose orders arrived: once it has begun, its predecessors are
/// dead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewestEpochs {
    /// Newest epoch among sent orders, in the order of the strategy's log.
    sent: u16,
    /// Newest epoch among received orders, in the order of the orchestrator's log. A predecessor's
    /// order may still come out of a shared ring; it is then refused and never dispatched.
    taken: u16,
}

impl NewestEpochs {
    /// Checks that an order is not dispatched after the next incarnation of its strategy has begun.
    #[inline]
    pub fn on_dispatch(&self, id: OrderId) -> OrderCheck {
        let description = "dispatched after the next incarnation of its strategy had begun";
        check(id.epoch() >= self.taken, ViolationKind::SubmitOrder, description)
    }
}

/// Checks that one gateway's messages pass the inbox and the completion hand-off in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GatewayOrder {
    /// Latest t4 of the dispatched orders (or t3 of the received ones), whichever log is read
    /// second.
    last_dispatch: u64,
    pushed: u64,
    /// Minimum position of the next report to arrive.
    next_completion: u64,
}

impl GatewayOrder {
    /// Checks that orders reach their gateway in the order of dispatch, given an order's stamp at
    /// one end of the inbox. `other` is the order's tick at the other end, if known.
    #[inline]
    pub fn on_inbox(&mut self, other: Option<u64>) -> OrderCheck {
        let in_order = other.is_none_or(|ticks| advance_time(&mut self.last_dispatch, ticks));
        let description = "reached its gateway in another order than it was dispatched";
        check(in_order, ViolationKind::DispatchOrder, description)
    }

    /// Counts a report that the gateway pushed to the orchestrator. Returns its position among the
    /// gateway's reports.
    #[inline]
    pub const fn push(&mut self) -> u64 {
        self.pushed += 1;
        self.pushed - 1
    }

    /// Checks that a gateway's report number `position` reached the orchestrator after the
    /// gateway's earlier reports.
    #[inline]
    pub fn on_completion(&mut self, position: u64) -> OrderCheck {
        let in_order = advance(&mut self.next_completion, position);
        check(in_order, ViolationKind::CompletionOrder, "its report arrived after a later one of its gateway")
    }
}

/// Checks that one incarnation's reports pass the return hand-off in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReturnOrder {
    last: u64,
}

impl ReturnOrder {
    /// Checks that reports reach their strategy in the order of their returns, given a report's
    /// stamp at one end of the return hand-off. `other` is the report's tick at the other end, if
    /// known.
    #[inline]
    pub fn on_stamp(&mut self, other: Option<u64>) -> OrderCheck {
        let in_order = other.is_none_or(|ticks| advance_time(&mut self.last, ticks));
        let description = "reached its strategy in another order than it was returned";
        check(in_order, ViolationKind::ReturnOrder, description)
    }
}

#[inline]
pub(super) const fn other_end(point: Point) -> Point {
    if matches!(point, Point::OrchReturn) { Point::StrategyRecv } else { Point::OrchReturn }
}

/// Returns the gateway that served an order, derived from its stamps.
#[inline]
pub(super) fn gateway_of<'a>(
    gateways: &'a mut [GatewayOrder],
    row: &OrderRow,
) -> Option<&'a mut GatewayOrder> {
    row.pushed().and_then(|(gateway, _)| gateways.get_mut(gateway))
}

/// Moves a cursor past `position`. Returns `false` if it was already past it.
#[inline]
fn advance(next: &mut u64, position: u64) -> bool {
    let in_order = position >= *next;
    if in_order {
        *next = position + 1;
    }
    in_order
}

/// Moves a time forward. Returns `false` if it would go back.
#[inline]
fn advance_time(last: &mut u64, ticks: u64) -> bool {
    let in_order = ticks >= *last;
    if in_order {
        *last = ticks;
    }
    in_order
}

//! Where the core's outputs go, in the order in which it produces them.

use protocol::commands::{CommandChannel, CommandStatus};
use protocol::record::Point;
use protocol::supervision::{GatewayCounts, ProtocolViolation};
use protocol::wire::{Message, OrderId, Report};

/// A notice to supervision or operators, off the path of orders. `ticks` is a time of the run's
/// clock, `noticed` is in ticks since the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say all")]
pub enum Notice {
    /// A command is in force (`None`: since now) and cancels `orders` open orders.
    CommandSeen { number: u32, ticks: Option<u64>, orders: u64 },
    /// The last order that a command cancels is confirmed.
    CommandDone { number: u32, ticks: u64 },
    /// A command cannot be carried out.
    CommandRefused { number: u32, why: CommandStatus },
    /// So many orders were rejected for a reason since the start of the run.
    Rejections { reason: u8, count: u64 },
    /// Nothing more is accepted from an incarnation.
    Quarantined { strategy: u16, epoch: u16, why: ProtocolViolation },
    /// Nothing is left of a dead incarnation, whose fence was seen at `noticed`.
    Retired { strategy: u16, epoch: u16, noticed: u64 },
    /// Nothing is left of a gateway's dead incarnation, whose fence was seen at `noticed`.
    GatewayRepaired { gateway: u16, epoch: u16, noticed: u64, counts: GatewayCounts },
    /// Orders refused because their sender was dead, and reports that no incarnation was there to
    /// take, since the start.
    DeadCounts { strategy: u16, refused: u64, orphaned: u64 },
}

impl Notice {
    /// Says at the desk what is for operators. `now` returns the time of the run's clock, in ticks.
    pub(crate) fn say(self, desk: &CommandChannel, now: impl Fn() -> u64) {
        match self {
            Self::CommandSeen { number, ticks, orders } => {
                desk.mark_seen(number, ticks.unwrap_or_else(now), orders)
            }
            Self::CommandDone { number, ticks } => desk.mark_done(number, ticks),
            Self::CommandRefused { number, why } => desk.mark_refused(number, now(), why),
            Self::Rejections { reason, count } => desk.set_rejections(reason, count),
            _ => {}
        }
    }
}

/// Where outputs go: rings and stamps in the live engine, a ledger in a journal's replica, a list
/// in tests. An output is never refused; an implementation queues what does not fit.
pub trait Effects {
    /// Stamps an intermediate point now, unless the run stamps only the ends.
    fn stamp(&mut self, point: Point, id: OrderId, detail: u8);

    /// Logs a point now. Returns the time in ticks.
    fn log_now(&mut self, point: Point, id: OrderId, detail: u8) -> u64;

    /// Logs a point with a value that is not a time.
    fn log_value(&mut self, point: Point, id: OrderId, value: u64);

    /// Performs the configured extra work of an order (`--work`).
    fn work(&mut self) {}

    /// Sends an order or an instruction to a gateway.
    fn to_gateway(&mut self, gateway: usize, message: &Message);

    /// Stamps a report as returned and sends it to its strategy's living incarnation.
    fn to_strategy(&mut self, report: &Report, message: &Message);

    /// Queued orders may have to be recalled: see [`Core::must_recall`](super::Core::must_recall).
    fn recall(&mut self) {}

    /// Drops what is queued for a strategy whose incarnation is dead.
    fn close(&mut self, strategy: usize);

    /// Attaches to a strategy's memory, which was made again for its next incarnation.
    fn reopen(&mut self, strategy: usize);

    /// Drops what is queued for a gateway whose incarnation is dead.
    fn close_gateway(&mut self, gateway: usize);

    /// Attaches to the memory of a gateway, which was made again for its next incarnation; its
    /// inbox too, unless it `keeps_inbox`.
    fn reopen_gateway(&mut self, gateway: usize, keeps_inbox: bool);

    /// Tells supervision or operators.
    fn notify(&mut self, notice: Notice);
}

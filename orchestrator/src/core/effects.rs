//! Where the core's outputs go, in the order in which it produces them.

use protocol::desk::Status;
use protocol::record::Point;
use protocol::supervision::Misconduct;
use protocol::wire::{Message, OrderId, Report};

/// What the core says to supervision and to operators. None of it is on the path of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A command is in force.
    CommandSeen {
        /// The command's number.
        number: u32,
        /// When it came into force, in ticks; `None`: now.
        ticks: Option<u64>,
        /// Open orders that it cancels.
        orders: u64,
    },
    /// The last order that a command cancels is confirmed.
    CommandDone {
        /// The command's number.
        number: u32,
        /// When that was, in ticks.
        ticks: u64,
    },
    /// A command cannot be carried out.
    CommandRefused {
        /// The command's number.
        number: u32,
        /// Why.
        why: Status,
    },
    /// An order was rejected.
    Rejections {
        /// The reason's code.
        reason: u8,
        /// Orders rejected for it since the start of the run.
        count: u64,
    },
    /// Nothing more is taken from a strategy's incarnation.
    Quarantined {
        /// The strategy.
        strategy: u16,
        /// The incarnation.
        epoch: u16,
        /// What it did.
        why: Misconduct,
    },
    /// Nothing waits for a dead incarnation any more.
    Retired {
        /// The strategy.
        strategy: u16,
        /// The incarnation.
        epoch: u16,
        /// When its fence was seen, in ticks.
        noticed: u64,
    },
    /// Nothing waits for a gateway's dead incarnation any more.
    GatewayRepaired {
        /// The gateway.
        gateway: u16,
        /// The incarnation.
        epoch: u16,
        /// When its fence was seen, in ticks.
        noticed: u64,
        /// Orders that were open there when an incarnation died, since the start of the run.
        unknown: u64,
    },
    /// Counts of a strategy's dead incarnations, since the start of the run.
    DeadCounts {
        /// The strategy.
        strategy: u16,
        /// Orders that were refused because their sender was dead.
        refused: u64,
        /// Reports that no living incarnation was there to take.
        orphaned: u64,
    },
}

/// Where outputs go. Implemented by the live engine, by the replica of a journal, and by a list in tests.
///
/// An output is never refused: an implementation keeps what does not fit.
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

    /// Orders that are queued for a gateway may have become orders that must not go: see [`Core::must_recall`](super::Core::must_recall).
    fn recall(&mut self) {}

    /// A strategy's incarnation is dead: nothing is returned to it any more.
    fn close(&mut self, strategy: usize);

    /// A strategy's memory was made again for its next incarnation.
    fn reopen(&mut self, strategy: usize);

    /// A gateway's incarnation is dead: nothing that is queued for it goes to it any more.
    fn close_gateway(&mut self, gateway: usize);

    /// A gateway's next incarnation takes orders.
    fn reopen_gateway(&mut self, gateway: usize);

    /// Says something to supervision or operators.
    fn notify(&mut self, notice: Notice);
}

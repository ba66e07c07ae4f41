//! The core's outputs, in the order in which it produces them.

use crate::positions::Account;
use protocol::commands::{CommandChannel, CommandStatus};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::record::Point;
use protocol::supervision::{GatewayCounts, ProtocolViolation};
use protocol::wire::{Message, OrderId, Report};

/// A message from the engine to operators, such as the answer to a command, published outside the
/// order path. `ticks` is a time of the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say all")]
pub enum OperatorNotice {
    /// An operator's command (by number) is in force since `ticks` (`None`: since now) and cancels
    /// `orders` open orders.
    CommandSeen { number: u32, ticks: Option<u64>, orders: u64 },
    /// The cancel of the last order that a command cancels was confirmed at `ticks`.
    CommandDone { number: u32, ticks: u64 },
    /// An operator's command was refused, for the reason `why`.
    CommandRefused { number: u32, why: CommandStatus },
    /// Number of orders rejected for one reason since the start of the run.
    Rejections { reason: u8, count: u64 },
}

impl OperatorNotice {
    pub(crate) fn publish(self, channel: &CommandChannel, now: impl Fn() -> u64) {
        match self {
            Self::CommandSeen { number, ticks, orders } => {
                channel.mark_seen(number, ticks.unwrap_or_else(now), orders)
            }
            Self::CommandDone { number, ticks } => channel.mark_done(number, ticks),
            Self::CommandRefused { number, why } => channel.mark_refused(number, now(), why),
            Self::Rejections { reason, count } => channel.set_rejections(reason, count),
        }
    }
}

/// A message from the engine to the launcher about a strategy or gateway that misbehaved or died,
/// outside the order path. `noticed` is in ticks since the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say all")]
pub enum LifecycleNotice {
    /// An incarnation of a strategy misbehaved: nothing more is accepted from it.
    Quarantined { strategy: StrategyIndex, epoch: u16, why: ProtocolViolation },
    /// The repair after a dead incarnation has ended; its fence was seen at the tick `noticed`.
    Retired { strategy: StrategyIndex, epoch: u16, noticed: u64 },
    /// The repair after a dead gateway has ended; its fence was seen at the tick `noticed`.
    GatewayRepaired { gateway: GatewayIndex, epoch: u16, noticed: u64, counts: GatewayCounts },
    /// Number of orders of a dead strategy that were refused, and number of reports that had no
    /// receiver.
    DeadCounts { strategy: StrategyIndex, refused: u64, orphaned: u64 },
}

/// The receiver of the engine's outputs: rings in the live engine, a ledger in a replica, a list in
/// tests. An output is never refused; implementations queue what does not fit.
pub trait Effects {
    /// Returns the receiver as a trait object, for the code off the path of orders: that code is
    /// compiled once for all receivers.
    fn off_path(&mut self) -> &mut dyn Effects;

    /// Logs that an order passes an inner point of its path, unless the run stamps only the ends.
    fn stamp(&mut self, point: Point, id: OrderId, detail: u8);

    /// Logs that an order passes a point of its path now. Returns the time in ticks.
    fn log_now(&mut self, point: Point, id: OrderId, detail: u8) -> u64;

    /// Logs a record about an order whose value is not a time.
    fn log_value(&mut self, point: Point, id: OrderId, value: u64);

    /// Performs the configured extra work of an order (`--work`).
    fn work(&mut self) {}

    /// Sends an order or an instruction to a gateway.
    fn to_gateway(&mut self, gateway: GatewayIndex, message: &Message);

    /// Sends a report to its strategy's current incarnation, and stamps it.
    fn to_strategy(&mut self, report: &Report, message: &Message);

    /// Recalls orders from the queues to gateways: those that must not be sent any more. See
    /// [`Core::should_recall`](super::Core::should_recall).
    fn recall(&mut self) {}

    /// Drops the queued reports to a strategy whose incarnation is dead.
    fn close(&mut self, strategy: StrategyIndex);

    /// Attaches to the reset memory of a strategy's next incarnation.
    fn renew(&mut self, strategy: StrategyIndex);

    /// Publishes the positions that a strategy's next incarnation inherits, by instrument.
    fn publish_positions(&mut self, strategy: StrategyIndex, accounts: &[Account]) {
        let _ = (strategy, accounts);
    }

    /// Drops the queued messages to a gateway whose incarnation is dead.
    fn close_gateway(&mut self, gateway: GatewayIndex);

    /// Attaches to the reset memory of a gateway's next incarnation, and to its new inbox unless
    /// `keeps_inbox`.
    fn renew_gateway(&mut self, gateway: GatewayIndex, keeps_inbox: bool);

    /// Publishes a notice for operators.
    fn notify_operators(&mut self, notice: OperatorNotice);

    /// Publishes a notice for the launcher.
    fn notify_launcher(&mut self, notice: LifecycleNotice);
}

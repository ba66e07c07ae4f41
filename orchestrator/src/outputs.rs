//! The sending ends of the live engine, with a queue each: gateway inboxes and strategies' report
//! rings.
//!
//! No message is refused: one that finds its ring full is queued. Each receiver has its own queue,
//! so a slow venue or strategy delays no other.

use crate::engine::LifecycleNotice;
use crate::positions::Account;
use protocol::agent::Cycle;
use protocol::commands::CommandChannel;
use protocol::index::{GatewayIndex, PerGateway, PerStrategy, StrategyIndex};
use protocol::positions;
use protocol::record::Point;
use protocol::sender::{SendOutcome, Sender};
use protocol::supervision::{BlockedClaim, GatewayRepair, RepairsWriter};
use protocol::wire::{Message, Report};
use shm::memory::AtomicWords;
use std::collections::VecDeque;
use system::clock::Clock;
use system::work::TimedWork;

/// Maximum number of messages of each kind per duty cycle, so that neither direction starves the
/// other.
pub(crate) const BATCH: usize = 16;

/// The live engine's senders: its rings to gateways and strategies, and its answers to operators.
#[derive(Default)]
pub struct Outputs {
    pub(crate) gateways: PerGateway<Sender>,
    pub(crate) strategies: PerStrategy<Sender>,
    /// Reports that await durability, in order, each with the journal record that must be durable
    /// first.
    pub(crate) deferred: VecDeque<(u64, Message)>,
    pub(crate) commands: Option<CommandChannel>,
    pub(crate) repairs: Option<RepairsWriter>,
    /// The segments with the positions that successors inherit; empty without any.
    pub(crate) inherited_positions: PerStrategy<AtomicWords>,
    pub(crate) work: TimedWork,
    /// The slot that blocked the submit hand-off at its last inspection.
    pub(crate) blocked_claim: Option<BlockedClaim>,
    pub(crate) has_queued_reports: bool,
    pub(crate) recall_is_due: bool,
    pub(crate) overflowed: Option<StrategyIndex>,
    pub(crate) returned: u64,
    pub(crate) full: u64,
    pub(crate) pending: u64,
    pub(crate) pending_peak: u64,
}

impl Outputs {
    /// Creates the engine's outputs with empty queues for the given rings. `gateways` has an entry
    /// per venue and credential, the credentials of a venue next to each other, `strategies` one
    /// per strategy.
    pub fn new(gateways: Vec<Sender>, strategies: Vec<Sender>, work: TimedWork) -> Self {
        Self { gateways: gateways.into(), strategies: strategies.into(), work, ..Self::default() }
    }

    /// Adds the command channel in which the engine answers operators' commands.
    #[must_use]
    pub fn with_commands(self, commands: CommandChannel) -> Self {
        Self { commands: Some(commands), ..self }
    }

    /// Adds the shared-memory segments with the positions that restarted strategies inherit: one
    /// per strategy, or none.
    #[must_use]
    pub fn with_inherited_positions(self, segments: Vec<AtomicWords>) -> Self {
        Self { inherited_positions: segments.into(), ..self }
    }

    pub(crate) fn publish_positions(&self, strategy: StrategyIndex, accounts: &[Account]) {
        if let Some(segment) = self.inherited_positions.get(strategy) {
            positions::write(segment, accounts.iter().map(|account| (account.net, account.average_price())));
        }
    }

    #[inline(always)]
    pub(crate) fn send_to_gateway(&mut self, gateway: GatewayIndex, message: &Message) {
        if self.gateways[gateway].push(message) != SendOutcome::Ring {
            self.full += 1;
            self.count_pending(1);
        }
    }

    #[cold]
    pub(crate) fn count_pending(&mut self, queued: u64) {
        self.pending += queued;
        self.pending_peak = self.pending_peak.max(self.pending);
    }

    #[cold]
    pub(crate) fn flush_pending(&mut self) -> usize {
        let moved = self.gateways.iter_mut().map(|gateway| gateway.flush(BATCH)).sum();
        self.pending -= moved as u64;
        moved
    }

    pub(crate) fn recall(&mut self, gateway: GatewayIndex, message: &Message) {
        self.pending -= u64::from(self.gateways[gateway].recall(|queued| queued == message).is_some());
    }

    pub(crate) fn close_gateway(&mut self, gateway: GatewayIndex) {
        let sender = &mut self.gateways[gateway];
        self.pending -= sender.queued() as u64;
        sender.clear();
    }

    /// Stamps the return of a report and sends it: the one door of reports to strategies. One that
    /// waited for the journal may be of a dead incarnation by now: it is stamped only, because the
    /// stamps follow from the order of reports.
    #[inline(always)]
    pub(crate) fn return_report<C: Clock>(
        &mut self,
        report: &Report,
        message: &Message,
        is_current: bool,
        cycle: &mut Cycle<C>,
    ) {
        cycle.stamp_inner_with(Point::OrchReturn, report.id, report.number);
        if is_current {
            self.send_to_strategy(report.id.strategy(), message);
        }
    }

    #[inline(always)]
    fn send_to_strategy(&mut self, strategy: StrategyIndex, message: &Message) {
        match self.strategies[strategy].push(message) {
            SendOutcome::Ring => self.returned += 1,
            SendOutcome::Queued => {
                self.full += 1;
                self.has_queued_reports = true;
            }
            // More than its open orders can have, unless another strategy sent orders in its name.
            SendOutcome::Dropped => self.overflowed = Some(strategy),
        }
    }

    #[cold]
    pub(crate) fn flush_returns(&mut self) -> usize {
        let moved = self.strategies.iter_mut().map(|strategy| strategy.flush(usize::MAX)).sum();
        self.has_queued_reports = self.strategies.iter().any(Sender::has_queued);
        self.returned += moved as u64;
        moved
    }

    /// Publishes a notice for the launcher. Not generic: compiled once for all techniques.
    #[cold]
    pub(crate) fn notify_launcher(
        &mut self,
        notice: LifecycleNotice,
        start_ticks: u64,
        now: &dyn Fn() -> u64,
    ) {
        let Self { repairs: Some(repairs), blocked_claim, gateways, .. } = self else { return };
        let noticed_ticks = |noticed| start_ticks + noticed;
        match notice {
            LifecycleNotice::Quarantined { strategy, epoch, why } => {
                repairs.quarantine(strategy, epoch, why, now());
            }
            LifecycleNotice::Retired { strategy, epoch, noticed } => {
                // Before the repair is published: the launcher then reads no slot of the dead.
                if blocked_claim.is_some_and(|at| at.announcer == Some(strategy)) {
                    *blocked_claim = None;
                    repairs.set_blocked(None);
                }
                repairs.set_repaired(strategy, epoch, noticed_ticks(noticed), now());
            }
            LifecycleNotice::GatewayRepaired { gateway, epoch, noticed, counts } => {
                let inbox = &gateways[gateway];
                let repair = GatewayRepair {
                    repaired: None,
                    noticed_ticks: noticed_ticks(noticed),
                    repaired_ticks: now(),
                    counts,
                    inbox_end: inbox.ring().published() + inbox.queued() as u64,
                };
                repairs.set_gateway_repaired(gateway, epoch, &repair);
            }
            LifecycleNotice::DeadCounts { strategy, refused, orphaned } => {
                repairs.set_counts(strategy, refused, orphaned);
            }
        }
    }
}

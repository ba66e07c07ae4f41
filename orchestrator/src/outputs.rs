//! Where the live engine's messages go: gateways' inboxes and strategies' return rings.
//!
//! Nothing here refuses a message. What finds its ring full is queued and goes when there is room.
//! Each receiver has a queue of its own, so a venue or strategy that takes nothing delays no other.

use protocol::commands::CommandChannel;
use protocol::sender::{SendOutcome, Sender};
use protocol::supervision::{BlockedClaim, RepairsWriter};
use protocol::wire::Message;
use std::collections::VecDeque;
use system::work::TimedWork;

/// Messages of one gateway's queue that a duty cycle moves at most.
const BATCH: usize = 16;

/// Everything that the live engine writes to, but its log and its journal.
#[derive(Default)]
pub struct Outputs {
    pub(crate) gateways: Vec<Sender>,
    /// Bounded: there is room for all reports that a strategy's open orders can have.
    pub(crate) strategies: Vec<Sender>,
    /// Reports that wait for the journal, in order, each with the record that must be durable
    /// first.
    pub(crate) deferred: VecDeque<(u64, Message)>,
    pub(crate) desk: Option<CommandChannel>,
    pub(crate) repairs: Option<RepairsWriter>,
    pub(crate) work: TimedWork,
    /// A place of the submit hand-off that is claimed and not written, as of the last look.
    pub(crate) standstill: Option<BlockedClaim>,
    /// Reports may be queued for a strategy.
    pub(crate) has_queued_reports: bool,
    /// Queued orders may have to be recalled.
    pub(crate) recall_is_due: bool,
    /// A strategy whose queue had no room for a report.
    pub(crate) overflowed: Option<usize>,
    /// Reports put into return rings.
    pub(crate) returned: u64,
    /// Messages that found their ring full.
    pub(crate) full: u64,
    /// Messages that are queued for gateways.
    pub(crate) pending: u64,
    /// The most messages that were queued for gateways at once.
    pub(crate) pending_peak: u64,
}

impl Outputs {
    /// Outputs with nothing queued; `gateways` has one entry for each venue and credential, the
    /// credentials of a venue next to each other, `strategies` one for each strategy.
    pub fn new(gateways: Vec<Sender>, strategies: Vec<Sender>, work: TimedWork) -> Self {
        Self { gateways, strategies, work, ..Self::default() }
    }

    /// Takes commands from operators at this desk.
    #[must_use]
    pub fn commanded(self, desk: CommandChannel) -> Self {
        Self { desk: Some(desk), ..self }
    }

    #[inline(always)]
    pub(crate) fn send_to_gateway(&mut self, gateway: usize, message: &Message) {
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

    /// Moves queued messages into inboxes, as far as there is room. Returns how many.
    #[cold]
    pub(crate) fn flush_pending(&mut self) -> usize {
        let moved = self.gateways.iter_mut().map(|gateway| gateway.flush(BATCH)).sum();
        self.pending -= moved as u64;
        moved
    }

    /// Removes the first message queued for a gateway that `is_meant`.
    pub(crate) fn recall(&mut self, gateway: usize, is_meant: impl Fn(&Message) -> bool) {
        self.pending -= u64::from(self.gateways[gateway].recall(is_meant).is_some());
    }

    pub(crate) fn close_gateway(&mut self, gateway: usize) {
        let sender = &mut self.gateways[gateway];
        self.pending -= sender.queued() as u64;
        sender.clear();
    }

    #[inline(always)]
    pub(crate) fn send_to_strategy(&mut self, strategy: usize, message: &Message) {
        match self.strategies[strategy].push(message) {
            SendOutcome::Ring => self.returned += 1,
            SendOutcome::Queued => {
                self.full += 1;
                self.has_queued_reports = true;
            }
            // More than the strategy's open orders can have, unless another one sent orders in its
            // name.
            SendOutcome::Dropped => self.overflowed = Some(strategy),
        }
    }

    /// Moves queued reports into return rings, as far as there is room. Returns how many.
    #[cold]
    pub(crate) fn flush_returns(&mut self) -> usize {
        let moved = self.strategies.iter_mut().map(|strategy| strategy.flush(usize::MAX)).sum();
        self.has_queued_reports = self.strategies.iter().any(Sender::has_queued);
        self.returned += moved as u64;
        moved
    }
}

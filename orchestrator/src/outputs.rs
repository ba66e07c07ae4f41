//! Where the live engine's messages go: gateways' inboxes, strategies' return rings, and the queues in front of both.
//!
//! Nothing here refuses a message. What finds its ring full is queued and goes when there is room.

use crate::pending::PendingMessages;
use crate::returns::{Pushed, ReturnPath};
use crate::work::Work;
use protocol::desk::Desk;
use protocol::supervision::{RepairsWriter, Standstill};
use protocol::wire::{Message, OrderId, Report};
use shm::bell::Bell;
use shm::ring::spsc;
use std::collections::VecDeque;

/// Messages of one gateway's queue that a duty cycle moves at most.
const BATCH: usize = 16;

/// Messages for all gateways together that memory is allocated for unless [`Outputs::with_capacity`] says otherwise.
const DEFAULT_CAPACITY: u32 = 64;

/// A gateway's inbox and the bell of the gateway's thread, where that parks.
pub struct Inbox {
    /// The ring.
    pub ring: spsc::Producer,
    /// The bell, unless the gateway polls or shares the engine's thread.
    pub bell: Option<Bell>,
}

impl Inbox {
    /// The inbox with this ring.
    pub fn new(ring: spsc::Producer, bell: Option<Bell>) -> Self {
        Self { ring, bell }
    }

    /// Sends a message. Returns `false` if the ring is full.
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        if self.ring.try_push(message).is_err() {
            return false;
        }
        self.ring_bell();
        true
    }

    #[inline(always)]
    fn ring_bell(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }
}

/// A report that waits for its journal record to be durable.
pub(crate) struct DeferredReport {
    pub id: OrderId,
    pub number: u8,
    pub message: Message,
    /// The record that must be durable first.
    pub record: u64,
}

/// Everything that the live engine writes to, but its log and its journal.
pub struct Outputs {
    pub(crate) inboxes: Vec<Inbox>,
    pub(crate) pending: PendingMessages,
    pub(crate) returns: Vec<ReturnPath>,
    /// Reports that wait for the journal, in order.
    pub(crate) deferred: VecDeque<DeferredReport>,
    pub(crate) desk: Option<Desk>,
    pub(crate) repairs: Option<RepairsWriter>,
    pub(crate) work: Work,
    /// A place of the submit hand-off that is claimed and not written, as of the last look.
    pub(crate) standstill: Option<Standstill>,
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
    /// The most messages that were queued for gateways at once.
    pub(crate) pending_peak: u64,
}

impl Outputs {
    /// Outputs with nothing queued; `inboxes` has one entry for each venue and credential, the credentials of a venue side by side,
    /// `returns` one for each strategy.
    pub fn new(inboxes: Vec<Inbox>, returns: Vec<ReturnPath>, work: Work) -> Self {
        Self {
            pending: PendingMessages::new(inboxes.len(), DEFAULT_CAPACITY),
            inboxes,
            returns,
            deferred: VecDeque::new(),
            desk: None,
            repairs: None,
            work,
            standstill: None,
            has_queued_reports: false,
            recall_is_due: false,
            overflowed: None,
            returned: 0,
            full: 0,
            pending_peak: 0,
        }
    }

    /// Allocates queues for that many messages to all gateways together: as many as orders may be open.
    #[must_use]
    pub fn with_capacity(self, messages: u32) -> Self {
        Self { pending: PendingMessages::new(self.inboxes.len(), messages), ..self }
    }

    /// Takes commands from operators at this desk.
    #[must_use]
    pub fn commanded(self, desk: Desk) -> Self {
        Self { desk: Some(desk), ..self }
    }

    /// Sends a message to a gateway, or queues it.
    #[inline(always)]
    pub(crate) fn send_to_gateway(&mut self, gateway: usize, message: &Message) {
        if self.pending.has(gateway) || !self.inboxes[gateway].try_send(message) {
            self.queue(gateway, message);
        }
    }

    #[cold]
    fn queue(&mut self, gateway: usize, message: &Message) {
        self.full += 1;
        self.pending.push(gateway, message);
        self.pending_peak = self.pending_peak.max(self.pending.len());
    }

    /// Moves queued messages into inboxes, as far as there is room. Returns how many.
    #[cold]
    pub(crate) fn flush_pending(&mut self) -> usize {
        let mut moved = 0;
        for (gateway, inbox) in self.inboxes.iter_mut().enumerate() {
            for _ in 0..BATCH {
                let Some(message) = self.pending.front(gateway) else { break };
                if !inbox.try_send(message) {
                    break;
                }
                self.pending.pop(gateway);
                moved += 1;
            }
        }
        moved
    }

    /// Sends a report to its strategy, or queues it.
    #[inline(always)]
    pub(crate) fn send_to_strategy(&mut self, strategy: usize, message: &Message) {
        match self.returns[strategy].push(message) {
            Pushed::Returned => self.returned += 1,
            Pushed::Queued => {
                self.full += 1;
                self.has_queued_reports = true;
            }
            // More than the strategy's open orders can have, unless another one sent orders in its name.
            Pushed::Dropped => self.overflowed = Some(strategy),
        }
    }

    /// Lets a report wait for a journal record.
    pub(crate) fn defer(&mut self, report: &Report, message: &Message, record: u64) {
        let (id, number) = (report.id, report.number);
        self.deferred.push_back(DeferredReport { id, number, message: *message, record });
    }

    /// Moves queued reports into return rings, as far as there is room. Returns how many.
    #[cold]
    pub(crate) fn flush_returns(&mut self) -> usize {
        let moved = self.returns.iter_mut().map(ReturnPath::flush).sum();
        self.has_queued_reports = self.returns.iter().any(ReturnPath::has_queued);
        self.returned += moved as u64;
        moved
    }

    /// Wakes every receiver: a crashed predecessor may have sent something and not rung.
    pub(crate) fn ring_all(&self) {
        self.inboxes.iter().for_each(Inbox::ring_bell);
        self.returns.iter().for_each(ReturnPath::ring_bell);
    }
}

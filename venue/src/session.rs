//! The exchange's end of a session with a gateway.

use journal::{Outbox, RecoveryError};
use protocol::sender::{SendOutcome, SendQueue, Sender};
use protocol::session::{SessionNumbers, instruction_number, number_report};
use protocol::wire::{Instruction, Message, OrderId, Report};
use serde::{Deserialize, Serialize};
use shm::bell::Doorbell;
use shm::ring::spsc;

/// Message counters of a gateway's session with an exchange, crashed exchanges' counts included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionCounts {
    pub taken: u64,
    /// Expected number of the next instruction.
    pub received: u32,
    pub faults: u64,
}

impl SessionCounts {
    /// Decodes the instruction in a gateway's message; `None` if it cannot be decoded. Counts the
    /// message, and as a fault one that cannot be decoded or whose number is not the next one.
    #[inline]
    pub fn parse(&mut self, message: Message) -> Option<Instruction> {
        let number = u32::try_from(instruction_number(&message)).ok();
        let mut numbers = SessionNumbers::after(self.received);
        self.faults += u64::from(!number.is_some_and(|number| numbers.try_accept(number)));
        self.received = numbers.count();
        self.taken += 1;
        let instruction = Instruction::from_message(message).ok();
        self.faults += u64::from(instruction.is_none());
        instruction
    }
}

/// Returns the session of an order's strategy among `sessions`, which is that of its credential.
#[inline(always)]
pub(crate) fn session_of(id: OrderId, sessions: usize) -> usize {
    // Without a division where there is one.
    if sessions == 1 { 0 } else { id.strategy().as_usize() % sessions.max(1) }
}

/// The exchange's end of a session with a gateway: takes instructions and sends reports in order.
pub struct SessionEnd {
    orders: spsc::Consumer,
    reports: Sender,
    pub(crate) counts: SessionCounts,
    numbered: u64,
    pub(crate) full: u64,
}

/// Queue length from which no more instructions are taken from a session.
const MAX_QUEUED_REPORTS: usize = 1024;

impl SessionEnd {
    /// Creates the queue for a session's reports that do not fit in the ring to the gateway. `open`
    /// is the maximum number of open orders, and of the reports of one instruction.
    pub fn queue(open: usize) -> SendQueue {
        SendQueue::with_capacity(2 * open + MAX_QUEUED_REPORTS)
    }

    /// Creates the exchange's end of a session, with the memory of [`SessionEnd::queue`].
    pub fn new(
        orders: spsc::Consumer,
        reports: spsc::Producer,
        bell: Option<Doorbell>,
        queue: SendQueue,
    ) -> Self {
        Self {
            orders,
            reports: Sender::new(reports, bell, queue),
            counts: SessionCounts::default(),
            numbered: 0,
            full: 0,
        }
    }

    /// Returns `true` if an instruction waits and its reports will fit.
    #[inline]
    pub(crate) fn has_message(&self) -> bool {
        !self.orders.looks_empty() && self.reports.queued() < MAX_QUEUED_REPORTS
    }

    /// Takes the next message; its slot is released with [`SessionEnd::release`].
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Message> {
        let taken = self.orders.take();
        self.counts.faults += u64::from(taken.is_err());
        taken.ok().flatten()
    }

    /// Frees the ring slots of the messages taken, which are journaled or applied.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.orders.release();
    }

    /// Skips journaled messages that a crashed exchange had not freed.
    pub(crate) fn resume_from(
        &mut self,
        session: usize,
        counts: SessionCounts,
        reports: &Outbox<(u64, Message)>,
    ) -> Result<(), RecoveryError> {
        RecoveryError::check_count("messages of session", session, counts.taken, self.orders.taken())?;
        reports.check("reports of session", session, self.published())?;
        self.orders.skip_to(counts.taken);
        (self.counts, self.numbered) = (counts, reports.confirmed());
        Ok(())
    }

    /// Returns the number of reports ever put into the ring, by crashed exchanges, too.
    pub(crate) fn published(&self) -> u64 {
        self.reports.ring().published()
    }

    #[inline]
    pub(crate) fn send(&mut self, report: &Report) {
        let mut message = report.to_message();
        // Modulo 2^32, as the other side counts.
        number_report(&mut message, self.numbered as u32);
        self.numbered += 1;
        self.full += u64::from(self.reports.push(&message) != SendOutcome::Ring);
    }

    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.reports.has_queued()
    }

    /// Sends queued reports to the gateway while they fit. Returns the number sent.
    #[cold]
    pub(crate) fn flush(&mut self) -> usize {
        self.reports.flush(usize::MAX)
    }
}

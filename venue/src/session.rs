//! The exchange's end of a session with a gateway.

use journal::{Outbox, RecoveryError};
use protocol::sender::{Sender, Sent};
use protocol::session::{Numbers, instruction_number, number_report};
use protocol::wire::{Instruction, Message, Report};
use serde::{Deserialize, Serialize};
use shm::bell::Doorbell;
use shm::ring::spsc;

/// What has gone through a session, predecessors of its exchange included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Messages taken.
    pub taken: u64,
    /// The number that the next instruction must have.
    pub received: u32,
    /// Errors of the other side.
    pub faults: u64,
}

impl Counts {
    /// The instruction in a message that was taken.
    #[inline]
    pub fn read(&mut self, message: Message) -> Option<Instruction> {
        let number = u32::try_from(instruction_number(&message)).ok();
        let mut numbers = Numbers::behind(self.received);
        self.faults += u64::from(!number.is_some_and(|number| numbers.take(number)));
        self.received = numbers.count();
        self.taken += 1;
        let instruction = Instruction::from_message(message).ok();
        self.faults += u64::from(instruction.is_none());
        instruction
    }
}

/// One session: instructions come in, reports go out in their order.
pub struct SessionEnd {
    orders: spsc::Consumer,
    reports: Sender,
    pub(crate) counts: Counts,
    /// Reports given; the number of the next one follows from it.
    given: u64,
    pub(crate) full: u64,
}

/// Reports that wait before no more instructions are taken from the session.
const PATIENCE: usize = 1024;

impl SessionEnd {
    /// The session over these rings. `orders`: as many can be open at once; so many reports can
    /// come of one instruction.
    pub fn new(orders: spsc::Consumer, reports: spsc::Producer, bell: Option<Doorbell>, open: usize) -> Self {
        Self {
            orders,
            reports: Sender::new(reports, bell, 2 * open + PATIENCE),
            counts: Counts::default(),
            given: 0,
            full: 0,
        }
    }

    /// Whether an instruction is there and its answers have room.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.orders.looks_empty() && self.reports.queued() < PATIENCE
    }

    /// The next message, if there is one. Its slot is given back with [`SessionEnd::release`].
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Message> {
        let taken = self.orders.take();
        self.counts.faults += u64::from(taken.is_err());
        taken.ok().flatten()
    }

    /// What was taken is kept elsewhere, or carried out: the gateway may write over it.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.orders.release();
    }

    /// Continues after a crashed predecessor: passes over the messages that it had taken, recorded
    /// and not given back.
    ///
    /// # Errors
    /// More has gone through the session than the journal accounts for.
    pub(crate) fn inherit(
        &mut self,
        session: usize,
        counts: Counts,
        reports: &Outbox<(u64, Message)>,
    ) -> Result<(), RecoveryError> {
        RecoveryError::check_count("messages of session", session, counts.taken, self.orders.taken())?;
        reports.check("reports of session", session, self.published())?;
        self.orders.skip_to(counts.taken);
        (self.counts, self.given) = (counts, reports.confirmed());
        Ok(())
    }

    /// Reports that have been sent, by dead predecessors too; what is waiting here was not.
    pub(crate) fn published(&self) -> u64 {
        self.reports.ring().published()
    }

    /// Sends a report, or lets it wait.
    #[inline]
    pub(crate) fn send(&mut self, report: &Report) {
        let mut message = report.to_message();
        // Modulo 2^32, as the other side counts.
        number_report(&mut message, self.given as u32);
        self.given += 1;
        self.full += u64::from(self.reports.push(&message) != Sent::Ring);
    }

    /// Whether reports wait for room.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.reports.is_waiting()
    }

    /// Sends what waits as far as there is room; how much that was.
    #[cold]
    pub(crate) fn flush(&mut self) -> usize {
        self.reports.flush(usize::MAX)
    }
}

//! The exchange's end of a session with a gateway.

use protocol::sender::{Sender, Sent};
use protocol::session::{Numbers, instruction_number, number_report};
use protocol::wire::{Instruction, Message, Report};
use serde::{Deserialize, Serialize};
use shm::bell::Bell;
use shm::ring::spsc;

/// What has gone through a session, predecessors of its exchange included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Messages taken.
    pub taken: u64,
    /// Reports given; the number of the next one follows from it.
    pub given: u64,
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
    pub(crate) full: u64,
}

/// Reports that wait before no more instructions are taken from the session.
const PATIENCE: usize = 1024;

impl SessionEnd {
    /// The session over these rings. `orders`: as many can be open at once; so many reports can come of one instruction.
    pub fn new(orders: spsc::Consumer, reports: spsc::Producer, bell: Option<Bell>, open: usize) -> Self {
        Self {
            orders,
            reports: Sender::new(reports, bell, 2 * open + PATIENCE),
            counts: Counts::default(),
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

    /// Passes over the messages that a dead predecessor had taken and kept, and not given back.
    ///
    /// # Errors
    /// What is missing if more has gone through the session than was kept: the name, how many were kept and how many there were.
    pub(crate) fn skip_taken(&mut self) -> Result<(), (&'static str, u64, u64)> {
        if self.orders.taken() > self.counts.taken {
            return Err(("messages", self.counts.taken, self.orders.taken()));
        }
        if self.reports.ring().published() > self.counts.given {
            return Err(("reports", self.counts.given, self.reports.ring().published()));
        }
        self.orders.skip_to(self.counts.taken);
        Ok(())
    }

    /// Counts a report that the dead predecessor gave; whether it had sent it.
    pub(crate) fn was_sent(&mut self) -> bool {
        let is_sent = self.counts.given < self.reports.ring().published();
        self.counts.given += u64::from(is_sent);
        is_sent
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
        number_report(&mut message, self.counts.given as u32);
        self.counts.given += 1;
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

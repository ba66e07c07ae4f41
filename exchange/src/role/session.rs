//! The exchange's end of a session with a gateway.

use protocol::session::{Numbers, instruction_number, number_report};
use protocol::wire::{Instruction, Message, Report};
use shm::bell::Bell;
use shm::ring::spsc;
use std::collections::VecDeque;

/// One session: instructions come in, reports go out in their order.
pub struct SessionEnd {
    orders: spsc::Consumer,
    reports: spsc::Producer,
    /// Rings for the gateway, where that parks.
    bell: Option<Bell>,
    /// Reports that found the session full. Nothing overtakes them.
    waiting: VecDeque<Message>,
    sent: Numbers,
    received: Numbers,
    pub(super) full: u64,
    pub(super) faults: u64,
}

/// Reports that wait before no more instructions are taken from the session.
const PATIENCE: usize = 1024;

impl SessionEnd {
    /// The session over these rings. `orders`: as many can be open at once; so many reports can come of one instruction.
    pub fn new(orders: spsc::Consumer, reports: spsc::Producer, bell: Option<Bell>, open: usize) -> Self {
        Self {
            orders,
            reports,
            bell,
            waiting: VecDeque::with_capacity(2 * open + PATIENCE),
            sent: Numbers::default(),
            received: Numbers::default(),
            full: 0,
            faults: 0,
        }
    }

    /// Whether an instruction is there and its answers have room.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        !self.orders.looks_empty() && self.waiting.len() < PATIENCE
    }

    /// The next instruction, if there is one.
    #[inline]
    pub(super) fn receive(&mut self) -> Option<Instruction> {
        let message = match self.orders.try_pop() {
            Ok(message) => message?,
            Err(_) => {
                self.faults += 1;
                return None;
            }
        };
        let number = u32::try_from(instruction_number(&message)).ok();
        self.faults += u64::from(!number.is_some_and(|number| self.received.take(number)));
        let instruction = Instruction::from_message(message).ok();
        self.faults += u64::from(instruction.is_none());
        instruction
    }

    /// Sends a report, or lets it wait.
    #[inline]
    pub(super) fn send(&mut self, report: &Report) {
        let mut message = report.to_message();
        number_report(&mut message, self.sent.give());
        if self.waiting.is_empty() && self.reports.try_push(&message).is_ok() {
            if let Some(bell) = &self.bell {
                bell.ring();
            }
        } else {
            self.full += 1;
            self.waiting.push_back(message);
        }
    }

    /// Whether reports wait for room.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends what waits as far as there is room; how much that was.
    #[cold]
    pub(super) fn flush(&mut self) -> usize {
        let mut sent = 0;
        while let Some(message) = self.waiting.front()
            && self.reports.try_push(message).is_ok()
        {
            self.waiting.pop_front();
            sent += 1;
        }
        if sent > 0
            && let Some(bell) = &self.bell
        {
            bell.ring();
        }
        sent
    }
}

//! The venue adapter for an exchange: a session of two single-producer single-consumer rings.
//!
//! ```text
//!            accept          session-out          ┌──────────┐
//!  gateway ─────────▶ venue ────────────────────▶ │ exchange │
//!          ◀─────────       ◀──────────────────── │          │
//!            advance         session-in           └──────────┘
//! ```

use crate::venue::{CancelSweep, Reports, Venue, VenueInfo};
use protocol::session::{SessionNumbers, number_instruction, report_number};
use protocol::wire::{Instruction, Message, Order, Report};
use shm::bell::Doorbell;
use shm::ring::spsc;

/// A gateway's end of a session with an exchange, which implements the venue trait.
pub struct SessionVenue {
    out: spsc::Producer,
    /// The exchange's doorbell, if its thread parks.
    bell: Option<Doorbell>,
    reports: spsc::Consumer,
    /// An instruction that found the session full. Nothing overtakes it.
    waiting: Option<Message>,
    sent: SessionNumbers,
    received: SessionNumbers,
    /// Reports were taken whose slots are not released.
    holds_slots: bool,
    faults: u64,
}

impl SessionVenue {
    /// Number of reports for each order at an exchange, on average, for which the stamp logs have
    /// capacity. Accepted and closed; each trade closes at least one order and so adds at most one
    /// report. The fourth is for replaces, triggered stops and self-trade prevention.
    pub const REPORTS_PER_ORDER: u8 = 4;

    /// Creates the gateway's end of a session with an exchange over its two rings.
    pub fn new(out: spsc::Producer, bell: Option<Doorbell>, reports: spsc::Consumer) -> Self {
        // Includes what crashed predecessors of either end sent and took.
        let (sent, received) =
            (SessionNumbers::after(out.published() as u32), SessionNumbers::after(reports.taken() as u32));
        Self { out, bell, reports, waiting: None, sent, received, holds_slots: false, faults: 0 }
    }

    /// Resumes a crashed gateway's session with an exchange: `first` becomes the next message to
    /// send, and the next `taken` reports are skipped. The crashed gateway may have taken `first`
    /// and not sent it; it had taken the reports and not handed them over.
    #[must_use]
    pub fn resume_from(mut self, first: Option<Message>, taken: usize) -> Self {
        if let Some(mut message) = first {
            number_instruction(&mut message, self.sent.next_number());
            self.waiting = Some(message);
        }
        for _ in 0..taken {
            if let Ok(Some(message)) = self.reports.take() {
                self.faults += u64::from(!self.received.try_accept(report_number(&message)));
                self.holds_slots = true;
            }
        }
        // The exchange may sleep although the crashed gateway has sent it something.
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        self
    }

    #[inline]
    fn send(&mut self, instruction: &Instruction) {
        let mut message = instruction.to_message();
        number_instruction(&mut message, self.sent.next_number());
        self.waiting = Some(message);
        self.try_flush();
    }

    #[inline]
    fn try_flush(&mut self) -> bool {
        let Some(message) = &self.waiting else { return true };
        if self.out.try_push(message).is_err() {
            return false;
        }
        self.waiting = None;
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        true
    }
}

impl Venue for SessionVenue {
    const IN_ORDER: bool = true;
    const INFO: VenueInfo = VenueInfo {
        reports_per_order: Self::REPORTS_PER_ORDER,
        reports_release_time: false,
        ..VenueInfo::ONE_REPORT
    };

    #[inline]
    fn has_capacity(&self) -> bool {
        self.waiting.is_none()
    }

    #[inline]
    fn accept(&mut self, order: &Order, _now: u64, _reports: &mut impl Reports) -> Option<u64> {
        self.send(&Instruction::Order(*order));
        None
    }

    #[inline]
    fn advance(&mut self, _now: u64, reports: &mut impl Reports) {
        self.try_flush();
        // The gateway calls once all earlier reports are handed over: until then a successor takes
        // them again.
        if self.holds_slots {
            self.holds_slots = false;
            self.reports.release();
        }
        while reports.has_capacity() {
            let message = match self.reports.take() {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(_) => {
                    self.faults += 1;
                    return;
                }
            };
            self.holds_slots = true;
            // A gap is counted and the report is taken: lost reports show as orders that stay open.
            self.faults += u64::from(!self.received.try_accept(report_number(&message)));
            match Report::from_message(message) {
                // Cannot fail: checked above.
                Ok(report) => drop(reports.send(report)),
                Err(_) => {
                    self.faults += 1;
                    reports.skip_report();
                }
            }
        }
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        if self.waiting.is_none() && !self.holds_slots && self.reports.looks_empty() { u64::MAX } else { 0 }
    }

    /// Forwards the cancellation to the exchange, whose reports arrive as usual.
    fn try_cancel_all(&mut self, sweep: &mut CancelSweep, _reports: &mut impl Reports) -> bool {
        if !self.try_flush() {
            return false;
        }
        self.send(&Instruction::CancelAll(sweep.scope));
        true
    }

    fn faults(&self) -> u64 {
        self.faults
    }
}

//! The venue that is an exchange: its session, two rings of one writer and one reader each.
//!
//! ```text
//!            accept          session-out          ┌──────────┐
//!  gateway ─────────▶ venue ────────────────────▶ │ exchange │
//!          ◀─────────       ◀──────────────────── │          │
//!            advance         session-in           └──────────┘
//! ```

use crate::venue::{Reports, Sweep, Venue, VenueInfo};
use protocol::session::{SessionNumbers, number_instruction, report_number};
use protocol::wire::{CancelScope, Instruction, Message, Order, Report};
use shm::bell::Doorbell;
use shm::ring::spsc;

/// The gateway's end of a session with an exchange.
pub struct SessionVenue {
    out: spsc::Producer,
    /// Rings for the exchange, where that parks.
    bell: Option<Doorbell>,
    reports: spsc::Consumer,
    /// An instruction that found the session full. Nothing overtakes it.
    waiting: Option<Message>,
    sent: SessionNumbers,
    received: SessionNumbers,
    /// Reports were taken whose slots are not given back.
    keeps: bool,
    faults: u64,
}

impl SessionVenue {
    /// Reports of an order at an exchange, on average: accepted and closed; and each trade closes
    /// at least one order and so gives at most one report beside that. A replace, a stop's trigger
    /// and self-trade prevention have the fourth.
    pub const REPORTS_AN_ORDER: u8 = 4;

    /// The session over these rings.
    pub fn new(out: spsc::Producer, bell: Option<Doorbell>, reports: spsc::Consumer) -> Self {
        // What dead predecessors of either end sent and took counts.
        let (sent, received) =
            (SessionNumbers::after(out.published() as u32), SessionNumbers::after(reports.taken() as u32));
        Self { out, bell, reports, waiting: None, sent, received, keeps: false, faults: 0 }
    }

    /// The same in the place of one that has died: `first` it may have taken and not sent, and
    /// `taken` reports it had taken and not handed over, which are not taken again.
    #[must_use]
    pub fn in_place_of(mut self, first: Option<Message>, taken: usize) -> Self {
        if let Some(mut message) = first {
            number_instruction(&mut message, self.sent.next_number());
            self.waiting = Some(message);
        }
        for _ in 0..taken {
            if let Ok(Some(message)) = self.reports.take() {
                self.faults += u64::from(!self.received.try_accept(report_number(&message)));
                self.keeps = true;
            }
        }
        // Who sleeps may have been told something by the dead one and not been woken.
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
        self.flush();
    }

    /// Sends what waits; whether nothing does any more.
    #[inline]
    fn flush(&mut self) -> bool {
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
    const RECORD: VenueInfo =
        VenueInfo { reports_an_order: Self::REPORTS_AN_ORDER, reports_at_once: 0, tells_release: false };

    #[inline]
    fn has_room(&self) -> bool {
        self.waiting.is_none()
    }

    #[inline]
    fn accept(&mut self, order: &Order, _now: u64, _reports: &mut impl Reports) -> Option<u64> {
        self.send(&Instruction::Order(*order));
        None
    }

    #[inline]
    fn advance(&mut self, _now: u64, reports: &mut impl Reports) {
        self.flush();
        // The gateway asks when everything is handed over that was given before: until then a
        // successor takes it again.
        if self.keeps {
            self.keeps = false;
            self.reports.release();
        }
        while reports.has_room() {
            let message = match self.reports.take() {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(_) => {
                    self.faults += 1;
                    return;
                }
            };
            self.keeps = true;
            // A gap is counted, and the report is taken all the same: what was lost is found by the
            // orders that stay open.
            self.faults += u64::from(!self.received.try_accept(report_number(&message)));
            match Report::from_message(message) {
                // There is room.
                Ok(report) => drop(reports.send(report)),
                Err(_) => {
                    self.faults += 1;
                    reports.nothing();
                }
            }
        }
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        if self.waiting.is_none() && !self.keeps && self.reports.looks_empty() { u64::MAX } else { 0 }
    }

    /// The exchange does it: each cancelled order's report comes as any other.
    fn cancel_all(&mut self, sweep: &mut Sweep, _reports: &mut impl Reports) -> bool {
        if !self.flush() {
            return false;
        }
        let CancelScope { strategy, instrument } = sweep.scope;
        self.send(&Instruction::CancelAll(CancelScope { strategy, instrument }));
        true
    }

    fn faults(&self) -> u64 {
        self.faults
    }
}

//! Receives frames: opens and ends sessions, takes messages, settles delivery outcomes.

use super::{Broken, CloseReason, Delivery, DeliveryOutcome, Event, Link, LinkState, UnconfirmedMessage};
use crate::frame::{Echo, Frame, FrameKind, Side};
use protocol::wire::{Order, Report};

impl Link {
    /// Handles the peer's request for a session, at the engine's host.
    pub(super) fn on_hello(&mut self, frame: &Frame, now: u64) {
        if frame.attempt <= self.attempt || self.state == LinkState::Over {
            self.counts.stale += 1;
            return;
        }
        if matches!(self.state, LinkState::Opening | LinkState::Up) {
            self.close_session(CloseReason::Fenced);
        }
        let ask = frame.control().ask;
        self.open(frame, self.session.saturating_add(1), now);
        self.answer = (ask, self.history.answer(ask, self.broken));
        self.state = LinkState::Opening;
    }

    /// Handles the peer's start of a session, at the strategy's host.
    pub(super) fn on_welcome(&mut self, frame: &Frame, now: u64) {
        if frame.attempt != self.attempt || self.state != LinkState::Down {
            self.counts.stale += 1;
            return;
        }
        let fields = frame.control();
        if frame.session <= self.session || (self.ask != 0 && fields.of != self.ask) {
            self.counts.misconduct += 1;
            return;
        }
        self.settle_unconfirmed(fields.taken);
        self.epoch = fields.epoch;
        self.open(frame, frame.session, now);
        self.answer = (fields.ask, self.history.answer(fields.ask, self.broken));
        self.up();
    }

    fn open(&mut self, frame: &Frame, session: u64, now: u64) {
        (self.session, self.attempt, self.taken) = (session, frame.attempt, 0);
        (self.heard_ns, self.due_ns) = (now, 0);
        (self.echo, self.has_received_end) = (None, false);
        self.history.begin(session);
    }

    fn up(&mut self) {
        self.state = LinkState::Up;
        (self.owes_heartbeat, self.due_ns) = (true, 0);
        self.counts.sessions += 1;
        self.events.push_back(Event::Up { session: self.session, epoch: self.epoch });
    }

    /// Handles a frame of the current session, such as a message or a heartbeat.
    pub(super) fn on_session_frame(&mut self, frame: &Frame, now: u64) {
        let is_of_this = frame.session == self.session && frame.attempt == self.attempt;
        let is_open = matches!(self.state, LinkState::Opening | LinkState::Up);
        // This side's last frame may have been lost.
        let is_late = self.state == LinkState::Over && is_of_this && frame.kind == FrameKind::End;
        self.repeats_end |= is_late && !frame.control().received_end;
        if !is_open || !(is_of_this || self.broken == Some(Broken::AcceptsFencedFrames)) {
            self.counts.stale += 1;
            return;
        }
        if self.state == LinkState::Opening {
            let fields = frame.control();
            if frame.kind != FrameKind::Heartbeat || (self.ask != 0 && fields.of != self.ask) {
                self.counts.stale += 1;
                return;
            }
            self.settle_unconfirmed(fields.taken);
            self.up();
        }
        self.heard_ns = now;
        self.on_clock(frame, now);
        if !self.outbox.try_confirm(frame.taken) && self.broken != Some(Broken::AcceptsFencedFrames) {
            self.count_violation();
            return;
        }
        let next = self.taken.saturating_add(1);
        match frame.kind {
            FrameKind::Data => self.on_data(frame, next, now),
            _ if frame.sequence > self.taken && self.broken != Some(Broken::IgnoresSentCounts) => {
                self.close_session(CloseReason::Gap(next));
            }
            FrameKind::End => self.on_end(),
            _ => {}
        }
    }

    fn on_data(&mut self, frame: &Frame, next: u64, now: u64) {
        if frame.sequence < next {
            self.counts.doubled += 1;
            if self.broken != Some(Broken::AcceptsDuplicates) {
                return;
            }
        }
        if frame.sequence > next && self.broken != Some(Broken::AcceptsGaps) {
            self.close_session(CloseReason::Gap(next));
            return;
        }
        let is_valid = match self.side {
            Side::Engine => Order::from_message(frame.words).is_ok(),
            Side::Strategy => Report::from_message(frame.words).is_ok(),
        };
        if !is_valid {
            self.count_violation();
            return;
        }
        self.taken = frame.sequence.max(self.taken);
        let delivery = Delivery { sent: frame.sent, received: now, about: frame.echo };
        self.events.push_back(Event::Message(frame.words, delivery));
    }

    /// Records a frame's clock readings. An echo is only used if this side can have sent its frame.
    fn on_clock(&mut self, frame: &Frame, now: u64) {
        self.clocks.record_inbound(frame.sent, now);
        if let Some(echo) = frame.echo.filter(|echo| echo.sent <= now) {
            self.clocks.record_outbound(echo.sent, echo.received);
        }
        let transit = |echo: &Echo| i128::from(echo.received) - i128::from(echo.sent);
        let received = Echo { sent: frame.sent, received: now };
        self.echo =
            Some(self.echo.filter(|quickest| transit(quickest) <= transit(&received)).unwrap_or(received));
    }

    fn on_end(&mut self) {
        self.has_received_end = true;
        // The peer gets one more frame, then the link is over.
        if self.is_done() {
            self.due_ns = 0;
        }
    }

    pub(super) fn finish(&mut self) {
        self.history.end(self.session, self.taken);
        self.state = LinkState::Over;
        self.events.push_back(Event::Over);
    }

    fn count_violation(&mut self) {
        self.counts.misconduct += 1;
        self.close_session(CloseReason::ProtocolViolation);
    }

    /// Ends the current session; later frames of it are ignored.
    pub(super) fn close_session(&mut self, why: CloseReason) {
        let was_up = self.state == LinkState::Up;
        self.state = LinkState::Down;
        self.history.end(self.session, self.taken);
        self.due_ns = 0;
        if !was_up {
            return;
        }
        let session = self.session;
        self.events.push_back(Event::Down { session, why });
        let (in_flight, not_transmitted) = self.outbox.drain();
        if self.broken == Some(Broken::DropsOutcomes) {
            return;
        }
        self.report_outcomes(session, &not_transmitted, |_| DeliveryOutcome::Lost);
        if self.broken == Some(Broken::ReportsUnconfirmedAsLost) {
            self.report_outcomes(session, &in_flight, |_| DeliveryOutcome::Lost);
        } else if !in_flight.is_empty() {
            (self.ask, self.unsettled) = (session, in_flight);
        }
    }

    /// Decides the outcome of each unsettled message, of which the peer took `taken`, if known.
    pub(super) fn settle_unconfirmed(&mut self, taken: Option<u64>) {
        let (session, unsettled) = (core::mem::take(&mut self.ask), core::mem::take(&mut self.unsettled));
        let (Some(first), Some(last)) = (unsettled.first(), unsettled.last()) else { return };
        // Messages before the first were confirmed; messages that were not sent cannot have been
        // taken.
        let believed = taken.filter(|taken| (first.sequence - 1..=last.sequence).contains(taken));
        self.counts.misconduct += u64::from(believed != taken);
        self.report_outcomes(session, &unsettled, |sequence| match believed {
            Some(taken) if sequence <= taken => DeliveryOutcome::Taken,
            Some(_) => DeliveryOutcome::Lost,
            None => DeliveryOutcome::Unknown,
        });
    }

    fn report_outcomes(
        &mut self,
        session: u64,
        messages: &[UnconfirmedMessage],
        outcome: impl Fn(u64) -> DeliveryOutcome,
    ) {
        let outcome_of = |unconfirmed: &UnconfirmedMessage| Event::Outcome {
            session,
            message: unconfirmed.message,
            outcome: outcome(unconfirmed.sequence),
        };
        self.events.extend(messages.iter().map(outcome_of));
    }
}

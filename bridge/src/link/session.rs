//! Receives frames: opens and ends sessions, takes messages, settles delivery outcomes.

use super::{Broken, Delivery, DeliveryOutcome, Event, Link, State, Unsettled, Why};
use crate::frame::{Echo, Frame, Kind, Side};
use protocol::wire::{Order, Report};

impl Link {
    /// At the engine's side: somebody asks for a session.
    pub(super) fn hello(&mut self, frame: &Frame, now: u64) {
        if frame.attempt <= self.attempt || self.state == State::Over {
            self.counts.stale += 1;
            return;
        }
        if matches!(self.state, State::Opening | State::Up) {
            self.down(Why::Fenced);
        }
        let ask = frame.talk().ask;
        self.open(frame, self.session.saturating_add(1), now);
        self.answer = (ask, self.past.answer(ask, self.broken));
        self.state = State::Opening;
    }

    /// At the far side: a session is open.
    pub(super) fn welcome(&mut self, frame: &Frame, now: u64) {
        if frame.attempt != self.attempt || self.state != State::Down {
            self.counts.stale += 1;
            return;
        }
        let talk = frame.talk();
        if frame.session <= self.session || (self.ask != 0 && talk.of != self.ask) {
            self.counts.misconduct += 1;
            return;
        }
        self.settle(talk.taken);
        self.epoch = talk.epoch;
        self.open(frame, frame.session, now);
        self.answer = (talk.ask, self.past.answer(talk.ask, self.broken));
        self.up();
    }

    fn open(&mut self, frame: &Frame, session: u64, now: u64) {
        (self.session, self.attempt, self.taken) = (session, frame.attempt, 0);
        (self.heard_ns, self.due_ns) = (now, 0);
        (self.echo, self.has_heard_end) = (None, false);
        self.past.begin(session);
    }

    fn up(&mut self) {
        self.state = State::Up;
        (self.greets, self.due_ns) = (true, 0);
        self.counts.sessions += 1;
        self.events.push_back(Event::Up { session: self.session, epoch: self.epoch });
    }

    /// A frame of a session.
    pub(super) fn within(&mut self, frame: &Frame, now: u64) {
        let is_of_this = frame.session == self.session && frame.attempt == self.attempt;
        let is_open = matches!(self.state, State::Opening | State::Up);
        // Its last word may have been lost.
        let is_late = self.state == State::Over && is_of_this && frame.kind == Kind::End;
        self.repeats_end |= is_late && !frame.talk().heard_end;
        if !is_open || !(is_of_this || self.broken == Some(Broken::HearsTheFenced)) {
            self.counts.stale += 1;
            return;
        }
        if self.state == State::Opening {
            let talk = frame.talk();
            if frame.kind != Kind::Heartbeat || (self.ask != 0 && talk.of != self.ask) {
                self.counts.stale += 1;
                return;
            }
            self.settle(talk.taken);
            self.up();
        }
        self.heard_ns = now;
        self.clock(frame, now);
        if !self.outbox.take(frame.taken) && self.broken != Some(Broken::HearsTheFenced) {
            self.misconduct();
            return;
        }
        let next = self.taken.saturating_add(1);
        match frame.kind {
            Kind::Data => self.data(frame, next, now),
            _ if frame.sequence > self.taken && self.broken != Some(Broken::IgnoresCounts) => {
                self.down(Why::Gap(next));
            }
            Kind::End => self.heard_end(),
            _ => {}
        }
    }

    fn data(&mut self, frame: &Frame, next: u64, now: u64) {
        if frame.sequence < next {
            self.counts.doubled += 1;
            if self.broken != Some(Broken::TakesDoubles) {
                return;
            }
        }
        if frame.sequence > next && self.broken != Some(Broken::PassesOverGaps) {
            self.down(Why::Gap(next));
            return;
        }
        let is_one = match self.side {
            Side::Engine => Order::from_message(frame.words).is_ok(),
            Side::Far => Report::from_message(frame.words).is_ok(),
        };
        if !is_one {
            self.misconduct();
            return;
        }
        self.taken = frame.sequence.max(self.taken);
        let passage = Delivery { sent: frame.sent, seen: now, about: frame.echo };
        self.events.push_back(Event::Message(frame.words, passage));
    }

    /// What a frame says about the clocks. Of an echo only so much is believed: it is of a frame
    /// that this side can have sent.
    fn clock(&mut self, frame: &Frame, now: u64) {
        self.clocks.came(frame.sent, now);
        if let Some(echo) = frame.echo.filter(|echo| echo.sent <= now) {
            self.clocks.went(echo.sent, echo.seen);
        }
        let transit = |echo: &Echo| i128::from(echo.seen) - i128::from(echo.sent);
        let seen = Echo { sent: frame.sent, seen: now };
        self.echo = Some(self.echo.filter(|quickest| transit(quickest) <= transit(&seen)).unwrap_or(seen));
    }

    fn heard_end(&mut self) {
        self.has_heard_end = true;
        // The other side hears of it once more, and then it is over.
        if self.is_content() {
            self.due_ns = 0;
        }
    }

    pub(super) fn over(&mut self) {
        self.past.end(self.session, self.taken);
        self.state = State::Over;
        self.events.push_back(Event::Over);
    }

    fn misconduct(&mut self) {
        self.counts.misconduct += 1;
        self.down(Why::ProtocolViolation);
    }

    /// The session is over: from here on nothing of it is heard.
    pub(super) fn down(&mut self, why: Why) {
        let was_up = self.state == State::Up;
        self.state = State::Down;
        self.past.end(self.session, self.taken);
        self.due_ns = 0;
        if !was_up {
            return;
        }
        let session = self.session;
        self.events.push_back(Event::Down { session, why });
        let (on_the_way, never) = self.outbox.end();
        if self.broken == Some(Broken::ForgetsWhatItSent) {
            return;
        }
        self.tell(session, &never, |_| DeliveryOutcome::Lost);
        if self.broken == Some(Broken::GuessesFates) {
            self.tell(session, &on_the_way, |_| DeliveryOutcome::Lost);
        } else if !on_the_way.is_empty() {
            (self.ask, self.unsettled) = (session, on_the_way);
        }
    }

    /// The other side has said how many it took of the session that was asked about; `None`: it
    /// does not know.
    pub(super) fn settle(&mut self, taken: Option<u64>) {
        let (session, unsettled) = (core::mem::take(&mut self.ask), core::mem::take(&mut self.unsettled));
        let (Some(first), Some(last)) = (unsettled.first(), unsettled.last()) else { return };
        // It has said before that it took what stands before the first, and cannot have taken what
        // was not sent.
        let believed = taken.filter(|taken| (first.sequence - 1..=last.sequence).contains(taken));
        self.counts.misconduct += u64::from(believed != taken);
        self.tell(session, &unsettled, |sequence| match believed {
            Some(taken) if sequence <= taken => DeliveryOutcome::Taken,
            Some(_) => DeliveryOutcome::Lost,
            None => DeliveryOutcome::Unknown,
        });
    }

    fn tell(&mut self, session: u64, messages: &[Unsettled], fate: impl Fn(u64) -> DeliveryOutcome) {
        let told = |one: &Unsettled| Event::Fate { session, message: one.message, fate: fate(one.sequence) };
        self.events.extend(messages.iter().map(told));
    }
}

//! A link: sessions over a transport that may lose, double, delay and reorder frames. Messages are
//! delivered exactly once and in order, or their outcome is reported to the sender.
//!
//! ```text
//! far                                                engine
//!  │ Hello     attempt 7, ask: of session 3?            │  Down: accepts later Hellos only
//!  │ ─────────────────────────────────────────────────▶ │  session 4: session 3 is fenced
//!  │ Welcome   attempt 7, session 4, of 3: taken 12     │  Opening
//!  │ ◀───────────────────────────────────────────────── │
//!  │ Up        of 3: 1 to 12 were taken, 13 lost        │
//!  │ Heartbeat session 4, of 2: taken 9                 │
//!  │ ─────────────────────────────────────────────────▶ │  Up
//!  │ Data, Heartbeat, with what was taken, both ways    │
//! ```
//! - The engine's side numbers the sessions, with the strategy's epoch in the upper 16 bits, so
//!   that numbers grow over restarts.
//! - Within a session messages are numbered from 1. A repeated message is ignored; a missing one
//!   ends the session. Every other frame has the number of messages sent, so that the loss of the
//!   last one is detected too.
//! - A session ends by silence, a gap, a later attempt or an invalid frame. Its later frames are
//!   ignored.
//! - Neither side is up before it has learned what the other took in the previous session: messages
//!   of it are [`DeliveryOutcome::Taken`] or [`DeliveryOutcome::Lost`]; or
//!   [`DeliveryOutcome::Unknown`] if the process that took them is gone.
//!
//! Times are nanoseconds of this host's monotonic clock. Nothing blocks; only the end of a session
//! allocates.

mod history;
mod send_window;
mod session;
#[cfg(test)]
mod tests;

pub use history::SessionHistory;
pub use send_window::WINDOW;

use crate::clock::Samples;
use crate::frame::{ControlFields, Echo, FRAME, Frame, FrameKind, Side};
use protocol::wire::Message;
use send_window::{SendWindow, UnconfirmedMessage};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use thiserror::Error;

/// A defect injected into a link, which tests must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// Takes a repeated message again.
    AcceptsDuplicates,
    /// Continues after a missing message.
    AcceptsGaps,
    /// Ignores the peer's count of sent messages.
    IgnoresSentCounts,
    /// Accepts frames of ended sessions.
    AcceptsFencedFrames,
    /// Reports all unconfirmed messages as lost, without asking.
    ReportsUnconfirmedAsLost,
    /// The peer claims that it took nothing in earlier sessions.
    LosesReceiveHistory,
    /// Reports no outcome of unconfirmed messages.
    DropsOutcomes,
}

/// The timing of a link between two hosts: heartbeats, timeout and retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Interval of heartbeats after the last frame, and of clock readings, in nanoseconds.
    pub heartbeat_ns: u64,
    /// Session timeout without a frame, in nanoseconds; several times a frame's transit time.
    pub silence_ns: u64,
    /// Interval of attempts to open a session, in nanoseconds; must exceed a round trip.
    pub hello_ns: u64,
}

impl Default for Timing {
    /// A heartbeat each millisecond, a timeout of two seconds, an attempt each half second.
    fn default() -> Self {
        Self { heartbeat_ns: 1_000_000, silence_ns: 2_000_000_000, hello_ns: 500_000_000 }
    }
}

/// The reason why a session between two hosts has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// No frame came for [`Timing::silence_ns`].
    #[error("no frame was received for too long")]
    Silence,
    /// A message of the peer is missing.
    #[error("message {0} of the session is missing")]
    Gap(u64),
    /// The peer has opened another session.
    #[error("the other side has opened another session")]
    Fenced,
    /// The peer sent an invalid frame.
    #[error("protocol violation by the peer")]
    ProtocolViolation,
    /// This host has ended the session.
    #[error("this side has ended the session")]
    HungUp,
}

/// The outcome of a message to the other host that was unconfirmed when its session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The peer took the message, exactly once.
    Taken,
    /// The peer did not take the message and never will.
    Lost,
    /// It is unknown whether the peer took the message: the process that may have taken it is gone.
    Unknown,
}

/// The times of a message between two hosts, by both hosts' clocks. All but `received` are
/// unverified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Time at which the message was sent, in nanoseconds of the peer's clock.
    pub sent: u64,
    /// Time at which the message was received, in nanoseconds of this host's clock.
    pub received: u64,
    /// An echo of a frame of this side: of the message that this message refers to, or of any.
    pub about: Option<Echo>,
}

/// An event of a link between two hosts that its owner must handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session with the peer was opened. All earlier messages have an outcome.
    Up {
        /// Number of the session.
        session: u64,
        /// The strategy's incarnation at the engine.
        epoch: u16,
    },
    /// An order at the engine's side, a report at the strategy's; validated as far as its codes.
    Message(Message, Delivery),
    /// The session with the peer has ended. The outcomes of unconfirmed messages will follow.
    Down {
        /// Number of the session.
        session: u64,
        /// Reason for the end of the session.
        why: CloseReason,
    },
    /// The outcome of a message that was unconfirmed when its session ended.
    Outcome {
        /// The session in which the message was sent.
        session: u64,
        /// The message.
        message: Message,
        /// The outcome.
        outcome: DeliveryOutcome,
    },
    /// Both sides have finished and have all messages.
    Over,
}

/// Counters of a link between two hosts, as in `remote.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounts {
    /// Number of sessions that were open.
    pub sessions: u64,
    /// Number of repeated messages from the peer.
    pub doubled: u64,
    /// Number of frames of ended sessions and attempts.
    pub stale: u64,
    /// Number of datagrams that are not frames of this run's peer.
    pub strange: u64,
    /// Number of invalid frames from the peer.
    pub misconduct: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Down,
    /// The engine's side has answered a Hello; no frame of the session has come yet.
    Opening,
    Up,
    Over,
}

/// One end of a link between two hosts, with its current session.
#[derive(Debug)]
pub struct Link {
    side: Side,
    run: u32,
    epoch: u16,
    timing: Timing,
    state: LinkState,
    session: u64,
    attempt: u64,
    outbox: SendWindow,
    /// Messages taken from the peer in this session.
    taken: u64,
    history: SessionHistory,
    /// The session that the peer asked about when this one was opened, and the answer.
    answer: (u64, Option<u64>),
    /// The session of `unsettled`; 0: nothing is unsettled.
    ask: u64,
    unsettled: Vec<UnconfirmedMessage>,
    events: VecDeque<Event>,
    heard_ns: u64,
    /// When the next control frame is due.
    due_ns: u64,
    /// The quickest frame seen since the last echo was sent.
    echo: Option<Echo>,
    /// The session is new: the peer waits for a heartbeat.
    owes_heartbeat: bool,
    wants_end: bool,
    has_received_end: bool,
    /// The link is over; the peer may not have noticed yet.
    repeats_end: bool,
    /// Counters of this link's sessions and frames.
    pub counts: LinkCounts,
    /// Clock samples from the frames of open sessions.
    pub clocks: Samples,
    broken: Option<Broken>,
}

impl Link {
    /// Creates the link's end at the strategies' host; its attempts to open a session are numbered
    /// from `first`, above any predecessor's.
    pub fn strategy_side(run: u32, first: u64, timing: Timing) -> Self {
        Self::new(Side::Strategy, run, 0, first, timing)
    }

    /// Creates the end of a link at the engine's host, for a strategy's incarnation `epoch`.
    pub fn engine_side(run: u32, epoch: u16, timing: Timing) -> Self {
        Self::new(Side::Engine, run, epoch, 0, timing)
    }

    fn new(side: Side, run: u32, epoch: u16, attempt: u64, timing: Timing) -> Self {
        Self {
            side,
            run,
            epoch,
            timing,
            state: LinkState::Down,
            session: u64::from(epoch) << 48,
            attempt,
            outbox: SendWindow::new(),
            taken: 0,
            history: SessionHistory::default(),
            answer: (0, None),
            ask: 0,
            unsettled: Vec::new(),
            events: VecDeque::with_capacity(WINDOW),
            heard_ns: 0,
            due_ns: 0,
            echo: None,
            owes_heartbeat: false,
            wants_end: false,
            has_received_end: false,
            repeats_end: false,
            counts: LinkCounts::default(),
            clocks: Samples::new(),
            broken: None,
        }
    }

    /// Continues the session history that a predecessor process saved.
    #[must_use]
    pub fn with_history(self, past: SessionHistory) -> Self {
        Self { history: past, ..self }
    }

    /// Returns the history of the link's ended sessions.
    pub const fn history(&self) -> SessionHistory {
        self.history
    }

    /// Returns `true` if the link's peer has announced that it sends no more messages.
    pub const fn has_received_end(&self) -> bool {
        self.has_received_end
    }

    /// Returns `true` if the link has an open session with its peer.
    pub fn is_up(&self) -> bool {
        self.state == LinkState::Up
    }

    /// Returns `true` if both ends of the link have announced that they send no more messages.
    pub fn is_over(&self) -> bool {
        self.state == LinkState::Over
    }

    /// Returns `true` if the link has the maximum number of unconfirmed messages.
    pub fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// Returns `true` if no message of this end waits for a confirmation or, after its session has
    /// ended, for its outcome.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_empty() && self.unsettled.is_empty()
    }

    /// Returns the oldest pending event of the link.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Queues a message for the peer and returns `true`; `false` if no session is open, the end was
    /// announced, or [`WINDOW`] messages are unconfirmed. If the message answers one of the peer's,
    /// `about` has the times at which that one was sent and received.
    #[must_use]
    pub fn try_send(&mut self, message: Message, about: Option<Echo>) -> bool {
        self.state == LinkState::Up && !self.wants_end && self.outbox.try_push(message, about)
    }

    /// Announces that this end sends no more messages; the link is over once both ends have
    /// received everything.
    pub fn end(&mut self) {
        if !self.wants_end {
            (self.wants_end, self.due_ns) = (true, 0);
        }
    }

    /// Ends the session as a lost connection would: the peer is not notified.
    pub fn hang_up(&mut self) {
        if matches!(self.state, LinkState::Opening | LinkState::Up) {
            self.close_session(CloseReason::HungUp);
        }
    }

    /// Gives up the link: the outcome of unconfirmed messages is [`DeliveryOutcome::Unknown`].
    pub fn abandon(&mut self) {
        self.hang_up();
        self.settle_unconfirmed(None);
        self.state = LinkState::Over;
    }

    /// Handles bytes received from the link's peer, which may be invalid.
    pub fn receive(&mut self, bytes: &[u8], now: u64) {
        let frame = match Frame::decode(bytes) {
            Some(frame) if frame.run == self.run && frame.from == self.side.other() => frame,
            _ => {
                self.counts.strange += 1;
                return;
            }
        };
        match (frame.kind, self.side) {
            (FrameKind::Hello, Side::Engine) => self.on_hello(&frame, now),
            (FrameKind::Welcome, Side::Strategy) => self.on_welcome(&frame, now),
            (FrameKind::Hello | FrameKind::Welcome, _) => self.counts.misconduct += 1,
            _ => self.on_session_frame(&frame, now),
        }
    }

    /// Builds the frames that are due and passes them to `offer`, until it returns `false` for one,
    /// which the next call builds again. Returns the number sent. Must be called at least once per
    /// heartbeat interval.
    pub fn poll<F>(&mut self, now: u64, mut offer: F) -> usize
    where
        F: FnMut(&[u8; FRAME]) -> bool,
    {
        let is_silent = now.saturating_sub(self.heard_ns) >= self.timing.silence_ns;
        if is_silent && matches!(self.state, LinkState::Opening | LinkState::Up) {
            self.close_session(CloseReason::Silence);
        }
        let mut sent = 0;
        if self.state == LinkState::Up {
            // The first frame of a session, with the answer to the peer's question.
            if self.owes_heartbeat {
                if !self.try_send_control(FrameKind::Heartbeat, now, &mut offer) {
                    return sent;
                }
                self.owes_heartbeat = false;
                sent += 1;
            }
            while let Some((sequence, message, about)) = self.outbox.next() {
                let frame = self.frame(FrameKind::Data, sequence, message, now);
                if !offer(&Frame { echo: about.or(self.echo), ..frame }.encode()) {
                    return sent;
                }
                self.echo = self.echo.filter(|_| about.is_some());
                self.outbox.mark_transmitted();
                self.due_ns = now.saturating_add(self.timing.heartbeat_ns);
                sent += 1;
            }
        }
        let repeats_end = core::mem::take(&mut self.repeats_end);
        if now < self.due_ns && !repeats_end {
            return sent;
        }
        let kind = match (self.state, self.side) {
            (LinkState::Down, Side::Strategy) => FrameKind::Hello,
            (LinkState::Opening, _) => FrameKind::Welcome,
            (LinkState::Up, _) if self.is_done() => FrameKind::End,
            (LinkState::Up, _) => FrameKind::Heartbeat,
            (LinkState::Over, _) if repeats_end => FrameKind::End,
            (LinkState::Down | LinkState::Over, _) => return sent,
        };
        let last = self.attempt;
        if kind == FrameKind::Hello {
            self.attempt = last.saturating_add(1);
        }
        let was_sent = self.try_send_control(kind, now, &mut offer);
        if !was_sent {
            self.attempt = last;
        }
        if was_sent && kind == FrameKind::End && self.has_received_end && self.state == LinkState::Up {
            self.finish();
        }
        sent + usize::from(was_sent)
    }

    /// Offers a control frame. Returns `false` if it was not taken.
    fn try_send_control(
        &mut self,
        kind: FrameKind,
        now: u64,
        offer: &mut impl FnMut(&[u8; FRAME]) -> bool,
    ) -> bool {
        let (of, taken) = self.answer;
        let answer = ControlFields {
            ask: self.ask,
            of,
            taken,
            epoch: self.epoch,
            received_end: self.has_received_end,
        };
        let (fields, pause) = match kind {
            FrameKind::Hello => {
                (ControlFields { ask: self.ask, ..ControlFields::default() }, self.timing.hello_ns)
            }
            FrameKind::Welcome => (answer, self.timing.hello_ns),
            _ => (answer, self.timing.heartbeat_ns),
        };
        let was_sent = offer(&self.frame(kind, self.outbox.transmitted(), fields.to_words(), now).encode());
        if was_sent {
            self.due_ns = now.saturating_add(pause);
            self.echo = None;
        }
        was_sent
    }

    /// Returns `true` if this side has ended sending and the peer has all messages.
    fn is_done(&self) -> bool {
        self.wants_end && self.outbox.is_empty()
    }

    fn frame(&self, kind: FrameKind, sequence: u64, words: Message, now: u64) -> Frame {
        Frame {
            kind,
            from: self.side,
            run: self.run,
            session: if kind == FrameKind::Hello { 0 } else { self.session },
            attempt: self.attempt,
            sequence,
            taken: self.taken,
            sent: now,
            echo: self.echo,
            words,
        }
    }
}

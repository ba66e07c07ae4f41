//! A link: sessions over a transport that may lose, double, delay and reorder. What is sent is
//! taken once and in order, or its sender is told its fate.
//!
//! ```text
//! far                                                engine
//!  │ Hello     attempt 7, ask: of session 3?            │  Down: hears nothing but Hellos of later attempts
//!  │ ─────────────────────────────────────────────────▶ │  session 4: everything of session 3 is fenced from here on
//!  │ Welcome   attempt 7, session 4, of 3: taken 12     │  Opening
//!  │ ◀───────────────────────────────────────────────── │
//!  │ Up        of 3: 1 to 12 were taken, 13 lost        │
//!  │ Heartbeat session 4, of 2: taken 9                 │
//!  │ ─────────────────────────────────────────────────▶ │  Up
//!  │ Data, Heartbeat, with what was taken, both ways    │
//! ```
//! - The engine's side numbers the sessions: the strategy's epoch in the upper 16 bits, so that
//!   they grow over restarts.
//! - Within a session messages are numbered from 1. One that was taken is not taken again; a
//!   missing one ends the session. Every other frame says how many were sent, so that the loss of
//!   the last one is seen too.
//! - A session ends by silence, by a gap, by a later attempt, or by a frame that no honest side
//!   sends. Its frames mean nothing any more.
//! - Neither side is up before each knows what the other took in the session before: what was sent
//!   in it is [`Fate::Taken`] or [`Fate::Lost`]; or [`Fate::Unknown`], where the process that took
//!   it is gone.
//!
//! Times are nanoseconds of this host's clock, which goes forward. Nothing here blocks; a session's
//! end allocates, nothing else does.

mod outbox;
mod past;
mod session;
#[cfg(test)]
mod tests;

pub use outbox::WINDOW;
pub use past::Past;

use crate::clock::Samples;
use crate::frame::{Echo, FRAME, Frame, Kind, Side, Talk};
use outbox::{Outbox, Unsettled};
use protocol::wire::Message;
use std::collections::VecDeque;
use thiserror::Error;

/// What is wrong with a link on purpose: tests must find each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// Takes a message again that it has taken.
    TakesDoubles,
    /// Goes on behind a missing message.
    PassesOverGaps,
    /// Goes on as if nothing was missing that it was not given.
    IgnoresCounts,
    /// Listens to frames of sessions that are over.
    HearsTheFenced,
    /// Says of everything that was under way that it is lost, without asking.
    GuessesFates,
    /// Says of every session before that it took nothing.
    ForgetsWhatItTook,
    /// Tells nobody what was under way.
    ForgetsWhatItSent,
}

/// How often a link says something, and how long it listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// So long after its last frame a side says that it lives. Also how close together the readings
    /// of the clocks are.
    pub heartbeat_ns: u64,
    /// So long without a frame of the session, and the session is over. Several times what a frame
    /// takes, with what the transport does about a loss.
    pub silence_ns: u64,
    /// So often the far side asks for a session. Longer than a round trip: the answer to an older
    /// attempt opens none.
    pub hello_ns: u64,
}

impl Default for Timing {
    /// A heartbeat each millisecond, two seconds of patience, an attempt each half second.
    fn default() -> Self {
        Self { heartbeat_ns: 1_000_000, silence_ns: 2_000_000_000, hello_ns: 500_000_000 }
    }
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Why {
    /// Nothing was heard for [`Timing::silence_ns`].
    #[error("nothing was heard for too long")]
    Silence,
    /// A message is missing.
    #[error("message {0} of the session is missing")]
    Gap(u64),
    /// The other side has opened another one.
    #[error("the other side has opened another session")]
    Fenced,
    /// A frame that no honest side sends.
    #[error("protocol violation by the peer")]
    ProtocolViolation,
    /// This side wanted it.
    #[error("this side has hung up")]
    HungUp,
}

/// What became of a message that was under way when its session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The other side took it, once.
    Taken,
    /// The other side did not take it and will not.
    Lost,
    /// Whoever could say is gone.
    Unknown,
}

/// When a message passed, for [`clock`](crate::clock). Nothing of it is more than the other side's
/// word, but for `seen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When it was sent, by the other side's clock.
    pub sent: u64,
    /// When it was seen, by this side's.
    pub seen: u64,
    /// A frame of this side, when it was sent here and seen there: that of what the message is
    /// about, where the sender said so, else any.
    pub about: Option<Echo>,
}

/// What a link tells its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session is open. All that was under way before has its fate.
    Up {
        /// Its number.
        session: u64,
        /// The strategy's incarnation at the engine.
        epoch: u16,
    },
    /// A message: at the engine's side an order, at the far side a report; both are checked as far
    /// as their codes go.
    Message(Message, Delivery),
    /// The session is over. What was under way will get its fate.
    Down {
        /// Its number.
        session: u64,
        /// Why.
        why: Why,
    },
    /// What became of a message that was under way.
    Fate {
        /// The session in which it was sent.
        session: u64,
        /// The message.
        message: Message,
        /// Its fate.
        fate: DeliveryOutcome,
    },
    /// The other side wants no more, and both have everything.
    Over,
}

/// Why a message is not taken on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// There is no session.
    #[error("the link is down")]
    Down,
    /// [`WINDOW`] messages are under way.
    #[error("too many messages are under way")]
    Full,
}

/// What a link counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes that were no frame of this run and of the other side.
    pub strange: u64,
    /// Frames of sessions and attempts that are over.
    pub stale: u64,
    /// Messages that came again.
    pub doubled: u64,
    /// Sessions that were up.
    pub sessions: u64,
    /// Frames that no honest side sends.
    pub misconduct: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Down,
    /// The engine's side has answered a Hello and heard nothing in the session yet.
    Opening,
    Up,
    Over,
}

/// One side of a link.
#[derive(Debug)]
pub struct Link {
    side: Side,
    run: u32,
    epoch: u16,
    timing: Timing,
    state: State,
    session: u64,
    attempt: u64,
    outbox: Outbox,
    /// Messages of the other side that were taken in this session.
    taken: u64,
    past: Past,
    /// What the other side wanted to know when this session was opened, and the answer.
    answer: (u64, Option<u64>),
    /// The session of `unsettled`; 0: nothing is unsettled.
    ask: u64,
    unsettled: Vec<Unsettled>,
    events: VecDeque<Event>,
    heard_ns: u64,
    /// When the next frame is due that says nothing new.
    due_ns: u64,
    /// Of the frames that were seen since this side last said which, the quickest.
    echo: Option<Echo>,
    /// The session is new: the other side waits for a heartbeat.
    greets: bool,
    wants_end: bool,
    has_heard_end: bool,
    /// The link is over, and the other side has not heard it.
    repeats_end: bool,
    /// What was counted.
    pub counts: Counts,
    /// What the frames say about the two clocks, as far as they were of an open session.
    pub clocks: Samples,
    broken: Option<Broken>,
}

impl Link {
    /// The strategy's side of a run. Attempts are numbered from `first` on: one that is larger than
    /// every attempt of a process that was here before, such as the time of day in nanoseconds.
    pub fn far(run: u32, first: u64, timing: Timing) -> Self {
        Self::new(Side::Far, run, 0, first, timing)
    }

    /// The engine's side, in that incarnation of the strategy.
    pub fn engine(run: u32, epoch: u16, timing: Timing) -> Self {
        Self::new(Side::Engine, run, epoch, 0, timing)
    }

    fn new(side: Side, run: u32, epoch: u16, attempt: u64, timing: Timing) -> Self {
        Self {
            side,
            run,
            epoch,
            timing,
            state: State::Down,
            session: u64::from(epoch) << 48,
            attempt,
            outbox: Outbox::new(),
            taken: 0,
            past: Past::default(),
            answer: (0, None),
            ask: 0,
            unsettled: Vec::new(),
            events: VecDeque::with_capacity(WINDOW),
            heard_ns: 0,
            due_ns: 0,
            echo: None,
            greets: false,
            wants_end: false,
            has_heard_end: false,
            repeats_end: false,
            counts: Counts::default(),
            clocks: Samples::new(),
            broken: None,
        }
    }

    /// The same in the place of a process that has ended, and remembers what that one did: it wrote
    /// this down when its last session was over, and took nothing afterwards.
    #[must_use]
    pub fn remembering(self, past: Past) -> Self {
        Self { past, ..self }
    }

    /// What is remembered of the sessions that are over.
    pub const fn past(&self) -> Past {
        self.past
    }

    /// Whether the other side sends no more in this session: it has said so.
    pub const fn has_heard_end(&self) -> bool {
        self.has_heard_end
    }

    /// Whether a session is open.
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Whether everything is said, on both sides.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Whether as much is under way as may be.
    pub fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// Whether the other side is known to have all that was sent in this session.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_empty() && self.unsettled.is_empty()
    }

    /// What happened, the oldest first.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes a message on its way: an order, of the engine's side a report. `about` says when what
    /// it answers was sent there and seen here; `None`: nothing.
    ///
    /// # Errors
    /// [`Refused`]: it is not on its way, and its fate is the caller's.
    pub fn send(&mut self, message: Message, about: Option<Echo>) -> Result<(), Refused> {
        if self.state != State::Up || self.wants_end {
            return Err(Refused::Down);
        }
        if self.outbox.push(message, about) { Ok(()) } else { Err(Refused::Full) }
    }

    /// Sends no more. When both sides have said so and have everything, the link is over.
    pub fn end(&mut self) {
        if !self.wants_end {
            (self.wants_end, self.due_ns) = (true, 0);
        }
    }

    /// Ends the session from this side, as a lost connection would: the other side hears nothing of
    /// it any more.
    pub fn hang_up(&mut self) {
        if matches!(self.state, State::Opening | State::Up) {
            self.down(Why::HungUp);
        }
    }

    /// Gives up what nobody answers any more: what is under way is [`Fate::Unknown`].
    pub fn abandon(&mut self) {
        self.hang_up();
        self.settle(None);
        self.state = State::Over;
    }

    /// Something arrived, just now.
    pub fn receive(&mut self, bytes: &[u8], now: u64) {
        let frame = match Frame::decode(bytes) {
            Ok(frame) if frame.run == self.run && frame.from == self.side.other() => frame,
            _ => {
                self.counts.strange += 1;
                return;
            }
        };
        match (frame.kind, self.side) {
            (Kind::Hello, Side::Engine) => self.hello(&frame, now),
            (Kind::Welcome, Side::Far) => self.welcome(&frame, now),
            (Kind::Hello | Kind::Welcome, _) => self.counts.misconduct += 1,
            _ => self.within(&frame, now),
        }
    }

    /// Hands over what is to go now, for as long as it is taken. `offer` says whether it took the
    /// frame; one that it did not take is made anew the next time. Returns how many went. To be
    /// called often: at least once in a heartbeat's time.
    pub fn turn(&mut self, now: u64, mut offer: impl FnMut(&[u8; FRAME]) -> bool) -> usize {
        let is_silent = now.saturating_sub(self.heard_ns) >= self.timing.silence_ns;
        if is_silent && matches!(self.state, State::Opening | State::Up) {
            self.down(Why::Silence);
        }
        let mut sent = 0;
        if self.state == State::Up {
            // The first frame of a session that counts: it has the answer.
            if self.greets {
                if !self.say(Kind::Heartbeat, now, &mut offer) {
                    return sent;
                }
                self.greets = false;
                sent += 1;
            }
            while let Some((sequence, message, about)) = self.outbox.next() {
                let frame = self.frame(Kind::Data, sequence, message, now);
                if !offer(&Frame { echo: about.or(self.echo), ..frame }.encode()) {
                    return sent;
                }
                self.echo = self.echo.filter(|_| about.is_some());
                self.outbox.did_transmit();
                self.due_ns = now.saturating_add(self.timing.heartbeat_ns);
                sent += 1;
            }
        }
        let repeats_end = core::mem::take(&mut self.repeats_end);
        if now < self.due_ns && !repeats_end {
            return sent;
        }
        let kind = match (self.state, self.side) {
            (State::Down, Side::Far) => Kind::Hello,
            (State::Opening, _) => Kind::Welcome,
            (State::Up, _) if self.is_content() => Kind::End,
            (State::Up, _) => Kind::Heartbeat,
            (State::Over, _) if repeats_end => Kind::End,
            (State::Down | State::Over, _) => return sent,
        };
        let last = self.attempt;
        if kind == Kind::Hello {
            self.attempt = last.saturating_add(1);
        }
        let went = self.say(kind, now, &mut offer);
        if !went {
            self.attempt = last;
        }
        if went && kind == Kind::End && self.has_heard_end && self.state == State::Up {
            self.over();
        }
        sent + usize::from(went)
    }

    /// Says something that is no message; `false`: it was not taken.
    fn say(&mut self, kind: Kind, now: u64, offer: &mut impl FnMut(&[u8; FRAME]) -> bool) -> bool {
        let (of, taken) = self.answer;
        let answer = Talk { ask: self.ask, of, taken, epoch: self.epoch, heard_end: self.has_heard_end };
        let (talk, pause) = match kind {
            Kind::Hello => (Talk { ask: self.ask, ..Talk::default() }, self.timing.hello_ns),
            Kind::Welcome => (answer, self.timing.hello_ns),
            _ => (answer, self.timing.heartbeat_ns),
        };
        let went = offer(&self.frame(kind, self.outbox.transmitted(), talk.words(), now).encode());
        if went {
            self.due_ns = now.saturating_add(pause);
            self.echo = None;
        }
        went
    }

    /// Whether this side sends no more and the other has everything.
    fn is_content(&self) -> bool {
        self.wants_end && self.outbox.is_empty()
    }

    fn frame(&self, kind: Kind, sequence: u64, words: Message, now: u64) -> Frame {
        Frame {
            kind,
            from: self.side,
            run: self.run,
            session: if kind == Kind::Hello { 0 } else { self.session },
            attempt: self.attempt,
            sequence,
            taken: self.taken,
            sent: now,
            echo: self.echo,
            words,
        }
    }
}

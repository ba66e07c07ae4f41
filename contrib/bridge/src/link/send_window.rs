//! The send window of a session: numbered messages that are not confirmed as taken.

use crate::frame::Echo;
use protocol::wire::Message;
use std::collections::VecDeque;

/// Maximum number of unconfirmed messages of a session between two hosts. More are refused, not
/// queued.
pub const WINDOW: usize = 1024;

/// The messages of one session that the peer has not confirmed as taken.
#[derive(Debug)]
pub struct SendWindow {
    waiting: VecDeque<(Message, Option<Echo>)>,
    /// Number of messages confirmed as taken; the oldest unconfirmed one has the next number.
    taken: u64,
    transmitted: u64,
}

/// A message of an ended session that the peer may or may not have taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnconfirmedMessage {
    pub sequence: u64,
    pub message: Message,
}

impl SendWindow {
    pub fn new() -> Self {
        Self { waiting: VecDeque::with_capacity(WINDOW), taken: 0, transmitted: 0 }
    }

    /// Adds a message to be sent, with the times of the peer's frame that it answers. Returns
    /// `false` if the window is full.
    #[must_use]
    pub fn try_push(&mut self, message: Message, about: Option<Echo>) -> bool {
        let has_room = !self.is_full();
        if has_room {
            self.waiting.push_back((message, about));
        }
        has_room
    }

    /// Returns `true` if the session has the maximum number of unconfirmed messages.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= WINDOW
    }

    /// Returns the next message to transmit, its number in the session, and the times of the peer's
    /// frame that it answers.
    pub fn next(&self) -> Option<(u64, Message, Option<Echo>)> {
        let at = usize::try_from(self.transmitted - self.taken).ok()?;
        self.waiting.get(at).map(|(message, about)| (self.transmitted + 1, *message, *about))
    }

    pub fn mark_transmitted(&mut self) {
        self.transmitted += 1;
    }

    pub const fn transmitted(&self) -> u64 {
        self.transmitted
    }

    /// Returns `true` if the peer has confirmed all messages of the session.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes the messages of the session up to number `taken`, which the peer has confirmed;
    /// returns `false` if fewer were transmitted.
    #[must_use]
    pub fn try_confirm(&mut self, taken: u64) -> bool {
        if taken > self.transmitted {
            return false;
        }
        // A late frame with an older count has no effect.
        while self.taken < taken {
            self.waiting.pop_front();
            self.taken += 1;
        }
        true
    }

    /// Removes all unconfirmed messages from the window when its session has ended. Returns
    /// messages that may have been taken, and those not transmitted.
    pub fn drain(&mut self) -> (Vec<UnconfirmedMessage>, Vec<UnconfirmedMessage>) {
        let first = self.taken + 1;
        let mut all: Vec<UnconfirmedMessage> = (first..)
            .zip(self.waiting.drain(..))
            .map(|(sequence, (message, _))| UnconfirmedMessage { sequence, message })
            .collect();
        let transmitted_count =
            usize::try_from(self.transmitted - self.taken).unwrap_or(usize::MAX).min(all.len());
        let not_transmitted = all.split_off(transmitted_count);
        (self.taken, self.transmitted) = (0, 0);
        (all, not_transmitted)
    }
}

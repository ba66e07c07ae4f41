//! Messages that were sent and are not known to be taken, numbered within a session.

use crate::frame::Echo;
use protocol::wire::Message;
use std::collections::VecDeque;

/// How many messages may be sent and not known to be taken. More are refused: nobody waits for them
/// in here.
pub const WINDOW: usize = 1024;

/// The messages of one session that are still to be taken.
#[derive(Debug)]
pub struct Outbox {
    waiting: VecDeque<(Message, Option<Echo>)>,
    /// So many were taken: the oldest that waits has the next number.
    taken: u64,
    /// So many were transmitted.
    transmitted: u64,
}

/// A message of a session that has ended, whose fate is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsettled {
    /// Its number in that session.
    pub sequence: u64,
    /// The message.
    pub message: Message,
}

impl Outbox {
    /// An empty one.
    pub fn new() -> Self {
        Self { waiting: VecDeque::with_capacity(WINDOW), taken: 0, transmitted: 0 }
    }

    /// Takes a message on its way, with the frame that it is about; `false`: there is no room.
    #[must_use]
    pub fn push(&mut self, message: Message, about: Option<Echo>) -> bool {
        let has_room = !self.is_full();
        if has_room {
            self.waiting.push_back((message, about));
        }
        has_room
    }

    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= WINDOW
    }

    /// The next one to transmit, with its number and the frame that it is about.
    pub fn next(&self) -> Option<(u64, Message, Option<Echo>)> {
        let at = usize::try_from(self.transmitted - self.taken).ok()?;
        self.waiting.get(at).map(|(message, about)| (self.transmitted + 1, *message, *about))
    }

    /// The next one is on its way.
    pub fn did_transmit(&mut self) {
        self.transmitted += 1;
    }

    /// How many were transmitted in this session.
    pub const fn transmitted(&self) -> u64 {
        self.transmitted
    }

    /// Whether the other side has everything.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The other side says that it took so many in all. `false`: so many were never sent.
    #[must_use]
    pub fn take(&mut self, taken: u64) -> bool {
        if taken > self.transmitted {
            return false;
        }
        // An older frame that comes late says less: nothing.
        while self.taken < taken {
            self.waiting.pop_front();
            self.taken += 1;
        }
        true
    }

    /// The session is over: hands over what may have been taken, then what was certainly not, and
    /// begins anew.
    pub fn end(&mut self) -> (Vec<Unsettled>, Vec<Unsettled>) {
        let first = self.taken + 1;
        let mut all: Vec<Unsettled> = (first..)
            .zip(self.waiting.drain(..))
            .map(|(sequence, (message, _))| Unsettled { sequence, message })
            .collect();
        let on_the_way = usize::try_from(self.transmitted - self.taken).unwrap_or(usize::MAX).min(all.len());
        let never = all.split_off(on_the_way);
        (self.taken, self.transmitted) = (0, 0);
        (all, never)
    }
}

//! The history of ended sessions: how many messages were taken, which the peer needs on reconnect.

use super::Broken;

/// The count of messages that one end of a link accepted from its peer in its last ended session
/// with any. The peer asks for it after a reconnect. Outcomes of earlier sessions are settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionHistory {
    /// The first session of this side; 0: none yet. Earlier ones are unknown.
    first: u64,
    last: u64,
    taken: u64,
}

impl SessionHistory {
    /// Encodes the session history, to be saved for a successor process.
    pub const fn to_words(&self) -> [u64; 3] {
        [self.first, self.last, self.taken]
    }

    /// Decodes a saved session history; `None` if its words are invalid.
    pub fn from_words([first, last, taken]: [u64; 3]) -> Option<Self> {
        let is_valid = (last == 0 && taken == 0) || (first != 0 && first <= last && taken > 0);
        is_valid.then_some(Self { first, last, taken })
    }

    pub(super) fn begin(&mut self, session: u64) {
        if self.first == 0 {
            self.first = session;
        }
    }

    /// Records that a session ends in which `taken` messages were taken.
    pub(super) fn end(&mut self, session: u64, taken: u64) {
        if taken > 0 {
            (self.last, self.taken) = (session, taken);
        }
    }

    /// Returns how many messages were taken in the session `of`; `None` if unknown.
    pub(super) fn answer(&self, of: u64, broken: Option<Broken>) -> Option<u64> {
        if broken == Some(Broken::LosesReceiveHistory) {
            return Some(0);
        }
        match of {
            _ if self.first == 0 || of < self.first || of < self.last => None,
            _ if of == self.last => Some(self.taken),
            _ => Some(0),
        }
    }
}

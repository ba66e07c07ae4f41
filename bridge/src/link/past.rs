//! How much was taken in sessions that are over: what the other side asks when it comes back.

use super::Broken;

/// What is remembered: the last session in which anything was taken is enough. No side is up in a
/// session before all that it sent in earlier ones is settled, so whoever asks about a session asks
/// about the last one in which he sent anything that could be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The first session that this side was in; 0: none yet. Of earlier ones nobody here knows.
    first: u64,
    last: u64,
    taken: u64,
}

impl Past {
    /// As words, to be written down for the process that comes next.
    pub const fn words(&self) -> [u64; 3] {
        [self.first, self.last, self.taken]
    }

    /// What such words say; `None`: what nobody remembers.
    pub fn from_words([first, last, taken]: [u64; 3]) -> Option<Self> {
        let is_one = (last == 0 && taken == 0) || (first != 0 && first <= last && taken > 0);
        is_one.then_some(Self { first, last, taken })
    }

    /// A session has begun.
    pub(super) fn begin(&mut self, session: u64) {
        if self.first == 0 {
            self.first = session;
        }
    }

    /// A session is over, in which so many were taken.
    pub(super) fn end(&mut self, session: u64, taken: u64) {
        if taken > 0 {
            (self.last, self.taken) = (session, taken);
        }
    }

    /// How many were taken in that session; `None`: nobody here knows.
    pub(super) fn answer(&self, of: u64, broken: Option<Broken>) -> Option<u64> {
        if broken == Some(Broken::ForgetsWhatItTook) {
            return Some(0);
        }
        match of {
            _ if self.first == 0 || of < self.first || of < self.last => None,
            _ if of == self.last => Some(self.taken),
            _ => Some(0),
        }
    }
}

//! The exchange's journal: what it was told, written down before it acts on it.
//!
//! ```text
//! word 0  what: 0 the time has come, 1 a part of what rests expires, 2 a message; its session in the bits from 8 on
//!      1  when: the ticks of the duty cycle
//!      2… the message, as it came through the session
//! ```
//! Times are in the records and never read again, so the same records give the same reports.

use journal::{JournalError, Record, RecoveryError, Writer, codec};
use protocol::wire::Message;
use shm::ring::MESSAGE_WORDS;

/// What an exchange was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalEntry {
    /// The time has come.
    Time,
    /// Trading is over: a part of what rests expires.
    Close,
    /// A message came through a session.
    Message(usize, Message),
}

const WORDS: usize = 2 + MESSAGE_WORDS;

impl JournalEntry {
    pub(crate) fn encode<T>(&self, now: u64, take: impl FnOnce(&[u8]) -> T) -> T {
        let mut words = [0; WORDS];
        let used = match self {
            Self::Time => 2,
            Self::Close => {
                words[0] = 1;
                2
            }
            Self::Message(session, message) => {
                words[0] = 2 | (*session as u64) << 8;
                words[2..].copy_from_slice(message);
                WORDS
            }
        };
        words[1] = now;
        codec::with_bytes(words, used, take)
    }

    /// Writes it down, before it is acted on.
    #[inline]
    pub(crate) fn append(&self, journal: &mut Writer, now: u64) -> Result<(), JournalError> {
        self.encode(now, |payload| journal.append(payload)).map(drop)
    }

    /// What a record says, and when that was.
    pub(crate) fn of(record: &Record<'_>) -> Result<(Self, u64), RecoveryError> {
        Self::decode(record.payload).ok_or(RecoveryError::Foreign(record.sequence))
    }

    fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut words = codec::words(bytes)?;
        let (what, now) = (words.next()?, words.next()?);
        let told = match (what & 0xFF, what >> 8) {
            (0, 0) => Self::Time,
            (1, 0) => Self::Close,
            (2, session) => {
                let mut message = Message::default();
                for word in &mut message {
                    *word = words.next()?;
                }
                Self::Message(usize::try_from(session).ok()?, message)
            }
            _ => return None,
        };
        words.next().is_none().then_some((told, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_was_told_is_read_back_and_nothing_else_is() {
        let message = [1, 2, 3, 4, 5, 6, 7];
        for told in [
            JournalEntry::Time,
            JournalEntry::Close,
            JournalEntry::Message(0, message),
            JournalEntry::Message(63, message),
        ] {
            let bytes = told.encode(u64::MAX - 3, <[u8]>::to_vec);
            let length = bytes.len();
            assert_eq!(JournalEntry::decode(&bytes), Some((told, u64::MAX - 3)));
            assert_eq!(JournalEntry::decode(&bytes[..length - 8]), None, "cut off");
            assert_eq!(JournalEntry::decode(&bytes[..length - 1]), None, "cut off within a word");
            assert_eq!(
                JournalEntry::decode(&[&bytes[..length], &[0; 8]].concat()),
                None,
                "something behind it"
            );
        }
        assert_eq!(JournalEntry::decode(&[3; 16]), None);
        assert_eq!(JournalEntry::decode(&[]), None);
    }
}

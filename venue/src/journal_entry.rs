//! The records of an exchange's journal: its inputs, recorded before they are applied.
//!
//! ```text
//! word 0  kind: 0 time passed, 1 resting orders expire, 2 a message; above 8 bits its session
//!      1  time of the duty cycle in ticks
//!      2… the message, as it came through its session
//! ```
//! Times are in the records, so equal records give equal reports.

use journal::{JournalError, Record, RecoveryError, Writer, codec};
use protocol::wire::Message;
use shm::ring::MESSAGE_WORDS;

/// An input of an exchange, as recorded in its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalEntry {
    /// Time has passed, so that orders may have expired.
    Time,
    /// Trading has ended: some of the resting orders expire.
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

    /// Appends the input to the exchange's journal, before it is applied.
    #[inline]
    pub(crate) fn append(&self, journal: &mut Writer, now: u64) -> Result<(), JournalError> {
        self.encode(now, |payload| journal.append(payload)).map(drop)
    }

    /// Decodes an input of an exchange from a journal record, with its time in ticks.
    ///
    /// # Errors
    /// [`RecoveryError::Foreign`] for a record of another kind.
    pub fn from_record(record: &Record<'_>) -> Result<(Self, u64), RecoveryError> {
        Self::decode(record.payload).ok_or(RecoveryError::Foreign(record.sequence))
    }

    fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut words = codec::words(bytes)?;
        let (kind, now) = (words.next()?, words.next()?);
        let entry = match (kind & 0xFF, kind >> 8) {
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
        words.next().is_none().then_some((entry, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_entry_round_trips_and_garbage_is_refused() {
        let message = [1, 2, 3, 4, 5, 6, 7];
        for entry in [
            JournalEntry::Time,
            JournalEntry::Close,
            JournalEntry::Message(0, message),
            JournalEntry::Message(63, message),
        ] {
            let bytes = entry.encode(u64::MAX - 3, <[u8]>::to_vec);
            let length = bytes.len();
            assert_eq!(JournalEntry::decode(&bytes), Some((entry, u64::MAX - 3)));
            assert_eq!(JournalEntry::decode(&bytes[..length - 8]), None, "truncated");
            assert_eq!(JournalEntry::decode(&bytes[..length - 1]), None, "truncated within a word");
            assert_eq!(JournalEntry::decode(&[&bytes[..length], &[0; 8]].concat()), None, "trailing bytes");
        }
        assert_eq!(JournalEntry::decode(&[3; 16]), None);
        assert_eq!(JournalEntry::decode(&[]), None);
    }
}

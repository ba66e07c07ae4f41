//! The exchange's journal: what it was told, written down before it acts on it.
//!
//! ```text
//! word 0  what: 0 the time has come, 1 a part of what rests expires, 2 a message; its session in the bits from 8 on
//!      1  when: the ticks of the duty cycle
//!      2… the message, as it came through the session
//! ```
//! Times are in the records and never read again, so the same records give the same reports.

use exchange::StateError;
use journal::codec::CodecError;
use journal::{JournalError, Record, Writer};
use protocol::wire::Message;
use shm::ring::MESSAGE_WORDS;
use thiserror::Error;

/// What an exchange was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The time has come.
    Time,
    /// Trading is over: a part of what rests expires.
    Close,
    /// A message came through a session.
    Message(usize, Message),
}

const WORDS: usize = 2 + MESSAGE_WORDS;

/// An exchange that cannot come back.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// The journal itself.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record that no exchange with these sessions writes.
    #[error("record {0} of the journal is none of this exchange's")]
    Foreign(u64),
    /// A record of a session that is not there.
    #[error("the journal has messages of session {0}, which this exchange has not")]
    Session(usize),
    /// A state that cannot be encoded.
    #[error(transparent)]
    Unencoded(#[from] CodecError),
    /// A snapshot that cannot be decoded.
    #[error("the snapshot behind record {0}: {1}")]
    Encoded(u64, CodecError),
    /// A snapshot with a state that no exchange with these sessions and instruments has.
    #[error("the snapshot behind record {0}: {1}")]
    State(u64, StateError),
    /// The journal has less than its sessions: what was written has been lost.
    #[error(
        "journal is incomplete: it accounts for {journal} {what} of session {session}, but {there} were observed"
    )]
    Short {
        /// `messages`, `reports`.
        what: &'static str,
        /// The session, by its credential.
        session: usize,
        /// As many of them follow from the journal.
        journal: u64,
        /// As many there were.
        there: u64,
    },
}

impl Told {
    fn encode(&self, now: u64) -> ([u8; WORDS * 8], usize) {
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
        let mut bytes = [0; WORDS * 8];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        (bytes, used * 8)
    }

    /// Writes it down, before it is acted on.
    #[inline]
    pub(crate) fn append(&self, journal: &mut Writer, now: u64) -> Result<(), JournalError> {
        let (bytes, length) = self.encode(now);
        journal.append(&bytes[..length]).map(drop)
    }

    /// What a record says, and when that was.
    pub(crate) fn of(record: &Record<'_>) -> Result<(Self, u64), RecoveryError> {
        Self::decode(record.payload).ok_or(RecoveryError::Foreign(record.sequence))
    }

    fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
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
        (rest.is_empty() && words.next().is_none()).then_some((told, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_was_told_is_read_back_and_nothing_else_is() {
        let message = [1, 2, 3, 4, 5, 6, 7];
        for told in [Told::Time, Told::Close, Told::Message(0, message), Told::Message(63, message)] {
            let (bytes, length) = told.encode(u64::MAX - 3);
            assert_eq!(Told::decode(&bytes[..length]), Some((told, u64::MAX - 3)));
            assert_eq!(Told::decode(&bytes[..length - 8]), None, "cut off");
            assert_eq!(Told::decode(&bytes[..length - 1]), None, "cut off within a word");
            assert_eq!(Told::decode(&[&bytes[..length], &[0; 8]].concat()), None, "something behind it");
        }
        assert_eq!(Told::decode(&[3; 16]), None);
        assert_eq!(Told::decode(&[]), None);
    }
}

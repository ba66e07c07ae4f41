//! The exchange's journal: what it was told, written down before it acts on it.
//!
//! ```text
//! word 0  what: 0 the time has come, 1 a part of what rests expires, 2 a message; its session in the bits from 8 on
//!      1  when: the ticks of the duty cycle
//!      2… the message, as it came through the session
//! ```
//! Times are in the records and never read again, so the same records give the same reports.

use crate::state::StateError;
use journal::codec::CodecError;
use journal::{Durability, JournalError, Options, Reader, Recovered, Watermark, Writer};
use protocol::wire::Message;
use shm::ring::MESSAGE_WORDS;
use std::path::Path;
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
    /// A snapshot that cannot be decoded.
    #[error("the snapshot behind record {0}: {1}")]
    Encoded(u64, CodecError),
    /// A snapshot with a state that no exchange with these sessions and instruments has.
    #[error("the snapshot behind record {0}: {1}")]
    State(u64, StateError),
    /// The journal has less than its sessions: what was written has been lost.
    #[error(
        "the journal is not whole: it has {journal} {what} of session {session}, and {there} have gone through"
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
    pub(super) fn encode(&self, now: u64) -> ([u8; WORDS * 8], usize) {
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

    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
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

/// A part of what is recovered.
pub(super) enum Part<'a> {
    /// The bytes of a state, and the last record in it.
    State(u64, &'a [u8]),
    /// A record, with its time.
    Told(Told, u64),
}

impl<'a> Part<'a> {
    pub(super) fn of(part: Recovered<'a>) -> Result<Self, RecoveryError> {
        match part {
            Recovered::Snapshot { sequence, state } => Ok(Part::State(sequence, state)),
            Recovered::Record { sequence, payload } => match Told::decode(payload) {
                Some((told, now)) => Ok(Part::Told(told, now)),
                None => Err(RecoveryError::Foreign(sequence)),
            },
        }
    }
}

/// The writing end.
pub struct CommandLog {
    writer: Writer,
    watermark: Watermark,
    /// Reports wait for it.
    is_group: bool,
}

impl CommandLog {
    /// Recovers what is in the folder, told part by part, and goes on behind it. Who has followed it with a reader is told only what comes
    /// then.
    ///
    /// # Errors
    /// As [`RecoveryError`]; the first that `take` gives.
    pub(super) fn open(
        folder: &Path,
        options: &Options,
        followed: Option<Reader>,
        mut take: impl FnMut(Part<'_>) -> Result<(), RecoveryError>,
    ) -> Result<Self, RecoveryError> {
        let mut failed = None;
        let apply = |part: Recovered<'_>| {
            if failed.is_none() {
                failed = Part::of(part).and_then(&mut take).err();
            }
        };
        let writer = match followed {
            Some(reader) => Writer::open_behind(folder, options, reader, apply),
            None => Writer::open(folder, options, apply),
        }?;
        if let Some(error) = failed {
            return Err(error);
        }
        let is_group = matches!(options.durability, Durability::Group { .. });
        let watermark = writer.watermark();
        Ok(Self { writer, watermark, is_group })
    }

    /// Writes down what the exchange is about to act on.
    #[inline]
    pub(super) fn append(&mut self, told: &Told, now: u64) -> Result<(), JournalError> {
        let (bytes, length) = told.encode(now);
        self.writer.append(&bytes[..length]).map(drop)
    }

    /// What was written last.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.writer.last()
    }

    /// Up to which record what came of it may be said.
    #[inline]
    pub(super) fn settled(&self) -> u64 {
        if self.is_group { self.watermark.durable() } else { u64::MAX }
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Option<JournalError> {
        self.watermark.check().err()
    }

    /// Records that were there at the start.
    pub(super) fn recovered(&self) -> u64 {
        self.writer.recovered().last
    }

    /// Those of them that were carried out again, because no state had them.
    pub(super) fn replayed(&self) -> u64 {
        self.writer.recovered().records
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

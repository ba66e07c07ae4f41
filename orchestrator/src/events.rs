//! The engine's journal: what the orchestrator was told and what it saw of the world, written down before it acts on it.
//!
//! Everything that it does follows from these records, in their order: whose order came and whether its gateway had room, which report
//! came, which strategy died, what an operator wanted. Times are in the records and never read again.
//!
//! ```text
//! word 0  what it is in the lowest byte; then two numbers of 16 bits, and a flag in bit 40
//!      1  when: the ticks of the duty cycle
//!      2… the message, or the words of the command
//! ```

use journal::codec::CodecError;
use journal::{JournalError, Record, Writer};
use protocol::desk::Command;
use protocol::supervision::{Incarnation, Misconduct};
use protocol::wire::Message;
use shm::ring::MESSAGE_WORDS;
use thiserror::Error;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was taken from the submit hand-off.
    Submitted {
        /// Whose memory it came through, where that says it.
        from: Option<u16>,
        /// Its gateway's inbox had room.
        has_room: bool,
        /// The message.
        message: Message,
    },
    /// A message was taken from the completion hand-off.
    Reported {
        /// The gateway whose memory it came through, where that says it.
        gateway: Option<u16>,
        /// The message.
        message: Message,
    },
    /// A strategy's fence was seen to have changed.
    Life {
        /// The strategy.
        strategy: u16,
        /// How it is now.
        life: Incarnation,
    },
    /// A gateway was told to cancel what a dead strategy has open.
    Told {
        /// The strategy.
        strategy: u16,
        /// The gateway.
        gateway: u16,
    },
    /// Nothing waits for a dead strategy any more.
    Retired {
        /// The strategy.
        strategy: u16,
    },
    /// An operator's command was taken.
    Command {
        /// Its number.
        number: u32,
        /// The command, if it is one.
        command: Option<Command>,
    },
    /// A gateway was told to cancel what a kill switch concerns.
    KillTold {
        /// Which of the switches that are not done.
        kill: u16,
        /// The gateway.
        gateway: u16,
    },
    /// An order that waited was dispatched.
    Flushed {
        /// The gateway.
        gateway: u16,
    },
    /// Somebody did what no honest strategy does, and only the memory of that moment shows it.
    Misconduct {
        /// Who, where that is known.
        from: Option<u16>,
        /// What it was.
        why: Misconduct,
    },
}

const WORDS: usize = 2 + MESSAGE_WORDS;
/// Of nobody.
const NOBODY: u16 = u16::MAX;
const FLAG: u64 = 1 << 40;

impl Event {
    pub(crate) fn encode(&self, now: u64) -> ([u8; WORDS * 8], usize) {
        let mut words = [0; WORDS];
        let head = |what: u64, a: u16, b: u16| what | u64::from(a) << 8 | u64::from(b) << 24;
        let mut used = 2;
        words[0] = match *self {
            Event::Submitted { from, has_room, message } => {
                words[2..].copy_from_slice(&message);
                used = WORDS;
                head(1, from.unwrap_or(NOBODY), 0) | if has_room { FLAG } else { 0 }
            }
            Event::Reported { gateway, message } => {
                words[2..].copy_from_slice(&message);
                used = WORDS;
                head(2, gateway.unwrap_or(NOBODY), 0)
            }
            Event::Life { strategy, life } => {
                head(3, strategy, life.epoch) | if life.fenced { FLAG } else { 0 }
            }
            Event::Told { strategy, gateway } => head(4, strategy, gateway),
            Event::Retired { strategy } => head(5, strategy, 0),
            Event::Command { number, command } => {
                words[2] = number.into();
                if let Some(command) = command {
                    words[3..5].copy_from_slice(&command.to_words());
                }
                used = 5;
                head(6, 0, 0) | if command.is_some() { FLAG } else { 0 }
            }
            Event::KillTold { kill, gateway } => head(7, kill, gateway),
            Event::Flushed { gateway } => head(8, gateway, 0),
            Event::Misconduct { from, why } => head(9, from.unwrap_or(NOBODY), why.code() as u16),
        };
        words[1] = now;
        let mut bytes = [0; WORDS * 8];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        (bytes, used * 8)
    }

    /// Writes it down, before it is acted on; `now` is when that is, in ticks.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn append(&self, journal: &mut Writer, now: u64) -> Result<(), JournalError> {
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
        let (head, now) = (words.next()?, words.next()?);
        let (a, b, flag) = ((head >> 8) as u16, (head >> 24) as u16, head & FLAG != 0);
        let who = (a != NOBODY).then_some(a);
        let mut message = || {
            let mut message = Message::default();
            for word in &mut message {
                *word = words.next()?;
            }
            Some(message)
        };
        let event = match head & 0xFF {
            1 => Event::Submitted { from: who, has_room: flag, message: message()? },
            2 => Event::Reported { gateway: who, message: message()? },
            3 => Event::Life { strategy: a, life: Incarnation { epoch: b, fenced: flag } },
            4 => Event::Told { strategy: a, gateway: b },
            5 => Event::Retired { strategy: a },
            6 => {
                let number = u32::try_from(words.next()?).ok()?;
                let command = [words.next()?, words.next()?];
                let command = if flag { Some(Command::from_words(command)?) } else { None };
                Event::Command { number, command }
            }
            7 => Event::KillTold { kill: a, gateway: b },
            8 => Event::Flushed { gateway: a },
            9 => Event::Misconduct { from: who, why: Misconduct::from_code(b.into())? },
            _ => return None,
        };
        (rest.is_empty() && words.next().is_none() && event.encode(now).0[..8] == head.to_le_bytes())
            .then_some((event, now))
    }
}

/// An engine that cannot come back.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// The journal itself.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record that no engine with these strategies and gateways writes.
    #[error("record {0} of the journal is none of this engine's")]
    Foreign(u64),
    /// A state that cannot be encoded.
    #[error(transparent)]
    Unencoded(#[from] CodecError),
    /// A snapshot that cannot be decoded.
    #[error("the snapshot behind record {0}: {1}")]
    Encoded(u64, CodecError),
    /// A snapshot with a state that no engine with these strategies, gateways and instruments has.
    #[error("the snapshot behind record {0} is none of this engine's: {1}")]
    State(u64, &'static str),
    /// The journal has less than there was: what was written has been lost.
    #[error(
        "the journal is not whole: by what it says {journal} {what} {index} have gone through, and there were {there}"
    )]
    Short {
        /// `orders of strategy`, `reports of gateway`, …
        what: &'static str,
        /// Which one.
        index: usize,
        /// As many of them follow from the journal.
        journal: u64,
        /// As many there were.
        there: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protocol::kill::Scope;

    fn any_event() -> impl Strategy<Value = Event> {
        let who = prop_oneof![Just(None), (0..NOBODY).prop_map(Some)];
        let numbers = (who, any::<u16>(), any::<u16>(), any::<bool>(), any::<u32>(), any::<Message>());
        let why = (0..Misconduct::ALL.len()).prop_map(|place| Misconduct::ALL[place]);
        (0..9, numbers, why).prop_map(|(what, (who, a, b, flag, number, message), why)| match what {
            0 => Event::Submitted { from: who, has_room: flag, message },
            1 => Event::Reported { gateway: who, message },
            2 => Event::Life { strategy: a, life: Incarnation { epoch: b, fenced: flag } },
            3 => Event::Told { strategy: a, gateway: b },
            4 => Event::Retired { strategy: a },
            5 => Event::Command { number, command: flag.then_some(Command::Kill(Scope::Strategy(a))) },
            6 => Event::KillTold { kill: a, gateway: b },
            7 => Event::Flushed { gateway: a },
            _ => Event::Misconduct { from: who, why },
        })
    }

    proptest! {
        #[test]
        fn what_happened_is_read_back_and_nothing_else_is(event in any_event(), now: u64) {
            let (bytes, length) = event.encode(now);
            prop_assert_eq!(Event::decode(&bytes[..length]), Some((event, now)));
            prop_assert_eq!(Event::decode(&bytes[..length - 8]), None, "cut off");
            prop_assert_eq!(Event::decode(&bytes[..length - 1]), None, "cut off within a word");
            prop_assert_eq!(Event::decode(&[&bytes[..length], &[0; 8]].concat()), None, "something behind it");
        }

        #[test]
        fn bytes_that_are_none_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some((event, now)) = Event::decode(&bytes) {
                let (again, length) = event.encode(now);
                prop_assert_eq!(Event::decode(&again[..length]), Some((event, now)));
            }
        }
    }
}

//! The core's inputs, and how a journal records them.
//!
//! Everything that the engine does follows from these records, in their order. Times are in the records and never read again.
//!
//! ```text
//! word 0  kind in the lowest byte; then two numbers of 16 bits, and a flag in bit 40
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

/// An input of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A message was taken from the submit hand-off.
    Order {
        /// The strategy whose memory it came through, where only one writes that.
        from: Option<u16>,
        /// The message.
        message: Message,
    },
    /// A message was taken from the completion hand-off.
    Report {
        /// The gateway whose memory it came through, where only one writes that.
        gateway: Option<u16>,
        /// The message.
        message: Message,
    },
    /// A strategy's fence has changed: it died, or its next incarnation may start.
    Lifecycle {
        /// The strategy.
        strategy: u16,
        /// Its incarnation now.
        life: Incarnation,
    },
    /// Nothing of a dead strategy is left in the submit hand-off.
    Retired {
        /// The strategy.
        strategy: u16,
    },
    /// A gateway's fence has changed: it died, or its next incarnation takes orders.
    GatewayLife {
        /// The gateway.
        gateway: u16,
        /// Its incarnation now.
        life: Incarnation,
    },
    /// Nothing of a dead gateway is left in the completion hand-off.
    GatewayDrained {
        /// The gateway.
        gateway: u16,
    },
    /// An operator's command.
    Command {
        /// The command's number.
        number: u32,
        /// The command; `None`: the words were none.
        command: Option<Command>,
    },
    /// An order that was queued for its gateway was taken back: see [`Core::must_recall`](super::Core::must_recall).
    Recalled {
        /// The order.
        message: Message,
    },
    /// The memory of a hand-off shows what no honest strategy does.
    Violation {
        /// The strategy, where that is certain.
        from: Option<u16>,
        /// What it did.
        why: Misconduct,
    },
}

const WORDS: usize = 2 + MESSAGE_WORDS;
/// No strategy or gateway.
const NOBODY: u16 = u16::MAX;
const FLAG: u64 = 1 << 40;

impl Input {
    pub(crate) fn encode(&self, now: u64) -> ([u8; WORDS * 8], usize) {
        let mut words = [0; WORDS];
        let head = |what: u64, a: u16, b: u16| what | u64::from(a) << 8 | u64::from(b) << 24;
        let mut used = 2;
        words[0] = match *self {
            Input::Order { from, message } => {
                words[2..].copy_from_slice(&message);
                used = WORDS;
                head(1, from.unwrap_or(NOBODY), 0)
            }
            Input::Report { gateway, message } => {
                words[2..].copy_from_slice(&message);
                used = WORDS;
                head(2, gateway.unwrap_or(NOBODY), 0)
            }
            Input::Lifecycle { strategy, life } => {
                head(3, strategy, life.epoch) | if life.fenced { FLAG } else { 0 }
            }
            Input::Recalled { message } => {
                words[2..].copy_from_slice(&message);
                used = WORDS;
                head(4, 0, 0)
            }
            Input::Retired { strategy } => head(5, strategy, 0),
            Input::Command { number, command } => {
                words[2] = number.into();
                if let Some(command) = command {
                    words[3..5].copy_from_slice(&command.to_words());
                }
                used = 5;
                head(6, 0, 0) | if command.is_some() { FLAG } else { 0 }
            }
            Input::GatewayLife { gateway, life } => {
                head(7, gateway, life.epoch) | if life.fenced { FLAG } else { 0 }
            }
            Input::GatewayDrained { gateway } => head(8, gateway, 0),
            Input::Violation { from, why } => head(9, from.unwrap_or(NOBODY), why.code() as u16),
        };
        words[1] = now;
        let mut bytes = [0; WORDS * 8];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        (bytes, used * 8)
    }

    /// Appends the input to a journal; `now` is in ticks. Returns when the record is there, before the input is applied.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn append(&self, journal: &mut Writer, now: u64) -> Result<(), JournalError> {
        let (bytes, length) = self.encode(now);
        journal.append(&bytes[..length]).map(drop)
    }

    /// Decodes a record: the input, and when it was applied.
    pub(crate) fn from_record(record: &Record<'_>) -> Result<(Self, u64), RecoveryError> {
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
        let input = match head & 0xFF {
            1 => Input::Order { from: who, message: message()? },
            2 => Input::Report { gateway: who, message: message()? },
            3 => Input::Lifecycle { strategy: a, life: Incarnation { epoch: b, fenced: flag } },
            4 => Input::Recalled { message: message()? },
            5 => Input::Retired { strategy: a },
            6 => {
                let number = u32::try_from(words.next()?).ok()?;
                let command = [words.next()?, words.next()?];
                let command = if flag { Some(Command::from_words(command)?) } else { None };
                Input::Command { number, command }
            }
            7 => Input::GatewayLife { gateway: a, life: Incarnation { epoch: b, fenced: flag } },
            8 => Input::GatewayDrained { gateway: a },
            9 => Input::Violation { from: who, why: Misconduct::from_code(b.into())? },
            _ => return None,
        };
        (rest.is_empty() && words.next().is_none() && input.encode(now).0[..8] == head.to_le_bytes())
            .then_some((input, now))
    }
}

/// Why an engine cannot be recovered.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// The journal itself.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record that no engine with these strategies and gateways writes.
    #[error("journal record {0} was not written by this engine")]
    Foreign(u64),
    /// A state that cannot be encoded.
    #[error(transparent)]
    Unencoded(#[from] CodecError),
    /// A snapshot that cannot be decoded.
    #[error("the snapshot behind record {0}: {1}")]
    Encoded(u64, CodecError),
    /// A snapshot with a state that no engine with these strategies, gateways and instruments has.
    #[error("the snapshot after record {0} was not written by this engine: {1}")]
    State(u64, &'static str),
    /// The journal has less than there was: what was written has been lost.
    #[error("journal is incomplete: it accounts for {journal} {what} {index}, but {there} were observed")]
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

    fn any_input() -> impl Strategy<Value = Input> {
        let who = prop_oneof![Just(None), (0..NOBODY).prop_map(Some)];
        let numbers = (who, any::<u16>(), any::<u16>(), any::<bool>(), any::<u32>(), any::<Message>());
        let why = (0..Misconduct::ALL.len()).prop_map(|index| Misconduct::ALL[index]);
        (0..9, numbers, why).prop_map(|(kind, (who, a, b, flag, number, message), why)| match kind {
            0 => Input::Order { from: who, message },
            1 => Input::Report { gateway: who, message },
            2 => Input::Lifecycle { strategy: a, life: Incarnation { epoch: b, fenced: flag } },
            3 => Input::Recalled { message },
            4 => Input::Retired { strategy: a },
            6 => Input::GatewayLife { gateway: a, life: Incarnation { epoch: b, fenced: flag } },
            7 => Input::GatewayDrained { gateway: a },
            5 => Input::Command { number, command: flag.then_some(Command::Kill(Scope::Strategy(a))) },
            _ => Input::Violation { from: who, why },
        })
    }

    proptest! {
        #[test]
        fn input_is_read_back_and_nothing_else(input in any_input(), now: u64) {
            let (bytes, length) = input.encode(now);
            prop_assert_eq!(Input::decode(&bytes[..length]), Some((input, now)));
            prop_assert_eq!(Input::decode(&bytes[..length - 8]), None, "cut off");
            prop_assert_eq!(Input::decode(&bytes[..length - 1]), None, "cut off within a word");
            prop_assert_eq!(Input::decode(&[&bytes[..length], &[0; 8]].concat()), None, "trailing bytes");
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some((input, now)) = Input::decode(&bytes) {
                let (encoded, length) = input.encode(now);
                prop_assert_eq!(Input::decode(&encoded[..length]), Some((input, now)));
            }
        }
    }
}

//! The core's inputs, and how a journal records them.
//!
//! The engine's behavior follows from these records alone, in order; times are in the records.
//!
//! ```text
//! word 0  kind in the lowest byte; then two numbers of 16 bits, and a flag in bit 40
//!      1  when: the ticks of the duty cycle since the run's start
//!      2… the message, or the words of the command
//! ```

use journal::{Record, RecoveryError, codec};
use protocol::commands::Command;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::supervision::{Incarnation, ProtocolViolation};
use protocol::wire::Message;
use shm::ring::MESSAGE_WORDS;

/// An input of the engine's state machine, such as an order, a report or a command. `from` and
/// `gateway` identify the peer by the memory it came through, if only one peer writes that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields' names say all")]
pub enum Input {
    /// An order, replace or cancel from the submit hand-off.
    Order { from: Option<StrategyIndex>, message: Message },
    /// A report from the completion hand-off.
    Report { gateway: Option<GatewayIndex>, message: Message },
    /// A strategy's fence changed: it died, or its next incarnation may start.
    Lifecycle { strategy: StrategyIndex, life: Incarnation },
    /// All orders of a dead strategy in the submit hand-off were taken.
    Retired { strategy: StrategyIndex },
    /// A gateway's fence changed: it died, or its next incarnation takes orders.
    GatewayLife { gateway: GatewayIndex, life: Incarnation },
    /// All reports of a dead gateway in the completion hand-off were taken.
    GatewayDrained { gateway: GatewayIndex },
    /// An operator's command; `None`: it was invalid.
    Command { number: u32, command: Option<Command> },
    /// A queued order was removed before it was sent: see
    /// [`Core::should_recall`](super::Core::should_recall).
    Recalled { message: Message },
    /// The memory of a hand-off shows a protocol violation; `from` is the sender if it is certain.
    Violation { from: Option<StrategyIndex>, why: ProtocolViolation },
}

const WORDS: usize = 2 + MESSAGE_WORDS;
const NO_PEER: u16 = u16::MAX;
const FLAG: u64 = 1 << 40;

impl Input {
    /// Encodes the engine's input as a journal record, and passes the record to `take`. `now` is in
    /// ticks since the start.
    #[inline(always)]
    pub fn encode<T>(&self, now: u64, take: impl FnOnce(&[u8]) -> T) -> T {
        let head = |kind: u64, a: u16, b: u16| kind | u64::from(a) << 8 | u64::from(b) << 24;
        let strategy_or_none = |from: Option<StrategyIndex>| from.map_or(NO_PEER, |strategy| strategy.0);
        let flag = |is_set| if is_set { FLAG } else { 0 };
        let mut words = [0; WORDS];
        let (first, used) = match *self {
            Input::Order { from, .. } => (head(1, strategy_or_none(from), 0), WORDS),
            Input::Report { gateway, .. } => {
                (head(2, gateway.map_or(NO_PEER, |gateway| gateway.0), 0), WORDS)
            }
            Input::Lifecycle { strategy, life } => (head(3, strategy.0, life.epoch) | flag(life.fenced), 2),
            Input::Recalled { .. } => (head(4, 0, 0), WORDS),
            Input::Retired { strategy } => (head(5, strategy.0, 0), 2),
            Input::Command { number, command } => {
                let [what, value] = command.map_or([0; 2], Command::to_words);
                words[2..5].copy_from_slice(&[number.into(), what, value]);
                (head(6, 0, 0) | flag(command.is_some()), 5)
            }
            Input::GatewayLife { gateway, life } => (head(7, gateway.0, life.epoch) | flag(life.fenced), 2),
            Input::GatewayDrained { gateway } => (head(8, gateway.0, 0), 2),
            Input::Violation { from, why } => (head(9, strategy_or_none(from), why.code() as u16), 2),
        };
        if let Input::Order { message, .. } | Input::Report { message, .. } | Input::Recalled { message } =
            self
        {
            words[2..].copy_from_slice(message);
        }
        words[..2].copy_from_slice(&[first, now]);
        codec::with_bytes(words, used, take)
    }

    /// Decodes a journal record to an engine input and its time, in ticks since the start.
    ///
    /// # Errors
    /// [`RecoveryError::Foreign`] for a record of another kind.
    pub fn from_record(record: &Record<'_>) -> Result<(Self, u64), RecoveryError> {
        Self::decode(record.payload).ok_or(RecoveryError::Foreign(record.sequence))
    }

    fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut words = codec::words(bytes)?;
        let (head, now) = (words.next()?, words.next()?);
        let (a, b, flag) = ((head >> 8) as u16, (head >> 24) as u16, head & FLAG != 0);
        let who = (a != NO_PEER).then_some(a);
        let mut message = || {
            let mut message = Message::default();
            message.iter_mut().try_for_each(|word| words.next().map(|found| *word = found))?;
            Some(message)
        };
        let input = match head & 0xFF {
            1 => Input::Order { from: who.map(StrategyIndex), message: message()? },
            2 => Input::Report { gateway: who.map(GatewayIndex), message: message()? },
            3 => {
                Input::Lifecycle { strategy: StrategyIndex(a), life: Incarnation { epoch: b, fenced: flag } }
            }
            4 => Input::Recalled { message: message()? },
            5 => Input::Retired { strategy: StrategyIndex(a) },
            6 => {
                let number = u32::try_from(words.next()?).ok()?;
                let words = [words.next()?, words.next()?];
                Input::Command {
                    number,
                    command: if flag { Some(Command::from_words(words)?) } else { None },
                }
            }
            7 => {
                Input::GatewayLife { gateway: GatewayIndex(a), life: Incarnation { epoch: b, fenced: flag } }
            }
            8 => Input::GatewayDrained { gateway: GatewayIndex(a) },
            9 => Input::Violation {
                from: who.map(StrategyIndex),
                why: ProtocolViolation::from_code(b.into())?,
            },
            _ => return None,
        };
        let is_canonical = input.encode(now, |encoded| encoded == bytes);
        is_canonical.then_some((input, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protocol::kill::Scope;

    fn any_input() -> impl Strategy<Value = Input> {
        let who = prop_oneof![Just(None), (0..NO_PEER).prop_map(Some)];
        let numbers = (who, any::<u16>(), any::<u16>(), any::<bool>(), any::<u32>(), any::<Message>());
        let why = (0..ProtocolViolation::ALL.len()).prop_map(|index| ProtocolViolation::ALL[index]);
        (0..9, numbers, why).prop_map(|(kind, (who, a, b, flag, number, message), why)| match kind {
            0 => Input::Order { from: who.map(StrategyIndex), message },
            1 => Input::Report { gateway: who.map(GatewayIndex), message },
            2 => {
                Input::Lifecycle { strategy: StrategyIndex(a), life: Incarnation { epoch: b, fenced: flag } }
            }
            3 => Input::Recalled { message },
            4 => Input::Retired { strategy: StrategyIndex(a) },
            6 => {
                Input::GatewayLife { gateway: GatewayIndex(a), life: Incarnation { epoch: b, fenced: flag } }
            }
            7 => Input::GatewayDrained { gateway: GatewayIndex(a) },
            5 => Input::Command {
                number,
                command: flag.then_some(Command::Kill(Scope::Strategy(StrategyIndex(a)))),
            },
            _ => Input::Violation { from: who.map(StrategyIndex), why },
        })
    }

    proptest! {
        #[test]
        fn input_is_read_back_and_nothing_else(input in any_input(), now: u64) {
            let bytes = input.encode(now, <[u8]>::to_vec);
            let length = bytes.len();
            prop_assert_eq!(Input::decode(&bytes), Some((input, now)));
            prop_assert_eq!(Input::decode(&bytes[..length - 8]), None, "cut off");
            prop_assert_eq!(Input::decode(&bytes[..length - 1]), None, "cut off within a word");
            prop_assert_eq!(Input::decode(&[&bytes[..length], &[0; 8]].concat()), None, "trailing bytes");
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some((input, now)) = Input::decode(&bytes) {
                prop_assert!(input.encode(now, |encoded| encoded == bytes));
            }
        }
    }
}

//! The command channel of a run: operators append commands, the engine reads and answers them.
//!
//! ```text
//! commands (operators write, the engine reads)
//!   commands so far │ for each command: ticks │ pid │ kind, scope │ value │ text   (32 words)
//! answers (the engine writes, operators read)
//!   commands seen │ rejections by reason │ for each command: seen │ done │ open │ status (8 words)
//! ```
//!
//! Commands are numbered from 0 in the order in which they were appended, and are never changed or
//! removed; a run has room for [`MAX_COMMANDS`]. Operators exclude each other by a lock on the
//! segment's file, so no lock is in shared memory and a killed operator blocks no other one: a
//! command counts once it is complete. The engine polls one word in each duty cycle.
//!
//! Only the engine maps the commands, and it maps them read-only: in the sandbox no strategy can
//! use a kill switch. At the level `process` a malicious strategy can open the segment by its name,
//! like any other segment. The engine validates what it reads: an invalid command is refused as
//! such.

use crate::index::StrategyIndex;
use crate::kill::Scope;
use crate::limits::{OFF, RiskControl};
use serde::{Deserialize, Serialize};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;
use system::named_enum;

/// The name within the run of the segment with operators' commands.
pub const COMMANDS_SEGMENT: &str = "desk";
/// The name within the run of the segment with the engine's answers to commands.
pub const ANSWERS_SEGMENT: &str = "answers";

/// Maximum number of operators' commands (kill switches, limits, replacements) to one run.
pub const MAX_COMMANDS: usize = 1_024;
const COMMAND_WORDS: usize = 32;
/// Offset of a command's text in its words.
const TEXT: usize = 4;
/// Maximum length, in bytes, of the text that an operator's command can carry, such as the kind of
/// a new strategy.
pub const MAX_TEXT_BYTES: usize = (COMMAND_WORDS - TEXT) * 8;
const ANSWER_WORDS: usize = 8;
const FIRST: usize = HEADER_WORDS + 16;
/// Size (words) of the segment with operators' commands.
pub const COMMANDS_WORDS: usize = FIRST + MAX_COMMANDS * COMMAND_WORDS;
/// Offset of the number of commands; in the answers segment, of the number of commands seen.
const COUNT: usize = HEADER_WORDS;
/// The segment kind (code, name and layout) of operators' commands, which operators write.
pub const COMMANDS_KIND: SegmentKind =
    SegmentKind::new(13, "desk", &[("count", COUNT), ("first", FIRST), ("words-each", COMMAND_WORDS)])
        .of_slots(HEADER_WORDS, 1);

const REASONS: usize = HEADER_WORDS + 16;
/// Number of reason codes, from 0, for which the engine publishes how many orders it has refused.
/// All its reasons have codes below this.
pub const MAX_REASONS: usize = 64;
const FIRST_ANSWER: usize = REASONS + MAX_REASONS;
/// Size (words) of the segment with the engine's answers to commands.
pub const ANSWERS_WORDS: usize = FIRST_ANSWER + MAX_COMMANDS * ANSWER_WORDS;
/// The segment kind (code, name and layout) of the engine's answers to operators' commands, which
/// the engine writes.
pub const ANSWERS_KIND: SegmentKind = SegmentKind::new(
    14,
    "answers",
    &[("count", COUNT), ("reasons", REASONS), ("first", FIRST_ANSWER), ("words-each", ANSWER_WORDS)],
)
.of_slots(HEADER_WORDS, 1);

/// The treatment of a strategy's open orders when an operator ends the strategy: left at their
/// venues or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenOrders {
    /// The open orders stay at their venues until the last of them is filled, cancelled or
    /// rejected.
    Drain,
    /// The open orders are cancelled at their venues.
    Cancel,
}

/// A command of an operator to the running engine: stop trading, resume it, change a limit, end a
/// strategy, or add one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Refuse new orders from now on, and cancel open ones at their venues.
    Kill(Scope),
    /// Accept new orders again: reverts a kill of this scope, by an operator, a limit or a death.
    Revive(Scope),
    /// Set a limit to another value from now on.
    SetLimit {
        /// The scope of the limit.
        scope: Scope,
        /// The code of the risk control.
        control: u8,
        /// The value, in the unit of the control.
        value: u64,
    },
    /// Refuse a strategy's new orders from now on. Once it has no open order, the launcher ends its
    /// process. In its next incarnation its orders are accepted again.
    EndStrategy {
        /// The strategy.
        strategy: StrategyIndex,
        /// What happens to its open orders.
        open_orders: OpenOrders,
        /// A successor is started. The command's text is its kind, if it has another one.
        is_replaced: bool,
    },
    /// Start a strategy in the place of one that is down. The command's text is its kind; empty:
    /// that of its predecessor, or of the plan.
    AddStrategy {
        /// The strategy, which the engine has retired.
        strategy: StrategyIndex,
    },
}

const KILL: u8 = 1;
const REVIVE: u8 = 2;
const SET_LIMIT: u8 = 3;
const END_STRATEGY: u8 = 4;
const ADD_STRATEGY: u8 = 5;
const CANCELS: u8 = 1;
const IS_REPLACED: u8 = 2;

impl Command {
    /// Encodes an operator's command as two words: kind, scope and risk control in the first, a
    /// limit's value in the second.
    pub const fn to_words(self) -> [u64; 2] {
        let (code, scope, control, value) = match self {
            Self::Kill(scope) => (KILL, scope, 0, 0),
            Self::Revive(scope) => (REVIVE, scope, 0, 0),
            Self::SetLimit { scope, control, value } => (SET_LIMIT, scope, control, value),
            Self::EndStrategy { strategy, open_orders, is_replaced } => {
                let cancels = if matches!(open_orders, OpenOrders::Cancel) { CANCELS } else { 0 };
                let replaced = if is_replaced { IS_REPLACED } else { 0 };
                (END_STRATEGY, Scope::Strategy(strategy), cancels | replaced, 0)
            }
            Self::AddStrategy { strategy } => (ADD_STRATEGY, Scope::Strategy(strategy), 0, 0),
        };
        let (kind, index) = scope.code();
        [code as u64 | (kind as u64) << 8 | (control as u64) << 16 | (index as u64) << 32, value]
    }

    /// Decodes an operator's command; `None` if the words are not a valid command.
    pub const fn from_words([word, value]: [u64; 2]) -> Option<Self> {
        let control = (word >> 16) as u8;
        let Some(scope) = Scope::from_code((word >> 8) as u8, (word >> 32) as u16) else { return None };
        match word as u8 {
            KILL => Some(Self::Kill(scope)),
            REVIVE => Some(Self::Revive(scope)),
            SET_LIMIT => Some(Self::SetLimit { scope, control, value }),
            END_STRATEGY if control <= CANCELS | IS_REPLACED => {
                let Scope::Strategy(strategy) = scope else { return None };
                let open_orders = if control & CANCELS != 0 { OpenOrders::Cancel } else { OpenOrders::Drain };
                Some(Self::EndStrategy { strategy, open_orders, is_replaced: control & IS_REPLACED != 0 })
            }
            ADD_STRATEGY if control == 0 => {
                let Scope::Strategy(strategy) = scope else { return None };
                Some(Self::AddStrategy { strategy })
            }
            _ => None,
        }
    }
}

/// An operator's command with its number, time and sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandEntry {
    /// The number of the command, from 0.
    pub number: u32,
    /// Time at which the command was appended, in ticks of the run's clock.
    pub ticks: u64,
    /// The process id of the operator.
    pub pid: u32,
    /// The operator's command; `None` if its words are not a valid command.
    pub command: Option<Command>,
}

impl core::fmt::Display for CommandEntry {
    /// `kill strategy-0`, `revive all`, `limit all max-position=100`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.command {
            None => f.write_str("unknown"),
            Some(Command::Kill(scope)) => write!(f, "kill {scope}"),
            Some(Command::Revive(scope)) => write!(f, "revive {scope}"),
            Some(Command::SetLimit { scope, control, value }) => {
                match RiskControl::from_code(control) {
                    Some(control) => write!(f, "limit {scope} {control}=")?,
                    None => write!(f, "limit {scope} control-{control}=")?,
                }
                if value == OFF { f.write_str("off") } else { write!(f, "{value}") }
            }
            Some(Command::EndStrategy { strategy, open_orders, is_replaced }) => {
                let verb = if is_replaced { "replace" } else { "retire" };
                let how = if open_orders == OpenOrders::Drain { "drain" } else { "cancel" };
                write!(f, "{verb} {} {how}", Scope::Strategy(strategy))
            }
            Some(Command::AddStrategy { strategy }) => write!(f, "add {}", Scope::Strategy(strategy)),
        }
    }
}

fn entry(view: &ReadOnlyWords, number: u32) -> CommandEntry {
    let at = |word| view.load(FIRST + number as usize * COMMAND_WORDS + word, Ordering::Relaxed);
    CommandEntry { number, ticks: at(0), pid: at(1) as u32, command: Command::from_words([at(2), at(3)]) }
}

/// Returns all operators' commands that were appended so far.
pub fn entries(commands: &ReadOnlyWords) -> impl Iterator<Item = CommandEntry> + use<> {
    let commands = commands.slice(0, COMMANDS_WORDS);
    // Acquire: pairs with the Release in `append`.
    let count = commands.load(COUNT, Ordering::Acquire).min(MAX_COMMANDS as u64) as u32;
    (0..count).map(move |number| entry(&commands, number))
}

/// Returns the text of the operator's command `number`, such as the kind of a new strategy; empty
/// if it has none or is not UTF-8.
pub fn text_of(commands: &ReadOnlyWords, number: u32) -> String {
    if number as usize >= MAX_COMMANDS {
        return String::new();
    }
    let first = FIRST + number as usize * COMMAND_WORDS + TEXT;
    // Relaxed: published by the count, which `entries` has loaded.
    let words = (first..first + MAX_TEXT_BYTES / 8).map(|at| commands.load(at, Ordering::Relaxed));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).take_while(|byte| *byte != 0).collect();
    String::from_utf8(bytes).unwrap_or_default()
}

/// The operators' end of the command channel, which appends commands for the engine. A caller that
/// appends must hold the lock on the segment's file.
pub struct CommandWriter(AtomicWords);

impl CommandWriter {
    /// Creates the operators' writing end of the segment with their commands.
    pub fn new(segment: &AtomicWords) -> Self {
        Self(segment.slice(0, COMMANDS_WORDS))
    }

    /// Appends an operator's command and returns its number; `None` if the segment is full.
    pub fn append(&self, command: Command, ticks: u64, pid: u32) -> Option<u32> {
        self.append_with(command, "", ticks, pid)
    }

    /// Appends as [`CommandWriter::append`] does, with a text, of which at most the first
    /// [`MAX_TEXT_BYTES`] bytes are kept.
    pub fn append_with(&self, command: Command, text: &str, ticks: u64, pid: u32) -> Option<u32> {
        let number = self.0[COUNT].load(Ordering::Relaxed);
        if number >= MAX_COMMANDS as u64 {
            return None;
        }
        let [word, value] = command.to_words();
        for (offset, value) in
            (FIRST + number as usize * COMMAND_WORDS..).zip([ticks, pid.into(), word, value])
        {
            // Relaxed: published by the Release store of the count.
            self.0[offset].store(value, Ordering::Relaxed);
        }
        let at = FIRST + number as usize * COMMAND_WORDS + TEXT;
        // Also the zeros after it: an operator that was killed before its count may have written a
        // longer text here.
        let chunks = text.as_bytes().chunks(8).chain(core::iter::repeat(&[][..]));
        for (offset, bytes) in (at..at + MAX_TEXT_BYTES / 8).zip(chunks) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.0[offset].store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `has_pending` and `entries`.
        self.0[COUNT].store(number + 1, Ordering::Release);
        Some(number as u32)
    }
}

named_enum! {
    /// The progress of a command.
    CommandStatus {
        /// The engine has not seen the command.
        Given = "given",
        /// The engine has applied the command; open orders are still being cancelled.
        Seen = "seen",
        /// The command is complete: the cancel of a kill's last open order is confirmed.
        Done = "done",
        /// The strategy, credential, venue or instrument does not exist in the run.
        NoSuchScope = "no such scope",
        /// The limit does not exist, or cannot be set for the scope.
        NoSuchLimit = "no such limit",
        /// The words were not a valid command.
        Unknown = "unknown command",
        /// The strategy to be added is not down: it runs, or has finished.
        NotDown = "the strategy is not down",
    }
}

impl CommandStatus {
    fn from_code(code: u64) -> Self {
        let status = usize::try_from(code).ok().and_then(|code| Self::ALL.get(code));
        status.copied().unwrap_or(Self::Unknown)
    }
}

/// The engine's answer to an operator's command: status, times in ticks, and number of orders that
/// the command cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandAnswer {
    /// The progress of the command.
    pub status: CommandStatus,
    /// Time at which the engine saw the command, in ticks.
    pub seen_ticks: u64,
    /// Time at which the command was complete, in ticks.
    pub done_ticks: u64,
    /// Number of open orders that a kill cancels.
    pub orders: u64,
}

/// The engine's end of the operators' command channel: it reads commands and answers them.
pub struct CommandChannel {
    commands: ReadOnlyWords,
    answers: AtomicWords,
    taken: u64,
}

impl CommandChannel {
    /// Creates the engine's end over the segments of operators' commands and of answers.
    pub fn new(commands: &ReadOnlyWords, answers: &AtomicWords) -> Self {
        Self {
            commands: commands.slice(0, COMMANDS_WORDS),
            answers: answers.slice(0, ANSWERS_WORDS),
            taken: 0,
        }
    }

    /// Returns `true` if an operator's command waits; costs one load of a cache line that rarely
    /// changes.
    #[inline(always)]
    pub fn has_pending(&self) -> bool {
        // Acquire: pairs with the Release in `append`.
        self.commands.load(COUNT, Ordering::Acquire) > self.taken
    }

    /// Returns the next operator's command to answer, each once and in the order of their numbers;
    /// `None` if none waits.
    #[cold]
    pub fn next_command(&mut self) -> Option<CommandEntry> {
        if !self.has_pending() || self.taken >= MAX_COMMANDS as u64 {
            return None;
        }
        let entry = entry(&self.commands, self.taken as u32);
        self.taken += 1;
        // Relaxed: no other data is published by it.
        self.answers[COUNT].store(self.taken, Ordering::Relaxed);
        Some(entry)
    }

    /// Skips the first `taken` operators' commands, which a crashed engine had taken before its
    /// restart.
    pub fn skip_to(&mut self, taken: u64) {
        self.taken = self.taken.max(taken.min(MAX_COMMANDS as u64));
    }

    /// Reports that an operator's command is in force, and is done once `orders` orders are
    /// cancelled (at once if 0).
    pub fn mark_seen(&self, number: u32, ticks: u64, orders: u64) {
        let status = if orders == 0 { CommandStatus::Done } else { CommandStatus::Seen };
        self.answer(number, CommandAnswer { status, seen_ticks: ticks, done_ticks: ticks, orders });
    }

    /// Reports that an operator's command is completed: its last cancel is confirmed. Later calls
    /// do nothing.
    pub fn mark_done(&self, number: u32, ticks: u64) {
        if let Some(offset) = answer_offset(number)
            && self.status(offset) != CommandStatus::Done
        {
            self.answers[offset + DONE].store(ticks, Ordering::Relaxed);
            self.set_status(offset, CommandStatus::Done);
        }
    }

    /// Reports that an operator's command was refused, and why.
    pub fn mark_refused(&self, number: u32, ticks: u64, why: CommandStatus) {
        self.answer(number, CommandAnswer { status: why, seen_ticks: ticks, done_ticks: ticks, orders: 0 });
    }

    /// Restores the answer that a crashed engine gave to an operator's command, unless the command
    /// is already answered.
    pub fn restore_answer(&self, number: u32, answer: CommandAnswer) {
        self.answer(number, answer);
        if answer.status == CommandStatus::Done {
            self.mark_done(number, answer.done_ticks);
        }
    }

    /// Publishes how many orders the engine refused for a reason since the start of the run.
    pub fn set_rejections(&self, reason: u8, count: u64) {
        if usize::from(reason) < MAX_REASONS {
            // Relaxed: a count for people.
            self.answers[REASONS + usize::from(reason)].store(count, Ordering::Relaxed);
        }
    }

    fn answer(&self, number: u32, answer: CommandAnswer) {
        let Some(offset) = answer_offset(number) else { return };
        if self.status(offset) != CommandStatus::Given {
            return;
        }
        for (word, value) in [(SEEN, answer.seen_ticks), (DONE, answer.done_ticks), (ORDERS, answer.orders)] {
            // Relaxed: published by the Release store of the status.
            self.answers[offset + word].store(value, Ordering::Relaxed);
        }
        self.set_status(offset, answer.status);
    }

    /// Returns the published status, possibly by a dead predecessor.
    fn status(&self, offset: usize) -> CommandStatus {
        // Relaxed: our own stores, or those of a predecessor whose death is certain.
        CommandStatus::from_code(self.answers[offset + STATUS].load(Ordering::Relaxed))
    }

    fn set_status(&self, offset: usize, status: CommandStatus) {
        let code = CommandStatus::ALL.iter().position(|other| *other == status).unwrap_or(0);
        // Release: pairs with the Acquire in `CommandAnswers::answer`.
        self.answers[offset + STATUS].store(code as u64, Ordering::Release);
    }
}

const SEEN: usize = 0;
const DONE: usize = 1;
const ORDERS: usize = 2;
const STATUS: usize = 3;

fn answer_offset(number: u32) -> Option<usize> {
    ((number as usize) < MAX_COMMANDS).then_some(FIRST_ANSWER + number as usize * ANSWER_WORDS)
}

/// The operators' view of the engine's answers.
pub struct CommandAnswers(ReadOnlyWords);

impl CommandAnswers {
    /// Creates the operators' view over the segment with the engine's answers.
    pub fn new(segment: &ReadOnlyWords) -> Self {
        Self(segment.slice(0, ANSWERS_WORDS))
    }

    /// Returns the engine's answer to the operator's command with this number.
    pub fn answer(&self, number: u32) -> CommandAnswer {
        let nothing = CommandAnswer { status: CommandStatus::Given, seen_ticks: 0, done_ticks: 0, orders: 0 };
        let Some(offset) = answer_offset(number) else { return nothing };
        // Acquire: pairs with the Release in `set_status`.
        let code = self.0.load(offset + STATUS, Ordering::Acquire);
        let at = |word| self.0.load(offset + word, Ordering::Relaxed);
        CommandAnswer {
            status: CommandStatus::from_code(code),
            seen_ticks: at(SEEN),
            done_ticks: at(DONE),
            orders: at(ORDERS),
        }
    }

    /// Returns how many orders the engine refused so far for the reason with this code.
    pub fn rejections(&self, reason: u8) -> u64 {
        let offset = usize::from(reason);
        if offset < MAX_REASONS { self.0.load(REASONS + offset, Ordering::Relaxed) } else { 0 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shm::memory::Region;

    fn channel() -> (AtomicWords, CommandWriter, CommandChannel, CommandAnswers) {
        let (commands, answers) = (Region::heap(COMMANDS_WORDS).words(), Region::heap(ANSWERS_WORDS).words());
        let (operator, engine) =
            (CommandWriter::new(&commands), CommandChannel::new(&commands.clone().into(), &answers));
        (commands, operator, engine, CommandAnswers::new(&answers.into()))
    }

    #[test]
    fn commands_arrive_once_in_order_with_answers() {
        let (words, operator, mut engine, answers) = channel();
        assert!(!engine.has_pending() && engine.next_command().is_none());
        let commands = [
            Command::Kill(Scope::Strategy(StrategyIndex(300))),
            Command::SetLimit { scope: Scope::All, control: 255, value: u64::MAX },
            Command::Revive(Scope::Instrument(u16::MAX)),
        ];
        for (number, command) in (0..).zip(commands) {
            assert_eq!(operator.append(command, 10 + u64::from(number), 77), Some(number));
            assert_eq!(answers.answer(number).status, CommandStatus::Given);
        }
        assert_eq!(entries(&words.into()).filter_map(|entry| entry.command).collect::<Vec<_>>(), commands);
        for (number, command) in (0..).zip(commands) {
            assert!(engine.has_pending());
            let ticks = 10 + u64::from(number);
            assert_eq!(
                engine.next_command(),
                Some(CommandEntry { number, ticks, pid: 77, command: Some(command) })
            );
        }
        assert!(!engine.has_pending() && engine.next_command().is_none());
        engine.mark_seen(0, 20, 5);
        assert_eq!(
            answers.answer(0),
            CommandAnswer { status: CommandStatus::Seen, seen_ticks: 20, done_ticks: 20, orders: 5 }
        );
        engine.mark_done(0, 25);
        assert_eq!(
            answers.answer(0),
            CommandAnswer { status: CommandStatus::Done, seen_ticks: 20, done_ticks: 25, orders: 5 }
        );
        engine.mark_seen(2, 30, 0);
        engine.mark_refused(1, 21, CommandStatus::NoSuchLimit);
        assert_eq!(
            (answers.answer(2).status, answers.answer(1).status),
            (CommandStatus::Done, CommandStatus::NoSuchLimit)
        );
        engine.set_rejections(3, 9);
        assert_eq!((answers.rejections(3), answers.rejections(4), answers.rejections(255)), (9, 0, 0));
    }

    #[test]
    fn ends_of_strategies_keep_their_text() {
        let (words, operator, mut engine, _) = channel();
        let ends = [OpenOrders::Drain, OpenOrders::Cancel].map(|open_orders| {
            [false, true].map(|is_replaced| Command::EndStrategy {
                strategy: StrategyIndex(300),
                open_orders,
                is_replaced,
            })
        });
        let texts = ["", "maker", "exec:./a b é", &"x".repeat(MAX_TEXT_BYTES)];
        for (command, text) in ends.into_iter().flatten().zip(texts) {
            let number = operator.append_with(command, text, 1, 1).unwrap();
            assert_eq!(engine.next_command().unwrap().command, Some(command));
            assert_eq!(text_of(&words.clone().into(), number), text);
        }
        let last = entries(&words.into()).last().unwrap();
        assert_eq!(last.to_string(), "replace strategy-300 cancel");
        let add = Command::AddStrategy { strategy: StrategyIndex(300) };
        assert_eq!(Command::from_words(add.to_words()), Some(add));
        assert_eq!(Command::from_words([5 | 1 << 8 | 1 << 16, 0]), None, "an unknown flag");
        assert_eq!(Command::from_words([5 | 3 << 8, 0]), None, "a venue");
        assert_eq!(Command::from_words([4 | 1 << 8 | 4 << 16, 0]), None, "an unknown flag");
        assert_eq!(Command::from_words([4 | 3 << 8, 0]), None, "a venue");
    }

    #[test]
    fn text_of_killed_operator_is_not_inherited() {
        let (words, operator, _, _) = channel();
        let command = Command::EndStrategy {
            strategy: StrategyIndex(1),
            open_orders: OpenOrders::Drain,
            is_replaced: true,
        };
        operator.append_with(command, "exec:/opt/strategies/own quickly", 1, 1).unwrap();
        // It was killed before it stored the count.
        words[COUNT].store(0, Ordering::Relaxed);
        for text in ["exec:true", "12345678", ""] {
            assert_eq!(operator.append_with(command, text, 1, 1), Some(0));
            assert_eq!(text_of(&words.clone().into(), 0), text);
            words[COUNT].store(0, Ordering::Relaxed);
        }
    }

    #[test]
    #[cfg_attr(
        miri,
        ignore = "a thousand commands, each looked for among a thousand places: minutes under Miri"
    )]
    fn full_command_channel_refuses_commands() {
        let (_, operator, mut engine, _) = channel();
        for number in 0..MAX_COMMANDS as u32 {
            assert_eq!(operator.append(Command::Kill(Scope::All), 1, 1), Some(number));
        }
        assert_eq!(operator.append(Command::Kill(Scope::All), 1, 1), None);
        assert_eq!(std::iter::from_fn(|| engine.next_command()).count(), MAX_COMMANDS);
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "a thousand places, walked again and again: minutes under Miri")]
        fn corrupt_command_segments_never_panic(count: u64, words in prop::collection::vec(any::<u64>(), 8..64)) {
            let (commands, _, mut engine, answers) = channel();
            for (word, value) in commands[FIRST..].iter().zip(&words) {
                word.store(*value, Ordering::Relaxed);
            }
            for count in [count, count % 2_048] {
                commands[COUNT].store(count, Ordering::Relaxed);
                prop_assert!(std::iter::from_fn(|| engine.next_command()).count() <= MAX_COMMANDS);
                prop_assert!(entries(&commands.clone().into()).count() <= MAX_COMMANDS);
            }
            for number in [0, count as u32] {
                engine.mark_seen(number, count, count);
                engine.mark_done(number, count);
                let _ = answers.answer(number);
            }
        }
    }
}

//! The desk: commands of operators to a run that goes on. They append, the engine reads and
//! answers.
//!
//! ```text
//! desk (operators write, the engine reads)                 answers (the engine writes, operators read)
//!   commands so far │ 8 words for each command               commands seen │ rejections by reason │ 8 words for each command
//!                     ticks │ pid │ kind, scope │ value                                             seen │ done │ open │ status
//! ```
//!
//! Commands are numbered from 0 in the order in which they were appended, and are never changed or
//! removed; a run has room for [`COMMANDS`]. Operators take turns by a lock on the segment's file,
//! so no lock is in shared memory and a killed operator holds nobody up: what it appended in full
//! counts, half a command does not. The engine looks at one word in each duty cycle.
//!
//! No process of the run but the engine maps the desk, and the engine maps it read-only: in the
//! sandbox no strategy can turn a switch. At the level `process` a strategy that means harm can
//! open the desk by its name, as it can any other segment. Whatever stands in it is words: a
//! command that is none is refused and named so.

use crate::kill::Scope;
use crate::limits::{Control, OFF};
use serde::{Deserialize, Serialize};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;
use system::names;

/// The desk's name within the run.
pub const DESK: &str = "desk";
/// The answers' name within the run.
pub const ANSWERS: &str = "answers";

/// The most commands of one run.
pub const COMMANDS: usize = 1_024;
const WORDS_EACH: usize = 8;
const FIRST: usize = HEADER_WORDS + 16;
/// Words of the desk.
pub const DESK_WORDS: usize = FIRST + COMMANDS * WORDS_EACH;
/// How many commands there are; of the answers, how many were seen.
const COUNT: usize = HEADER_WORDS;
/// An operator's commands.
pub const DESK_KIND: SegmentKind =
    SegmentKind::new(13, "desk", &[("count", COUNT), ("first", FIRST), ("words-each", WORDS_EACH)])
        .of_slots(HEADER_WORDS, 1);

const REASONS: usize = HEADER_WORDS + 16;
/// Reasons of rejections that are counted: codes below this.
pub const MAX_REASONS: usize = 64;
const FIRST_ANSWER: usize = REASONS + MAX_REASONS;
/// Words of the answers.
pub const ANSWERS_WORDS: usize = FIRST_ANSWER + COMMANDS * WORDS_EACH;
/// The engine's answers to them.
pub const ANSWERS_KIND: SegmentKind = SegmentKind::new(
    14,
    "answers",
    &[("count", COUNT), ("reasons", REASONS), ("first", FIRST_ANSWER), ("words-each", WORDS_EACH)],
)
.of_slots(HEADER_WORDS, 1);

/// What an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// New orders are refused from now on, open ones cancelled at their venues.
    Kill(Scope),
    /// New orders are taken again. Takes back a kill of the same scope, and what a limit or a death
    /// has killed there.
    Revive(Scope),
    /// A limit has another value from now on.
    SetLimit {
        /// Whose.
        scope: Scope,
        /// Which, by its code.
        control: u8,
        /// The value, in the control's own unit.
        value: u64,
    },
}

const KILL: u8 = 1;
const REVIVE: u8 = 2;
const SET_LIMIT: u8 = 3;

impl Command {
    /// Kind, scope and control in one word, and the value.
    /// Its two words.
    pub const fn to_words(self) -> [u64; 2] {
        let (code, scope, control, value) = match self {
            Self::Kill(scope) => (KILL, scope, 0, 0),
            Self::Revive(scope) => (REVIVE, scope, 0, 0),
            Self::SetLimit { scope, control, value } => (SET_LIMIT, scope, control, value),
        };
        let (kind, index) = scope.code();
        [code as u64 | (kind as u64) << 8 | (control as u64) << 16 | (index as u64) << 32, value]
    }

    /// The command in two words, if they are one.
    pub const fn from_words([word, value]: [u64; 2]) -> Option<Self> {
        let control = (word >> 16) as u8;
        let Some(scope) = Scope::from_code((word >> 8) as u8, (word >> 32) as u16) else { return None };
        match word as u8 {
            KILL => Some(Self::Kill(scope)),
            REVIVE => Some(Self::Revive(scope)),
            SET_LIMIT => Some(Self::SetLimit { scope, control, value }),
            _ => None,
        }
    }
}

/// A command on the desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 0.
    pub number: u32,
    /// When it was given, in ticks of the run's clock.
    pub ticks: u64,
    /// Who gave it.
    pub pid: u32,
    /// What is wanted; `None`: what stands there is no command.
    pub command: Option<Command>,
}

impl core::fmt::Display for Entry {
    /// `kill strategy-0`, `revive all`, `limit all max-position=100`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.command {
            None => f.write_str("unknown"),
            Some(Command::Kill(scope)) => write!(f, "kill {scope}"),
            Some(Command::Revive(scope)) => write!(f, "revive {scope}"),
            Some(Command::SetLimit { scope, control, value }) => {
                match Control::from_code(control) {
                    Some(control) => write!(f, "limit {scope} {control}=")?,
                    None => write!(f, "limit {scope} control-{control}=")?,
                }
                if value == OFF { f.write_str("off") } else { write!(f, "{value}") }
            }
        }
    }
}

fn entry(view: &ReadOnlyWords, number: u32) -> Entry {
    let at = |word| view.load(FIRST + number as usize * WORDS_EACH + word, Ordering::Relaxed);
    Entry { number, ticks: at(0), pid: at(1) as u32, command: Command::from_words([at(2), at(3)]) }
}

/// All commands of a desk, as they stand there now.
///
/// # Panics
/// If it is shorter than [`DESK_WORDS`].
pub fn entries(desk: &ReadOnlyWords) -> impl Iterator<Item = Entry> + use<> {
    let desk = desk.slice(0, DESK_WORDS);
    // Acquire: pairs with the Release in `give`.
    let count = desk.load(COUNT, Ordering::Acquire).min(COMMANDS as u64) as u32;
    (0..count).map(move |number| entry(&desk, number))
}

/// The desk as an operator has it. Who appends must hold the lock on the segment's file: see the
/// module.
pub struct Operator(AtomicWords);

impl Operator {
    /// The desk in this segment.
    ///
    /// # Panics
    /// If it is shorter than [`DESK_WORDS`].
    pub fn new(segment: &AtomicWords) -> Self {
        Self(segment.slice(0, DESK_WORDS))
    }

    /// Appends a command; its number. `None`: there is no room for one more.
    pub fn give(&self, command: Command, ticks: u64, pid: u32) -> Option<u32> {
        let number = self.0[COUNT].load(Ordering::Relaxed);
        if number >= COMMANDS as u64 {
            return None;
        }
        let [word, value] = command.to_words();
        for (place, value) in (FIRST + number as usize * WORDS_EACH..).zip([ticks, pid.into(), word, value]) {
            // Relaxed: published by the Release store of the count.
            self.0[place].store(value, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `has_news` and `entries`.
        self.0[COUNT].store(number + 1, Ordering::Release);
        Some(number as u32)
    }
}

names! {
    /// How far a command is.
    Status {
        /// The engine has not seen it.
        Given = "given",
        /// The engine has seen it, and what it wants is in force; open orders are still cancelled.
        Seen = "seen",
        /// It is done: a kill's last open order is confirmed.
        Done = "done",
        /// There is no such strategy, credential, venue or instrument in the run.
        NoSuchScope = "no such scope",
        /// There is no such limit, or none with that scope.
        NoSuchLimit = "no such limit",
        /// What stood there was no command.
        Unknown = "unknown command",
    }
}

/// What the engine says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// How far it is.
    pub status: Status,
    /// When the engine saw it, in ticks.
    pub seen_ticks: u64,
    /// When it was done, in ticks.
    pub done_ticks: u64,
    /// Of a kill: orders that were open and are cancelled.
    pub orders: u64,
}

/// The desk as the engine has it: reads commands, answers.
pub struct CommandChannel {
    desk: ReadOnlyWords,
    answers: AtomicWords,
    /// Commands taken so far.
    taken: u64,
}

impl CommandChannel {
    /// The desk and the answers in these segments.
    ///
    /// # Panics
    /// If one of them is shorter than [`DESK_WORDS`] or [`ANSWERS_WORDS`].
    pub fn new(desk: &ReadOnlyWords, answers: &AtomicWords) -> Self {
        Self { desk: desk.slice(0, DESK_WORDS), answers: answers.slice(0, ANSWERS_WORDS), taken: 0 }
    }

    /// Whether there is a command that was not taken: one load of a line that almost never changes.
    #[inline(always)]
    pub fn has_news(&self) -> bool {
        // Acquire: pairs with the Release in `give`.
        self.desk.load(COUNT, Ordering::Acquire) > self.taken
    }

    /// Takes the next command, each once and in the order of their numbers. Who takes one answers
    /// it.
    #[cold]
    pub fn take(&mut self) -> Option<Entry> {
        if !self.has_news() || self.taken >= COMMANDS as u64 {
            return None;
        }
        let entry = entry(&self.desk, self.taken as u32);
        self.taken += 1;
        // Relaxed: nothing is passed on with it.
        self.answers[COUNT].store(self.taken, Ordering::Relaxed);
        Some(entry)
    }

    /// Passes over the commands that a dead predecessor has taken: so many.
    pub fn skip_to(&mut self, taken: u64) {
        self.taken = self.taken.max(taken.min(COMMANDS as u64));
    }

    /// It is in force; so many open orders are cancelled because of it. With none there is nothing
    /// to wait for, and it is done. Said once: what is answered already stays as it is.
    pub fn seen(&self, number: u32, ticks: u64, orders: u64) {
        let status = if orders == 0 { Status::Done } else { Status::Seen };
        self.answer(number, Answer { status, seen_ticks: ticks, done_ticks: ticks, orders });
    }

    /// The last of its orders is confirmed. Said once.
    pub fn done(&self, number: u32, ticks: u64) {
        if let Some(place) = place(number)
            && self.status(place) != Status::Done
        {
            self.answers[place + DONE].store(ticks, Ordering::Relaxed);
            self.set_status(place, Status::Done);
        }
    }

    /// It is not done, for that reason.
    pub fn refused(&self, number: u32, ticks: u64, why: Status) {
        self.answer(number, Answer { status: why, seen_ticks: ticks, done_ticks: ticks, orders: 0 });
    }

    /// What was answered to it elsewhere, unless it is answered already.
    pub fn say(&self, number: u32, answer: Answer) {
        self.answer(number, answer);
        if answer.status == Status::Done {
            self.done(number, answer.done_ticks);
        }
    }

    /// So many orders were refused for the reason with that code, since the start of the run.
    pub fn rejections(&self, reason: u8, count: u64) {
        if usize::from(reason) < MAX_REASONS {
            // Relaxed: a count for people.
            self.answers[REASONS + usize::from(reason)].store(count, Ordering::Relaxed);
        }
    }

    fn answer(&self, number: u32, answer: Answer) {
        let Some(place) = place(number) else { return };
        if self.status(place) != Status::Given {
            return;
        }
        for (word, value) in [(SEEN, answer.seen_ticks), (DONE, answer.done_ticks), (ORDERS, answer.orders)] {
            // Relaxed: published by the Release store of the status.
            self.answers[place + word].store(value, Ordering::Relaxed);
        }
        self.set_status(place, answer.status);
    }

    /// What was said of it, by a dead predecessor perhaps.
    fn status(&self, place: usize) -> Status {
        // Relaxed: our own stores, or those of one whose death is certain.
        let code = self.answers[place + STATUS].load(Ordering::Relaxed);
        Status::ALL.get(usize::try_from(code).unwrap_or(usize::MAX)).copied().unwrap_or(Status::Unknown)
    }

    fn set_status(&self, place: usize, status: Status) {
        let code = Status::ALL.iter().position(|other| *other == status).unwrap_or(0);
        // Release: pairs with the Acquire in `Answers::of`.
        self.answers[place + STATUS].store(code as u64, Ordering::Release);
    }
}

const SEEN: usize = 0;
const DONE: usize = 1;
const ORDERS: usize = 2;
const STATUS: usize = 3;

fn place(number: u32) -> Option<usize> {
    ((number as usize) < COMMANDS).then_some(FIRST_ANSWER + number as usize * WORDS_EACH)
}

/// The engine's answers as an operator reads them.
pub struct CommandAnswers(ReadOnlyWords);

impl CommandAnswers {
    /// The answers in this segment.
    ///
    /// # Panics
    /// If it is shorter than [`ANSWERS_WORDS`].
    pub fn new(segment: &ReadOnlyWords) -> Self {
        Self(segment.slice(0, ANSWERS_WORDS))
    }

    /// What the engine says of a command.
    pub fn of(&self, number: u32) -> Answer {
        let nothing = Answer { status: Status::Given, seen_ticks: 0, done_ticks: 0, orders: 0 };
        let Some(place) = place(number) else { return nothing };
        // Acquire: pairs with the Release in `set_status`.
        let code = self.0.load(place + STATUS, Ordering::Acquire);
        let status = Status::ALL.get(usize::try_from(code).unwrap_or(usize::MAX)).copied();
        let at = |word| self.0.load(place + word, Ordering::Relaxed);
        Answer {
            status: status.unwrap_or(Status::Unknown),
            seen_ticks: at(SEEN),
            done_ticks: at(DONE),
            orders: at(ORDERS),
        }
    }

    /// How many orders were refused so far for the reason with that code.
    pub fn rejections(&self, reason: u8) -> u64 {
        let place = usize::from(reason);
        if place < MAX_REASONS { self.0.load(REASONS + place, Ordering::Relaxed) } else { 0 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shm::memory::Region;

    fn desk() -> (AtomicWords, Operator, CommandChannel, CommandAnswers) {
        let (desk, answers) = (Region::heap(DESK_WORDS).words(), Region::heap(ANSWERS_WORDS).words());
        let (operator, engine) = (Operator::new(&desk), CommandChannel::new(&desk.clone().into(), &answers));
        (desk, operator, engine, CommandAnswers::new(&answers.into()))
    }

    #[test]
    fn commands_arrive_once_and_in_order_and_are_answered() {
        let (words, operator, mut engine, answers) = desk();
        assert!(!engine.has_news() && engine.take().is_none());
        let commands = [
            Command::Kill(Scope::Strategy(300)),
            Command::SetLimit { scope: Scope::All, control: 255, value: u64::MAX },
            Command::Revive(Scope::Instrument(u16::MAX)),
        ];
        for (number, command) in (0..).zip(commands) {
            assert_eq!(operator.give(command, 10 + u64::from(number), 77), Some(number));
            assert_eq!(answers.of(number).status, Status::Given);
        }
        assert_eq!(entries(&words.into()).filter_map(|entry| entry.command).collect::<Vec<_>>(), commands);
        for (number, command) in (0..).zip(commands) {
            assert!(engine.has_news());
            let ticks = 10 + u64::from(number);
            assert_eq!(engine.take(), Some(Entry { number, ticks, pid: 77, command: Some(command) }));
        }
        assert!(!engine.has_news() && engine.take().is_none());
        engine.seen(0, 20, 5);
        assert_eq!(answers.of(0), Answer { status: Status::Seen, seen_ticks: 20, done_ticks: 20, orders: 5 });
        engine.done(0, 25);
        assert_eq!(answers.of(0), Answer { status: Status::Done, seen_ticks: 20, done_ticks: 25, orders: 5 });
        engine.seen(2, 30, 0);
        engine.refused(1, 21, Status::NoSuchLimit);
        assert_eq!((answers.of(2).status, answers.of(1).status), (Status::Done, Status::NoSuchLimit));
        engine.rejections(3, 9);
        assert_eq!((answers.rejections(3), answers.rejections(4), answers.rejections(255)), (9, 0, 0));
    }

    #[test]
    #[cfg_attr(
        miri,
        ignore = "a thousand commands, each looked for among a thousand places: minutes under Miri"
    )]
    fn a_full_desk_takes_no_more() {
        let (_, operator, mut engine, _) = desk();
        for number in 0..COMMANDS as u32 {
            assert_eq!(operator.give(Command::Kill(Scope::All), 1, 1), Some(number));
        }
        assert_eq!(operator.give(Command::Kill(Scope::All), 1, 1), None);
        assert_eq!(std::iter::from_fn(|| engine.take()).count(), COMMANDS);
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "a thousand places, walked again and again: minutes under Miri")]
        fn scribbled_desks_never_panic(count: u64, words in prop::collection::vec(any::<u64>(), 8..64)) {
            let (desk, _, mut engine, answers) = desk();
            for (word, value) in desk[FIRST..].iter().zip(&words) {
                word.store(*value, Ordering::Relaxed);
            }
            for count in [count, count % 2_048] {
                desk[COUNT].store(count, Ordering::Relaxed);
                prop_assert!(std::iter::from_fn(|| engine.take()).count() <= COMMANDS);
                prop_assert!(entries(&desk.clone().into()).count() <= COMMANDS);
            }
            for number in [0, count as u32] {
                engine.seen(number, count, count);
                engine.done(number, count);
                let _ = answers.of(number);
            }
        }
    }
}

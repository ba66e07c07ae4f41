//! The status block: what a thread says about itself, in its own segment, for the launcher to read.
//!
//! One writer (the thread), any number of readers, all words Relaxed except the state, whose
//! Release pairs with the readers' Acquire: who sees `Ready` sees everything that was prepared, who
//! sees `Done` sees the final counters. Behind the block are the counters of the thread's agents
//! ([`crate::counters`]). Both stand between the segment's header and its stamp log, so a saved log
//! carries them along.

use crate::counters::{self, AgentCounters, COUNTER_WORDS, Counters, Slots};
use crate::gaps::Dropped;
use crate::role::Role;
use core::ops::Range;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, LINE_WORDS, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;

/// Words in the block.
pub const STATUS_WORDS: usize = 64;
/// Where the agents' counters begin in a thread's segment (words).
pub const COUNTERS_OFFSET: usize = HEADER_WORDS + STATUS_WORDS;
/// Where the stamp records begin in a thread's segment (words).
pub const LOG_OFFSET: usize = COUNTERS_OFFSET + COUNTER_WORDS;
/// A thread's status block and stamp log; written by that thread.
pub const KIND: SegmentKind = SegmentKind::new(
    3,
    "thread",
    &[("status", STATUS_WORDS), ("counters", COUNTER_WORDS), ("record", crate::record::RECORD_WORDS)],
)
.of_slots(LOG_OFFSET, crate::record::RECORD_WORDS);
/// The longest error text that fits, in bytes.
pub const ERROR_BYTES: usize = 256;

/// Where a thread is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum ThreadState {
    /// Not yet attached.
    #[default]
    Starting = 0,
    /// Attached and prefaulted: waits for the start.
    Ready = 1,
    /// In its duty cycles.
    Running = 2,
    /// Finished, counters final.
    Done = 3,
    /// Gave up; the error text says why.
    Failed = 4,
}

impl ThreadState {
    /// Whether there is a state with this code.
    pub const fn is_known(code: u64) -> bool {
        code <= ThreadState::Failed as u64
    }

    /// The state with this code; an unknown code is `Failed`, since its writer is not to be
    /// trusted.
    pub const fn from_code(code: u64) -> Self {
        match code {
            0 => ThreadState::Starting,
            1 => ThreadState::Ready,
            2 => ThreadState::Running,
            3 => ThreadState::Done,
            _ => ThreadState::Failed,
        }
    }
}

/// The words of the block: what is known of the thread itself. Units stand in the names; counts are
/// since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Field {
    /// [`ThreadState`].
    State = 0,
    /// Process id.
    Pid,
    /// Thread id.
    Tid,
    /// The core that the thread was found on when its affinity was read back, plus one; 0: not
    /// pinned.
    CorePlusOne,
    /// Ticks at the last heartbeat.
    HeartbeatTicks,
    /// Duty cycles.
    Cycles,
    /// Duty cycles that found work.
    BusyCycles,
    /// Ticks spent in duty cycles that found work.
    BusyTicks,
    /// The longest time between the starts of two duty cycles, less nothing: work, preemption and
    /// idling count.
    LongestGapTicks,
    /// Ticks when the duty cycles began.
    StartedTicks,
    /// Ticks when they ended.
    EndedTicks,
    /// Context switches that the thread asked for (yield, futex) since the start of the run.
    VoluntarySwitches,
    /// Context switches that the kernel forced on it.
    InvoluntarySwitches,
    /// Page faults served without reading from a device.
    MinorFaults,
    /// Page faults that had to read from a device.
    MajorFaults,
    /// CPU time of the thread, in nanoseconds.
    CpuNs,
    /// Records that found the stamp log full: the run is invalid if there are any.
    RecordsDropped,
    /// Heap allocations after the barrier, plus one; 0: not counted (by
    /// [`system::alloc::CountingAllocator`]).
    AllocationsPlusOne,
    /// Length of the error text, in bytes.
    ErrorBytes,
    /// The first word of the error text (UTF-8, little endian), 32 words.
    ErrorText,
}

/// The gaps that the thread's log did not keep ([`crate::gaps`]): count and ticks. Behind the error
/// text.
const GAPS_DROPPED: usize = Field::ErrorText as usize + ERROR_BYTES / 8;
/// The same of its sleeps. A build that had none counted gaps in four parts of their room, here and
/// up to the next but one.
const SLEEPS_DROPPED: usize = GAPS_DROPPED + 2;
/// How many sleeps it kept, plus one; 0: nobody has counted them.
const SLEEPS_KEPT: usize = SLEEPS_DROPPED + 2;
/// The same of gaps.
const GAPS_KEPT: usize = GAPS_DROPPED + 8;

/// What a log that is spilled needs (`protocol::spill`), behind that.
pub(crate) const SPILL_AT: usize = GAPS_KEPT + 1;
/// So many words.
const SPILL_WORDS: usize = 4;
/// Of these, the chunk that the thread writes.
pub(crate) const AT: usize = 0;
/// Records that found no free chunk: how many.
pub(crate) const LOST: usize = 1;
/// How many records the log had when the first of them was lost.
pub(crate) const LOST_FROM: usize = 2;
/// The same of the last.
pub(crate) const LOST_TO: usize = 3;

const _: () = assert!(SPILL_AT + SPILL_WORDS <= STATUS_WORDS);

/// The words of a thread's segment that say where a log that is spilled goes on, and what of it was
/// lost. As [`GAPS`], but for every role: without them nobody would know where the log ends.
pub const SPILL: Range<usize> = HEADER_WORDS + SPILL_AT..HEADER_WORDS + SPILL_AT + SPILL_WORDS;

/// Those words, for the log and for the spiller.
pub(crate) fn spill(segment: &AtomicWords) -> AtomicWords {
    segment.slice(SPILL.start, SPILL_WORDS)
}

/// The words of a thread's segment that say how many gaps and sleeps its log kept and did not keep.
/// They are of all incarnations of the thread: who makes the block anew for a successor that may be
/// believed leaves them as they are.
pub const GAPS: Range<usize> = HEADER_WORDS + GAPS_DROPPED..HEADER_WORDS + GAPS_KEPT + 1;

/// The words of a thread's segment that count the gaps that its log did not keep, and those that it
/// kept, for that log; the same of its sleeps.
pub(crate) fn kept(segment: &AtomicWords) -> [[AtomicWords; 2]; 2] {
    [(GAPS_DROPPED, GAPS_KEPT), (SLEEPS_DROPPED, SLEEPS_KEPT)].map(|(dropped, kept)| {
        [segment.slice(HEADER_WORDS + dropped, 2), segment.slice(HEADER_WORDS + kept, 1)]
    })
}

/// What a status block says of records that found no free chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub records: u64,
    /// How many records the log had when the first of them was lost.
    pub from: u64,
    /// The same of the last.
    pub to: u64,
}

/// A copy of a status block, taken at one time.
#[derive(Clone, Debug)]
pub struct Status {
    words: [u64; STATUS_WORDS],
}

impl Status {
    /// Makes a status of copied-out words. Any words will do: a hostile block gives odd numbers,
    /// never a panic.
    pub const fn from_words(words: [u64; STATUS_WORDS]) -> Self {
        Self { words }
    }

    /// The value of a field.
    pub const fn get(&self, field: Field) -> u64 {
        self.words[field as usize]
    }

    /// Where the thread is in its life.
    pub const fn state(&self) -> ThreadState {
        ThreadState::from_code(self.words[Field::State as usize])
    }

    /// The core that the thread was found on when it read its affinity back.
    pub const fn core(&self) -> Option<u32> {
        match self.words[Field::CorePlusOne as usize] {
            0 => None,
            core => Some((core - 1) as u32),
        }
    }

    /// The gaps and the sleeps that the thread's log did not keep, of all incarnations of the
    /// thread. `sleep_records`: its room for sleeps, by its plan. Without any, what stands in their
    /// place is of gaps, by an earlier build.
    pub fn dropped_gaps(&self, sleep_records: u64) -> [Dropped; 2] {
        let at = |word: usize| Dropped { count: self.words[word], ticks: self.words[word + 1] };
        let (mut gaps, sleeps) = (at(GAPS_DROPPED), at(SLEEPS_DROPPED));
        if sleep_records > 0 {
            return [gaps, sleeps];
        }
        for part in [sleeps, at(SLEEPS_DROPPED + 2), at(SLEEPS_DROPPED + 4)] {
            gaps.count = gaps.count.saturating_add(part.count);
            gaps.ticks = gaps.ticks.saturating_add(part.ticks);
        }
        [gaps, Dropped::default()]
    }

    /// The chunk that the thread writes, where its log is spilled.
    pub const fn chunk(&self) -> u64 {
        self.words[SPILL_AT + AT]
    }

    /// The records that found no free chunk, where the log was spilled (`protocol::spill`). Of all
    /// incarnations of the thread.
    pub fn lost(&self) -> Lost {
        let word = |word: usize| self.words[SPILL_AT + word];
        Lost { records: word(LOST), from: word(LOST_FROM), to: word(LOST_TO) }
    }

    /// The error text, with what is not UTF-8 or not printable replaced. Its writer says so itself:
    /// of a strategy it is no fact.
    pub fn error(&self) -> String {
        let bytes: Vec<u8> = self.words[Field::ErrorText as usize..][..ERROR_BYTES / 8]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .take((self.get(Field::ErrorBytes) as usize).min(ERROR_BYTES))
            .collect();
        String::from_utf8_lossy(&bytes).replace(|c: char| c.is_control(), " ")
    }
}

/// The writing end: the thread that the block is about.
pub struct StatusWriter {
    words: AtomicWords,
    counters: AtomicWords,
}

impl StatusWriter {
    /// The block in a thread's segment.
    ///
    /// # Panics
    /// If the segment is shorter than [`LOG_OFFSET`].
    pub fn new(segment: &AtomicWords) -> Self {
        Self {
            words: segment.slice(HEADER_WORDS, STATUS_WORDS),
            counters: segment.slice(COUNTERS_OFFSET, COUNTER_WORDS),
        }
    }

    /// Says which agents the thread runs, in the order of its duty cycle.
    ///
    /// # Panics
    /// If there are more than [`counters::MAX_AGENTS`].
    pub fn announce(&self, roles: &[Role]) {
        counters::announce(&self.counters, roles);
    }

    /// The counters of the thread's agents, from the first one on.
    #[inline(always)]
    pub const fn slots(&self) -> Slots<'_> {
        Slots::new(&self.counters)
    }

    /// Stores a field. A plain store to a line of our own.
    #[inline(always)]
    pub fn set(&self, field: Field, value: u64) {
        self.words[field as usize].store(value, Ordering::Relaxed);
    }

    /// Moves on to a state. Release: pairs with the Acquire in [`read`]; who sees the state sees
    /// what came before.
    pub fn set_state(&self, state: ThreadState) {
        self.words[Field::State as usize].store(state as u64, Ordering::Release);
    }

    /// Says why the thread gives up, cut to [`ERROR_BYTES`], and that it does.
    pub fn fail(&self, error: &str) {
        let bytes = &error.as_bytes()[..error.len().min(ERROR_BYTES)];
        for (word, chunk) in self.words[Field::ErrorText as usize..].iter().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
        self.set(Field::ErrorBytes, bytes.len() as u64);
        self.set_state(ThreadState::Failed);
    }
}

/// Copies the block out of a thread's segment.
///
/// # Panics
/// If the segment is shorter than [`LOG_OFFSET`].
pub fn read(segment: &ReadOnlyWords) -> Status {
    let mut words = [0; STATUS_WORDS];
    words[Field::State as usize] = state_word(segment);
    for (index, copy) in words.iter_mut().enumerate().skip(1) {
        *copy = segment.load(HEADER_WORDS + index, Ordering::Relaxed);
    }
    Status::from_words(words)
}

/// What a watcher asks of a thread again and again: all of it in the block's first line, which its
/// writer stores to at each heartbeat anyway.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// The code of its [`ThreadState`]; any value.
    pub state: u64,
    /// Its thread id.
    pub tid: u64,
    /// Ticks at its last heartbeat.
    pub heartbeat_ticks: u64,
}

const _: () = assert!(
    HEADER_WORDS.is_multiple_of(LINE_WORDS)
        && (Field::Tid as usize) < LINE_WORDS
        && (Field::HeartbeatTicks as usize) < LINE_WORDS
);

/// A thread's pulse.
///
/// # Panics
/// If the segment is shorter than [`LOG_OFFSET`].
pub fn pulse(segment: &ReadOnlyWords) -> Pulse {
    let word = |field: Field| segment.load(HEADER_WORDS + field as usize, Ordering::Relaxed);
    // First: nothing that is read behind it is older.
    let state = state_word(segment);
    Pulse { state, tid: word(Field::Tid), heartbeat_ticks: word(Field::HeartbeatTicks) }
}

/// Where a thread is in its life, and no more of its block than that word.
///
/// # Panics
/// If the segment is shorter than [`LOG_OFFSET`].
pub fn state(segment: &ReadOnlyWords) -> ThreadState {
    ThreadState::from_code(state_word(segment))
}

fn state_word(segment: &ReadOnlyWords) -> u64 {
    // Acquire: pairs with the Release in `set_state`.
    segment.load(HEADER_WORDS, Ordering::Acquire)
}

/// One agent's counters in the segment of a thread that runs these, and no more of it than those
/// two lines: the 66 agents that there is room for have 132. All zero if the thread does not run
/// it.
///
/// # Panics
/// If the segment is shorter than [`LOG_OFFSET`].
pub fn counters_of(segment: &ReadOnlyWords, roles: &[Role], role: Role) -> AgentCounters {
    let word = |index| segment.load(COUNTERS_OFFSET + index, Ordering::Relaxed);
    AgentCounters::from_words(roles, role, word)
}

/// Copies the counters of a thread's agents out of its segment.
///
/// # Panics
/// If the segment is shorter than [`LOG_OFFSET`].
pub fn counters(segment: &ReadOnlyWords) -> Counters {
    let word = |index| segment.load(COUNTERS_OFFSET + index, Ordering::Relaxed);
    Counters::from_words((0..COUNTER_WORDS).map(word))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use shm::memory::Region;

    #[test]
    fn a_status_is_read_as_it_was_written() {
        let segment = Region::heap(LOG_OFFSET).words();
        let writer = StatusWriter::new(&segment);
        writer.set(Field::Cycles, 17);
        writer.set(Field::CorePlusOne, 4);
        writer.fail("no room for 3 µs");
        let status = read(&segment.clone().into());
        assert_eq!(status.state(), ThreadState::Failed);
        assert_eq!((status.get(Field::Cycles), status.core()), (17, Some(3)));
        assert_eq!(status.error(), "no room for 3 µs");
    }

    #[test]
    fn a_part_of_a_status_is_that_of_the_whole() {
        let segment = Region::heap(LOG_OFFSET).words();
        // Each word has a value of its own, the state among them.
        (0..LOG_OFFSET).for_each(|word| segment[word].store(word as u64, Ordering::Relaxed));
        for code in [0, 1, 2, 3, 4, u64::MAX] {
            segment[HEADER_WORDS].store(code, Ordering::Relaxed);
            let (segment, whole) = (segment.clone().into(), read(&segment.clone().into()));
            let Pulse { state, tid, heartbeat_ticks } = pulse(&segment);
            assert_eq!((super::state(&segment), state), (whole.state(), whole.get(Field::State)));
            let rest = [Field::Tid, Field::HeartbeatTicks].map(|field| whole.get(field));
            assert_eq!([tid, heartbeat_ticks], rest);
        }
    }

    #[test]
    fn a_long_error_is_cut_and_a_hostile_one_is_printable() {
        let segment = Region::heap(LOG_OFFSET).words();
        StatusWriter::new(&segment).fail(&"x".repeat(1000));
        assert_eq!(read(&segment.clone().into()).error().len(), ERROR_BYTES);
        let hostile = Status::from_words([0x1b5b_ff0a_1b5b_ff0a; STATUS_WORDS]);
        assert!(!hostile.error().contains('\u{1b}'));
        assert_eq!(hostile.state(), ThreadState::Failed);
    }
}

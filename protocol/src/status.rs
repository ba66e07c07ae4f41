//! The status block, in which a thread publishes its own state for the launcher.
//!
//! All words are Relaxed except the state, whose Release pairs with the readers' Acquire: a reader
//! that sees `Ready` sees the prepared memory, one that sees `Done` the final counters. The block
//! and the counters of the thread's agents ([`crate::counters`]) are between the segment's header
//! and its stamp log, so a saved log includes them.

use crate::counters::{self, AgentCounters, COUNTER_WORDS, CounterSlots, ThreadCounters};
use crate::gaps::DroppedGaps;
use crate::role::Role;
use core::ops::Range;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, LINE_WORDS, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;

/// Number of 64-bit words of a thread's status block.
pub const STATUS_WORDS: usize = 64;
/// Offset (words) of the agents' counters in a thread's segment.
pub const COUNTERS_OFFSET: usize = HEADER_WORDS + STATUS_WORDS;
/// Offset (words) of the stamp log's records in a thread's segment.
pub const LOG_OFFSET: usize = COUNTERS_OFFSET + COUNTER_WORDS;
/// The segment kind (code, name and layout) of a thread's status block, counters and stamp log,
/// which that thread writes.
pub const KIND: SegmentKind = SegmentKind::new(
    3,
    "thread",
    &[("status", STATUS_WORDS), ("counters", COUNTER_WORDS), ("record", crate::record::RECORD_WORDS)],
)
.of_slots(LOG_OFFSET, crate::record::RECORD_WORDS);
/// Maximum length in bytes of the error text in a status block.
pub const ERROR_BYTES: usize = 256;

system::named_enum! {
    /// The life cycle state of a thread, in the order of the codes.
    #[derive(Default, PartialOrd, Ord)]
    ThreadState {
        /// The thread has not attached its segments yet.
        #[default]
        Starting = "starting",
        /// The thread has attached and prefaulted its segments, and waits for the start.
        Ready = "ready",
        /// The thread runs duty cycles.
        Running = "running",
        /// The thread has finished, and its counters are final.
        Done = "done",
        /// The thread has failed; the error text has the reason.
        Failed = "failed",
    }
}

impl ThreadState {
    /// Returns `true` if a thread state with this code exists.
    pub const fn is_known(code: u64) -> bool {
        code <= ThreadState::Failed as u64
    }

    /// Returns the thread state with this code; `Failed` if the code is unknown, as its writer
    /// cannot be trusted.
    pub const fn from_code(code: u64) -> Self {
        if Self::is_known(code) { Self::ALL[code as usize] } else { Self::Failed }
    }
}

/// A field of a thread's status block, one word each. Counts are since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum StatusField {
    /// The code of the [`ThreadState`].
    State = 0,
    /// The id of the thread's process.
    Pid,
    /// The thread's id in the kernel.
    Tid,
    /// The core of the thread when its affinity was read back, plus one; 0: not pinned.
    CorePlusOne,
    /// Time of the thread's last heartbeat, in ticks.
    HeartbeatTicks,
    /// Number of duty cycles of the thread.
    Cycles,
    /// Number of duty cycles that found work.
    BusyCycles,
    /// Ticks spent in duty cycles that found work.
    BusyTicks,
    /// The longest time between two duty cycles in ticks: work, preemption and idling.
    LongestGapTicks,
    /// Time at which the duty cycles began, in ticks.
    StartedTicks,
    /// Time at which the duty cycles ended, in ticks.
    EndedTicks,
    /// Voluntary context switches of the thread (yield, futex) since the start of the run.
    VoluntarySwitches,
    /// Context switches that the kernel forced on the thread.
    InvoluntarySwitches,
    /// Page faults of the thread that were served without reading from a device.
    MinorFaults,
    /// Page faults of the thread that had to read from a device.
    MajorFaults,
    /// CPU time of the thread, in nanoseconds.
    CpuNs,
    /// Records that found the stamp log full: the run is invalid if there are any.
    RecordsDropped,
    /// Heap allocations after the barrier, plus one; 0: not counted by the allocator.
    AllocationsPlusOne,
    /// Length of the error text, in bytes.
    ErrorBytes,
    /// The first word of the error text (UTF-8, little endian), 32 words.
    ErrorText,
    /// Time in ticks at which the process began to recover its roles, which have nothing to recover
    /// without a journal.
    RecoveryBegunTicks = 60,
    /// Time in ticks at which the process had recovered its roles: all records of a journal were
    /// applied.
    RecoveryEndedTicks = 61,
    /// The word of the lock that the thread holds while it lives ([`system::robust`]).
    RobustLock = 62,
}

/// Offset of the gaps that the thread's log did not keep ([`crate::gaps`]): count and ticks.
const GAPS_DROPPED: usize = StatusField::ErrorText as usize + ERROR_BYTES / 8;
/// Offset of the sleeps that the log did not keep; earlier builds count gaps from here on.
const SLEEPS_DROPPED: usize = GAPS_DROPPED + 2;
/// Offset of the number of sleeps kept, plus one; 0: not counted.
const SLEEPS_KEPT: usize = SLEEPS_DROPPED + 2;
/// Offset of the number of gaps kept, plus one; 0: not counted.
const GAPS_KEPT: usize = GAPS_DROPPED + 8;

const _: () = assert!(GAPS_KEPT < StatusField::RecoveryBegunTicks as usize);

/// The range of words, in a thread's segment, that count the thread's gaps (pauses) and sleeps over
/// all its incarnations.
pub const GAPS: Range<usize> = HEADER_WORDS + GAPS_DROPPED..HEADER_WORDS + GAPS_KEPT + 1;

/// Returns the status words that count dropped and kept gaps, and dropped and kept sleeps.
pub(crate) fn gap_counters(segment: &AtomicWords) -> [[AtomicWords; 2]; 2] {
    [(GAPS_DROPPED, GAPS_KEPT), (SLEEPS_DROPPED, SLEEPS_KEPT)].map(|(dropped, kept)| {
        [segment.slice(HEADER_WORDS + dropped, 2), segment.slice(HEADER_WORDS + kept, 1)]
    })
}

/// A copy of a thread's status block.
#[derive(Clone, Debug)]
pub struct ThreadStatus {
    words: [u64; STATUS_WORDS],
}

impl ThreadStatus {
    /// Decodes a status block's words, of any value: a hostile block gives odd values, never a
    /// panic.
    pub const fn from_words(words: [u64; STATUS_WORDS]) -> Self {
        Self { words }
    }

    /// Returns the value of a field of the thread's status block.
    pub const fn get(&self, field: StatusField) -> u64 {
        self.words[field as usize]
    }

    /// Returns the life cycle state of the thread.
    pub const fn state(&self) -> ThreadState {
        ThreadState::from_code(self.words[StatusField::State as usize])
    }

    /// Returns the core to which the thread is pinned, as read back from the kernel; `None` if it
    /// is not pinned.
    pub const fn core(&self) -> Option<u32> {
        match self.words[StatusField::CorePlusOne as usize] {
            0 => None,
            core => Some((core - 1) as u32),
        }
    }

    /// Returns the gaps (pauses) and sleeps of the thread that its log did not keep. With no
    /// `sleep_records` planned, the words of sleeps may hold gaps of an earlier build.
    pub fn dropped_gaps(&self, sleep_records: u64) -> [DroppedGaps; 2] {
        let at = |word: usize| DroppedGaps { count: self.words[word], ticks: self.words[word + 1] };
        let (mut gaps, sleeps) = (at(GAPS_DROPPED), at(SLEEPS_DROPPED));
        if sleep_records > 0 {
            return [gaps, sleeps];
        }
        for part in [sleeps, at(SLEEPS_DROPPED + 2), at(SLEEPS_DROPPED + 4)] {
            gaps.count = gaps.count.saturating_add(part.count);
            gaps.ticks = gaps.ticks.saturating_add(part.ticks);
        }
        [gaps, DroppedGaps::default()]
    }

    /// Returns the error text of a failed thread with control characters replaced by spaces,
    /// because an untrusted process may have written it.
    pub fn error(&self) -> String {
        let bytes: Vec<u8> = self.words[StatusField::ErrorText as usize..][..ERROR_BYTES / 8]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .take((self.get(StatusField::ErrorBytes) as usize).min(ERROR_BYTES))
            .collect();
        String::from_utf8_lossy(&bytes).replace(|c: char| c.is_control(), " ")
    }
}

/// A thread's writing end of its own status block.
#[derive(Clone)]
pub struct StatusWriter {
    words: AtomicWords,
    counters: AtomicWords,
}

impl StatusWriter {
    /// Attaches to the status block in a thread's segment.
    pub fn new(segment: &AtomicWords) -> Self {
        Self {
            words: segment.slice(HEADER_WORDS, STATUS_WORDS),
            counters: segment.slice(COUNTERS_OFFSET, COUNTER_WORDS),
        }
    }

    /// Publishes the roles of the thread's agents, in the order of its duty cycle.
    pub fn announce(&self, roles: &[Role]) {
        counters::announce(&self.counters, roles);
    }

    /// Returns a writer of the agents' counters, positioned at the thread's first agent.
    #[inline(always)]
    pub const fn slots(&self) -> CounterSlots<'_> {
        CounterSlots::new(&self.counters)
    }

    /// Stores a field of the thread's status block, in a cache line that only this thread writes.
    #[inline(always)]
    pub fn set(&self, field: StatusField, value: u64) {
        self.words[field as usize].store(value, Ordering::Relaxed);
    }

    /// Publishes the state of the thread. Release: pairs with the Acquire in [`read`].
    pub fn set_state(&self, state: ThreadState) {
        self.words[StatusField::State as usize].store(state as u64, Ordering::Release);
    }

    /// Publishes the thread's error text, cut to [`ERROR_BYTES`], and [`ThreadState::Failed`].
    pub fn fail(&self, error: &str) {
        let bytes = &error.as_bytes()[..error.len().min(ERROR_BYTES)];
        for (word, chunk) in self.words[StatusField::ErrorText as usize..].iter().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
        self.set(StatusField::ErrorBytes, bytes.len() as u64);
        self.set_state(ThreadState::Failed);
    }
}

/// Returns the word of the robust futex that a thread holds; the kernel marks the word when the
/// thread ends.
pub fn robust_lock(segment: &AtomicWords) -> AtomicWords {
    segment.slice(HEADER_WORDS + StatusField::RobustLock as usize, 1)
}

/// Returns the value of one field of a thread's status block.
pub fn field(segment: &ReadOnlyWords, field: StatusField) -> u64 {
    segment.load(HEADER_WORDS + field as usize, Ordering::Relaxed)
}

/// Copies the status block out of a thread's segment.
pub fn read(segment: &ReadOnlyWords) -> ThreadStatus {
    let mut words = [0; STATUS_WORDS];
    words[StatusField::State as usize] = state_word(segment);
    for (index, copy) in words.iter_mut().enumerate().skip(1) {
        *copy = segment.load(HEADER_WORDS + index, Ordering::Relaxed);
    }
    ThreadStatus::from_words(words)
}

/// The fields that show a thread's progress, all in its status block's first cache line.
#[derive(Clone, Copy, Debug)]
pub struct LivenessSample {
    /// The code of the [`ThreadState`]; any value is possible.
    pub state: u64,
    /// The thread's id in the kernel.
    pub tid: u64,
    /// Time of the thread's last heartbeat, in ticks.
    pub heartbeat_ticks: u64,
}

const _: () = assert!(
    HEADER_WORDS.is_multiple_of(LINE_WORDS)
        && (StatusField::Tid as usize) < LINE_WORDS
        && (StatusField::HeartbeatTicks as usize) < LINE_WORDS
);

/// Reads the fields of a thread's status block from which its liveness is judged.
pub fn sample_liveness(segment: &ReadOnlyWords) -> LivenessSample {
    // First: no field read after it is older.
    let state = state_word(segment);
    let [tid, heartbeat_ticks] = [StatusField::Tid, StatusField::HeartbeatTicks].map(|of| field(segment, of));
    LivenessSample { state, tid, heartbeat_ticks }
}

/// Reads the life cycle state of a thread from its status block.
pub fn state(segment: &ReadOnlyWords) -> ThreadState {
    ThreadState::from_code(state_word(segment))
}

fn state_word(segment: &ReadOnlyWords) -> u64 {
    // Acquire: pairs with the Release in `set_state`.
    segment.load(HEADER_WORDS, Ordering::Acquire)
}

/// Reads one agent's counters in the segment of a thread with `roles`; zero without that role.
pub fn counters_of(segment: &ReadOnlyWords, roles: &[Role], role: Role) -> AgentCounters {
    let word = |index| segment.load(COUNTERS_OFFSET + index, Ordering::Relaxed);
    AgentCounters::from_words(roles, role, word)
}

/// Copies the counters of a thread's agents out of its segment.
pub fn counters(segment: &ReadOnlyWords) -> ThreadCounters {
    let word = |index| segment.load(COUNTERS_OFFSET + index, Ordering::Relaxed);
    ThreadCounters::from_words((0..COUNTER_WORDS).map(word))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use shm::memory::Region;

    #[test]
    fn status_round_trips_through_segment() {
        let segment = Region::heap(LOG_OFFSET).words();
        let writer = StatusWriter::new(&segment);
        writer.set(StatusField::Cycles, 17);
        writer.set(StatusField::CorePlusOne, 4);
        writer.fail("no room for 3 µs");
        let status = read(&segment.clone().into());
        assert_eq!(status.state(), ThreadState::Failed);
        assert_eq!((status.get(StatusField::Cycles), status.core()), (17, Some(3)));
        assert_eq!(status.error(), "no room for 3 µs");
    }

    #[test]
    fn partial_reads_agree_with_whole_status() {
        let segment = Region::heap(LOG_OFFSET).words();
        // Each word has a value of its own, the state among them.
        (0..LOG_OFFSET).for_each(|word| segment[word].store(word as u64, Ordering::Relaxed));
        for code in [0, 1, 2, 3, 4, u64::MAX] {
            segment[HEADER_WORDS].store(code, Ordering::Relaxed);
            let (segment, full_read) = (segment.clone().into(), read(&segment.clone().into()));
            let LivenessSample { state, tid, heartbeat_ticks } = sample_liveness(&segment);
            assert_eq!(
                (super::state(&segment), state),
                (full_read.state(), full_read.get(StatusField::State))
            );
            let rest = [StatusField::Tid, StatusField::HeartbeatTicks].map(|field| full_read.get(field));
            assert_eq!([tid, heartbeat_ticks], rest);
        }
    }

    #[test]
    fn error_text_is_truncated_and_made_printable() {
        let segment = Region::heap(LOG_OFFSET).words();
        StatusWriter::new(&segment).fail(&"x".repeat(1000));
        assert_eq!(read(&segment.clone().into()).error().len(), ERROR_BYTES);
        let hostile = ThreadStatus::from_words([0x1b5b_ff0a_1b5b_ff0a; STATUS_WORDS]);
        assert!(!hostile.error().contains('\u{1b}'));
        assert_eq!(hostile.state(), ThreadState::Failed);
    }
}

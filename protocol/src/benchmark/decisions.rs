//! The decisions of a board's readers, in their results: what each read for one decision tick.
//!
//! The writer publishes a tick on a cell of its own, after those that it writes in turn. The tick
//! names the version of cell 0 at that time. A reader that sees a tick reads the newest value of
//! cell 0, then the version that the tick names.

use super::BOARD_RESULT_WORDS;
use shm::memory::ReadOnlyWords;
use shm::sync::{AtomicU64, Ordering};

/// Maximum number of decisions (versions read at decision ticks) in the results of a board's
/// reader, which keep the latest ones.
pub const MAX_DECISIONS: usize = 4096;
/// Words of a decision.
const DECISION_WORDS: usize = 4;
/// Number of words of all decisions, at the end of a reader's results.
pub(super) const WORDS: usize = MAX_DECISIONS * DECISION_WORDS;

/// A reader's record of one decision tick, at which all readers of a board must decide: the newest
/// version read, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardDecision {
    /// Number of the decision tick, from 1.
    pub number: u64,
    /// Version of the newest value that the reader read.
    pub newest: u64,
    /// Time at which the reader had that value, in ticks of the run's clock.
    pub at: u64,
    /// Whether the reader could still read the version that the decision tick names.
    pub has_named: bool,
}

fn place(number: u64) -> usize {
    BOARD_RESULT_WORDS + number as usize % MAX_DECISIONS * DECISION_WORDS
}

impl BoardDecision {
    /// Stores the decision in the results of a board's reader, over the decision [`MAX_DECISIONS`]
    /// ticks before it.
    pub fn store(&self, results: &[AtomicU64]) {
        let words = [self.number, self.newest, self.at, u64::from(self.has_named)];
        let room = &results[place(self.number)..];
        room.iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// Returns all decisions in the results of a board's reader, in no order; none if the results
    /// have no space for them.
    pub fn all(results: &ReadOnlyWords) -> Vec<Self> {
        let load = |at| results.load(at, Ordering::Relaxed);
        let count = if results.len() < BOARD_RESULT_WORDS + WORDS { 0 } else { MAX_DECISIONS };
        let decision = |index: usize| {
            let at = place(index as u64);
            Self { number: load(at), newest: load(at + 1), at: load(at + 2), has_named: load(at + 3) == 1 }
        };
        (0..count).map(decision).filter(|decision| decision.number > 0).collect()
    }
}

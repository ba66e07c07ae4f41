//! Figures and histograms of a board's writer or reader, in its shared account. One process adds,
//! the launcher reads, also after a crash. Nothing is allocated.
//!
//! ```text
//! │ figures (16 words) │ three histograms, fine │ 60 histograms, coarse: one per time slice │
//! ```
//!
//! A value below 2^(bits+1) ticks has a bucket of its own. Above, the width of a bucket is one part
//! in 2^bits of its value. Minimum, maximum and sum are exact.

use super::super::account::AgentAccount;
use shm::memory::AtomicWords;
use shm::sync::Ordering;

/// Values from 2^40 ticks on (some minutes) share the last bucket.
const TOP: u32 = 40;
/// Index of the histogram word with the minimum plus 1; 0 without any value.
pub const MIN_WORD: usize = 0;
/// Index of the histogram word with the maximum.
pub const MAX_WORD: usize = 1;
/// Index of the histogram word with the sum of all values.
pub const SUM: usize = 2;
/// Index of the histogram's first bucket.
pub const BUCKETS: usize = 3;

/// The resolution of a histogram: its buckets are one part in 2^bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    bits: u32,
}

impl Resolution {
    /// A resolution of one part in 2,048: finer than a table shows.
    pub const FINE: Self = Self { bits: 11 };
    /// A resolution of one part in 32: for charts over time.
    pub const COARSE: Self = Self { bits: 5 };

    /// Returns the number of buckets of a histogram.
    pub const fn buckets(self) -> usize {
        ((TOP - self.bits + 1) as usize) << self.bits
    }

    /// Returns the size of a histogram in words.
    pub const fn words(self) -> usize {
        (BUCKETS + self.buckets()).next_multiple_of(8)
    }

    /// Returns the bucket of a value.
    #[inline(always)]
    pub const fn bucket(self, value: u64) -> usize {
        let top = (1 << TOP) - 1;
        let value = if value < top { value } else { top };
        let shift = (63 - (value | 1).leading_zeros()).saturating_sub(self.bits);
        ((shift as usize) << self.bits) + (value >> shift) as usize
    }

    /// Returns the value in the middle of a bucket.
    pub const fn value(self, bucket: usize) -> u64 {
        if bucket < 2 << self.bits {
            return bucket as u64;
        }
        let shift = (bucket >> self.bits) - 1;
        let first = ((bucket - (shift << self.bits)) as u64) << shift;
        first + (1 << shift) / 2
    }
}

/// The writing end of a histogram in shared memory.
pub struct SharedHistogram {
    words: AtomicWords,
    grain: Resolution,
}

impl SharedHistogram {
    /// Opens a histogram in [`Resolution::words`] words of memory. Existing counts stay.
    pub const fn new(words: AtomicWords, grain: Resolution) -> Self {
        Self { words, grain }
    }

    /// Counts one value in the histogram, in ticks.
    #[inline(always)]
    pub fn add(&self, ticks: u64) {
        // Relaxed loads and stores: this process is the only writer, and the account's state
        // publishes.
        add(&self.words, BUCKETS + self.grain.bucket(ticks), 1);
        add(&self.words, SUM, ticks);
        if ticks > self.words[MAX_WORD].load(Ordering::Relaxed) {
            self.words[MAX_WORD].store(ticks, Ordering::Relaxed);
        }
        let min = self.words[MIN_WORD].load(Ordering::Relaxed);
        if min == 0 || ticks < min - 1 {
            self.words[MIN_WORD].store(ticks.saturating_add(1), Ordering::Relaxed);
        }
    }
}

#[inline(always)]
fn add(words: &AtomicWords, index: usize, more: u64) {
    let word = &words[index];
    // Relaxed: as in `SharedHistogram::add`.
    word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

const FIGURES: usize = 16;
/// Number of histograms of a board's end over the whole time.
pub const MEASURES: usize = 3;
/// Number of time slices of a board's figures.
pub const SLICES: usize = 60;
/// Number of words that a board's end adds to its account.
pub const WORDS: usize = FIGURES + MEASURES * Resolution::FINE.words() + SLICES * Resolution::COARSE.words();

/// A counter of a board's reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardField {
    /// Versions missed.
    Missed,
    /// Torn values: content that does not match the version.
    Torn,
    /// Reads given up because the writer overtook them.
    Overtaken,
}

/// A measured duration of a board's writer or reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardMeasure {
    /// A writer's: begin to end. A reader's: propagation.
    First,
    /// A writer's: due to end. A reader's: from detection to the end of the read.
    Second,
    /// A reader's: staleness.
    Third,
}

/// Returns the index of the first word of a measure's histogram.
pub fn measure_at(measure: usize) -> usize {
    FIGURES + measure * Resolution::FINE.words()
}

/// Returns the index of the first word of a time slice's histogram.
pub fn slice_at(slice: usize) -> usize {
    measure_at(MEASURES) + slice * Resolution::COARSE.words()
}

/// The agent's writing end of its figures and histograms.
pub struct BoardLog {
    account: AgentAccount,
    figures: AtomicWords,
    measures: [SharedHistogram; MEASURES],
    slices: Vec<SharedHistogram>,
}

impl BoardLog {
    /// Opens an account with [`WORDS`] own words. A successor adds to existing counts.
    pub fn new(account: &AgentAccount) -> Self {
        let words = account.own();
        let histogram = |at, grain: Resolution| SharedHistogram::new(words.slice(at, grain.words()), grain);
        Self {
            account: account.clone(),
            figures: words.slice(0, FIGURES),
            measures: std::array::from_fn(|index| histogram(measure_at(index), Resolution::FINE)),
            slices: (0..SLICES).map(|slice| histogram(slice_at(slice), Resolution::COARSE)).collect(),
        }
    }

    /// Counts one write made, or one value read.
    #[inline(always)]
    pub fn count(&self) {
        self.account.add(1);
    }

    /// Adds to a counter of the board's end.
    #[inline(always)]
    pub fn add(&self, field: BoardField, more: u64) {
        add(&self.figures, field as usize, more);
    }

    /// Counts a duration, in ticks, in a measure's histogram.
    #[inline(always)]
    pub fn measure(&self, measure: BoardMeasure, ticks: u64) {
        self.measures[measure as usize].add(ticks);
    }

    /// Counts a value in the histogram of its time slice. The last slice includes later values.
    #[inline(always)]
    pub fn over_time(&self, slice: usize, ticks: u64) {
        self.slices[slice.min(SLICES - 1)].add(ticks);
    }
}

//! Figures and histograms of a board's writer or reader, in its shared account. One process adds,
//! the launcher reads, also of a process that was killed. Nothing is allocated.
//!
//! ```text
//! │ figures (16 words) │ three histograms, fine │ 60 histograms, coarse: one for each part of the time │
//! ```
//!
//! A value below 2^(bits+1) ticks has a bucket of its own. Above, the width of a bucket is one part
//! in 2^bits of its value. Least, greatest and sum are exact.

use super::super::account::AgentAccount;
use shm::memory::AtomicWords;
use shm::sync::Ordering;

/// From 2^40 ticks on (some minutes), values count as the greatest.
const TOP: u32 = 40;
/// One more than the least value; 0: there is none.
pub const LEAST: usize = 0;
/// The greatest value.
pub const GREATEST: usize = 1;
/// The sum of all values.
pub const SUM: usize = 2;
/// The first bucket.
pub const BUCKETS: usize = 3;

/// The resolution of a histogram: one part in 2^bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    bits: u32,
}

impl Grain {
    /// One part in 2,048: finer than a table shows.
    pub const FINE: Self = Self { bits: 11 };
    /// One part in 32: for charts over time.
    pub const COARSE: Self = Self { bits: 5 };

    /// The number of buckets.
    pub const fn buckets(self) -> usize {
        ((TOP - self.bits + 1) as usize) << self.bits
    }

    /// The size of a histogram in words.
    pub const fn words(self) -> usize {
        (BUCKETS + self.buckets()).next_multiple_of(8)
    }

    /// The bucket of a value.
    #[inline(always)]
    pub const fn bucket(self, value: u64) -> usize {
        let top = (1 << TOP) - 1;
        let value = if value < top { value } else { top };
        let shift = (63 - (value | 1).leading_zeros()).saturating_sub(self.bits);
        ((shift as usize) << self.bits) + (value >> shift) as usize
    }

    /// The middle of a bucket.
    pub const fn value(self, bucket: usize) -> u64 {
        if bucket < 2 << self.bits {
            return bucket as u64;
        }
        let shift = (bucket >> self.bits) - 1;
        let first = ((bucket - (shift << self.bits)) as u64) << shift;
        first + (1 << shift) / 2
    }
}

/// The writing end of a histogram.
pub struct SharedHistogram {
    words: AtomicWords,
    grain: Grain,
}

impl SharedHistogram {
    /// Over memory of [`Grain::words`] words. What is counted there stays.
    pub const fn new(words: AtomicWords, grain: Grain) -> Self {
        Self { words, grain }
    }

    /// Counts one value, in ticks.
    #[inline(always)]
    pub fn add(&self, ticks: u64) {
        // Relaxed loads and stores: this process is the only writer, and the account's state
        // publishes.
        add(&self.words, BUCKETS + self.grain.bucket(ticks), 1);
        add(&self.words, SUM, ticks);
        if ticks > self.words[GREATEST].load(Ordering::Relaxed) {
            self.words[GREATEST].store(ticks, Ordering::Relaxed);
        }
        let least = self.words[LEAST].load(Ordering::Relaxed);
        if least == 0 || ticks < least - 1 {
            self.words[LEAST].store(ticks.saturating_add(1), Ordering::Relaxed);
        }
    }
}

#[inline(always)]
fn add(words: &AtomicWords, place: usize, more: u64) {
    let word = &words[place];
    // Relaxed: as in `SharedHistogram::add`.
    word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

const FIGURES: usize = 16;
/// Histograms of the whole time.
pub const MEASURES: usize = 3;
/// Parts of the time.
pub const SLICES: usize = 60;
/// The own words of an account.
pub const WORDS: usize = FIGURES + MEASURES * Grain::FINE.words() + SLICES * Grain::COARSE.words();

/// A figure of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardField {
    /// Versions missed.
    Missed,
    /// Values whose content is not that of their version.
    Torn,
    /// Reads given up.
    Overtaken,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardMeasure {
    /// A writer's: begin to end. A reader's: propagation.
    First,
    /// A writer's: due to end. A reader's: from detection to the end of the read.
    Second,
    /// A reader's: staleness.
    Third,
}

/// The first word of a measure's histogram.
pub fn measure_at(measure: usize) -> usize {
    FIGURES + measure * Grain::FINE.words()
}

/// The first word of the histogram of a part of the time.
pub fn slice_at(slice: usize) -> usize {
    measure_at(MEASURES) + slice * Grain::COARSE.words()
}

/// The agent's end.
pub struct BoardLog {
    account: AgentAccount,
    figures: AtomicWords,
    measures: [SharedHistogram; MEASURES],
    slices: Vec<SharedHistogram>,
}

impl BoardLog {
    /// Over an account with [`WORDS`] own words. A successor adds to what is counted there.
    pub fn new(account: &AgentAccount) -> Self {
        let words = account.own();
        let histogram = |at, grain: Grain| SharedHistogram::new(words.slice(at, grain.words()), grain);
        Self {
            account: account.clone(),
            figures: words.slice(0, FIGURES),
            measures: std::array::from_fn(|place| histogram(measure_at(place), Grain::FINE)),
            slices: (0..SLICES).map(|slice| histogram(slice_at(slice), Grain::COARSE)).collect(),
        }
    }

    /// Counts a write made, or a value read.
    #[inline(always)]
    pub fn count(&self) {
        self.account.add(1);
    }

    /// Adds to a figure.
    #[inline(always)]
    pub fn add(&self, field: BoardField, more: u64) {
        add(&self.figures, field as usize, more);
    }

    /// Counts a duration in ticks.
    #[inline(always)]
    pub fn measure(&self, measure: BoardMeasure, ticks: u64) {
        self.measures[measure as usize].add(ticks);
    }

    /// Counts a value in its part of the time. The last part includes what comes after it.
    #[inline(always)]
    pub fn over_time(&self, slice: usize, ticks: u64) {
        self.slices[slice.min(SLICES - 1)].add(ticks);
    }
}

//! Histograms in shared memory: one thread adds, the launcher reads, also after a crash.
//!
//! A value below 2^(bits+1) ticks has a bucket of its own. Above, the width of a bucket is one part
//! in 2^bits of its value. Minimum, maximum and sum are exact. Nothing is allocated.

use shm::memory::AtomicWords;
use shm::sync::Ordering;

/// Values from 2^40 ticks on (some minutes) share the last bucket.
const TOP: u32 = 40;
/// Index of a histogram's word with the minimum plus 1; 0: no value.
pub const MIN_WORD: usize = 0;
/// Index of a histogram's word with the maximum.
pub const MAX_WORD: usize = 1;
/// Index of a histogram's word with the sum of all values.
pub const SUM: usize = 2;
/// Index of a histogram's first bucket.
pub const BUCKETS: usize = 3;

/// The relative resolution of a histogram: a bucket is at most 1/2^bits of its values wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    bits: u32,
}

impl Resolution {
    /// The fine resolution of a histogram, one part in 2,048: finer than a table shows.
    pub const FINE: Self = Self { bits: 11 };
    /// The coarse resolution of a histogram, one part in 32: for the parts of a run's time.
    pub const COARSE: Self = Self { bits: 5 };

    /// Returns the number of buckets of a histogram.
    pub const fn bucket_count(self) -> usize {
        ((TOP - self.bits + 1) as usize) << self.bits
    }

    /// Returns the size of a histogram in shared memory, in 64-bit words.
    pub const fn words(self) -> usize {
        (BUCKETS + self.bucket_count()).next_multiple_of(8)
    }

    /// Returns the index of the histogram bucket that a value belongs to.
    #[inline(always)]
    pub const fn bucket(self, value: u64) -> usize {
        let top = (1 << TOP) - 1;
        let value = if value < top { value } else { top };
        let shift = (63 - (value | 1).leading_zeros()).saturating_sub(self.bits);
        ((shift as usize) << self.bits) + (value >> shift) as usize
    }

    /// Returns the value in the middle of a histogram bucket.
    pub const fn bucket_value(self, bucket: usize) -> u64 {
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
    resolution: Resolution,
}

impl SharedHistogram {
    /// Opens the writing end of a histogram in [`Resolution::words`] words of shared memory.
    /// Existing counts stay.
    pub const fn new(words: AtomicWords, resolution: Resolution) -> Self {
        Self { words, resolution }
    }

    /// Counts one value, in ticks, in the histogram.
    #[inline(always)]
    pub fn add(&self, ticks: u64) {
        // Relaxed loads and stores: this thread is the only writer, and its state publishes.
        add(&self.words, BUCKETS + self.resolution.bucket(ticks), 1);
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

//! The histograms of a board's writer or reader, in the results of its role.

use protocol::benchmark::BOARD_HISTOGRAMS;
use protocol::shared_histogram::{HISTOGRAM_WORDS, SharedHistogram};
use shm::memory::AtomicWords;

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

impl BoardMeasure {
    /// Returns the index of the first word of the duration's histogram in the results.
    pub const fn offset(self) -> usize {
        self as usize * HISTOGRAM_WORDS
    }
}

/// The writing end of the histograms of a board's writer or reader.
pub struct BoardHistograms([SharedHistogram; BOARD_HISTOGRAMS]);

impl BoardHistograms {
    /// Opens the histograms in the results of a role. A successor adds to existing counts.
    pub fn new(results: &AtomicWords) -> Self {
        let histogram = |index| SharedHistogram::new(results.slice(index * HISTOGRAM_WORDS, HISTOGRAM_WORDS));
        Self(std::array::from_fn(histogram))
    }

    /// Counts a measured duration, in ticks, in its histogram.
    #[inline(always)]
    pub fn measure(&self, measure: BoardMeasure, ticks: u64) {
        self.0[measure as usize].add(ticks);
    }
}

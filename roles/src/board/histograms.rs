//! The histograms of a board's writer or reader, in the results of its role.

use protocol::benchmark::board_results::BoardMeasure;
use protocol::benchmark::{BOARD_HISTOGRAMS, BOARD_SLICED, BOARD_SLICES, board_histogram_at, board_slice_at};
use protocol::shared_histogram::{Resolution, SharedHistogram};
use shm::memory::AtomicWords;
use std::array::from_fn;
use system::clock::Timebase;

/// A writer of the latency histograms of one end of the board benchmark, in shared memory.
pub struct BoardHistograms {
    whole: [SharedHistogram; BOARD_HISTOGRAMS],
    slices: [Vec<SharedHistogram>; BOARD_SLICED],
    start_ticks: u64,
    slice_ticks: u64,
}

impl BoardHistograms {
    /// Opens the latency histograms in the results of a board's writer or reader. A successor adds
    /// to existing counts. The parts of the time begin at the start and end with the duration.
    pub fn new(results: &AtomicWords, time: Timebase, duration_ns: u64) -> Self {
        let histogram = |offset, resolution: Resolution| {
            SharedHistogram::new(results.slice(offset, resolution.words()), resolution)
        };
        let slices = |measure| {
            let slice = |slice| histogram(board_slice_at(measure, slice), Resolution::COARSE);
            (0..BOARD_SLICES).map(slice).collect()
        };
        Self {
            whole: from_fn(|measure| histogram(board_histogram_at(measure), Resolution::FINE)),
            slices: from_fn(slices),
            start_ticks: time.start_ticks,
            slice_ticks: (time.ticks(duration_ns) / BOARD_SLICES as u64).max(1),
        }
    }

    /// Adds a duration (in ticks) to the histogram for its kind, `measure`.
    #[inline(always)]
    pub fn measure(&self, measure: BoardMeasure, ticks: u64) {
        self.whole[measure as usize].add(ticks);
    }

    /// Adds a duration in ticks to two histograms of `measure`: the whole run's, and that of the
    /// run's part in which the duration began. The run has [`BOARD_SLICES`] equal parts; the last
    /// one includes what began later. [`BoardMeasure::Third`] has only the first histogram.
    #[inline(always)]
    pub fn measure_at(&self, measure: BoardMeasure, began: u64, ticks: u64) {
        self.measure(measure, ticks);
        let slice = began.saturating_sub(self.start_ticks) / self.slice_ticks;
        if let Some(slices) = self.slices.get(measure as usize) {
            slices[(slice as usize).min(BOARD_SLICES - 1)].add(ticks);
        }
    }
}

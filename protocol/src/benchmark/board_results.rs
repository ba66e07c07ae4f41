//! The measured durations of a board's writer or reader, and the places of their histograms in the
//! results.

use super::{board_histogram_at, board_slice_at};

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
        board_histogram_at(self as usize)
    }

    /// Returns the index of the first word of its histogram for a part of the time; only the first
    /// two durations have them.
    pub const fn slice_offset(self, slice: usize) -> usize {
        board_slice_at(self as usize, slice)
    }
}

//! The measured durations of a board's writer or reader, and the places of their histograms in the
//! results.

use super::{board_histogram_at, board_slice_at};

/// A duration that a board benchmark's writer or reader measures, such as a write's time or a
/// value's propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardMeasure {
    /// The first duration: of a write from begin to end, or the propagation of a value to a reader.
    First,
    /// The second duration: of a write from its due time to its end, or of a read from detection to
    /// its end.
    Second,
    /// The third duration: the staleness of the value that a reader reads.
    Third,
}

impl BoardMeasure {
    /// Returns the offset (words) of the duration's histogram over the whole run in the results of
    /// a board's writer or reader.
    pub const fn offset(self) -> usize {
        board_histogram_at(self as usize)
    }

    /// Returns the offset (words) of the duration's histogram for one part of the run; only the
    /// first two durations have such histograms.
    pub const fn slice_offset(self, slice: usize) -> usize {
        board_slice_at(self as usize, slice)
    }
}

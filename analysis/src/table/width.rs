//! Width of reports: that of the terminal if it was set, else 80 columns.

use std::sync::OnceLock;

/// Default width of a report in columns, for files and pipes.
pub const DEFAULT_WIDTH: usize = 80;
/// Minimum and maximum width: longer lines are hard to read.
const BOUNDS: (usize, usize) = (60, 132);

static COLUMNS: OnceLock<usize> = OnceLock::new();

/// Sets the terminal's width in columns for all later reports. Only the first call has an effect.
pub fn set_width(columns: usize) {
    // Set already: the process has one terminal.
    let _ = COLUMNS.set(columns.clamp(BOUNDS.0, BOUNDS.1));
}

/// Returns the maximum width of a report's line in columns.
pub fn width() -> usize {
    COLUMNS.get().copied().unwrap_or(DEFAULT_WIDTH)
}

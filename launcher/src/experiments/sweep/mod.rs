//! Sweeps: settings measured against each other, alternated, saved after every point, resumable.
//!
//! ```text
//! flags ─▶ axes × base ─▶ points ─▶ order of runs ─▶ run, outline, save ─▶ tables
//!                                        ▲                   │
//!                                        └── --resume ── sweep.json
//! ```
//!
//! What is compared (technique, isolation, idle, capacity) is alternated within each condition (work, strategies,
//! venues, rate) and its order rotated between repeats; every repeat has a schedule seed of its own that all share.

mod axes;
mod command;
mod export;
mod flags;
mod knee;
mod measure;
mod order;
mod points;
mod presets;
mod progress;
mod search;
mod tables;
#[cfg(test)]
mod tests;

pub use analysis::experiment::{
    AxisRecord, Point, RunEntry, SWEEP_FILE, SWEEP_SCHEMA, Search, SearchRecord, Step, SweepRecord,
};
pub use axes::{Axis, AxisValue, read_value, read_values};
pub use command::{code, command, create, finish, heading, measured, new_record, notes, read};
pub use export::{save_grids, save_runs};
pub use flags::{Asked, SweepFlags, Swept};
pub use measure::{Ended, discard_logs, measure};
pub use points::{Layout, Side, lay_out, lay_out_sides};
pub use presets::SweepPreset;

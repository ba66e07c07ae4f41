//! What experiments save: the records behind tables and pages. Making the runs is for the launcher.

mod axis;
mod contain;
mod search;
mod sweep;

pub use axis::Axis;
pub use contain::{CONTAIN_FILE, CONTAIN_SCHEMA, Contained, Containment, Containments, Cost};
pub use search::{Search, SearchRecord, SearchStep};
pub use sweep::{AxisRecord, RunEntry, SWEEP_FILE, SWEEP_SCHEMA, SweepPoint, SweepRecord, SweepState, Texts};

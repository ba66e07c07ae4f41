//! What experiments save: the records behind tables and pages. Making the runs is for the launcher.

mod axis;
mod bill;
mod compare;
mod contain;
mod search;
mod sweep;

pub use axis::Axis;
pub use bill::{Bill, BillRow, Reference};
pub use compare::{Comparison, Comparisons};
pub use contain::{Contained, Containment, Containments, Cost, VenueContainment};
pub use search::{Search, SearchRecord, SearchStep};
pub use sweep::{AxisRecord, RunEntry, SweepPoint, SweepRecord, SweepState, Texts};

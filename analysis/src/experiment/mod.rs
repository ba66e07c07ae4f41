//! What experiments save: the records behind tables and pages. Making the runs is for the launcher.

mod axis;
mod bill;
mod board;
mod compare;
mod conditions;
mod contain;
mod lab;
mod plan;
mod search;
mod sweep;

pub use axis::Axis;
pub use bill::{Added, Bill, BillRow, Reference};
pub use board::{
    BoardCase, BoardCurve, BoardDeath, BoardReader, BoardReading, BoardSlice, BoardUsage, BoardWarnings,
    BoardWriter, Boards,
};
pub use compare::{Comparison, Comparisons};
pub use conditions::conditions;
pub use contain::{Contained, Containment, Containments, Cost, RoleContainment, VenueContainment};
pub use lab::{Lab, LabCell, LabLatency, LabRun, SideCost, SleepSample, Speed, Wait, histogram, percentile};
pub use plan::{PlannedRun, RunResult, SweepPlan};
pub use search::{Search, SearchRecord, SearchStep};
pub use sweep::{AxisRecord, RunEntry, SweepPoint, SweepRecord, SweepState, Texts};

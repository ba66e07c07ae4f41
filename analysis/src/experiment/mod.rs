//! Experiments: what each saves, and what it shows. Making the runs is for the launcher.
//!
//! ```text
//! document (NAME.json) ─ report ─▶ ExperimentReport ─┬ terminal()            the terminal
//!                                                    ├ save()                NAME.md, a CSV file a table
//!                                                    └ html::experiment_page report.html
//! ```
//!
//! A new experiment is a module with a [`Document`] and a function
//! `report` of it, and a line in [`saved`].

mod axis;
pub mod bill;
pub mod board;
pub mod compare;
pub mod contain;
pub mod lab;
mod plan;
mod report;
pub mod sweep;

pub use axis::Axis;
pub use bill::{Added, Bill, BillRow, Reference};
pub use board::{
    BoardCase, BoardCurve, BoardDeath, BoardReader, BoardReading, BoardSlice, BoardUsage, BoardWarnings,
    BoardWriter, Boards,
};
pub use compare::{Comparison, Comparisons};
pub use contain::{Contained, Containment, Containments, Cost, RoleContainment, VenueContainment};
pub use lab::{Lab, LabCell, LabLatency, LabRun, SideCost, SleepSample, Speed, Wait, histogram, percentile};
pub use plan::SweepPlan;
pub use report::{ALL, Answer, ExperimentReport, FILES, PAGE, Part, Section, TERMINAL, machine_facts};
pub use sweep::{
    AxisRecord, RunEntry, Search, SearchRecord, SearchStep, SweepPoint, SweepRecord, SweepState, Texts,
    conditions,
};

use crate::document::{Document, DocumentError};
use std::path::Path;

/// What the experiment in a folder shows; `None`: there is none in it. The first document that is
/// there says which it is.
pub fn saved(folder: &Path) -> Result<Option<ExperimentReport>, DocumentError> {
    let has = |file: &str| folder.join(file).exists();
    let mut report = match () {
        () if has(Lab::FILE) => lab::report(&Lab::read(folder)?),
        () if has(Boards::FILE) => board::report(&Boards::read(folder)?),
        () if has(Containments::FILE) => contain::report(&Containments::read(folder)?, folder),
        () if has(Bill::FILE) => bill::report(&SweepRecord::read(folder)?, &Bill::read(folder)?),
        () if has(SweepRecord::FILE) => sweep::report(&SweepRecord::read(folder)?),
        () => return Ok(None),
    };
    if has(Comparisons::FILE) {
        // Of settings in it that were compared with each other.
        report.sections.splice(0..0, compare::report(&Comparisons::read(folder)?).sections);
    }
    Ok(Some(report))
}

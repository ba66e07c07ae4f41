//! The saved documents and the reports of each kind of experiment; the launcher makes the runs.
//!
//! ```text
//! document (NAME.json) ─ report ─▶ ExperimentReport ─┬ terminal()            the terminal
//!                                                    ├ save()                NAME.md, CSV files
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
mod ratio;
mod report;
pub mod survey;
pub mod sweep;
mod time_unit;

pub use axis::Axis;
pub use bill::{Bill, BillRow, LevelCost, Reference};
pub use board::{
    BoardCase, BoardCurve, BoardDeath, BoardReader, BoardReading, BoardUsage, BoardWarnings, BoardWriter,
    Boards,
};
pub use compare::{Comparison, Comparisons};
pub use contain::{Contained, Containment, Containments, ProtectionCost, RoleContainment, VenueContainment};
pub use lab::{Lab, LabCell, LabLatency, LabRun, SideCost, SleepSample, Speed, Wait, histogram, percentile};
pub use report::{ALL, ExperimentReport};
pub(crate) use report::{FILES, PAGE, ReportSection, SectionPart, TERMINAL, machine_facts, with_figures};
pub use survey::{CheckState, CoreMatrix, CorePair, MachineCheck, PartRecord, Recovery, Survey, SurveyPart};
pub use sweep::{
    AxisRecord, RateSearch, RateStep, RunEntry, SearchRecord, SettingTexts, SweepPlan, SweepPoint,
    SweepRecord, SweepState, conditions,
};

use crate::document::{Document, DocumentError};
use crate::fitness::Fitness;
use std::path::Path;

/// Returns the report of the experiment in a folder. `None` if the folder has none. The first
/// document that is found decides the kind.
///
/// # Errors
/// A document that is damaged or of another version.
pub fn saved(folder: &Path) -> Result<Option<ExperimentReport>, DocumentError> {
    let has = |file: &str| folder.join(file).exists();
    let compared = if has(Comparisons::FILE) { Some(Comparisons::read(folder)?) } else { None };
    let mut report = match () {
        () if has(Lab::FILE) => lab::report(&Lab::read(folder)?),
        () if has(Boards::FILE) => board::report(&Boards::read(folder)?),
        () if has(Containments::FILE) => {
            let record = if has(SweepRecord::FILE) { Some(SweepRecord::read(folder)?) } else { None };
            contain::report(&Containments::read(folder)?, folder, record.as_ref())
        }
        () if has(Bill::FILE) => bill::report(&SweepRecord::read(folder)?, &Bill::read(folder)?),
        () if has(Survey::FILE) => survey::report(&Survey::read(folder)?),
        () if has(SweepRecord::FILE) => {
            let record = SweepRecord::read(folder)?;
            match &compared {
                Some(compared) if record.kind == "compare" => {
                    return Ok(Some(compare::measured_report(&record, compared)));
                }
                _ => sweep::report(&record),
            }
        }
        () => return Ok(None),
    };
    if let Some(compared) = &compared {
        // Settings of a sweep or a bill that were compared with each other afterwards.
        report.sections.splice(0..0, compare::report(compared).sections);
    }
    Ok(Some(report))
}

/// Returns whether the latencies of the experiment in a folder may be quoted. `None`: its document
/// cannot be read.
pub fn fitness(folder: &Path) -> Option<Fitness> {
    let sweep = SweepRecord::read(folder).ok().map(|record| record.fitness());
    sweep
        .or_else(|| Lab::read(folder).ok().map(|lab| lab.fitness()))
        .or_else(|| Boards::read(folder).ok().map(|boards| boards.fitness()))
        .or_else(|| Survey::read(folder).ok().map(|survey| survey.fitness))
}

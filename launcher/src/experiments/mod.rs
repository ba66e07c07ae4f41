//! Experiments: many runs, compared. All have one shape.
//!
//! ```text
//! flags ─▶ cells (points: settings) ─▶ order of runs ─▶ run, outline, save ─▶ rows ─▶ documents: tables, notes, JSON, page
//!                                           ▲                   │
//!                                           └── --resume ── sweep.json
//! ```
//!
//! An experiment of its own has a `begin`, which makes the record with its cells, and `documents`, which makes rows and tables
//! of what was measured. Flags, axes, the order of the runs, the record and its file, resuming, printing and saving are the same
//! for all.
//!
//! What is compared (technique, isolation, idle, capacity …) is alternated within each condition (work, strategies,
//! venues, rate) and its order rotated between repeats; every repeat has a schedule seed of its own that all share.

pub mod axes;
pub mod bill;
mod cluster;
pub mod compare;
pub mod contain;
pub mod documents;
mod export;
pub mod flags;
pub mod lab;
mod launch;
mod measure;
mod order;
pub mod points;
mod presets;
mod progress;
pub mod record;
mod search;
pub mod sweep;

use crate::config::{Slower, UsageError};
use crate::shelf;
use analysis::document::Document;
use analysis::experiment::{Boards, Containments, Lab, SweepRecord};
use analysis::record::RunRecord;
use analysis::summary::Summary;
use anyhow::Result;
use documents::{Documents, publish};
use launch::launch;
use measure::Ended;
use std::path::Path;
use std::process::ExitCode;

/// Does what `launcher sweep` says.
///
/// # Errors
/// [`UsageError`] for what cannot be had; a folder of another version; a run that could not be made.
pub fn sweep(flags: &sweep::SweepFlags) -> Result<ExitCode> {
    if let Some(folder) = &flags.planned.folder {
        return cluster::sweep(flags, folder);
    }
    let (record, folder) = sweep::begin(flags)?;
    go_on(record, &folder, flags.common.json)
}

/// Does what `launcher bill` says.
///
/// # Errors
/// As [`sweep()`]; a folder without a sweep.
pub fn bill(flags: &bill::BillFlags) -> Result<ExitCode> {
    // Read first: a folder that is none is found out before anything is measured.
    let containments = flags.contain.as_deref().map(Containments::read).transpose()?;
    let json = flags.common.json;
    let (mut record, folder) = match &flags.folder {
        Some(folder) => {
            bill::check_folder(flags)?;
            let record = record::read(folder)?;
            let documents = bill::documents(&record, containments.as_ref())?;
            return publish(&record, folder, &documents, json, Ended::Complete);
        }
        None => bill::begin(flags)?,
    };
    match launch(&mut record, &folder, json)? {
        Ended::Complete => {
            let documents = bill::documents(&record, containments.as_ref())?;
            publish(&record, &folder, &documents, json, Ended::Complete)
        }
        Ended::Interrupted => finish(&record, &folder, json, Ended::Interrupted),
    }
}

/// Does what `launcher compare` says.
///
/// # Errors
/// As [`sweep()`]; folders without runs.
pub fn compare(flags: &compare::CompareFlags) -> Result<ExitCode> {
    let json = flags.run.common.json;
    let (documents, code) = match compare::begin(flags)? {
        compare::Asks::Shown(documents) => {
            documents.print(json)?;
            (documents, ExitCode::SUCCESS)
        }
        compare::Asks::Finished(record, folder) => {
            let code = finish(&record, &folder, json, Ended::Complete)?;
            (compare::documents(&record)?, code)
        }
        compare::Asks::Measured(mut record, folder) => {
            let ended = launch(&mut record, &folder, json)?;
            let code = finish(&record, &folder, json, ended)?;
            if ended == Ended::Interrupted {
                return Ok(code);
            }
            (compare::documents(&record)?, code)
        }
    };
    if let Some(gate) = flags.fail_if_slower {
        pass(gate, &documents)?;
    }
    Ok(code)
}

/// What runs that were made now show against a folder of runs.
///
/// # Errors
/// As [`compare()`].
pub fn against(baseline: &Path, runs: &[Summary]) -> Result<Documents> {
    compare::against(baseline, runs)
}

/// That a comparison passes `--fail-if-slower`.
///
/// # Errors
/// It does not, and why.
pub fn pass(gate: Slower, documents: &Documents) -> Result<()> {
    Ok(compare::gate::check(gate, &serde_json::from_slice(&documents.json)?)?)
}

/// Does what `launcher contain` says.
///
/// # Errors
/// As [`sweep()`].
pub fn contain(flags: &contain::ContainFlags) -> Result<ExitCode> {
    let (record, folder) = contain::begin(flags)?;
    go_on(record, &folder, flags.common.json)
}

/// That a folder is not an experiment's: those that read a run's say what reads this one.
///
/// # Errors
/// [`UsageError`]: it is one.
pub fn is_none(folder: &Path) -> Result<(), UsageError> {
    if folder.join(RunRecord::FILE).exists() {
        return Ok(());
    }
    let name = folder.display();
    let what = if folder.join(SweepRecord::FILE).exists() {
        match record::read(folder) {
            Ok(record) if ["bill", "compare"].contains(&record.kind.as_str()) => {
                format!("the folder of a {0}, not of a run: launcher {0} {name} shows it", record.kind)
            }
            _ => format!("the folder of many runs, not of one: launcher sweep --resume {name} shows it"),
        }
    } else if folder.join(Lab::FILE).exists() {
        format!("the folder of a lab, not of a run: launcher lab --resume {name} shows it")
    } else if folder.join(Boards::FILE).exists() {
        "the folder of a board's benchmark, not of a run".into()
    } else if let Some(last) = shelf::list(folder).ok().and_then(|all| all.into_iter().next_back()) {
        format!("a folder of results, not of a run: name one of them, for example {}", last.folder)
    } else {
        return Ok(());
    };
    Err(UsageError(format!("{name}: {what}, and launcher report {name} --html draws it")))
}

/// Measures what an experiment lacks, and shows it.
fn go_on(mut record: SweepRecord, folder: &Path, json: bool) -> Result<ExitCode> {
    let ended = launch(&mut record, folder, json)?;
    finish(&record, folder, json, ended)
}

fn finish(record: &SweepRecord, folder: &Path, json: bool, ended: Ended) -> Result<ExitCode> {
    publish(record, folder, &documents_of(record, folder, ended)?, json, ended)
}

/// What an experiment shows, by its kind; one that is not complete and cannot be judged yet, as a sweep.
fn documents_of(record: &SweepRecord, folder: &Path, ended: Ended) -> Result<Documents> {
    match (record.kind.as_str(), ended) {
        ("bill", Ended::Complete) => bill::documents(record, None),
        ("compare", Ended::Complete) => compare::documents(record),
        ("contain", _) => contain::documents(record, folder),
        _ => sweep::documents(record),
    }
}

//! Loads a run's saved documents for its page; nothing is computed again.

use super::curve;
use super::run_page::SavedRun;
use crate::document::{Document, DocumentError};
use crate::hlog;
use crate::summary::Summary;
use crate::tail::Tail;
use crate::timeline::Timeline;
use std::path::Path;
use thiserror::Error;

/// The error that saved results cannot be read.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No results at all.
    #[error(
        "{folder}: neither summary.json, sweep.json, contain.json, lab.json nor board.json in it: not the folder of a run, a sweep, a bill, a containment table, a lab or a board's benchmark"
    )]
    Nothing {
        /// The folder of the run.
        folder: String,
    },
    /// A document that is damaged or of another version.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Loads the saved results of a run from its folder. A summary is required; a chart whose file is
/// missing or damaged is replaced by a note.
pub fn run(folder: &Path) -> Result<SavedRun, DocumentError> {
    let summary = Summary::read(folder)?;
    let curves = hlog::read(folder).map(|histograms| curve::curves(&histograms));
    let timeline = Timeline::read(folder);
    Ok(SavedRun {
        summary,
        curves: curves.map_err(|error| error.to_string()),
        timeline: timeline.map_err(|error| error.to_string()),
        tail: Tail::read(folder).map_err(|error| error.to_string()),
    })
}

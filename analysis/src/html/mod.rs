//! Writes the HTML page of an experiment's folder, or of a run's.

mod experiment_page;

pub use experiment_page::experiment_page;

use crate::experiment;
use anyhow::Result;
use record::document::write_user_path;
use std::path::Path;

/// Writes the HTML page of a run's or experiment's folder to a file.
pub fn write(folder: &Path, file: &Path) -> Result<()> {
    Ok(write_user_path(file, render(folder)?.as_bytes())?)
}

/// Returns the HTML page of a folder's results, those of an experiment or of a run.
pub fn render(folder: &Path) -> Result<String> {
    match experiment::saved(folder)? {
        Some(report) => Ok(experiment_page(&report)),
        None => verdict::html::render(folder),
    }
}

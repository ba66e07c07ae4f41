//! `report.html`: one self-contained file of charts for a design review, drawn from saved results.
//!
//! ```text
//! a run's folder ─ load ─▶ results ─ run_page ─▶ sections ─ page ─▶ one file
//!                                      ├ overview         verdict, figures, machine, plan, threads
//!                                      ├ percentile_plot  from histograms.hlog (curve)
//!                                      ├ stage_bars       from summary.json
//!                                      ├ trading          from summary.json: positions, refusals
//!                                      ├ incidents        from summary.json: deaths, marked on the
//!                                      ├ timeline_plot    from timeline.json
//!                                      └ tail_bars, noise_plot   from tail.json
//! an experiment's folder ─ experiment::saved ─▶ ExperimentReport ─ experiment_page
//! order_path: a picture of its own, for a README (`launcher export RUN --svg`)
//! ```
//!
//! No script, no font, no picture from elsewhere; the page's own policy forbids requests. Elements
//! that draw a figure carry it in a `data-…` attribute, in nanoseconds as in `summary.json`, so
//! that a program can check the picture.

mod curve;
mod experiment_page;
mod incidents;
mod load;
mod noise_plot;
mod order_path;
mod overview;
mod page;
mod percentile_plot;
mod run_page;
mod stage_bars;
mod table;
mod tail_bars;
mod timeline_plot;
mod trading;

pub use load::LoadError;
pub use order_path::OrderPath;

use crate::chart::{axis, labels, scale, svg};
use crate::document::{Document, write_user_path};
use crate::experiment;
use crate::hlog::{self, HLOG_FILE};
use crate::record::RunRecord;
use crate::summary::Summary;
use crate::tail::Tail;
use crate::timeline::Timeline;
use anyhow::Result;
use run_page::SavedRun;
use std::path::Path;

/// Name of the HTML page in the folder of a run or experiment.
pub const HTML_FILE: &str = "report.html";

/// Writes the HTML page of a folder's results to a file.
pub fn write(folder: &Path, file: &Path) -> Result<()> {
    Ok(write_user_path(file, render(folder)?.as_bytes())?)
}

/// Returns the HTML page of a folder's results: of an experiment, or of a run.
pub fn render(folder: &Path) -> Result<String, LoadError> {
    let has = |file: &str| folder.join(file).exists();
    if let Some(report) = experiment::saved(folder)? {
        return Ok(experiment_page::experiment_page(&report));
    }
    if !has(Summary::FILE) {
        return Err(LoadError::Nothing { folder: folder.display().to_string() });
    }
    Ok(run_page::run_page(&load::run(folder)?))
}

/// Returns the HTML page of a run from its results in memory. It equals what [`render`] returns
/// once they are saved.
pub fn render_run(summary: &Summary, histograms: &[u8], timeline: &Timeline, tail: &Tail) -> String {
    let (summary, timeline, tail) = (summary.clone(), Ok(timeline.clone()), Ok(tail.clone()));
    let curves = hlog::parse(HLOG_FILE, histograms).map(|histograms| curve::curves(&histograms));
    run_page::run_page(&SavedRun {
        summary,
        curves: curves.map_err(|error| error.to_string()),
        timeline,
        tail,
    })
}

/// Returns `true` if the folder is that of a run whose logs are not merged yet, or by an older
/// version.
pub fn needs_merge(folder: &Path) -> bool {
    let missing = |file: &str| !folder.join(file).exists();
    !missing(RunRecord::FILE) && [Summary::FILE, Timeline::FILE, HLOG_FILE].into_iter().any(missing)
}

//! `report.html`: one self-contained file of charts for a design review, drawn from saved results.
//!
//! ```text
//! a run's folder ────────▶ results ─ run_page ─▶ sections ─ page ─▶ one file
//!                                      ├ overview         verdict, figures, machine, plan, threads
//!                                      ├ latency          from histograms.hlog
//!                                      ├ stage_bars       from summary.json
//!                                      ├ page::table      incidents, trading, threads
//!                                      ├ timeline_plot    from timeline.json, with deaths
//!                                      └ tail_bars, noise_plot   from tail.json
//! order_path: a picture of its own, for a README (`launcher export RUN --svg`)
//! ```
//!
//! No font, picture or script comes from elsewhere: the page's own policy forbids requests, and
//! allows only the script that is in the page. A plot holds its data as JSON; other elements that
//! draw a figure carry it in a `data-…` attribute. Both are in nanoseconds as in `summary.json`, so
//! that a program can check the picture.

mod incidents;
mod noise_plot;
mod order_path;
mod overview;
pub mod page;
mod run_page;
mod stage_bars;
mod tail_bars;
mod timeline_plot;

pub use order_path::order_path;

use crate::summary::Summary;
use anyhow::{Result, bail};
use merge::hlog::{self, HLOG_FILE};
use merge::tail::Tail;
use merge::timeline::Timeline;
use record::document::Document;
use record::run::RunRecord;
use run_page::SavedRun;
use std::path::Path;

/// Name of the HTML page in the folder of a run or experiment.
pub const HTML_FILE: &str = "report.html";

/// Returns the HTML page of a run's folder.
pub fn render(folder: &Path) -> Result<String> {
    let has = |file: &str| folder.join(file).exists();
    if !has(Summary::FILE) {
        bail!(
            "{}: not the folder of a run or an experiment: neither summary.json nor experiment.json is in it; launcher list shows what \
             can be opened",
            folder.display()
        );
    }
    // A chart whose file is missing or damaged is replaced by a note.
    let histograms = hlog::read(folder);
    let timeline = Timeline::read(folder).map_err(|error| error.to_string());
    let tail = Tail::read(folder).map_err(|error| error.to_string());
    Ok(run_page::run_page(&SavedRun { summary: Summary::read(folder)?, histograms, timeline, tail }))
}

/// Returns a run's HTML page from results in memory, equal to the page of [`render`] once they are
/// saved.
pub fn render_run(summary: &Summary, histograms: &[u8], timeline: &Timeline, tail: &Tail) -> String {
    let (summary, timeline, tail) = (summary.clone(), Ok(timeline.clone()), Ok(tail.clone()));
    let histograms = hlog::parse(HLOG_FILE, histograms);
    run_page::run_page(&SavedRun { summary, histograms, timeline, tail })
}

/// Returns `true` if a folder has a run's record and lacks a file of merged results, such as the
/// summary.
pub fn needs_merge(folder: &Path) -> bool {
    let missing = |file: &str| !folder.join(file).exists();
    !missing(RunRecord::FILE) && [Summary::FILE, Timeline::FILE, HLOG_FILE].into_iter().any(missing)
}

//! A run, as a sentence: settings → schedule → plan → segments → processes → logs → merge →
//! summary.

use crate::host::Machine;
use crate::planner::Resolved;
pub use crate::runtime::prepare::Presentation;
use crate::runtime::progress::Progress;
use crate::runtime::stages::PreparedRun;
pub use crate::runtime::stages::{FinishedRun, Interrupted};
use analysis::document::{Document, write_whole};
use analysis::hlog::{self, HLOG_FILE};
use analysis::html;
use analysis::merge;
use analysis::record::RunRecord;
use analysis::report;
use analysis::summary::{Figures, Summary, summarise};
use analysis::tail::Tail;
use analysis::timeline::Timeline;
use anyhow::Result;
use std::path::Path;
use system::scratch::Room;

/// Plans, runs, merges and summarises once.
///
/// # Errors
/// [`crate::config::UsageError`] for what cannot be had, else what went wrong before the run began:
/// then there is no folder. A run that began and failed is a [`FinishedRun`] whose outcome says so.
/// Only what keeps its results from being written is an error afterwards: its folder stays with
/// what there is, and so do logs that could not be saved in it. Nothing else is
/// left in `/dev/shm`, and no process.
pub fn run(resolved: &Resolved, machine: &Machine, how: &Presentation<'_>) -> Result<FinishedRun> {
    let progress = Progress::new(!how.quiet);
    let ended = PreparedRun::new(resolved, machine, how, &progress)?.arm()?.play()?;
    let finished =
        ended.save()?.judge(|room, folder, record| evaluate_in(room, folder, record, &progress))?;
    progress.clear();
    Ok(finished)
}

/// So many of a run's worst orders are saved one by one.
const WORST: usize = 10;

/// Merges a run's logs, computes its figures and saves them beside the logs: `summary.json`,
/// `timeline.json`, `tail.json`, `histograms.hlog`, `stages.csv`, `stages.md`, `positions.csv`
/// where anything was filled, `report.html`.
///
/// # Errors
/// Logs that cannot be merged, a folder that cannot be written.
pub fn evaluate(folder: &Path, record: &RunRecord, progress: &Progress) -> Result<Summary> {
    evaluate_in(&Room::memory(), folder, record, progress)
}

/// The same with the table of orders in that room: the same files to the byte, whatever it is.
pub fn evaluate_in(room: &Room, folder: &Path, record: &RunRecord, progress: &Progress) -> Result<Summary> {
    progress.phase("merging", 1);
    let merged = merge::merge_in(room, folder, record, |done, total| progress.of(done, total))?;
    progress.phase("measuring", 0);
    let mut figures = Figures::measure(&merged, analysis::summary::ns_per_tick(record));
    let tail = Tail::of(record, &merged, WORST);
    // Without every stamp nobody knows.
    if tail.orders > 0 {
        figures.take_stall_free(&merged, &tail.untouched);
    }
    let mut summary = summarise(record, &merged, &figures);
    summary.explain(&tail.strategies);
    let mut histograms = Vec::new();
    hlog::write(record, &merged, &figures, &mut histograms)?;
    let timeline = Timeline::measure(record, &merged, &figures)?;
    let (mut csv, mut markdown) = (Vec::new(), Vec::new());
    report::csv(&summary, &mut csv)?;
    report::markdown(&summary, &mut markdown)?;
    let mut positions = Vec::new();
    if let Some(trading) = &summary.trading {
        report::positions_csv(trading, &mut positions)?;
    }
    let page = html::of_run(&summary, &histograms, &timeline, &tail);
    for (name, bytes) in [
        (Summary::FILE, summary.json()?),
        (Timeline::FILE, timeline.json()?),
        (Tail::FILE, tail.json()?),
        (HLOG_FILE, histograms),
        ("stages.csv", csv),
        ("stages.md", markdown),
        ("positions.csv", positions),
        (html::HTML_FILE, page.into_bytes()),
    ] {
        // Only of what there is: a run without fills has no positions.
        if !bytes.is_empty() {
            write_whole(&folder.join(name), &bytes)?;
        }
    }
    Ok(summary)
}

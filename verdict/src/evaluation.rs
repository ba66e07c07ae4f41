//! Merges, checks and summarizes a saved run in one call.

use crate::html;
use crate::report;
use crate::summary::{self, Figures, Summary, summarize};
use anyhow::Result;
use merge::hlog::{self, HLOG_FILE};
use merge::tail::Tail;
use merge::timeline::Timeline;
use record::document::{Document, write_atomically};
use record::run::RunRecord;
use std::path::Path;

/// Number of slowest orders that are saved individually.
const WORST_ORDERS: usize = 10;

/// A step of the evaluation of a run, for the progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationStep {
    /// The logs are being merged.
    Merging {
        /// Records merged so far.
        done: u64,
        /// Records in all logs.
        total: u64,
    },
    /// The logs are merged; figures and results are computed next.
    Measuring,
}

/// Merges a run's logs, computes its figures and saves them next to the logs. The files are
/// `summary.json`, `timeline.json`, `tail.json`, `histograms.hlog`, `stages.csv`, `stages.md`,
/// `positions.csv` where anything was filled, `report.html`.
pub fn evaluate(
    folder: &Path,
    record: &RunRecord,
    mut progress: impl FnMut(EvaluationStep),
) -> Result<Summary> {
    let merged =
        merge::merge(folder, record, |done, total| progress(EvaluationStep::Merging { done, total }))?;
    progress(EvaluationStep::Measuring);
    let mut figures = Figures::measure(&merged, record.plan.isolation, summary::ns_per_tick(record));
    let tail = Tail::from_run(record, &merged, WORST_ORDERS);
    // A run with `--stamps ends` has no orders in its tail: which orders stalls affected is
    // unknown.
    if tail.orders > 0 {
        figures.record_stall_free(&merged, &tail.unaffected);
        if tail.steal.is_some() {
            figures.record_without_steal(&merged, &tail.unaffected_by_steal);
        }
    }
    let mut summary = summarize(record, &merged, &figures);
    summary.notes.extend(tail.steal.and_then(|steal| steal.contradiction()));
    summary.attach_tails(&tail.strategies);
    summary.attach_gaps(tail.noise.threads.iter().map(|thread| thread.classes.clone()));
    let mut histograms = Vec::new();
    hlog::write(record, &merged, &figures, &mut histograms)?;
    let timeline = Timeline::measure(record, &merged, &figures);
    let (mut csv, mut markdown, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    report::csv(&summary, &mut csv)?;
    report::markdown(&summary, &mut markdown)?;
    if let Some(trading) = &summary.trading {
        report::positions_csv(trading, &mut positions)?;
    }
    let page = html::render_run(&summary, &histograms, &timeline, &tail);
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
        // A run without fills has no positions and no such file.
        if !bytes.is_empty() {
            write_atomically(&folder.join(name), &bytes)?;
        }
    }
    Ok(summary)
}

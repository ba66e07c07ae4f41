//! The evaluation of a saved run: merge, figures, tail, timeline and report, in one call.

use crate::document::{Document, write_whole};
use crate::hlog::{self, HLOG_FILE};
use crate::html;
use crate::merge;
use crate::record::RunRecord;
use crate::report;
use crate::summary::{self, Figures, Summary, summarise};
use crate::tail::Tail;
use crate::timeline::Timeline;
use anyhow::Result;
use std::path::Path;
use system::scratch::Room;

/// The number of a run's worst orders that are saved one by one.
const WORST: usize = 10;

/// How far an evaluation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The logs are being joined.
    Merging {
        /// The number of records that are joined.
        done: u64,
        /// The number of all records.
        total: u64,
    },
    /// The logs are joined: figures and results follow.
    Measuring,
}

/// Merges a run's logs, computes its figures and saves them next to the logs: `summary.json`,
/// `timeline.json`, `tail.json`, `histograms.hlog`, `stages.csv`, `stages.md`, `positions.csv`
/// where anything was filled, `report.html`.
///
/// The table of orders is kept in `room`. The files are equal to the byte, whichever room it is.
///
/// # Errors
/// Logs that cannot be merged, a folder that cannot be written.
pub fn evaluate(
    room: &Room,
    folder: &Path,
    record: &RunRecord,
    mut progress: impl FnMut(Step),
) -> Result<Summary> {
    let merged =
        merge::merge_in(room, folder, record, |done, total| progress(Step::Merging { done, total }))?;
    progress(Step::Measuring);
    let mut figures = Figures::measure(&merged, summary::ns_per_tick(record));
    let tail = Tail::of(record, &merged, WORST);
    // A run that stamps only the ends has no orders in its tail: what stalls touched is unknown.
    if tail.orders > 0 {
        figures.take_stall_free(&merged, &tail.untouched);
    }
    let mut summary = summarise(record, &merged, &figures);
    summary.explain(&tail.strategies);
    let mut histograms = Vec::new();
    hlog::write(record, &merged, &figures, &mut histograms)?;
    let timeline = Timeline::measure(record, &merged, &figures)?;
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
        // A run without fills has no positions, and no file of them.
        if !bytes.is_empty() {
            write_whole(&folder.join(name), &bytes)?;
        }
    }
    Ok(summary)
}

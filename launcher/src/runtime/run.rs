//! A run, as a sentence: settings → schedule → plan → segments → processes → logs → merge →
//! summary.

use crate::host::Machine;
use crate::planner::Resolved;
pub use crate::runtime::prepare::Presentation;
use crate::runtime::progress::Progress;
use crate::runtime::stages::PreparedRun;
pub use crate::runtime::stages::{FinishedRun, Interrupted};
use analysis::evaluation::{self, EvaluationStep};
use analysis::record::RunRecord;
use analysis::summary::Summary;
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
    let finished = ended.save()?.judge(|room, folder, record| evaluate(room, folder, record, &progress))?;
    progress.clear();
    Ok(finished)
}

/// Evaluates a run's saved logs and shows how far it is.
///
/// # Errors
/// As [`evaluation::evaluate`].
pub fn evaluate(room: &Room, folder: &Path, record: &RunRecord, progress: &Progress) -> Result<Summary> {
    progress.phase("merging", 1);
    evaluation::evaluate(room, folder, record, |step| match step {
        EvaluationStep::Merging { done, total } => progress.of(done, total),
        EvaluationStep::Measuring => progress.phase("measuring", 0),
    })
}

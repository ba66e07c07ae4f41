//! Makes one run: settings → schedule → plan → segments → processes → logs → merge → summary.

pub use crate::prepare::{Interruption, Presentation};
use crate::progress::Progress;
use crate::stages::PreparedRun;
pub use crate::stages::{FinishedRun, KeptRun};
use anyhow::Result;
use planner::Resolved;
use planner::host::Machine;
use record::run::RunRecord;
use std::path::Path;
use verdict::evaluation::{self, EvaluationStep};
use verdict::summary::Summary;

/// Makes one run: plans, starts the processes, merges the logs and summarizes. A run that started
/// and failed is a [`FinishedRun`] with a failed outcome; before that no folder is left.
pub fn run(resolved: &Resolved, machine: &Machine, how: &Presentation<'_>) -> Result<FinishedRun> {
    let progress = Progress::new(!how.quiet);
    let ended = PreparedRun::plan(resolved, machine, how, &progress)?.arm()?.play()?;
    let finished = ended.save()?.judge(|folder, record| evaluate(folder, record, &progress))?;
    progress.clear();
    Ok(finished)
}

/// Merges a run's saved stamp logs and computes the summary, with progress on stderr.
pub fn evaluate(folder: &Path, record: &RunRecord, progress: &Progress) -> Result<Summary> {
    progress.phase("merging", 1);
    evaluation::evaluate(folder, record, |step| match step {
        EvaluationStep::Merging { done, total } => progress.set(done, total),
        EvaluationStep::Measuring => progress.phase("measuring", 0),
    })
}

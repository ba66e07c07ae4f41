//! Runs once: settings → schedule → plan → segments → processes → logs → merge → summary.

use crate::host::{self, Machine};
use crate::planner::{self, Resolved};
use crate::runtime::active;
use crate::runtime::affinity_guard::AffinityGuard;
use crate::runtime::container::cgroups::ContainerCgroups;
use crate::runtime::folder::{self, RunFolder};
use crate::runtime::gather::{self, UnsavedLogs};
use crate::runtime::lost_memory;
pub use crate::runtime::prepare::Presentation;
use crate::runtime::prepare::{Prepared, check_disk, prepare};
use crate::runtime::progress::Progress;
use crate::runtime::setup::Segments;
use crate::runtime::spawn::Processes;
use crate::runtime::supervise::supervise;
use crate::runtime::tapes;
use analysis::document::Document;
use analysis::evaluation::{self, EvaluationStep};
use analysis::record::{CoreToCoreRtt, RunOutcome, RunRecord};
use analysis::summary::Summary;
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use strategy::schedule::Schedule;
use system::clock::ClockPair;
use system::floor;
use system::folder::OpenDir;
use system::pin::PinError;

/// Disk space reserved for a run's record until the run is over, in bytes.
const RECORD_BYTES_RESERVED: u64 = 1 << 20;

pub struct FinishedRun {
    pub folder: PathBuf,
    pub outcome: RunOutcome,
    pub summary: Summary,
}

/// The error that a run was interrupted by Ctrl-C before its first order.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted before the start: nothing was measured")]
pub struct Interrupted;

/// Makes one run: plans, starts the processes, merges the logs and summarizes.
pub fn run(resolved: &Resolved, machine: &Machine, how: &Presentation<'_>) -> Result<FinishedRun> {
    let began = SystemTime::now();
    let progress = Progress::new(!how.quiet);
    progress.phase("set-up", 0);
    let Prepared { schedule, start_pair, mut record } =
        prepare(resolved, machine, how.weaker_sandbox, began)?;
    record.warnings.extend(active::conflicting_runs(&record.plan));
    progress.clear();
    if !how.quiet {
        let shown = resolved.spanning(schedule.window_ns());
        let plan = planner::show(&record.plan, &shown, machine, &record.warnings);
        writeln!(crate::output::stdout(), "{plan}")?;
    }
    // Removed on drop unless the run has started.
    let mut folder = RunFolder::create(&resolved.settings.out(), &record.plan, began)?;
    check_disk(&record.plan, &folder.path)?;
    record.plan.folder = folder.path.display().to_string();
    resolved.settings.save(&folder.path)?;
    // Disk space for the record even if the disk fills up; some file systems cannot reserve it.
    let reserve = OpenDir::open(&folder.path).and_then(|place| place.reserve(RECORD_BYTES_RESERVED)).ok();
    // Processes started by the launcher inherit an affinity off the run's cores, if there are
    // others.
    let affinity = AffinityGuard::move_off(&record.plan);
    let saved = play(resolved, how, &progress, schedule, reserve, &mut record, &mut folder)?;
    let folder = folder.path.clone();
    let ns_per_tick = ClockPair::read(&record.plan.clock).ns_per_tick_since(&start_pair);
    record.clock.drift_ppm = (ns_per_tick / record.clock.ns_per_tick - 1.0) * 1e6;
    record.clock.ns_per_tick = ns_per_tick;
    // The floor is measured on the run's own cores.
    drop(affinity);
    record.warnings.extend(measure_floor_after(&mut record.core_to_core_rtt).err().map(|error| {
        format!(
            "the core-to-core round trip could not be measured after the run: {error}; a change of the machine would go unnoticed"
        )
    }));
    let recorded = record.save(&folder);
    saved?;
    let kept = || {
        format!("the run ended, and is kept in {0}: `launcher report {0}` reads it again", folder.display())
    };
    recorded.with_context(kept)?;
    let summary = evaluate(&folder, &record, &progress).with_context(kept)?;
    progress.clear();
    Ok(FinishedRun { folder, outcome: record.outcome, summary })
}

/// Creates the run's segments, starts its processes, lets them trade, ends them and saves the logs.
/// Then no process is left, and in memory nothing but logs that could not be saved: the inner
/// error.
fn play(
    resolved: &Resolved,
    how: &Presentation<'_>,
    progress: &Progress,
    schedule: Schedule,
    reserve: Option<File>,
    record: &mut RunRecord,
    folder: &mut RunFolder,
) -> Result<Result<(), UnsavedLogs>> {
    let mut segments = Segments::begin(&record.plan)?;
    let sealed = segments.create_sealed()?;
    // The reaper starts before named segments exist, which a killed launcher would leave behind,
    // and after unnamed ones, since it inherits the logs.
    let processes = Processes::start_reaper(&segments)?;
    segments.create_named(sealed, &schedule)?;
    // It may be large.
    drop(schedule);
    let _groups = ContainerCgroups::begin(&record.plan, host::root())?;
    // Dropped before the cgroups, which must be empty then.
    let mut processes = supervise(&segments, processes, how, progress, record, folder)?;
    if record.clock.start_ticks == 0 {
        return Err(match lost_memory::name_lost_memory(&segments, record.outcome.clone()) {
            RunOutcome::Failed { process, pid, what } => {
                anyhow!("{process} (pid {pid}) failed before the start: {what}")
            }
            RunOutcome::Interrupted | RunOutcome::Complete => Interrupted.into(),
        });
    }
    let folder = &folder.path;
    progress.phase("saving", 0);
    let known = record.warnings.clone();
    record.commands = segments.commands();
    record.warnings.extend(folder::recreate(folder, resolved)?);
    // Before the logs, which may fill the disk: the outcome must not be lost for that.
    drop(reserve);
    let _ = record.save(folder);
    let logs: Vec<_> = segments.threads.iter().cloned().map(Some).collect();
    let saved = gather::gather(&record.plan, &logs, folder);
    // Not earlier: until the logs are safe, only the reaper could save them if this process were
    // killed.
    processes.end_reaper();
    if let Err(unsaved) = &saved {
        segments.left_behind.clone_from(&unsaved.segments);
    }
    // Runs that started later have been warned about this run; this run is warned about them here.
    let later = active::conflicting_runs(&record.plan);
    record.warnings.extend(later.into_iter().filter(|said| !known.contains(said)));
    let clock = &record.clock;
    let taped = tapes::save(&segments.tapes, clock.start_ticks, clock.ns_per_tick, folder);
    record.warnings.extend(taped.unwrap_or_else(|error| vec![format!("{error:#}")]));
    // After everything that is saved was read.
    record.outcome = lost_memory::name_lost_memory(&segments, record.outcome.clone());
    Ok(saved)
}

fn measure_floor_after(rtt: &mut CoreToCoreRtt) -> Result<(), PinError> {
    if let Some((a, b)) = rtt.cores {
        rtt.after_ns = Some(floor::round_trip_ns(a, b, floor::DEFAULT_ROUNDS)?);
        rtt.unsynchronized_ns = Some(floor::unsynchronized_ns(a, b, floor::UNSYNCHRONIZED_ROUNDS)?);
    }
    Ok(())
}

/// Evaluates a run's saved logs and shows the progress.
pub fn evaluate(folder: &Path, record: &RunRecord, progress: &Progress) -> Result<Summary> {
    progress.phase("merging", 1);
    evaluation::evaluate(folder, record, |step| match step {
        EvaluationStep::Merging { done, total } => progress.set(done, total),
        EvaluationStep::Measuring => progress.phase("measuring", 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_that_cannot_be_measured_leaves_the_others() {
        let before = CoreToCoreRtt { cores: Some((4094, 4095)), ..CoreToCoreRtt::default() };
        let mut rtt = before;
        assert!(measure_floor_after(&mut rtt).is_err());
        assert_eq!(rtt, before);
    }
}

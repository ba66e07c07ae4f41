//! The stages of a run as typestates: each value owns the resources that must not be dropped yet
//! and is created from the stage before it, so a wrong order does not compile.
//!
//! ```text
//! PreparedRun ─ arm ─▶ ArmedRun ─ play ─▶ EndedRun ─ save ─▶ SavedRun ─ judge ─▶ FinishedRun
//! ```
//!
//! Fields are dropped in order: processes before their cgroups (a cgroup must be empty to be
//! removed), both before the segments' names, and the folder last. So on any failure nothing is
//! left but the folder of a run that has started.

use crate::affinity_guard::AffinityGuard;
use crate::container::cgroups::ContainerCgroups;
use crate::folder::{self, RunFolder};
use crate::gather::{self, UnsavedLogs};
use crate::prepare::{Prepared, Presentation, check_disk, prepare};
use crate::progress::Progress;
use crate::signals;
pub use crate::signals::Interrupted;
use crate::spawn::Processes;
use crate::supervise::supervise;
use crate::tapes;
use anyhow::{Context, Result, anyhow};
use catalog::active;
use planner::config::{ReportLength, Settings};
use planner::host::{self, Machine};
use planner::{self, Resolved};
use protocol::plan::Plan;
use record::document::Document;
use record::run::{CoreToCoreRtt, RunOutcome, RunRecord};
use run_memory::lost_memory;
use run_memory::own_binaries::OwnBinaries;
use run_memory::segments::Segments;
use shm::memory::huge_pages;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use strategy::schedule::Schedule;
use system::clock::ClockPair;
use system::floor;
use system::folder::OpenDir;
use system::pin::{self, PinError};
use verdict::summary::Summary;

/// Disk space reserved for a run's record until the run is over, in bytes.
const RECORD_BYTES_RESERVED: u64 = 1 << 20;

/// A run that has ended: its results folder and its outcome.
pub struct FinishedRun {
    /// Path of the run's folder.
    pub folder: PathBuf,
    /// How the run ended.
    pub outcome: RunOutcome,
    /// The run's results.
    pub summary: Summary,
}

/// The error that a process of the run failed before the start barrier opened, so that the run
/// never began.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{process} (pid {pid}) failed before the start: {what}")]
pub struct FailedAtStart {
    /// Name of the process in the plan.
    pub process: String,
    /// Its process ID.
    pub pid: u32,
    /// What it did wrong, one line.
    pub what: String,
}

/// State that each stage passes to the next.
struct RunContext<'a> {
    /// The settings of a run that has any: those of a benchmark are in its experiment's document.
    settings: Option<&'a Settings>,
    presentation: &'a Presentation<'a>,
    progress: &'a Progress,
    start_pair: ClockPair,
    record: RunRecord,
    /// Removed on drop unless the run has started.
    folder: RunFolder,
}

/// A run that was planned, checked and shown, and that has a folder.
pub struct PreparedRun<'a> {
    schedule: Schedule,
    context: RunContext<'a>,
}

/// A run whose segments and cleanup process (reaper) exist. If the launcher is killed from now on,
/// the reaper saves the logs and removes the rest.
pub struct ArmedRun<'a> {
    processes: Processes,
    segments: Segments,
    /// Processes started by the launcher inherit an affinity off the run's cores, if there are
    /// others.
    affinity: AffinityGuard,
    /// Disk space for the record even if the disk fills up. `None` where the file system cannot
    /// reserve.
    reserve: Option<File>,
    context: RunContext<'a>,
}

/// A run that has ended, with its logs still in shared memory. Only the reaper still runs.
pub struct EndedRun<'a>(ArmedRun<'a>);

/// A run whose logs are saved, or remain in `/dev/shm` where that was impossible. No process of it
/// is left, and nothing else in memory.
pub struct SavedRun<'a> {
    saved: Result<(), UnsavedLogs>,
    affinity: AffinityGuard,
    context: RunContext<'a>,
}

impl<'a> PreparedRun<'a> {
    /// Plans a run, shows the plan and creates the run's folder.
    pub fn plan(
        resolved: &'a Resolved,
        machine: &Machine,
        presentation: &'a Presentation<'a>,
        progress: &'a Progress,
    ) -> Result<Self> {
        // The signal may have come in an earlier run, which ended or failed without it.
        Interrupted::check()?;
        progress.phase("set-up", 0);
        let mut prepared = prepare(resolved, machine, presentation.weaker_sandbox, SystemTime::now())?;
        let record = &mut prepared.record;
        record.warnings.extend(active::conflicting_runs(&record.plan));
        progress.clear();
        if !presentation.quiet {
            Interrupted::check()?;
            let shown = resolved.spanning(prepared.schedule.window_ns());
            let plan = match presentation.report {
                ReportLength::Short => planner::show_brief(&record.plan, &shown, &record.warnings),
                ReportLength::Full => planner::show(&record.plan, &shown, machine, &record.warnings),
            };
            writeln!(record::screen::stdout(), "{plan}")?;
        }
        let settings = &resolved.settings;
        Self::new(prepared, Some(settings), &settings.out(), presentation, progress)
    }

    /// Creates a run's folder below `out` and saves the run's settings in it. `settings` is `None`
    /// for a benchmark: they are in its experiment's document.
    pub fn new(
        prepared: Prepared,
        settings: Option<&'a Settings>,
        out: &Path,
        presentation: &'a Presentation<'a>,
        progress: &'a Progress,
    ) -> Result<Self> {
        Interrupted::check()?;
        let Prepared { began, schedule, start_pair, mut record } = prepared;
        let folder = RunFolder::create(out, &record.plan, began)?;
        record.plan.folder = folder.path.display().to_string();
        if let Some(settings) = settings {
            check_disk(&record.plan, &folder.path)?;
            settings.save(&folder.path)?;
        }
        Ok(Self {
            schedule,
            context: RunContext { settings, presentation, progress, start_pair, record, folder },
        })
    }

    /// Creates the run's segments and cgroups, and starts the reaper. The reaper starts before
    /// named segments exist, which a killed launcher would leave behind, and after unnamed ones,
    /// since it inherits the logs.
    pub fn arm(self) -> Result<ArmedRun<'a>> {
        let Self { schedule, context } = self;
        let (plan, path) = (&context.record.plan, &context.folder.path);
        let reserve = OpenDir::open(path).and_then(|place| place.reserve(RECORD_BYTES_RESERVED)).ok();
        let affinity = AffinityGuard::move_off(plan);
        huge_pages::use_huge_pages(plan.trading().memory.huge_pages);
        let mut segments = Segments::begin(plan)?;
        let sealed = near_first_thread(plan, || segments.create_sealed())?;
        let mut processes = Processes::start_reaper(&segments)?;
        near_first_thread(plan, || segments.create_named(sealed, &schedule))?;
        segments.binaries = OwnBinaries::create(plan)?;
        processes.set_groups(ContainerCgroups::begin(plan, host::root())?);
        Ok(ArmedRun { processes, segments, affinity, reserve, context })
    }
}

/// Creates a benchmark's memory on the core of its first thread: Linux takes it from the NUMA node
/// of the core that touches it first.
fn near_first_thread<T: Send>(plan: &Plan, create: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let core = plan.threads.first().and_then(|thread| thread.core).filter(|_| !plan.is_trading());
    let Some(core) = core else { return create() };
    let pinned = || {
        pin::pin_beyond_mask(core)?;
        create()
    };
    // On its own thread: pinning changes no other thread.
    std::thread::scope(|scope| scope.spawn(pinned).join().map_err(|_| anyhow!("a thread panicked"))?)
}

impl<'a> ArmedRun<'a> {
    /// Starts the run's processes, lets them trade and ends them. A run that started and failed is
    /// an [`EndedRun`] with a failed outcome, not an error.
    pub fn play(mut self) -> Result<EndedRun<'a>> {
        let RunContext { presentation, progress, record, folder, .. } = &mut self.context;
        let supervised = supervise(&self.segments, self.processes, presentation, progress, record, folder);
        if presentation.is_discarded() {
            return Err(Interrupted.into());
        }
        self.processes = supervised?;
        if record.clock.start_ticks == 0 {
            return Err(match lost_memory::name_lost_memory(&self.segments, record.outcome.clone()) {
                RunOutcome::Failed { process, pid, what } => FailedAtStart { process, pid, what }.into(),
                RunOutcome::Interrupted | RunOutcome::Complete => Interrupted.into(),
            });
        }
        Ok(EndedRun(self))
    }
}

impl<'a> EndedRun<'a> {
    /// Returns the shared memory of the run, which is removed when its logs are saved.
    pub const fn segments(&self) -> &Segments {
        &self.0.segments
    }

    /// Saves the run's logs and other results from shared memory, and removes the segments. Logs
    /// that cannot be saved stay in `/dev/shm`, and [`SavedRun::judge`] reports them.
    pub fn save(self) -> Result<SavedRun<'a>> {
        let mut run = self.0;
        let RunContext { settings, progress, ref mut record, ref folder, .. } = run.context;
        let (folder, segments) = (&folder.path, &mut run.segments);
        progress.phase("saving", 0);
        let known = record.warnings.clone();
        record.commands = segments.commands();
        record.warnings.extend(folder::recreate(folder, settings)?);
        // Before the logs, which may fill the disk: the outcome must not be lost for that.
        drop(run.reserve);
        let _ = record.save(folder);
        let logs: Vec<_> = segments.threads.iter().cloned().map(Some).collect();
        let saved = gather::gather(&record.plan, &logs, folder);
        // Not earlier: until the logs are safe, only the reaper could save them if this process
        // were killed.
        run.processes.end_reaper();
        if let Err(unsaved) = &saved {
            segments.left_behind.clone_from(&unsaved.segments);
        }
        // Runs that started later have been warned about this run; this run is warned about them
        // here.
        let later = active::conflicting_runs(&record.plan);
        record.warnings.extend(later.into_iter().filter(|message| !known.contains(message)));
        let clock = &record.clock;
        let taped = tapes::save(&segments.tapes, clock.start_ticks, clock.ns_per_tick, folder);
        record.warnings.extend(taped.unwrap_or_else(|error| vec![format!("{error:#}")]));
        // After everything that is saved was read.
        record.outcome = lost_memory::name_lost_memory(segments, record.outcome.clone());
        Ok(SavedRun { saved, affinity: run.affinity, context: run.context })
    }
}

impl SavedRun<'_> {
    /// Saves the completed record of the run (plan, machine, outcome) as [`SavedRun::record`] does,
    /// and has `evaluate` compute the run's summary from its logs. On an error the folder stays
    /// with the files so far.
    pub fn judge(self, evaluate: impl FnOnce(&Path, &RunRecord) -> Result<Summary>) -> Result<FinishedRun> {
        let (folder, record) = self.record()?;
        let summary = evaluate(&folder, &record).with_context(|| kept(&folder))?;
        Ok(FinishedRun { folder, outcome: record.outcome, summary })
    }

    /// Calibrates the clock over the whole run, measures the core-to-core round trips after it, and
    /// saves the run's record. Returns the record and its folder. A signal that discards the run
    /// cuts the measurement short.
    pub fn record(self) -> Result<(PathBuf, RunRecord)> {
        let RunContext { presentation, start_pair, mut record, folder, .. } = self.context;
        let folder = folder.path.clone();
        let ns_per_tick = ClockPair::read(&record.plan.clock).ns_per_tick_since(&start_pair);
        record.clock.drift_ppm = (ns_per_tick / record.clock.ns_per_tick - 1.0) * 1e6;
        record.clock.ns_per_tick = ns_per_tick;
        // The floor is measured on the run's own cores.
        drop(self.affinity);
        record.warnings.extend(measure_floor_after(&mut record.core_to_core_rtt).err().map(|error| {
            format!(
                "the core-to-core round trip could not be measured after the run: {error}; a change of the machine would go unnoticed"
            )
        }));
        let recorded = record.save(&folder);
        if presentation.is_discarded() {
            return Err(Interrupted.into());
        }
        self.saved?;
        recorded.with_context(|| kept(&folder))?;
        Ok((folder, record))
    }
}

/// The context added to an error that occurred after a run had ended: it names the folder in which
/// the run is saved.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the run ended, and is kept in {0}: `launcher report {0}` reads it again", .folder.display())]
pub struct KeptRun {
    /// Path of the run's folder.
    pub folder: PathBuf,
}

fn kept(folder: &Path) -> KeptRun {
    KeptRun { folder: folder.to_owned() }
}

fn measure_floor_after(rtt: &mut CoreToCoreRtt) -> Result<(), PinError> {
    if let Some((a, b)) = rtt.cores {
        let stop = signals::is_end_requested;
        rtt.after_ns = Some(floor::round_trip_ns(a, b, floor::DEFAULT_ROUNDS, stop)?);
        rtt.unsynchronized_ns = Some(floor::unsynchronized_ns(a, b, floor::UNSYNCHRONIZED_ROUNDS, stop)?);
    }
    Ok(())
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

//! The stages of a run as typestates: each value owns what must not be dropped yet and is created
//! from the stage before it, so a wrong order does not compile.
//!
//! ```text
//! PreparedRun ─ arm ─▶ ArmedRun ─ play ─▶ EndedRun ─ save ─▶ SavedRun ─ judge ─▶ FinishedRun
//! ```
//!
//! Fields are dropped in order: processes before their cgroups (a cgroup must be empty to be
//! removed), both before the segments' names, and the folder last. So on any failure nothing is
//! left but the folder of a run that has started.
//!
//! A stage can be left once:
//! ```
//! # use launcher::runtime::stages::{ArmedRun, EndedRun, SavedRun};
//! fn once(armed: ArmedRun<'_>) -> anyhow::Result<SavedRun<'_>> {
//!     armed.play()?.save()
//! }
//! ```
//! Logs cannot be saved while processes still write them:
//! ```compile_fail,E0599
//! # use launcher::runtime::stages::{ArmedRun, SavedRun};
//! fn too_early(armed: ArmedRun<'_>) -> anyhow::Result<SavedRun<'_>> {
//!     armed.save()
//! }
//! ```
//! Nor can a run be played whose segments are gone with its logs:
//! ```compile_fail,E0382
//! # use launcher::runtime::stages::{ArmedRun, EndedRun, SavedRun};
//! fn twice<'a>(armed: ArmedRun<'a>) -> anyhow::Result<(SavedRun<'a>, EndedRun<'a>)> {
//!     let saved = armed.play()?.save()?;
//!     Ok((saved, armed.play()?))
//! }
//! ```

use crate::faults::schedule::FaultSchedule;
use crate::host::Machine;
use crate::host::cgroups::HostRoot;
use crate::planner::{self, Resolved};
use crate::runtime::active;
use crate::runtime::affinity_guard::AffinityGuard;
use crate::runtime::container::cgroups::ContainerCgroups;
use crate::runtime::folder::{self, RunFolder};
use crate::runtime::gather::{self, UnsavedLogs};
use crate::runtime::lost_memory;
use crate::runtime::prepare::{
    Prepared, Presentation, check_disk, describe_input, floor_cores, measure_floor, measure_out_of_step,
    prepare,
};
use crate::runtime::progress::Progress;
use crate::runtime::setup::Segments;
use crate::runtime::spawn::Processes;
use crate::runtime::supervise::supervise;
use crate::runtime::tapes;
use analysis::document::Document;
use analysis::record::{self, CoreToCoreRtt, RunOutcome, RunRecord};
use analysis::summary::Summary;
use anyhow::{Context, Result, anyhow};
use protocol::plan::{ClockSource, Plan};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use strategy::schedule::Schedule;
use system::clock::ClockPair;
use system::folder::OpenDir;

/// Disk space reserved for a run's record until the run is over, in bytes.
const RECORD_BYTES_RESERVED: u64 = 1 << 20;

/// A run that has ended, with its outcome and figures.
pub struct FinishedRun {
    /// The run's folder.
    pub folder: PathBuf,
    /// Outcome of the run.
    pub outcome: RunOutcome,
    /// The evaluated figures.
    pub summary: Summary,
}

/// The error that a run was interrupted by Ctrl-C before its first order.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted before the start: nothing was measured")]
pub struct Interrupted;

/// State that each stage passes to the next.
struct RunContext<'a> {
    resolved: &'a Resolved,
    how: &'a Presentation<'a>,
    progress: &'a Progress,
    source: ClockSource,
    start_pair: ClockPair,
    record: RunRecord,
    /// Removed on drop unless the run has started.
    folder: RunFolder,
}

impl RunContext<'_> {
    fn plan(&self) -> &Plan {
        &self.record.plan
    }

    fn path(&self) -> &Path {
        &self.folder.path
    }
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
    _groups: ContainerCgroups<'static>,
    segments: Segments,
    /// Processes started by the launcher inherit an affinity off the run's cores, if there are
    /// others.
    affinity: AffinityGuard,
    /// Disk space for the record at the end of the run, even if the disk fills up. `None` where the
    /// file system cannot reserve.
    reserve: Option<File>,
    context: RunContext<'a>,
}

/// A run that has ended, with its logs still in shared memory. Only the reaper
/// still run.
pub struct EndedRun<'a>(ArmedRun<'a>);

/// A run whose logs are saved, or stay in `/dev/shm` where that was impossible. No process of it is
/// left, and nothing else in memory.
pub struct SavedRun<'a> {
    saved: Result<(), UnsavedLogs>,
    aside: AffinityGuard,
    context: RunContext<'a>,
}

impl<'a> PreparedRun<'a> {
    /// Plans a run, shows the plan and creates the run's folder.
    ///
    /// # Errors
    /// [`crate::config::UsageError`] for invalid settings, otherwise the error that occurred; no
    /// folder is left.
    pub fn new(
        resolved: &'a Resolved,
        machine: &Machine,
        how: &'a Presentation<'a>,
        progress: &'a Progress,
    ) -> Result<Self> {
        let began = SystemTime::now();
        progress.phase("set-up", 0);
        let Prepared { schedule, mut plan, mut warnings, source, start_pair, read_ns, step_ns, floor_ns } =
            prepare(resolved, machine, how.weaker_sandbox, began)?;
        warnings.extend(active::conflicting_runs(&plan));
        progress.clear();
        if !how.quiet {
            let shown = resolved.spanning(schedule.window_ns());
            writeln!(crate::output::stdout(), "{}", planner::show(&plan, &shown, machine, &warnings))?;
        }
        let folder = RunFolder::create(&resolved.settings.out(), &plan, began)?;
        check_disk(&plan, &folder.path)?;
        plan.folder = folder.path.display().to_string();
        resolved.settings.save(&folder.path)?;
        let record = RunRecord {
            version: env!("CARGO_PKG_VERSION").into(),
            started: humantime::format_rfc3339_seconds(began).to_string(),
            machine: machine.clone(),
            input: describe_input(resolved, &schedule),
            clock: record::ClockCalibration {
                ns_per_tick: plan.ns_per_tick,
                read_ns,
                step_ns,
                drift_ppm: 0.0,
                start_ticks: 0,
            },
            core_to_core_rtt: CoreToCoreRtt {
                cores: floor_cores(&plan),
                before_ns: floor_ns,
                ..CoreToCoreRtt::default()
            },
            outcome: RunOutcome::Failed {
                process: "launcher".into(),
                pid: plan.launcher_pid,
                what: "died before the run had ended".into(),
            },
            exits: Vec::new(),
            startup_ns: 0,
            open_orders: None,
            warnings,
            pss_bytes: None,
            kernel: None,
            incidents: Vec::new(),
            role_restarts: Vec::new(),
            outages: Vec::new(),
            commands: Vec::new(),
            strikes: Vec::new(),
            plan,
        };
        let context = RunContext { resolved, how, progress, source, start_pair, record, folder };
        Ok(Self { schedule, context })
    }

    /// Creates the run's segments and cgroups, and starts the reaper. The reaper starts before
    /// named segments exist, which a killed launcher would leave behind, and after unnamed ones,
    /// since it inherits the logs.
    pub fn arm(self) -> Result<ArmedRun<'a>> {
        let Self { schedule, context } = self;
        let reserve =
            OpenDir::open(context.path()).and_then(|place| place.reserve(RECORD_BYTES_RESERVED)).ok();
        let aside = AffinityGuard::move_off(context.plan());
        let mut segments = Segments::begin(context.plan())?;
        segments.create_sealed()?;
        let processes = Processes::start_reaper(&segments)?;
        segments.create_named(&schedule)?;
        let groups = ContainerCgroups::begin(context.plan(), HostRoot::real())?;
        Ok(ArmedRun { processes, _groups: groups, segments, affinity: aside, reserve, context })
    }
}

impl<'a> ArmedRun<'a> {
    /// Starts the run's processes, lets them trade and ends them.
    ///
    /// # Errors An error before the first order, and [`Interrupted`]. A run that started and failed
    /// is an [`EndedRun`] with a failed outcome.
    pub fn play(mut self) -> Result<EndedRun<'a>> {
        let RunContext { resolved, how, progress, record, folder, .. } = &mut self.context;
        let faults = FaultSchedule::new(&record.plan, resolved.settings.seed().0);
        self.processes = supervise(&self.segments, self.processes, how, progress, faults, record, folder)?;
        if self.context.record.clock.start_ticks == 0 {
            return Err(match lost_memory::name_lost_memory(&self.segments, self.context.record.outcome) {
                RunOutcome::Failed { process, pid, what } => {
                    anyhow!("{process} (pid {pid}) failed before the start: {what}")
                }
                RunOutcome::Interrupted | RunOutcome::Complete => Interrupted.into(),
            });
        }
        Ok(EndedRun(self))
    }
}

impl<'a> EndedRun<'a> {
    /// Saves the run's logs and other results in memory, and removes the segments.
    ///
    /// # Errors
    /// The folder was removed during the run and cannot be recreated: the logs could not be
    /// reported without the record, so they are removed with the segments. Logs that cannot be
    /// saved are not an error here: they stay in `/dev/shm`, and [`SavedRun::judge`] reports them.
    pub fn save(self) -> Result<SavedRun<'a>> {
        let mut run = self.0;
        let RunContext { resolved, progress, ref mut record, ref folder, .. } = run.context;
        let (folder, segments) = (&folder.path, &mut run.segments);
        progress.phase("saving", 0);
        let known = record.warnings.clone();
        record.commands = segments.commands();
        record.warnings.extend(folder::recreate(folder, resolved)?);
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
        record.warnings.extend(later.into_iter().filter(|said| !known.contains(said)));
        let clock = &record.clock;
        let taped = tapes::save(&segments.tapes, clock.start_ticks, clock.ns_per_tick, folder);
        record.warnings.extend(taped.unwrap_or_else(|error| vec![format!("{error:#}")]));
        // After everything that is saved was read.
        let outcome = std::mem::replace(&mut record.outcome, RunOutcome::Complete);
        record.outcome = lost_memory::name_lost_memory(segments, outcome);
        Ok(SavedRun { saved, aside: run.affinity, context: run.context })
    }
}

impl SavedRun<'_> {
    /// Measures the core-to-core round trips after the run, saves its record, and evaluates its
    /// logs.
    ///
    /// # Errors
    /// Results that cannot be written. The folder stays with the files so far, and so do logs that
    /// could not be saved in it.
    pub fn judge(self, evaluate: impl FnOnce(&Path, &RunRecord) -> Result<Summary>) -> Result<FinishedRun> {
        let RunContext { source, start_pair, mut record, folder, .. } = self.context;
        let folder = folder.path.clone();
        let ns_per_tick = ClockPair::read(&source).ns_per_tick_since(&start_pair);
        record.clock.drift_ppm = (ns_per_tick / record.clock.ns_per_tick - 1.0) * 1e6;
        record.clock.ns_per_tick = ns_per_tick;
        // The floor is measured on the run's own cores.
        drop(self.aside);
        record.warnings.extend(floor_after(&record.plan, &mut record.core_to_core_rtt));
        let recorded = record.save(&folder);
        self.saved?;
        let kept = || {
            format!(
                "the run ended, and is kept in {0}: `launcher report {0}` reads it again",
                folder.display()
            )
        };
        recorded.with_context(kept)?;
        let summary = evaluate(&folder, &record).with_context(kept)?;
        Ok(FinishedRun { folder, outcome: record.outcome, summary })
    }
}

/// Measures the core-to-core round trips after the run. Returns a warning if they cannot be
/// measured: not a reason to lose the run.
fn floor_after(plan: &Plan, floor: &mut CoreToCoreRtt) -> Option<String> {
    let mut measure = || -> Result<()> {
        floor.after_ns = measure_floor(plan)?;
        floor.unsynchronized_ns = measure_out_of_step(plan)?;
        Ok(())
    };
    let error = measure().err()?;
    Some(format!(
        "the core-to-core round trip could not be measured after the run: {error:#}; a change of the machine would go unnoticed"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::tests::planned;

    #[test]
    fn a_floor_that_cannot_be_measured_is_a_warning() {
        let (_, mut plan, _) = planned("orders=10", &Machine::default()).unwrap();
        for (thread, core) in plan.threads.iter_mut().zip([4094, 4095]) {
            thread.core = Some(core);
        }
        let mut floor = CoreToCoreRtt::default();
        let warning = floor_after(&plan, &mut floor);
        assert_eq!(floor, CoreToCoreRtt::default());
        assert!(warning.unwrap().contains("round trip could not be measured"));
    }
}

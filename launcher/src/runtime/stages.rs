//! The stages of a run. Each is a value that owns what must not be dropped yet, and each is made
//! from the one before it: a wrong order does not compile.
//!
//! ```text
//! PreparedRun ── arm ──▶ ArmedRun ── play ──▶ EndedRun ── save ──▶ SavedRun ── judge ──▶ FinishedRun
//! ```
//!
//! Fields are dropped in their order: processes before their control groups (nobody may be in a
//! group that is removed), both before the segments' names go, and the folder last. So whatever
//! fails, wherever, nothing is left but the folder of a run that has begun.
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
use crate::host::groups::Tree;
use crate::planner::{self, Resolved};
use crate::runtime::active;
use crate::runtime::aside::Aside;
use crate::runtime::container::groups::Groups;
use crate::runtime::folder::{self, Folder};
use crate::runtime::gather::{self, Unsaved};
use crate::runtime::lost_memory;
use crate::runtime::merge_room;
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
use protocol::plan::{ClockSource, Plan, ThreadPlan};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use strategy::schedule::Schedule;
use system::clock::ClockPair;
use system::folder::OpenFolder;
use system::scratch::Room;

/// Room that is kept for a run's record until the run is over, in bytes.
const RECORD_ROOM: u64 = 1 << 20;

/// A finished run.
pub struct FinishedRun {
    /// Its folder.
    pub folder: PathBuf,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Its figures.
    pub summary: Summary,
}

/// Ctrl-C before the first order.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted before the start: nothing was measured")]
pub struct Interrupted;

/// What each stage hands on to the next.
struct RunContext<'a> {
    resolved: &'a Resolved,
    how: &'a Presentation<'a>,
    progress: &'a Progress,
    source: ClockSource,
    start_pair: ClockPair,
    record: RunRecord,
    /// Removed again unless the run has begun.
    folder: Folder,
}

impl RunContext<'_> {
    fn plan(&self) -> &Plan {
        &self.record.plan
    }

    fn path(&self) -> &Path {
        &self.folder.path
    }
}

/// A run that can be begun: it is planned, checked against the machine and shown, and has a folder.
pub struct PreparedRun<'a> {
    schedule: Schedule,
    context: RunContext<'a>,
}

/// A run whose segments are there, and its warden: if the launcher is killed from here on the
/// warden saves what there is and removes the rest.
pub struct ArmedRun<'a> {
    processes: Processes,
    _groups: Groups<'static>,
    segments: Segments,
    /// Whoever is started meanwhile begins off the cores of the run, where there are others.
    aside: Aside,
    /// Room for the record at the end of the run, whatever fills the disk meanwhile. A file system
    /// that cannot reserve has none.
    reserve: Option<File>,
    context: RunContext<'a>,
}

/// A run that has come to its end, with its logs still in memory. Only the warden and the spiller
/// still run.
pub struct EndedRun<'a>(ArmedRun<'a>);

/// A run whose logs are saved, or stay in `/dev/shm` where that was impossible. None of its
/// processes is left, and nothing else in memory.
pub struct SavedRun<'a> {
    saved: Result<(), Unsaved>,
    aside: Aside,
    context: RunContext<'a>,
}

impl<'a> PreparedRun<'a> {
    /// Plans a run, shows the plan and makes the folder.
    ///
    /// # Errors
    /// [`crate::config::UsageError`] for what cannot be had, else what went wrong: there is no
    /// folder.
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
        warnings.extend(active::neighbours(&plan));
        progress.clear();
        if !how.quiet {
            let shown = resolved.spanning(schedule.window_ns());
            writeln!(crate::output::stdout(), "{}", planner::show(&plan, &shown, machine, &warnings))?;
        }
        let folder = Folder::create(&resolved.settings.out(), &plan, began)?;
        check_disk(&plan, &folder.path)?;
        plan.folder = folder.path.display().to_string();
        resolved.settings.save(&folder.path)?;
        let record = RunRecord {
            version: env!("CARGO_PKG_VERSION").into(),
            started: humantime::format_rfc3339_seconds(began).to_string(),
            machine: machine.clone(),
            input: describe_input(resolved, plan.trading(), &schedule),
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

    /// Creates the segments, starts the warden and makes the control groups. The warden comes
    /// before segments that have names, which a killed launcher would leave behind; and after those
    /// that have none, since it inherits the logs.
    pub fn arm(self) -> Result<ArmedRun<'a>> {
        let Self { schedule, context } = self;
        let reserve = OpenFolder::open(context.path()).and_then(|place| place.reserve(RECORD_ROOM)).ok();
        let aside = Aside::of(context.plan());
        let mut segments = Segments::begin(context.plan())?;
        segments.create_sealed()?;
        let processes = Processes::begin(&segments)?;
        segments.create_named(&schedule)?;
        let groups = Groups::begin(context.plan(), Tree::real())?;
        Ok(ArmedRun { processes, _groups: groups, segments, aside, reserve, context })
    }
}

impl<'a> ArmedRun<'a> {
    /// Starts the processes, lets them trade and ends them.
    ///
    /// # Errors
    /// What went wrong before the first order, and [`Interrupted`]. A run that began and failed is
    /// an [`EndedRun`] whose outcome says so.
    pub fn play(mut self) -> Result<EndedRun<'a>> {
        let RunContext { resolved, how, progress, record, folder, .. } = &mut self.context;
        let faults = FaultSchedule::new(&record.plan, resolved.settings.seed().0);
        self.processes = supervise(&self.segments, self.processes, how, progress, faults, record, folder)?;
        if self.context.record.clock.start_ticks == 0 {
            return Err(match lost_memory::judge(&self.segments, self.context.record.outcome) {
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
    /// Saves the logs and what else is in memory, and removes the segments.
    ///
    /// # Errors
    /// The folder was removed meanwhile and cannot be made again: nobody could report the logs
    /// without the record, so they go with the segments. Logs that cannot be saved are no error
    /// here: they stay in `/dev/shm`, and [`SavedRun::judge`] says so.
    pub fn save(self) -> Result<SavedRun<'a>> {
        let mut run = self.0;
        let RunContext { resolved, progress, ref mut record, ref folder, .. } = run.context;
        let (folder, segments) = (&folder.path, &mut run.segments);
        progress.phase("saving", 0);
        let known = record.warnings.clone();
        record.commands = segments.commands();
        record.warnings.extend(run.processes.end_spiller());
        record.warnings.extend(lost_records(&record.plan, segments).collect::<Vec<_>>());
        record.warnings.extend(folder::again(folder, resolved)?);
        // Before the logs, which may take all the room that there is: how the run ended must not be
        // lost for that.
        drop(run.reserve);
        let _ = record.save(folder);
        let threads: Vec<_> = segments.threads.iter().cloned().map(Some).collect();
        let spilled: Vec<_> = segments.spilled.iter().cloned().map(Some).collect();
        let logs = gather::Logs { threads: &threads, spilled: &spilled };
        let saved = gather::gather(&record.plan, logs, folder);
        // Not before: until the logs are safe, only the warden could save them if this process were
        // killed.
        run.processes.end_warden();
        if let Err(unsaved) = &saved {
            segments.left_behind.clone_from(&unsaved.segments);
        }
        // Whoever came later: it was told of this run, and this run is told of it.
        let later = active::neighbours(&record.plan);
        record.warnings.extend(later.into_iter().filter(|said| !known.contains(said)));
        let clock = &record.clock;
        let taped = tapes::save(&segments.tapes, clock.start_ticks, clock.ns_per_tick, folder);
        record.warnings.extend(taped.unwrap_or_else(|error| vec![format!("{error:#}")]));
        // Now that everything in it was read that is saved.
        let outcome = std::mem::replace(&mut record.outcome, RunOutcome::Complete);
        record.outcome = lost_memory::judge(segments, outcome);
        Ok(SavedRun { saved, aside: run.aside, context: run.context })
    }
}

impl SavedRun<'_> {
    /// Measures what is measured after a run, saves the record, and has the run evaluated.
    ///
    /// # Errors
    /// What keeps its results from being written. Its folder stays with what there is, and so do
    /// logs that could not be saved in it.
    pub fn judge(
        self,
        evaluate: impl FnOnce(&Room, &Path, &RunRecord) -> Result<Summary>,
    ) -> Result<FinishedRun> {
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
        let room = merge_room::at_the_end(&folder, &record.plan);
        let summary = evaluate(&room, &folder, &record).with_context(kept)?;
        Ok(FinishedRun { folder, outcome: record.outcome, summary })
    }
}

/// What the spiller was too slow for: such a run is partial, and says where.
fn lost_records<'a>(plan: &'a Plan, segments: &'a Segments) -> impl Iterator<Item = String> + 'a {
    let threads = plan.threads.iter().zip(&segments.threads).filter(|_| plan.spill.is_some());
    let of = |(thread, log): (&'a ThreadPlan, _)| (thread, protocol::status::read(log).lost());
    threads.map(of).filter(|(_, lost)| lost.records > 0).map(|(thread, lost)| {
        format!(
            "the run is partial. {}: {} records were lost between records {} and {} of its log: the spiller was behind. A faster disk, \
             more room (--spill=ROOM) or a core for the spiller",
            thread.name, lost.records, lost.from, lost.to
        )
    })
}

/// Measures the floor after the run, in step and out of step. Returns what to say where it cannot
/// be measured any more: that is no reason to lose the run.
fn floor_after(plan: &Plan, floor: &mut CoreToCoreRtt) -> Option<String> {
    let mut measure = || -> Result<()> {
        floor.after_ns = measure_floor(plan)?;
        floor.unsynchronized_ns = measure_out_of_step(plan)?;
        Ok(())
    };
    let error = measure().err()?;
    Some(format!(
        "the floor could not be measured after the run: {error:#}: nobody knows if the machine changed"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::tests::planned_with;

    #[test]
    fn a_floor_that_cannot_be_measured_is_a_warning() {
        let (mut plan, _) = planned_with("orders=10", "", &Machine::default()).unwrap();
        for (thread, core) in plan.threads.iter_mut().zip([4094, 4095]) {
            thread.core = Some(core);
        }
        let mut floor = CoreToCoreRtt::default();
        let warning = floor_after(&plan, &mut floor);
        assert_eq!(floor, CoreToCoreRtt::default());
        assert!(warning.unwrap().contains("floor"));
    }
}

//! A run, as a sentence: settings → schedule → plan → segments → processes → logs → merge → summary.

use crate::faults::schedule::FaultSchedule;
use crate::host::groups::Tree;
use crate::host::{KernelCounts, Machine};
use crate::planner::{self, Resolved};
use crate::runtime::aside::Aside;
use crate::runtime::container::groups::Groups;
use crate::runtime::folder::{self, Folder};
use crate::runtime::gather;
use crate::runtime::living;
use crate::runtime::lost_memory;
use crate::runtime::merge_room;
use crate::runtime::prepare::{
    Prepared, check_disk, describe_input, floor_cores, measure_floor, measure_out_of_step, prepare,
};
use crate::runtime::progress::Progress;
use crate::runtime::setup::Segments;
use crate::runtime::signals::Signals;
use crate::runtime::spawn::Processes;
use crate::runtime::supervise::{Supervised, supervise};
use crate::runtime::tapes;
use analysis::document::Document;
use analysis::evaluation::{self, Step};
use analysis::kernel::KernelAccount;
use analysis::record::{self, Floor, Outcome, RunRecord};
use analysis::summary::Summary;
use anyhow::{Context, Result, anyhow};
use protocol::plan::{Plan, ThreadPlan};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use strategy::schedule::Schedule;
use system::clock::ClockPair;
use system::folder::OpenFolder;
use system::scratch::Room;

/// A finished run.
pub struct Finished {
    /// Its folder.
    pub folder: PathBuf,
    /// How it ended.
    pub outcome: Outcome,
    /// Its figures.
    pub summary: Summary,
}

/// How a run is shown and bounded, beside its settings.
pub struct Presentation<'a> {
    /// Print nothing but errors.
    pub quiet: bool,
    /// Whether a kernel that lacks a piece of the sandbox is good enough.
    pub weaker_sandbox: bool,
    /// How long the processes may take to get ready.
    pub start_timeout: Duration,
    /// Ctrl-C and its relatives.
    pub signals: &'a Signals,
}

/// Plans, runs, merges and summarises once.
///
/// # Errors
/// [`crate::config::UsageError`] for what cannot be had, else what went wrong before the run began: then there is no folder. A
/// run that began and failed is a [`Finished`] whose outcome says so. Only what keeps its results from being written is an
/// error afterwards: its folder stays with what there is, and so do logs that could not be saved in it ([`gather`]). Nothing
/// else is left in `/dev/shm`, and no process.
pub fn run(resolved: &Resolved, machine: &Machine, how: &Presentation<'_>) -> Result<Finished> {
    let began = SystemTime::now();
    let progress = Progress::new(!how.quiet);
    progress.phase("set-up", 0);
    let Prepared { schedule, mut plan, mut warnings, source, start_pair, read_ns, step_ns, floor_ns } =
        prepare(resolved, machine, how.weaker_sandbox, began)?;
    warnings.extend(living::neighbours(&plan));
    progress.clear();
    if !how.quiet {
        writeln!(
            crate::output::stdout(),
            "{}",
            planner::show(&plan, &resolved.spanning(schedule.window_ns()), machine, &warnings)
        )?;
    }

    let mut folder = Folder::create(&resolved.settings.out(), &plan, began)?;
    check_disk(&plan, &folder.path)?;
    plan.folder = folder.path.display().to_string();
    resolved.settings.save(&folder.path)?;
    let mut record = RunRecord {
        version: env!("CARGO_PKG_VERSION").into(),
        started: humantime::format_rfc3339_seconds(began).to_string(),
        plan: plan.clone(),
        machine: machine.clone(),
        input: describe_input(resolved, plan.trading(), &schedule),
        clock: record::Clock {
            ns_per_tick: plan.ns_per_tick,
            read_ns,
            step_ns,
            drift_ppm: 0.0,
            start_ticks: 0,
        },
        floor: Floor { cores: floor_cores(&plan), before_ns: floor_ns, ..Floor::default() },
        outcome: Outcome::Failed {
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
        comebacks: Vec::new(),
        outages: Vec::new(),
        commands: Vec::new(),
        strikes: Vec::new(),
    };

    // Room for the record at the end of the run, whatever fills the disk meanwhile. A file system that cannot reserve has none.
    let reserve = OpenFolder::open(&folder.path).and_then(|place| place.reserve(RECORD_ROOM)).ok();
    let mut counts_before = KernelCounts::default();
    let aside = Aside::of(&plan);
    let (mut segments, processes) = create(&plan, &schedule)?;
    drop(schedule);
    let _groups = Groups::begin(&plan, Tree::real())?;
    let Supervised {
        mut processes,
        outcome,
        exits,
        startup,
        start_ticks,
        open_orders,
        pss_bytes,
        wake_ups,
        incidents,
        comebacks,
        outages,
        strikes,
        warnings,
    } = supervise(
        &segments,
        processes,
        how.signals,
        &progress,
        how.start_timeout,
        FaultSchedule::new(&plan, resolved.settings.seed().0),
        // Written before the first order: a launcher that is killed leaves a run that can be merged.
        |start_ticks| {
            folder.keep();
            counts_before = KernelCounts::now();
            record.clock.start_ticks = start_ticks;
            Ok(record.save(&folder.path)?)
        },
    )?;
    if start_ticks == 0 {
        return Err(not_begun(&lost_memory::judge(&segments, outcome)));
    }
    let cores: BTreeSet<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
    let since = KernelCounts::now().since(&counts_before, &cores);
    record.kernel = Some(KernelAccount { launcher: wake_ups, ..since });
    let folder = folder.path.clone();
    let known = record.warnings.clone();
    record.commands = segments.commands();
    record.strikes = strikes;
    record.outcome = outcome;
    record.exits = exits;
    record.startup_ns = startup.as_nanos() as u64;
    record.open_orders = open_orders;
    record.pss_bytes = pss_bytes;
    record.incidents = incidents;
    record.comebacks = comebacks;
    record.outages = outages;
    record.warnings.extend(warnings);
    progress.phase("saving", 0);
    record.warnings.extend(processes.end_spiller());
    record.warnings.extend(lost(&plan, &segments));
    match folder::again(&folder, resolved) {
        Ok(said) => record.warnings.extend(said),
        Err(error) => {
            // Nobody could report the logs without the record: they go with the segments.
            processes.end_warden();
            return Err(error);
        }
    }
    // Before the logs, which may take all the room that there is: how the run ended must not be lost for that.
    drop(reserve);
    let _ = record.save(&folder);
    let threads: Vec<_> = segments.threads.iter().cloned().map(Some).collect();
    let spilled: Vec<_> = segments.spilled.iter().cloned().map(Some).collect();
    let logs = gather::Logs { threads: &threads, spilled: &spilled };
    let saved = gather::gather(&plan, logs, &folder);
    // Not before: until the logs are safe, only the warden could save them if this process were killed.
    processes.end_warden();
    if let Err(unsaved) = &saved {
        segments.left_behind.clone_from(&unsaved.segments);
    }
    // Whoever came later: it was told of this run, and this run is told of it.
    let later = living::neighbours(&plan);
    record.warnings.extend(later.into_iter().filter(|said| !known.contains(said)));
    let taped = tapes::save(&segments.tapes, start_ticks, plan.ns_per_tick, &folder);
    record.warnings.extend(taped.unwrap_or_else(|error| vec![format!("{error:#}")]));
    // Now that everything in it was read that is saved.
    record.outcome = lost_memory::judge(&segments, record.outcome);
    drop(segments);
    let ns_per_tick = ClockPair::read(&source).ns_per_tick_since(&start_pair);
    record.clock.drift_ppm = (ns_per_tick / plan.ns_per_tick - 1.0) * 1e6;
    record.clock.ns_per_tick = ns_per_tick;
    drop(aside);
    record.warnings.extend(floor_after(&plan, &mut record.floor));
    let recorded = record.save(&folder);
    saved?;
    let kept = || {
        format!("the run ended, and is kept in {0}: `launcher report {0}` reads it again", folder.display())
    };
    recorded.with_context(kept)?;
    let room = merge_room::at_the_end(&folder, &plan);
    let summary = evaluate(&room, &folder, &record, &progress).with_context(kept)?;
    progress.clear();
    Ok(Finished { folder, outcome: record.outcome, summary })
}

/// What the spiller was too slow for: such a run is partial, and says where.
fn lost<'a>(plan: &'a Plan, segments: &'a Segments) -> impl Iterator<Item = String> + 'a {
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

/// Measures the floor after the run, in step and out of step; what to say where it cannot be measured any more: that is no reason to lose the run.
fn floor_after(plan: &Plan, floor: &mut Floor) -> Option<String> {
    let mut measure = || -> Result<()> {
        floor.after_ns = measure_floor(plan)?;
        floor.out_of_step_ns = measure_out_of_step(plan)?;
        Ok(())
    };
    let error = measure().err()?;
    Some(format!(
        "the floor could not be measured after the run: {error:#}: nobody knows if the machine changed"
    ))
}

/// Room that is kept for a run's record until the run is over, in bytes.
const RECORD_ROOM: u64 = 1 << 20;

/// Evaluates a run's saved logs and shows how far it is.
///
/// # Errors
/// As [`evaluation::evaluate`].
pub fn evaluate(room: &Room, folder: &Path, record: &RunRecord, progress: &Progress) -> Result<Summary> {
    progress.phase("merging", 1);
    evaluation::evaluate(room, folder, record, |step| match step {
        Step::Merging { done, total } => progress.of(done, total),
        Step::Measuring => progress.phase("measuring", 0),
    })
}

/// The segments and the warden. It comes before segments that have names, which a killed launcher would leave behind; and
/// after those that have none, since it inherits the logs.
fn create(plan: &Plan, schedule: &Schedule) -> Result<(Segments, Processes)> {
    let mut segments = Segments::begin(plan)?;
    segments.create_sealed()?;
    let processes = Processes::begin(&segments)?;
    segments.create_named(schedule)?;
    Ok((segments, processes))
}

fn not_begun(outcome: &Outcome) -> anyhow::Error {
    match outcome {
        Outcome::Failed { process, pid, what } => {
            anyhow!("{process} (pid {pid}) failed before the start: {what}")
        }
        Outcome::Interrupted | Outcome::Complete => Interrupted.into(),
    }
}

/// Ctrl-C before the first order.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted before the start: nothing was measured")]
pub struct Interrupted;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Machine;
    use crate::planner::tests::planned_with;

    #[test]
    fn a_floor_that_cannot_be_measured_is_a_warning() {
        let (mut plan, _) = planned_with("orders=10", "", &Machine::default()).unwrap();
        for (thread, core) in plan.threads.iter_mut().zip([4094, 4095]) {
            thread.core = Some(core);
        }
        let mut floor = Floor::default();
        let warning = floor_after(&plan, &mut floor);
        assert_eq!(floor, Floor::default());
        assert!(warning.unwrap().contains("floor"));
    }
}

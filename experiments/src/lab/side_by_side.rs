//! Makes the runs of cells whose ends sleep at the same time: they use no core.
//!
//! A process makes one run at a time, so there are several of them. The ends are not pinned: they
//! sleep on whatever core is free.

use super::cell_run::{RunOfCell, add_run, plan_of};
use crate::benchmark::Benchmark;
use crate::measure::MeasureEnd;
use crate::progress::SweepProgress;
use analysis::experiment::Lab;
use anyhow::{Context, Result};
use planner::host::signals::{Signals, is_end_requested};
use protocol::plan::QueueWork;
use record::benchmark::Interruption;
use record::numbers::counted;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use system::process;

/// Runs for each allowed core. A run wakes up twice for each event and each poll.
const RUNS_PER_CORE: usize = 4;
/// The maximum time between two looks at the processes.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the number of runs that are made at the same time, of `runs` that may be.
pub(super) fn width(lab: &Lab, runs: usize) -> usize {
    (RUNS_PER_CORE * lab.machine.cores_allowed.len().max(1)).min(runs)
}

/// Splits runs into those that are made side by side and those that are made alone. A single run is
/// made alone.
pub(super) fn split(lab: &Lab, todo: Vec<RunOfCell>) -> (Vec<RunOfCell>, Vec<RunOfCell>) {
    let (together, alone): (Vec<_>, Vec<_>) =
        todo.iter().copied().partition(|(_, cell)| lab.sleeps(&lab.cells[*cell]));
    if together.len() > 1 { (together, alone) } else { (Vec::new(), todo) }
}

/// A process that makes runs, and the run that it makes.
struct Worker<'a> {
    benchmark: Benchmark<'a>,
    run: RunOfCell,
    work: QueueWork,
}

/// Makes runs side by side and adds each to its cell. `save` is called after each. A request to
/// interrupt ends all that are still running, and discards them.
pub(super) fn make_runs(
    lab: &mut Lab,
    folder: &Path,
    together: &[RunOfCell],
    signals: &Signals,
    bar: &mut SweepProgress,
    save: &mut dyn FnMut(&Lab) -> Result<()>,
) -> Result<MeasureEnd> {
    let width = width(lab, together.len());
    let slow = super::flags::parse_slow(&lab.slow)?;
    let mut waiting: VecDeque<RunOfCell> = together.iter().copied().collect();
    let mut workers: Vec<Worker> = Vec::new();
    let name = format!("{} side by side", counted(together.len() as u64, "run"));
    while workers.len() < width
        && let Some(run) = waiting.pop_front()
    {
        let mut benchmark = Benchmark::start(signals, folder, Interruption::Discard)?;
        let (plan, work) = plan_of(lab, run, slow, &[]);
        benchmark.begin(plan, &[]).context("cannot start a run next to others")?;
        workers.push(Worker { benchmark, run, work });
    }
    while !workers.is_empty() {
        let (done, all) = lab.progress();
        bar.begin(&name, done, all - done);
        let mut ready = process::wait_readable(
            &workers
                .iter()
                .map(|worker| worker.benchmark.as_fd())
                .chain([signals.as_fd()])
                .collect::<Vec<_>>(),
            PAUSE,
        )?;
        if is_end_requested() {
            // All at once; dropping them waits for one after the other.
            workers.iter().for_each(|worker| worker.benchmark.interrupt());
            return Ok(MeasureEnd::Interrupted);
        }
        ready.pop();
        // From the last on, since a worker without another run goes.
        for (index, _) in ready.into_iter().enumerate().rev().filter(|(_, is_ready)| *is_ready) {
            let Worker { benchmark, run, work } = &mut workers[index];
            let cell = lab.cells[run.1].name();
            let Some(made) = benchmark.finish().with_context(|| cell.clone())? else {
                return Ok(MeasureEnd::Interrupted);
            };
            add_run(lab, *run, work, &made, width as u32)?;
            save(lab)?;
            let Some(next) = waiting.pop_front() else {
                workers.swap_remove(index);
                continue;
            };
            let (plan, next_work) = plan_of(lab, next, slow, &[]);
            benchmark.begin(plan, &[]).with_context(|| cell)?;
            (*run, *work) = (next, next_work);
        }
    }
    Ok(MeasureEnd::Complete)
}

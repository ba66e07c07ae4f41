//! Makes the runs of cells whose ends sleep at the same time: they use no core.
//!
//! Each run is a lab of its own with one run, made by another launcher: a launcher supervises one
//! run at a time. Its folder stays below that of the lab.

use crate::measure::MeasureEnd;
use crate::progress::SweepProgress;
use analysis::experiment::{Lab, LabCell, LabRun};
use anyhow::{Context, Result, anyhow};
use planner::host::signals::{Signals, is_end_requested};
use record::numbers::counted;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use system::process;

/// The folder of these runs in that of the lab.
const FOLDER: &str = "side-by-side";
/// What a launcher writes to stderr.
const ERRORS: &str = "errors.txt";
/// Runs for each allowed core. A run wakes up twice for each event and each poll.
const RUNS_PER_CORE: usize = 4;
/// The maximum time between two looks at the launchers.
const PAUSE: Duration = Duration::from_millis(20);

/// Returns the number of runs that are made at the same time, of `runs` that may be.
pub(super) fn width(lab: &Lab, runs: usize) -> usize {
    (RUNS_PER_CORE * lab.machine.cores_allowed.len().max(1)).min(runs)
}

/// The number of a run, and the index of its cell.
type RunOfCell = (u32, usize);

/// Splits runs into those that are made side by side and those that are made alone. A single run is
/// made alone.
pub(super) fn split(lab: &Lab, todo: Vec<RunOfCell>) -> (Vec<RunOfCell>, Vec<RunOfCell>) {
    let (together, alone): (Vec<_>, Vec<_>) =
        todo.iter().copied().partition(|(_, cell)| lab.sleeps(&lab.cells[*cell]));
    if together.len() > 1 { (together, alone) } else { (Vec::new(), todo) }
}

/// A launcher that makes one run.
struct RunningLab {
    child: Child,
    folder: PathBuf,
    number: u32,
    cell: usize,
}

/// Returns the lab of one run. It is not pinned: its ends sleep on whatever core is free.
fn lab_of_one_run(lab: &Lab, cell: &LabCell, number: u32) -> Lab {
    let cell = LabCell { events: None, runs: None, made: Vec::new(), ..cell.clone() };
    Lab {
        events: lab.events_of(&cell),
        runs: 1,
        seed: lab.seed.wrapping_add(number.into()),
        cores: Vec::new(),
        notes: vec!["made next to other runs, by the lab of the folder above".into()],
        cells: vec![cell],
        ..Lab { cells: Vec::new(), ..lab.clone() }
    }
}

impl RunningLab {
    /// Starts a launcher for a run. It ends with this thread.
    fn start(lab: &Lab, folder: &Path, number: u32, cell: usize) -> Result<Self> {
        let folder = folder.join(FOLDER).join(format!("cell-{cell}-run-{number}"));
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(&folder)?,
        }
        lab_of_one_run(lab, &lab.cells[cell], number).save(&folder)?;
        let mut command = Command::new("/proc/self/exe");
        command.args(["lab", "--json", "--resume"]).arg(&folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(folder.join(ERRORS))?);
        process::die_with_starter(&mut command);
        Ok(Self { child: command.spawn()?, folder, number, cell })
    }

    /// Returns the run that the launcher has made.
    fn run(&self, status: ExitStatus) -> Result<(LabRun, hdrhistogram::Histogram<u64>)> {
        let mut made = Lab::read(&self.folder)?;
        let cell = made.cells.pop().filter(|cell| !cell.made.is_empty()).ok_or_else(|| {
            let errors = fs::read_to_string(self.folder.join(ERRORS)).unwrap_or_default();
            let last = errors.lines().last().unwrap_or("it wrote nothing");
            anyhow!("its launcher ended ({status}) without a run: {last}")
        })?;
        let latencies = cell.latencies().map_err(|why| anyhow!("histogram: {why}"))?;
        let run = cell.made.into_iter().next().unwrap_or_default();
        Ok((LabRun { number: self.number, ..run }, latencies))
    }
}

/// Launchers that are ended when they are dropped, so that a failed lab leaves none.
#[derive(Default)]
struct RunningLabs(Vec<RunningLab>);

impl Drop for RunningLabs {
    fn drop(&mut self) {
        for running in &self.0 {
            // One that has ended already is only reaped.
            let _ = process::pidfd_open(running.child.id()).and_then(|fd| process::terminate(fd.as_fd()));
        }
        for running in &mut self.0 {
            let _ = running.child.wait();
        }
    }
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
    let (mut waiting, mut running) =
        (together.iter().copied().collect::<VecDeque<_>>(), RunningLabs::default());
    let name = format!("{} side by side", counted(together.len() as u64, "run"));
    while !waiting.is_empty() || !running.0.is_empty() {
        let (done, all) = lab.progress();
        bar.begin(&name, done, all - done);
        while running.0.len() < width
            && let Some((number, cell)) = waiting.pop_front()
        {
            let started = RunningLab::start(lab, folder, number, cell);
            running.0.push(started.context("cannot start a run next to others")?);
        }
        process::wait_readable(&[signals.as_fd()], PAUSE)?;
        if is_end_requested() {
            return Ok(MeasureEnd::Interrupted);
        }
        let mut index = 0;
        while index < running.0.len() {
            let Some(status) = running.0[index].child.try_wait()? else {
                index += 1;
                continue;
            };
            let ended = running.0.swap_remove(index);
            let name = lab.cells[ended.cell].name();
            let (run, latencies) = ended.run(status).with_context(|| name.clone())?;
            let run = LabRun { side_by_side: width as u32, ..run };
            lab.cells[ended.cell].add_run(run, &latencies).map_err(|why| anyhow!("{name}: {why}"))?;
            save(lab)?;
        }
    }
    Ok(MeasureEnd::Complete)
}

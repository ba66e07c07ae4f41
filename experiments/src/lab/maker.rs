//! Makes the runs of a lab: those of cells whose ends sleep at the same time, all others alone.
//!
//! Ends that sleep use no core, so they are not pinned either. A process makes one run at a time,
//! so there are several of them.

use super::cell_run::{plan_of, run_of};
use super::flags::parse_slow;
use crate::benchmark::Benchmark;
use crate::measure::{MadeRow, RowMaker};
use ::record::screen::program;
use analysis::experiment::{Experiment, Figures, Kind, LabCell, LabPlan};
use anyhow::{Context, Error, Result};
use planner::host::signals::{Signals, is_end_requested};
use protocol::plan::QueueWork;
use record::benchmark::Interruption;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use system::process;

/// Runs for each allowed core. A run wakes up twice for each event and each poll.
const RUNS_PER_CORE: usize = 4;
/// The maximum time between two looks at the processes.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum time between two saves.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);

/// Makes the runs of a lab.
pub(super) struct LabRuns<'a> {
    plan: LabPlan,
    folder: &'a Path,
    signals: &'a Signals,
    /// The runs that were begun.
    workers: Vec<Worker<'a>>,
    /// A process for the next run.
    idle: Option<Benchmark<'a>>,
}

/// A process that makes a run, and the row of the run.
struct Worker<'a> {
    benchmark: Benchmark<'a>,
    at: usize,
    work: QueueWork,
    side_by_side: u32,
}

/// Splits rows into groups, each with the number that is made at the same time. A single row is
/// made alone.
pub(super) fn groups(record: &Experiment, plan: &LabPlan, missing: Vec<usize>) -> Vec<(usize, Vec<usize>)> {
    let sleeps = |at: &usize| cell_of(record, *at).is_ok_and(|cell| plan.sleeps(&cell));
    let (together, alone): (Vec<usize>, Vec<usize>) = missing.iter().copied().partition(sleeps);
    match together.len() {
        0 | 1 => vec![(1, missing)],
        count => {
            let most = RUNS_PER_CORE * record.machine.cores_allowed.len().max(1);
            vec![(most.min(count), together), (1, alone)]
        }
    }
}

/// Returns the cell of a row.
pub(super) fn cell_of(record: &Experiment, at: usize) -> Result<LabCell> {
    LabCell::from_setting(&record.rows[at].setting).map_err(Error::msg)
}

impl<'a> LabRuns<'a> {
    pub(super) const fn new(plan: LabPlan, folder: &'a Path, signals: &'a Signals) -> Self {
        Self { plan, folder, signals, workers: Vec::new(), idle: None }
    }
}

impl RowMaker for LabRuns<'_> {
    fn groups(&self, record: &Experiment, missing: Vec<usize>) -> Vec<(usize, Vec<usize>)> {
        groups(record, &self.plan, missing)
    }

    fn begin(&mut self, record: &Experiment, at: usize, width: usize) -> Result<()> {
        let mut benchmark = match self.idle.take() {
            Some(benchmark) => benchmark,
            None => Benchmark::start(self.signals, self.folder, Interruption::Discard)?,
        };
        let (cell, is_alone) = (cell_of(record, at)?, width == 1);
        let cores: &[u32] = if is_alone { &self.plan.cores } else { &[] };
        let of_cell = (record.rows[at].repeat, &cell);
        let (plan, work) = plan_of(&self.plan, of_cell, parse_slow(&self.plan.slow)?, cores);
        benchmark.begin(plan, &[]).with_context(|| cell.name())?;
        let side_by_side = if is_alone { 0 } else { width as u32 };
        self.workers.push(Worker { benchmark, at, work, side_by_side });
        Ok(())
    }

    fn finish(&mut self, record: &mut Experiment) -> Result<Option<MadeRow>> {
        let index = loop {
            let makers = self.workers.iter().map(|worker| worker.benchmark.as_fd());
            let ready =
                process::wait_readable(&makers.chain([self.signals.as_fd()]).collect::<Vec<_>>(), PAUSE)?;
            if is_end_requested() {
                // All at once; dropping them waits for one after the other.
                self.workers.iter().for_each(|worker| worker.benchmark.interrupt());
                self.workers.clear();
                return Ok(None);
            }
            let mut makers = ready.iter().take(self.workers.len());
            if let Some(index) = makers.position(|is_ready| *is_ready) {
                break index;
            }
        };
        let Worker { mut benchmark, at, work, side_by_side } = self.workers.swap_remove(index);
        let row = &record.rows[at];
        let Some(made) = benchmark.finish().with_context(|| row.setting.name.clone())? else {
            return Ok(None);
        };
        // One that has no further run ends.
        self.idle = Some(benchmark);
        let run = run_of(row.repeat, &work, &made, side_by_side).with_context(|| row.setting.name.clone())?;
        if self.plan.clock_read_ns == 0.0 {
            self.plan.clock_read_ns = made.clock.read_ns;
            record.figures.insert("clock_read_ns", &made.clock.read_ns);
        }
        let figures = Figures::from_record(&run);
        Ok(Some(MadeRow { at, figures, ..MadeRow::default() }))
    }

    fn save_interval(&self) -> Duration {
        SAVE_INTERVAL
    }

    fn resume_hint(&self, kind: Kind, folder: &Path) -> Option<String> {
        let (program, folder) = (program(), folder.display());
        let saved = "what was finished is saved";
        Some(format!("the {kind} stopped; {saved}: {program} resume {folder} goes on"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::LabFlags;
    use super::*;
    use crate::measure::missing_rows;
    use analysis::experiment::LabRun;
    use record::units::Count;

    #[test]
    fn rounds_cover_every_cell_and_rotate_the_first() {
        let machine = planner::host::Machine { cores_allowed: vec![0, 1], ..Default::default() };
        let flags = LabFlags { runs: Some(Count(3)), ..LabFlags::default() };
        let mut record = flags.plan(machine).unwrap();
        let settings = record.settings();
        let cells = settings.len();
        let run = |at: usize| (record.rows[at].repeat, record.rows[at].setting.name.as_str());
        let first = |number: usize| (number as u32, settings[number].name.as_str());
        assert_eq!([run(0), run(cells), run(2 * cells)], [first(0), first(1), first(2)]);
        let mut sorted: Vec<_> = (0..record.rows.len()).map(run).collect();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!((sorted.len(), missing_rows(&record).len()), (3 * cells, 3 * cells));
        for (at, problem) in [(5, None), (6, Some("lost"))] {
            let problems = problem.into_iter().map(String::from).collect();
            record.rows[at].figures = Figures::from_record(&LabRun { problems, ..LabRun::default() });
        }
        let rest = missing_rows(&record);
        assert_eq!(rest.len(), 3 * cells - 1, "what is done is not made again, what failed is");
        assert!(!rest.contains(&5) && rest.contains(&6));
    }
}

//! Makes the runs of the cases of a board benchmark.

use super::case::{CaseSettings, assign_cores, cores, work_of};
use super::{figures, mode, over_time};
use crate::benchmark::Benchmark;
use crate::measure::{MadeRow, RowMaker};
use analysis::experiment::{BoardCase, BoardPlan, Experiment, Kind};
use anyhow::Result;
use protocol::plan::{BoardWork, Plan, Technique, Workload};
use record::run::RunOutcome;
use std::path::Path;

/// Makes the cases of a board's benchmark, one after the other.
pub(super) struct BoardRuns<'a> {
    plan: BoardPlan,
    benchmark: Benchmark<'a>,
    folder: &'a Path,
    /// The case that was begun.
    begun: Option<BegunCase>,
}

/// A case whose run was begun.
struct BegunCase {
    at: usize,
    settings: CaseSettings,
    work: BoardWork,
    /// Readers share their cores.
    is_shared: bool,
}

impl<'a> BoardRuns<'a> {
    pub(super) const fn new(plan: BoardPlan, benchmark: Benchmark<'a>, folder: &'a Path) -> Self {
        Self { plan, benchmark, folder, begun: None }
    }
}

impl RowMaker for BoardRuns<'_> {
    fn begin(&mut self, record: &Experiment, at: usize, _width: usize) -> Result<()> {
        let settings = CaseSettings::from_texts(&record.rows[at].setting.settings)?;
        let schedule = settings.mode.schedule(self.plan.duration_ns, self.plan.seed)?;
        let write_times =
            schedule.map(|all| mode::due_times(&all, self.plan.duration_ns).collect::<Vec<u64>>());
        let cores = cores(self.plan.cores.as_ref(), settings.nodes, &record.machine)?;
        let (cores, is_shared) = assign_cores(&cores, settings.readers.into());
        let work = BoardWork {
            scheduled: write_times.as_ref().map(|times| times.len() as u64),
            ..work_of(&settings, &self.plan, is_shared)
        };
        let workload = Workload::Board(work.clone());
        let plan = Plan::for_benchmark(workload, Technique::default(), settings.isolation, &cores);
        let plan = Plan { weaker_sandbox: record.weaker_sandbox, ..plan };
        self.benchmark.begin(plan, &write_times.unwrap_or_default())?;
        self.begun = Some(BegunCase { at, settings, work, is_shared });
        Ok(())
    }

    fn finish(&mut self, _record: &mut Experiment) -> Result<Option<MadeRow>> {
        // A case that was interrupted before its start has no figures.
        let Some(made) = self.benchmark.finish_or_interrupt()? else { return Ok(None) };
        let Some(BegunCase { at, settings, work, is_shared }) = self.begun.take() else { return Ok(None) };
        let ns_per_tick = made.clock.ns_per_tick;
        over_time::save(self.folder, at, &made, &work, ns_per_tick)?;
        let case = figures::case(&settings, is_shared, &work, &made, ns_per_tick);
        let case = BoardCase { warnings: self.plan.warn.check(&case), ..case };
        let is_interrupted = made.outcome == RunOutcome::Interrupted;
        Ok(Some(MadeRow { at, figures: case.figures(), is_interrupted, ..MadeRow::default() }))
    }

    fn resume_hint(&self, _kind: Kind, _folder: &Path) -> Option<String> {
        None
    }
}

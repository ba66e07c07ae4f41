//! The runs of the benchmarks `lab` and `board`: ordinary runs whose roles are measured loops
//! (`protocol::benchmark`), without a merge.

use crate::runtime::container;
use crate::runtime::prepare::{Interruption, Presentation, prepare_benchmark};
use crate::runtime::progress::Progress;
use crate::runtime::stages::{FailedAtStart, PreparedRun};
use ::record::screen::complain;
use anyhow::{Result, bail};
use planner::config::{CoreList, UsageError};
use planner::host::Machine;
use planner::host::signals::Signals;
use protocol::counters::AgentCounters;
use protocol::plan::{ClockSource, Isolation, Plan, Role};
use protocol::status::{self, StatusField, ThreadState, ThreadStatus};
use protocol::topology::SegmentPurpose;
use record::cpu_list;
use record::run::{ClockCalibration, RoleRestart, RunOutcome};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{ReadOnlyWords, Region};
use std::path::Path;
use std::time::Duration;
use strategy::schedule::Schedule;
use system::clock::{self, ClockPair};
use system::sandbox;

/// How long the clock is calibrated at least.
const CALIBRATION: Duration = Duration::from_millis(50);
/// How long the ends may take to get ready.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Folder of the runs in that of their experiment.
const RUNS: &str = "runs";

/// The machine, clock and folder that all runs of a benchmark share.
pub struct Benchmark<'a> {
    pub machine: &'a Machine,
    pub signals: &'a Signals,
    /// The folder of the experiment.
    pub folder: &'a Path,
    /// What Ctrl-C does to a run.
    pub interruption: Interruption,
    pub clock: BenchmarkClock,
}

/// The best clock of a machine, calibrated since its start.
pub struct BenchmarkClock {
    pub source: ClockSource,
    /// Cost of one read, in nanoseconds.
    pub read_ns: f64,
    step_ticks: f64,
    first: ClockPair,
}

impl BenchmarkClock {
    /// Chooses the machine's best clock and calibrates it.
    pub fn start(machine: &Machine) -> Self {
        let source = if machine.tsc_invariant { ClockSource::Tsc } else { ClockSource::Monotonic };
        let first = ClockPair::read(&source);
        std::thread::sleep(CALIBRATION);
        let (read_ns, step_ticks) = (clock::read_cost_ns(&source), clock::step_ticks(&source));
        Self { source, read_ns, step_ticks, first }
    }

    /// Returns the nanoseconds per tick, measured from the clock's start until now.
    pub fn ns_per_tick(&self) -> f64 {
        ClockPair::read(&self.source).ns_per_tick_since(&self.first)
    }
}

/// The outcome of a benchmark's run, with what its ends have left in memory.
pub struct BenchmarkRun {
    pub plan: Plan,
    pub outcome: RunOutcome,
    /// The tick at which the loops started; `None` if an end was never ready.
    pub start_ticks: Option<u64>,
    /// Deaths that the run survived.
    pub deaths: Vec<RoleRestart>,
    /// Each role's results, in the order of the plan.
    pub ends: Vec<EndResults>,
    /// The board of a board benchmark.
    pub board: Option<ReadOnlyWords>,
}

/// The status, counters and results of one end of a benchmark. It may have stored anything.
pub struct EndResults {
    pub status: ThreadStatus,
    pub counters: AgentCounters,
    /// The words of its results; `None` for a role without any, or if the run did not start.
    pub words: Option<ReadOnlyWords>,
}

impl EndResults {
    /// Returns `true` if the loop has ended, so that its final figures are stored.
    pub fn is_done(&self) -> bool {
        self.status.state() == ThreadState::Done
    }

    /// Returns a field of the thread's status.
    pub fn get(&self, field: StatusField) -> u64 {
        self.status.get(field)
    }
}

impl Benchmark<'_> {
    /// Makes one run of a plan and saves its record. A failure of one of its processes is its
    /// outcome, not an error.
    pub fn run(&self, mut plan: Plan, schedule: Schedule) -> Result<BenchmarkRun> {
        let how = Presentation {
            quiet: true,
            weaker_sandbox: plan.weaker_sandbox,
            start_timeout: START_TIMEOUT,
            signals: self.signals,
            interruption: self.interruption,
        };
        let progress = Progress::new(false);
        let ns_per_tick = self.clock.ns_per_tick();
        plan.clock = self.clock.source;
        let calibration = ClockCalibration {
            ns_per_tick,
            read_ns: self.clock.read_ns,
            step_ns: self.clock.step_ticks * ns_per_tick,
            ..ClockCalibration::default()
        };
        let prepared = prepare_benchmark(plan, schedule, self.machine, calibration, self.clock.first)?;
        let plan = prepared.record.plan.clone();
        let run = PreparedRun::from_benchmark(prepared, &self.folder.join(RUNS), &how, &progress)?;
        let ended = match run.arm()?.play() {
            Ok(ended) => ended,
            Err(error) => {
                let FailedAtStart { process, pid, what } = error.downcast::<FailedAtStart>()?;
                let outcome = RunOutcome::Failed { process, pid, what };
                let unborn = ReadOnlyWords::from(Region::heap(status::LOG_OFFSET).words());
                let ends = roles(&plan).map(|role| end_of(role, &unborn, None)).collect();
                let deaths = Vec::new();
                return Ok(BenchmarkRun { plan, outcome, start_ticks: None, deaths, ends, board: None });
            }
        };
        let segments = ended.segments();
        let ends = roles(&plan).zip(&segments.threads).map(|(role, words)| {
            let results = segments.view(SegmentPurpose::Results(role));
            end_of(role, words, results.map(|words| words.slice(HEADER_WORDS, words.len() - HEADER_WORDS)))
        });
        let (ends, board) = (ends.collect(), segments.view(SegmentPurpose::Board));
        let (_, record) = ended.save()?.record()?;
        let start_ticks = Some(record.clock.start_ticks);
        Ok(BenchmarkRun {
            plan,
            outcome: record.outcome,
            start_ticks,
            deaths: record.role_restarts,
            ends,
            board,
        })
    }
}

fn roles(plan: &Plan) -> impl Iterator<Item = Role> + '_ {
    plan.threads.iter().map(|thread| thread.roles[0])
}

fn end_of(role: Role, thread: &ReadOnlyWords, words: Option<ReadOnlyWords>) -> EndResults {
    EndResults { status: status::read(thread), counters: status::counters_of(thread, &[role], role), words }
}

/// Warns that the machine is unfit for latency figures just now, before time is spent on them.
pub fn warn_unfit(unfit: &[String]) {
    unfit.iter().for_each(|reason| complain(&format!("warning: not fit for latency claims: {reason}")));
}

/// Checks that the kernel can isolate the ends of a benchmark at these levels.
pub fn check_isolation(levels: impl Iterator<Item = Isolation>, weaker_sandbox: bool) -> Result<()> {
    let levels: Vec<Isolation> = levels.collect();
    if levels.contains(&Isolation::Container)
        && let Some(why) = container::missing(weaker_sandbox)
    {
        return Err(UsageError(why).into());
    }
    if weaker_sandbox || !levels.contains(&Isolation::Sandbox) {
        return Ok(());
    }
    match sandbox::missing().join("; ") {
        missing if missing.is_empty() => Ok(()),
        missing => bail!("no full sandbox here: {missing}; --allow-weaker-sandbox continues without it"),
    }
}

/// Returns the cores that the user requested for a benchmark; `None` if none were requested.
pub fn check_cores(asked: Option<&CoreList>, machine: &Machine) -> Result<Option<Vec<u32>>, UsageError> {
    let Some(CoreList(cores)) = asked else { return Ok(None) };
    if let Some(core) = cores.iter().find(|core| !machine.cores_allowed.contains(core)) {
        let allowed = cpu_list::format(&machine.cores_allowed);
        return Err(UsageError(format!("--cores: core {core} is not allowed here (allowed: {allowed})")));
    }
    Ok(Some(cores.clone()))
}

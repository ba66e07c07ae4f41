//! Makes the runs of the benchmarks `lab` and `board`: ordinary runs whose roles are measured loops
//! (`protocol::benchmark`), without a merge. Another process makes them.

mod process;

use ::record::screen::print_warning;
use anyhow::{Result, bail};
use planner::config::{CoreList, UsageError};
use planner::host::Machine;
use planner::host::signals::Interrupted;
use planner::host::signals::Signals;
use process::{BenchmarkProcess, RunMemory};
use protocol::counters::AgentCounters;
use protocol::plan::{Isolation, Plan, Role};
use protocol::status::{self, StatusField, ThreadState, ThreadStatus};
use record::benchmark::{BenchmarkRequest, Interruption, RunClock, RunReply, RunRequest};
use record::cpu_list;
use record::run::{RoleRestart, RunOutcome};
use shm::memory::{ReadOnlyWords, Region};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::process::wait_readable;
use system::{keys, sandbox};

/// Folder of the runs in that of their experiment.
const RUNS: &str = "runs";
/// The maximum time between two looks at a process that makes a run.
const PAUSE: Duration = Duration::from_secs(1);

/// A handle to the `launcher benchmark` process, which makes the runs of a `lab` or `board`
/// experiment one after the other.
pub struct Benchmark<'a> {
    signals: &'a Signals,
    /// The folder of the runs.
    out: PathBuf,
    /// What Ctrl-C does to a run.
    interruption: Interruption,
    process: BenchmarkProcess,
}

/// The outcome of a benchmark's run, with the results that its processes have stored in memory.
pub struct BenchmarkRun {
    pub plan: Plan,
    pub outcome: RunOutcome,
    /// The tick at which the loops started; `None` if an end was never ready.
    pub start_ticks: Option<u64>,
    /// Deaths of roles that the run survived.
    pub deaths: Vec<RoleRestart>,
    /// The clock of all runs of the process.
    pub clock: RunClock,
    /// The results of each role, in the order of the plan.
    pub ends: Vec<EndResults>,
    /// The memory of the board, in a board benchmark.
    pub board: Option<ReadOnlyWords>,
}

/// The status, counters and results of one end (writer or reader) of a benchmark. It may have
/// stored anything.
pub struct EndResults {
    pub status: ThreadStatus,
    pub counters: AgentCounters,
    /// The results that the role stored in memory; `None` for a role without any, or if the run did
    /// not start.
    pub words: Option<ReadOnlyWords>,
}

impl EndResults {
    /// Returns `true` if the measured loop of this end (writer or reader) has ended, so that its
    /// final figures are stored.
    pub fn is_done(&self) -> bool {
        self.status.state() == ThreadState::Done
    }

    /// Returns one field of the status that the thread of this end (writer or reader) has published
    /// in shared memory.
    pub fn get(&self, field: StatusField) -> u64 {
        self.status.get(field)
    }
}

impl<'a> Benchmark<'a> {
    /// Starts a `launcher benchmark` process, which will make runs below the experiment's `folder`.
    pub fn start(signals: &'a Signals, folder: &Path, interruption: Interruption) -> Result<Self> {
        let process = BenchmarkProcess::start()?;
        Ok(Self { signals, out: folder.join(RUNS), interruption, process })
    }

    /// Waits for the end of the benchmark run that was begun last, and interrupts that run on
    /// Ctrl-C. `None`: it had no figures then.
    pub fn finish_or_interrupt(&mut self) -> Result<Option<BenchmarkRun>> {
        loop {
            let ready = wait_readable(&[self.process.as_fd(), self.signals.as_fd()], PAUSE)?;
            if ready[0] {
                return self.finish();
            }
            for _ in 0..self.signals.take_requests() {
                self.interrupt();
            }
        }
    }

    /// Requests a run of `plan` from the benchmark process, which saves the run's record in the
    /// run's folder; does not wait. A failure of one of the run's processes is the run's outcome,
    /// not an error. `write_times` are the due times of a board's writes.
    pub fn begin(&mut self, plan: Plan, write_times: &[u64]) -> Result<()> {
        let request = RunRequest { plan, out: self.out.clone(), interruption: self.interruption };
        self.process.send(&BenchmarkRequest::Run(Box::new(request)), write_times)
    }

    /// Waits for the end of the benchmark run that was begun last, and returns the run's outcome
    /// and results. `None`: a termination signal came before it had figures.
    pub fn finish(&mut self) -> Result<Option<BenchmarkRun>> {
        match self.process.receive_run() {
            Err(error) if error.is::<Interrupted>() => Ok(None),
            memory => Ok(Some(BenchmarkRun::from_memory(memory?))),
        }
    }

    /// Interrupts the benchmark's run that was begun, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.process.interrupt();
    }
}

impl AsFd for Benchmark<'_> {
    /// Returns the descriptor that becomes readable when a run that was begun has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

impl BenchmarkRun {
    fn from_memory(memory: RunMemory) -> Self {
        let RunMemory { reply, threads, board } = memory;
        let RunReply { plan, outcome, start_ticks, deaths, clock, .. } = reply;
        let ends = if start_ticks.is_none() {
            let unborn = ReadOnlyWords::from(Region::heap(status::LOG_OFFSET).words());
            roles(&plan).map(|role| end_of(role, &unborn, None)).collect()
        } else {
            roles(&plan).zip(threads).map(|(role, (thread, words))| end_of(role, &thread, words)).collect()
        };
        Self { plan, outcome, start_ticks, deaths, clock, ends, board }
    }
}

fn roles(plan: &Plan) -> impl Iterator<Item = Role> + '_ {
    plan.threads.iter().map(|thread| thread.roles[0])
}

fn end_of(role: Role, thread: &ReadOnlyWords, words: Option<ReadOnlyWords>) -> EndResults {
    EndResults { status: status::read(thread), counters: status::counters_of(thread, &[role], role), words }
}

/// Prints a warning for each given reason why latencies measured on this machine now should not be
/// quoted.
pub fn warn_unfit(unfit: &[String]) {
    unfit.iter().for_each(|reason| print_warning(&format!("warning: not fit for latency claims: {reason}")));
}

/// Returns an error if a benchmark's isolation levels include `keys` (memory protection keys),
/// which separates strategies: a benchmark has none.
pub fn refuse_keys(levels: &[Isolation]) -> Result<(), UsageError> {
    match levels.contains(&Isolation::Keys) {
        true => Err(UsageError(
            "--isolation keys is for strategies of a run, and a benchmark has none.\nUse --isolation thread or process".into(),
        )),
        false => Ok(()),
    }
}

/// Checks that the kernel can isolate the ends (processes) of a benchmark at these levels.
pub fn check_isolation(levels: impl Iterator<Item = Isolation>, weaker_sandbox: bool) -> Result<()> {
    let levels: Vec<Isolation> = levels.collect();
    if levels.contains(&Isolation::Container) {
        BenchmarkProcess::check_containers(weaker_sandbox)?;
    }
    if let Some(why) = keys::missing().filter(|_| levels.contains(&Isolation::Keys)) {
        bail!("--isolation keys: {why}");
    }
    if weaker_sandbox || !levels.contains(&Isolation::Sandbox) {
        return Ok(());
    }
    match sandbox::missing().join("; ") {
        missing if missing.is_empty() => Ok(()),
        missing => bail!("no full sandbox here: {missing}; --allow-weaker-sandbox continues without it"),
    }
}

/// Checks that the CPU cores requested for a benchmark are allowed here, and returns them; `None`
/// if none were requested.
pub fn check_cores(asked: Option<&CoreList>, machine: &Machine) -> Result<Option<Vec<u32>>, UsageError> {
    let Some(CoreList(cores)) = asked else { return Ok(None) };
    if let Some(core) = cores.iter().find(|core| !machine.cores_allowed.contains(core)) {
        let allowed = cpu_list::format(&machine.cores_allowed);
        return Err(UsageError(format!("--cores: core {core} is not allowed here (allowed: {allowed})")));
    }
    Ok(Some(cores.clone()))
}

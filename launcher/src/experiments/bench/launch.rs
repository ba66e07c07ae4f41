//! Starts the processes of a benchmark run, drives its phases and collects its figures. Deaths of
//! processes are recorded.
//!
//! Whatever is killed leaves nothing: segments have no names, dropped processes are killed and
//! reaped, and the kernel kills the children of a dead launcher.

use super::BenchWork;
use super::plan::BenchPlan;
use super::segments::BenchSegments;
use crate::host::signals::Signals;
use crate::runtime::process::Process;
use crate::runtime::run_id::RunId;
use analysis::experiment::BoardDeath;
use anyhow::{Context, Result, ensure};
use roles::bench::account::{AccountView, DONE, Field};
use roles::bench::control::{DRAIN, GO, LAST, MAX_AGENTS, PREPARE, STOP};
use shm::process::start_time;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use system::clock::{Clock, Timebase};
use system::{descriptors, process};

/// How long the agents may take to get ready.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// From the start of phase GO to the start tick: all agents are awake by then.
const LEAD_NS: u64 = 2_000_000;
/// Poll interval of the launcher during a run. Seldom: it may share a core with an agent.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The largest number of successors of a dead first agent.
const MAX_SUCCESSORS: usize = 3;

/// The outcome of a benchmark run: its start and its deaths. The results are in its segments.
pub struct BenchOutcome {
    pub segments: BenchSegments,
    /// The start tick; `None` if an agent was never ready.
    pub start_ticks: Option<u64>,
    pub deaths: Vec<BoardDeath>,
    /// Reason for which the launcher ended the run.
    pub problem: Option<String>,
    /// Whether Ctrl-C ended it.
    pub interrupted: bool,
}

/// Runs a benchmark once: starts its processes, waits for them and returns the outcome. What its
/// processes print goes to files in `folder`, which are removed if empty. A death is not an error.
pub fn run<W: BenchWork>(plan: &mut BenchPlan<W>, folder: &Path, signals: &Signals) -> Result<BenchOutcome> {
    let pid = std::process::id();
    let start = start_time(pid).context("cannot read /proc")?;
    plan.run = RunId::new(SystemTime::now(), pid, start).to_string();
    plan.launcher_pid = pid;
    plan.handles.clear();
    let processes = plan.processes();
    ensure!(plan.cores.len() <= MAX_AGENTS, "{} agents: at most {MAX_AGENTS}", plan.cores.len());
    descriptors::raise_limit(64 + 3 * plan.segments().len() as u64).context("cannot open enough files")?;
    let segments = BenchSegments::create(plan)?;
    let mut running = BenchRun {
        plan,
        folder,
        processes: Vec::new(),
        phase: PREPARE,
        started: Instant::now(),
        outcome: BenchOutcome {
            segments,
            start_ticks: None,
            deaths: Vec::new(),
            problem: None,
            interrupted: false,
        },
    };
    for (name, agents) in processes {
        let process = running.start_process(&name, &agents)?;
        running.processes.push((process, agents));
    }
    running.watch(signals)?;
    running.set_phase(STOP);
    running.processes.clear();
    Ok(running.outcome)
}

/// A process that is killed and reaped when it is dropped.
struct OwnedProcess(Process);

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct BenchRun<'a, W> {
    plan: &'a BenchPlan<W>,
    folder: &'a Path,
    processes: Vec<(OwnedProcess, Vec<usize>)>,
    phase: u64,
    /// When the processes were started, then the start of phase GO.
    started: Instant,
    outcome: BenchOutcome,
}

impl<W: BenchWork> BenchRun<'_, W> {
    fn start_process(&self, name: &str, agents: &[usize]) -> Result<OwnedProcess> {
        let segments = &self.outcome.segments;
        let process = Process::start(name, &segments.address(), self.folder, &segments.handed_to(agents))?;
        agents.iter().for_each(|agent| segments.control.set_pid(*agent, process.pid()));
        Ok(OwnedProcess(process))
    }

    fn set_phase(&mut self, phase: u64) {
        self.phase = phase;
        self.outcome.segments.control.set_phase(phase);
    }

    /// Drives the phases until all processes have ended, or something ends the run.
    fn watch(&mut self, signals: &Signals) -> Result<()> {
        let (mut progress, mut since) = (self.progress(), Instant::now());
        loop {
            self.poll(signals)?;
            let goes_on = W::SURVIVES_DEATHS && self.phase > PREPARE;
            if signals.take_requests() > 0 {
                let again = std::mem::replace(&mut self.outcome.interrupted, true);
                if again || !goes_on {
                    return Ok(());
                }
                self.set_phase(self.phase.max(LAST));
            }
            if self.running().next().is_none() || !(goes_on || self.outcome.deaths.is_empty()) {
                return Ok(());
            }
            self.advance();
            let now = self.progress();
            let patience = self.progress_timeout();
            if now != progress {
                (progress, since) = (now, Instant::now());
            } else if since.elapsed() > patience {
                let what = if self.phase == PREPARE { "not ready within" } else { "no progress for" };
                self.outcome.problem = Some(format!("{what} {patience:?}: {}", self.unfinished()));
                return Ok(());
            }
        }
    }

    /// Enters the next phase, if all agents that it waits for are there.
    fn advance(&mut self) {
        let accounts = self.outcome.segments.accounts();
        if self.phase == PREPARE {
            if accounts.iter().all(|account| account.state() != 0) {
                let time = Timebase { start_ticks: 0, ns_per_tick: self.plan.ns_per_tick };
                let tick = self.plan.clock.now() + time.ticks(LEAD_NS);
                self.outcome.segments.control.start(tick);
                self.outcome.start_ticks = Some(tick);
                (self.phase, self.started) = (GO, Instant::now());
            }
        } else if self.phase < DRAIN {
            let sources = self.plan.work.sources();
            let is_source = |agents: &Vec<usize>| agents.iter().any(|agent| *agent < sources);
            let has_source = self.running().any(|(_, agents)| is_source(agents));
            if !has_source || accounts[..sources].iter().all(|account| account.state() == DONE) {
                self.set_phase(DRAIN);
            }
        }
    }

    fn running(&self) -> impl Iterator<Item = &(OwnedProcess, Vec<usize>)> {
        self.processes.iter().filter(|(process, _)| process.0.status.is_none())
    }

    /// Sleeps until a process ends, a signal comes or the time is over, and notes deaths.
    fn poll(&mut self, signals: &Signals) -> Result<()> {
        let at_most = if self.phase == PREPARE { Duration::from_micros(300) } else { POLL_INTERVAL };
        let pidfds = self.running().map(|(process, _)| process.0.pidfd());
        let fds: Vec<BorrowedFd<'_>> = pidfds.chain([signals.as_fd()]).collect();
        process::wait_readable(&fds, at_most)?;
        for place in 0..self.processes.len() {
            let process = &mut self.processes[place].0.0;
            if process.status.is_some() {
                continue;
            }
            process.poll()?;
            if process.status.is_none_or(|status| status.success()) {
                continue;
            }
            let mut death = BoardDeath {
                process: process.name.clone(),
                how: describe_end(process),
                at_ns: self.started.elapsed().as_nanos() as u64,
                succeeded: false,
            };
            let replaced = self.outcome.deaths.iter().filter(|death| death.succeeded).count();
            if W::SURVIVES_DEATHS
                && self.phase == GO
                && self.processes[place].1 == [0]
                && replaced < MAX_SUCCESSORS
            {
                death.succeeded = true;
                self.processes[place].0 = self.start_process(&death.process, &[0])?;
            }
            self.outcome.deaths.push(death);
        }
        Ok(())
    }

    /// Changes whenever a run makes progress.
    fn progress(&self) -> (u64, usize, u64) {
        let accounts = self.outcome.segments.accounts().iter();
        let add = |sum: u64, account: &AccountView| {
            sum.wrapping_add(account.get(Field::Count)).wrapping_add(account.state())
        };
        (self.phase, self.running().count(), accounts.fold(0, add))
    }

    fn progress_timeout(&self) -> Duration {
        match self.phase {
            PREPARE => START_TIMEOUT,
            phase => self.plan.work.progress_timeout(phase >= DRAIN),
        }
    }

    fn unfinished(&self) -> String {
        let agents = self.plan.work.agents();
        let all = agents.iter().zip(self.outcome.segments.accounts());
        let names = all.filter(|(_, account)| account.state() != DONE).map(|(agent, _)| agent.as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

fn describe_end(process: &Process) -> String {
    match process.stderr_tail() {
        words if words.is_empty() => process.exit_text(),
        words => format!("{}: {words}", process.exit_text()),
    }
}

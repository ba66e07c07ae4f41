//! From the first process to the last: start, barrier, firing, draining, end. A role that dies, hangs or reports an
//! error ends the run; so does Ctrl-C. Whatever happens, every process but the warden is gone when this returns.

use crate::progress::Progress;
use crate::record::{Exit, Outcome};
use crate::setup::Segments;
use crate::signals::Signals;
use crate::spawn::Processes;
use anyhow::Result;
use shm::clock::Clock;
use shm::control::{Launching, RunState};
use shm::memory::View;
use shm::plan::{Plan, Role};
use shm::status::{self, Field, State, Status};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How often the launcher looks while nothing happens. Ends of processes and signals wake it at once.
const LOOK: Duration = Duration::from_millis(50);
/// A thread that has not begun a duty cycle for so long hangs: parked ones begin one every 10 ms.
const HANG: Duration = Duration::from_secs(10);
/// How long the engine has to end after it was told to, and what an interrupted run may take beyond its longest delay.
const GRACE: Duration = Duration::from_secs(5);

/// What came of it.
pub struct Supervised {
    /// The processes, of which only the warden still runs: it would save the logs if the launcher died before it has.
    pub processes: Processes,
    /// How the run ended.
    pub outcome: Outcome,
    /// How each process ended.
    pub exits: Vec<Exit>,
    /// From the first spawn to the open barrier.
    pub startup: Duration,
    /// The tick of time zero; 0 if the barrier never opened.
    pub start_ticks: u64,
    /// Mean of the samples of open orders taken while the strategies fired, after the longest delay had passed once.
    pub in_flight_sampled: Option<f64>,
    /// Proportional memory of all processes when half of the orders were sent, in bytes.
    pub pss_bytes: Option<u64>,
}

/// Why a phase ended.
enum Phase {
    Over,
    Interrupted,
    Failed(Outcome),
}

struct Supervisor<'a> {
    plan: &'a Plan,
    control: &'a Launching,
    threads: &'a [View],
    processes: Processes,
    signals: &'a Signals,
    progress: &'a Progress,
    start_ticks: u64,
    samples: (f64, u32),
    pss_bytes: Option<u64>,
}

/// Runs the plan's processes from start to end. `processes` holds the warden already; `start_timeout` is how long they
/// may take to get ready; `opened` is told the start ticks when the barrier has opened.
///
/// # Errors
/// If a process cannot be started or watched. A process that fails is not an error here but an [`Outcome`].
pub fn supervise(
    segments: &Segments,
    mut processes: Processes,
    signals: &Signals,
    progress: &Progress,
    start_timeout: Duration,
    opened: impl FnOnce(u64) -> Result<()>,
) -> Result<Supervised> {
    let spawned = Instant::now();
    processes.start(segments)?;
    let Segments { plan, control, threads, .. } = segments;
    let mut supervisor = Supervisor {
        plan,
        control,
        threads,
        processes,
        signals,
        progress,
        start_ticks: 0,
        samples: (0.0, 0),
        pss_bytes: None,
    };
    progress.phase("starting", 0);
    let mut startup = Duration::ZERO;
    let mut phase = supervisor.wait_until_ready(start_timeout)?;
    if matches!(phase, Phase::Over) {
        // A little ahead, so that everybody has left the barrier when time zero comes.
        let lead_ns = 2_000_000 + 200_000 * plan.threads.len() as u64;
        supervisor.start_ticks = plan.clock.now() + (lead_ns as f64 / plan.ns_per_tick) as u64;
        startup = spawned.elapsed();
        control.go(supervisor.start_ticks);
        opened(supervisor.start_ticks)?;
        phase = supervisor.play()?;
    }
    let outcome = match phase {
        Phase::Over => Outcome::Complete,
        Phase::Interrupted => Outcome::Interrupted,
        Phase::Failed(outcome) => outcome,
    };
    control.set_state(RunState::Stop);
    supervisor.processes.end(GRACE);
    let outcome = supervisor.ended_in_order(outcome);
    let (sum, count) = supervisor.samples;
    Ok(Supervised {
        outcome,
        exits: supervisor.processes.exits(),
        startup,
        start_ticks: supervisor.start_ticks,
        in_flight_sampled: (count > 0).then(|| sum / f64::from(count)),
        pss_bytes: supervisor.pss_bytes,
        processes: supervisor.processes,
    })
}

impl Supervisor<'_> {
    fn status(&self, thread: usize) -> Status {
        status::read(&self.threads[thread])
    }

    /// Sleeps a little, then looks for trouble: a process that ended before its threads were done, a thread that failed.
    fn look(&mut self) -> Result<Option<Outcome>> {
        self.processes.wait(Some(self.signals.as_fd()), LOOK)?;
        for (index, process) in self.plan.processes.iter().enumerate() {
            let mut states = process.threads.iter().map(|thread| self.status(*thread as usize));
            let child = &self.processes.all[index];
            let failed = states.clone().find(|status| status.state() == State::Failed);
            let done = states.all(|status| status.state() == State::Done);
            let ended_badly = child.status.is_some_and(|status| !(done && status.success()));
            if failed.is_some() || ended_badly {
                let mut what = failed.map_or_else(|| child.how(), |status| status.error());
                let words = child.last_words();
                if !words.is_empty() && !words.contains(&what) {
                    what = format!("{what}: {words}");
                }
                return Ok(Some(failure(&process.name, child.pid(), what)));
            }
        }
        Ok(None)
    }

    fn wait_until_ready(&mut self, timeout: Duration) -> Result<Phase> {
        let deadline = Instant::now() + timeout;
        loop {
            let late = (0..self.threads.len()).find(|thread| self.status(*thread).state() < State::Ready);
            let Some(late) = late else { return Ok(Phase::Over) };
            if self.signals.take() > 0 {
                return Ok(Phase::Interrupted);
            }
            if Instant::now() >= deadline {
                let what = format!("hangs at the start: not ready after {timeout:?}");
                return Ok(Phase::Failed(self.failure_of(late, what)));
            }
            if let Some(outcome) = self.look()? {
                return Ok(Phase::Failed(outcome));
            }
        }
    }

    /// The failure of the process that a thread belongs to.
    fn failure_of(&self, thread: usize, what: String) -> Outcome {
        let owner = self.plan.processes.iter().position(|process| process.threads.contains(&(thread as u32)));
        let process = &self.processes.all[owner.unwrap_or(0)];
        failure(&process.name, process.pid(), what)
    }

    /// Until every strategy has all its reports.
    fn play(&mut self) -> Result<Phase> {
        let strategies: Vec<usize> =
            (0..self.plan.strategies).filter_map(|i| self.plan.thread_of(Role::Strategy(i))).collect();
        let total = self.plan.total_orders();
        let max_delay = Duration::from_nanos(self.plan.max_delay_ns);
        let (mut drain_until, mut draining, mut memory_sampled) = (None, false, false);
        let (mut last_progress, mut last_settled) = (Instant::now(), 0);
        self.progress.phase("firing", total);
        loop {
            let statuses: Vec<Status> = strategies.iter().map(|thread| self.status(*thread)).collect();
            let sum = |field| statuses.iter().map(|status| status.get(field)).sum::<u64>();
            let (sent, settled) = (sum(Field::Sent), sum(Field::Returned) + sum(Field::Rejected));
            if !memory_sampled && sent >= total / 2 {
                // Once: the kernel walks the page tables for it.
                memory_sampled = true;
                self.pss_bytes = self.proportional_memory();
            }
            if statuses.iter().all(|status| status.state() == State::Done) {
                return Ok(if drain_until.is_some() { Phase::Interrupted } else { Phase::Over });
            }
            if sent < total && drain_until.is_none() {
                self.progress.at(sent);
                self.sample(sent.saturating_sub(settled), max_delay);
            } else {
                if !draining {
                    self.progress.phase("draining", sent);
                    draining = true;
                }
                self.progress.at(settled);
            }
            match self.signals.take() {
                0 => {}
                1 if drain_until.is_none() => {
                    self.control.set_state(RunState::Drain);
                    drain_until = Some(Instant::now() + max_delay + GRACE);
                }
                _ => return Ok(Phase::Interrupted),
            }
            if drain_until.is_some_and(|until| Instant::now() > until) {
                return Ok(Phase::Interrupted);
            }
            if settled != last_settled || sent < total {
                (last_progress, last_settled) = (Instant::now(), settled);
            } else if last_progress.elapsed() > max_delay + HANG {
                let what = format!("{} orders have no report and none comes any more", sent - settled);
                let engine = self.plan.thread_of(Role::Orchestrator).unwrap_or(0);
                return Ok(Phase::Failed(self.failure_of(engine, what)));
            }
            if let Some(outcome) = self.hanging() {
                return Ok(Phase::Failed(outcome));
            }
            if let Some(outcome) = self.look()? {
                return Ok(Phase::Failed(outcome));
            }
        }
    }

    /// Takes a sample of the open orders, once the pipeline has filled.
    fn sample(&mut self, open: u64, max_delay: Duration) {
        let filled = self.start_ticks + (max_delay.as_nanos() as f64 / self.plan.ns_per_tick) as u64;
        if self.plan.clock.now() > filled {
            self.samples.0 += open as f64;
            self.samples.1 += 1;
        }
    }

    /// The proportional set size of all processes together, in bytes. `None` if one has gone, or the kernel tells none.
    fn proportional_memory(&self) -> Option<u64> {
        let of = |pid: u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        self.processes.all.iter().map(|process| of(process.pid())).sum()
    }

    /// The first thread that should run and has not begun a duty cycle for long.
    fn hanging(&self) -> Option<Outcome> {
        let now = self.plan.clock.now();
        let limit = (HANG.as_nanos() as f64 / self.plan.ns_per_tick) as u64;
        let hangs = |status: &Status| {
            status.state() == State::Running && now.saturating_sub(status.get(Field::HeartbeatTicks)) > limit
        };
        let thread = (0..self.threads.len()).find(|thread| hangs(&self.status(*thread)))?;
        Some(self.failure_of(thread, format!("hangs: no duty cycle for {HANG:?}")))
    }

    /// A process that had to be killed at the end, or died then, is a failure too.
    fn ended_in_order(&self, outcome: Outcome) -> Outcome {
        let bad =
            self.processes.all.iter().find(|process| !process.status.is_some_and(|status| status.success()));
        match (outcome, bad) {
            (Outcome::Complete, Some(process)) => {
                failure(&process.name, process.pid(), format!("did not end in order: {}", process.how()))
            }
            (outcome, _) => outcome,
        }
    }
}

fn failure(process: &str, pid: u32, what: String) -> Outcome {
    Outcome::Failed { process: process.to_owned(), pid, what }
}

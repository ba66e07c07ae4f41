//! From the first process to the last: start, barrier, firing, draining, end. A role that dies,
//! hangs or reports an error ends the run, unless it is a strategy and the plan goes on without it
//! ([`crate::runtime::incidents`]); so does Ctrl-C. Whatever happens, every process but the warden
//! is gone when this returns.

mod command_lock;
mod failures;
mod poll_interval;
mod progress_check;
mod signals;
mod waits;

pub use waits::have_all_arrived;

use crate::faults::schedule::{FaultSchedule, by_signal};
use crate::host::KernelCounts;
use crate::runtime::containment::Containment;
use crate::runtime::folder::Folder;
use crate::runtime::incidents::{Incidents, settled_by};
use crate::runtime::lost_memory;
use crate::runtime::prepare::Presentation;
use crate::runtime::process::Process;
use crate::runtime::progress::{Progress, complain};
use crate::runtime::samples::Samples;
use crate::runtime::setup::Segments;
use crate::runtime::signals::Signals;
use crate::runtime::spawn::Processes;
use crate::runtime::stuck::{Liveness, StallWatch};
use crate::runtime::usage::proportional_memory;
use analysis::document::Document;
use analysis::kernel::{KernelAccount, WakeUps};
use analysis::record::{RunOutcome, RunRecord};
use anyhow::Result;
use command_lock::DeskWatch;
use protocol::control::{ControlWriter, RunState};
use protocol::counters::AgentCounters;
use protocol::labels::OrchestratorCounter;
use protocol::plan::{Plan, Role};
use protocol::status::{self, Status, ThreadState};
use protocol::supervision::Repairs;
use shm::memory::ReadOnlyWords;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use system::clock::Clock;

/// How often the launcher looks while nothing happens. Ends of processes and signals wake it at
/// once.
const LOOK: Duration = Duration::from_millis(50);
/// The same while a death is being repaired.
const BUSY_LOOK: Duration = Duration::from_millis(1);
/// How long the engine has to end after it was told to, and what an interrupted run may take beyond
/// its longest delay.
const GRACE: Duration = Duration::from_secs(5);

/// Why a phase ended.
enum Phase {
    Over,
    Interrupted,
    Failed(RunOutcome),
}

struct Supervisor<'a> {
    plan: &'a Plan,
    control: &'a ControlWriter,
    threads: &'a [ReadOnlyWords],
    schedules: &'a [ReadOnlyWords],
    /// What the exchanges write down, each with its venue.
    tapes: &'a [(u16, ReadOnlyWords)],
    repairs: Repairs,
    /// The deaths that the run outlives, from the open barrier on.
    contained: Containment<'a>,
    liveness: Liveness,
    faults: FaultSchedule,
    strikes: Vec<Option<u64>>,
    desk: DeskWatch,
    processes: Processes,
    segments: &'a Segments,
    signals: &'a Signals,
    progress: &'a Progress,
    record: &'a mut RunRecord,
    /// The tick of time zero; 0 until the barrier opens.
    start_ticks: u64,
    samples: Option<Samples>,
    wake_ups: Option<WakeUps>,
    /// Processes whose last incarnation has died of SIGBUS.
    victims: usize,
}

/// Runs the plan's processes from start to end, and writes down in the record how it went.
/// `processes` holds the warden already, and of those that are returned only the warden and the
/// spiller still run. `faults` says whom the launcher sends a signal, and when.
///
/// When the barrier has opened the record has its start ticks and `folder` is kept, with the record
/// in it: a launcher that is killed from then on leaves a run that can be merged.
///
/// # Errors
/// If a process cannot be started or watched before the barrier opens. What goes wrong afterwards,
/// and a process that fails, is not an error here but an [`Outcome`].
pub fn supervise(
    segments: &Segments,
    mut processes: Processes,
    how: &Presentation<'_>,
    progress: &Progress,
    faults: FaultSchedule,
    record: &mut RunRecord,
    folder: &mut Folder,
) -> Result<Processes> {
    let spawned = Instant::now();
    processes.start(segments)?;
    let Segments { plan, control, threads, schedules, tapes, .. } = segments;
    let mut supervisor = Supervisor {
        plan,
        control,
        threads,
        schedules,
        tapes,
        repairs: Repairs::new(segments.repairs.clone().expect("created before").into()),
        contained: Containment::default(),
        liveness: Liveness::new(plan, plan.clock.now()),
        faults,
        strikes: plan.faults.iter().map(|fault| by_signal(fault).then_some(0)).collect(),
        desk: DeskWatch::new(plan),
        processes,
        segments,
        signals: how.signals,
        progress,
        record,
        start_ticks: 0,
        samples: None,
        wake_ups: None,
        victims: 0,
    };
    progress.phase("starting", 0);
    let mut counts_before = KernelCounts::default();
    let mut phase = supervisor.wait_until_ready(how.start_timeout)?;
    if matches!(phase, Phase::Over) {
        supervisor.open(spawned);
        // From here on there is a run to be kept: whatever goes wrong is how it ended.
        folder.keep();
        counts_before = KernelCounts::now();
        let saved = supervisor.record.save(&folder.path).map_err(anyhow::Error::from);
        phase = saved.and_then(|()| supervisor.play()).unwrap_or_else(|error| {
            Phase::Failed(failure("launcher", plan.launcher_pid, format!("{error:#}")))
        });
    }
    let outcome = match phase {
        Phase::Over => RunOutcome::Complete,
        Phase::Interrupted => RunOutcome::Interrupted,
        Phase::Failed(outcome) => outcome,
    };
    control.set_state(RunState::Stop);
    supervisor.processes.end(GRACE);
    supervisor.contained.end(&supervisor.processes, &plan.clock);
    let outcome = supervisor.ended_in_order(outcome);
    let Supervisor { processes, contained, record, strikes, samples, wake_ups, .. } = supervisor;
    record.outcome = outcome;
    record.exits = processes.exits();
    record.open_orders = samples.as_ref().map(Samples::taken);
    record.strikes = strikes;
    contained.record(record);
    let cores: BTreeSet<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
    let since = KernelCounts::now().since(&counts_before, &cores);
    record.kernel = Some(KernelAccount { launcher: wake_ups, ..since });
    Ok(processes)
}

impl Supervisor<'_> {
    /// Opens the barrier: everybody is ready. `spawned`: when the first process was started.
    fn open(&mut self, spawned: Instant) {
        // A little ahead, so that everybody has left the barrier when time zero comes.
        let lead_ns = 2_000_000 + 200_000 * self.plan.threads.len() as u64;
        self.start_ticks = self.plan.clock.now() + (lead_ns as f64 / self.plan.ns_per_tick) as u64;
        self.record.startup_ns = spawned.elapsed().as_nanos() as u64;
        self.record.clock.start_ticks = self.start_ticks;
        self.contained = Containment::new(self.segments, self.start_ticks);
        self.samples = Some(Samples::new(self.start_ticks));
        // Each has said which thread it is, and nothing that it wrote since is believed.
        self.see_threads();
        self.liveness.open(self.plan.clock.now());
        self.control.go(self.start_ticks);
    }

    fn status(&self, thread: usize) -> Status {
        status::read(&self.threads[thread])
    }

    fn state(&self, thread: usize) -> ThreadState {
        status::state(&self.threads[thread])
    }

    /// Takes note of what every thread says of itself.
    fn see_threads(&mut self) {
        for thread in 0..self.threads.len() {
            let pulse = status::pulse(&self.threads[thread]);
            // The time after it was read: what it says cannot be of later.
            self.liveness.see(thread, pulse, self.plan.clock.now());
        }
    }

    /// Sleeps a little, no longer than that, then looks for trouble: a process that ended before
    /// its threads were done, a thread that failed.
    fn look_within(&mut self, longest: Duration) -> Result<Option<RunOutcome>> {
        let found = self.look(longest)?;
        let taken = self.memory_taken();
        // What the launcher read of memory that is gone was zeros: nobody is blamed for that.
        Ok(if lost_memory::is_met(self.segments) { taken.or(found) } else { found.or(taken) })
    }

    /// The failure of the run if memory of it is gone: the launcher has met that, or a process has
    /// died of it.
    fn memory_taken(&mut self) -> Option<RunOutcome> {
        let victims = self.processes.all.iter().filter(|process| lost_memory::is_victim(process)).count();
        let is_new = victims > std::mem::replace(&mut self.victims, victims);
        let is_gone =
            lost_memory::is_met(self.segments) || (is_new && !lost_memory::found(self.segments).is_empty());
        is_gone.then(|| lost_memory::failure(self.plan.launcher_pid))
    }

    fn look(&mut self, longest: Duration) -> Result<Option<RunOutcome>> {
        let pause = longest.min(self.liveness.interval()).min(self.until_fault()).min(self.until_restart());
        let busy = self.contained.incidents.as_ref().filter(|incidents| incidents.is_busy());
        if let Some(incidents) = busy {
            incidents.wait(BUSY_LOOK);
        }
        let pause = match busy {
            Some(_) => Duration::ZERO,
            None if self.contained.is_returning() => BUSY_LOOK.min(pause),
            None => pause,
        };
        self.processes.wait(Some(self.signals.as_fd()), pause)?;
        self.processes.watch_helpers(self.segments);
        if let Some(said) = self.desk.look() {
            complain(&format!("note: {said}"));
            self.record.warnings.push(said);
        }
        self.liveness.awake(self.plan.clock.now());
        self.see_threads();
        self.ask_the_kernel();
        self.signal_faults();
        let notes = self.contained.look(&mut self.processes, &mut self.liveness, &self.plan.clock)?;
        notes.iter().for_each(|note| complain(note));
        let ended = self.ended_early()?;
        Ok(ended.or_else(|| self.suspect()).or_else(|| self.misconduct()))
    }

    /// Orders sent so far, and how many of those of the living are open.
    fn sent_and_open(&self) -> (u64, u64) {
        if let Some(incidents) = &self.contained.incidents {
            return incidents.sent_and_open();
        }
        let counted = self.plan.trading().orders.iter().enumerate().filter_map(|(strategy, orders)| {
            let thread = self.plan.thread_of(Role::Strategy(strategy as u16))?;
            Some(settled_by(&self.threads[thread], &self.plan.threads[thread].roles, *orders))
        });
        let (sent, settled) = counted.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        (sent, sent.saturating_sub(settled))
    }

    fn engine(&self) -> Option<AgentCounters> {
        orchestrator(self.plan, self.threads)
    }

    /// Until every strategy has all its reports.
    fn play(&mut self) -> Result<Phase> {
        let total = self.plan.trading().total_orders();
        let max_delay = Duration::from_nanos(self.plan.trading().max_delay_ns);
        let (mut drain, mut draining, mut memory_sampled) = (None, false, false);
        let mut stall = StallWatch::new(self.plan.trading().max_delay_ns);
        let mut closing = self.closing();
        let last_due = self.last_due();
        self.progress.phase("firing", total);
        let sleeps = self.count_sleeps();
        loop {
            let (sent, open) = self.sent_and_open();
            if let Some(samples) = &mut self.samples {
                samples.take(self.plan.clock.now(), open);
            }
            if !memory_sampled && sent >= total / 2 {
                // Once: the kernel walks the page tables for it.
                memory_sampled = true;
                self.record.pss_bytes =
                    self.processes.all.iter().map(|it| proportional_memory(it.pid())).sum();
                self.see_memory();
            }
            if sent >= total {
                self.wake_ups = self.wake_ups.or_else(|| self.wake_ups_since(sleeps));
            }
            if self.awaited().next().is_none() && !self.contained.is_coming_back() {
                self.see_memory();
                if let Some(outcome) = self.let_everybody_finish()? {
                    return Ok(Phase::Failed(outcome));
                }
                return Ok(if drain.is_some() { Phase::Interrupted } else { Phase::Over });
            }
            if sent < total && drain.is_none() {
                self.progress.at(sent);
            } else {
                if !draining {
                    self.progress.phase("draining", sent);
                    draining = true;
                }
                self.progress.at(sent - open.min(sent));
            }
            match self.signals.take() {
                0 => {}
                1 if drain.is_none() => {
                    self.control.set_state(RunState::Drain);
                    drain = Some(self.drain(max_delay + GRACE));
                }
                _ => return Ok(Phase::Interrupted),
            }
            if let Some(quiet) = &mut closing
                && self.is_trading_over(quiet, sent)
            {
                self.control.set_state(RunState::Drain);
                closing = None;
            }
            if drain.as_mut().is_some_and(|drain| self.has_drained(drain)) {
                return Ok(Phase::Interrupted);
            }
            if drain.is_none()
                && let Some(what) = self.stalls(&mut stall)
            {
                let engine = self.plan.thread_of(Role::Orchestrator).unwrap_or(0);
                return Ok(Phase::Failed(self.failure_of(engine, what)));
            }
            let pause = if draining { LOOK } else { self.firing_pause(last_due) };
            if let Some(outcome) = self.look_within(pause)? {
                return Ok(Phase::Failed(outcome));
            }
        }
    }

    fn see_memory(&mut self) {
        self.processes.all.iter_mut().for_each(Process::see_memory);
    }

    /// Whether the run waits for a strategy.
    fn awaits(&self, strategy: u16) -> bool {
        let is_done = |thread| self.state(thread) == ThreadState::Done;
        match &self.contained.incidents {
            Some(incidents) => incidents.awaits(strategy),
            None => !self.plan.thread_of(Role::Strategy(strategy)).is_some_and(is_done),
        }
    }
}

/// What the orchestrator of a run has counted.
pub fn orchestrator(plan: &Plan, threads: &[ReadOnlyWords]) -> Option<AgentCounters> {
    let thread = plan.thread_of(Role::Orchestrator)?;
    Some(status::counters_of(&threads[thread], &plan.threads[thread].roles, Role::Orchestrator))
}

/// Everything that the orchestrator has done with orders, counted: also each report of an order
/// that has more to come.
pub fn moves(engine: &AgentCounters) -> u64 {
    use OrchestratorCounter::{Dispatched, Rejected, Reports, Returned};
    // Also what is returned: a strategy that gets little time takes its reports for long.
    [Dispatched, Reports, Rejected, Returned]
        .iter()
        .fold(0, |sum, &counter| sum.wrapping_add(engine.get(counter)))
}

/// Orders that were dispatched and are not settled.
pub fn at_venues(engine: &AgentCounters) -> u64 {
    let [dispatched, settled] =
        [OrchestratorCounter::Dispatched, OrchestratorCounter::Settled].map(|counter| engine.get(counter));
    dispatched.saturating_sub(settled)
}

fn failure(process: &str, pid: u32, what: String) -> RunOutcome {
    RunOutcome::Failed { process: process.to_owned(), pid, what }
}

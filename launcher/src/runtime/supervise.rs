//! Supervises a run from the first process to the last: start, barrier, trading, draining, end. A
//! role that dies, hangs or reports an error ends the run, unless its death is contained
//! ([`crate::runtime::containment`]); so does Ctrl-C. In every case all processes but the reaper
//! are gone when this returns.

mod command_lock;
mod disk_waits;
mod failures;
mod measured;
mod poll_interval;
mod progress_check;
mod signals;
mod stall_excuses;
mod waits;

pub use waits::have_all_arrived;

use crate::faults::{FaultSchedule, is_by_signal};
use crate::host::KernelCounts;
use crate::runtime::containment::Containment;
use crate::runtime::folder::RunFolder;
use crate::runtime::journal_locks::JournalLockWatch;
use crate::runtime::lost_memory;
use crate::runtime::prepare::{Interruption, Presentation};
use crate::runtime::process::Process;
use crate::runtime::progress::{Progress, complain};
use crate::runtime::samples::OpenOrderSamples;
use crate::runtime::setup::Segments;
use crate::runtime::signals::Signals;
use crate::runtime::spawn::{ExitTime, Processes};
use crate::runtime::stuck::{Liveness, StallWatch};
use crate::runtime::usage::proportional_memory;
use analysis::document::Document;
use analysis::kernel::{KernelAccount, WakeUps};
use analysis::record::{RoleRestart, RunOutcome, RunRecord};
use anyhow::Result;
use command_lock::CommandLockWatch;
use disk_waits::DiskWaits;
use progress_check::DrainWait;
use protocol::control::RunState;
use protocol::counters::AgentCounters;
use protocol::labels::OrchestratorCounter;
use protocol::plan::{Plan, Role};
use protocol::status::{self, ThreadState, ThreadStatus};
use shm::memory::ReadOnlyWords;
use stall_excuses::StarvedProcesses;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use system::clock::Clock;

/// Poll interval while nothing happens. Exits of processes and signals wake the launcher at once.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Poll interval while a death is being repaired.
const BUSY_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum time for the roles to exit after the stop, and for an interrupted run to drain in
/// addition to its longest delay. Extended while they wait for a core.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// Maximum time for the roles of an interrupted run to exit, whatever they wait for.
const INTERRUPTED_GRACE: Duration = Duration::from_secs(2);
/// Maximum length of the extended drain of an interrupted run, in limits.
const INTERRUPTED_STRETCH: u64 = 2;

struct Supervisor<'a> {
    plan: &'a Plan,
    segments: &'a Segments,
    /// Contained deaths, once the barrier has opened.
    containment: Containment<'a>,
    liveness: Liveness,
    faults: FaultSchedule,
    strikes: Vec<Option<u64>>,
    command_lock: CommandLockWatch,
    journal_locks: JournalLockWatch<'a>,
    processes: Processes,
    signals: &'a Signals,
    interruption: Interruption,
    /// Number of termination signals so far.
    interrupts: usize,
    progress: &'a Progress,
    record: &'a mut RunRecord,
    wake_ups: Option<WakeUps>,
    disk_waits: DiskWaits,
    starved: StarvedProcesses,
    /// Processes whose last incarnation has died of SIGBUS.
    victims: usize,
    /// Deaths of a board's ends, which its run survives.
    board_deaths: Vec<RoleRestart>,
}

/// Runs the plan's processes from start to end, and records how each ended. `processes` holds the
/// reaper already, which alone still runs when they are returned.
///
/// When the barrier has opened the record has its start ticks and `folder` is kept, with the record
/// in it: a launcher that is killed from then on leaves a run that can be merged.
pub fn supervise(
    segments: &Segments,
    mut processes: Processes,
    how: &Presentation<'_>,
    progress: &Progress,
    record: &mut RunRecord,
    folder: &mut RunFolder,
) -> Result<Processes> {
    let spawned = Instant::now();
    processes.start(segments)?;
    let plan = &segments.plan;
    let mut supervisor = Supervisor {
        plan,
        segments,
        containment: Containment::inactive(segments),
        liveness: Liveness::new(plan, plan.clock.now()),
        faults: FaultSchedule::new(plan, record.input.seed),
        strikes: plan.faults.iter().map(|fault| is_by_signal(fault).then_some(0)).collect(),
        command_lock: CommandLockWatch::new(plan),
        journal_locks: JournalLockWatch::new(&segments.journal_locks),
        processes,
        signals: how.signals,
        interruption: how.interruption,
        interrupts: 0,
        progress,
        record,
        wake_ups: None,
        disk_waits: DiskWaits::default(),
        starved: StarvedProcesses::default(),
        victims: 0,
        board_deaths: Vec::new(),
    };
    progress.phase("starting", 0);
    let mut counts_before = KernelCounts::default();
    let mut outcome = supervisor.wait_until_ready(how.start_timeout)?;
    if outcome == RunOutcome::Complete {
        counts_before = KernelCounts::now();
        // A benchmark may last a millisecond, in which the launcher writes no file.
        let early = (!plan.is_trading()).then(|| supervisor.record.save(&folder.path));
        supervisor.open(spawned);
        // From here on the run is kept: any error is how it ended.
        folder.keep();
        let saved = early.unwrap_or_else(|| supervisor.record.save(&folder.path));
        outcome = saved
            .map_err(anyhow::Error::from)
            .and_then(|()| if plan.is_trading() { supervisor.play() } else { supervisor.play_measured() })
            .unwrap_or_else(|error| failure("launcher", plan.launcher_pid, format!("{error:#}")));
    }
    segments.control.set_state(RunState::Stop);
    let exit = match outcome {
        RunOutcome::Interrupted => ExitTime::Fixed(INTERRUPTED_GRACE),
        _ => ExitTime::Extended(SHUTDOWN_GRACE),
    };
    supervisor.processes.end_roles(exit);
    supervisor.containment.record_end(&supervisor.processes, &plan.clock);
    let outcome = supervisor.check_exits(outcome);
    let Supervisor { processes, containment, record, strikes, wake_ups, disk_waits, board_deaths, .. } =
        supervisor;
    record.warnings.extend(disk_waits.warnings(plan));
    record.outcome = outcome;
    record.exits = processes.exits();
    record.strikes = strikes;
    (record.incidents, record.role_restarts, record.outages) = containment.into_lists();
    record.role_restarts.extend(board_deaths);
    let cores: BTreeSet<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
    let since = KernelCounts::now().since(&counts_before, &cores);
    record.kernel = Some(KernelAccount { launcher: wake_ups, ..since });
    Ok(processes)
}

impl Supervisor<'_> {
    /// Opens the barrier: every thread is ready. `spawned`: when the first process was started.
    fn open(&mut self, spawned: Instant) {
        // Slightly in the future, so that every thread has left the barrier at time zero.
        let lead_ns = 2_000_000 + 200_000 * self.plan.threads.len() as u64;
        let start_ticks = self.plan.clock.now() + (lead_ns as f64 / self.plan.ns_per_tick) as u64;
        self.record.startup_ns = spawned.elapsed().as_nanos() as u64;
        self.record.clock.start_ticks = start_ticks;
        self.containment = Containment::new(self.segments, start_ticks);
        // Each thread has published its id; what it writes from now on is not trusted.
        self.observe_threads();
        self.liveness.open(self.plan.clock.now());
        self.segments.control.go(start_ticks);
    }

    fn status(&self, thread: usize) -> ThreadStatus {
        status::read(&self.segments.threads[thread])
    }

    fn state(&self, thread: usize) -> ThreadState {
        status::state(&self.segments.threads[thread])
    }

    fn observe_threads(&mut self) {
        for (thread, words) in self.segments.threads.iter().enumerate() {
            let pulse = status::sample_liveness(words);
            // Read the clock after the pulse: the pulse cannot be later.
            self.liveness.observe(thread, pulse, self.plan.clock.now());
        }
    }

    /// Sleeps for `longest` at most, then checks for failures and for a signal that ends the run.
    fn poll_within(&mut self, longest: Duration) -> Result<Option<RunOutcome>> {
        let found = self.poll(longest)?;
        self.interrupts = self.interrupts.saturating_add(self.signals.take_requests());
        let is_ended = self.interrupts >= self.interruption.max_signals();
        let found = found.or(is_ended.then_some(RunOutcome::Interrupted));
        let taken = self.check_memory();
        // Lost memory reads as zeros: no strategy is blamed for that.
        Ok(if lost_memory::was_hit(self.segments) { taken.or(found) } else { found.or(taken) })
    }

    /// Returns the run's failure if the launcher or a process has accessed lost memory.
    fn check_memory(&mut self) -> Option<RunOutcome> {
        let victims = self.processes.all.iter().filter(|process| lost_memory::is_victim(process)).count();
        let is_new = victims > std::mem::replace(&mut self.victims, victims);
        let is_gone = lost_memory::was_hit(self.segments)
            || (is_new && !lost_memory::lost_segments(self.segments).is_empty());
        is_gone.then(|| lost_memory::failure(self.plan.launcher_pid))
    }

    fn poll(&mut self, longest: Duration) -> Result<Option<RunOutcome>> {
        let pause =
            longest.min(self.liveness.max_interval()).min(self.until_fault()).min(self.until_restart());
        let pause = if self.containment.is_repairing() {
            self.containment.wait_for_engine(BUSY_POLL_INTERVAL);
            Duration::ZERO
        } else if self.containment.is_restarting() {
            BUSY_POLL_INTERVAL.min(pause)
        } else {
            pause
        };
        self.processes.wait(Some(self.signals.as_fd()), pause)?;
        self.processes.watch_reaper(self.segments);
        for said in self.command_lock.poll().into_iter().chain(self.journal_locks.poll()) {
            complain(&format!("note: {said}"));
            self.record.warnings.push(said);
        }
        self.liveness.mark_awake(self.plan.clock.now());
        self.observe_threads();
        self.query_cpu_accounts();
        self.note_disk_waits();
        self.signal_faults();
        let notes = self.containment.poll(&mut self.processes, &mut self.liveness, &self.plan.clock)?;
        notes.iter().for_each(|note| complain(note));
        let ended = self.check_early_exits()?;
        Ok(ended.or_else(|| self.check_liveness()).or_else(|| self.check_violations()))
    }

    fn engine(&self) -> Option<AgentCounters> {
        orchestrator(self.plan, &self.segments.threads)
    }

    /// Runs trading until every strategy has all its reports.
    fn play(&mut self) -> Result<RunOutcome> {
        let total = self.plan.trading().total_orders();
        let max_delay = Duration::from_nanos(self.plan.trading().max_delay_ns);
        let (mut drain, mut draining, mut memory_sampled) = (None, false, false);
        let mut stall = StallWatch::new(self.plan.trading().max_delay_ns);
        // With exchanges, resting orders expire at the end of trading.
        let mut closing = self.plan.trading().books().next().map(|_| StallWatch::with_limit(waits::QUIET));
        let last_due = self.last_due();
        self.progress.phase("firing", total);
        let sleeps = self.count_sleeps();
        let mut samples = OpenOrderSamples::new(self.record.clock.start_ticks);
        loop {
            let (sent, open) = self.containment.sent_and_open();
            samples.record(self.plan.clock.now(), open);
            self.record.open_orders = Some(samples.totals());
            if !memory_sampled && sent >= total / 2 {
                // Once: the kernel walks the page tables for it.
                memory_sampled = true;
                self.record.pss_bytes =
                    self.processes.all.iter().map(|it| proportional_memory(it.pid())).sum();
                self.sample_memory();
            }
            if sent >= total {
                self.wake_ups = self.wake_ups.or_else(|| self.wake_ups_since(sleeps));
            }
            if self.awaited().next().is_none() && !self.containment.is_role_restarting() {
                self.sample_memory();
                if let Some(outcome) = self.wait_for_orderly_end()? {
                    return Ok(outcome);
                }
                return Ok(if drain.is_some() { RunOutcome::Interrupted } else { RunOutcome::Complete });
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
            if self.interrupts > 0 && drain.is_none() {
                self.segments.control.set_state(RunState::Drain);
                let deadline = self.deadline(max_delay + SHUTDOWN_GRACE).stretched_to(INTERRUPTED_STRETCH);
                drain = Some(DrainWait { deadline, last_progress: (0, self.now_ns()) });
            }
            if let Some(quiet) = &mut closing
                && self.is_trading_over(quiet, sent)
            {
                self.segments.control.set_state(RunState::Drain);
                closing = None;
            }
            if drain.as_mut().is_some_and(|drain| self.is_drain_over(drain)) {
                return Ok(RunOutcome::Interrupted);
            }
            self.query_stall_excuses(&stall);
            if drain.is_none()
                && let Some(what) = self.check_stall(&mut stall)
            {
                let engine = self.plan.thread_of(Role::Orchestrator).unwrap_or(0);
                return Ok(self.failure_of(engine, what));
            }
            let pause = match draining {
                true => POLL_INTERVAL,
                false => poll_interval::pause(Duration::from_nanos(self.now_ns()), last_due),
            };
            if let Some(outcome) = self.poll_within(pause)? {
                return Ok(outcome);
            }
        }
    }

    fn sample_memory(&mut self) {
        self.processes.all.iter_mut().for_each(Process::sample_memory);
    }
}

pub fn orchestrator(plan: &Plan, threads: &[ReadOnlyWords]) -> Option<AgentCounters> {
    let thread = plan.thread_of(Role::Orchestrator)?;
    Some(status::counters_of(&threads[thread], &plan.threads[thread].roles, Role::Orchestrator))
}

/// Returns a number that grows with everything that the orchestrator does with orders.
pub fn progress_count(engine: &AgentCounters) -> u64 {
    use OrchestratorCounter::{Dispatched, Rejected, Reports, Returned};
    // Includes returned reports: a strategy with little CPU time drains its reports slowly.
    [Dispatched, Reports, Rejected, Returned]
        .iter()
        .fold(0, |sum, &counter| sum.wrapping_add(engine.get(counter)))
}

/// Returns the number of orders that were dispatched to venues and are not settled.
pub fn at_venues(engine: &AgentCounters) -> u64 {
    let [dispatched, settled] =
        [OrchestratorCounter::Dispatched, OrchestratorCounter::Settled].map(|counter| engine.get(counter));
    dispatched.saturating_sub(settled)
}

/// Returns `true` if the engine has a report of each dispatched order, and no message waits for a
/// gateway's inbox.
pub fn has_drained(engine: &AgentCounters) -> bool {
    at_venues(engine) == 0 && engine.get(OrchestratorCounter::Waiting) == 0
}

fn failure(process: &str, pid: u32, what: String) -> RunOutcome {
    RunOutcome::Failed { process: process.to_owned(), pid, what }
}

//! Runs the supervisor of a run: observes processes and shared memory, lets it decide
//! ([`Supervisor::step`]), performs its actions, and sleeps until it needs the next step. All
//! processes but the reaper are gone when this returns.

mod command_lock;
mod launcher_load;

use crate::cache_misses::MissCounters;
use crate::cpu_accounts::{accounts_of, has_journal_thread_in_kernel};
use crate::cpu_samples::{sample_of_process, sample_of_thread};
use crate::death_watch::DeathWatch;
use crate::debugger::RunOwner;
use crate::folder::RunFolder;
use crate::prepare::Presentation;
use crate::process::Process;
use crate::progress::{Progress, print_warning};
use crate::resources::LimitWatch;
use crate::samples::OpenOrderSamples;
use crate::signals::Signals;
use crate::spawn::Processes;
use anyhow::{Context, Result};
use command_lock::CommandLockWatch;
use launcher_load::LauncherUsage;
use planner::host::{self, KernelCounts};
use protocol::due_times::DueTimes;
use protocol::plan::{FaultKind, Plan, Role};
use protocol::status::ThreadState;
use record::document::Document;
use record::kernel::{KernelAccount, LauncherLoad};
use record::run::{RunOutcome, RunRecord};
use run_memory::journal_locks::JournalLockWatch;
use run_memory::lost_memory;
use run_memory::segments::Segments;
use run_memory::shared_memory::SharedMemory;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};
use supervision::actions::Action;
use supervision::observations::{
    ExitObservation, ExitingObservation, Observations, ProcessObservation, StallExemptions,
};
use supervision::{
    BUSY_POLL_INTERVAL, SupervisionLimits, SupervisionRecord, Supervisor, TradingProgress, has_journal,
};
use system::clock::Clock;
use system::fault;
use system::process::has_thread;

/// What the supervisor's decisions are performed on.
struct SupervisedRun<'a> {
    plan: &'a Plan,
    memory: SharedMemory<'a>,
    processes: Processes,
    /// Processes whose death the kernel has confirmed, and why others could not be restarted.
    proven_dead: Vec<bool>,
    failed_starts: Vec<Option<String>>,
    signals: &'a Signals,
    /// The locks of the run's threads; `None`: deaths are seen by the pidfds alone.
    death_watch: Option<DeathWatch>,
    /// Number of termination signals that end the run at once.
    max_requests: usize,
    observed: Observations,
    command_lock: CommandLockWatch,
    journal_locks: JournalLockWatch<'a>,
    /// Processes whose last incarnation has died of SIGBUS.
    victims: usize,
    /// Decides which debuggers of strategies are trusted.
    owner: RunOwner,
    limits: LimitWatch<'a>,
    spawned: Instant,
    folder: &'a mut RunFolder,
    record: &'a mut RunRecord,
    progress: &'a Progress,
    measured: Measurements,
    misses: MissCounters,
    outcome: Option<RunOutcome>,
}

/// What is measured while a run trades.
struct Measurements {
    counts_before: KernelCounts,
    samples: OpenOrderSamples,
    launcher_at_start: Option<LauncherUsage>,
    launcher: Option<LauncherLoad>,
    is_memory_sampled: bool,
    /// Whether all orders were sent, and what is sampled then was.
    is_window_over: bool,
    was_trading: bool,
    was_draining: bool,
}

/// Runs the plan's processes from start to end, and records how each ended. `processes` holds the
/// reaper already, which alone still runs when they are returned.
///
/// When the barrier has opened the record has its start ticks and `folder` is kept, with the record
/// in it: a launcher that is killed from then on leaves a run that can be merged.
pub fn supervise(
    segments: &Segments,
    mut processes: Processes,
    presentation: &Presentation<'_>,
    progress: &Progress,
    record: &mut RunRecord,
    folder: &mut RunFolder,
) -> Result<Processes> {
    let spawned = Instant::now();
    processes.start(segments)?;
    let plan = &segments.plan;
    let limits = SupervisionLimits::new(presentation.start_timeout, presentation.interruption.max_signals());
    let due = DueTimes(&segments.schedules);
    let mut supervisor = Supervisor::new(plan, due, limits, record.input.seed, plan.clock.now());
    let mut run = SupervisedRun {
        plan,
        memory: SharedMemory::new(segments),
        processes,
        proven_dead: plan.processes.iter().map(|process| plan.is_spare(process)).collect(),
        failed_starts: vec![None; plan.processes.len()],
        signals: presentation.signals,
        death_watch: DeathWatch::start(segments).ok(),
        max_requests: limits.max_requests,
        observed: Observations::default(),
        command_lock: CommandLockWatch::new(plan),
        journal_locks: JournalLockWatch::new(&segments.journal_locks),
        victims: 0,
        owner: RunOwner::this_process(),
        limits: LimitWatch::new(plan, host::root()),
        spawned,
        folder,
        record,
        progress,
        measured: Measurements::new(0),
        misses: MissCounters::default(),
        outcome: None,
    };
    progress.phase("starting", 0);
    if !plan.is_trading() {
        // A benchmark may last a millisecond, in which the launcher writes no file.
        run.record.save(&run.folder.path)?;
    }
    let outcome = loop {
        let now = run.observe(&supervisor);
        let mut actions = Vec::new();
        supervisor.step(&run.observed, now, &mut actions);
        actions.into_iter().for_each(|action| run.perform(action));
        if let Some(outcome) = run.outcome.take() {
            break outcome;
        }
        run.measure(&supervisor);
        run.wait(&supervisor);
    };
    if !run.measured.is_window_over {
        run.record.misses = run.misses.read();
    }
    let SupervisedRun { processes, record, measured, limits, .. } = run;
    record.warnings.extend(limits.warnings());
    let SupervisionRecord { incidents, role_restarts, outages, additions, fault_injections, warnings } =
        supervisor.into_record();
    record.warnings.extend(warnings);
    record.outcome = outcome;
    record.exits = processes.exits();
    record.fault_injections = fault_injections;
    (record.incidents, record.role_restarts, record.outages) = (incidents, role_restarts, outages);
    record.additions = additions;
    let cores: BTreeSet<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
    let since = KernelCounts::now().since(&measured.counts_before, &cores);
    record.kernel = Some(KernelAccount { launcher: measured.launcher, ..since });
    Ok(processes)
}

impl Measurements {
    /// Begins to measure at time zero of the schedule, in ticks.
    fn new(start_ticks: u64) -> Self {
        Self {
            counts_before: KernelCounts::default(),
            samples: OpenOrderSamples::new(start_ticks),
            launcher_at_start: None,
            launcher: None,
            is_memory_sampled: false,
            is_window_over: false,
            was_trading: false,
            was_draining: false,
        }
    }

    /// Measures the launcher's load until now, unless it was measured before.
    fn measure_launcher(&mut self, now_ns: u64) {
        self.launcher =
            self.launcher.or_else(|| Some(self.launcher_at_start?.until(LauncherUsage::now(now_ns)?)));
    }
}

impl SupervisedRun<'_> {
    fn now_ns(&self) -> u64 {
        let ticks = self.plan.clock.now().saturating_sub(self.record.clock.start_ticks);
        (ticks as f64 * self.plan.ns_per_tick) as u64
    }

    /// Records that the launcher itself failed: the run ends.
    fn fail(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.observed.launcher_error.get_or_insert(format!("{error:#}"));
        }
    }

    /// Sleeps until the supervisor needs the next step.
    fn wait(&mut self, supervisor: &Supervisor<'_>) {
        let pause = if supervisor.awaits_repair() {
            self.memory.wait_for_engine(BUSY_POLL_INTERVAL);
            Duration::ZERO
        } else {
            supervisor.max_pause()
        };
        let watched = self.death_watch.as_ref().map(AsFd::as_fd);
        let others: Vec<BorrowedFd<'_>> = watched.into_iter().chain([self.signals.as_fd()]).collect();
        let waited = self.processes.wait(&others, pause);
        self.death_watch.iter_mut().for_each(DeathWatch::clear);
        self.fail(waited);
        self.processes.watch_reaper(self.memory.segments);
        for expected in self.command_lock.poll().into_iter().chain(self.journal_locks.poll()) {
            print_warning(&format!("note: {expected}"));
            self.record.warnings.push(expected);
        }
    }

    /// Observes the run. Returns the time, in ticks.
    fn observe(&mut self, supervisor: &Supervisor<'_>) -> u64 {
        let now = self.plan.clock.now();
        self.observe_processes(supervisor);
        self.memory.observe(supervisor, &self.plan.clock, &mut self.observed);
        self.observe_accounts(supervisor, now);
        let requests = self.signals.take_requests();
        self.observed.termination_requests = self.observed.termination_requests.saturating_add(requests);
        if !supervisor.is_open() {
            self.note_ready_processes();
        }
        now
    }

    fn observe_processes(&mut self, supervisor: &Supervisor<'_>) {
        for (index, process) in self.processes.all.iter_mut().enumerate() {
            if let Some(process) = process {
                process.record_met_limit(|was_killed| self.limits.note_exit(index, was_killed));
            }
        }
        self.observed.processes.clear();
        for (index, process) in self.processes.all.iter_mut().enumerate() {
            let Some(process) = process else {
                let failed_start = self.failed_starts[index].clone();
                self.observed
                    .processes
                    .push(ProcessObservation { failed_start, ..ProcessObservation::unstarted() });
                continue;
            };
            let exit = process.status.map(|status| ExitObservation {
                is_success: status.success(),
                was_killed: status.signal().is_some(),
                text: process.exit_text(),
                last_words: match self.plan.can_lose_board_end(&self.plan.processes[index]) {
                    true if !status.success() => process.stderr_tail(),
                    _ => String::new(),
                },
                is_early: process.has_exited_early(),
            });
            let planned = &self.plan.processes[index];
            let is_lock_free = process.can_prove_death_early()
                && self
                    .death_watch
                    .as_mut()
                    .is_some_and(|watch| watch.is_lock_free(planned, process.child_pid()));
            let is_asked = process.can_prove_death_early() && supervisor.awaits_threads(index);
            // Where the kernel does not answer, the pidfd decides.
            let exiting = is_asked.then(|| process.observe_exiting().ok()).flatten();
            let mut proven = Ok(self.proven_dead[index]);
            if exit.is_some() && !self.proven_dead[index] {
                proven =
                    process.proof_of_death().map(|proof| proof.is_some()).context("cannot watch a process");
            }
            if let Err(error) = &proven {
                self.observed.launcher_error.get_or_insert(format!("{error:#}"));
            }
            self.proven_dead[index] = proven.unwrap_or(false);
            let is_dying = exit.is_none() && supervisor.containment().awaits_exit(index);
            self.observed.processes.push(ProcessObservation {
                pid: process.pid(),
                exit,
                is_proven_dead: self.proven_dead[index],
                is_lock_free,
                exiting: exiting.map(|(count, exiting)| ExitingObservation { count, exiting }),
                failed_start: self.failed_starts[index].clone(),
                cpu: is_dying.then(|| sample_of_process(process.pid())).flatten(),
            });
        }
        let victims = self.processes.started().filter(|process| is_victim(process)).count();
        let is_new = victims > std::mem::replace(&mut self.victims, victims);
        let is_lost = || !lost_memory::lost_segments(self.memory.segments).is_empty();
        self.observed.has_process_lost_memory |= is_new && is_lost();
        let failing = supervisor.failing_process();
        self.observed.last_words =
            failing.and_then(|process| self.processes.all[process].as_ref()).map(Process::stderr_tail);
    }

    /// Asks the kernel about silent threads, and about all processes of a run without progress.
    fn observe_accounts(&mut self, supervisor: &Supervisor<'_>, now: u64) {
        let (liveness, is_still) = (supervisor.liveness(), supervisor.needs_exemptions(now));
        let running = |process: usize| {
            // Only of a process that still runs: its id may be reused otherwise.
            self.processes.all[process].as_ref().filter(|process| process.status.is_none()).map(Process::pid)
        };
        for (index, process) in self.plan.processes.iter().enumerate() {
            // A debugger of an engine stops the whole run: only strategies are exempt.
            let is_strategy = self.plan.roles_of(process).all(|role| matches!(role, Role::Strategy(_)));
            for thread in process.threads.iter().map(|thread| *thread as usize) {
                let containment = supervisor.containment();
                if containment.is_thread_down(thread) {
                    continue;
                }
                let found = &mut self.observed.threads[thread];
                let is_silent = liveness.needs_cpu_account(thread, &found.pulse, now);
                if containment.supervises_thread(thread) && (is_silent || found.state() >= ThreadState::Done)
                {
                    let tid = liveness.tid(thread);
                    // It has no id before its process has started it, nor if it could not be.
                    let is_there = |pid| match tid {
                        0 => found.state() != ThreadState::Failed,
                        tid => has_thread(pid, tid),
                    };
                    let is_gone = running(index).is_some_and(|pid| !is_there(pid));
                    // Its last state may have been published after it was read.
                    found.is_gone = is_gone && self.memory.state(thread) == found.state();
                }
                if is_silent {
                    let pid = running(index);
                    // A thread that is done may be gone: the process's first one is the last to go.
                    let sample = |pid| match found.state() {
                        ThreadState::Done => sample_of_process(pid),
                        _ => sample_of_thread(pid, liveness.tid(thread)),
                    };
                    found.cpu = Some(pid.and_then(sample));
                    // It may have had its core, and gone to sleep, before its account was read.
                    let pulse = self.memory.pulse(thread);
                    if pulse.state == found.pulse.state {
                        (found.pulse, found.ticks) = (pulse, self.plan.clock.now());
                    }
                    found.waits_for_disk =
                        liveness.has_journal(thread) && pid.is_some_and(has_journal_thread_in_kernel);
                }
                if is_strategy && (is_still || liveness.needs_debugger(thread, &found.pulse, now)) {
                    found.debugger = Some(running(index).and_then(|pid| self.owner.debugger_of(pid)));
                }
            }
        }
        self.observed.exemptions = is_still.then(|| {
            let all: Vec<(usize, u32)> =
                (0..self.plan.processes.len()).filter_map(|index| Some((index, running(index)?))).collect();
            let writes = |(index, pid): &&(usize, u32)| {
                has_journal(self.plan, *index) && has_journal_thread_in_kernel(*pid)
            };
            let account = |(_, pid): &(usize, u32)| accounts_of(&[*pid]).pop();
            StallExemptions {
                disk_writer: all.iter().find(writes).map(|(index, _)| *index),
                accounts: supervisor
                    .needs_process_accounts(now)
                    .then(|| all.iter().filter_map(account).collect()),
            }
        });
    }

    /// Marks the processes whose threads have all reached the barrier.
    fn note_ready_processes(&mut self) {
        for (planned, process) in self.plan.processes.iter().zip(&mut self.processes.all) {
            let Some(process) = process else { continue };
            let is_there = |thread: &u32| self.observed.state(*thread as usize) >= ThreadState::Ready;
            if !process.account.is_ready() && planned.threads.iter().all(is_there) {
                process.mark_ready();
                self.misses.attach(self.plan, planned, process.pid());
            }
        }
    }

    /// Performs an action. What fails is observed before the next step.
    fn perform(&mut self, action: Action) {
        let segments = self.memory.segments;
        let written =
            self.memory.perform(&action, |process| self.processes.proof_of_death(segments, process));
        self.fail(written);
        match action {
            Action::OpenBarrier(start_ticks) => self.begin(start_ticks),
            Action::InjectFault(None, FaultKind::Stop) => fault::stop(),
            Action::InjectFault(None, _) => fault::kill(),
            Action::InjectFault(Some(process), FaultKind::Stop) => self.processes.stop(process),
            Action::InjectFault(Some(process), _) | Action::Kill(process) => self.processes.kill(process),
            Action::ConcludeExit(process) => self.processes.conclude_exit(process),
            Action::Restart(process) => {
                let planned = &self.plan.processes[process];
                self.death_watch.iter_mut().for_each(|watch| watch.forget(planned));
                let restarted = self.processes.restart(segments, process);
                // A failed start leaves the last incarnation, whose death is proven.
                self.proven_dead[process] = restarted.is_err();
                self.failed_starts[process] = restarted.err().map(|error| format!("{error:#}"));
            }
            Action::SetKind(process, kind) => self.processes.set_kind(process, kind),
            Action::KeepStandby(process) => self.processes.keep_standby(segments, process),
            Action::Complain(message) => print_warning(&message),
            Action::EndProcesses(time) => {
                let (requests, max) = (&mut self.observed.termination_requests, self.max_requests);
                self.processes.end_roles(time, || {
                    *requests = requests.saturating_add(self.signals.take_requests());
                    *requests >= max
                });
            }
            Action::End(outcome) => self.outcome = Some(outcome),
            Action::SetRunState(_)
            | Action::Fence(..)
            | Action::FenceThread(..)
            | Action::Renew(..)
            | Action::Forget(_)
            | Action::Reset(_)
            | Action::ResetThread(_) => {}
        }
    }

    /// Keeps the run, whose barrier has opened: any error from here on is how it ended.
    fn begin(&mut self, start_ticks: u64) {
        self.record.startup_ns = self.spawned.elapsed().as_nanos() as u64;
        self.record.clock.start_ticks = start_ticks;
        self.folder.keep();
        self.measured = Measurements::new(start_ticks);
        self.measured.counts_before = KernelCounts::now();
        self.misses.begin();
        if !self.plan.is_trading() {
            return;
        }
        let saved = self.record.save(&self.folder.path).map_err(anyhow::Error::from);
        self.fail(saved);
        self.measured.launcher_at_start = LauncherUsage::now(self.now_ns());
        self.progress.phase("firing", self.plan.trading().total_orders());
    }

    /// Measures and shows the run in progress.
    fn measure(&mut self, supervisor: &Supervisor<'_>) {
        if !supervisor.is_trading() {
            if std::mem::take(&mut self.measured.was_trading) {
                // On a busy machine there may be no step between the last order and the end.
                self.measured.measure_launcher(self.now_ns());
                self.processes.all.iter_mut().flatten().for_each(Process::sample_memory);
            }
            return;
        }
        let TradingProgress { sent, open, is_draining } = supervisor.progress();
        let (total, now_ns) = (self.plan.trading().total_orders(), self.now_ns());
        let measured = &mut self.measured;
        measured.was_trading = true;
        measured.samples.record(self.plan.clock.now(), open);
        self.record.open_orders = Some(measured.samples.totals());
        if !measured.is_memory_sampled && sent >= total / 2 {
            // Once: the kernel walks the page tables for it.
            measured.is_memory_sampled = true;
            self.record.pss_bytes =
                self.processes.all.iter_mut().flatten().map(Process::sample_mappings).sum();
            self.processes.all.iter_mut().flatten().for_each(Process::sample_memory);
        }
        if sent >= total && !std::mem::replace(&mut measured.is_window_over, true) {
            // The last reports are on their way: what is sampled now disturbs no order that is due.
            self.processes.all.iter_mut().flatten().for_each(|process| {
                let _ = process.sample_mappings();
            });
            self.record.misses = self.misses.read();
        }
        let measured = &mut self.measured;
        if sent >= total {
            measured.measure_launcher(now_ns);
        }
        if is_draining && !std::mem::replace(&mut measured.was_draining, true) {
            self.progress.phase("draining", sent);
        }
        self.progress.at(if is_draining { sent - open.min(sent) } else { sent });
    }
}

/// SIGBUS, the same number on all supported architectures.
const SIGBUS: i32 = 7;

/// Returns `true` if the process was ended by the signal for an access to lost memory.
fn is_victim(process: &Process) -> bool {
    process.status.is_some_and(|status| status.signal() == Some(SIGBUS))
}

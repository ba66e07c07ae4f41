//! The supervisor of a run: decides from observations which actions follow, from the start of the
//! first process to the end of the last. A role that dies, hangs or reports an error ends the run,
//! unless its death is contained ([`containment`]); so does Ctrl-C.
//!
//! It is pure: no process, clock, file or signal inside. [`Supervisor::step`] takes what was
//! observed and gives actions. The runtime observes and performs them
//! (`runtime::supervise`); the simulation does the same with simulated processes
//! (crate `simulation`).
//!
//! ```text
//! starting ─ all ready ─▶ trading ─ nobody awaited ─▶ closing ─▶ draining ─▶ settling
//!                            │                                                   │
//!                            └── interrupted, failed, stalled ──▶ stopping ◀─────┘
//! ```
//!
//! An order may rest at an exchange for ever, so resting orders expire once no more orders come:
//! every planned order was sent and has arrived; or, where strategies send fewer, there was no
//! progress for some seconds and no order is due. That is before the run counts as stalled. Then
//! exchanges close and the engine drains.
#![forbid(unsafe_code)]

pub mod actions;
pub mod containment;
mod debugger_stops;
mod disk_waits;
mod early_deaths;
mod failures;
mod faults;
mod measured;
pub mod observations;
mod pauses;
mod progress;
pub mod restart_policy;
mod stall_exemptions;
#[cfg(test)]
mod steps;
pub mod stuck;

pub use failures::memory_failure;
pub use pauses::BUSY_POLL_INTERVAL;
pub use progress::has_journal;
use protocol::due_times::DueTimes;
use protocol::index::StrategyIndex;

use crate::faults::{DueFault, FaultSchedule, Presence, is_by_signal};
use crate::stuck::{Deadline, Liveness, StallWatch};
use actions::{Action, Actions, ExitTime};
use containment::Containment;
use debugger_stops::DebuggerStops;
use disk_waits::DiskWaits;
use early_deaths::EarlyDeaths;
use failures::FailedProcess;
use measured::MeasuredLoops;
use observations::Observations;
use progress::DrainWait;
use protocol::control::RunState;
use protocol::plan::{Plan, Role};
use protocol::role::RoleKind;
use protocol::status::ThreadState;
use record::run::{Addition, Incident, Outage, RoleRestart, RunOutcome};
use stall_exemptions::StarvedProcesses;
use std::time::Duration;

/// Maximum time for the roles of an interrupted run to exit, whatever the roles wait for.
pub const INTERRUPTED_GRACE: Duration = Duration::from_secs(2);
/// Maximum number of waits at the end of a run for engine and exchanges that are away: longer than
/// a process may take to start. Without it, a role that crashes repeatedly would be awaited
/// forever.
const MAX_END_WAITS: u32 = 12;
/// Maximum length of the extended drain of an interrupted run, in limits.
const INTERRUPTED_STRETCH: u64 = 2;

/// The time limits that a run's supervisor applies, in addition to the liveness deadline.
#[derive(Clone, Copy, Debug)]
pub struct SupervisionLimits {
    /// Maximum time for the processes of the run to become ready.
    pub start: Duration,
    /// Time from the decision to open the start barrier to the schedule's time zero: a part per
    /// run, and a part per thread.
    pub lead: (Duration, Duration),
    /// Maximum time without progress of the run, in addition to the longest delay of a venue.
    pub silence: Duration,
    /// Time without progress after which trading counts as over, in a run with exchanges.
    pub quiet: Duration,
    /// Maximum time for the roles to finish and exit, and for an interrupted run to drain in
    /// addition to its longest delay. Extended while they wait for a core.
    pub grace: Duration,
    /// Maximum time for the roles of an interrupted run to exit, whatever the roles wait for.
    pub interrupted_grace: Duration,
    /// Idle time of the engine after which it counts as drained.
    pub idle: Duration,
    /// Maximum time for a strategy that an operator ends to read the last reports of its orders.
    pub read: Duration,
    /// Time that a failed strategy has to exit, so that the kernel can report its exit status.
    pub exit_wait: Duration,
    /// Maximum time from SIGKILL to the exit of a process. A process that does not exit may still
    /// write its memory.
    pub kill: Duration,
    /// Number of termination signals after which the run ends at once.
    pub max_requests: usize,
}

impl SupervisionLimits {
    /// Creates the supervisor's time limits for a run of real processes.
    pub const fn new(start: Duration, max_requests: usize) -> Self {
        Self {
            start,
            // Slightly in the future, so that every thread has left the barrier at time zero.
            lead: (Duration::from_millis(2), Duration::from_micros(200)),
            silence: Duration::from_secs(10),
            quiet: Duration::from_secs(5),
            grace: Duration::from_secs(5),
            interrupted_grace: INTERRUPTED_GRACE,
            idle: Duration::from_millis(20),
            read: Duration::from_millis(50),
            exit_wait: Duration::from_millis(200),
            kill: Duration::from_secs(30),
            max_requests,
        }
    }
}

/// A bounded wait near the end of a run.
struct BoundedWait {
    deadline: Deadline,
    began_ns: u64,
    /// Waits before it that were over while the engine or an exchange was away.
    earlier: u32,
}

/// The wait until the engine has drained.
struct EngineDrain {
    wait: BoundedWait,
    /// The engine's work at the last step, and since when it has not changed.
    work: u64,
    idle_since_ns: u64,
}

/// What the run waits for.
enum Phase {
    /// Until every thread is ready.
    Starting(Deadline),
    /// Until every strategy has all its reports.
    Trading,
    /// Until every measured loop of a benchmark has ended.
    Measuring(MeasuredLoops),
    /// Until every exchange has written its last book, which it does when it finds the run
    /// draining.
    Closing(BoundedWait),
    /// Until the engine has a report of each dispatched order and was idle for a while. Orders of
    /// dead strategies are still in flight then, and so are those of a strategy that falsely
    /// reported done: the engine may not have taken them yet.
    Draining(EngineDrain),
    /// Until roles that died just now have restarted, since they have final records to write.
    Settling(BoundedWait),
    /// Until a failed process has exited.
    Failing(FailedProcess),
    /// Until every process is gone.
    Stopping(RunOutcome),
    Ended,
}

/// What follows from a phase.
enum NextPhase {
    Wait(Phase),
    /// The phase is over, and the next one begins in the same step.
    Enter(Phase),
    End(RunOutcome),
}

/// The record of a run's supervisor: deaths, restarts, faults and warnings.
pub struct SupervisionRecord {
    /// Contained deaths of strategies, in the order of their detection.
    pub incidents: Vec<Incident>,
    /// Deaths of engine and exchanges, which were restarted from their journals.
    pub role_restarts: Vec<RoleRestart>,
    /// Deaths of gateways during the run.
    pub outages: Vec<Outage>,
    /// Strategies that operators added to the run.
    pub additions: Vec<Addition>,
    /// Number of injections of each fault of the plan; `None` for a fault that the launcher does
    /// not inject.
    pub fault_injections: Vec<Option<u64>>,
    /// Warnings about the run, one line each.
    pub warnings: Vec<String>,
}

/// The number of sent and open orders of a run in progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct TradingProgress {
    /// Number of orders sent by all incarnations of all strategies.
    pub sent: u64,
    /// Number of orders without a last report, of the running incarnations.
    pub open: u64,
    /// Whether no more orders are expected, so that only open ones remain.
    pub is_draining: bool,
}

/// The supervisor of one run: a state machine from observations to actions. Pure: see the module.
pub struct Supervisor<'a> {
    plan: &'a Plan,
    due: DueTimes<'a>,
    limits: SupervisionLimits,
    phase: Phase,
    /// When it was created, in ticks.
    began: u64,
    /// The tick of the last step.
    now: u64,
    /// Time zero of the schedule, in ticks; 0: the barrier is closed.
    start_ticks: u64,
    /// Contained deaths, once the barrier has opened.
    containment: Containment<'a>,
    liveness: Liveness,
    faults: FaultSchedule,
    fault_injections: Vec<Option<u64>>,
    /// Number of termination signals so far.
    requests: usize,
    stall: StallWatch,
    /// With exchanges, resting orders expire at the end of trading: until then.
    closing: Option<StallWatch>,
    /// The wait of an interrupted run.
    drain: Option<DrainWait>,
    progress: (u64, u64),
    is_draining: bool,
    is_restarting: bool,
    last_due: Option<Duration>,
    disk_waits: DiskWaits,
    debugger_stops: DebuggerStops,
    early_deaths: EarlyDeaths,
    starved: StarvedProcesses,
    /// Deaths of a board's ends, which its run survives.
    board_deaths: Vec<RoleRestart>,
}

impl<'a> Supervisor<'a> {
    /// Creates the supervisor of a run whose processes are being started. `seed`: draws the victims
    /// of faults.
    pub fn new(plan: &'a Plan, due: DueTimes<'a>, limits: SupervisionLimits, seed: u64, now: u64) -> Self {
        let trading = plan.trading();
        let max_delay = Duration::from_nanos(trading.max_delay_ns);
        let now_ns = (now as f64 * plan.ns_per_tick) as u64;
        Self {
            plan,
            last_due: progress::last_due(due, plan),
            due,
            limits,
            phase: Phase::Starting(Deadline::within(limits.start, now_ns)),
            began: now,
            now,
            start_ticks: 0,
            containment: Containment::inactive(plan),
            liveness: Liveness::new(plan, now),
            faults: FaultSchedule::new(plan, seed),
            fault_injections: plan.faults.iter().map(|fault| is_by_signal(fault).then_some(0)).collect(),
            requests: 0,
            stall: StallWatch::with_limit(limits.silence.saturating_add(max_delay)),
            closing: trading.books().next().map(|_| StallWatch::with_limit(limits.quiet)),
            drain: None,
            progress: (0, 0),
            is_draining: false,
            is_restarting: false,
            disk_waits: DiskWaits::default(),
            debugger_stops: DebuggerStops::default(),
            early_deaths: EarlyDeaths::default(),
            starved: StarvedProcesses::default(),
            board_deaths: Vec::new(),
        }
    }

    /// Decides which actions follow from the observations at the tick `now`, and passes them to
    /// `out`. The actions must be performed in order, before anything is observed again.
    pub fn step(&mut self, observed: &Observations, now: u64, out: &mut impl Actions) {
        self.decide(observed, now, out);
    }

    /// The step, compiled once.
    fn decide(&mut self, observed: &Observations, now: u64, out: &mut dyn Actions) {
        self.now = now;
        let outcome = match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Ended => return,
            Phase::Stopping(outcome) => {
                self.containment.record_end(observed, now);
                return out.perform(Action::End(self.check_exits(outcome, observed)));
            }
            Phase::Failing(failed) => {
                let outcome = self.await_last_words(&failed, observed);
                self.phase = Phase::Failing(failed);
                outcome.map(|outcome| match observed.has_launcher_lost_memory {
                    true => memory_failure(self.plan.launcher_pid),
                    false => outcome,
                })
            }
            phase => {
                self.phase = phase;
                self.watch(observed, out).or_else(|| self.proceed(observed, out))
            }
        };
        self.is_restarting = self.containment.is_restarting(observed);
        if let Some(outcome) = outcome {
            let exit = match outcome {
                RunOutcome::Interrupted => ExitTime::Fixed(self.limits.interrupted_grace),
                _ => ExitTime::Extended(self.limits.grace),
            };
            out.perform(Action::SetRunState(RunState::Stop));
            out.perform(Action::EndProcesses(exit));
            self.phase = Phase::Stopping(outcome);
        }
    }

    /// Handles deaths and faults. Returns the outcome of a run that failed or is ended by a signal.
    fn watch(&mut self, observed: &Observations, out: &mut dyn Actions) -> Option<RunOutcome> {
        let now = self.now;
        self.liveness.mark_awake(now);
        for (thread, found) in observed.threads.iter().enumerate() {
            self.liveness.observe(thread, found.pulse, found.ticks);
        }
        for (thread, found) in observed.threads.iter().enumerate() {
            if let Some(sample) = found.cpu {
                self.liveness.record_cpu_sample(thread, sample);
            }
            if found.waits_for_disk {
                self.liveness.record_disk_wait(thread);
            }
            if let Some(debugger) = &found.debugger {
                self.liveness.record_debugger(thread, debugger.is_some());
            }
        }
        self.note_disk_waits(out);
        self.note_debuggers(observed, out);
        self.inject_faults(observed, out);
        self.early_deaths.step(&self.containment, observed, self.now_ns(), out);
        let is_trading = self.is_trading();
        self.containment.step(observed, &mut self.liveness, (now, is_trading), out);
        let found = self.find_failure(observed, out);
        self.requests = observed.termination_requests;
        let is_ended = self.requests >= self.limits.max_requests;
        let ended = is_ended.then_some(RunOutcome::Interrupted).filter(|_| self.failing_process().is_none());
        let found = found.or(ended);
        let is_lost = observed.has_launcher_lost_memory || observed.has_process_lost_memory;
        let lost = is_lost.then(|| memory_failure(self.plan.launcher_pid));
        // Lost memory reads as zeros: no strategy is blamed for that.
        if observed.has_launcher_lost_memory { lost } else { found.or(lost) }
    }

    /// Advances the run as far as possible. Returns its outcome once it is over.
    fn proceed(&mut self, observed: &Observations, out: &mut dyn Actions) -> Option<RunOutcome> {
        self.record_exemptions(observed, out);
        loop {
            let next = match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Starting(deadline) => self.start(deadline, observed, out),
                Phase::Trading => self.trade(observed, out),
                Phase::Measuring(loops) => self.measure(loops, observed, out),
                Phase::Closing(wait) => self.close(wait, observed, out),
                Phase::Draining(drain) => self.drain_engine(drain, observed),
                Phase::Settling(wait) => self.settle(wait, observed),
                phase @ (Phase::Failing(_) | Phase::Stopping(_) | Phase::Ended) => NextPhase::Wait(phase),
            };
            match next {
                NextPhase::Wait(phase) => {
                    self.phase = phase;
                    return None;
                }
                NextPhase::Enter(phase) => self.phase = phase,
                NextPhase::End(outcome) => return Some(outcome),
            }
        }
    }

    /// Waits until every thread reports ready, then opens the barrier.
    fn start(&mut self, mut deadline: Deadline, observed: &Observations, out: &mut dyn Actions) -> NextPhase {
        let is_spare = |thread| self.plan.is_spare(&self.plan.processes[self.owner_index(thread)]);
        let mut threads = 0..observed.threads.len();
        let late = threads.find(|thread| observed.state(*thread) < ThreadState::Ready && !is_spare(*thread));
        if let Some(late) = late {
            if self.requests > 0 {
                return NextPhase::End(RunOutcome::Interrupted);
            }
            if self.is_wait_over(&mut deadline) {
                let (timeout, hint) = (self.limits.start, self.attach_hint(late));
                let what = format!("hangs at the start: not ready after {timeout:?}{hint}");
                return NextPhase::End(self.failure_of(late, what, observed));
            }
            return NextPhase::Wait(Phase::Starting(deadline));
        }
        let (lead, each) = self.limits.lead;
        let lead_ns = (lead + each * self.plan.threads.len() as u32).as_nanos();
        self.start_ticks = self.now + (lead_ns as f64 / self.plan.ns_per_tick) as u64;
        self.containment =
            Containment::new(self.plan, self.start_ticks, (self.limits.kill, self.limits.read));
        // Each thread has published its id; what it writes from now on is not trusted.
        self.liveness.open(self.now);
        out.perform(Action::OpenBarrier(self.start_ticks));
        NextPhase::Wait(match self.plan.is_trading() {
            true => Phase::Trading,
            false => Phase::Measuring(MeasuredLoops::new(self.now_ns())),
        })
    }

    /// Waits until every strategy has all its reports.
    fn trade(&mut self, observed: &Observations, out: &mut dyn Actions) -> NextPhase {
        let (sent, open) = self.containment.sent_and_open(observed);
        self.progress = (sent, open);
        if self.awaited(observed).next().is_none() && !self.containment.is_role_restarting(observed) {
            return NextPhase::Enter(Phase::Closing(self.begin_wait()));
        }
        self.is_draining |= self.has_sent_all(observed) || self.drain.is_some();
        if self.requests > 0 && self.drain.is_none() {
            out.perform(Action::SetRunState(RunState::Drain));
            let max_delay = Duration::from_nanos(self.plan.trading().max_delay_ns);
            let deadline = Deadline::within(max_delay + self.limits.grace, self.now_ns());
            let deadline = deadline.stretched_to(INTERRUPTED_STRETCH);
            self.drain = Some(DrainWait { deadline, last_progress: (0, self.now_ns()) });
        }
        if let Some(mut quiet) = self.closing.take() {
            match self.is_trading_over(observed, &mut quiet, sent) {
                true => out.perform(Action::SetRunState(RunState::Drain)),
                false => self.closing = Some(quiet),
            }
        }
        if let Some(mut drain) = self.drain.take() {
            if self.is_drain_over(observed, &mut drain) {
                return NextPhase::End(RunOutcome::Interrupted);
            }
            self.drain = Some(drain);
            return NextPhase::Wait(Phase::Trading);
        }
        let mut stall = self.stall;
        let stalled = self.check_stall(observed, &mut stall);
        self.stall = stall;
        let engine = self.plan.thread_of(Role::Orchestrator).unwrap_or(0);
        match stalled {
            Some(what) => NextPhase::End(self.failure_of(engine, what, observed)),
            None => NextPhase::Wait(Phase::Trading),
        }
    }

    /// Waits until every exchange has written its last book.
    fn close(&mut self, mut wait: BoundedWait, observed: &Observations, out: &mut dyn Actions) -> NextPhase {
        if observed.is_any_tape_open() {
            out.perform(Action::SetRunState(RunState::Drain));
            if !self.is_wait_over(&mut wait.deadline) {
                return NextPhase::Wait(Phase::Closing(wait));
            }
        }
        let wait = self.begin_wait();
        let (idle_since_ns, work) = (wait.began_ns, observed.engine.map_or(0, |engine| engine.work));
        NextPhase::Enter(Phase::Draining(EngineDrain { wait, work, idle_since_ns }))
    }

    /// Waits until the engine has drained.
    fn drain_engine(&mut self, mut drain: EngineDrain, observed: &Observations) -> NextPhase {
        let now = self.now_ns();
        if let Some(engine) = &observed.engine {
            // The counters of a successor that has not recovered yet are zero.
            if engine.work != drain.work || self.containment.is_role_restarting(observed) {
                (drain.work, drain.idle_since_ns) = (engine.work, now);
            }
            let idle = Duration::from_nanos(now.saturating_sub(drain.idle_since_ns));
            let has_drained = idle >= self.limits.idle && engine.has_drained();
            if !has_drained && !self.is_wait_over(&mut drain.wait.deadline) {
                return NextPhase::Wait(Phase::Draining(drain));
            }
        }
        // No more faults are injected.
        self.faults.clear();
        let earlier = drain.wait.earlier + 1;
        NextPhase::Enter(Phase::Settling(BoundedWait { earlier, ..self.begin_wait() }))
    }

    /// Waits until roles that died just now have restarted, and what they had not finished has
    /// drained; and until the engine has repaired the deaths of strategies.
    fn settle(&mut self, mut wait: BoundedWait, observed: &Observations) -> NextPhase {
        let is_awaited = self.containment.is_role_restarting(observed) && wait.earlier < MAX_END_WAITS;
        if is_awaited && !self.is_wait_over(&mut wait.deadline) {
            let (work, idle_since_ns) = (observed.engine.map_or(0, |engine| engine.work), self.now_ns());
            return NextPhase::Wait(Phase::Draining(EngineDrain { wait, work, idle_since_ns }));
        }
        let is_pending = self.containment.is_restarting(observed) || self.containment.is_repairing();
        if is_pending && !self.is_wait_over(&mut wait.deadline) {
            return NextPhase::Wait(Phase::Settling(wait));
        }
        let is_interrupted = self.drain.is_some();
        NextPhase::End(if is_interrupted { RunOutcome::Interrupted } else { RunOutcome::Complete })
    }

    const fn begin_wait(&self) -> BoundedWait {
        let began_ns = self.now_ns();
        BoundedWait { deadline: Deadline::within(self.limits.grace, began_ns), began_ns, earlier: 0 }
    }

    /// Injects the faults that are signals and due ([`crate::faults`]).
    fn inject_faults(&mut self, observed: &Observations, out: &mut dyn Actions) {
        if self.start_ticks == 0 || self.faults.next_due_ns().is_none() {
            return;
        }
        let strategies = StrategyIndex::first(self.plan.trading().strategies);
        let presences: Vec<Presence> = strategies.map(|strategy| self.presence(strategy, observed)).collect();
        for DueFault { fault, kind, target, .. } in self.faults.take_due(self.now_ns(), &presences) {
            let Some(role) = target else {
                self.fault_injections[fault] = self.fault_injections[fault].map(|times| times + 1);
                out.perform(Action::InjectFault(None, kind));
                continue;
            };
            // A role that is done gets no fault any more.
            let is_done = |thread| observed.state(thread) == ThreadState::Done;
            if role.kind() != RoleKind::Strategy && self.plan.thread_of(role).is_some_and(is_done) {
                continue;
            }
            let process = self.plan.process_of(role);
            if process.is_some_and(|process| observed.exited_normally(process).is_none()) {
                self.fault_injections[fault] = self.fault_injections[fault].map(|times| times + 1);
                self.containment.record_fault(role, self.now);
                out.perform(Action::InjectFault(process, kind));
            }
        }
    }

    /// Returns whether a strategy can receive a fault.
    fn presence(&self, strategy: StrategyIndex, observed: &Observations) -> Presence {
        let role = Role::Strategy(strategy);
        let process = self.plan.process_of(role);
        presence(
            self.plan.thread_of(role).map(|thread| observed.state(thread)),
            self.containment.is_running(strategy),
            process.is_some_and(|process| observed.exited_normally(process).is_none()),
        )
    }

    /// Returns the time since the start of the run at the last step, in nanoseconds.
    const fn now_ns(&self) -> u64 {
        self.ns(self.now)
    }

    const fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.plan.ns_per_tick) as u64
    }

    /// Returns the number of sent and open orders of the run so far.
    pub const fn progress(&self) -> TradingProgress {
        let (sent, open) = self.progress;
        TradingProgress { sent, open, is_draining: self.is_draining }
    }

    /// Returns `true` while the strategies of the supervised run trade.
    pub const fn is_trading(&self) -> bool {
        matches!(self.phase, Phase::Trading)
    }

    /// Returns `true` once the start barrier of the run was opened.
    pub const fn is_open(&self) -> bool {
        self.start_ticks > 0
    }

    /// Returns the detector of hung threads; the supervisor's caller asks it about which threads to
    /// query the kernel.
    pub const fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Returns `true` if the supervisor's caller must observe which threads of this killed process
    /// are exiting.
    pub fn awaits_threads(&self, process: usize) -> bool {
        self.early_deaths.awaits_threads(process)
    }

    /// Returns the supervised processes with their deaths, from which the supervisor's caller
    /// decides what to observe of each process.
    pub const fn containment(&self) -> &Containment<'a> {
        &self.containment
    }

    /// Converts the supervisor to its record of the run: deaths, restarts, faults and warnings.
    pub fn into_record(self) -> SupervisionRecord {
        let mut warnings = self.disk_waits.warnings(self.plan);
        warnings.extend(self.debugger_stops.warnings(self.plan));
        let (incidents, mut role_restarts, outages, additions) = self.containment.into_lists();
        role_restarts.extend(self.board_deaths);
        SupervisionRecord {
            incidents,
            role_restarts,
            outages,
            additions,
            fault_injections: self.fault_injections,
            warnings,
        }
    }
}

/// Decides from the thread's own state, which is trusted only if the process exists and no incident
/// is open: a strategy that keeps reporting `Ready` would be waited for, but the liveness check
/// finds it.
const fn presence(state: Option<ThreadState>, is_living: bool, has_process: bool) -> Presence {
    match state {
        Some(ThreadState::Running) if is_living => Presence::Running,
        Some(ThreadState::Ready) if is_living && has_process => Presence::Starting,
        _ => Presence::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strategies_that_can_run_are_waited_for() {
        use ThreadState::{Done, Failed, Ready, Running, Starting};
        let mut found = Vec::new();
        // `None`: the plan has no thread for it.
        for state in [None, Some(Starting), Some(Ready), Some(Running), Some(Done), Some(Failed)] {
            for (is_living, has_process) in [(true, true), (true, false), (false, true), (false, false)] {
                found.push((state, is_living, has_process, presence(state, is_living, has_process)));
            }
        }
        found.retain(|(.., presence)| *presence != Presence::Gone);
        let begins = (Some(Ready), true, true, Presence::Starting);
        let runs = [true, false].map(|has_process| (Some(Running), true, has_process, Presence::Running));
        assert_eq!(found, [begins, runs[0], runs[1]]);
    }
}

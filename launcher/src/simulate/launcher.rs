//! The launcher of a simulated run: real incidents, liveness deadlines and faults, with system
//! calls replaced by [`SimulatedProcesses`].

use super::processes::SimulatedProcesses;
use super::scenario::{LIVENESS_NS, Scenario, ScenarioKind};
use super::{LAUNCHER_PID, START_TICKS};
use crate::faults::{DueFault, FaultSchedule, Presence};
use crate::runtime::containment::Containment;
use crate::runtime::restart_policy::ProcessControl;
use crate::runtime::setup::Segments;
use crate::runtime::stuck::Liveness;
use crate::runtime::supervise::{has_drained, have_all_arrived, orchestrator, progress_count};
use analysis::record::{Incident, RoleRestart, RunOutcome};
use protocol::commands::{Command, CommandWriter};
use protocol::control::RunState;
use protocol::counters::AgentCounters;
use protocol::plan::{FaultKind, Plan, Role};
use protocol::status::{self, ThreadState};
use protocol::tape::TapeView;
use roles::faults::venue::SLOW_BY_NS;
use shm::memory::ReadOnlyWords;
use system::clock::{Clock, VirtualClock};

/// An engine that was idle this long has drained, in ticks.
const SETTLED: u64 = 20_000;
/// Maximum time without progress, in addition to the longest delay, in ticks.
const SILENCE: u64 = 20 * LIVENESS_NS;

/// The launcher of a simulated run: the real handling of deaths and faults on a virtual clock.
pub(super) struct SimulatedLauncher<'a> {
    plan: &'a Plan,
    kind: ScenarioKind,
    segments: &'a Segments,
    clock: VirtualClock,
    containment: Containment<'a>,
    liveness: Liveness,
    faults: FaultSchedule,
    is_draining: bool,
    /// Trading is over: resting orders expire.
    is_closing: bool,
    /// Operator commands still to be given, and the channel.
    commands: &'a [(u64, Command)],
    command_channel: Option<CommandWriter>,
    /// Progress count, and when it last changed.
    progress: (u64, u64),
}

impl<'a> SimulatedLauncher<'a> {
    /// Creates the launcher of a simulated run, with the start barrier open.
    pub fn new(scenario: &'a Scenario, segments: &'a Segments, clock: &VirtualClock) -> Self {
        let plan = &scenario.plan;
        let mut liveness = Liveness::new(plan, clock.now());
        liveness.open(clock.now());
        segments.control.go(START_TICKS);
        Self {
            plan,
            kind: scenario.kind,
            segments,
            clock: clock.clone(),
            containment: Containment::new(segments, START_TICKS),
            liveness,
            faults: FaultSchedule::new(plan, scenario.seed),
            is_draining: false,
            is_closing: false,
            commands: &scenario.commands,
            command_channel: segments.operator(),
            progress: (0, clock.now()),
        }
    }

    /// Returns the tick at which the launcher needs its next turn at the latest.
    pub fn wake(&self) -> u64 {
        let interrupt = match self.kind {
            ScenarioKind::Interrupted(ns) if !self.is_draining => START_TICKS + ns,
            _ => u64::MAX,
        };
        let fault = self.faults.next_due_ns().map_or(u64::MAX, |ns| START_TICKS + ns);
        let command = self.commands.first().map_or(u64::MAX, |(ns, _)| START_TICKS + ns);
        let restart = self.containment.next_restart_ns();
        interrupt.min(fault).min(command).min(restart.map_or(u64::MAX, |ns| START_TICKS + ns))
    }

    /// Lets the launcher poll its simulated processes once. Returns how it ended, if it has.
    ///
    /// # Errors
    /// An incident that cannot be handled.
    pub fn turn(&mut self, family: &mut SimulatedProcesses<'a>) -> anyhow::Result<Option<RunOutcome>> {
        let now = self.clock.now();
        self.liveness.mark_awake(now);
        self.signal_faults(family, now);
        self.command(now);
        for thread in 0..self.plan.threads.len() {
            let pulse = status::sample_liveness(&self.segments.threads[thread]);
            self.liveness.observe(thread, pulse, now);
        }
        self.containment.poll(family, &mut self.liveness, &self.clock)?;
        if let Some(failure) = self.failure(family) {
            return Ok(Some(failure));
        }
        if let ScenarioKind::Interrupted(ns) = self.kind
            && now >= START_TICKS + ns
            && !self.is_draining
        {
            self.segments.control.set_state(RunState::Drain);
            self.is_draining = true;
        }
        let is_done = (0..self.plan.trading().strategies).all(|strategy| !self.containment.awaits(strategy));
        if self.plan.exchanges_are_restartable() && !self.is_closing && (is_done || self.is_trading_over(now))
        {
            self.segments.control.set_state(RunState::Drain);
            (self.is_closing, self.progress.1) = (true, now);
        }
        if is_done && self.has_settled(family, now) && self.has_closed(family) {
            return Ok(Some(if self.is_draining { RunOutcome::Interrupted } else { RunOutcome::Complete }));
        }
        Ok(self.silence(now))
    }

    /// Returns `true` if every order was sent and has arrived, or only resting orders prevent
    /// progress.
    fn is_trading_over(&self, now: u64) -> bool {
        let sent = self.containment.sent_and_open().0;
        let is_all = sent >= self.plan.trading().total_orders();
        let is_here = !self.containment.is_role_restarting();
        let is_silent = now - self.progress.1 > self.plan.trading().max_delay_ns + SILENCE / 2;
        is_here
            && (is_silent || is_all && have_all_arrived(self.plan, &self.segments.threads, sent, |_| None))
    }

    /// Returns `true` if every exchange has closed its books, and no process is restarting or
    /// dying.
    fn has_closed(&self, family: &SimulatedProcesses<'a>) -> bool {
        let is_closed =
            |tape: &ReadOnlyWords| TapeView::new(tape.clone()).is_some_and(|tape| tape.is_closed());
        !self.plan.exchanges_are_restartable()
            || self.segments.tapes.iter().all(|(_, tape)| is_closed(tape))
                && !self.containment.is_role_restarting()
                && !family.is_dying()
    }

    /// Gives the operator commands that are due.
    fn command(&mut self, now: u64) {
        while let Some(((ns, command), rest)) = self.commands.split_first()
            && START_TICKS + ns <= now
        {
            self.commands = rest;
            if let Some(desk) = &self.command_channel {
                desk.append(*command, now, LAUNCHER_PID);
            }
        }
    }

    /// Returns `true` if the scenario has faults that make a venue slow or silent.
    pub fn has_venue_faults(&self) -> bool {
        self.plan.faults.iter().any(|fault| fault.kind.is_of_venue())
    }

    /// Returns the maximum time without progress, in ticks: slow or silent venues have their time.
    fn stall_limit(&self) -> u64 {
        let trading = self.plan.trading();
        let more = if self.has_venue_faults() { trading.venue_timeout_ns + SLOW_BY_NS } else { 0 };
        // A strategy that floods a shared ring takes all the turns until the stall is detected.
        let silence =
            if self.kind == ScenarioKind::Assault(FaultKind::Flood) { SILENCE / 4 } else { SILENCE };
        trading.max_delay_ns + silence + more
    }

    /// Returns the orchestrator's counters.
    fn engine(&self) -> Option<AgentCounters> {
        orchestrator(self.plan, &self.segments.threads)
    }

    /// Returns the failure of a stalled run: some order will never have a report. All orders are
    /// due long before.
    fn silence(&mut self, now: u64) -> Option<RunOutcome> {
        let engine = self.engine()?;
        let counted = progress_count(&engine).wrapping_add(self.containment.steps());
        let waits = self.containment.has_pending_process() || self.containment.is_role_restarting();
        if counted != self.progress.0 || waits {
            self.progress = (counted, now);
        }
        (now - self.progress.1 > self.stall_limit())
            .then(|| self.failed(Role::Orchestrator, "nothing comes any more"))
    }

    fn failed(&self, role: Role, what: &str) -> RunOutcome {
        let process = self
            .plan
            .process_of(role)
            .map_or_else(String::new, |process| self.plan.processes[process].name.clone());
        RunOutcome::Failed { process, pid: LAUNCHER_PID, what: what.to_owned() }
    }

    fn state(&self, thread: usize) -> ThreadState {
        status::state(&self.segments.threads[thread])
    }

    /// Injects the faults that are signals.
    fn signal_faults(&mut self, family: &mut SimulatedProcesses<'a>, now: u64) {
        let presences: Vec<Presence> = (0..self.plan.trading().strategies)
            .map(|index| {
                let thread = self.plan.thread_of(Role::Strategy(index));
                let is_there = thread.is_some_and(|thread| self.state(thread) == ThreadState::Running)
                    && self.containment.is_running(index);
                // Simulated strategies never wait for a core to start.
                if is_there { Presence::Running } else { Presence::Gone }
            })
            .collect();
        let all_due = self.faults.take_due(now.saturating_sub(START_TICKS), &presences);
        for DueFault { kind, target, .. } in all_due {
            let Some(role) = target else { continue };
            let Some(process) = self.plan.process_of(role) else { continue };
            let is_done = |thread| self.state(thread) == ThreadState::Done;
            let comes_back = !matches!(role, Role::Strategy(_));
            if family.exited_normally(process).is_some()
                || comes_back && self.plan.thread_of(role).is_some_and(is_done)
            {
                continue;
            }
            let is_away = comes_back && self.containment.is_role_restarting();
            self.containment.record_fault(role, now);
            // A restarting process that hangs has half a minute: too long for a simulation.
            family.signal(process, if is_away { FaultKind::Kill } else { kind });
        }
    }

    /// Returns the failure that ends the run: a process whose death is not contained died, hung,
    /// failed or was quarantined; or damage to shared memory.
    fn failure(&self, family: &SimulatedProcesses<'a>) -> Option<RunOutcome> {
        if let Some((role, what)) = self.containment.violation(&self.liveness, family) {
            return Some(self.failed(role, &what));
        }
        let is_supervised = |process| self.containment.supervises(process);
        let all = self.plan.processes.iter().enumerate();
        for (index, process) in all.filter(|(index, _)| !is_supervised(*index)) {
            let threads = process.threads.iter().map(|thread| *thread as usize);
            let suspicion = threads
                .clone()
                .filter(|_| family.exited_normally(index).is_none())
                .find_map(|thread| self.liveness.fault(thread, &process.threads));
            let failed = threads.clone().any(|thread| self.state(thread) == ThreadState::Failed);
            let done = threads.clone().all(|thread| self.state(thread) == ThreadState::Done);
            let ended_badly = family.exited_normally(index).is_some_and(|in_order| !(in_order && done));
            if suspicion.is_some() || failed || ended_badly {
                let what =
                    suspicion.map_or_else(|| family.exit_text(index), |suspicion| suspicion.to_string());
                return Some(RunOutcome::Failed {
                    process: process.name.clone(),
                    pid: family.pid(index),
                    what,
                });
            }
        }
        None
    }

    /// Returns `true` if the engine has drained. Orders of dead strategies are still in flight, and
    /// so are those of a strategy that falsely reported done: the engine may not have taken them
    /// yet.
    fn has_settled(&self, family: &SimulatedProcesses<'a>, now: u64) -> bool {
        let Some(engine) = self.plan.thread_of(Role::Orchestrator) else { return true };
        let is_quiet = now.saturating_sub(family.busy(engine)) > SETTLED;
        // An endless flood is not waited for.
        let is_late = now.saturating_sub(self.progress.1) > self.stall_limit();
        is_late || (is_quiet && self.engine().as_ref().is_none_or(has_drained))
    }

    /// Crashes the simulated machine, so that no process runs any more.
    pub fn crash(self, family: &mut SimulatedProcesses<'a>) -> (RunOutcome, Vec<Incident>, Vec<RoleRestart>) {
        family.crash();
        self.lists(RunOutcome::Interrupted)
    }

    /// Ends the simulated run: every process runs until it has ended; the rest is killed.
    ///
    /// # Errors
    /// A thread panicked.
    pub fn end(
        mut self,
        family: &mut SimulatedProcesses<'a>,
        outcome: RunOutcome,
    ) -> Result<(RunOutcome, Vec<Incident>, Vec<RoleRestart>), String> {
        self.segments.control.set_state(RunState::Stop);
        for _ in 0..1000 {
            for thread in 0..self.plan.threads.len() {
                family.turn(thread)?;
            }
            if family.all_ended() {
                break;
            }
        }
        family.kill_rest();
        self.containment.record_end(family, &self.clock);
        let bad = (0..self.plan.processes.len()).find(|index| {
            family.exited_normally(*index) != Some(true) && !self.containment.explains_exit_of(*index)
        });
        let outcome = match (outcome, bad) {
            (RunOutcome::Complete, Some(index)) => RunOutcome::Failed {
                process: self.plan.processes[index].name.clone(),
                pid: family.pid(index),
                what: format!("exited abnormally: {}", family.exit_text(index)),
            },
            (outcome, _) => outcome,
        };
        Ok(self.lists(outcome))
    }

    fn lists(self, outcome: RunOutcome) -> (RunOutcome, Vec<Incident>, Vec<RoleRestart>) {
        let (incidents, restarts, _) = self.containment.into_lists();
        (outcome, incidents, restarts)
    }
}

//! The runtime of the supervisor in a simulated run: the real supervisor and the real shared
//! memory, on a virtual clock and with [`SimulatedProcesses`] in place of system calls.

use super::endings::{EndMoment, EndingAct, Endings};
use super::kernel::{SimulatedKernel, SurroundingSightings};
use super::processes::SimulatedProcesses;
use super::processes::Standstill;
use super::scenario::{LIVENESS_NS, Scenario, ScenarioKind};
use super::{LAUNCHER_PID, START_TICKS};
use protocol::commands::{Command, CommandWriter};
use protocol::due_times::DueTimes;
use protocol::index::StrategyIndex;
use protocol::plan::{FaultKind, Role};
use protocol::status::ThreadState;
use record::run::RunOutcome;
use roles::faults::venue::SLOW_BY_NS;
use run_memory::segments::Segments;
use run_memory::shared_memory::SharedMemory;
use std::time::Duration;
use supervision::actions::Action;
use supervision::observations::{Observations, OperatorAddition, OperatorEnd};
use supervision::{SupervisionLimits, SupervisionRecord, Supervisor};
use system::clock::{Clock, VirtualClock};

/// Maximum time without progress, in addition to the longest delay, in ticks.
const SILENCE: u64 = 20 * LIVENESS_NS;

/// A step of the supervisor: [`Supervisor::step`], or a broken one that the checks must detect.
pub type SupervisorStep<'a> = dyn FnMut(&mut Supervisor<'_>, &Observations, u64, &mut Vec<Action>) + 'a;

/// Returns the time limits of a simulated run: a liveness deadline is a thousandth of a real one.
/// How long a strategy that an operator ends may read its reports.
const READ_LIMIT: Duration = Duration::from_nanos(LIVENESS_NS / 50);

fn limits(scenario: &Scenario) -> SupervisionLimits {
    let trading = scenario.plan.trading();
    // A strategy that floods a shared ring takes all the turns until the stall is detected.
    let is_flood = scenario.kind == ScenarioKind::Assault(FaultKind::Flood);
    // Slow or silent venues have their time.
    let venue_time = if scenario.has_venue_faults() { trading.venue_timeout_ns + SLOW_BY_NS } else { 0 };
    let silence = if is_flood { SILENCE / 4 } else { SILENCE } + venue_time;
    let (mut silence, mut quiet, mut kill) = (silence, SILENCE / 2, 30 * LIVENESS_NS);
    if let Some(lasts_ns) = scenario.surroundings.and_then(|event| event.handling_ns()) {
        // Extended, they are longer than the wait, as those of real runs are.
        (silence, quiet, kill) = (lasts_ns, lasts_ns / 2, 3 * lasts_ns);
    }
    SupervisionLimits {
        start: Duration::from_secs(1),
        lead: (Duration::ZERO, Duration::ZERO),
        silence: Duration::from_nanos(silence),
        quiet: Duration::from_nanos(quiet + trading.max_delay_ns),
        grace: Duration::from_nanos(silence),
        interrupted_grace: Duration::ZERO,
        idle: Duration::from_nanos(LIVENESS_NS / 50),
        read: READ_LIMIT,
        exit_wait: Duration::from_nanos(LIVENESS_NS),
        kill: Duration::from_nanos(kill),
        max_requests: 2,
    }
}

/// Observes a simulated run and performs the actions of its supervisor.
pub(super) struct SimulatedRuntime<'a, 's> {
    scenario: &'a Scenario,
    memory: SharedMemory<'a>,
    clock: VirtualClock,
    supervisor: Supervisor<'a>,
    step: &'s mut SupervisorStep<'s>,
    observations: Observations,
    /// Operator commands still to be given, and the channel.
    commands: &'a [(u64, Command)],
    command_channel: Option<CommandWriter>,
    /// Events at the natural end of strategies that are still to come.
    endings: Endings<'a>,
    kernel: SimulatedKernel<'a>,
    outcome: Option<RunOutcome>,
    /// The tick at which each strategy's incarnation was published.
    renewed: Vec<u64>,
    confirmed: Vec<ConfirmedChange>,
    /// What the judge cannot see in the record.
    seen: RuntimeSightings,
}

/// What a simulated run's surroundings saw of its strategies.
#[derive(Debug, Default)]
pub(super) struct RuntimeSightings {
    /// Strategies that were started after the end of trading.
    pub late_starts: Vec<StrategyIndex>,
    /// Processes that were dying, unobserved, when the supervisor ended the run, which then fails
    /// because of them.
    pub late_deaths: Vec<String>,
    /// Incarnations (strategy and epoch) that had reported done when they were fenced.
    pub killed_when_done: Vec<(StrategyIndex, u16)>,
    /// What the supervisor observed of the external event.
    pub surroundings: SurroundingSightings,
    /// The standstill of a thread that has taken place, if any.
    pub standstill: Option<Standstill>,
}

/// An operator's command to end or add a strategy, as it was when the launcher first saw that the
/// engine had confirmed it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConfirmedChange {
    number: u32,
    /// When the launcher first saw it and when it last looked, in ticks.
    ticks: u64,
    looked: u64,
    pub strategy: StrategyIndex,
    /// Epoch of the strategy's incarnation when the launcher first saw the confirmed command.
    pub epoch: u16,
    pub is_addition: bool,
    /// Whether the launcher must perform the command: the run trades, and the incarnation is the
    /// one to end, or is dead and gets a successor.
    pub must_act: bool,
}

impl<'a, 's> SimulatedRuntime<'a, 's> {
    /// Creates the runtime of a simulated run's supervisor, before any process's first duty cycle.
    pub fn new(
        scenario: &'a Scenario,
        segments: &'a Segments,
        clock: &VirtualClock,
        step: &'s mut SupervisorStep<'s>,
    ) -> Self {
        let (plan, due) = (&scenario.plan, DueTimes(&segments.schedules));
        Self {
            scenario,
            memory: SharedMemory::new(segments),
            clock: clock.clone(),
            supervisor: Supervisor::new(plan, due, limits(scenario), scenario.seed, clock.now()),
            step,
            observations: Observations::default(),
            commands: &scenario.commands,
            command_channel: segments.operator(),
            endings: Endings::new(&scenario.endings),
            kernel: SimulatedKernel::new(scenario),
            outcome: None,
            renewed: vec![0; plan.trading().strategies.into()],
            confirmed: Vec::new(),
            seen: RuntimeSightings::default(),
        }
    }

    /// Returns the tick of the simulated clock by which the supervisor's next step must run.
    pub fn wake_time(&self) -> u64 {
        let interrupt = match self.scenario.kind {
            ScenarioKind::Interrupted(ns) if self.observations.termination_requests == 0 => START_TICKS + ns,
            _ => u64::MAX,
        };
        let command = self.commands.first().map_or(u64::MAX, |(ns, _)| START_TICKS + ns);
        let pause = self.supervisor.max_pause().as_nanos() as u64;
        interrupt.min(command).min(self.clock.peek().saturating_add(pause))
    }

    /// Runs one step of the simulated run's supervisor, and performs its actions. Returns how the
    /// run ended, if it has.
    ///
    /// # Errors
    /// A process that cannot be restarted; a thread that panicked.
    pub fn turn(&mut self, processes: &mut SimulatedProcesses<'a>) -> Result<Option<RunOutcome>, String> {
        let now = self.clock.now();
        self.give_commands(now);
        if let ScenarioKind::Interrupted(ns) = self.scenario.kind {
            self.observations.termination_requests = usize::from(now >= START_TICKS + ns);
        }
        let mut is_ending = false;
        loop {
            processes.observe(&self.supervisor, &mut self.observations);
            self.memory.observe(&self.supervisor, &self.clock, &mut self.observations);
            processes.observe_threads(&mut self.observations);
            if let (Some(engine), Some(thread)) =
                (&mut self.observations.engine, self.scenario.plan.thread_of(Role::Orchestrator))
            {
                // Duty cycles take no time on the virtual clock.
                engine.work = processes.last_busy(thread);
            }
            self.kernel.observe(&self.supervisor, processes, (now, is_ending), &mut self.observations);
            self.seen.standstill = processes.standstill();
            self.note_confirmed_changes(now);
            self.observations.last_words = self.supervisor.failing_process().map(|_| String::new());
            let is_restarting = self.supervisor.containment().is_role_restarting(&self.observations);
            let is_late = self.supervisor.is_open() && !self.supervisor.is_trading();
            let mut actions = Vec::new();
            (self.step)(&mut self.supervisor, &self.observations, now, &mut actions);
            is_ending = false;
            for action in actions {
                is_ending |= matches!(action, Action::EndProcesses(_));
                if let Action::Restart(process) = action
                    && is_late
                {
                    let roles = self.scenario.plan.roles_of(&self.scenario.plan.processes[process]);
                    self.seen.late_starts.extend(roles.filter_map(|role| match role {
                        Role::Strategy(strategy) => Some(strategy),
                        _ => None,
                    }));
                }
                self.perform(action, is_restarting, processes)?;
            }
            if !is_ending {
                return Ok(self.outcome.take());
            }
        }
    }

    /// Notes the commands that the engine has confirmed since the last turn. One that ends a
    /// strategy has no effect if that finishes, or the end of trading comes, while it reads its
    /// reports.
    fn note_confirmed_changes(&mut self, now: u64) {
        let (observed, control) = (&self.observations, self.memory.segments.control.control());
        let is_trading = self.supervisor.is_trading();
        for change in self.confirmed.iter_mut().filter(|change| change.must_act && !change.is_addition) {
            let thread = self.scenario.plan.thread_of(Role::Strategy(change.strategy));
            let is_over = !is_trading || thread.is_some_and(|it| observed.state(it) == ThreadState::Done);
            let is_same = control.incarnation(change.strategy).epoch == change.epoch;
            // At the look before: the launcher may have slept since.
            let read = Duration::from_nanos(change.looked - change.ticks) < READ_LIMIT;
            change.must_act = !(read && is_same && is_over);
            change.looked = now;
        }
        let is_new = |number: u32| self.confirmed.iter().all(|change| change.number != number);
        let life = |strategy: StrategyIndex| control.incarnation(strategy);
        let end = |end: &OperatorEnd| {
            let OperatorEnd { number, ticks: given, strategy, .. } = *end;
            let process = self.scenario.plan.process_of(Role::Strategy(strategy));
            let runs = process.is_some_and(|process| observed.processes[process].exit.is_none());
            // One that has reported done has finished.
            let thread = self.scenario.plan.thread_of(Role::Strategy(strategy));
            let is_done = thread.is_some_and(|thread| observed.state(thread) == ThreadState::Done);
            let is_new = given >= self.renewed[strategy.as_usize()];
            let is_meant = is_new && !is_done && !life(strategy).fenced;
            let (epoch, must_act) = (life(strategy).epoch, is_trading && runs && is_meant);
            ConfirmedChange { number, ticks: now, looked: now, strategy, epoch, is_addition: false, must_act }
        };
        let addition = |addition: &OperatorAddition| {
            let OperatorAddition { number, strategy, .. } = *addition;
            let (epoch, must_act) = (life(strategy).epoch, is_trading && life(strategy).fenced);
            ConfirmedChange { number, ticks: now, looked: now, strategy, epoch, is_addition: true, must_act }
        };
        let ended = observed.ended_by_operators.iter().filter(|end| is_new(end.number)).map(end);
        let additions = observed.added_by_operators.iter().filter(|added| is_new(added.number)).map(addition);
        let new: Vec<ConfirmedChange> = ended.chain(additions).collect();
        self.confirmed.extend(new);
    }

    /// Gives the operator commands that are due.
    fn give_commands(&mut self, now: u64) {
        while let Some(((ns, command), rest)) = self.commands.split_first()
            && START_TICKS + ns <= now
        {
            self.commands = rest;
            if let Some(channel) = &self.command_channel {
                channel.append(*command, now, LAUNCHER_PID);
            }
        }
    }

    /// Performs the scenario's commands and kills near strategies' natural ends that are due by
    /// step number `turn` of the simulation. A kill that is due while the run does not trade is
    /// dropped.
    pub fn play_endings(&mut self, turn: u64, now: u64, processes: &mut SimulatedProcesses<'a>) {
        if self.scenario.endings.is_empty() {
            return;
        }
        let Self { endings, memory, command_channel, scenario, supervisor, .. } = self;
        let plan = &scenario.plan;
        let has_come = |processes: &SimulatedProcesses<'a>, strategy: StrategyIndex, moment: EndMoment| {
            let role = Role::Strategy(strategy);
            let (Some(thread), Some(process)) = (plan.thread_of(role), plan.process_of(role)) else {
                return false;
            };
            let is_done = memory.state(thread) == ThreadState::Done;
            match moment {
                EndMoment::Sent => memory.orders_sent(strategy) >= plan.trading().orders[strategy.as_usize()],
                EndMoment::Done => is_done,
                EndMoment::Exited => is_done && processes.has_exited(process),
            }
        };
        while let Some(act) = endings.take_due(turn, |strategy, moment| has_come(processes, strategy, moment))
        {
            match act {
                EndingAct::Command(command) => {
                    if let Some(channel) = command_channel {
                        channel.append(command, now, LAUNCHER_PID);
                    }
                }
                EndingAct::Kill(role) if supervisor.is_trading() => processes.kill_role(role),
                EndingAct::Kill(_) => {}
            }
        }
    }

    fn perform(
        &mut self,
        action: Action,
        is_restarting: bool,
        processes: &mut SimulatedProcesses<'a>,
    ) -> Result<(), String> {
        let result = self.memory.perform(&action, |process| Ok(processes.proof_of_death(process)));
        result.map_err(|error| format!("{error:#}"))?;
        if let Action::Fence(role @ Role::Strategy(strategy), epoch) = action
            && let Some(thread) = self.scenario.plan.thread_of(role)
            && self.memory.state(thread) == ThreadState::Done
        {
            self.seen.killed_when_done.push((strategy, epoch));
        }
        if let Action::Renew(Role::Strategy(strategy), _) = action {
            self.renewed[strategy.as_usize()] = self.clock.peek();
        }
        match action {
            Action::InjectFault(Some(process), kind) => {
                let mut roles = self.scenario.plan.roles_of(&self.scenario.plan.processes[process]);
                let is_strategy = roles.any(|role| matches!(role, Role::Strategy(_)));
                // A restarting process that hangs has half a minute: too long for a simulation.
                let is_restarting_role = is_restarting && !is_strategy;
                processes.signal(process, if is_restarting_role { FaultKind::Kill } else { kind });
            }
            Action::Kill(process) => processes.fence(process),
            Action::ConcludeExit(process) => processes.conclude_exit(process)?,
            Action::Restart(process) if !self.kernel.try_start(process) => {}
            Action::Restart(process) => {
                processes.restart(process).map_err(|error| format!("the launcher failed: {error:#}"))?;
            }
            Action::KeepStandby(process) => processes.keep_standby(process),
            Action::EndProcesses(_) => {
                self.seen.late_deaths = processes.unseen_deaths();
                processes.end()?;
            }
            Action::End(outcome) => self.outcome = Some(outcome),
            Action::OpenBarrier(_)
            | Action::SetRunState(_)
            | Action::InjectFault(None, _)
            | Action::Fence(..)
            | Action::FenceThread(..)
            | Action::Renew(..)
            | Action::Forget(_)
            | Action::Reset(_)
            | Action::ResetThread(_)
            | Action::SetKind(..)
            | Action::Complain(_) => {}
        }
        Ok(())
    }

    /// Converts the runtime to the supervisor's record of deaths, restarts, faults and warnings,
    /// the operator commands that the engine confirmed, and `RuntimeSightings`.
    pub fn into_record(self) -> (SupervisionRecord, Vec<ConfirmedChange>, RuntimeSightings) {
        let seen = RuntimeSightings { surroundings: self.kernel.seen, ..self.seen };
        (self.supervisor.into_record(), self.confirmed, seen)
    }
}

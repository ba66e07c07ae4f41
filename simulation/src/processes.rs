//! The processes of a simulated run: real agents that run one duty cycle at a time on one virtual
//! clock. A process dies by unwinding at the step of a push at which its fault is due.

mod dying;
mod restarts;
mod standstill;
mod threads;

use super::endings;
use super::fuse::{self, InjectedUnwind};
use super::hostile;
use super::machine::SimulatedMachine;
use super::no_agent::NoAgent;
use super::recovery_environment::MachineRecovery;
use super::scenario::{Scenario, ScenarioKind};
use super::standbys::{StandbyProcess, Standbys};
use anyhow::{Context, Result, ensure};
use dying::DyingProcess;
use protocol::agent::{Agent, Cycle, CycleOutcome, DutyCycle};
use protocol::control::Control;
use protocol::faults::Draws;
use protocol::index::StrategyIndex;
use protocol::plan::{FaultKind, ProcessPlan, Role};
use protocol::segments;
use protocol::stamps::StampLog;
use protocol::status::{StatusWriter, ThreadState};
use protocol::supervision::ProofOfDeath;
use record::run::ProcessExit;
use roles::faults::own::{self, FaultContext};
use roles::{BoxedEnds, RecoveredRoles};
use run_memory::segments::Segments;
use shm::attached::Attached;
use shm::memory::AtomicWords;
use shm::sync::AtomicU64;
use standstill::ProcessEvents;
pub(super) use standstill::Standstill;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use supervision::Supervisor;
use supervision::observations::{ExitObservation, NOT_STARTED, Observations, ProcessObservation};
use system::clock::{self, Clock as _, Timebase, VirtualClock};

/// Words that a scribbling process writes in a turn.
const SCRIBBLED_WORDS: usize = 20;
/// A process that was sent SIGKILL has fewer turns than this left.
const MAX_TURNS_AFTER_KILL: u64 = 3;
/// In crash-recovery runs, a process that was sent SIGKILL has fewer clock reads than this left.
const MAX_CLOCK_READS_AFTER_KILL: u64 = 32;

/// Rounds of turns that processes have to end.
const MAX_END_ROUNDS: usize = 1000;

/// Executes a fault that a simulated strategy injects into itself: see [`own::act`].
fn act(kind: FaultKind, context: &mut FaultContext) {
    match kind {
        FaultKind::Flood => context.should_flood = true,
        FaultKind::Lose => context.should_lose = true,
        FaultKind::HoldClaim => context.should_hold_claim = true,
        FaultKind::ForgeHeader => own::forge_headers(&context.writable),
        FaultKind::Leak => {} // Memory is the kernel's matter.
        FaultKind::Forge | FaultKind::Feign => {
            own::forge_status(kind, context);
            resume_unwind(Box::new(InjectedUnwind(kind)))
        }
        kind => resume_unwind(Box::new(InjectedUnwind(kind))),
    }
}

/// What a thread does in its turn.
enum ThreadMode {
    /// Runs its duty cycle.
    Duty,
    /// The thread hangs: it does nothing.
    Hung,
    /// Overwrites memory that its process can write.
    Scribbling(Box<Draws>),
    /// The thread has ended.
    Over,
}

impl ThreadMode {
    /// Returns `true` if no thread is left.
    const fn is_over(&self) -> bool {
        matches!(self, ThreadMode::Over)
    }
}

/// A simulated thread.
struct SimulatedThread {
    process: usize,
    name: String,
    /// The strategy that it runs, if that dies alone, and its incarnation.
    alone: Option<(StrategyIndex, u16)>,
    agent: Option<Box<dyn Agent<clock::AnyClock>>>,
    cycle: Cycle<clock::AnyClock>,
    /// Set at its first turn.
    duty_cycle: Option<DutyCycle>,
    status: StatusWriter,
    mode: ThreadMode,
    /// Memory that the process can write.
    writable: Vec<AtomicWords>,
    /// When it needs its next turn, in ticks.
    wake_at: u64,
    /// When it last did work, in ticks.
    last_busy: u64,
}

/// A simulated process.
struct SimulatedProcess {
    name: String,
    pid: u32,
    /// How it ended: whether normally, and as text.
    exit: Option<(bool, String)>,
    /// Turns left after SIGKILL.
    turns_after_kill: Option<u64>,
    /// Clock reads left after SIGKILL; 0: unlimited.
    clock_reads_left: u64,
    /// The SIGKILL was an injected fault.
    killed_by_fault: bool,
    /// It was started and has not attached to its memory yet: turns until it does.
    turns_until_attach: Option<u64>,
    /// All its threads have reported done: turns until it exits.
    turns_until_exit: Option<u64>,
    /// It ends, step by step.
    dying: Option<DyingProcess>,
    /// Its exit was concluded before the kernel had dismantled it.
    has_exited_early: bool,
    /// The launcher has killed it.
    is_fenced: bool,
    /// It runs, and has overwritten the words of its locks.
    is_lock_forged: bool,
}

impl SimulatedProcess {
    const fn new(name: String, pid: u32) -> Self {
        Self {
            name,
            pid,
            exit: None,
            turns_after_kill: None,
            clock_reads_left: 0,
            killed_by_fault: false,
            turns_until_attach: None,
            turns_until_exit: None,
            dying: None,
            has_exited_early: false,
            is_fenced: false,
            is_lock_forged: false,
        }
    }
}

/// All processes of a simulated run, driven one turn at a time.
pub(super) struct SimulatedProcesses<'a> {
    /// Ring ends of the technique.
    ends: BoxedEnds,
    scenario: &'a Scenario,
    control: Control,
    clock: VirtualClock,
    threads: Vec<Option<SimulatedThread>>,
    processes: Vec<SimulatedProcess>,
    /// The memory of each process that starts threads again.
    attached: Vec<Option<Attached<'a>>>,
    next_pid: u32,
    draws: Draws,
    /// Draws how late processes exit.
    exit_draws: Draws,
    /// Draws the steps in which processes end.
    death_draws: Draws,
    segments: &'a Segments,
    standbys: Standbys<'a>,
    /// The event in the surroundings of the run.
    events: ProcessEvents,
    machine: Arc<SimulatedMachine>,
    /// Kills of an outsider that are still to come.
    bursts: &'a [(u64, Role)],
    /// Injected faults that fired, in order.
    pub fired_faults: Vec<FaultKind>,
    /// Number of messages that a hostile strategy tampered with.
    pub tampered: Arc<AtomicU64>,
}

impl<'a> SimulatedProcesses<'a> {
    /// Starts every simulated process of a scenario, before any thread's first turn (duty cycle).
    ///
    /// # Errors
    /// A segment that does not match the plan.
    pub fn start(
        scenario: &'a Scenario,
        ends: BoxedEnds,
        segments: &'a Segments,
        clock: &VirtualClock,
    ) -> Result<Self> {
        let plan = &scenario.plan;
        let mut run = Self {
            ends,
            scenario,
            control: segments.control.control(),
            clock: clock.clone(),
            threads: plan.threads.iter().map(|_| None).collect(),
            processes: Vec::new(),
            attached: plan.processes.iter().map(|_| None).collect(),
            next_pid: super::LAUNCHER_PID,
            draws: Draws::new(scenario.seed, Draws::PROCESSES),
            exit_draws: Draws::new(scenario.seed ^ 1 << 32, Draws::ENDINGS),
            death_draws: Draws::new(scenario.seed, Draws::DEATHS),
            segments,
            standbys: Standbys::new(scenario),
            events: ProcessEvents::new(scenario.surroundings),
            machine: Arc::new(SimulatedMachine::new(scenario.seed)),
            bursts: &scenario.bursts,
            fired_faults: Vec::new(),
            tampered: Arc::new(AtomicU64::new(0)),
        };
        for process in &plan.processes {
            let pid = run.new_pid();
            run.processes.push(SimulatedProcess::new(process.name.clone(), pid));
        }
        fuse::set_virtual_now(clock.peek());
        for (process, planned) in plan.processes.iter().enumerate() {
            if plan.is_spare(planned) {
                run.processes[process].exit = Some((true, NOT_STARTED.into()));
            } else {
                run.build_process(process, None)?;
            }
        }
        Ok(run)
    }

    fn new_pid(&mut self) -> u32 {
        self.next_pid += 1;
        self.next_pid
    }

    /// Returns a process's segments, before anything is built on them.
    fn attached(&self, process: usize) -> Attached<'a> {
        self.segments.attached(&self.segments.plan.processes[process])
    }

    /// Builds the threads of a process as the process would: newly started, or from a promoted
    /// standby.
    fn build_process(&mut self, process: usize, standby: Option<StandbyProcess<'a>>) -> Result<()> {
        let segments = self.segments;
        let plan = &segments.plan;
        let process_plan = &plan.processes[process];
        let (mut attached, standby) =
            standby.map_or_else(|| (self.attached(process), None), StandbyProcess::promote);
        let recovery = MachineRecovery::new(&self.scenario.plan, &self.machine, self.scenario.recovery);
        let mut recovered = recovery.recover(process_plan, &self.control, standby, &mut attached)?;
        // The engine's threads come last in a plan and are composed first: consumers before
        // producers.
        let threads: Vec<u32> = process_plan.threads.iter().rev().copied().collect();
        self.build_threads(process, &threads, &mut attached, &mut recovered)?;
        let is_alone = |index: &u32| plan.strategy_dying_alone(&plan.threads[*index as usize]).is_some();
        self.attached[process] = Some(attached).filter(|_| threads.iter().any(is_alone));
        Ok(())
    }

    /// Builds threads of a process on its memory.
    fn build_threads(
        &mut self,
        process: usize,
        threads: &[u32],
        attached: &mut Attached<'a>,
        recovered: &mut RecoveredRoles,
    ) -> Result<()> {
        let plan = &self.segments.plan;
        let mut built = Vec::new();
        for &index in threads {
            let thread = &plan.threads[index as usize];
            let agent = match (thread.roles.as_slice(), self.scenario.kind) {
                ([Role::Strategy(strategy)], ScenarioKind::Hostile(attack, from))
                    if self.scenario.culprits.contains(strategy)
                        && self.control.incarnation(*strategy).epoch == 0 =>
                {
                    let attack = (attack, from, Arc::clone(&self.tampered));
                    hostile::agent(plan, *strategy, self.ends, attack, attached)?
                }
                (_, kind) => {
                    let composed = match kind {
                        ScenarioKind::Recovery => {
                            roles::compose_stepped(plan, thread, &self.control, attached, recovered, act)
                        }
                        _ => roles::compose_stepped_on(
                            self.ends,
                            plan,
                            thread,
                            &self.control,
                            attached,
                            recovered,
                            act,
                        ),
                    }?;
                    let segment = segments::attach_thread(attached, &thread.name)?;
                    composed.arm(attached, &segment)
                }
            };
            let segment = segments::attach_thread(attached, &thread.name)?;
            built.push((index as usize, thread.name.clone(), agent, segment));
        }
        let writable = attached.writable();
        for (index, name, agent, segment) in built {
            let status = StatusWriter::new(&segment);
            status.set_state(ThreadState::Ready);
            let time = Timebase { start_ticks: super::START_TICKS, ns_per_tick: 1.0 };
            let log = StampLog::new(&segment);
            let clock = clock::AnyClock::Virtual(self.clock.with_read_hook(fuse::count_clock_read));
            let cycle = Cycle { clock, now: 0, time, draining: false, log };
            let alone = plan.strategy_dying_alone(&plan.threads[index]);
            let alone = alone.map(|strategy| (strategy, self.control.incarnation(strategy).epoch));
            self.threads[index] = Some(SimulatedThread {
                process,
                name,
                alone,
                agent: Some(agent),
                cycle,
                duty_cycle: None,
                status,
                mode: ThreadMode::Duty,
                writable: writable.clone(),
                wake_at: 0,
                last_busy: 0,
            });
        }
        Ok(())
    }

    /// Runs one duty cycle of a simulated thread, if it is due. Returns `true` if it did work.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn turn(&mut self, thread: usize) -> Result<bool, String> {
        self.standbys.check()?;
        // A spare strategy that is being started has no thread before it attaches.
        let owns = |process: &ProcessPlan| process.threads.contains(&(thread as u32));
        let Some(process) = self.scenario.plan.processes.iter().position(owns) else { return Ok(false) };
        if self.processes[process].turns_until_attach.is_some() && self.processes[process].exit.is_none() {
            self.attach_later(process)?;
            return Ok(true);
        }
        if self.try_die(thread) {
            return Ok(true);
        }
        if self.stands_still(thread) {
            return Ok(self.try_end_standing(thread));
        }
        let Some(thread_state) = &mut self.threads[thread] else { return Ok(false) };
        let simulated = &mut self.processes[thread_state.process];
        if simulated.exit.is_some() {
            return Ok(false);
        }
        match &mut simulated.turns_after_kill {
            Some(0) => {
                self.die(process, "signal 9 (SIGKILL)");
                return Ok(true);
            }
            Some(turns) => *turns -= 1,
            None => {}
        }
        match &mut thread_state.mode {
            ThreadMode::Duty => {}
            ThreadMode::Over if simulated.turns_until_exit.is_some() => {
                match &mut simulated.turns_until_exit {
                    Some(turns @ 1..) => *turns -= 1,
                    _ => simulated.exit = Some((true, "exit 0".into())),
                }
                return Ok(true);
            }
            ThreadMode::Over if thread_state.agent.is_none() && thread_state.alone.is_some() => {
                thread_state.wake_at = u64::MAX;
                return self.start_again(thread).map_err(|error| format!("{error:#}"));
            }
            ThreadMode::Hung | ThreadMode::Over => {
                thread_state.wake_at = u64::MAX;
                return Ok(false);
            }
            ThreadMode::Scribbling(draws) => {
                for _ in 0..SCRIBBLED_WORDS {
                    own::scribble_once(&thread_state.writable, draws);
                }
                return Ok(true);
            }
        }
        let Some(agent) = &mut thread_state.agent else { return Ok(false) };
        self.machine.sync_some()?;
        let SimulatedThread { cycle, duty_cycle, status, .. } = thread_state;
        let duty_cycle = duty_cycle.get_or_insert_with(|| DutyCycle::begin(&mut **agent, cycle, status));
        fuse::arm(simulated.clock_reads_left);
        let turn = catch_unwind(AssertUnwindSafe(|| {
            duty_cycle.run_once(&mut **agent, cycle, status, &self.control)
        }));
        simulated.clock_reads_left = fuse::disarm();
        match turn {
            Ok(CycleOutcome::Busy) => {
                (thread_state.wake_at, thread_state.last_busy) = (0, thread_state.cycle.now);
                return Ok(true);
            }
            Ok(CycleOutcome::Idle(ns)) => thread_state.wake_at = thread_state.cycle.now.saturating_add(ns),
            Ok(CycleOutcome::Finished) => {
                duty_cycle.end(&mut **agent, &mut thread_state.cycle, &thread_state.status);
                thread_state.status.set_state(ThreadState::Done);
                thread_state.mode = ThreadMode::Over;
                let process = thread_state.process;
                if self.has_process_ended(process) {
                    self.exit(process);
                }
                return Ok(true);
            }
            Err(payload) => match payload.downcast::<InjectedUnwind>() {
                Ok(fired) => self.apply_fired_fault(thread, fired.0),
                Err(payload) => {
                    return Err(format!("{} panicked: {}", thread_state.name, message(&*payload)));
                }
            },
        }
        Ok(false)
    }

    /// Applies a fault that fired in a thread: its turn was unwound, and it has no further normal
    /// turn.
    fn apply_fired_fault(&mut self, thread: usize, kind: FaultKind) {
        self.fired_faults.push(kind);
        let Some(thread_state) = &mut self.threads[thread] else { return };
        match kind {
            FaultKind::Hang | FaultKind::Stop | FaultKind::Forge | FaultKind::Feign | FaultKind::Jam => {
                thread_state.mode = ThreadMode::Hung;
                let process = thread_state.process;
                self.draw_forged_lock(process);
            }
            FaultKind::Scribble => {
                let draws = Draws::new(self.scenario.seed, Draws::SCRIBBLES);
                thread_state.mode = ThreadMode::Scribbling(Box::new(draws));
            }
            FaultKind::Exit | FaultKind::Panic if thread_state.alone.is_some() => thread_state.panic(),
            kind => {
                let exit_text = match kind {
                    FaultKind::Segv => "signal 11 (SIGSEGV)",
                    FaultKind::Abort | FaultKind::CoreDump => "signal 6 (SIGABRT)",
                    FaultKind::Exit => "exit 3",
                    kind if kind.is_resource_fault() => "exit 41",
                    _ => "signal 9 (SIGKILL)",
                };
                let process = thread_state.process;
                self.die(process, exit_text);
            }
        }
    }

    /// Returns the tick at which the first simulated thread needs its next turn (duty cycle), at or
    /// after `from`.
    pub fn wake_time(&self, from: u64) -> u64 {
        let wake_time = |(thread, thread_state): (usize, &Option<SimulatedThread>)| {
            let thread_state = thread_state.as_ref()?;
            let is_running = self.processes[thread_state.process].exit.is_none();
            if self.processes[thread_state.process].dying.is_some() {
                return is_running.then_some(from);
            }
            is_running.then(|| self.wake_time_of_standstill(thread).unwrap_or(thread_state.wake_at))
        };
        let wake_times = self.threads.iter().enumerate().filter_map(wake_time);
        wake_times.filter(|wake_time| *wake_time >= from).min().unwrap_or(u64::MAX)
    }

    /// Returns the tick at which a simulated thread last did work.
    pub fn last_busy(&self, thread: usize) -> u64 {
        self.threads[thread].as_ref().map_or(0, |thread_state| thread_state.last_busy)
    }

    /// Stops or kills a simulated process by a signal, as the fault of the given kind does.
    pub fn signal(&mut self, process: usize, kind: FaultKind) {
        if kind == FaultKind::Stop {
            self.fired_faults.push(kind);
            for thread_state in
                self.threads.iter_mut().flatten().filter(|thread_state| thread_state.process == process)
            {
                thread_state.mode = ThreadMode::Hung;
            }
        } else {
            self.processes[process].killed_by_fault = true;
            self.kill(process);
        }
    }

    /// Draws the clock reads left: in crash-recovery runs a process dies anywhere in its duty
    /// cycle, or during recovery.
    fn draw_clock_reads(&mut self) -> u64 {
        if self.scenario.kind == ScenarioKind::Recovery {
            self.draws.below(MAX_CLOCK_READS_AFTER_KILL)
        } else {
            0
        }
    }

    /// Returns `true` if every simulated process has ended.
    fn all_ended(&self) -> bool {
        self.processes.iter().all(|simulated| simulated.exit.is_some())
    }

    /// Kills all running simulated processes immediately.
    fn kill_running(&mut self) {
        for simulated in self.processes.iter_mut().filter(|simulated| simulated.exit.is_none()) {
            simulated.exit = Some((false, "signal 9 (SIGKILL)".into()));
        }
    }

    /// Lets a process exit whose threads have ended: at once, or in its next turns.
    fn exit(&mut self, process: usize) {
        let plan = &self.scenario.plan;
        let is_strategy =
            plan.roles_of(&plan.processes[process]).all(|role| matches!(role, Role::Strategy(_)));
        let turns = match is_strategy && !self.scenario.endings.is_empty() {
            true => endings::draw_turns_until_exit(&mut self.exit_draws),
            false => 0,
        };
        match turns {
            0 => self.processes[process].exit = Some((true, "exit 0".into())),
            turns => self.processes[process].turns_until_exit = Some(turns),
        }
    }

    /// Returns `true` if a simulated process has exited.
    pub fn has_exited(&self, process: usize) -> bool {
        self.processes[process].exit.is_some()
    }

    /// Crashes the simulated machine, with all its processes.
    pub fn crash(&mut self) {
        self.kill_running();
        self.machine.crash();
    }

    /// Returns the simulated machine, with its disk.
    pub fn machine(&self) -> Arc<SimulatedMachine> {
        Arc::clone(&self.machine)
    }

    /// Returns the exit status of each simulated process.
    pub fn exits(&self) -> Vec<ProcessExit> {
        let exit = |simulated: &SimulatedProcess| ProcessExit {
            process: simulated.name.clone(),
            pid: simulated.pid,
            how: simulated.exit.as_ref().map_or_else(|| "still running".into(), |(_, how)| how.clone()),
            usage: None,
        };
        let is_started =
            |simulated: &&SimulatedProcess| simulated.exit.as_ref().is_none_or(|(_, how)| how != NOT_STARTED);
        self.processes.iter().filter(is_started).map(exit).collect()
    }
}

/// Returns the message of a panic.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

impl SimulatedProcesses<'_> {
    /// Sets the process entries in the supervisor's observations to the present state of every
    /// simulated process.
    pub fn observe(&self, supervisor: &Supervisor<'_>, observations: &mut Observations) {
        observations.processes.clear();
        let all = self.processes.iter().enumerate();
        observations.processes.extend(all.map(|(index, simulated)| ProcessObservation {
            pid: simulated.pid,
            exit: simulated.exit.as_ref().map(|(is_success, how)| ExitObservation {
                is_success: *is_success,
                was_killed: !is_success,
                text: how.clone(),
                last_words: String::new(),
                is_early: simulated.has_exited_early,
            }),
            is_proven_dead: simulated.exit.is_some(),
            is_lock_free: self.is_lock_free(index),
            exiting: supervisor.awaits_threads(index).then(|| self.exiting(index)),
            ..ProcessObservation::default()
        }));
    }

    /// Sends a simulated SIGKILL to a process, which still runs a small random number of duty
    /// cycles, or none, before it ends.
    pub fn kill(&mut self, process: usize) {
        let (turns, clock_reads) = (self.draws.below(MAX_TURNS_AFTER_KILL), self.draw_clock_reads());
        let simulated = &mut self.processes[process];
        if simulated.exit.is_none() && simulated.turns_after_kill.is_none() {
            (simulated.turns_after_kill, simulated.clock_reads_left) = (Some(turns), clock_reads);
        }
    }

    /// Returns proof that a simulated process has ended and released all locks; `None` if it has
    /// not.
    pub fn proof_of_death(&mut self, process: usize) -> Option<ProofOfDeath> {
        self.processes[process].exit.as_ref()?;
        let threads =
            self.threads.iter_mut().flatten().filter(|thread_state| thread_state.process == process);
        let agents = threads.filter_map(|thread_state| thread_state.agent.take());
        // A process that died before it had an agent is as dead.
        let agents = agents.chain([Box::new(NoAgent) as Box<dyn Agent<clock::AnyClock>>]);
        // Dead processes write nothing to the disk.
        self.machine.without_disk(|| agents.map(ProofOfDeath::from_simulated).last())
    }

    /// Starts the next incarnation of a simulated process.
    ///
    /// # Errors
    /// The last one still runs, or the next one cannot attach to its memory.
    pub fn restart(&mut self, process: usize) -> Result<()> {
        let name = self.processes[process].name.clone();
        ensure!(self.processes[process].exit.is_some(), "{name} was started again while it runs");
        let pid = self.new_pid();
        self.processes[process] = SimulatedProcess::new(name, pid);
        if self.scenario.kind != ScenarioKind::Recovery {
            // A scribbled shared ring may be unusable: the process that attaches to it reports that
            // and exits.
            match self.build_process(process, None).context("cannot start a process again") {
                Err(_) if self.scenario.kind == ScenarioKind::Assault(FaultKind::Scribble) => {
                    self.processes[process].exit = Some((false, "exit 1".into()));
                }
                built => built?,
            }
            return Ok(());
        }
        if self.is_attached_later() {
            self.processes[process].turns_until_attach = Some(self.draws.below(restarts::MAX_START_TURNS));
            return Ok(());
        }
        self.attach_as_successor(process)
    }

    /// Starts, runs or ends the hot standby of a simulated process by a random draw.
    pub fn keep_standby(&mut self, process: usize) {
        if self.standbys.run_drawn_turn(process) {
            let attached = self.attached(process);
            self.standbys.start(&self.segments.plan, process, &self.control, attached);
        }
    }

    /// Runs the simulated processes until those that end by themselves have ended, and kills the
    /// others. A SIGKILL of an
    /// outsider that has not acted by then comes too late: a real run would fail in its name.
    ///
    /// # Errors
    /// A thread panicked.
    pub fn end(&mut self) -> Result<(), String> {
        self.release_standstill();
        for simulated in &mut self.processes {
            (simulated.turns_after_kill, simulated.clock_reads_left) = (None, 0);
        }
        for _ in 0..MAX_END_ROUNDS {
            for thread in 0..self.threads.len() {
                self.turn(thread)?;
            }
            if self.all_ended() {
                break;
            }
        }
        self.kill_running();
        Ok(())
    }
}

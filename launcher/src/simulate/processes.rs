//! The processes of a simulated run: real agents that run one duty cycle at a time on one virtual
//! clock. A process dies by unwinding at the step of a push at which its fault is due.

mod restarts;

use super::fuse::{self, InjectedUnwind};
use super::hostile;
use super::machine::SimulatedMachine;
use super::no_agent::NoAgent;
use super::recovery_environment::MachineRecovery;
use super::scenario::{Scenario, ScenarioKind};
use super::standbys::{StandbyProcess, Standbys};
use crate::runtime::setup::Segments;
use crate::runtime::supervisor::observations::{ExitObservation, Observations, ProcessObservation};
use analysis::record::ProcessExit;
use anyhow::{Context, Result, ensure};
use protocol::agent::{Agent, Cycle, CycleOutcome, DutyCycle};
use protocol::control::Control;
use protocol::plan::{FaultKind, Role};
use protocol::segments;
use protocol::stamps::StampLog;
use protocol::status::{StatusWriter, ThreadState};
use protocol::supervision::ProofOfDeath;
use roles::BoxedEnds;
use roles::faults::Draws;
use roles::faults::own::{self, FaultContext};
use shm::attached::Attached;
use shm::memory::AtomicWords;
use shm::sync::AtomicU64;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use system::clock::{self, Clock as _, Timebase, VirtualClock};

/// Words that a scribbling process writes in a turn.
const SCRIBBLES: usize = 20;
/// A process that was sent SIGKILL has fewer turns than this left.
const LAST_TURNS: u64 = 3;
/// In crash-recovery runs, a process that was sent SIGKILL has fewer clock reads than this left.
const LAST_LOOKS: u64 = 32;

/// Rounds of turns that processes have to end.
const LAST_ROUNDS: usize = 1000;

/// Executes a fault that a simulated strategy injects into itself: see [`own::act`].
fn act(kind: FaultKind, means: &mut FaultContext) {
    match kind {
        FaultKind::Flood => means.floods = true,
        FaultKind::Lose => means.loses = true,
        FaultKind::HoldClaim => means.holds = true,
        FaultKind::ForgeHeader => own::forge_headers(&means.writable),
        FaultKind::Leak => {} // Memory is the kernel's matter.
        FaultKind::Forge | FaultKind::Feign => {
            own::forge_status(kind, means);
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

/// A simulated thread.
struct SimulatedThread {
    process: usize,
    name: String,
    agent: Option<Box<dyn Agent<clock::AnyClock>>>,
    cycle: Cycle<clock::AnyClock>,
    /// Set at its first turn.
    turns: Option<DutyCycle>,
    status: StatusWriter,
    mode: ThreadMode,
    /// Memory that the process can write.
    writable: Vec<AtomicWords>,
    /// When it needs its next turn, in ticks.
    wake: u64,
    /// When it last did work, in ticks.
    busy: u64,
}

/// A simulated process.
struct SimulatedProcess {
    name: String,
    pid: u32,
    /// How it ended: whether normally, and as text.
    ended: Option<(bool, String)>,
    /// Turns left after SIGKILL.
    killed: Option<u64>,
    /// Clock reads left after SIGKILL; 0: unlimited.
    looks: u64,
    /// The SIGKILL was an injected fault.
    by_fault: bool,
    /// It was started and has not attached to its memory yet: turns until it does.
    unattached: Option<u64>,
}

impl SimulatedProcess {
    const fn new(name: String, pid: u32) -> Self {
        Self { name, pid, ended: None, killed: None, looks: 0, by_fault: false, unattached: None }
    }
}

/// All processes of a simulated run, driven one turn at a time.
pub(super) struct SimulatedProcesses<'a> {
    /// Ring ends of the technique.
    ends: BoxedEnds,
    scenario: &'a Scenario,
    control: Control,
    clock: VirtualClock,
    actors: Vec<Option<SimulatedThread>>,
    children: Vec<SimulatedProcess>,
    next_pid: u32,
    draws: Draws,
    segments: &'a Segments,
    spares: Standbys<'a>,
    machine: Arc<SimulatedMachine>,
    /// Kills of an outsider that are still to come.
    bursts: &'a [(u64, Role)],
    /// Faults that fired, in order.
    pub struck: Vec<FaultKind>,
    /// Messages that a hostile strategy tampered with.
    pub tampered: Arc<AtomicU64>,
}

impl<'a> SimulatedProcesses<'a> {
    /// Starts every process of a scenario; none has had a turn.
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
        let mut family = Self {
            ends,
            scenario,
            control: segments.control.control(),
            clock: clock.clone(),
            actors: plan.threads.iter().map(|_| None).collect(),
            children: Vec::new(),
            next_pid: super::LAUNCHER_PID,
            draws: Draws::new(scenario.seed, Draws::PROCESSES),
            segments,
            spares: Standbys::new(scenario),
            machine: Arc::new(SimulatedMachine::new(scenario.seed)),
            bursts: &scenario.bursts,
            struck: Vec::new(),
            tampered: Arc::new(AtomicU64::new(0)),
        };
        for process in &plan.processes {
            let pid = family.new_pid();
            family.children.push(SimulatedProcess::new(process.name.clone(), pid));
        }
        fuse::set_now(clock.peek());
        for process in 0..plan.processes.len() {
            family.begin(process, None)?;
        }
        Ok(family)
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
    fn begin(&mut self, process: usize, spare: Option<StandbyProcess<'a>>) -> Result<()> {
        let segments = self.segments;
        let plan = &segments.plan;
        let me = &plan.processes[process];
        let (mut attached, standby) =
            spare.map_or_else(|| (self.attached(process), None), StandbyProcess::promote);
        let recovery = MachineRecovery::new(&self.scenario.plan, &self.machine, self.scenario.recovery);
        let mut recovered = recovery.recover(me, &self.control, standby, &mut attached)?;
        let mut begun = Vec::new();
        // The engine's threads come last in a plan and are composed first: consumers before
        // producers.
        for &index in me.threads.iter().rev() {
            let thread = &plan.threads[index as usize];
            let agent = match (thread.roles.as_slice(), self.scenario.kind) {
                ([Role::Strategy(strategy)], ScenarioKind::Hostile(attack, from))
                    if self.scenario.culprits.contains(strategy)
                        && self.control.incarnation(*strategy).epoch == 0 =>
                {
                    let attack = (attack, from, Arc::clone(&self.tampered));
                    hostile::agent(plan, *strategy, self.ends, attack, &mut attached)?
                }
                (_, kind) => {
                    let composed = match kind {
                        ScenarioKind::Recovery => roles::compose_stepped(
                            plan,
                            thread,
                            &self.control,
                            &mut attached,
                            &mut recovered,
                            act,
                        ),
                        _ => roles::compose_stepped_on(
                            self.ends,
                            plan,
                            thread,
                            &self.control,
                            &mut attached,
                            &mut recovered,
                            act,
                        ),
                    }?;
                    let segment = segments::thread(&mut attached, &thread.name)?;
                    composed.arm(&attached, &segment)
                }
            };
            let segment = segments::thread(&mut attached, &thread.name)?;
            begun.push((index as usize, thread.name.clone(), agent, segment));
        }
        let writable = attached.writable();
        for (index, name, agent, segment) in begun {
            let status = StatusWriter::new(&segment);
            status.set_state(ThreadState::Ready);
            let time = Timebase { start_ticks: super::START_TICKS, ns_per_tick: 1.0 };
            let log = StampLog::new(&segment);
            let clock = clock::AnyClock::Virtual(self.clock.with_read_hook(fuse::look));
            let cycle = Cycle { clock, now: 0, time, draining: false, log };
            self.actors[index] = Some(SimulatedThread {
                process,
                name,
                agent: Some(agent),
                cycle,
                turns: None,
                status,
                mode: ThreadMode::Duty,
                writable: writable.clone(),
                wake: 0,
                busy: 0,
            });
        }
        Ok(())
    }

    /// Runs one duty cycle of a simulated thread, if it is due. Returns `true` if it did work.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn turn(&mut self, thread: usize) -> Result<bool, String> {
        self.spares.check()?;
        let Some(process) = self.actors[thread].as_ref().map(|actor| actor.process) else { return Ok(false) };
        if self.children[process].unattached.is_some() && self.children[process].ended.is_none() {
            self.attach_later(process)?;
            return Ok(true);
        }
        let Some(actor) = &mut self.actors[thread] else { return Ok(false) };
        let child = &mut self.children[actor.process];
        if child.ended.is_some() {
            return Ok(false);
        }
        match &mut child.killed {
            Some(0) => {
                child.ended = Some((false, "signal 9 (SIGKILL)".into()));
                if child.by_fault {
                    self.struck.push(FaultKind::Kill);
                }
                return Ok(true);
            }
            Some(turns) => *turns -= 1,
            None => {}
        }
        match &mut actor.mode {
            ThreadMode::Duty => {}
            ThreadMode::Hung | ThreadMode::Over => {
                actor.wake = u64::MAX;
                return Ok(false);
            }
            ThreadMode::Scribbling(draws) => {
                for _ in 0..SCRIBBLES {
                    own::scribble_once(&actor.writable, draws);
                }
                return Ok(true);
            }
        }
        let Some(agent) = &mut actor.agent else { return Ok(false) };
        self.machine.sync_some()?;
        let SimulatedThread { cycle, turns, status, .. } = actor;
        let turns = turns.get_or_insert_with(|| DutyCycle::begin(&mut **agent, cycle, status));
        fuse::set(child.looks);
        let turn =
            catch_unwind(AssertUnwindSafe(|| turns.run_once(&mut **agent, cycle, status, &self.control)));
        child.looks = fuse::take();
        match turn {
            Ok(CycleOutcome::Busy) => {
                (actor.wake, actor.busy) = (0, actor.cycle.now);
                return Ok(true);
            }
            Ok(CycleOutcome::Idle(ns)) => actor.wake = actor.cycle.now.saturating_add(ns),
            Ok(CycleOutcome::Finished) => {
                turns.end(&mut **agent, &mut actor.cycle, &actor.status);
                actor.status.set_state(ThreadState::Done);
                actor.mode = ThreadMode::Over;
                let process = actor.process;
                let mut threads = self.actors.iter().flatten().filter(|actor| actor.process == process);
                if threads.all(|actor| matches!(actor.mode, ThreadMode::Over)) {
                    self.children[process].ended = Some((true, "exit 0".into()));
                }
                return Ok(true);
            }
            Err(payload) => match payload.downcast::<InjectedUnwind>() {
                Ok(struck) => self.struck(thread, struck.0),
                Err(payload) => {
                    return Err(format!("{} panicked: {}", actor.name, message(&*payload)));
                }
            },
        }
        Ok(false)
    }

    /// Applies a fault that fired in a thread: its turn was unwound, and it has no further normal
    /// turn.
    fn struck(&mut self, thread: usize, kind: FaultKind) {
        self.struck.push(kind);
        let Some(actor) = &mut self.actors[thread] else { return };
        match kind {
            FaultKind::Hang | FaultKind::Stop | FaultKind::Forge | FaultKind::Feign | FaultKind::Jam => {
                actor.mode = ThreadMode::Hung
            }
            FaultKind::Scribble => {
                let draws = Draws::new(self.scenario.seed, Draws::SCRIBBLES);
                actor.mode = ThreadMode::Scribbling(Box::new(draws));
            }
            kind => {
                let how = match kind {
                    FaultKind::Segv => "signal 11 (SIGSEGV)",
                    FaultKind::Abort => "signal 6 (SIGABRT)",
                    FaultKind::Exit => "exit 3",
                    kind if kind.is_resource_fault() => "exit 41",
                    _ => "signal 9 (SIGKILL)",
                };
                self.children[actor.process].ended = Some((false, how.into()));
            }
        }
    }

    /// Returns the tick at which the first thread needs its next turn, at or after `from`.
    pub fn wake(&self, from: u64) -> u64 {
        let runs = |actor: &&SimulatedThread| self.children[actor.process].ended.is_none();
        let wakes = self.actors.iter().flatten().filter(runs).map(|actor| actor.wake);
        wakes.filter(|wake| *wake >= from).min().unwrap_or(u64::MAX)
    }

    /// Returns the tick at which a thread last did work.
    pub fn busy(&self, thread: usize) -> u64 {
        self.actors[thread].as_ref().map_or(0, |actor| actor.busy)
    }

    /// Stops or kills a simulated process by signal.
    pub fn signal(&mut self, process: usize, kind: FaultKind) {
        if kind == FaultKind::Stop {
            self.struck.push(kind);
            for actor in self.actors.iter_mut().flatten().filter(|actor| actor.process == process) {
                actor.mode = ThreadMode::Hung;
            }
        } else {
            self.children[process].by_fault = true;
            self.kill(process);
        }
    }

    /// Draws the clock reads left: in crash-recovery runs a process dies anywhere in its duty
    /// cycle, or during recovery.
    fn looks(&mut self) -> u64 {
        if self.scenario.kind == ScenarioKind::Recovery { self.draws.below(LAST_LOOKS) } else { 0 }
    }

    /// Returns `true` if every simulated process has ended.
    fn all_ended(&self) -> bool {
        self.children.iter().all(|child| child.ended.is_some())
    }

    /// Kills all running simulated processes immediately.
    fn kill_rest(&mut self) {
        for child in self.children.iter_mut().filter(|child| child.ended.is_none()) {
            child.ended = Some((false, "signal 9 (SIGKILL)".into()));
        }
    }

    /// Crashes the simulated machine with all its processes.
    pub fn crash(&mut self) {
        self.kill_rest();
        self.machine.crash();
    }

    /// Returns the simulated machine.
    pub fn machine(&self) -> Arc<SimulatedMachine> {
        Arc::clone(&self.machine)
    }

    /// Returns the exit status of each simulated process.
    pub fn exits(&self) -> Vec<ProcessExit> {
        let exit = |child: &SimulatedProcess| ProcessExit {
            process: child.name.clone(),
            pid: child.pid,
            how: child.ended.as_ref().map_or_else(|| "still running".into(), |(_, how)| how.clone()),
            usage: None,
        };
        self.children.iter().map(exit).collect()
    }
}

/// Returns the message of a panic.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

impl SimulatedProcesses<'_> {
    /// Observes every simulated process.
    pub fn observe(&self, seen: &mut Observations) {
        seen.processes.clear();
        seen.processes.extend(self.children.iter().map(|child| ProcessObservation {
            pid: child.pid,
            exit: child.ended.as_ref().map(|(in_order, how)| ExitObservation {
                is_success: *in_order,
                was_killed: !in_order,
                text: how.clone(),
                last_words: String::new(),
            }),
            is_proven_dead: child.ended.is_some(),
            ..ProcessObservation::default()
        }));
    }

    /// Kills a simulated process: it has a few turns left.
    pub fn kill(&mut self, process: usize) {
        let (turns, looks) = (self.draws.below(LAST_TURNS), self.looks());
        let child = &mut self.children[process];
        if child.ended.is_none() && child.killed.is_none() {
            (child.killed, child.looks) = (Some(turns), looks);
        }
    }

    /// Returns proof that a simulated process is gone, if it is: nothing that it held stays held.
    pub fn proof_of_death(&mut self, process: usize) -> Option<ProofOfDeath> {
        self.children[process].ended.as_ref()?;
        let actors = self.actors.iter_mut().flatten().filter(|actor| actor.process == process);
        let agents = actors.filter_map(|actor| actor.agent.take());
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
        let name = self.children[process].name.clone();
        ensure!(self.children[process].ended.is_some(), "{name} was started again while it runs");
        let pid = self.new_pid();
        self.children[process] = SimulatedProcess::new(name, pid);
        if self.scenario.kind != ScenarioKind::Recovery {
            // A scribbled shared ring may be unusable: the process that attaches to it reports that
            // and exits.
            match self.begin(process, None).context("cannot start a process again") {
                Err(_) if self.scenario.kind == ScenarioKind::Assault(FaultKind::Scribble) => {
                    self.children[process].ended = Some((false, "exit 1".into()));
                }
                begun => begun?,
            }
            return Ok(());
        }
        if self.is_attached_later() {
            self.children[process].unattached = Some(self.draws.below(restarts::MAX_START_TURNS));
            return Ok(());
        }
        self.attach_as_successor(process)
    }

    /// Keeps a hot standby ready for a simulated process.
    pub fn keep_standby(&mut self, process: usize) {
        if self.spares.has_turn(process) {
            let attached = self.attached(process);
            self.spares.start(&self.segments.plan, process, &self.control, attached);
        }
    }

    /// Lets every simulated process run until it has ended; the rest is killed. A SIGKILL of an
    /// outsider that has not struck by then comes too late: a real run would fail in its name.
    ///
    /// # Errors
    /// A thread panicked.
    pub fn end(&mut self) -> Result<(), String> {
        for child in &mut self.children {
            (child.killed, child.looks) = (None, 0);
        }
        for _ in 0..LAST_ROUNDS {
            for thread in 0..self.actors.len() {
                self.turn(thread)?;
            }
            if self.all_ended() {
                break;
            }
        }
        self.kill_rest();
        Ok(())
    }
}

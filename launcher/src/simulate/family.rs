//! The processes of a simulated run: real agents, taking turns on one virtual clock.
//!
//! A process dies by unwinding at the step of a push at which its fault is due.

use super::fuse::{self, Unwound};
use super::hostile;
use super::machine::Machine;
use super::scenario::{Scenario, ScenarioKind};
use super::spares::{Spare, Spares};
use crate::runtime::incidents::Children;
use crate::runtime::setup::Segments;
use analysis::record::ProcessExit;
use anyhow::{Context, Result, bail};
use protocol::agent::{Agent, Cycle, CycleOutcome, DutyCycle};
use protocol::control::Control;
use protocol::plan::{FaultKind, Journalling, Role};
use protocol::segments;
use protocol::stamps::StampLog;
use protocol::status::{StatusWriter, ThreadState};
use protocol::supervision::ProofOfDeath;
use roles::faults::Draws;
use roles::faults::own::{self, Means};
use roles::{BoxedEnds, Takeover};
use shm::attached::Attached;
use shm::memory::AtomicWords;
use shm::sync::AtomicU64;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use system::clock::{self, Clock as _, Timebase, Virtual};

/// Words that a scribbler writes in a turn.
const SCRIBBLES: usize = 20;
/// A process that was sent SIGKILL has fewer turns than this before it is gone.
const LAST_TURNS: u64 = 3;
/// One that comes back and was sent SIGKILL has fewer looks at its clock than this.
const LAST_LOOKS: u64 = 32;

/// How a simulated strategy does a fault to itself: see [`own::act`].
fn act(kind: FaultKind, means: &mut Means) {
    match kind {
        FaultKind::Flood => means.floods = true,
        FaultKind::Lose => means.loses = true,
        FaultKind::Hold => means.holds = true,
        FaultKind::ForgeHeader => own::forge_headers(&means.writable),
        FaultKind::Leak => {} // Memory is the kernel's matter.
        FaultKind::Forge | FaultKind::Feign => {
            own::lie(kind, means);
            resume_unwind(Box::new(Unwound(kind)))
        }
        kind => resume_unwind(Box::new(Unwound(kind))),
    }
}

/// What a thread does when it has its turn.
enum Mode {
    /// Its duty cycle.
    Duty,
    /// Nothing: it hangs.
    Hung,
    /// It writes words over all that its process can write.
    Scribbling(Box<Draws>),
    /// It has ended.
    Over,
}

/// A thread.
struct Actor {
    process: usize,
    name: String,
    agent: Option<Box<dyn Agent<clock::Chosen>>>,
    cycle: Cycle<clock::Chosen>,
    /// From its first turn on.
    turns: Option<DutyCycle>,
    status: StatusWriter,
    mode: Mode,
    /// What the process can write.
    writable: Vec<AtomicWords>,
    /// When it wants its next turn, in ticks.
    wake: u64,
    /// When it last found something to do, in ticks.
    busy: u64,
}

/// A process.
struct Child {
    name: String,
    pid: u32,
    /// How it ended: in order?, and in words.
    ended: Option<(bool, String)>,
    /// It was sent SIGKILL and has so many turns left.
    killed: Option<u64>,
    /// Looks at its clock that it has left then; 0: as many as it likes.
    looks: u64,
    /// That was a fault.
    by_fault: bool,
}

impl Child {
    const fn new(name: String, pid: u32) -> Self {
        Self { name, pid, ended: None, killed: None, looks: 0, by_fault: false }
    }
}

/// The agent of a process that was gone before it had one.
struct Nobody;

impl Agent<clock::Chosen> for Nobody {
    fn duty_cycle(&mut self, _: &mut Cycle<clock::Chosen>) -> usize {
        0
    }
}

/// All processes.
pub(super) struct Family<'a> {
    /// Of the technique.
    ends: BoxedEnds,
    scenario: &'a Scenario,
    control: Control,
    clock: Virtual,
    actors: Vec<Option<Actor>>,
    children: Vec<Child>,
    next_pid: u32,
    draws: Draws,
    segments: &'a Segments,
    spares: Spares<'a>,
    machine: Arc<Machine>,
    /// Faults that struck, by kind.
    pub struck: Vec<FaultKind>,
    /// Messages that a hostile strategy has tampered with.
    pub tampered: Arc<AtomicU64>,
}

impl<'a> Family<'a> {
    /// Every process started, none of them has had a turn.
    ///
    /// # Errors
    /// A segment that is not what it should be.
    pub fn start(
        scenario: &'a Scenario,
        ends: BoxedEnds,
        segments: &'a Segments,
        clock: &Virtual,
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
            spares: Spares::new(scenario),
            machine: Arc::new(Machine::new(scenario.seed)),
            struck: Vec::new(),
            tampered: Arc::new(AtomicU64::new(0)),
        };
        for process in &plan.processes {
            let pid = family.new_pid();
            family.children.push(Child::new(process.name.clone(), pid));
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

    /// What a process has of the segments, before anything of it is built.
    fn attached(&self, process: usize) -> Attached<'a> {
        let mut attached = self.segments.attached(&self.segments.plan.processes[process]);
        let waits = self.segments.plan.trading().journal != Journalling::Process;
        let disk = waits.then(|| self.machine.disk());
        Takeover { now: fuse::now, mistake: self.scenario.mistake, disk }.tell(&mut attached);
        attached
    }

    /// Builds the threads of a process as the process would: one that was just started, or that was
    /// a spare.
    fn begin(&mut self, process: usize, spare: Option<Spare<'a>>) -> Result<()> {
        let segments = self.segments;
        let plan = &segments.plan;
        let me = &plan.processes[process];
        let mut attached = match spare {
            Some(spare) => spare.go_on(),
            None => self.attached(process),
        };
        roles::recover(plan, me, &mut attached)?;
        let mut begun = Vec::new();
        // The engine's threads come last in a plan and are composed first: consumers before
        // producers.
        for &index in me.threads.iter().rev() {
            let thread = &plan.threads[index as usize];
            let agent = match (thread.roles.as_slice(), self.scenario.kind) {
                ([Role::Strategy(strategy)], ScenarioKind::Hostile(attack, from))
                    if self.scenario.culprits.contains(strategy)
                        && self.control.life(*strategy).epoch == 0 =>
                {
                    let attack = (attack, from, Arc::clone(&self.tampered));
                    hostile::agent(plan, *strategy, self.ends, attack, &mut attached)?
                }
                (_, ScenarioKind::Comebacks) => {
                    roles::compose(plan, thread, &self.control, &mut attached, act)?.boxed()
                }
                _ => {
                    let mut agent =
                        roles::compose_on(self.ends, plan, thread, &self.control, &mut attached, act)?;
                    let segment = segments::thread(&mut attached, &thread.name)?;
                    agent.arm(&attached, &segment);
                    agent.boxed()
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
            let clock = clock::Chosen::Virtual(self.clock.watched(fuse::look));
            let cycle = Cycle { clock, now: 0, time, draining: false, log };
            self.actors[index] = Some(Actor {
                process,
                name,
                agent: Some(agent),
                cycle,
                turns: None,
                status,
                mode: Mode::Duty,
                writable: writable.clone(),
                wake: 0,
                busy: 0,
            });
        }
        Ok(())
    }

    /// One turn of a thread, if it has any; whether it did something.
    ///
    /// # Errors
    /// It panicked.
    pub fn turn(&mut self, thread: usize) -> Result<bool, String> {
        self.spares.check()?;
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
            Mode::Duty => {}
            Mode::Hung | Mode::Over => {
                actor.wake = u64::MAX;
                return Ok(false);
            }
            Mode::Scribbling(draws) => {
                for _ in 0..SCRIBBLES {
                    own::scribble_once(&actor.writable, draws);
                }
                return Ok(true);
            }
        }
        let Some(agent) = &mut actor.agent else { return Ok(false) };
        self.machine.has_turn()?;
        let Actor { cycle, turns, status, .. } = actor;
        let turns = turns.get_or_insert_with(|| DutyCycle::begin(&mut **agent, cycle, status));
        fuse::set(child.looks);
        let turn = catch_unwind(AssertUnwindSafe(|| turns.turn(&mut **agent, cycle, status, &self.control)));
        child.looks = fuse::take();
        match turn {
            Ok(CycleOutcome::Busy) => {
                (actor.wake, actor.busy) = (0, actor.cycle.now);
                return Ok(true);
            }
            Ok(CycleOutcome::Idle(ns)) => actor.wake = actor.cycle.now.saturating_add(ns),
            Ok(CycleOutcome::Over) => {
                turns.end(&mut **agent, &mut actor.cycle, &actor.status);
                actor.status.set_state(ThreadState::Done);
                actor.mode = Mode::Over;
                let process = actor.process;
                let mut threads = self.actors.iter().flatten().filter(|actor| actor.process == process);
                if threads.all(|actor| matches!(actor.mode, Mode::Over)) {
                    self.children[process].ended = Some((true, "exit 0".into()));
                }
                return Ok(true);
            }
            Err(payload) => match payload.downcast::<Unwound>() {
                Ok(struck) => self.struck(thread, struck.0),
                Err(payload) => {
                    return Err(format!("{} panicked: {}", actor.name, message(&*payload)));
                }
            },
        }
        Ok(false)
    }

    /// A thread's own fault has struck it: it did not come to the end of its turn, and has no other
    /// like it.
    fn struck(&mut self, thread: usize, kind: FaultKind) {
        self.struck.push(kind);
        let Some(actor) = &mut self.actors[thread] else { return };
        match kind {
            FaultKind::Hang | FaultKind::Stop | FaultKind::Forge | FaultKind::Feign | FaultKind::Jam => {
                actor.mode = Mode::Hung
            }
            FaultKind::Scribble => {
                let draws = Draws::new(self.scenario.seed, Draws::SCRIBBLES);
                actor.mode = Mode::Scribbling(Box::new(draws));
            }
            kind => {
                let how = match kind {
                    FaultKind::Segv => "signal 11 (SIGSEGV)",
                    FaultKind::Abort => "signal 6 (SIGABRT)",
                    FaultKind::Exit => "exit 3",
                    kind if kind.takes() => "exit 41",
                    _ => "signal 9 (SIGKILL)",
                };
                self.children[actor.process].ended = Some((false, how.into()));
            }
        }
    }

    /// When the first thread wants its next turn, in ticks; of those that want it from that time
    /// on.
    pub fn wake(&self, from: u64) -> u64 {
        let runs = |actor: &&Actor| self.children[actor.process].ended.is_none();
        let wakes = self.actors.iter().flatten().filter(runs).map(|actor| actor.wake);
        wakes.filter(|wake| *wake >= from).min().unwrap_or(u64::MAX)
    }

    /// When a thread last found something to do, in ticks.
    pub fn busy(&self, thread: usize) -> u64 {
        self.actors[thread].as_ref().map_or(0, |actor| actor.busy)
    }

    /// Sends a process a signal: it is stopped, or killed.
    pub fn signal(&mut self, process: usize, kind: FaultKind) {
        if kind == FaultKind::Stop {
            self.struck.push(kind);
            for actor in self.actors.iter_mut().flatten().filter(|actor| actor.process == process) {
                actor.mode = Mode::Hung;
            }
        } else {
            self.children[process].by_fault = true;
            self.kill(process);
        }
    }

    /// Whether a process was sent SIGKILL and is not gone yet.
    pub fn is_dying(&self) -> bool {
        self.children.iter().any(|child| child.killed.is_some() && child.ended.is_none())
    }

    /// One that comes back dies anywhere in its duty cycle, or on its way back.
    fn looks(&mut self) -> u64 {
        if self.scenario.kind == ScenarioKind::Comebacks { self.draws.below(LAST_LOOKS) } else { 0 }
    }

    /// Whether every process has ended.
    pub fn all_ended(&self) -> bool {
        self.children.iter().all(|child| child.ended.is_some())
    }

    /// Kills what still runs, at once.
    pub fn kill_rest(&mut self) {
        for child in self.children.iter_mut().filter(|child| child.ended.is_none()) {
            child.ended = Some((false, "signal 9 (SIGKILL)".into()));
        }
    }

    /// The machine dies, with all of them.
    pub fn fall(&mut self) {
        self.kill_rest();
        self.machine.fall();
    }

    /// What they run on.
    pub fn machine(&self) -> Arc<Machine> {
        Arc::clone(&self.machine)
    }

    /// How each ended.
    pub fn exits(&self) -> Vec<ProcessExit> {
        let exit = |child: &Child| ProcessExit {
            process: child.name.clone(),
            pid: child.pid,
            how: child.ended.as_ref().map_or_else(|| "still running".into(), |(_, how)| how.clone()),
            usage: None,
        };
        self.children.iter().map(exit).collect()
    }
}

/// What a panic says.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

impl Children for Family<'_> {
    fn ended(&self, process: usize) -> Option<bool> {
        self.children[process].ended.as_ref().map(|(in_order, _)| *in_order)
    }

    fn was_killed(&self, process: usize) -> bool {
        self.ended(process) == Some(false)
    }

    fn how(&self, process: usize) -> String {
        self.children[process].ended.as_ref().map_or_else(|| "still running".into(), |(_, how)| how.clone())
    }

    fn pid(&self, process: usize) -> u32 {
        self.children[process].pid
    }

    fn kill(&mut self, process: usize) {
        let (turns, looks) = (self.draws.below(LAST_TURNS), self.looks());
        let child = &mut self.children[process];
        if child.ended.is_none() && child.killed.is_none() {
            (child.killed, child.looks) = (Some(turns), looks);
        }
    }

    fn death(&mut self, process: usize) -> io::Result<Option<ProofOfDeath>> {
        if self.children[process].ended.is_none() {
            return Ok(None);
        }
        let actors = self.actors.iter_mut().flatten().filter(|actor| actor.process == process);
        // All of them: none of what they hold is held any more.
        let agents = actors.filter_map(|actor| actor.agent.take());
        // One that was gone before it had any is as dead.
        let agents = agents.chain([Box::new(Nobody) as Box<dyn Agent<clock::Chosen>>]);
        // The dead put nothing on the disk.
        Ok(self.machine.without_disk(|| agents.map(ProofOfDeath::of_simulated).last()))
    }

    fn restart(&mut self, _: &Segments, process: usize) -> Result<()> {
        assert!(self.children[process].ended.is_some(), "a process has one incarnation at a time");
        let (pid, name) = (self.new_pid(), self.children[process].name.clone());
        self.children[process] = Child::new(name, pid);
        if self.scenario.kind != ScenarioKind::Comebacks {
            // A ring that all share may be no ring any more: who attaches to it says so and ends,
            // as a process does.
            match self.begin(process, None).context("cannot start a process again") {
                Err(_) if self.scenario.kind == ScenarioKind::Assault(FaultKind::Scribble) => {
                    self.children[process].ended = Some((false, "exit 1".into()));
                }
                begun => begun?,
            }
            return Ok(());
        }
        let spare = self.spares.take(process);
        // One in four dies on its way back, and one in four soon after.
        let fate = self.draws.below(4);
        fuse::set_now(self.clock.peek());
        fuse::set(if fate == 0 { 1 + self.draws.below(4) } else { 0 });
        let begun = catch_unwind(AssertUnwindSafe(|| self.begin(process, spare)));
        fuse::take();
        match begun.map_err(|payload| payload.downcast::<Unwound>()) {
            Ok(begun) => {
                begun.context("cannot start a process again")?;
                if fate == 1 {
                    self.kill(process);
                }
            }
            Err(Ok(_)) => self.children[process].ended = Some((false, "signal 9 (SIGKILL)".into())),
            Err(Err(payload)) => bail!("panicked while it came back: {}", message(&*payload)),
        }
        Ok(())
    }

    fn keep_spare(&mut self, _: &Segments, process: usize) {
        if self.spares.has_turn(process) {
            let attached = self.attached(process);
            self.spares.start(&self.segments.plan, process, &self.control, attached);
        }
    }
}

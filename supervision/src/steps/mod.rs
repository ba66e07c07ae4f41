//! Steps of a whole supervisor: a script of observations, and the actions that follow. Each test
//! takes the place of a run with real processes.

mod crash_loops;
mod debuggers;
mod early_deaths;
mod forged_headers;
mod groups;
mod journaled_roles;
mod lost_memory;
mod machine_pause;
mod outages;
mod stalls;
mod threads;

use super::*;
use crate::observations::{
    EngineObservation, ExitObservation, GatewayObservation, ProcessObservation, StrategyObservation,
    ThreadObservation,
};
use crate::stuck::Debugger;
use planner::fixtures::planned;
use protocol::plan::Pacing;
use protocol::status::LivenessSample;
use record::machine::Machine;

const MS: u64 = 1_000_000;
/// Time between two steps.
const STEP: u64 = 10 * MS;
/// The strategy to which something happens; strategy 0 trades on.
const VICTIM: StrategyIndex = StrategyIndex(1);

fn plan(settings: &str, liveness_ms: u64) -> Plan {
    let (_, mut plan, _) = planned(settings, &Machine::default()).unwrap();
    (plan.liveness_ns, plan.ns_per_tick) = (liveness_ms * MS, 1.0);
    // Without schedules in shared memory.
    plan.trading_mut().pacing = Pacing::Closed;
    plan
}

/// A run whose threads all have duty cycles, and whose engine repairs at once, unless the script
/// says otherwise.
struct SteppedRun<'a> {
    supervisor: Supervisor<'a>,
    observed: Observations,
    now: u64,
    /// Threads that have no duty cycle.
    silent: Vec<usize>,
    /// Threads that wait for the disk of a journal, according to the kernel.
    waits_for_disk: Vec<usize>,
    /// The debugger that has stopped the victim's process, according to the kernel.
    debugger: Option<Debugger>,
    /// Processes that exit with status 7 as soon as they were started again.
    crashing: Option<usize>,
    /// Killed processes do not exit before the script says so.
    exits_late: bool,
    /// A strategy that the engine does not repair.
    unrepaired: Option<StrategyIndex>,
    /// All actions, in order.
    actions: Vec<Action>,
}

impl<'a> SteppedRun<'a> {
    /// Starts a run and opens its barrier.
    fn start(plan: &'a Plan) -> Self {
        let limits = SupervisionLimits::new(Duration::from_secs(30), 2);
        let pulse = LivenessSample { state: ThreadState::Ready as u64, tid: 0, heartbeat_ticks: 0 };
        let thread = ThreadObservation {
            pulse,
            ticks: 0,
            error: String::new(),
            measured_events: 0,
            cpu: None,
            waits_for_disk: false,
            debugger: None,
            is_gone: false,
        };
        let pids = 100..100 + plan.processes.len() as u32;
        let process = |pid| ProcessObservation { pid, ..ProcessObservation::default() };
        let trading = plan.trading();
        let mut run = Self {
            supervisor: Supervisor::new(plan, DueTimes(&[]), limits, 1, MS),
            observed: Observations {
                processes: pids.map(process).collect(),
                threads: vec![thread; plan.threads.len()],
                strategies: vec![StrategyObservation::default(); trading.strategies.into()],
                gateways: vec![GatewayObservation::default(); trading.gateways().into()],
                engine: Some(EngineObservation::default()),
                ..Observations::default()
            },
            now: MS,
            silent: Vec::new(),
            waits_for_disk: Vec::new(),
            debugger: None,
            crashing: None,
            exits_late: false,
            unrepaired: None,
            actions: Vec::new(),
        };
        run.step();
        assert!(run.supervisor.is_trading());
        run.now = run.supervisor.start_ticks;
        let running = |thread: &mut ThreadObservation| thread.pulse.state = ThreadState::Running as u64;
        run.observed.threads.iter_mut().for_each(running);
        run
    }

    const fn plan(&self) -> &'a Plan {
        self.supervisor.plan
    }

    fn thread_of(&self, strategy: StrategyIndex) -> usize {
        self.plan().thread_of(Role::Strategy(strategy)).unwrap()
    }

    fn process_of(&self, strategy: StrategyIndex) -> usize {
        self.plan().process_of(Role::Strategy(strategy)).unwrap()
    }

    /// Lets the thread of a strategy report a state.
    fn set_state(&mut self, strategy: StrategyIndex, state: ThreadState) {
        let thread = self.thread_of(strategy);
        self.observed.threads[thread].pulse.state = state as u64;
    }

    /// Lets a process exit.
    fn exit(&mut self, process: usize, text: &str) {
        let is_success = text == "exit 0";
        let was_killed = text.starts_with("signal");
        let exit =
            ExitObservation { is_success, was_killed, text: text.into(), ..ExitObservation::default() };
        self.observed.processes[process].exit = Some(exit);
        self.observed.processes[process].is_proven_dead = true;
    }

    /// Observes what the supervisor wants to know, takes a step and performs its actions.
    fn step(&mut self) {
        self.now += STEP;
        let (victim, liveness) = (self.plan().thread_of(Role::Strategy(VICTIM)), self.supervisor.liveness());
        for (thread, found) in self.observed.threads.iter_mut().enumerate() {
            if found.state() == ThreadState::Running && !self.silent.contains(&thread) {
                found.pulse.heartbeat_ticks = self.now;
            }
            found.ticks = self.now;
            let is_asked = liveness.needs_debugger(thread, &found.pulse, self.now);
            let debugger = self.debugger.clone().filter(|_| Some(thread) == victim);
            found.debugger = is_asked.then_some(debugger);
            found.waits_for_disk = self.waits_for_disk.contains(&thread);
        }
        self.observed.last_words = self.supervisor.failing_process().map(|_| String::new());
        let mut actions = Vec::new();
        self.supervisor.step(&self.observed, self.now, &mut actions);
        for action in &actions {
            match *action {
                Action::Kill(process) if !self.exits_late => self.exit(process, "signal 9 (SIGKILL)"),
                Action::Fence(Role::Strategy(strategy), _) if self.unrepaired == Some(strategy) => {}
                Action::Fence(Role::Strategy(strategy), epoch) | Action::FenceThread(strategy, epoch) => {
                    let repair = &mut self.observed.strategies[strategy.as_usize()].repair;
                    (repair.repaired, repair.repaired_ticks) = (Some(epoch), self.now);
                }
                Action::Fence(Role::Gateway(gateway), epoch) => {
                    let repair = &mut self.observed.gateways[gateway.as_usize()].repair;
                    (repair.repaired, repair.repaired_ticks) = (Some(epoch), self.now);
                }
                Action::Restart(process) => self.start_again(process),
                _ => {}
            }
        }
        self.actions.append(&mut actions);
    }

    fn start_again(&mut self, process: usize) {
        self.observed.processes[process] = ProcessObservation { pid: 999, ..ProcessObservation::default() };
        for thread in &self.plan().processes[process].threads {
            let pulse = LivenessSample { state: ThreadState::Running as u64, tid: 0, heartbeat_ticks: 0 };
            self.observed.threads[*thread as usize].pulse = pulse;
        }
        for role in self.plan().roles_of(&self.plan().processes[process]) {
            if let Role::Strategy(strategy) = role {
                self.observed.strategies[strategy.as_usize()] = StrategyObservation::default();
            }
        }
        if self.crashing == Some(process) {
            self.exit(process, "exit 7");
        }
    }

    /// Takes steps for this time.
    fn run_for(&mut self, ms: u64) {
        let until = self.now + ms * MS;
        while self.now < until {
            self.step();
        }
    }

    /// Lets all strategies that are awaited finish, and takes steps until the run has ended.
    /// Returns how.
    fn finish(&mut self) -> RunOutcome {
        for strategy in StrategyIndex::first(self.plan().trading().strategies) {
            if self.supervisor.containment.awaits(strategy, &self.observed) {
                let thread = self.thread_of(strategy);
                self.set_state(strategy, ThreadState::Done);
                self.observed.threads[thread].is_gone = true;
            }
        }
        self.run_to_end()
    }

    /// Takes steps until the run has ended. Returns how.
    fn run_to_end(&mut self) -> RunOutcome {
        for _ in 0..1_000 {
            self.step();
            if self.actions.iter().any(|action| matches!(action, Action::EndProcesses(_))) {
                for process in 0..self.observed.processes.len() {
                    if self.observed.processes[process].exit.is_none() {
                        self.exit(process, "exit 0");
                    }
                }
            }
            if let Some(Action::End(outcome)) = self.actions.last() {
                return outcome.clone();
            }
        }
        panic!("it does not end: {:?}", self.actions);
    }

    /// Returns `true` if a process was killed.
    fn has_killed(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::Kill(_)))
    }

    /// Returns `true` if the user was told this.
    fn has_told(&self, expected: &str) -> bool {
        let tells = |action: &Action| matches!(action, Action::Complain(text) if text.contains(expected));
        self.actions.iter().any(tells)
    }

    fn incidents(&self) -> &[Incident] {
        self.supervisor.containment.incidents()
    }

    /// Returns the fences, in order.
    fn fences(&self) -> Vec<(Role, u16)> {
        let fence = |action: &Action| match action {
            Action::Fence(role, epoch) => Some((*role, *epoch)),
            _ => None,
        };
        self.actions.iter().filter_map(fence).collect()
    }
}

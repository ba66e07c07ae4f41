//! Keeps a run going when one of its processes dies, hangs or violates the protocol. A strategy's
//! death is an incident, a gateway's is an outage of its venue, and the engine and exchanges
//! recover from their journals.
//!
//! ```text
//! running ── past its deadline, quarantined ──▶ killed ─┐
//!    │                                                  ├─ proof of death ─▶ fenced
//!    └── its process has ended ─────────────────────────┘
//!
//! fenced ── repaired by the engine ─┬─▶ down
//!    ▲                              └─▶ (pause) ─▶ starting ─▶ running
//!    └──── cannot be started ─────────────────────────┘
//! ```
//!
//! The liveness deadline is the only step that depends on time. Fencing requires the kernel's proof
//! that the process is gone, and the memory of a dead process is reset only after the engine has
//! reported that it no longer reads it. The [restart policy](crate::restart_policy) decides whether
//! and when a strategy or gateway is restarted; one that stays down does not end the run. Engine
//! and exchanges are not fenced: see `journaled.rs`.
//!
//! A spare strategy is down from the start. One that is down is started again if an operator adds
//! it: see `additions.rs`.
//!
//! A strategy that is a thread of the engine's process dies alone if its thread ends or hangs: see
//! `threads.rs`. Strategies that share a process of their own die together: see `groups.rs`.

mod additions;
mod gateways;
mod groups;
mod journaled;
mod strategies;
mod supervised;
mod threads;

use protocol::index::{GatewayIndex, StrategyIndex};
use strategies::SLOW_EXIT;
pub use strategies::with_own_message;

use super::actions::{Action, Actions};
use super::observations::Observations;
use crate::stuck::{Liveness, LivenessFault};
use protocol::plan::{OnDeath, Plan, Role};
use record::run::{Addition, Incident, Outage, RoleRestart};
use std::collections::BTreeSet;
use std::time::Duration;
use supervised::{SupervisedProcess, SupervisedRoles, SupervisionStage};

/// Number of strategies whose headers are checked in one step: a few cache lines each.
const HEADERS_PER_STEP: u16 = 32;

/// The part of the supervisor that keeps a run going when processes end: the supervised processes
/// and their deaths so far.
pub struct Containment<'a> {
    plan: &'a Plan,
    start_ticks: u64,
    /// Maximum time between SIGKILL and exit.
    exit_limit: Duration,
    read_limit: Duration,
    /// Strategies in order, if their deaths are contained; then engine, exchanges and gateways.
    processes: Vec<SupervisedProcess>,
    incidents: Vec<Incident>,
    restarts: Vec<RoleRestart>,
    outages: Vec<Outage>,
    additions: Vec<Addition>,
    /// Orders that dead strategies had sent, and how many of them were settled.
    past_orders: (u64, u64),
    /// When the handling of a death last advanced, in ticks; 0 for never.
    last_step: u64,
    /// Commands of operators that were handled, by number.
    handled_commands: BTreeSet<u32>,
    /// First strategy whose header this step checks, round-robin.
    first_inspected: u16,
    /// Why the run cannot go on: a process cannot be restarted, or does not exit.
    error: Option<String>,
}

impl<'a> Containment<'a> {
    /// Creates a containment without processes, for the time before the start barrier opens, when
    /// the run survives no death.
    pub const fn inactive(plan: &'a Plan) -> Self {
        Self {
            plan,
            start_ticks: 0,
            exit_limit: Duration::MAX,
            read_limit: Duration::ZERO,
            processes: Vec::new(),
            incidents: Vec::new(),
            restarts: Vec::new(),
            outages: Vec::new(),
            additions: Vec::new(),
            past_orders: (0, 0),
            last_step: 0,
            handled_commands: BTreeSet::new(),
            first_inspected: 0,
            error: None,
        }
    }

    /// Creates a containment of the deaths that the plan allows the run to survive. The barrier
    /// opens at `start_ticks`, with every process running in epoch 0, except those of spare
    /// strategies. A killed process that has not exited within `exit_limit` may still write its
    /// memory: that ends the run. A strategy that an operator ends has `read_limit` to read its
    /// last reports.
    pub fn new(plan: &'a Plan, start_ticks: u64, (exit_limit, read_limit): (Duration, Duration)) -> Self {
        let mut processes = Vec::new();
        let process_of = |role| plan.process_of(role).expect("a valid plan runs every role");
        if plan.on_death != OnDeath::Stop {
            for index in StrategyIndex::first(plan.trading().strategies) {
                let role = Role::Strategy(index);
                let is_alone = |it: &usize| plan.strategy_dying_alone(&plan.threads[*it]).is_some();
                processes.push(match plan.thread_of(role).filter(is_alone) {
                    Some(thread) => SupervisedProcess::for_thread(plan, process_of(role), thread, index),
                    None => SupervisedProcess::for_strategy(plan, process_of(role), index),
                });
            }
        }
        if plan.exchanges_are_restartable() {
            let engine = Some(Role::Orchestrator).filter(|_| plan.engine_is_restartable());
            for role in engine.into_iter().chain(plan.trading().books().map(Role::Exchange)) {
                let roles = SupervisedRoles::Journaled(role);
                processes.push(SupervisedProcess::new(plan, process_of(role), roles));
            }
        }
        for (index, process) in plan.processes.iter().enumerate() {
            if plan.can_lose_gateways() && plan.can_lose_process(process) {
                let gateways = plan.roles_of(process).map(Role::index).map(GatewayIndex).collect();
                processes.push(SupervisedProcess::new(plan, index, SupervisedRoles::Gateways(gateways)));
            }
        }
        Self { start_ticks, exit_limit, read_limit, processes, ..Self::inactive(plan) }
    }

    /// Records that a fault was injected into the process of a role, at a time in ticks.
    pub(crate) fn record_fault(&mut self, role: Role, ticks: u64) {
        let Some(place) = self.processes.iter().position(|case| case.has_role(role)) else { return };
        for place in self.places_of_group(place) {
            self.processes[place].fault = Some(ticks);
        }
    }

    /// Returns `true` if the run continues when this process (index in the plan) crashes or hangs.
    pub fn supervises(&self, process: usize) -> bool {
        let is_handled =
            |case: &SupervisedProcess| !case.is_journaled() || case.stage != SupervisionStage::Down;
        self.processes.iter().any(|case| case.is_process(process) && is_handled(case))
    }

    fn case_of_thread(&self, thread: usize) -> Option<&SupervisedProcess> {
        self.processes.iter().find(|case| case.is_thread && case.threads[0] == thread)
    }

    /// Returns `true` if a thread (index in the plan) runs a strategy that can die without its
    /// process.
    pub fn supervises_thread(&self, thread: usize) -> bool {
        self.case_of_thread(thread).is_some()
    }

    /// Returns `true` if a thread ran a strategy that died without its process, and no successor
    /// runs.
    pub fn has_lost_thread(&self, thread: usize) -> bool {
        self.case_of_thread(thread).is_some_and(|case| case.stage != SupervisionStage::Running)
    }

    /// Returns `true` if a thread ran a strategy that died without its process, and the supervisor
    /// has nothing left to do for it.
    pub fn is_thread_down(&self, thread: usize) -> bool {
        self.case_of_thread(thread).is_some_and(|case| case.stage == SupervisionStage::Down)
    }

    /// Returns `true` if some strategy of the run is a thread that can end before its process; such
    /// an end does not wake the launcher.
    pub fn has_threads(&self) -> bool {
        self.processes.iter().any(|case| case.is_thread)
    }

    /// Returns `true` if a process's exit does not fail the run: its death is contained, or the
    /// engine or exchange in it has reported done.
    pub fn explains_exit_of(&self, process: usize, observed: &Observations) -> bool {
        let is_explained = |case: &SupervisedProcess| match case.stage {
            SupervisionStage::Running => case.is_journaled() && case.is_done(observed),
            _ => !case.is_journaled(),
        };
        self.processes.iter().any(|case| case.is_process(process) && is_explained(case))
    }

    /// Returns `true` while the engine repairs the death of a strategy or gateway, or the process
    /// of such a role is about to exit or to start. One that takes long to exit does not count: its
    /// exit wakes the launcher.
    pub fn is_repairing(&self) -> bool {
        use SupervisionStage::{Fenced, Joining, Killed, Starting};
        let is_so = |case: &SupervisedProcess| match case.stage {
            Killed(_) => !case.is_slow_to_exit,
            Fenced(_) | Starting(_) | Joining(_) => true,
            _ => false,
        };
        self.processes.iter().any(|case| !case.is_journaled() && is_so(case))
    }

    /// Returns `true` while an engine or exchange is restarting, or a fault injected into one has
    /// not been detected.
    pub fn is_role_restarting(&self, observed: &Observations) -> bool {
        self.processes.iter().any(|case| case.is_journaled() && case.is_away(observed))
    }

    /// Returns `true` while an engine, exchange or gateway is restarting, or a fault injected into
    /// one has not been detected.
    pub fn is_restarting(&self, observed: &Observations) -> bool {
        self.processes.iter().any(|case| !case.is_strategy() && case.is_away(observed))
    }

    /// Returns `true` while any supervised process is about to exit, to start or to become ready.
    /// Each of these waits has its own timeout.
    pub fn has_pending_process(&self) -> bool {
        use SupervisionStage::{Joining, Killed, Paused, Starting};
        let is_so = |case: &SupervisedProcess| {
            matches!(case.stage, Killed(_) | Paused(..) | Starting(_) | Joining(_))
        };
        self.processes.iter().any(is_so)
    }

    /// Returns `true` while a successor of the engine attaches to the memory of all roles. Until it
    /// has, no dead role's memory is reset: half of it could be read before, half after.
    fn is_engine_recovering(&self) -> bool {
        let is_so = |case: &SupervisedProcess| {
            case.is_journaled()
                && case.has_role(Role::Orchestrator)
                && matches!(case.stage, SupervisionStage::Starting(_))
        };
        self.processes.iter().any(is_so)
    }

    /// Returns the time of the next restart after a backoff pause, in nanoseconds since the start.
    /// Returns `None` if no process is in such a pause, or it waits for the engine.
    pub fn next_restart_ns(&self) -> Option<u64> {
        if self.is_engine_recovering() {
            return None;
        }
        let due = |case: &SupervisedProcess| match case.stage {
            SupervisionStage::Paused(_, due) => Some(due),
            _ => None,
        };
        self.processes.iter().filter_map(due).min()
    }

    /// Returns the total length of all processes' restart pauses, for each process since it last
    /// sent or settled an order, or ran for a second.
    pub fn futile_pauses(&self) -> Duration {
        self.processes.iter().map(|case| case.policy.futile_pauses()).sum()
    }

    /// Returns the time, in clock ticks, at which the supervisor last advanced the handling of a
    /// death; 0 if it never did.
    pub const fn last_step(&self) -> u64 {
        self.last_step
    }

    /// Returns `true` if the supervisor's next step checks the headers of the segments that this
    /// strategy can write; each step checks the next 32 strategies.
    pub fn is_inspected(&self, strategy: StrategyIndex) -> bool {
        let strategies = self.plan.trading().strategies.max(1);
        let first = (self.first_inspected + HEADERS_PER_STEP) % strategies;
        (strategy.0 + strategies - first) % strategies < HEADERS_PER_STEP
    }

    /// Returns `true` if a process was killed, or has exited, and its death is not proven yet.
    pub fn awaits_exit(&self, process: usize) -> bool {
        let is_so = |case: &SupervisedProcess| {
            case.is_process(process) && matches!(case.stage, SupervisionStage::Killed(_))
        };
        self.processes.iter().any(is_so)
    }

    /// Returns the reason why the run cannot continue after a death; `None` if it can.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Advances the handling of every strategy's and role's death as far as possible now. Operators
    /// can end and add strategies only while the run `is_trading`.
    pub fn step(
        &mut self,
        observed: &Observations,
        liveness: &mut Liveness,
        (now, is_trading): (u64, bool),
        out: &mut dyn Actions,
    ) {
        let strategies = self.plan.trading().strategies;
        self.first_inspected = (self.first_inspected + HEADERS_PER_STEP) % strategies.max(1);
        self.processes.iter_mut().for_each(|case| case.is_renewed = false);
        if is_trading {
            self.end_by_operators(observed, now, out);
            self.add_by_operators(observed, liveness, now, out);
        }
        for place in 0..self.processes.len() {
            // Several transitions at once where nothing has to be waited for. What was observed of
            // a process that was restarted just now is of its predecessor.
            while !self.processes[place].is_renewed && self.advance(place, observed, liveness, now, out) {
                self.last_step = now;
            }
        }
        if is_trading {
            // Also in the place of one that is down just now: the run waits for it.
            self.add_by_operators(observed, liveness, now, out);
        }
    }

    /// Makes one transition of a process. Returns `true` if there was one to make.
    fn advance(
        &mut self,
        place: usize,
        observed: &Observations,
        liveness: &mut Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) -> bool {
        let case = &self.processes[place];
        let is_strategy = case.is_strategy();
        match case.stage {
            SupervisionStage::Running | SupervisionStage::Starting(_) | SupervisionStage::Joining(_) => {
                return match case.roles {
                    SupervisedRoles::Strategy(_) => self.watch_strategy(place, observed, liveness, now, out),
                    SupervisedRoles::Gateways(_) => self.watch_gateways(place, observed, liveness, now, out),
                    SupervisedRoles::Journaled(role) => {
                        self.watch_journaled(place, role, observed, liveness, now, out)
                    }
                };
            }
            SupervisionStage::Killed(death) if case.is_thread => {
                if !self.can_fence_thread(place, observed, liveness) {
                    return false;
                }
                self.incidents[death].abandoned = self.processes[place].is_abandoned;
                self.fence(place, death, observed, now, out);
            }
            SupervisionStage::Killed(death) => {
                let process = &observed.processes[case.process];
                if process.exit.is_none() || !process.is_proven_dead {
                    self.await_exit(place, observed, liveness, now);
                    return false;
                }
                let is_early = process.exit.as_ref().is_some_and(|exit| exit.is_early);
                if case.is_journaled() {
                    self.restarts[death].steps.proven_early = is_early;
                    self.restart_journaled(place, death, liveness, now, out);
                    return false;
                }
                if is_strategy {
                    self.incidents[death].proven_early = is_early;
                }
                self.fence(place, death, observed, now, out);
            }
            SupervisionStage::Fenced(death) => {
                let is_repaired = match is_strategy {
                    true => self.try_record_strategy_repair(place, death, observed),
                    false => self.try_record_gateway_repair(place, death, observed),
                };
                if !is_repaired || !self.is_group_repaired(place, observed) {
                    return false;
                }
                if !self.processes[place].is_thread {
                    out.perform(Action::Forget(self.processes[place].process));
                }
                match self.processes[place].group.is_empty() {
                    true => self.decide_restart(place, death, observed, now, out),
                    false => self.decide_restart_of_group(place, observed, now, out),
                }
            }
            SupervisionStage::Paused(_, due) if self.ns_since_start(now) < due => return false,
            SupervisionStage::Paused(..) if self.is_engine_recovering() => return false,
            SupervisionStage::Paused(death, _) => match is_strategy {
                true if !self.processes[place].group.is_empty() => {
                    self.restart_group(place, liveness, now, out);
                }
                true => {
                    self.start_incarnation(place, SupervisionStage::Starting(death), liveness, now, out);
                }
                false => self.restart_gateways(place, death, liveness, now, out),
            },
            SupervisionStage::Down => return false,
        }
        true
    }

    /// Watches a killed process that has not exited: the run ends if it takes too long.
    fn await_exit(&mut self, place: usize, observed: &Observations, liveness: &Liveness, now: u64) {
        let case = &self.processes[place];
        let since = case.killed_ticks.max(liveness.awake_since());
        let waited_ns = self.ns_since_start(now).saturating_sub(self.ns_since_start(since));
        self.processes[place].is_slow_to_exit = waited_ns >= SLOW_EXIT.as_nanos() as u64;
        self.sample_dying(place, observed, waited_ns);
        if Duration::from_nanos(waited_ns) <= self.exit_limit {
            return;
        }
        let case = &self.processes[place];
        let name = &self.plan.processes[case.process].name;
        let pid = observed.processes[case.process].pid;
        let shortage = case.dying.and_then(|(first, last)| last.shortage_since(&first));
        let why = shortage.map_or_else(String::new, |why| format!("; {}", why.describe()));
        self.error = Some(format!(
            "{name} (pid {pid}) was killed and has not ended for {:?}: it may still write its memory{why}",
            self.exit_limit
        ));
    }

    /// Fences an incarnation whose death is proven: the engine then repairs what it left.
    fn fence(
        &mut self,
        place: usize,
        death: usize,
        observed: &Observations,
        now: u64,
        out: &mut dyn Actions,
    ) {
        let now_ns = self.ns_since_start(now);
        self.processes[place].stage = SupervisionStage::Fenced(death);
        let case = &self.processes[place];
        let (epoch, is_thread) = (case.epoch, case.is_thread);
        match &case.roles {
            SupervisedRoles::Gateways(gateways) => {
                for gateway in gateways {
                    out.perform(Action::Fence(Role::Gateway(*gateway), epoch));
                }
                let outage = &mut self.outages[death];
                if outage.repaired_ns.is_none() {
                    outage.fenced_ns = now_ns;
                }
            }
            SupervisedRoles::Strategy(strategy) => {
                let strategy = *strategy;
                self.check_headers_of_dead(strategy, death, observed);
                out.perform(match is_thread {
                    true => Action::FenceThread(strategy, epoch),
                    false => Action::Fence(Role::Strategy(strategy), epoch),
                });
                self.incidents[death].fenced_ns = now_ns;
            }
            SupervisedRoles::Journaled(_) => {}
        }
    }

    fn decide_restart(
        &mut self,
        place: usize,
        death: usize,
        observed: &Observations,
        now: u64,
        out: &mut dyn Actions,
    ) {
        let pause = match self.processes[place].is_strategy() {
            true => self.strategy_pause(place, death, observed, out),
            false => self.gateways_pause(place, death, now, out),
        };
        if let Some(pause) = pause {
            let due = self.ns_since_start(now).saturating_add(pause.as_nanos() as u64);
            self.processes[place].stage = SupervisionStage::Paused(death, due);
        }
    }

    /// Starts the next incarnation of a process, and forgets what was observed of the last one.
    fn restart(&mut self, place: usize, liveness: &mut Liveness, now: u64, out: &mut dyn Actions) {
        self.forget_last_incarnation(place, liveness, now);
        let case = &self.processes[place];
        if !case.is_thread {
            out.perform(Action::Restart(case.process));
        }
    }

    fn forget_last_incarnation(&mut self, place: usize, liveness: &mut Liveness, now: u64) {
        let case = &mut self.processes[place];
        (case.is_renewed, case.dying, case.is_slow_to_exit) = (true, None, false);
        case.threads.iter().for_each(|thread| liveness.reset_thread(*thread, now));
    }

    /// Returns the first fault of a process's threads.
    fn liveness_fault(&self, case: &SupervisedProcess, liveness: &Liveness) -> Option<LivenessFault> {
        if case.is_thread {
            return liveness.fault(case.threads[0], &[case.threads[0] as u32]);
        }
        let shares = &self.plan.processes[case.process].threads;
        case.threads.iter().find_map(|thread| liveness.fault(*thread, shares))
    }

    fn ns_since_start(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.plan.ns_per_tick) as u64
    }

    /// Returns the contained deaths of strategies so far.
    #[cfg(test)]
    pub(crate) fn incidents(&self) -> &[Incident] {
        &self.incidents
    }

    /// Converts the containment to its lists of incidents (strategy deaths), role restarts, gateway
    /// outages, and strategies that operators added.
    pub fn into_lists(self) -> (Vec<Incident>, Vec<RoleRestart>, Vec<Outage>, Vec<Addition>) {
        (self.incidents, self.restarts, self.outages, self.additions)
    }
}

#[cfg(test)]
mod tests;

//! Handles strategies that die, hang or violate the protocol while the run continues: fence, wait
//! for the engine's repair, restart.
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
//! that the process is gone, and a dead strategy's memory is reset only after the engine has
//! reported that it no longer reads it. [`RestartPolicy`] decides whether and when a strategy is
//! restarted; one that stays down does not end the run.

mod claims;
mod restart;
mod supervised;

use crate::runtime::lost_memory;
pub use crate::runtime::restart_policy::ProcessControl;
use crate::runtime::restart_policy::{IncarnationEnd, RestartPolicy};
use crate::runtime::setup::Segments;
use crate::runtime::stuck::{Liveness, LivenessFault};
use analysis::record::Incident;
use anyhow::Result;
use claims::{early_exit, sent_and_settled};
pub use claims::{sent_and_settled_on, with_own_message};
use protocol::plan::{OnDeath, Plan, Role};
use protocol::status::{self, ThreadState};
use protocol::supervision::{ProofOfDeath, ProtocolViolation, Repairs};
use shm::bell::Doorbell;
use std::time::Duration;
use supervised::{IncidentStage, SupervisedStrategy};
use system::clock::Clock;

/// Number of strategies whose headers are checked in one poll: a few cache lines each.
const HEADERS_PER_POLL: u16 = 32;

/// Why a strategy is to be killed.
struct StrategyFault {
    cause: String,
    violation: Option<ProtocolViolation>,
    /// When the engine detected it, in ticks; `None`: it was detected just now.
    detected: Option<u64>,
    /// The strategy hangs, does not exit, or forges its status.
    is_hang: bool,
}

/// The state of a run's strategies, and the handling of their deaths.
pub struct Incidents<'a> {
    segments: &'a Segments,
    repairs: Repairs,
    engine_bell: Option<Doorbell>,
    strategies: Vec<SupervisedStrategy>,
    list: Vec<Incident>,
    start_ticks: u64,
    /// Orders that dead incarnations had sent, and how many of them were settled.
    past_orders: (u64, u64),
    steps: u64,
    /// First strategy whose header this poll checks: [`HEADERS_PER_POLL`] of them, round-robin.
    first_inspected: u16,
    /// Notes for the user about strategies that stay down.
    notes: Vec<String>,
}

impl<'a> Incidents<'a> {
    /// Creates the state in which all strategies run their first incarnation.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let case = |index: u16| {
            let thread = plan.thread_of(Role::Strategy(index)).expect("a valid plan runs every role");
            let process =
                plan.processes.iter().position(|process| process.threads.contains(&(thread as u32)));
            let process = process.expect("a valid plan owns every thread");
            SupervisedStrategy {
                epoch: 0,
                stage: IncidentStage::Running,
                process,
                thread,
                fault: None,
                running_ns: 0,
                killed_ticks: 0,
                policy: RestartPolicy::default(),
                end: IncarnationEnd::default(),
                has_hung_at_start: false,
            }
        };
        Self {
            segments,
            repairs: Repairs::new(segments.repairs.clone().expect("created before").into()),
            engine_bell: segments.engine_bell.as_ref().map(Doorbell::from_outside),
            strategies: (0..plan.trading().strategies).map(case).collect(),
            list: Vec::new(),
            start_ticks,
            past_orders: (0, 0),
            steps: 0,
            first_inspected: 0,
            notes: Vec::new(),
        }
    }

    /// Returns `true` if the run survives deaths of strategies: each is a process that can be
    /// killed alone.
    pub fn is_enabled(plan: &Plan) -> bool {
        plan.on_death != OnDeath::Stop && plan.isolation != protocol::plan::Isolation::Thread
    }

    /// Returns `true` if a process of the plan is a strategy's.
    pub fn supervises(&self, process: usize) -> bool {
        self.strategies.iter().any(|case| case.process == process)
    }

    /// Records that a fault was injected into a strategy's process.
    pub fn record_fault(&mut self, strategy: u16, ticks: u64) {
        self.strategies[usize::from(strategy)].fault = Some(ticks);
    }

    /// Returns `true` if a strategy is running and none of its deaths is being handled.
    pub fn is_running(&self, strategy: u16) -> bool {
        self.strategies[usize::from(strategy)].stage == IncidentStage::Running
    }

    /// Returns `true` if a strategy's process has exited normally, so that nothing is left to
    /// repair.
    pub fn has_ended(&self, strategy: u16, children: &impl ProcessControl) -> bool {
        let case = &self.strategies[usize::from(strategy)];
        case.stage == IncidentStage::Running && children.exited_normally(case.process) == Some(true)
    }

    /// Returns `true` while a strategy's death, repair or start is in progress.
    pub fn is_busy(&self) -> bool {
        let is_idle =
            |stage| matches!(stage, IncidentStage::Running | IncidentStage::Paused(..) | IncidentStage::Down);
        self.strategies.iter().any(|case| !is_idle(case.stage))
    }

    /// Returns when the next strategy that waits is restarted, in nanoseconds since the start.
    /// `None` if none waits.
    pub fn next_restart_ns(&self) -> Option<u64> {
        let due = |case: &SupervisedStrategy| match case.stage {
            IncidentStage::Paused(_, due) => Some(due),
            _ => None,
        };
        self.strategies.iter().filter_map(due).min()
    }

    /// Returns the new notes for the user about strategies that stay down.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Returns the number of steps taken so far in handling deaths of strategies.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns `true` while a process is about to exit, to start or to become ready. Each of these
    /// waits has its own timeout.
    pub fn has_pending_process(&self) -> bool {
        use IncidentStage::{Killed, Paused, Starting};
        self.strategies.iter().any(|case| matches!(case.stage, Killed(_) | Paused(..) | Starting(_)))
    }

    /// Returns `true` if the run waits for a strategy: it is not done, or its death is not
    /// repaired.
    pub fn awaits(&self, strategy: u16) -> bool {
        let case = &self.strategies[usize::from(strategy)];
        match case.stage {
            IncidentStage::Running => self.state(case) != ThreadState::Done,
            IncidentStage::Down => false,
            _ => true,
        }
    }

    /// Returns the number of orders sent by all incarnations, and of open orders of the running
    /// ones.
    pub fn sent_and_open(&self) -> (u64, u64) {
        let (mut sent, mut open) = (self.past_orders.0, 0);
        let lives = |case: &SupervisedStrategy| {
            matches!(case.stage, IncidentStage::Running | IncidentStage::Starting(_))
        };
        for (case, orders) in
            self.strategies.iter().zip(&self.segments.plan.trading().orders).filter(|(case, _)| lives(case))
        {
            let (mine, settled) = sent_and_settled(self.segments, case.thread, *orders);
            sent += mine;
            open += mine.saturating_sub(settled);
        }
        (sent, open)
    }

    pub fn list(&self) -> &[Incident] {
        &self.list
    }

    /// Records incidents at the end of the run: strategies that had to be killed although done, or
    /// died then.
    pub fn record_end(&mut self, children: &impl ProcessControl, clock: &impl Clock) {
        let now = clock.now();
        for strategy in 0..self.strategies.len() as u16 {
            let SupervisedStrategy { stage, process, .. } = self.strategies[usize::from(strategy)];
            if stage != IncidentStage::Running {
                continue;
            }
            let forgery = self.segments.headers.forged_by(strategy);
            let in_order = children.exited_normally(process) == Some(true);
            if !in_order || forgery.is_some() {
                let mut how = forgery.clone().unwrap_or_default();
                if !in_order {
                    let said = format!("exited abnormally: {}", children.exit_text(process));
                    how = forgery.iter().fold(said, |said, forgery| format!("{said}; {forgery}"));
                }
                let incident = self.record_incident(strategy, children.pid(process), how, now);
                self.list[incident].quarantined = forgery.map(|_| ProtocolViolation::ForgedHeader);
                self.strategies[usize::from(strategy)].stage = IncidentStage::Down;
            }
        }
    }

    /// Returns the deaths of strategies during the run. A strategy that is down has not failed the
    /// run.
    pub fn into_list(self) -> Vec<Incident> {
        self.list
    }

    /// Sleeps until the engine reports something, at most `at_most`. Only called while something is
    /// in progress.
    pub fn wait_for_engine(&self, at_most: Duration) {
        self.repairs.wait(self.repairs.report_count(), at_most);
    }

    /// Returns `true` if a process has exited, or will, because its strategy died.
    pub fn explains_exit_of(&self, process: usize) -> bool {
        self.strategies.iter().any(|case| case.process == process && case.stage != IncidentStage::Running)
    }

    fn state(&self, case: &SupervisedStrategy) -> ThreadState {
        status::state(&self.segments.threads[case.thread])
    }

    fn ns_since_start(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.segments.plan.ns_per_tick) as u64
    }

    /// Advances the handling of every dead strategy (fence, repair, restart) as far as possible
    /// without waiting.
    pub fn poll(
        &mut self,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        self.first_inspected =
            (self.first_inspected + HEADERS_PER_POLL) % (self.strategies.len() as u16).max(1);
        for strategy in 0..self.strategies.len() as u16 {
            // Several steps at once where nothing has to be waited for.
            while self.step(strategy, children, liveness, clock)? {
                self.steps += 1;
            }
        }
        Ok(())
    }

    /// Takes one step of one strategy. Returns `true` if there was one to take.
    fn step(
        &mut self,
        strategy: u16,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<bool> {
        let case = &self.strategies[usize::from(strategy)];
        let (epoch, stage, place) = (case.epoch, case.stage, case.process);
        match stage {
            IncidentStage::Running | IncidentStage::Starting(_) => {
                let now = clock.now();
                let trouble = self.detect_fault(case, strategy, children, liveness);
                if lost_memory::was_hit(self.segments) {
                    // The memory may have been read after it was taken away: the run ends, and no
                    // strategy is blamed.
                    return Ok(false);
                }
                if let Some(StrategyFault { cause, violation: misconduct, detected, is_hang: hangs }) =
                    trouble
                {
                    let incident =
                        self.record_incident(strategy, children.pid(place), cause, detected.unwrap_or(now));
                    self.list[incident].quarantined = misconduct;
                    let case = &mut self.strategies[usize::from(strategy)];
                    case.has_hung_at_start = hangs && stage != IncidentStage::Running;
                    case.stage = IncidentStage::Killed(incident);
                    if children.exited_normally(place).is_none() {
                        children.kill(place);
                    }
                } else if let IncidentStage::Starting(incident) = stage
                    && self.state(case) >= ThreadState::Running
                {
                    let now_ns = self.ns_since_start(now);
                    self.list[incident].restarted_ns = Some(now_ns);
                    let case = &mut self.strategies[usize::from(strategy)];
                    (case.stage, case.running_ns) = (IncidentStage::Running, now_ns);
                } else {
                    return Ok(false);
                }
            }
            IncidentStage::Killed(incident) => {
                let since = case.killed_ticks.max(liveness.awake_since());
                let waited_ns = self.ns_since_start(clock.now()).saturating_sub(self.ns_since_start(since));
                let name = Role::Strategy(strategy).to_string();
                let Some(death) = children.proof_of_exit(place, &name, waited_ns)? else { return Ok(false) };
                self.fence(strategy, incident, &death, clock.now());
            }
            IncidentStage::Fenced(incident) => {
                let repair = self.repairs.strategy_repair(strategy);
                if repair.repaired != Some(epoch) {
                    return Ok(false);
                }
                // All that it had sent is taken.
                self.segments.control.record_end(place);
                self.list[incident].repaired_ns = Some(self.ns_since_start(repair.repaired_ticks));
                match self.decide_restart(strategy, incident) {
                    None => self.strategies[usize::from(strategy)].stage = IncidentStage::Down,
                    Some(Duration::ZERO) => {
                        self.restart(strategy, incident, children, liveness, clock.now())?
                    }
                    Some(pause) => {
                        let due = self.ns_since_start(clock.now()).saturating_add(pause.as_nanos() as u64);
                        self.strategies[usize::from(strategy)].stage = IncidentStage::Paused(incident, due);
                    }
                }
            }
            IncidentStage::Paused(incident, due) => {
                if self.ns_since_start(clock.now()) < due {
                    return Ok(false);
                }
                self.restart(strategy, incident, children, liveness, clock.now())?;
            }
            IncidentStage::Down => return Ok(false),
        }
        Ok(true)
    }

    /// Returns why a strategy is to be killed: it has exited, was quarantined, hangs or violates
    /// the protocol.
    fn detect_fault(
        &self,
        case: &SupervisedStrategy,
        strategy: u16,
        children: &impl ProcessControl,
        liveness: &Liveness,
    ) -> Option<StrategyFault> {
        let runs = children.exited_normally(case.process).is_none();
        let repair = self.repairs.strategy_repair(strategy);
        let quarantined = repair.quarantined.filter(|(epoch, _)| *epoch == case.epoch).map(|(_, why)| why);
        let trouble = |cause, misconduct| StrategyFault {
            cause,
            violation: misconduct,
            detected: None,
            is_hang: false,
        };
        if let Some(how) = early_exit(children, case.process, &self.segments.threads[case.thread]) {
            return Some(trouble(how, quarantined));
        }
        if let Some(why) = quarantined {
            let detected = Some(repair.quarantined_ticks);
            return Some(StrategyFault { detected, ..trouble(format!("quarantined: {why}"), quarantined) });
        }
        let shares = &self.segments.plan.processes[case.process].threads;
        let suspicion = liveness.fault(case.thread, shares);
        match suspicion {
            Some(LivenessFault::Forged(_)) => {
                let why = ProtocolViolation::ForgedStatus;
                let cause = format!("quarantined: {why}: {}", suspicion?);
                return Some(StrategyFault { is_hang: true, ..trouble(cause, Some(why)) });
            }
            // A process that exited normally neither hangs nor takes too long to exit.
            Some(suspicion) if runs => {
                return Some(StrategyFault { is_hang: true, ..trouble(suspicion.to_string(), None) });
            }
            _ => {}
        }
        if runs && self.is_blocking_ring(case, strategy, liveness) {
            let why = ProtocolViolation::UnwrittenClaim;
            let cause = format!(
                "quarantined: {why}: submit ring blocked at a slot that it announces: never written, \
                 while it keeps running"
            );
            return Some(trouble(cause, Some(why)));
        }
        let forgery =
            (runs && self.is_inspected(strategy)).then(|| self.segments.headers.forged_by(strategy));
        forgery.flatten().map(|forgery| trouble(forgery, Some(ProtocolViolation::ForgedHeader)))
    }

    /// Returns `true` if this poll checks that strategy's headers.
    fn is_inspected(&self, strategy: u16) -> bool {
        let strategies = self.strategies.len() as u16;
        (strategy + strategies - self.first_inspected) % strategies < HEADERS_PER_POLL
    }

    /// Returns `true` if the submit ring has been blocked too long at a slot that only this
    /// strategy can have announced. A strategy that is also silent hangs, which is found earlier;
    /// one that reports done has its own deadline.
    fn is_blocking_ring(&self, case: &SupervisedStrategy, strategy: u16, liveness: &Liveness) -> bool {
        let at = self.repairs.blocked_claim().filter(|at| at.announcer == Some(strategy));
        at.is_some_and(|at| self.state(case) != ThreadState::Done && liveness.is_overdue(at.since_ticks))
    }

    /// Records an incident. Returns its index in the list.
    fn record_incident(&mut self, strategy: u16, pid: u32, cause: String, detected: u64) -> usize {
        let detected_ns = self.ns_since_start(detected);
        let case = &mut self.strategies[usize::from(strategy)];
        let (epoch, fault) = (case.epoch, case.fault.take());
        let orders = self.segments.plan.trading().orders[usize::from(strategy)];
        let (sent, settled) = sent_and_settled(self.segments, case.thread, orders);
        let is_living = case.stage == IncidentStage::Running;
        let ran = if is_living { detected_ns.saturating_sub(case.running_ns) } else { 0 };
        let (is_planned, has_traded) = (fault.is_some(), sent + settled > 0);
        case.end = IncarnationEnd { is_planned, has_traded, ran: Duration::from_nanos(ran) };
        case.killed_ticks = detected;
        self.past_orders = (self.past_orders.0 + sent, self.past_orders.1 + settled);
        self.list.push(Incident {
            strategy,
            epoch,
            pid,
            cause,
            quarantined: None,
            fault_ns: fault.map(|ticks| self.ns_since_start(ticks)),
            detected_ns,
            fenced_ns: 0,
            repaired_ns: None,
            restarted_ns: None,
            stayed_down: None,
        });
        self.list.len() - 1
    }

    /// Fences an incarnation whose death is proven: the engine then repairs what it left.
    fn fence(&mut self, strategy: u16, incident: usize, death: &ProofOfDeath, now: u64) {
        let case = &mut self.strategies[usize::from(strategy)];
        case.stage = IncidentStage::Fenced(incident);
        // It can no longer write: a header that is intact now was never forged.
        let headers = &self.segments.headers;
        let Incident { cause, quarantined, .. } = &mut self.list[incident];
        if let Some(forgery) = headers.forged_by(strategy).filter(|_| quarantined.is_none()) {
            *cause = format!("{cause}; {forgery}");
            *quarantined = Some(ProtocolViolation::ForgedHeader);
        }
        headers.restore(strategy);
        self.segments.control.fence(strategy, case.epoch, death);
        if let Some(bell) = &self.engine_bell {
            bell.ring();
        }
        self.list[incident].fenced_ns = self.ns_since_start(now);
    }
}

#[cfg(test)]
mod tests;

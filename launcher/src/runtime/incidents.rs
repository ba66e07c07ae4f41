//! Strategies that die, hang or misbehave while the run goes on: fence, wait for the engine's
//! repair, start again.
//!
//! ```text
//! living ── past its deadline, quarantined ──▶ killed ─┐
//!    │                                                 ├─ the kernel says so ─▶ fenced ── the engine says so ─┬─▶ down
//!    └── its process has ended ────────────────────────┘                            ▲                         └─▶ (pause) ─▶ starting ─▶ living
//!                                                                                   └──── cannot be started ─────────────────┘
//! ```
//!
//! Nothing here goes by time but the deadline itself: a fence needs the kernel's word that the
//! process is gone, and the dead one's memory is only written after the engine has said that it no
//! longer reads it. Whether and when a strategy is started again is decided by its
//! [`RestartPolicy`]; one that stays down does not end the run.

mod claims;
mod restart;

use crate::runtime::lost_memory;
pub use crate::runtime::restart_policy::Children;
use crate::runtime::restart_policy::{IncarnationEnd, RestartPolicy};
use crate::runtime::setup::Segments;
use crate::runtime::stuck::{Liveness, Suspicion};
use analysis::record::Incident;
use anyhow::{Context, Result, bail};
use claims::{ended, sent_and_settled};
pub use claims::{settled_by, with_own_words};
use protocol::plan::{OnDeath, Plan, Role};
use protocol::status::{self, ThreadState};
use protocol::supervision::{ProofOfDeath, ProtocolViolation, Repairs};
use shm::bell::Doorbell;
use std::time::Duration;
use system::clock::Clock;

/// Strategies whose headers one look is at: some cache lines each.
const INSPECTED: u16 = 32;

/// Where one strategy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IncidentStage {
    Living,
    /// It was sent SIGKILL and has not ended yet; the incident's place in the list.
    Killed(usize),
    /// It is dead for certain, and the engine repairs.
    Fenced(usize),
    /// Its death is repaired, and it is started again at that time, in nanoseconds since the start
    /// of the run.
    Paused(usize, u64),
    /// Its next incarnation was started and is not in its duty cycles yet.
    Starting(usize),
    Down,
}

struct Case {
    epoch: u16,
    stage: IncidentStage,
    /// Its place among the plan's processes and threads.
    process: usize,
    thread: usize,
    /// When a fault was last done to it, in ticks.
    fault: Option<u64>,
    /// Since when this incarnation is in its duty cycles, in nanoseconds since the start.
    running_ns: u64,
    /// When its death was noticed, in ticks.
    killed_ticks: u64,
    policy: RestartPolicy,
    /// How the last incarnation ended.
    end: IncarnationEnd,
    /// It was killed since it took too long to its first duty cycle.
    has_hung_at_start: bool,
}

/// Why a strategy is given up.
struct Trouble {
    cause: String,
    misconduct: Option<ProtocolViolation>,
    /// When the engine found it, in ticks; `None`: it was found just now.
    detected: Option<u64>,
    /// It is silent, does not end or forges its status.
    hangs: bool,
}

/// How long the kernel may take to end a process that was killed. Nothing is certain of one that
/// does not end.
const DYING: Duration = Duration::from_secs(30);

/// The strategies of a run that goes on when one of them dies.
pub struct Incidents<'a> {
    segments: &'a Segments,
    repairs: Repairs,
    bell: Option<Doorbell>,
    cases: Vec<Case>,
    list: Vec<Incident>,
    start_ticks: u64,
    /// Orders that dead incarnations had sent, and those of them that were settled.
    past: (u64, u64),
    steps: u64,
    /// From which strategy on this look is at headers: at [`INSPECTED`] of them, in turn.
    inspected: u16,
    /// What there is to be said of strategies that stay down.
    notes: Vec<String>,
}

impl<'a> Incidents<'a> {
    /// All strategies alive, in epoch 0.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let case = |index: u16| {
            let thread = plan.thread_of(Role::Strategy(index)).expect("a valid plan runs every role");
            let process =
                plan.processes.iter().position(|process| process.threads.contains(&(thread as u32)));
            let process = process.expect("a valid plan owns every thread");
            Case {
                epoch: 0,
                stage: IncidentStage::Living,
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
            bell: segments.engine_bell.as_ref().map(Doorbell::from_outside),
            cases: (0..plan.trading().strategies).map(case).collect(),
            list: Vec::new(),
            start_ticks,
            past: (0, 0),
            steps: 0,
            inspected: 0,
            notes: Vec::new(),
        }
    }

    /// Whether deaths are contained here: the run goes on, and each strategy is a process that can
    /// be killed alone.
    pub fn contains(plan: &Plan) -> bool {
        plan.on_death != OnDeath::Stop && plan.isolation != protocol::plan::Isolation::Thread
    }

    /// Whether a process of the plan is a strategy's.
    pub fn owns(&self, process: usize) -> bool {
        self.cases.iter().any(|case| case.process == process)
    }

    /// A fault was done to a strategy on purpose.
    pub fn fault(&mut self, strategy: u16, ticks: u64) {
        self.cases[usize::from(strategy)].fault = Some(ticks);
    }

    /// Whether a strategy is there, and nothing happens to it now.
    pub fn is_living(&self, strategy: u16) -> bool {
        self.cases[usize::from(strategy)].stage == IncidentStage::Living
    }

    /// Whether a strategy's process has ended in order, so that nothing is done about what it left.
    pub fn has_ended(&self, strategy: u16, children: &impl Children) -> bool {
        let case = &self.cases[usize::from(strategy)];
        case.stage == IncidentStage::Living && children.ended(case.process) == Some(true)
    }

    /// Whether something is on its way: a death, a repair, a start.
    pub fn is_busy(&self) -> bool {
        let is_idle =
            |stage| matches!(stage, IncidentStage::Living | IncidentStage::Paused(..) | IncidentStage::Down);
        self.cases.iter().any(|case| !is_idle(case.stage))
    }

    /// When the next strategy is started again after its pause, in nanoseconds since the start;
    /// `None`: none is paused.
    pub fn next_restart_ns(&self) -> Option<u64> {
        let due = |case: &Case| match case.stage {
            IncidentStage::Paused(_, due) => Some(due),
            _ => None,
        };
        self.cases.iter().filter_map(due).min()
    }

    /// Takes what there is to be said of strategies that have just been given up.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Counts everything that was done about deaths.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether the kernel is about to end a process, or a process is about to be started or to get
    /// ready. Each has a bound of its own.
    pub fn waits_for_a_process(&self) -> bool {
        use IncidentStage::{Killed, Paused, Starting};
        self.cases.iter().any(|case| matches!(case.stage, Killed(_) | Paused(..) | Starting(_)))
    }

    /// Whether the run waits for a strategy: it is not done, or its death is not repaired.
    pub fn awaits(&self, strategy: u16) -> bool {
        let case = &self.cases[usize::from(strategy)];
        match case.stage {
            IncidentStage::Living => self.state(case) != ThreadState::Done,
            IncidentStage::Down => false,
            _ => true,
        }
    }

    /// Orders sent by all incarnations, and how many of the living ones' are still open.
    pub fn sent_and_open(&self) -> (u64, u64) {
        let (mut sent, mut open) = (self.past.0, 0);
        let lives = |case: &Case| matches!(case.stage, IncidentStage::Living | IncidentStage::Starting(_));
        for (case, orders) in
            self.cases.iter().zip(&self.segments.plan.trading().orders).filter(|(case, _)| lives(case))
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

    /// At the end of the run: a strategy that said that it was done and had to be killed, or died
    /// then, is an incident too.
    pub fn end(&mut self, children: &impl Children, clock: &impl Clock) {
        let now = clock.now();
        for strategy in 0..self.cases.len() as u16 {
            let Case { stage, process, .. } = self.cases[usize::from(strategy)];
            if stage != IncidentStage::Living {
                continue;
            }
            let forgery = self.segments.headers.forgery(strategy);
            let in_order = children.ended(process) == Some(true);
            if !in_order || forgery.is_some() {
                let mut how = forgery.clone().unwrap_or_default();
                if !in_order {
                    let said = format!("exited abnormally: {}", children.how(process));
                    how = forgery.iter().fold(said, |said, forgery| format!("{said}; {forgery}"));
                }
                let incident = self.begin(strategy, children.pid(process), how, now);
                self.list[incident].quarantined = forgery.map(|_| ProtocolViolation::ForgedHeader);
                self.cases[usize::from(strategy)].stage = IncidentStage::Down;
            }
        }
    }

    /// Ends the account; a strategy that is down has not failed the run.
    pub fn into_list(self) -> Vec<Incident> {
        self.list
    }

    /// Sleeps until the engine says something, at most that long; only while something is on its
    /// way.
    pub fn wait(&self, at_most: Duration) {
        self.repairs.wait(self.repairs.said(), at_most);
    }

    /// Whether a process ended, or will, because its strategy died.
    pub fn excuses(&self, process: usize) -> bool {
        self.cases.iter().any(|case| case.process == process && case.stage != IncidentStage::Living)
    }

    fn state(&self, case: &Case) -> ThreadState {
        status::state(&self.segments.threads[case.thread])
    }

    fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.segments.plan.ns_per_tick) as u64
    }

    /// Takes every strategy as far as it can go now.
    pub fn look(
        &mut self,
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        self.inspected = (self.inspected + INSPECTED) % (self.cases.len() as u16).max(1);
        for strategy in 0..self.cases.len() as u16 {
            // Several steps at once where nothing has to be waited for.
            while self.step(strategy, children, liveness, clock)? {
                self.steps += 1;
            }
        }
        Ok(())
    }

    /// One step of one strategy; whether it took one.
    fn step(
        &mut self,
        strategy: u16,
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<bool> {
        let case = &self.cases[usize::from(strategy)];
        let (epoch, stage, place) = (case.epoch, case.stage, case.process);
        match stage {
            IncidentStage::Living | IncidentStage::Starting(_) => {
                let now = clock.now();
                let trouble = self.trouble(case, strategy, children, liveness);
                if lost_memory::is_met(self.segments) {
                    // Something of it may have been read where memory is gone: the run ends, and
                    // nobody is blamed.
                    return Ok(false);
                }
                if let Some(Trouble { cause, misconduct, detected, hangs }) = trouble {
                    let incident = self.begin(strategy, children.pid(place), cause, detected.unwrap_or(now));
                    self.list[incident].quarantined = misconduct;
                    let case = &mut self.cases[usize::from(strategy)];
                    case.has_hung_at_start = hangs && stage != IncidentStage::Living;
                    case.stage = IncidentStage::Killed(incident);
                    if children.ended(place).is_none() {
                        children.kill(place);
                    }
                } else if let IncidentStage::Starting(incident) = stage
                    && self.state(case) >= ThreadState::Running
                {
                    let now_ns = self.ns(now);
                    self.list[incident].restarted_ns = Some(now_ns);
                    let case = &mut self.cases[usize::from(strategy)];
                    (case.stage, case.running_ns) = (IncidentStage::Living, now_ns);
                } else {
                    return Ok(false);
                }
            }
            IncidentStage::Killed(incident) => {
                let death = match children.ended(place) {
                    Some(_) => children.death(place).context("cannot watch a process")?,
                    None => None,
                };
                let Some(death) = death else {
                    let since = self.cases[usize::from(strategy)].killed_ticks.max(liveness.awake_since());
                    if self.ns(clock.now()).saturating_sub(self.ns(since)) > DYING.as_nanos() as u64 {
                        let (name, pid) = (Role::Strategy(strategy), children.pid(place));
                        bail!(
                            "{name} (pid {pid}) was killed and has not ended for {DYING:?}: it may still write its memory"
                        );
                    }
                    return Ok(false);
                };
                self.fence(strategy, incident, &death, clock.now());
            }
            IncidentStage::Fenced(incident) => {
                let repair = self.repairs.of(strategy);
                if repair.repaired != Some(epoch) {
                    return Ok(false);
                }
                // All that it had sent is taken.
                self.segments.control.ended(place);
                self.list[incident].repaired_ns = Some(self.ns(repair.repaired_ticks));
                match self.decide(strategy, incident) {
                    None => self.cases[usize::from(strategy)].stage = IncidentStage::Down,
                    Some(Duration::ZERO) => {
                        self.restart(strategy, incident, children, liveness, clock.now())?
                    }
                    Some(pause) => {
                        let due = self.ns(clock.now()).saturating_add(pause.as_nanos() as u64);
                        self.cases[usize::from(strategy)].stage = IncidentStage::Paused(incident, due);
                    }
                }
            }
            IncidentStage::Paused(incident, due) => {
                if self.ns(clock.now()) < due {
                    return Ok(false);
                }
                self.restart(strategy, incident, children, liveness, clock.now())?;
            }
            IncidentStage::Down => return Ok(false),
        }
        Ok(true)
    }

    /// Returns why a strategy is to be given up: it has ended, was quarantined, hangs or
    /// misbehaves.
    fn trouble(
        &self,
        case: &Case,
        strategy: u16,
        children: &impl Children,
        liveness: &Liveness,
    ) -> Option<Trouble> {
        let runs = children.ended(case.process).is_none();
        let repair = self.repairs.of(strategy);
        let quarantined = repair.quarantined.filter(|(epoch, _)| *epoch == case.epoch).map(|(_, why)| why);
        let trouble = |cause, misconduct| Trouble { cause, misconduct, detected: None, hangs: false };
        if let Some(how) = ended(children, case.process, &self.segments.threads[case.thread]) {
            return Some(trouble(how, quarantined));
        }
        if let Some(why) = quarantined {
            let detected = Some(repair.quarantined_ticks);
            return Some(Trouble { detected, ..trouble(format!("quarantined: {why}"), quarantined) });
        }
        let shares = &self.segments.plan.processes[case.process].threads;
        let suspicion = liveness.suspicion(case.thread, shares);
        match suspicion {
            Some(Suspicion::Forged(_)) => {
                let why = ProtocolViolation::ForgedStatus;
                let cause = format!("quarantined: {why}: {}", suspicion?);
                return Some(Trouble { hangs: true, ..trouble(cause, Some(why)) });
            }
            // One that has ended in order neither hangs nor takes long to end.
            Some(suspicion) if runs => {
                return Some(Trouble { hangs: true, ..trouble(suspicion.to_string(), None) });
            }
            _ => {}
        }
        if runs && self.withholds(case, strategy, liveness) {
            let why = ProtocolViolation::WithheldPlace;
            let cause = format!(
                "quarantined: {why}: submit ring blocked at a slot that it announces: never written, \
                 while it keeps running"
            );
            return Some(trouble(cause, Some(why)));
        }
        let forgery = (runs && self.is_inspected(strategy)).then(|| self.segments.headers.forgery(strategy));
        forgery.flatten().map(|forgery| trouble(forgery, Some(ProtocolViolation::ForgedHeader)))
    }

    /// Whether this look is at the headers of that strategy.
    fn is_inspected(&self, strategy: u16) -> bool {
        let strategies = self.cases.len() as u16;
        (strategy + strategies - self.inspected) % strategies < INSPECTED
    }

    /// Whether everybody waits for a place that only this strategy can have announced, and has for
    /// too long. Who is silent as well hangs, and is found before; who says that it is done has a
    /// deadline of its own.
    fn withholds(&self, case: &Case, strategy: u16, liveness: &Liveness) -> bool {
        let at = self.repairs.standstill().filter(|at| at.announcer == Some(strategy));
        at.is_some_and(|at| self.state(case) != ThreadState::Done && liveness.is_overdue(at.since_ticks))
    }

    /// Notes an incident; its place in the list.
    fn begin(&mut self, strategy: u16, pid: u32, cause: String, detected: u64) -> usize {
        let detected_ns = self.ns(detected);
        let case = &mut self.cases[usize::from(strategy)];
        let (epoch, fault) = (case.epoch, case.fault.take());
        let orders = self.segments.plan.trading().orders[usize::from(strategy)];
        let (sent, settled) = sent_and_settled(self.segments, case.thread, orders);
        let is_living = case.stage == IncidentStage::Living;
        let ran = if is_living { detected_ns.saturating_sub(case.running_ns) } else { 0 };
        let (is_planned, has_traded) = (fault.is_some(), sent + settled > 0);
        case.end = IncarnationEnd { is_planned, has_traded, ran: Duration::from_nanos(ran) };
        case.killed_ticks = detected;
        self.past = (self.past.0 + sent, self.past.1 + settled);
        self.list.push(Incident {
            strategy,
            epoch,
            pid,
            cause,
            quarantined: None,
            fault_ns: fault.map(|ticks| self.ns(ticks)),
            detected_ns,
            fenced_ns: 0,
            repaired_ns: None,
            restarted_ns: None,
            stayed_down: None,
        });
        self.list.len() - 1
    }

    /// The death of the incarnation is certain: the engine is to repair what it left.
    fn fence(&mut self, strategy: u16, incident: usize, death: &ProofOfDeath, now: u64) {
        let case = &mut self.cases[usize::from(strategy)];
        case.stage = IncidentStage::Fenced(incident);
        // It writes no more: a header that is good now was never forged.
        let headers = &self.segments.headers;
        let Incident { cause, quarantined, .. } = &mut self.list[incident];
        if let Some(forgery) = headers.forgery(strategy).filter(|_| quarantined.is_none()) {
            *cause = format!("{cause}; {forgery}");
            *quarantined = Some(ProtocolViolation::ForgedHeader);
        }
        headers.restore(strategy);
        self.segments.control.fence(strategy, case.epoch, death);
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        self.list[incident].fenced_ns = self.ns(now);
    }
}

#[cfg(test)]
mod tests;

//! Strategies that die, hang or misbehave while the run goes on: fence, wait for the engine's repair, start again.
//!
//! ```text
//! living ── past its deadline, quarantined ──▶ killed ─┐
//!    │                                                 ├─ the kernel says so ─▶ fenced ── the engine says so ─┬─▶ down
//!    └── its process has ended ────────────────────────┘                                                      └─▶ starting ─▶ living
//! ```
//!
//! Nothing here goes by time but the deadline itself: a fence needs the kernel's word that the process is gone, and the
//! dead one's memory is only written after the engine has said that it no longer reads it.

use crate::runtime::liveness::{Liveness, Suspicion};
use crate::runtime::lost_memory;
use crate::runtime::setup::Segments;
use analysis::record::Incident;
use anyhow::{Context, Result};
use protocol::labels::StrategyCounter;
use protocol::plan::{OnDeath, Plan, Role};
use protocol::role::RoleKind;
use protocol::status::{self, ThreadState};
use protocol::supervision::{Death, Misconduct, Repairs};
use protocol::wire::MAX_EPOCH;
use shm::bell::Bell;
use shm::clock::Clock;
use shm::memory::View;
use std::time::Duration;

/// The processes of a run, by their places in the plan, as far as incidents have to do with them. In a simulation they are
/// none of the kernel's.
pub trait Children {
    /// Whether it ended in order; `None`: it runs.
    fn ended(&self, process: usize) -> Option<bool>;
    /// Whether a signal ended it.
    fn was_killed(&self, process: usize) -> bool;
    /// Whether it said that it was in a sandbox and was not.
    fn has_lied(&self, process: usize) -> bool {
        let _ = process;
        false
    }
    /// How it ended, in words.
    fn how(&self, process: usize) -> String;
    /// Its process id.
    fn pid(&self, process: usize) -> u32;
    /// Kills it, unless it has ended.
    fn kill(&mut self, process: usize);
    /// Proof that it has ended, if it has.
    ///
    /// # Errors
    /// What the system refused.
    fn death(&mut self, process: usize) -> std::io::Result<Option<Death>>;
    /// Starts it again, after it has ended.
    ///
    /// # Errors
    /// It cannot be started.
    fn restart(&mut self, segments: &Segments, process: usize) -> Result<()>;
    /// Sees to it that a process stands ready to be its next incarnation, where there are such.
    fn keep_spare(&mut self, segments: &Segments, process: usize) {
        let _ = (segments, process);
    }
}

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
    /// Its next incarnation was started and is not in its duty cycles yet.
    Starting(usize),
    /// It is dead and stays so.
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
}

/// The strategies of a run that goes on when one of them dies.
pub struct Incidents<'a> {
    segments: &'a Segments,
    repairs: Repairs,
    bell: Option<Bell>,
    cases: Vec<Case>,
    list: Vec<Incident>,
    start_ticks: u64,
    /// Orders that dead incarnations had sent, and those of them that were settled.
    past: (u64, u64),
    steps: u64,
    /// From which strategy on this look is at headers: at [`INSPECTED`] of them, in turn.
    inspected: u16,
}

impl<'a> Incidents<'a> {
    /// All strategies alive, in epoch 0.
    ///
    /// # Panics
    /// If the segments are not created yet.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let case = |index: u16| {
            let thread = plan.thread_of(Role::Strategy(index)).expect("a valid plan runs every role");
            let process =
                plan.processes.iter().position(|process| process.threads.contains(&(thread as u32)));
            let process = process.expect("a valid plan owns every thread");
            Case { epoch: 0, stage: IncidentStage::Living, process, thread, fault: None }
        };
        Self {
            segments,
            repairs: Repairs::new(segments.repairs.clone().expect("created before").into()),
            bell: segments.engine_bell.as_ref().map(Bell::from_outside),
            cases: (0..plan.trading().strategies).map(case).collect(),
            list: Vec::new(),
            start_ticks,
            past: (0, 0),
            steps: 0,
            inspected: 0,
        }
    }

    /// Whether deaths are contained here: the run goes on, and each strategy is a process that can be killed alone.
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
        self.cases.iter().any(|case| !matches!(case.stage, IncidentStage::Living | IncidentStage::Down))
    }

    /// Counts everything that was done about deaths.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether the kernel is about to end a process, or a process is about to get ready. Both have a bound of their own.
    pub fn waits_for_a_process(&self) -> bool {
        self.cases
            .iter()
            .any(|case| matches!(case.stage, IncidentStage::Killed(_) | IncidentStage::Starting(_)))
    }

    /// Whether the run waits for a strategy: it is not done, or its death is not repaired.
    pub fn awaits(&self, strategy: u16) -> bool {
        let case = &self.cases[usize::from(strategy)];
        match case.stage {
            IncidentStage::Living => self.state(case) != ThreadState::Done,
            IncidentStage::Down => false,
            IncidentStage::Killed(_) | IncidentStage::Fenced(_) | IncidentStage::Starting(_) => true,
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

    /// What has happened so far.
    pub fn list(&self) -> &[Incident] {
        &self.list
    }

    /// At the end of the run: a strategy that said that it was done and had to be killed, or died then, is an incident too.
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
                    let said = format!("did not end in order: {}", children.how(process));
                    how = forgery.iter().fold(said, |said, forgery| format!("{said}; {forgery}"));
                }
                let incident = self.begin(strategy, children.pid(process), how, now);
                self.list[incident].quarantined = forgery.map(|_| Misconduct::ForgedHeader);
                self.cases[usize::from(strategy)].stage = IncidentStage::Down;
            }
        }
    }

    /// Ends the account; a strategy that is down has not failed the run.
    pub fn into_list(self) -> Vec<Incident> {
        self.list
    }

    /// Sleeps until the engine says something, at most that long; only while something is on its way.
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
    ///
    /// # Errors
    /// What the system refused: a process that cannot be asked about, or started again.
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
        let plan = &self.segments.plan;
        let case = &self.cases[usize::from(strategy)];
        let (epoch, stage, place) = (case.epoch, case.stage, case.process);
        match stage {
            IncidentStage::Living | IncidentStage::Starting(_) => {
                let now = clock.now();
                let quarantined =
                    self.repairs.of(strategy).quarantined.filter(|(quarantined, _)| *quarantined == epoch);
                // One that has ended in order neither hangs nor takes long to end.
                let suspicion = liveness
                    .suspicion(case.thread, &plan.processes[place].threads)
                    .filter(|found| children.ended(place).is_none() || matches!(found, Suspicion::Forged(_)));
                let is_withheld = self.withholds(strategy, liveness) && children.ended(place).is_none();
                let how = ended(children, place, &self.segments.threads[case.thread]);
                if lost_memory::is_met(self.segments) {
                    // Something above may have been read where memory is gone: the run ends, and nobody is blamed.
                    return Ok(false);
                }
                if let Some(how) = how {
                    let incident = self.begin(strategy, children.pid(place), how, now);
                    let lie = children.has_lied(place).then_some(Misconduct::ForgedStatus);
                    self.list[incident].quarantined = quarantined.map(|(_, why)| why).or(lie);
                    self.cases[usize::from(strategy)].stage = IncidentStage::Killed(incident);
                } else if let Some((_, why)) = quarantined {
                    let ticks = self.repairs.of(strategy).quarantined_ticks;
                    let incident =
                        self.begin(strategy, children.pid(place), format!("quarantined: {why}"), ticks);
                    self.list[incident].quarantined = Some(why);
                    self.kill(strategy, incident, children);
                } else if let Some(suspicion) = suspicion {
                    let forged = matches!(suspicion, Suspicion::Forged(_));
                    let quarantined = forged.then_some(Misconduct::ForgedStatus);
                    let why = quarantined.map_or(String::new(), |why| format!("quarantined: {why}: "));
                    let pid = children.pid(place);
                    let incident = self.begin(strategy, pid, format!("{why}{suspicion}"), now);
                    self.list[incident].quarantined = quarantined;
                    self.kill(strategy, incident, children);
                } else if is_withheld {
                    let why = Misconduct::WithheldPlace;
                    let how = format!(
                        "quarantined: {why}: nothing comes past a place of the submit hand-off that it announces, \
                         and its duty cycles go on"
                    );
                    let incident = self.begin(strategy, children.pid(place), how, now);
                    self.list[incident].quarantined = Some(why);
                    self.kill(strategy, incident, children);
                } else if self.is_inspected(strategy)
                    && children.ended(place).is_none()
                    && let Some(forgery) = self.segments.headers.forgery(strategy)
                {
                    let incident = self.begin(strategy, children.pid(place), forgery, now);
                    self.list[incident].quarantined = Some(Misconduct::ForgedHeader);
                    self.kill(strategy, incident, children);
                } else if let IncidentStage::Starting(incident) = stage
                    && self.state(case) >= ThreadState::Running
                {
                    self.list[incident].restarted_ns = Some(self.ns(now));
                    self.cases[usize::from(strategy)].stage = IncidentStage::Living;
                } else {
                    return Ok(false);
                }
            }
            IncidentStage::Killed(incident) => {
                if children.ended(place).is_none() {
                    return Ok(false);
                }
                let death = children.death(place).context("cannot watch a process")?;
                let Some(death) = death else { return Ok(false) };
                // It writes no more: what is not found now was never there.
                if let Some(forgery) = self
                    .segments
                    .headers
                    .forgery(strategy)
                    .filter(|_| self.list[incident].quarantined.is_none())
                {
                    let Incident { cause, quarantined, .. } = &mut self.list[incident];
                    *cause = format!("{cause}; {forgery}");
                    *quarantined = Some(Misconduct::ForgedHeader);
                }
                self.segments.headers.restore(strategy);
                self.segments.control.fence(strategy, epoch, &death);
                if let Some(bell) = &self.bell {
                    bell.ring();
                }
                self.list[incident].fenced_ns = self.ns(clock.now());
                self.cases[usize::from(strategy)].stage = IncidentStage::Fenced(incident);
            }
            IncidentStage::Fenced(incident) => {
                let repair = self.repairs.of(strategy);
                if repair.repaired != Some(epoch) {
                    return Ok(false);
                }
                // All that it had sent is taken.
                self.segments.control.ended(place);
                self.list[incident].repaired_ns = Some(self.ns(repair.repaired_ticks));
                if self.may_restart(strategy, incident) {
                    self.restart(strategy, incident, children, liveness, clock.now())?;
                } else {
                    self.cases[usize::from(strategy)].stage = IncidentStage::Down;
                }
            }
            IncidentStage::Down => return Ok(false),
        }
        Ok(true)
    }

    /// Whether this look is at the headers of that strategy.
    fn is_inspected(&self, strategy: u16) -> bool {
        let strategies = self.cases.len() as u16;
        (strategy + strategies - self.inspected) % strategies < INSPECTED
    }

    /// Whether everybody waits for a place that only this strategy can have announced, and has for too long. Who is silent as
    /// well hangs, and is found before; who says that it is done has a deadline of its own.
    fn withholds(&self, strategy: u16, liveness: &Liveness) -> bool {
        if self.state(&self.cases[usize::from(strategy)]) == ThreadState::Done {
            return false;
        }
        let at = self.repairs.standstill().filter(|at| at.announcer == Some(strategy));
        at.is_some_and(|at| liveness.is_overdue(at.since_ticks))
    }

    /// Notes an incident; its place in the list.
    fn begin(&mut self, strategy: u16, pid: u32, cause: String, detected: u64) -> usize {
        let case = &mut self.cases[usize::from(strategy)];
        let (epoch, fault) = (case.epoch, case.fault.take());
        let orders = self.segments.plan.trading().orders[usize::from(strategy)];
        let (sent, settled) = sent_and_settled(self.segments, case.thread, orders);
        self.past = (self.past.0 + sent, self.past.1 + settled);
        self.list.push(Incident {
            strategy,
            epoch,
            pid,
            cause,
            quarantined: None,
            fault_ns: fault.map(|ticks| self.ns(ticks)),
            detected_ns: self.ns(detected),
            fenced_ns: 0,
            repaired_ns: None,
            restarted_ns: None,
        });
        self.list.len() - 1
    }

    fn kill(&mut self, strategy: u16, incident: usize, children: &mut impl Children) {
        let case = &mut self.cases[usize::from(strategy)];
        children.kill(case.process);
        case.stage = IncidentStage::Killed(incident);
    }

    /// Whoever misbehaved stays down, and who died before its first duty cycle: it would do so again. So does who said that it
    /// was done: there is nothing left to do.
    fn may_restart(&self, strategy: u16, incident: usize) -> bool {
        let case = &self.cases[usize::from(strategy)];
        self.segments.plan.on_death == OnDeath::Restart
            && self.list[incident].quarantined.is_none()
            && matches!(self.state(case), ThreadState::Running | ThreadState::Failed)
            && case.epoch < MAX_EPOCH
    }

    fn restart(
        &mut self,
        strategy: u16,
        incident: usize,
        children: &mut impl Children,
        liveness: &mut Liveness,
        now: u64,
    ) -> Result<()> {
        let case = &mut self.cases[usize::from(strategy)];
        case.epoch += 1;
        case.stage = IncidentStage::Starting(incident);
        let (epoch, process, thread) = (case.epoch, case.process, case.thread);
        self.segments.renew(strategy);
        liveness.restarted(thread, now);
        self.segments.control.revive(strategy, epoch);
        children.restart(self.segments, process)
    }
}

/// How a strategy's process ended before it was done, in words; `None`: it runs, or ended as it should.
fn ended(children: &impl Children, process: usize, thread: &View) -> Option<String> {
    let ended = children.ended(process)?;
    let status = status::read(thread);
    let in_order = ended && status.state() == ThreadState::Done;
    let words = if status.state() == ThreadState::Failed { status.error() } else { String::new() };
    let how = || match children.ended(process) {
        Some(true) => format!("{} before it had finished", children.how(process)),
        _ => children.how(process),
    };
    (!in_order).then(|| with_own_words(&how(), &words))
}

/// The longest of a strategy's own words that are shown, in characters.
const OWN_WORDS: usize = 120;

/// What the kernel says, and then what a strategy says about itself: quoted, and without what could be taken for something else.
pub fn with_own_words(how: &str, words: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || "µ·–…’“”≥≤×".contains(c);
    let words: String =
        words.trim().chars().take(OWN_WORDS).map(|c| if plain(c) && c != '"' { c } else { '?' }).collect();
    if words.is_empty() { how.to_owned() } else { format!("{how}; it says itself: \"{words}\"") }
}

/// Orders that the strategy of a thread has sent in its incarnation, and those of them that it got an answer for. It says so
/// itself, and one that scribbles says anything: not believed beyond the orders that there are for it.
fn sent_and_settled(segments: &Segments, thread: usize, orders: u64) -> (u64, u64) {
    settled_by(&segments.threads[thread], &segments.plan.threads[thread].roles, orders)
}

/// As `sent_and_settled`, of the thread that runs these.
pub fn settled_by(thread: &View, roles: &[Role], orders: u64) -> (u64, u64) {
    let role = roles.iter().find(|role| role.kind() == RoleKind::Strategy);
    let mine = role.map(|role| status::counters_of(thread, roles, *role));
    let count = |counter| mine.map_or(0, |mine| mine.get(counter)).min(orders);
    (count(StrategyCounter::Sent), count(StrategyCounter::Returned) + count(StrategyCounter::Rejected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_strategy_says_of_itself_comes_last_and_is_marked() {
        let killed = "signal 11 (SIGSEGV)";
        assert_eq!(with_own_words(killed, ""), killed);
        let says = with_own_words(killed, " no route \"to\" the venue\u{1b}[31m\u{202e}ש ");
        assert_eq!(says, "signal 11 (SIGSEGV); it says itself: \"no route ?to? the venue?[31m??\"");
        let long = with_own_words(killed, &"x".repeat(1000));
        assert_eq!(long.matches('x').count(), OWN_WORDS, "{long}");
    }
}

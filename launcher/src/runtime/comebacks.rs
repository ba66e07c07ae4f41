//! Exchanges that die or hang and come back from their journals while the run goes on.
//!
//! ```text
//! living ── hangs ──▶ killed ─┐ ◀──────── killed by a signal ─────────┐
//!    │                        ├─ the kernel says so ─▶ starting ────────┴─ in its duty cycles ─▶ living
//!    └── killed by a signal ──┘
//! ```
//! Nobody else has to know: the rings of its sessions live on, and its successor finds there what it needs. One that says why it ends is
//! not started again, it would say so again; nor is one that is killed before it is back, again and again (`TRIES` times).

use crate::runtime::incidents::Children;
use crate::runtime::liveness::Liveness;
use crate::runtime::setup::Segments;
use analysis::record::Comeback;
use anyhow::{Context as _, Result};
use protocol::labels::ExchangeCounter;
use protocol::plan::{ExchangePlacement, Isolation, Journalling, OnDeath, Plan, Role};
use protocol::status::{self, ThreadState};
use shm::clock::Clock;

/// So many times in a row an exchange is started that is killed before it is back: recovery itself may be what kills it.
const TRIES: u32 = 16;

/// Where an exchange is; the place is that of its comeback in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Living,
    Killed(usize),
    Starting(usize),
    /// It does not come back; the run ends.
    Gone,
}

struct Case {
    venue: u16,
    /// Its place among the plan's processes and threads.
    process: usize,
    thread: usize,
    stage: Stage,
    /// Starts since it was last alive.
    tries: u32,
    /// When a fault was last done to it, in ticks.
    fault: Option<u64>,
}

/// The exchanges of a run that come back.
pub struct Comebacks<'a> {
    segments: &'a Segments,
    cases: Vec<Case>,
    list: Vec<Comeback>,
    start_ticks: u64,
}

impl<'a> Comebacks<'a> {
    /// Whether exchanges come back in such a run: each has a journal and a process that can be killed alone.
    pub fn contains(plan: &Plan) -> bool {
        let trading = plan.trading();
        plan.on_death == OnDeath::Restart
            && plan.isolation != Isolation::Thread
            && trading.exchange == ExchangePlacement::Process
            && trading.journal != Journalling::None
    }

    /// All exchanges alive.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let case = |venue| {
            let role = Role::Exchange(venue);
            let (process, thread) = (plan.process_of(role)?, plan.thread_of(role)?);
            Some(Case { venue, process, thread, stage: Stage::Living, tries: 0, fault: None })
        };
        let cases = plan.trading().books().filter_map(case).collect();
        Self { segments, cases, list: Vec::new(), start_ticks }
    }

    /// Whether a death of that process is dealt with here.
    pub fn owns(&self, process: usize) -> bool {
        self.cases.iter().any(|case| case.process == process && case.stage != Stage::Gone)
    }

    /// Whether one is on its way back, or a fault was done to it that has not been noticed.
    pub fn is_busy(&self) -> bool {
        let is_away = |case: &Case| match case.stage {
            Stage::Killed(_) | Stage::Starting(_) => true,
            Stage::Living => {
                let is_done =
                    || status::read(&self.segments.threads[case.thread]).state() == ThreadState::Done;
                case.fault.is_some() && !is_done()
            }
            Stage::Gone => false,
        };
        self.cases.iter().any(is_away)
    }

    /// Whether that process is an exchange's that has said everything: how it dies then does not matter.
    pub fn is_done(&self, process: usize) -> bool {
        let of = |case: &&Case| case.process == process && case.stage == Stage::Living;
        self.cases.iter().find(of).is_some_and(|case| {
            status::read(&self.segments.threads[case.thread]).state() == ThreadState::Done
        })
    }

    /// A fault was done to an exchange on purpose.
    pub fn fault(&mut self, venue: u16, ticks: u64) {
        if let Some(case) = self.cases.iter_mut().find(|case| case.venue == venue) {
            case.fault = Some(ticks);
        }
    }

    /// What has happened.
    pub fn into_list(self) -> Vec<Comeback> {
        self.list
    }

    /// What an exchange that has come back found in its journal, and how much of that it carried out again.
    fn records(&self, venue: u16, thread: usize) -> (u64, u64) {
        let counters = status::counters(&self.segments.threads[thread]);
        let counters = counters.of(&self.segments.plan.threads[thread].roles, Role::Exchange(venue));
        (counters.get(ExchangeCounter::Recovered), counters.get(ExchangeCounter::Replayed))
    }

    /// Takes every exchange as far as it can go now.
    ///
    /// # Errors
    /// What the system refused: a process that cannot be asked about, or started again.
    pub fn look(
        &mut self,
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        (0..self.cases.len()).try_for_each(|place| self.step(place, children, liveness, clock))
    }

    fn step(
        &mut self,
        place: usize,
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        let plan = &self.segments.plan;
        let Case { venue, process, thread, stage, .. } = self.cases[place];
        let status = status::read(&self.segments.threads[thread]);
        match stage {
            Stage::Living if !children.was_killed(process) => {
                let suspicion = liveness.suspicion(thread, &plan.processes[process].threads);
                if children.ended(process).is_some() || status.state() >= ThreadState::Done {
                    // In order, or it has said why: that is the supervisor's matter.
                    let is_bad =
                        children.ended(process) == Some(false) || status.state() == ThreadState::Failed;
                    if is_bad {
                        self.cases[place].stage = Stage::Gone;
                    }
                } else if suspicion.is_none() {
                    children.keep_spare(self.segments, process);
                } else if let Some(suspicion) = suspicion {
                    let incident =
                        self.begin(place, children.pid(process), suspicion.to_string(), clock.now());
                    children.kill(process);
                    self.cases[place].stage = Stage::Killed(incident);
                }
            }
            // It had said everything.
            Stage::Living if status.state() == ThreadState::Done => {}
            Stage::Living => {
                let how = children.how(process);
                let incident = self.begin(place, children.pid(process), how, clock.now());
                self.cases[place].stage = Stage::Killed(incident);
                return self.step(place, children, liveness, clock);
            }
            Stage::Killed(incident) => {
                // The kernel's word: nobody writes its memory any more.
                let death = children.death(process).context("cannot watch a process")?;
                if children.ended(process).is_none() || death.is_none() {
                    return Ok(());
                }
                self.segments.renew_exchange(thread);
                liveness.restarted(thread, clock.now());
                children
                    .restart(self.segments, process)
                    .with_context(|| format!("cannot start the exchange of venue {venue} again"))?;
                self.cases[place].tries += 1;
                self.cases[place].stage = Stage::Starting(incident);
            }
            Stage::Starting(incident) => {
                let is_failed = status.state() == ThreadState::Failed;
                if children.was_killed(process) && !is_failed && self.cases[place].tries < TRIES {
                    self.cases[place].stage = Stage::Killed(incident);
                } else if children.ended(process).is_some() || is_failed {
                    self.cases[place].stage = Stage::Gone;
                } else if status.state() >= ThreadState::Running {
                    self.list[incident].recovered_ns = Some(self.ns(clock.now()));
                    let (records, again) = self.records(venue, thread);
                    (self.list[incident].records, self.list[incident].again) = (records, again);
                    self.cases[place].tries = 0;
                    self.cases[place].stage = Stage::Living;
                    // One that was done to it while it came back has had its effect.
                    self.cases[place].fault = None;
                }
            }
            Stage::Gone => {}
        }
        Ok(())
    }

    fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.segments.plan.ns_per_tick) as u64
    }

    /// Notes a death; its place in the list.
    fn begin(&mut self, place: usize, pid: u32, cause: String, detected: u64) -> usize {
        let fault_ns = self.cases[place].fault.take().map(|ticks| self.ns(ticks));
        self.list.push(Comeback {
            role: Role::Exchange(self.cases[place].venue),
            pid,
            cause,
            fault_ns,
            detected_ns: self.ns(detected),
            recovered_ns: None,
            records: 0,
            again: 0,
        });
        self.list.len() - 1
    }
}

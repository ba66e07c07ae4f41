//! From the first process to the last: start, barrier, firing, draining, end. A role that dies, hangs or reports an
//! error ends the run, unless it is a strategy and the plan goes on without it ([`crate::runtime::incidents`]); so does Ctrl-C.
//! Whatever happens, every process but the warden is gone when this returns.

mod cause;
mod close;
mod desk;
mod failures;
mod memory;
mod motion;
mod pace;
mod patience;
mod signals;
mod silence;
mod stall;
mod start;

pub use close::have_all_arrived;

use crate::faults::schedule::{FaultSchedule, by_signal};
use crate::runtime::comebacks::Comebacks;
use crate::runtime::incidents::{Incidents, settled_by};
use crate::runtime::liveness::Liveness;
use crate::runtime::lost_memory;
use crate::runtime::outages::Outages;
use crate::runtime::progress::{Progress, complain};
use crate::runtime::samples::Samples;
use crate::runtime::setup::Segments;
use crate::runtime::signals::Signals;
use crate::runtime::spawn::Processes;
use analysis::kernel::WakeUps;
use analysis::record::{Comeback, Exit, Incident, OpenOrders, Outage, Outcome};
use anyhow::Result;
use desk::DeskWatch;
use protocol::control::{Launching, RunState};
use protocol::counters::AgentCounters;
use protocol::labels::OrchestratorCounter;
use protocol::plan::{Plan, Role};
use protocol::status::{self, Status, ThreadState};
use protocol::supervision::Repairs;
use shm::memory::View;
use stall::StallWatch;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use system::clock::Clock;

/// How often the launcher looks while nothing happens. Ends of processes and signals wake it at once.
const LOOK: Duration = Duration::from_millis(50);
/// The same while a death is being repaired.
const BUSY_LOOK: Duration = Duration::from_millis(1);
/// How long the engine has to end after it was told to, and what an interrupted run may take beyond its longest delay.
const GRACE: Duration = Duration::from_secs(5);

/// What came of it.
pub struct Supervised {
    /// The processes, of which only the warden still runs: it would save the logs if the launcher died before it has.
    pub processes: Processes,
    /// How the run ended.
    pub outcome: Outcome,
    /// How each process ended.
    pub exits: Vec<Exit>,
    /// From the first spawn to the open barrier.
    pub startup: Duration,
    /// The tick of time zero; 0 if the barrier never opened.
    pub start_ticks: u64,
    /// The samples of open orders; `None` if the barrier never opened.
    pub open_orders: Option<OpenOrders>,
    /// Proportional memory of all processes when half of the orders were sent, in bytes.
    pub pss_bytes: Option<u64>,
    /// How often the launcher slept while orders were sent.
    pub wake_ups: Option<WakeUps>,
    /// The strategies that died and the run went on.
    pub incidents: Vec<Incident>,
    /// The exchanges that died and came back.
    pub comebacks: Vec<Comeback>,
    /// The processes of gateways that died and the run went on.
    pub outages: Vec<Outage>,
    /// How often each of the plan's faults struck, for those that are signals.
    pub strikes: Vec<Option<u64>>,
    /// What else is to be said of the run.
    pub warnings: Vec<String>,
}

/// Why a phase ended.
enum Phase {
    Over,
    Interrupted,
    Failed(Outcome),
}

struct Supervisor<'a> {
    plan: &'a Plan,
    control: &'a Launching,
    threads: &'a [View],
    schedules: &'a [View],
    /// What the exchanges write down, each with its venue.
    tapes: &'a [(u16, View)],
    repairs: Repairs,
    /// There where the run goes on when a strategy dies, from the open barrier on.
    incidents: Option<Incidents<'a>>,
    /// The same where exchanges come back.
    comebacks: Option<Comebacks<'a>>,
    /// The same where gateways may die.
    outages: Option<Outages<'a>>,
    liveness: Liveness,
    faults: FaultSchedule,
    strikes: Vec<Option<u64>>,
    desk: DeskWatch,
    warnings: Vec<String>,
    processes: Processes,
    segments: &'a Segments,
    signals: &'a Signals,
    progress: &'a Progress,
    start_ticks: u64,
    samples: Option<Samples>,
    pss_bytes: Option<u64>,
    wake_ups: Option<WakeUps>,
    /// Processes whose last incarnation has died of SIGBUS.
    victims: usize,
}

/// Runs the plan's processes from start to end. `processes` holds the warden already; `start_timeout` is how long they
/// may take to get ready; `faults` says whom the launcher sends a signal, and when; `opened` is told the start ticks when the barrier has opened.
///
/// # Errors
/// If a process cannot be started or watched before the barrier opens. What goes wrong afterwards, and a process that fails,
/// is not an error here but an [`Outcome`].
pub fn supervise(
    segments: &Segments,
    mut processes: Processes,
    signals: &Signals,
    progress: &Progress,
    start_timeout: Duration,
    faults: FaultSchedule,
    opened: impl FnOnce(u64) -> Result<()>,
) -> Result<Supervised> {
    let spawned = Instant::now();
    processes.start(segments)?;
    let Segments { plan, control, threads, schedules, tapes, .. } = segments;
    let mut supervisor = Supervisor {
        plan,
        control,
        threads,
        schedules,
        tapes,
        repairs: Repairs::new(segments.repairs.clone().expect("created before").into()),
        incidents: None,
        comebacks: None,
        outages: None,
        liveness: Liveness::new(plan, plan.clock.now()),
        faults,
        strikes: plan.faults.iter().map(|fault| by_signal(fault).then_some(0)).collect(),
        desk: DeskWatch::new(plan),
        warnings: Vec::new(),
        processes,
        segments,
        signals,
        progress,
        start_ticks: 0,
        samples: None,
        pss_bytes: None,
        wake_ups: None,
        victims: 0,
    };
    progress.phase("starting", 0);
    let mut startup = Duration::ZERO;
    let mut phase = supervisor.wait_until_ready(start_timeout)?;
    if matches!(phase, Phase::Over) {
        // A little ahead, so that everybody has left the barrier when time zero comes.
        let lead_ns = 2_000_000 + 200_000 * plan.threads.len() as u64;
        supervisor.start_ticks = plan.clock.now() + (lead_ns as f64 / plan.ns_per_tick) as u64;
        startup = spawned.elapsed();
        if Incidents::contains(plan) {
            supervisor.incidents = Some(Incidents::new(segments, supervisor.start_ticks));
        }
        if Comebacks::contains(plan) {
            supervisor.comebacks = Some(Comebacks::new(segments, supervisor.start_ticks));
        }
        if Outages::contains(plan) {
            supervisor.outages = Some(Outages::new(segments, supervisor.start_ticks));
        }
        supervisor.samples = Some(Samples::new(supervisor.start_ticks));
        // Each has said which thread it is, and nothing that it wrote since is believed.
        supervisor.see_threads();
        supervisor.liveness.open(plan.clock.now());
        control.go(supervisor.start_ticks);
        // From here on there is a run to be kept: whatever goes wrong is how it ended.
        let played = opened(supervisor.start_ticks).and_then(|()| supervisor.play());
        phase = played.unwrap_or_else(|error| {
            Phase::Failed(failure("launcher", plan.launcher_pid, format!("{error:#}")))
        });
    }
    let outcome = match phase {
        Phase::Over => Outcome::Complete,
        Phase::Interrupted => Outcome::Interrupted,
        Phase::Failed(outcome) => outcome,
    };
    control.set_state(RunState::Stop);
    supervisor.processes.end(GRACE);
    if let Some(incidents) = &mut supervisor.incidents {
        incidents.end(&supervisor.processes, &plan.clock);
    }
    let outcome = supervisor.ended_in_order(outcome);
    Ok(Supervised {
        outcome,
        exits: supervisor.processes.exits(),
        startup,
        start_ticks: supervisor.start_ticks,
        open_orders: supervisor.samples.as_ref().map(Samples::taken),
        pss_bytes: supervisor.pss_bytes,
        wake_ups: supervisor.wake_ups,
        strikes: supervisor.strikes,
        warnings: supervisor.warnings,
        incidents: supervisor.incidents.map(Incidents::into_list).unwrap_or_default(),
        comebacks: supervisor.comebacks.map(Comebacks::into_list).unwrap_or_default(),
        outages: supervisor.outages.map(Outages::into_list).unwrap_or_default(),
        processes: supervisor.processes,
    })
}

impl Supervisor<'_> {
    fn status(&self, thread: usize) -> Status {
        status::read(&self.threads[thread])
    }

    fn state(&self, thread: usize) -> ThreadState {
        status::state(&self.threads[thread])
    }

    /// Takes note of what every thread says of itself.
    fn see_threads(&mut self) {
        for thread in 0..self.threads.len() {
            let pulse = status::pulse(&self.threads[thread]);
            // The time after it was read: what it says cannot be of later.
            self.liveness.see(thread, pulse, self.plan.clock.now());
        }
    }

    /// Sleeps a little, no longer than that, then looks for trouble: a process that ended before its threads were done, a thread that
    /// failed.
    fn look_within(&mut self, longest: Duration) -> Result<Option<Outcome>> {
        let found = self.look(longest)?;
        let taken = self.memory_taken();
        // What the launcher read of memory that is gone was zeros: nobody is blamed for that.
        Ok(if lost_memory::is_met(self.segments) { taken.or(found) } else { found.or(taken) })
    }

    /// The failure of the run if memory of it is gone: the launcher has met that, or a process has died of it.
    fn memory_taken(&mut self) -> Option<Outcome> {
        let victims = self.processes.all.iter().filter(|process| lost_memory::is_victim(process)).count();
        let is_new = victims > std::mem::replace(&mut self.victims, victims);
        let is_gone =
            lost_memory::is_met(self.segments) || (is_new && !lost_memory::found(self.segments).is_empty());
        is_gone.then(|| lost_memory::failure(self.plan.launcher_pid))
    }

    fn look(&mut self, longest: Duration) -> Result<Option<Outcome>> {
        let pause = longest.min(self.liveness.interval()).min(self.until_fault()).min(self.until_restart());
        let is_busy = self.incidents.as_ref().is_some_and(Incidents::is_busy);
        if let Some(incidents) = self.incidents.as_ref().filter(|_| is_busy) {
            incidents.wait(BUSY_LOOK);
        }
        let returns = self.comebacks.as_ref().is_some_and(Comebacks::is_busy)
            || self.outages.as_ref().is_some_and(Outages::is_busy);
        let pause = if returns { BUSY_LOOK.min(pause) } else { pause };
        self.processes.wait(Some(self.signals.as_fd()), if is_busy { Duration::ZERO } else { pause })?;
        self.processes.watch_warden(self.segments);
        self.processes.watch_spiller(self.segments);
        if let Some(said) = self.desk.look() {
            complain(&format!("note: {said}"));
            self.warnings.push(said);
        }
        self.liveness.awake(self.plan.clock.now());
        self.see_threads();
        self.ask_the_kernel();
        self.signal_faults();
        if let Some(incidents) = &mut self.incidents {
            incidents.look(&mut self.processes, &mut self.liveness, &self.plan.clock)?;
            incidents.take_notes().iter().for_each(|note| complain(note));
        }
        if let Some(comebacks) = &mut self.comebacks {
            comebacks.look(&mut self.processes, &mut self.liveness, &self.plan.clock)?;
        }
        if let Some(outages) = &mut self.outages {
            outages.look(&mut self.processes, &mut self.liveness, &self.plan.clock)?;
            outages.take_notes().iter().for_each(|note| complain(note));
        }
        for (index, process) in self.plan.processes.iter().enumerate() {
            if self.contains(index) {
                continue;
            }
            let mut threads = process.threads.iter().map(|thread| *thread as usize);
            let child = &self.processes.all[index];
            let failed = threads.clone().find(|thread| self.state(*thread) == ThreadState::Failed);
            let done = threads.all(|thread| self.state(thread) == ThreadState::Done);
            let ended_badly = child.status.is_some_and(|status| !(done && status.success()));
            if failed.is_some() || ended_badly {
                let failed = failed.map(|thread| self.status(thread));
                let what = self.cause(index, failed)?;
                return Ok(Some(failure(&process.name, self.processes.all[index].pid(), what)));
            }
        }
        Ok(self.suspect().or_else(|| self.misconduct()))
    }

    /// Orders sent so far, and how many of those of the living are open.
    fn sent_and_open(&self) -> (u64, u64) {
        if let Some(incidents) = &self.incidents {
            return incidents.sent_and_open();
        }
        let counted = self.plan.trading().orders.iter().enumerate().filter_map(|(strategy, orders)| {
            let thread = self.plan.thread_of(Role::Strategy(strategy as u16))?;
            Some(settled_by(&self.threads[thread], &self.plan.threads[thread].roles, *orders))
        });
        let (sent, settled) = counted.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
        (sent, sent.saturating_sub(settled))
    }

    /// What the engine's orchestrator has counted.
    fn engine(&self) -> Option<AgentCounters> {
        orchestrator(self.plan, self.threads)
    }

    fn all_done(&self) -> bool {
        (0..self.plan.trading().strategies).all(|strategy| !self.awaits(strategy))
    }

    /// Until every strategy has all its reports.
    fn play(&mut self) -> Result<Phase> {
        let total = self.plan.trading().total_orders();
        let max_delay = Duration::from_nanos(self.plan.trading().max_delay_ns);
        let (mut drain, mut draining, mut memory_sampled) = (None, false, false);
        let mut stall = StallWatch::new(self.plan.trading().max_delay_ns);
        let mut closing = self.closing();
        let last_due = self.last_due();
        self.progress.phase("firing", total);
        let sleeps = self.count_sleeps();
        loop {
            let (sent, open) = self.sent_and_open();
            if let Some(samples) = &mut self.samples {
                samples.take(self.plan.clock.now(), open);
            }
            if !memory_sampled && sent >= total / 2 {
                // Once: the kernel walks the page tables for it.
                memory_sampled = true;
                self.pss_bytes = self.proportional_memory();
                self.see_memory();
            }
            if sent >= total {
                self.wake_ups = self.wake_ups.or_else(|| self.wake_ups_since(sleeps));
            }
            if self.all_done() && !self.comebacks.as_ref().is_some_and(Comebacks::is_busy) {
                self.see_memory();
                if let Some(outcome) = self.let_exchanges_close()? {
                    return Ok(Phase::Failed(outcome));
                }
                if let Some(outcome) = self.let_the_engine_settle()? {
                    return Ok(Phase::Failed(outcome));
                }
                if let Some(outcome) = self.let_the_dead_come_back()? {
                    return Ok(Phase::Failed(outcome));
                }
                return Ok(if drain.is_some() { Phase::Interrupted } else { Phase::Over });
            }
            if sent < total && drain.is_none() {
                self.progress.at(sent);
            } else {
                if !draining {
                    self.progress.phase("draining", sent);
                    draining = true;
                }
                self.progress.at(sent - open.min(sent));
            }
            match self.signals.take() {
                0 => {}
                1 if drain.is_none() => {
                    self.control.set_state(RunState::Drain);
                    drain = Some(self.patience(max_delay + GRACE));
                }
                _ => return Ok(Phase::Interrupted),
            }
            if let Some(quiet) = &mut closing
                && self.is_trading_over(quiet, sent)
            {
                self.control.set_state(RunState::Drain);
                closing = None;
            }
            if drain.as_mut().is_some_and(|drain| self.has_drained(drain)) {
                return Ok(Phase::Interrupted);
            }
            if drain.is_none()
                && let Some(what) = self.stalls(&mut stall)
            {
                let engine = self.plan.thread_of(Role::Orchestrator).unwrap_or(0);
                return Ok(Phase::Failed(self.failure_of(engine, what)));
            }
            let pause = if draining { LOOK } else { self.firing_pause(last_due) };
            if let Some(outcome) = self.look_within(pause)? {
                return Ok(Phase::Failed(outcome));
            }
        }
    }

    /// Whether it is dealt with elsewhere if a process dies or hangs: the run goes on.
    fn contains(&self, process: usize) -> bool {
        self.incidents.as_ref().is_some_and(|incidents| incidents.owns(process))
            || self.comebacks.as_ref().is_some_and(|comebacks| comebacks.owns(process))
            || self.outages.as_ref().is_some_and(|outages| outages.owns(process))
    }

    /// Whether the run waits for a strategy.
    fn awaits(&self, strategy: u16) -> bool {
        let is_done = |thread| self.state(thread) == ThreadState::Done;
        match &self.incidents {
            Some(incidents) => incidents.awaits(strategy),
            None => !self.plan.thread_of(Role::Strategy(strategy)).is_some_and(is_done),
        }
    }
}

/// What the orchestrator of a run has counted.
pub fn orchestrator(plan: &Plan, threads: &[View]) -> Option<AgentCounters> {
    let thread = plan.thread_of(Role::Orchestrator)?;
    Some(status::counters_of(&threads[thread], &plan.threads[thread].roles, Role::Orchestrator))
}

/// Everything that the orchestrator has done with orders, counted: also each report of an order that has more to come.
pub fn moves(engine: &AgentCounters) -> u64 {
    use OrchestratorCounter::{Dispatched, Rejected, Reports, Returned};
    // Also what is returned: a strategy that gets little time takes its reports for long.
    [Dispatched, Reports, Rejected, Returned]
        .iter()
        .fold(0, |sum, &counter| sum.wrapping_add(engine.get(counter)))
}

/// Orders that were dispatched and are not settled.
pub fn at_venues(engine: &AgentCounters) -> u64 {
    let [dispatched, settled] =
        [OrchestratorCounter::Dispatched, OrchestratorCounter::Settled].map(|counter| engine.get(counter));
    dispatched.saturating_sub(settled)
}

fn failure(process: &str, pid: u32, what: String) -> Outcome {
    Outcome::Failed { process: process.to_owned(), pid, what }
}

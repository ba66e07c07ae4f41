//! Deterministic simulation: complete runs in one thread, on a virtual clock and heap memory, with
//! a seeded order of events.
//!
//! Everything but the kernel is the real code: the planner's plan, the roles' agents, the
//! techniques' rings, the launcher's incident handling, the stamp logs, and the merge, which is the
//! judge. Strategies die at any step of a push, hang, are restarted, overwrite all memory they can
//! write, flood, or send invalid messages. Rings have two to sixteen slots, and some threads rarely
//! get a turn.
//!
//! | part | content |
//! |---|---|
//! | [`scenario`] | the scenario of a seed |
//! | `processes` | the processes: agents stepped one by one |
//! | `runtime` | the surroundings of the supervisor, which is the real one |
//! | `hostile` | messages of a hostile strategy |
//! | `judge` | conditions that must hold afterwards |
//! | `recovery` | crash recovery of engine and exchanges |
//! | `bursts` | deaths within one duty cycle of each other |
//! | [`surroundings`] | failed starts, lost memory, debuggers, CPU and disk |
//! | `kernel` | what the launcher asks the kernel |
//! | `endings` | commands and deaths at the natural end of a strategy |
//! | `machine` | the disk, and machine crashes |
//! | `standbys` | hot standbys of engine and exchanges |
//! | `recovery_environment` | clock and disk of recovering processes |
//! | `fuse` | deaths in the middle of an operation |
//! | `folder` | temporary folder of the journals |
//! | [`broken`] | rings and logs with defects that the judge must detect | |
//!
//! The same seed and technique give the same run, to the last stamp, on every machine.
#![forbid(unsafe_code)]

pub mod broken;
mod bursts;
mod endings;
mod folder;
mod fuse;
mod hostile;
mod judge;
mod kernel;
mod machine;
mod no_agent;
mod processes;
mod recovery;
mod recovery_environment;
mod runtime;
pub mod scenario;
mod standbys;
pub mod surroundings;
mod totals;

pub use endings::{EndMoment, EndingAct, EndingEvent};
pub use folder::JOURNALS;
pub use hostile::Attack;
pub use recovery_environment::SimulatedRecovery;
pub use runtime::SupervisorStep;
pub use totals::{SimulationReport, SimulationTotals, simulate_all};

pub use supervision::Supervisor;
pub use supervision::actions::{Action, ExitTime};
pub use supervision::observations::{NOT_STARTED, Observations, OperatorEnd, ProcessObservation};

use anyhow::{Context, Result, anyhow};
use broken::{BrokenLink, Defect};
use folder::JournalFolder;
use machine::PostCrashCheck;
use merge::{self, MergedRun};
use processes::SimulatedProcesses;
use protocol::faults::Draws;
use protocol::index::StrategyIndex;
use protocol::plan::{FaultKind, Role, Technique};
use protocol::segments::thread_header;
use protocol::stamps::Point;
use protocol::tape::TapeView;
use protocol::wire::OrderId;
use record::logfile;
use record::run::{self, Incident, RunOutcome, RunRecord};
use recovery::JournalAudits;
use roles::registry::ends_of;
use roles::{BoxedEnds, SystemRecovery};
use run_memory::segments::Segments;
use runtime::{ConfirmedChange, RuntimeSightings, SimulatedRuntime};
use scenario::{LIVENESS_NS, Scenario, ScenarioKind};
use shm::memory::header::{FNV_OFFSET, fnv1a};
use shm::ring::array_queue::ArrayQueue;
use shm::ring::spsc_mux::SpscMux;
use shm::sync::Ordering;
use supervision::SupervisionRecord;
use system::clock::VirtualClock;

/// The process id of the launcher in a simulated run, above the ids of real processes. Its
/// processes have the following ids; none exists in the kernel.
pub const LAUNCHER_PID: u32 = 1_000_000_000;
/// Time zero of the schedule, in ticks of one nanosecond.
const START_TICKS: u64 = 1_000;
/// Maximum turns of a run.
const MAX_TURNS: u64 = 5_000_000;

/// A simulated run that has ended, with its logs, before it is checked.
#[derive(Debug)]
pub struct Simulated {
    /// The scenario that was simulated.
    pub scenario: Scenario,
    /// The record of the run, as the launcher saves it.
    pub record: RunRecord,
    /// The stamp logs of the threads, in the order of the plan.
    pub logs: Vec<Vec<u8>>,
    /// Injected faults that fired, in order.
    pub fired_faults: Vec<FaultKind>,
    /// Number of messages that a hostile strategy tampered with.
    pub tampered: u64,
    /// Commands to end or add a strategy that the engine confirmed.
    confirmed: Vec<ConfirmedChange>,
    /// What the judge cannot see in the record.
    seen: RuntimeSightings,
    /// The last incarnation of each strategy.
    epochs: Vec<u16>,
    /// What exchanges did according to their journals, if they have any.
    audits: Option<JournalAudits>,
    /// Check after a machine crash.
    post_crash: Option<PostCrashCheck>,
    /// Number of turns that all threads and the launcher took.
    pub turns: u64,
}

/// The result of a simulated run: its figures and every violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The seed of the simulated run.
    pub seed: u64,
    /// The technique that the run used.
    pub technique: Technique,
    /// Kind of the simulated scenario.
    pub kind: ScenarioKind,
    /// Conditions that did not hold; empty on success.
    pub broken: Vec<String>,
    /// A hash over every stamp, every incident and the outcome, equal for equal runs.
    pub digest: u64,
    /// The totals of this run: orders, deaths, violations.
    pub totals: SimulationTotals,
}

/// The options of a simulation, in addition to its seed and technique.
#[derive(Clone, Copy, Debug)]
pub struct SimulationOptions {
    /// Whether only crash-recovery runs are drawn, whatever the technique.
    pub recovery_only: bool,
    /// Defect to inject into the rings; `None` for correct ones.
    pub defect: Option<Defect>,
    /// Hooks into the recovery of processes after a crash.
    pub recovery: &'static dyn SimulatedRecovery,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self { recovery_only: false, defect: None, recovery: &SystemRecovery }
    }
}

impl SimulationOptions {
    /// Draws the scenario (a run to simulate) that belongs to a seed.
    ///
    /// # Errors
    /// The planner refuses the drawn settings: a mistake in either.
    pub fn scenario(&self, seed: u64, technique: Technique) -> Result<Scenario> {
        let scenario =
            if self.recovery_only { Scenario::recovery(seed) } else { Scenario::draw(seed, technique) };
        Ok(Scenario { recovery: self.recovery, ..scenario.context("cannot plan the run")? })
    }
}

/// Simulates the run that belongs to a seed, and checks its invariants.
///
/// # Errors
/// An error of the simulation itself: a scenario that cannot be planned.
pub fn trial(seed: u64, technique: Technique, options: &SimulationOptions) -> Result<Trial> {
    let scenario = options.scenario(seed, technique)?;
    let (kind, technique) = (scenario.kind, scenario.plan.technique);
    Ok(simulate(scenario, options.defect).map_or_else(
        |error| Trial::new(seed, technique, kind, (vec![error], FNV_OFFSET), SimulationTotals::default()),
        |simulated| simulated.judge(),
    ))
}

impl Trial {
    fn new(
        seed: u64,
        technique: Technique,
        kind: ScenarioKind,
        (broken, digest): (Vec<String>, u64),
        counts: SimulationTotals,
    ) -> Self {
        let hash = fnv1a(fnv1a(FNV_OFFSET, &seed.to_le_bytes()), technique.name().as_bytes());
        let totals = SimulationTotals { runs: 1, digest: fnv1a(hash, &digest.to_le_bytes()), ..counts };
        Self { seed, technique, kind, broken, digest, totals }
    }
}

impl Simulated {
    /// Merges the logs of the simulated run, checks every invariant, and returns the run's figures
    /// and violations.
    pub fn judge(&self) -> Trial {
        let Self { scenario, record, logs, .. } = self;
        let (incidents, restarts) = (&record.incidents, &record.role_restarts);
        let count = |is_counted: fn(&Incident) -> bool| {
            incidents.iter().filter(|incident| is_counted(incident)).count()
        };
        let mut totals = SimulationTotals {
            incidents: incidents.len() as u64,
            quarantined: count(|incident| incident.quarantined.is_some()) as u64,
            restarted: count(|incident| incident.restarted_ns.is_some()) as u64,
            recoveries: restarts.iter().filter(|restart| restart.recovered_ns.is_some()).count() as u64,
            standby_recoveries: restarts.iter().filter(|restart| restart.replayed < restart.records).count()
                as u64,
            turns: self.turns,
            ..SimulationTotals::default()
        };
        let verdict = if let Some(PostCrashCheck { broken, digest }) = &self.post_crash {
            // Memory is lost: nothing can be merged.
            totals.machine_crashes = 1;
            (broken.clone(), *digest)
        } else {
            match merge::merge(logs.as_slice(), record, |_, _| {}) {
                Ok(merged) => {
                    (totals.sent, totals.returned) = (merged.orders.sent, merged.orders.returned);
                    (judge::judge(self, &merged), digest(record, &merged))
                }
                Err(error) => (vec![format!("cannot be merged: {error}")], FNV_OFFSET),
            }
        };
        Trial::new(scenario.seed, scenario.plan.technique, scenario.kind, verdict, totals)
    }
}

/// Simulates a scenario from start to end.
///
/// # Errors
/// The run does not end, or something panicked.
pub fn simulate(scenario: Scenario, defect: Option<Defect>) -> Result<Simulated, String> {
    simulate_with(scenario, defect, &mut |supervisor, observations, now, actions| {
        supervisor.step(observations, now, actions)
    })
}

/// Simulates a scenario with an optional defect in its hand-offs, and with the function `step` in
/// place of [`Supervisor::step`].
///
/// # Errors
/// The errors of [`simulate`].
pub fn simulate_with<'s>(
    scenario: Scenario,
    defect: Option<Defect>,
    step: &'s mut SupervisorStep<'s>,
) -> Result<Simulated, String> {
    let technique = scenario.plan.technique;
    let Some(defect) = defect else {
        let ends = ends_of(technique);
        let ends = ends.ok_or_else(|| format!("{technique} was not added to this program"))?;
        return run(scenario, ends, step);
    };
    broken::set(defect);
    // One of each kind: a ring for each producer, and one that all share.
    if technique == Technique::from_link::<SpscMux>() {
        run(scenario, BoxedEnds::boxed::<BrokenLink<SpscMux>>(), step)
    } else if technique == Technique::from_link::<ArrayQueue>() {
        run(scenario, BoxedEnds::boxed::<BrokenLink<ArrayQueue>>(), step)
    } else {
        Err(format!("{technique} is not kept broken: use spsc-mux or array-queue"))
    }
}

fn run<'s>(
    mut scenario: Scenario,
    ends: BoxedEnds,
    step: &'s mut SupervisorStep<'s>,
) -> Result<Simulated, String> {
    let to_text = |error: anyhow::Error| format!("{error:#}");
    let folder =
        (scenario.kind == ScenarioKind::Recovery).then(JournalFolder::new).transpose().map_err(to_text)?;
    scenario.plan.folder = folder.as_ref().map_or_else(String::new, JournalFolder::path);
    let segments = Segments::on_heap(&scenario.plan, &scenario.schedule);
    let clock = VirtualClock::default();
    clock.set(START_TICKS);
    let mut processes = SimulatedProcesses::start(&scenario, ends, &segments, &clock).map_err(to_text)?;
    let mut runtime = SimulatedRuntime::new(&scenario, &segments, &clock, step);
    let (outcome, turns) = play(&scenario, &clock, &mut processes, &mut runtime)?;
    let is_machine_crashed = outcome.is_none();
    if is_machine_crashed {
        processes.crash();
    }
    let (SupervisionRecord { incidents, role_restarts, additions, .. }, confirmed, seen) =
        runtime.into_record();
    let epochs = (0..scenario.plan.trading().strategies)
        .map(|strategy| segments.control.control().incarnation(StrategyIndex(strategy)).epoch)
        .collect();
    let exits = processes.exits();
    let machine = processes.machine();
    let (fired_faults, tampered) =
        (std::mem::take(&mut processes.fired_faults), processes.tampered.load(Ordering::Relaxed));
    // The journals are closed with their writers.
    drop(processes);
    let post_crash = is_machine_crashed
        .then(|| PostCrashCheck::check(&machine, &segments, &incidents))
        .transpose()
        .map_err(to_text)?;
    let audits = folder.as_ref().filter(|_| !is_machine_crashed).map(|_| audits(&segments));
    let audits = audits.transpose().map_err(to_text)?;
    let logs = logs(&scenario, &segments).map_err(|error| error.to_string())?;
    drop(segments);
    let outcome = outcome.unwrap_or(RunOutcome::Interrupted);
    let record = RunRecord { role_restarts, additions, ..record(&scenario, outcome, incidents, exits) };
    Ok(Simulated {
        scenario,
        record,
        logs,
        fired_faults,
        tampered,
        confirmed,
        seen,
        epochs,
        audits,
        post_crash,
        turns,
    })
}

/// Runs the turns of threads and supervisor until the supervisor ends the run. Returns the outcome,
/// `None` if the machine crashed, and the number of turns.
fn play<'a>(
    scenario: &Scenario,
    clock: &VirtualClock,
    processes: &mut SimulatedProcesses<'a>,
    runtime: &mut SimulatedRuntime<'a, '_>,
) -> Result<(Option<RunOutcome>, u64), String> {
    let threads = scenario.plan.threads.len();
    let mut draws = Draws::new(scenario.seed, Draws::TURNS);
    let (mut now, mut idle_turns) = (START_TICKS, 0);
    let waits_long = scenario.surroundings.is_some_and(|event| event.handling_ns().is_some());
    // Opens the start barrier, unless the launcher fails before.
    if let Some(outcome) = runtime.turn(processes)? {
        return Ok((Some(outcome), 0));
    }
    for turns in 0..MAX_TURNS {
        let drawn_index = draws.below(threads as u64 + 1) as usize;
        now += draws.below(16);
        clock.set(now);
        if scenario.machine_crash_ns.is_some_and(|ns| now >= START_TICKS + ns) {
            return Ok((None, turns));
        }
        processes.kill_due(now);
        processes.play_event(now);
        runtime.play_endings(turns, now, processes);
        let slowness = scenario.slowness[drawn_index];
        if slowness > 0 && draws.below(1 << slowness) > 0 {
            continue;
        }
        if drawn_index == threads {
            if let Some(outcome) = runtime.turn(processes)? {
                return Ok((Some(outcome), turns));
            }
        } else if processes.turn(drawn_index)? {
            idle_turns = 0;
            continue;
        }
        idle_turns += 1;
        if idle_turns > 4 * threads {
            // No thread has anything to do: advance the clock to the next wake-up, but never so far
            // that a timely thread would count as hung.
            idle_turns = 0;
            // A thread that waits for a slow or silent venue asks for a turn immediately, without
            // effect; so does one that waits for resting orders, for a recovering process, or at a
            // slot that is never written, or for a thread or a start that an event holds up.
            let is_blocked =
                |kind| matches!(kind, ScenarioKind::Recovery | ScenarioKind::Assault(FaultKind::HoldClaim));
            let can_wait_without_effect =
                scenario.has_venue_faults() || is_blocked(scenario.kind) || scenario.surroundings.is_some();
            let earliest = if can_wait_without_effect { now + 1 } else { 0 };
            let next_event =
                processes.wake_time(earliest).min(runtime.wake_time()).min(processes.next_kill());
            now = next_event.clamp(now, now + LIVENESS_NS / 5);
            clock.set(now);
            let mut has_worked = false;
            for thread in 0..threads {
                has_worked |= processes.turn(thread)?;
            }
            if let Some(outcome) = runtime.turn(processes)? {
                return Ok((Some(outcome), turns));
            }
            if waits_long && !has_worked {
                // As idle as before.
                idle_turns = 4 * threads;
            }
        }
    }
    Err(format!("does not end: {MAX_TURNS} turns, {} ns", now - START_TICKS))
}

/// What the exchanges did by their journals.
fn audits(segments: &Segments) -> Result<JournalAudits> {
    let (plan, mut audits) = (&segments.plan, JournalAudits::default());
    for venue in plan.trading().books() {
        let process = plan.process_of(Role::Exchange(venue)).context("every exchange has a process")?;
        let mut attached = segments.attached(&plan.processes[process]);
        let tape = segments.tapes.iter().find(|(tape_venue, _)| *tape_venue == venue);
        let tape =
            tape.and_then(|(_, view)| TapeView::new(view.clone())).context("every exchange has a tape")?;
        let audit = roles::audit(plan, venue, &segments.control.control(), &mut attached)?;
        audits.add(&audit, &tape.trades().collect::<Vec<_>>());
    }
    Ok(audits)
}

/// Returns the logs as they would be saved.
fn logs(scenario: &Scenario, segments: &Segments) -> std::io::Result<Vec<Vec<u8>>> {
    let log = |(index, segment)| {
        let mut bytes = Vec::new();
        logfile::write(&thread_header(&scenario.plan, index), segment, &mut bytes)?;
        Ok(bytes)
    };
    segments.threads.iter().enumerate().map(log).collect()
}

/// Returns the record that the launcher would save with them.
fn record(
    scenario: &Scenario,
    outcome: RunOutcome,
    incidents: Vec<Incident>,
    exits: Vec<run::ProcessExit>,
) -> RunRecord {
    RunRecord {
        started: "1970-01-01T00:00:00Z".into(),
        input: run::InputRecord {
            arrivals: "simulated".into(),
            seed: scenario.seed,
            window_ns: scenario.schedule.window_ns(),
            hash: format!("{:016x}", scenario.schedule.hash()),
            offered_per_s: scenario.schedule.offered_per_s(),
            ..run::InputRecord::default()
        },
        clock: run::ClockCalibration {
            ns_per_tick: 1.0,
            start_ticks: START_TICKS,
            ..run::ClockCalibration::default()
        },
        exits,
        incidents,
        ..RunRecord::new(scenario.plan.clone(), outcome)
    }
}

/// Hashes every stamp of every order, every incident and the outcome. Independent of how they are
/// stored.
fn digest(record: &RunRecord, merged: &MergedRun) -> u64 {
    let add = |hash: u64, word: u64| fnv1a(hash, &word.to_le_bytes());
    let mut orders: Vec<_> = merged.orders().collect();
    orders.sort_by_key(|(id, _)| id.word());
    let mut hash = FNV_OFFSET;
    for (id, row) in orders {
        hash = add(hash, OrderId::word(id));
        // Sleeps do not occur here, and the recorded digests predate them.
        for point in Point::ALL.into_iter().filter(|point| *point != Point::Slept) {
            hash = add(hash, row.at(point).map_or(0, |ticks| ticks.wrapping_add(1)));
        }
        hash = add(hash, row.reason().map_or(0, |reason| u64::from(reason) + 1));
    }
    for incident in &record.incidents {
        hash = add(hash, u64::from(incident.strategy.0) << 16 | u64::from(incident.epoch));
        hash = fnv1a(hash, incident.quarantined.map_or("", |why| why.name()).as_bytes());
        for at in [incident.repaired_ns, incident.restarted_ns] {
            hash = add(hash, at.map_or(0, |ns| ns.wrapping_add(1)));
        }
        hash = add(add(hash, incident.detected_ns), incident.fenced_ns);
    }
    for addition in &record.additions {
        hash = add(hash, u64::from(addition.strategy.0) << 16 | u64::from(addition.epoch));
        hash = add(add(hash, addition.started_ns), addition.running_ns.map_or(0, |ns| ns.wrapping_add(1)));
    }
    for restart in &record.role_restarts {
        hash = add(fnv1a(hash, restart.role.to_string().as_bytes()), restart.detected_ns);
        hash = add(hash, restart.recovered_ns.map_or(0, |ns| ns.wrapping_add(1)));
        hash = add(add(hash, restart.records), restart.replayed);
    }
    for kill in &merged.kills {
        let (id, detail) = kill.switch.to_record();
        hash = add(add(hash, id.word()), detail.into());
        for at in [Some(kill.seen), kill.done, kill.revived] {
            hash = add(hash, at.map_or(0, |ticks| ticks.wrapping_add(1)));
        }
    }
    let ended = match &record.outcome {
        RunOutcome::Complete => "complete",
        RunOutcome::Interrupted => "interrupted",
        RunOutcome::Failed { process, .. } => process,
    };
    fnv1a(hash, ended.as_bytes())
}

/// Adds the seed and the technique to the error that no run can be planned for them.
pub fn unplanned(seed: u64, technique: Technique, error: &anyhow::Error) -> anyhow::Error {
    anyhow!("seed {seed} with {technique}: {error:#}")
}

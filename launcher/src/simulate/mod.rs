//! The simulation: whole runs in one thread, on a virtual clock and heap memory, in an order of
//! events that a seed draws.
//!
//! Everything but the kernel is the real thing: the planner's plan, the agents that the roles
//! build, the techniques' rings, the launcher's incidents, the stamp logs, and the merge, which is
//! the judge. Strategies die at any step of a push, hang, are started again, scribble over all that
//! they can write, flood, or send what no honest one does. Rings have two to sixteen slots, and
//! some threads seldom have their turn.
//!
//! | part | what it is |
//! |---|---|
//! | [`scenario`] | what a seed stands for |
//! | `family` | the processes: agents that are stepped one by one |
//! | `launcher` | the launcher, with the real incidents, deadline and faults |
//! | `hostile` | what a hostile strategy sends |
//! | `judge` | what must hold afterwards |
//! | `comebacks` | the engine and exchanges die and come back: what is drawn, and what must hold |
//! | `machine` | the disk, and the death of the machine: what is left of the journals, and what must be in it |
//! | `spares` | what stands ready to take over from them |
//! | `fuse` | dying in the middle of something |
//! | `folder` | where journals are |
//! | [`broken`] | rings, logs and heartbeats that lie, to see that the judge finds them |
//!
//! The same seed and technique give the same run, to the last stamp, on every machine.

pub mod broken;
mod comebacks;
mod command;
mod family;
mod folder;
mod fuse;
mod hostile;
mod judge;
mod launcher;
mod machine;
pub mod scenario;
mod spares;

pub use command::{SimulateFlags, Tallies, Tally, command, simulate_all};
pub use hostile::Attack;
pub use roles::Mistake;

use crate::runtime::setup::Segments;
use analysis::logfile;
use analysis::merge::{self, MergedRun};
use analysis::record::{self, Incident, RunOutcome, RunRecord};
use anyhow::{Context, Result, anyhow};
use broken::{BrokenLink, Defect};
use comebacks::Audits;
use family::Family;
use folder::Folder;
use launcher::Launcher;
use machine::Fallen;
use protocol::plan::{FaultKind, Role, Technique};
use protocol::segments::thread_header;
use protocol::stamps::Point;
use protocol::tape::TapeView;
use protocol::wire::OrderId;
use roles::BoxedEnds;
use roles::faults::Draws;
use roles::registry::ends_of;
use scenario::{LIVENESS_NS, Scenario, ScenarioKind};
use shm::memory::header::{FNV_OFFSET, fnv1a};
use shm::ring::array_queue::ArrayQueue;
use shm::ring::spsc_mux::SpscMux;
use shm::sync::Ordering;
use system::clock::{Clock as _, Virtual};

/// The process id that the launcher has in a simulated run. Its processes have the ones behind it;
/// none is the kernel's.
pub const LAUNCHER_PID: u32 = 1_000_000_000;
/// Time zero of the schedule, in ticks of one nanosecond.
const START_TICKS: u64 = 1_000;
/// A run that takes more turns than this does not end.
const MOST_TURNS: u64 = 5_000_000;

/// A simulated run, as it is before it is judged.
#[derive(Debug)]
pub struct Simulated {
    /// What was simulated.
    pub scenario: Scenario,
    /// What the launcher knows of it.
    pub record: RunRecord,
    /// The threads' logs, in the order of the plan.
    pub logs: Vec<Vec<u8>>,
    /// Faults that struck, in their order.
    pub struck: Vec<FaultKind>,
    /// Messages that a hostile strategy has tampered with.
    pub tampered: u64,
    /// What exchanges did by their journals, where they have some.
    audits: Option<Audits>,
    /// The machine has died.
    fallen: Option<Fallen>,
    /// Turns that all threads and the launcher had.
    pub turns: u64,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The seed.
    pub seed: u64,
    /// The technique.
    pub technique: Technique,
    /// What happened in it.
    pub kind: ScenarioKind,
    /// What must hold and did not; empty if all is well.
    pub broken: Vec<String>,
    /// Orders sent.
    pub sent: u64,
    /// Orders that came back.
    pub returned: u64,
    /// Incarnations that died, were killed or quarantined.
    pub incidents: u64,
    /// Those of them that were quarantined.
    pub quarantined: u64,
    /// Those that were started again.
    pub restarted: u64,
    /// Kill switches that the engine has seen turned on.
    pub kills: u64,
    /// Deaths of the engine and of exchanges from which they came back.
    pub comebacks: u64,
    /// Those in which a spare had done a part of the work.
    pub from_spares: u64,
    /// Whether the machine died.
    pub fell: bool,
    /// Turns that all threads and the launcher had.
    pub turns: u64,
    /// A hash over every stamp, every incident and the outcome.
    pub digest: u64,
}

/// What is simulated, beside seed and technique.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Only runs in which the engine and exchanges die and come back, whatever the technique.
    pub comebacks: bool,
    /// What is broken about the rings.
    pub defect: Option<Defect>,
    /// What successors get wrong.
    pub mistake: Option<Mistake>,
}

impl Asked {
    /// The run that a seed stands for.
    ///
    /// # Errors
    /// The planner refuses what was drawn: a mistake here or there.
    pub fn scenario(&self, seed: u64, technique: Technique) -> Result<Scenario> {
        let scenario =
            if self.comebacks { Scenario::of_comebacks(seed) } else { Scenario::draw(seed, technique) };
        Ok(Scenario { mistake: self.mistake, ..scenario.context("cannot plan the run")? })
    }
}

/// Simulates and judges the run of a seed.
///
/// # Errors
/// A mistake of the simulation itself: a scenario that cannot be planned.
pub fn trial(seed: u64, technique: Technique, asked: &Asked) -> Result<Trial> {
    let scenario = asked.scenario(seed, technique)?;
    let (kind, technique) = (scenario.kind, scenario.plan.technique);
    Ok(simulate(scenario, asked.defect).map_or_else(
        |what| Trial { broken: vec![what], ..Trial::of_nothing(seed, technique, kind) },
        |simulated| simulated.judge(),
    ))
}

impl Trial {
    const fn of_nothing(seed: u64, technique: Technique, kind: ScenarioKind) -> Self {
        Self {
            seed,
            technique,
            kind,
            broken: Vec::new(),
            sent: 0,
            returned: 0,
            incidents: 0,
            quarantined: 0,
            restarted: 0,
            kills: 0,
            comebacks: 0,
            from_spares: 0,
            fell: false,
            turns: 0,
            digest: FNV_OFFSET,
        }
    }
}

impl Simulated {
    /// Merges the logs and says what became of the run.
    pub fn judge(&self) -> Trial {
        let Self { scenario, record, logs, .. } = self;
        let incidents = &record.incidents;
        let count = |of: fn(&Incident) -> bool| incidents.iter().filter(|incident| of(incident)).count();
        let mut trial = Trial {
            incidents: incidents.len() as u64,
            quarantined: count(|incident| incident.quarantined.is_some()) as u64,
            restarted: count(|incident| incident.restarted_ns.is_some()) as u64,
            comebacks: record.role_restarts.iter().filter(|one| one.recovered_ns.is_some()).count() as u64,
            from_spares: record.role_restarts.iter().filter(|one| one.replayed < one.records).count() as u64,
            turns: self.turns,
            ..Trial::of_nothing(scenario.seed, scenario.plan.technique, scenario.kind)
        };
        if let Some(Fallen { broken, digest }) = &self.fallen {
            // What was in memory is gone: nothing can be merged.
            let broken = broken.clone();
            return Trial { fell: true, broken, digest: *digest, ..trial };
        }
        match merge::merge(logs.as_slice(), record, |_, _| {}) {
            Ok(merged) => {
                (trial.sent, trial.returned) = (merged.orders.sent, merged.orders.returned);
                trial.kills = merged.kills.len() as u64;
                trial.digest = digest(record, &merged);
                trial.broken = judge::judge(self, &merged);
            }
            Err(error) => trial.broken.push(format!("cannot be merged: {error}")),
        }
        trial
    }
}

/// Simulates a run.
///
/// # Errors
/// What went so wrong that there is no run to judge: it does not end, or something panicked.
pub fn simulate(scenario: Scenario, defect: Option<Defect>) -> Result<Simulated, String> {
    let technique = scenario.plan.technique;
    let Some(defect) = defect else {
        let ends = ends_of(technique);
        return run(scenario, ends.ok_or_else(|| format!("{technique} was not added to this program"))?);
    };
    broken::set(defect);
    // One of each sort: a ring for each producer, and one that all share.
    if technique == Technique::of::<SpscMux>() {
        run(scenario, BoxedEnds::boxed::<BrokenLink<SpscMux>>())
    } else if technique == Technique::of::<ArrayQueue>() {
        run(scenario, BoxedEnds::boxed::<BrokenLink<ArrayQueue>>())
    } else {
        Err(format!("{technique} is not kept broken: use spsc-mux or array-queue"))
    }
}

fn run(mut scenario: Scenario, ends: BoxedEnds) -> Result<Simulated, String> {
    let unbuilt = |error: anyhow::Error| format!("{error:#}");
    let folder = (scenario.kind == ScenarioKind::Comebacks).then(Folder::new).transpose().map_err(unbuilt)?;
    scenario.plan.folder = folder.as_ref().map_or_else(String::new, Folder::path);
    let segments = Segments::on_heap(&scenario.plan, &scenario.schedule);
    let clock = Virtual::default();
    clock.set(START_TICKS);
    let mut family = Family::start(&scenario, ends, &segments, &clock).map_err(unbuilt)?;
    let mut launcher = Launcher::new(&scenario, &segments, &clock);
    let (outcome, turns) = play(&scenario, &clock, &mut family, &mut launcher)?;
    let falls = scenario.machine_dies.is_some_and(|ns| clock.peek() >= START_TICKS + ns);
    let (outcome, incidents, comebacks) = match falls {
        true => launcher.fall(&mut family),
        false => launcher.end(&mut family, outcome)?,
    };
    let exits = family.exits();
    let machine = family.machine();
    let (struck, tampered) = (std::mem::take(&mut family.struck), family.tampered.load(Ordering::Relaxed));
    // The journals are closed with their writers.
    drop(family);
    let fallen = falls.then(|| Fallen::of(&machine, &segments, &incidents)).transpose().map_err(unbuilt)?;
    let audits = folder.as_ref().filter(|_| !falls).map(|_| audits(&segments));
    let audits = audits.transpose().map_err(unbuilt)?;
    let logs = logs(&scenario, &segments).map_err(|error| error.to_string())?;
    drop(segments);
    let record = RunRecord { role_restarts: comebacks, ..record(&scenario, outcome, incidents, exits) };
    Ok(Simulated { scenario, record, logs, struck, tampered, audits, fallen, turns })
}

/// Gives threads and launcher their turns, until the launcher says that the run is over; and how
/// many there were.
fn play<'a>(
    scenario: &Scenario,
    clock: &Virtual,
    family: &mut Family<'a>,
    launcher: &mut Launcher<'a>,
) -> Result<(RunOutcome, u64), String> {
    let threads = scenario.plan.threads.len();
    let mut draws = Draws::new(scenario.seed, Draws::TURNS);
    let (mut now, mut quiet) = (START_TICKS, 0);
    let failed = |error: anyhow::Error| format!("the launcher failed: {error:#}");
    for turns in 0..MOST_TURNS {
        let who = draws.below(threads as u64 + 1) as usize;
        now += draws.below(16);
        clock.set(now);
        if scenario.machine_dies.is_some_and(|ns| now >= START_TICKS + ns) {
            return Ok((RunOutcome::Interrupted, turns));
        }
        let slowness = scenario.slowness[who];
        if slowness > 0 && draws.below(1 << slowness) > 0 {
            continue;
        }
        if who == threads {
            if let Some(outcome) = launcher.turn(family).map_err(failed)? {
                return Ok((outcome, turns));
            }
        } else if family.turn(who)? {
            quiet = 0;
            continue;
        }
        quiet += 1;
        if quiet > 4 * threads {
            // Nobody has anything to do now: on to when somebody has. Never so far that who is in
            // time would seem to hang.
            quiet = 0;
            // What waits for room at a venue that is slow or silent asks for a turn at once, and is
            // not helped by one; nor is who waits for what rests at an exchange, for somebody who
            // comes back, or behind a place that is held.
            let is_held_up =
                |kind| matches!(kind, ScenarioKind::Comebacks | ScenarioKind::Assault(FaultKind::Hold));
            let waits = launcher.is_patient() || is_held_up(scenario.kind);
            let asked = if waits { now + 1 } else { 0 };
            let wake = family.wake(asked).min(launcher.wake());
            now = wake.clamp(now, now + LIVENESS_NS / 5);
            clock.set(now);
            for thread in 0..threads {
                family.turn(thread)?;
            }
            if let Some(outcome) = launcher.turn(family).map_err(failed)? {
                return Ok((outcome, turns));
            }
        }
    }
    Err(format!("does not end: {MOST_TURNS} turns, {} ns", now - START_TICKS))
}

/// What the exchanges did by their journals.
fn audits(segments: &Segments) -> Result<Audits> {
    let (plan, mut audits) = (&segments.plan, Audits::default());
    for venue in plan.trading().books() {
        let process = plan.process_of(Role::Exchange(venue)).context("every exchange has a process")?;
        let mut attached = segments.attached(&plan.processes[process]);
        let tape = segments.tapes.iter().find(|(of, _)| *of == venue);
        let tape =
            tape.and_then(|(_, view)| TapeView::new(view.clone())).context("every exchange has a tape")?;
        let audit = roles::audit(plan, venue, &segments.control.control(), &mut attached)?;
        audits.add(&audit, &tape.trades().collect::<Vec<_>>());
    }
    Ok(audits)
}

/// The logs, as they would be saved.
fn logs(scenario: &Scenario, segments: &Segments) -> std::io::Result<Vec<Vec<u8>>> {
    let log = |(index, segment)| {
        let mut bytes = Vec::new();
        logfile::write(&thread_header(&scenario.plan, index), segment, &mut bytes)?;
        Ok(bytes)
    };
    segments.threads.iter().enumerate().map(log).collect()
}

/// What the launcher would save beside them.
fn record(
    scenario: &Scenario,
    outcome: RunOutcome,
    incidents: Vec<Incident>,
    exits: Vec<record::ProcessExit>,
) -> RunRecord {
    let plan = scenario.plan.clone();
    RunRecord {
        version: env!("CARGO_PKG_VERSION").into(),
        started: "1970-01-01T00:00:00Z".into(),
        machine: analysis::machine::Machine::default(),
        input: record::InputRecord {
            arrivals: "simulated".into(),
            seed: scenario.seed,
            window_ns: scenario.schedule.window_ns(),
            hash: format!("{:016x}", scenario.schedule.hash()),
            offered_per_s: scenario.schedule.offered_per_s(),
            ..record::InputRecord::default()
        },
        clock: record::ClockCalibration {
            ns_per_tick: 1.0,
            start_ticks: START_TICKS,
            ..record::ClockCalibration::default()
        },
        core_to_core_rtt: record::CoreToCoreRtt::default(),
        outcome,
        exits,
        startup_ns: 0,
        open_orders: None,
        warnings: Vec::new(),
        pss_bytes: None,
        kernel: None,
        incidents,
        role_restarts: Vec::new(),
        outages: Vec::new(),
        commands: Vec::new(),
        strikes: Vec::new(),
        plan,
    }
}

/// A hash over every stamp of every order, every incident and how the run ended. Not over how any
/// of it is stored.
fn digest(record: &RunRecord, merged: &MergedRun) -> u64 {
    let add = |hash: u64, word: u64| fnv1a(hash, &word.to_le_bytes());
    let mut orders: Vec<_> = merged.orders().collect();
    orders.sort_by_key(|(id, _)| id.word());
    let mut hash = FNV_OFFSET;
    for (id, row) in orders {
        hash = add(hash, OrderId::word(id));
        // No order has slept, and the digests that are kept are older than that.
        for point in Point::ALL.into_iter().filter(|point| *point != Point::Slept) {
            hash = add(hash, row.at(point).map_or(0, |ticks| ticks.wrapping_add(1)));
        }
        hash = add(hash, row.reason().map_or(0, |reason| u64::from(reason) + 1));
    }
    for incident in &record.incidents {
        hash = add(hash, u64::from(incident.strategy) << 16 | u64::from(incident.epoch));
        hash = fnv1a(hash, incident.quarantined.map_or("", |why| why.name()).as_bytes());
        for at in [incident.repaired_ns, incident.restarted_ns] {
            hash = add(hash, at.map_or(0, |ns| ns.wrapping_add(1)));
        }
        hash = add(add(hash, incident.detected_ns), incident.fenced_ns);
    }
    for comeback in &record.role_restarts {
        hash = add(fnv1a(hash, comeback.role.to_string().as_bytes()), comeback.detected_ns);
        hash = add(hash, comeback.recovered_ns.map_or(0, |ns| ns.wrapping_add(1)));
        hash = add(add(hash, comeback.records), comeback.replayed);
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

/// Why a seed cannot be simulated at all.
fn unplanned(seed: u64, technique: Technique, error: &anyhow::Error) -> anyhow::Error {
    anyhow!("seed {seed} with {technique}: {error:#}")
}

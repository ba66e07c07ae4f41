//! Prepares a run: settings → schedule → plan, checked against the machine, with the clock
//! calibrated and the core-to-core round trip measured.

use crate::container::{self, cgroups};
use crate::resources;
use crate::signals::{self, Signals};
use anyhow::{Context, Result, anyhow, bail};
use catalog::active;
use catalog::run_id::RunId;
use exchange::book_file;
use nix::unistd::geteuid;
use planner::config::input::UserFile;
use planner::config::value::SettingValue;
use planner::config::{ReportLength, UsageError, program};
use planner::host::{self, FsSpace, Machine, MemoryFacts, RealTime};
use planner::memory_check;
use planner::realtime;
use planner::{self, Input, OrderCounts, Resolved, RunIdentity};
use protocol::index::StrategyIndex;
use protocol::plan::{ClockSource, Isolation, Plan, Role, Trading};
use protocol::stamps::RECORD_BYTES;
pub use record::benchmark::Interruption;
use record::run::{Build, ClockCalibration, CoreToCoreRtt, InputRecord, RunOutcome, RunRecord};
use shm::process::start_time;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use strategy::schedule::{Replay, ReplayError, Schedule, Spec, Turns, replay_from, sample};
use system::clock::{self, ClockPair};
use system::floor;
use system::memory;
use system::{keys, sandbox};
use venue::OPENING_BOOK_OWNER;

/// The tick is calibrated over at least this long before the run.
const CALIBRATION: Duration = Duration::from_millis(100);

/// The options of a run beyond its settings: output, sandbox policy, start timeout and the effect
/// of signals.
pub struct Presentation<'a> {
    /// Whether nothing but results is printed.
    pub quiet: bool,
    /// How much of the plan is shown before the run.
    pub report: ReportLength,
    /// Whether a kernel that lacks a sandbox feature is accepted.
    pub weaker_sandbox: bool,
    /// Maximum time for the processes to become ready.
    pub start_timeout: Duration,
    /// The signals that end a run early.
    pub signals: &'a Signals,
    /// What a termination signal does to the run.
    pub interruption: Interruption,
}

impl Presentation<'_> {
    /// Returns `true` if a termination signal has arrived and such a signal ends this run without
    /// an evaluation ([`Interruption::Discard`]).
    pub fn is_discarded(&self) -> bool {
        self.interruption == Interruption::Discard && signals::is_end_requested()
    }
}

/// A run that is planned and checked, and has no folder yet.
pub struct Prepared {
    /// When the preparation began.
    pub began: SystemTime,
    /// The times at which orders are due.
    pub schedule: Schedule,
    /// The time on the run's clock and on CLOCK_MONOTONIC at the end of calibration.
    pub start_pair: ClockPair,
    /// The record of the run so far, with the plan. The outcome is that of a launcher that is
    /// killed.
    pub record: RunRecord,
}

/// Prepares a run: draws the order schedule, lays out and checks the plan, calibrates the clock and
/// measures core-to-core round trips.
pub fn prepare(
    resolved: &Resolved,
    machine: &Machine,
    weaker_sandbox: bool,
    began: SystemTime,
) -> Result<Prepared> {
    check_programs(resolved)?;
    let source = if machine.tsc_invariant { ClockSource::Tsc } else { ClockSource::Monotonic };
    let (calibrated_since, first_pair) = (Instant::now(), ClockPair::read(&source));
    if let Input::Drawn { .. } = resolved.input {
        // What cannot fit is refused before its schedule is drawn, with evenly distributed orders.
        check_shm_space(&planner::preview(resolved, machine)?.0, machine)?;
    }
    let schedule = make_schedule(resolved)?;
    let opening_orders = count_opening_orders(resolved)?;
    let counts = OrderCounts { opening_orders, ..OrderCounts::from_schedule(&schedule) };
    let (mut plan, mut warnings) = planner::layout(resolved, machine, &counts, new_identity(began)?)?;
    resources::settle(&mut plan, host::root(), geteuid().is_root())?;
    resources::check_speculation(&plan)?;
    if plan.isolation.has(Isolation::Sandbox) {
        plan.weaker_sandbox = weaker_sandbox;
        warnings.extend(check_sandbox(weaker_sandbox)?);
    }
    if let Some(why) = keys::missing().filter(|_| plan.isolation.has(Isolation::Keys)) {
        return Err(no_keys(&why).into());
    }
    if plan.isolation.has(Isolation::Container) {
        plan.weaker_sandbox = weaker_sandbox;
        if let Some(why) = container::missing(weaker_sandbox) {
            return Err(UsageError(why).into());
        }
        warnings.extend(cgroups::unlimited_text(host::root()));
    }
    warnings.extend(realtime::check(&plan, machine, &RealTime::read(), realtime::Kernel::REAL)?);
    memory_check::check(&plan, machine, &MemoryFacts::read(), memory::raise_lock_limit)?;
    check_shm_space(&plan, machine)?;
    let cores = floor_cores(&plan);
    let stop = signals::is_end_requested;
    let before_ns =
        cores.map(|(a, b)| floor::round_trip_ns(a, b, floor::DEFAULT_ROUNDS, stop)).transpose()?;
    let read_ns = clock::read_cost_ns(&source);
    std::thread::sleep(CALIBRATION.saturating_sub(calibrated_since.elapsed()));
    let start_pair = ClockPair::read(&source);
    plan.ns_per_tick = start_pair.ns_per_tick_since(&first_pair);
    let step_ns = clock::step_ticks(&source) * plan.ns_per_tick;
    plan.validate()?;
    let clock = ClockCalibration { ns_per_tick: plan.ns_per_tick, read_ns, step_ns, ..Default::default() };
    let record = RunRecord {
        input: describe_input(resolved, &schedule),
        core_to_core_rtt: CoreToCoreRtt { cores, before_ns, ..CoreToCoreRtt::default() },
        warnings,
        ..new_record(plan, machine, began, clock)
    };
    Ok(Prepared { began, schedule, start_pair, record })
}

/// Returns the error that this machine has no protection keys.
fn no_keys(why: &str) -> UsageError {
    UsageError(format!(
        "--isolation keys: {why}.\nUse --isolation thread or process; launcher doctor says what this machine has"
    ))
}

/// Prepares a run whose roles are measured loops (a benchmark): gives its plan a run id, and checks
/// that shared memory has enough space. The clock was calibrated since `first_pair`.
pub fn prepare_benchmark(
    plan: Plan,
    schedule: Schedule,
    machine: &Machine,
    calibration: ClockCalibration,
    first_pair: ClockPair,
) -> Result<Prepared> {
    let began = SystemTime::now();
    let RunIdentity { run, pid: launcher_pid, start: launcher_start } = new_identity(began)?;
    let plan = Plan { run, launcher_pid, launcher_start, ns_per_tick: calibration.ns_per_tick, ..plan };
    plan.validate()?;
    check_shm_space(&plan, machine)?;
    let mut record = new_record(plan, machine, began, calibration);
    record.warnings.extend(active::conflicting_runs(&record.plan));
    Ok(Prepared { began, schedule, start_pair: first_pair, record })
}

/// Returns the identity of a run that begins now in this process.
fn new_identity(began: SystemTime) -> Result<RunIdentity> {
    let pid = std::process::id();
    let start = start_time(pid).context("/proc/self/stat cannot be read")?;
    Ok(RunIdentity { run: RunId::new(began, pid, start).to_string(), pid, start })
}

/// Returns the record of a run that begins. The outcome is that of a launcher that is killed.
fn new_record(plan: Plan, machine: &Machine, began: SystemTime, clock: ClockCalibration) -> RunRecord {
    let what = "died before the run had ended".into();
    let outcome = RunOutcome::Failed { process: "launcher".into(), pid: plan.launcher_pid, what };
    RunRecord {
        build: build(),
        started: humantime::format_rfc3339_seconds(began).to_string(),
        machine: machine.clone(),
        clock,
        ..RunRecord::new(plan, outcome)
    }
}

/// Returns the build of this program, as its build script recorded it.
fn build() -> Build {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Build {
        commit: known(build_info::COMMIT),
        modified: build_info::MODIFIED.parse().ok(),
        compiler: build_info::COMPILER.into(),
        profile: build_info::PROFILE.into(),
    }
}

/// Checks that strategies that are programs can be started, before anything of the run exists.
fn check_programs(resolved: &Resolved) -> Result<()> {
    let kinds = &resolved.plan.trading().strategy_kinds;
    for (name, command) in kinds.iter().filter_map(|kind| Some((kind, Trading::command_of(kind)?))) {
        let refuse = |why| UsageError(format!("--strategy {name}: {why}"));
        program::check_executable(command).map_err(refuse)?;
    }
    Ok(())
}

/// Returns a warning about missing sandbox features, if that is allowed.
fn check_sandbox(weaker_is_fine: bool) -> Result<Option<String>> {
    let missing = sandbox::missing().join("; ");
    match (missing.is_empty(), weaker_is_fine) {
        (true, _) => Ok(None),
        (false, true) => Ok(Some(format!("the sandbox is weaker than it should be: {missing}"))),
        (false, false) => {
            bail!("sandbox incomplete: {missing}; continue anyway with --allow-weaker-sandbox")
        }
    }
}

/// Draws the schedule of a run's orders, or reads it from a recorded flow.
pub fn make_schedule(resolved: &Resolved) -> Result<Schedule> {
    let Trading { strategies, venues, crossover_ns, .. } = *resolved.plan.trading();
    let (delay, seed) = (resolved.settings.delay(), resolved.settings.seed().0);
    match &resolved.input {
        Input::Drawn { arrivals, orders, window_ns } => {
            let groups = if crossover_ns > 0 { resolved.plan.isolation.as_slice().len() as u16 } else { 1 };
            let spec = Spec {
                strategies: strategies / groups,
                venues,
                orders: *orders,
                window_ns: *window_ns,
                arrivals: *arrivals,
                delay,
                seed,
            };
            let schedule = sample(&spec).map_err(|error| UsageError(error.to_string()))?;
            Ok(match groups {
                1 => schedule,
                groups => schedule.in_turns(Turns { groups, epoch_ns: crossover_ns, seed }),
            })
        }
        Input::Recorded { path, speed, .. } => {
            let replay = Replay { strategies, venues, delay, seed, speed: *speed, orders: None };
            let name = path.display().to_string();
            let read = UserFile::open(path)
                .map_err(|source| ReplayError::Read { file: name.clone(), source })
                .and_then(|file| replay_from(&name, file, &replay));
            read.map_err(|error| UsageError(error.to_string()).into())
        }
    }
}

const MAX_OPENING_ORDERS: usize = 1 << 20;

fn check_shm_space(plan: &Plan, machine: &Machine) -> Result<()> {
    planner::check_shm_space(plan, machine).map_err(|error| anyhow!(error.0))?;
    planner::allow_descriptors(plan)
}

/// Returns the number of orders in the opening book, which is validated here.
fn count_opening_orders(resolved: &Resolved) -> Result<u64> {
    let Some(path) = &resolved.settings.book else { return Ok(0) };
    let refuse = |why: &dyn std::fmt::Display| UsageError(format!("--book {}: {why}", path.display()));
    let file = UserFile::open(path).map_err(|error| refuse(&error))?;
    if !std::fs::metadata(path).is_ok_and(|facts| facts.is_file()) {
        return Err(refuse(&"the launcher and every exchange read it: it must be a regular file").into());
    }
    let orders = book_file::opening_book(BufReader::new(file), 0, OPENING_BOOK_OWNER, MAX_OPENING_ORDERS);
    Ok(orders.map_err(|error| refuse(&error))?.len() as u64)
}

/// Describes the source of the orders for the run's record.
fn describe_input(resolved: &Resolved, schedule: &Schedule) -> InputRecord {
    let (arrivals, file) = match &resolved.input {
        Input::Drawn { arrivals, .. } => (arrivals.name().to_owned(), None),
        Input::Recorded { path, .. } => ("file".to_owned(), Some(path.display().to_string())),
    };
    let settings = &resolved.settings;
    let is_own = !resolved.is_on_schedule();
    InputRecord {
        arrivals: if is_own { settings.strategy().text() } else { arrivals },
        file,
        seed: settings.seed().0,
        window_ns: schedule.window_ns(),
        delay: settings.delay().text(),
        hash: format!("{:016x}", schedule.hash()),
        // The rate of a user-defined strategy is unknown.
        offered_per_s: schedule.offered_per_s().filter(|_| !is_own),
    }
}

/// Returns the cores of strategy and engine; `None` if they are equal.
fn floor_cores(plan: &Plan) -> Option<(u32, u32)> {
    let core = |role| plan.threads[plan.thread_of(role)?].core;
    let (strategy, engine) = (core(Role::Strategy(StrategyIndex(0)))?, core(Role::Orchestrator)?);
    (strategy != engine).then_some((strategy, engine))
}

/// Returns an error if the stamp logs of a run would not fit on the disk, where they are saved at
/// its end.
pub fn check_disk(plan: &Plan, folder: &Path) -> Result<()> {
    const MIB: u64 = 1 << 20;
    let needed: u64 = plan.threads.iter().map(|thread| thread.log_records * RECORD_BYTES as u64).sum();
    let room = FsSpace::at(folder);
    if room.total_bytes > 0 && room.free_bytes < needed {
        bail!(
            "{}: the logs of this run take {} MiB and {} MiB are free: choose another --out or use fewer --orders",
            folder.display(),
            needed.div_ceil(MIB),
            room.free_bytes / MIB
        );
    }
    Ok(())
}

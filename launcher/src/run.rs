//! A run, as a sentence: settings → schedule → plan → segments → processes → logs → merge → summary.

use crate::config::UsageError;
use crate::host::{Machine, Room};
use crate::planner::{self, Counts, Identity, Input, Resolved};
use crate::progress::Progress;
use crate::record::{self, Floor, Outcome, RUN_SCHEMA, RunRecord};
use crate::setup::Segments;
use crate::signals::Signals;
use crate::spawn::Processes;
use crate::summary::{Figures, Summary, summarise};
use crate::supervise::{Supervised, supervise};
use crate::timeline::{self, Timeline};
use crate::{gather, hlog, html, merge, report, units};
use anyhow::{Context, Result, anyhow, bail};
use orchestrator::work::Work;
use shm::clock::{self, ClockPair};
use shm::floor;
use shm::os::{pin, process, sandbox};
use shm::plan::{ClockSource, Isolation, Plan, Role, WorkPlan};
use shm::stamps::RECORD_BYTES;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use strategy::schedule::{Replay, Schedule, Spec, replay, sample};

/// The tick is calibrated over at least this long before the run.
const CALIBRATION: Duration = Duration::from_millis(100);

/// A finished run.
pub struct Finished {
    /// Its folder.
    pub folder: PathBuf,
    /// How it ended.
    pub outcome: Outcome,
    /// Its figures.
    pub summary: Summary,
}

/// How a run is shown and bounded, beside its settings.
pub struct Presentation<'a> {
    /// Print nothing but errors.
    pub quiet: bool,
    /// Whether a kernel that lacks a piece of the sandbox is good enough.
    pub weaker_sandbox: bool,
    /// How long the processes may take to get ready.
    pub start_timeout: Duration,
    /// Ctrl-C and its relatives.
    pub signals: &'a Signals,
}

/// Plans, runs, merges and summarises once.
///
/// # Errors
/// [`UsageError`] for what cannot be had, else what went wrong before the run began or after it ended; a run that began
/// and failed is a [`Finished`] whose outcome says so. Nothing is left in `/dev/shm` or among the processes.
pub fn run(resolved: &Resolved, machine: &Machine, how: &Presentation<'_>) -> Result<Finished> {
    let began = SystemTime::now();
    let source = if machine.tsc_invariant { ClockSource::Tsc } else { ClockSource::Monotonic };
    let first_pair = ClockPair::read(&source);
    let progress = Progress::new(!how.quiet);
    progress.phase("set-up", 0);
    check_room_early(resolved, machine)?;
    let schedule = make_schedule(resolved)?;
    let (mut plan, mut warnings) = make_plan(resolved, machine, &schedule, source, began)?;
    if plan.isolation == Isolation::Sandbox {
        plan.weaker_sandbox = how.weaker_sandbox;
        warnings.extend(check_sandbox(how.weaker_sandbox)?);
    }
    planner::check_room(&plan, machine).map_err(|error| anyhow!(error.0))?;
    plan.work = calibrate_work(resolved.work_ns, &plan)?;
    let before_ns = measure_floor(&plan)?;
    let read_ns = clock::read_cost_ns(&source);
    std::thread::sleep(CALIBRATION);
    let start_pair = ClockPair::read(&source);
    plan.ns_per_tick = start_pair.ns_per_tick_since(&first_pair);
    plan.validate()?;
    progress.clear();
    if !how.quiet {
        writeln!(std::io::stdout(), "{}", planner::show(&plan, resolved, machine, &warnings))?;
    }

    let folder = Folder::create(&resolved.out, &plan, began)?;
    check_disk(&plan, &folder.path)?;
    plan.folder = folder.path.display().to_string();
    let config = folder.path.join("config.yaml");
    fs::write(&config, resolved.settings().to_yaml())
        .with_context(|| format!("cannot write {}", config.display()))?;
    let mut record = RunRecord {
        schema: RUN_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started: humantime::format_rfc3339_seconds(began).to_string(),
        plan: plan.clone(),
        machine: machine.clone(),
        input: describe_input(resolved, &schedule),
        clock: record::Clock { ns_per_tick: plan.ns_per_tick, read_ns, drift_ppm: 0.0, start_ticks: 0 },
        floor: Floor { cores: floor_cores(&plan), before_ns, after_ns: None },
        outcome: Outcome::Failed {
            process: "launcher".into(),
            pid: plan.launcher_pid,
            what: "died before the run had ended".into(),
        },
        exits: Vec::new(),
        startup_ns: 0,
        in_flight_sampled: None,
        warnings,
        pss_bytes: None,
    };

    let (segments, processes) = create(&plan, &schedule)?;
    drop(schedule);
    let Supervised { outcome, exits, startup, start_ticks, in_flight_sampled, pss_bytes } = supervise(
        &segments,
        processes,
        how.signals,
        &progress,
        how.start_timeout,
        // Written before the first order: a launcher that is killed leaves a run that can be merged.
        |start_ticks| {
            record.clock.start_ticks = start_ticks;
            save_record(&record, &folder.path)
        },
    )?;
    if start_ticks == 0 {
        return Err(not_begun(&outcome));
    }
    let folder = folder.keep();
    let ns_per_tick = ClockPair::read(&source).ns_per_tick_since(&start_pair);
    record.clock.drift_ppm = (ns_per_tick / plan.ns_per_tick - 1.0) * 1e6;
    record.clock.ns_per_tick = ns_per_tick;
    record.floor.after_ns = measure_floor(&plan)?;
    record.outcome = outcome;
    record.exits = exits;
    record.startup_ns = startup.as_nanos() as u64;
    record.in_flight_sampled = in_flight_sampled;
    record.pss_bytes = pss_bytes;
    progress.phase("saving", 0);
    gather::gather(&plan, &segments.threads, &folder)?;
    drop(segments);
    save_record(&record, &folder)?;
    let summary = evaluate(&folder, &record, &progress)?;
    progress.clear();
    Ok(Finished { folder, outcome: record.outcome, summary })
}

/// Merges a run's logs, computes its figures and saves them beside the logs: `summary.json`, `timeline.json`,
/// `histograms.hlog`, `stages.csv`, `stages.md`, `report.html`.
///
/// # Errors
/// Logs that cannot be merged, a folder that cannot be written.
pub fn evaluate(folder: &Path, record: &RunRecord, progress: &Progress) -> Result<Summary> {
    progress.phase("merging", 1);
    let merged = merge::merge(folder, record, |done, total| progress.of(done, total))?;
    progress.phase("measuring", 0);
    let figures = Figures::measure(&merged, crate::summary::ns_per_tick(record));
    let summary = summarise(record, &merged, &figures);
    let mut json = serde_json::to_vec_pretty(&summary)?;
    json.push(b'\n');
    let mut histograms = Vec::new();
    hlog::write(record, &merged, &figures, &mut histograms)?;
    let timeline = Timeline::measure(record, &merged, &figures);
    let (mut csv, mut markdown) = (Vec::new(), Vec::new());
    report::csv(&summary, &mut csv)?;
    report::markdown(&summary, &mut markdown)?;
    let page = html::of_run(&summary, &histograms, &timeline);
    for (name, bytes) in [
        ("summary.json", json),
        (timeline::TIMELINE_FILE, serde_json::to_vec(&timeline)?),
        ("histograms.hlog", histograms),
        ("stages.csv", csv),
        ("stages.md", markdown),
        (html::HTML_FILE, page.into_bytes()),
    ] {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(summary)
}

/// What this kernel cannot refuse, if that is allowed.
fn check_sandbox(weaker_is_fine: bool) -> Result<Option<String>> {
    let missing = sandbox::missing().join("; ");
    match (missing.is_empty(), weaker_is_fine) {
        (true, _) => Ok(None),
        (false, true) => Ok(Some(format!("the sandbox is weaker than it should be: {missing}"))),
        (false, false) => {
            bail!("no full sandbox here: {missing}. --allow-weaker-sandbox goes on all the same")
        }
    }
}

/// The segments and the warden. It comes before segments that have names, which a killed launcher would leave behind; and
/// after those that have none, since it inherits the logs.
fn create(plan: &Plan, schedule: &Schedule) -> Result<(Segments, Processes)> {
    let mut segments = Segments::begin(plan)?;
    if plan.isolation == Isolation::Sandbox {
        segments.create(schedule)?;
        let processes = Processes::begin(&segments)?;
        Ok((segments, processes))
    } else {
        let processes = Processes::begin(&segments)?;
        segments.create(schedule)?;
        Ok((segments, processes))
    }
}

fn make_schedule(resolved: &Resolved) -> Result<Schedule> {
    let Resolved { strategies, venues, delay, seed, .. } = *resolved;
    match &resolved.input {
        Input::Drawn { arrivals, orders, window_ns } => {
            let spec = Spec {
                strategies,
                venues,
                orders: *orders,
                window_ns: *window_ns,
                arrivals: *arrivals,
                delay,
                seed,
            };
            sample(&spec).map_err(|error| UsageError(error.to_string()).into())
        }
        Input::Recorded { path, speed } => {
            let how = Replay { strategies, venues, delay, seed, speed: *speed, orders: None };
            replay(path, &how).map_err(|error| UsageError(error.to_string()).into())
        }
    }
}

/// Refuses what cannot fit before a schedule of that size is drawn: with orders dealt out evenly.
fn check_room_early(resolved: &Resolved, machine: &Machine) -> Result<()> {
    let Input::Drawn { orders, .. } = resolved.input else { return Ok(()) };
    let counts = Counts::even(orders, resolved.strategies, resolved.venues, resolved.delay.max_ns);
    let (plan, _) = lay_out(resolved, machine, &counts, ClockSource::Monotonic, SystemTime::now())?;
    planner::check_room(&plan, machine).map_err(|error| anyhow!(error.0))
}

fn make_plan(
    resolved: &Resolved,
    machine: &Machine,
    schedule: &Schedule,
    source: ClockSource,
    began: SystemTime,
) -> Result<(Plan, Vec<String>)> {
    let counts = Counts {
        per_strategy: schedule.orders_per_strategy(),
        per_venue: schedule.orders_per_venue(),
        max_delay_ns: schedule.max_delay_ns(),
    };
    lay_out(resolved, machine, &counts, source, began)
}

fn lay_out(
    resolved: &Resolved,
    machine: &Machine,
    counts: &Counts,
    source: ClockSource,
    began: SystemTime,
) -> Result<(Plan, Vec<String>)> {
    let pid = std::process::id();
    let start = process::start_time(pid).context("/proc/self/stat cannot be read")?;
    // Unique among the living: one process starts no two runs in one millisecond.
    let millis = humantime::format_rfc3339_millis(began).to_string();
    let digits: String = millis.chars().filter(char::is_ascii_digit).collect();
    let run = format!("{}-{}-{pid}", &digits[..8], &digits[8..]);
    Ok(planner::layout(
        resolved,
        machine,
        counts,
        Identity { run, pid, start },
        source,
        1.0,
        WorkPlan::default(),
    )?)
}

fn describe_input(resolved: &Resolved, schedule: &Schedule) -> record::Input {
    let (arrivals, file) = match &resolved.input {
        Input::Drawn { arrivals, .. } => (arrivals.name().to_owned(), None),
        Input::Recorded { path, .. } => ("file".to_owned(), Some(path.display().to_string())),
    };
    record::Input {
        arrivals,
        file,
        seed: resolved.seed,
        window_ns: schedule.window_ns(),
        delay: units::format_delay(&resolved.delay),
        hash: format!("{:016x}", schedule.hash()),
        offered_per_s: schedule.offered_per_s(),
    }
}

/// The cores of the two ends of the submit hand-off, if they are two: where the floor is measured.
fn floor_cores(plan: &Plan) -> Option<(u32, u32)> {
    let core = |role| plan.threads[plan.thread_of(role)?].core;
    let (strategy, engine) = (core(Role::Strategy(0))?, core(Role::Orchestrator)?);
    (strategy != engine).then_some((strategy, engine))
}

fn measure_floor(plan: &Plan) -> Result<Option<f64>> {
    let Some((a, b)) = floor_cores(plan) else { return Ok(None) };
    Ok(Some(floor::round_trip_ns(a, b, floor::DEFAULT_ROUNDS)?.median_ns))
}

/// Refuses a run whose logs would not fit the disk: found out afterwards, they would be lost.
fn check_disk(plan: &Plan, folder: &Path) -> Result<()> {
    const MIB: u64 = 1 << 20;
    let needed: u64 = plan.threads.iter().map(|thread| thread.log_records * RECORD_BYTES as u64).sum();
    let room = Room::of(folder);
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

/// Calibrates the work on the core that will do it.
fn calibrate_work(wanted_ns: u64, plan: &Plan) -> Result<WorkPlan> {
    let core = plan.thread_of(Role::Orchestrator).and_then(|thread| plan.threads[thread].core);
    let calibrate = move || {
        if let Some(core) = core {
            pin::pin_to(core)?;
        }
        Ok::<_, pin::PinError>(Work::calibrate(wanted_ns))
    };
    // A thread of its own: the launcher itself stays unpinned.
    let calibrated = std::thread::spawn(calibrate).join().map_err(|_| anyhow!("the calibration panicked"))?;
    let (rounds, calibrated_ns) = calibrated?;
    Ok(WorkPlan { requested_ns: wanted_ns, rounds, calibrated_ns })
}

fn save_record(record: &RunRecord, folder: &Path) -> Result<()> {
    let path = folder.join("run.json");
    let mut json = serde_json::to_vec_pretty(record)?;
    json.push(b'\n');
    fs::write(&path, json).with_context(|| format!("cannot write {}", path.display()))
}

fn not_begun(outcome: &Outcome) -> anyhow::Error {
    match outcome {
        Outcome::Failed { process, pid, what } => {
            anyhow!("{process} (pid {pid}) failed before the start: {what}")
        }
        Outcome::Interrupted | Outcome::Complete => Interrupted.into(),
    }
}

/// Ctrl-C before the first order.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted before the start: nothing was measured")]
pub struct Interrupted;

/// A run's folder, removed again unless the run began.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    /// `<out>/<time>-<technique>-<isolation>`, with a number behind it where that exists.
    fn create(out: &Path, plan: &Plan, began: SystemTime) -> Result<Self> {
        fs::create_dir_all(out)
            .with_context(|| format!("cannot make the folder {} (--out)", out.display()))?;
        let out = out.canonicalize()?;
        let time = humantime::format_rfc3339_seconds(began).to_string().replace(':', "");
        let base = format!("{}-{}-{}", time.trim_end_matches('Z'), plan.technique, plan.isolation);
        for number in 1..1000 {
            let name = if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let path = out.join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, keep: false }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot make the folder {} (--out)", path.display()));
                }
            }
        }
        bail!("{} holds a thousand runs of this second: choose another --out", out.display())
    }

    fn keep(mut self) -> PathBuf {
        self.keep = true;
        self.path.clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

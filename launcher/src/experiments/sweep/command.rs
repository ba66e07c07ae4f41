//! `launcher sweep`: begins a sweep or goes on with one, and prints what came of it.

use super::axes::Axis;
use super::flags::{Asked, SweepFlags};
use super::measure::{Ended, Made, discard_strangers, measure};
use super::points::{Layout, check, lay_out};
use super::progress::Bar;
use super::search::search;
use super::{export, knee, tables};
use crate::config::{Arrivals, Settings, UsageError};
use crate::host::Machine;
use crate::planner::{self, Input};
use crate::runtime::clean::{self, Scope};
use crate::runtime::run::{self, Presentation};
use crate::runtime::signals::Signals;
use analysis::experiment::{SWEEP_SCHEMA, State, SweepRecord};
use analysis::experiment::{Search, SearchRecord};
use analysis::html;
use analysis::report::grid::{Grid, Row, wrapped};
use analysis::report::units::{duration, duration_or_dash, plain};
use analysis::stats::MachineKey;
use analysis::units::Nanos;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Exit code of an interrupted sweep: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

/// Does what `launcher sweep` says.
///
/// # Errors
/// [`UsageError`] for what cannot be had; a folder of another version; a run that could not be made.
pub fn command(flags: &SweepFlags) -> Result<ExitCode> {
    let machine = crate::host::machine();
    let (mut record, folder) = match &flags.resume {
        Some(folder) => (resumed(flags, folder, &machine)?, folder.clone()),
        None => begin_sweep(flags, machine)?,
    };
    let ended = measured(&mut record, &folder, flags.json)?;
    let kind = record.kind.clone();
    match (ended, kind.as_str()) {
        (Ended::Complete, "bill") => crate::experiments::bill::finish(&record, &folder, None, flags.json),
        (Ended::Complete, "compare") => crate::experiments::compare::finish(&record, &folder, flags.json),
        _ => finish(&record, &folder, flags.json, ended),
    }
}

fn begin_sweep(flags: &SweepFlags, machine: Machine) -> Result<(SweepRecord, PathBuf)> {
    let mut asked = flags.swept.asked(flags.rate.as_deref(), flags.config.as_ref())?;
    let mut notes = asked.preset.map(|preset| preset.fill(&mut asked)).unwrap_or_default();
    asked.weaker_sandbox = flags.allow_weaker_sandbox;
    let first_per_s = if flags.find_max_rate { take_rate(&mut asked)? } else { None };
    let layout = lay_out(&asked, &machine)?;
    if layout.axes.is_empty() && !flags.find_max_rate {
        return Err(UsageError(
            "nothing to sweep over: give a list to one of --technique, --isolation, --idle, --capacity, --work, \
             --strategies, --venues, --rate, or a --preset.\nFor one setting use launcher run --repeats"
                .into(),
        )
        .into());
    }
    notes.extend(layout.notes.clone());
    let first = Settings::from_texts(&layout.points[0].settings)?;
    notes.extend(asked.preset.and_then(|preset| preset.load_note(&first)));
    let search = match flags.p999.filter(|_| flags.find_max_rate) {
        Some(bound) => Some(new_search(bound, flags.steps, first_per_s, &layout, &machine)?),
        None => None,
    };
    let kind = if search.is_some() { "max-rate" } else { "sweep" };
    let repeats = if search.is_some() { 1 } else { 5 };
    let mut record = new_record(kind, &asked, layout, repeats, machine)?;
    record.preset = asked.preset.map(|preset| preset.name().to_owned());
    record.notes = notes;
    record.search = search;
    record.keep_logs = flags.keep_logs;
    record.start_timeout_ns = flags.start_timeout.0;
    let folder = create(&mut record)?;
    Ok((record, folder))
}

/// The rate that a search begins with: its only value, if one was given.
fn take_rate(asked: &mut Asked) -> Result<Option<f64>> {
    let Some(at) = asked.axes.iter().position(|values| values[0].axis == Axis::Rate) else { return Ok(None) };
    match &asked.axes.remove(at)[..] {
        [only] => Ok(only.text.parse::<analysis::units::Count>().ok().map(|rate| rate.0 as f64)),
        _ => {
            Err(UsageError("--find-max-rate begins at one --rate and finds the others itself".into()).into())
        }
    }
}

fn new_search(
    bound: Nanos,
    most_steps: u32,
    first_per_s: Option<f64>,
    layout: &Layout,
    machine: &Machine,
) -> Result<SearchRecord> {
    let first = Settings::from_texts(&layout.points[0].settings)?;
    let planned = match check(&first, machine, true)?.input {
        Input::Drawn { orders, window_ns, arrivals } if arrivals != Arrivals::Stress => {
            orders as f64 / (window_ns as f64 / 1e9)
        }
        _ => {
            return Err(UsageError(
                "--find-max-rate needs drawn arrivals with a rate: no --schedule, no stress".into(),
            )
            .into());
        }
    };
    if bound.0 == 0 {
        return Err(UsageError(
            "--p999 0ns: nothing is as fast as that; give a bound, for example 100us".into(),
        )
        .into());
    }
    Ok(SearchRecord {
        bound_ns: bound.0,
        most_steps,
        first_per_s: first_per_s.unwrap_or(planned),
        points: vec![Search::default(); layout.points.len()],
    })
}

/// A record of what is to be measured, with nothing measured yet.
///
/// # Errors
/// Repeats out of range.
pub fn new_record(
    kind: &str,
    asked: &Asked,
    layout: Layout,
    default_repeats: u64,
    machine: Machine,
) -> Result<SweepRecord> {
    let repeats = asked.repeats(default_repeats).0;
    let base = Settings { repeats: Some(asked.repeats(default_repeats)), ..layout.base };
    planner::resolve(&Settings { technique: None, isolation: None, ..base.clone() }, &machine)?;
    Ok(SweepRecord {
        schema: SWEEP_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        kind: kind.into(),
        preset: None,
        state: State::Running,
        launcher: (0, 0),
        machine,
        seed: base.seed.map_or(1, |seed| seed.0),
        base: base.to_texts(),
        axes: layout.axes,
        repeats: u32::try_from(repeats)?,
        keep_logs: false,
        weaker_sandbox: asked.weaker_sandbox,
        start_timeout_ns: 30_000_000_000,
        notes: layout.notes,
        points: layout.points,
        search: None,
    })
}

/// Reads the record of a sweep, and sees to it that every setting in it can be had.
///
/// # Errors
/// There is none, it is of another version, or it is damaged.
pub fn read(folder: &Path) -> Result<SweepRecord> {
    let record = SweepRecord::read(folder)?;
    for texts in std::iter::once(&record.base).chain(record.points.iter().map(|point| &point.settings)) {
        Settings::from_texts(texts).with_context(|| format!("{}: damaged", folder.display()))?;
    }
    Ok(record)
}

/// Makes the folder of a new sweep, `<out>/<time>-<kind>`, and saves the record in it.
///
/// # Errors
/// A folder that cannot be made or written.
pub fn create(record: &mut SweepRecord) -> Result<PathBuf> {
    let out = Settings::from_texts(&record.base)?.out.unwrap_or_else(|| PathBuf::from("runs"));
    fs::create_dir_all(&out).with_context(|| format!("cannot make the folder {} (--out)", out.display()))?;
    let time = record.started.replace(':', "");
    let base = format!("{}-{}", time.trim_end_matches('Z'), record.kind);
    for number in 1..1000 {
        let folder = out.join(if number == 1 { base.clone() } else { format!("{base}-{number}") });
        match fs::create_dir(&folder) {
            Ok(()) => {
                record.take_over();
                record.save(&folder)?;
                return Ok(folder);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot make the folder {} (--out)", folder.display()));
            }
        }
    }
    bail!("{} holds a thousand sweeps of this second: choose another --out", out.display())
}

/// Reads a sweep to go on with.
fn resumed(flags: &SweepFlags, folder: &Path, machine: &Machine) -> Result<SweepRecord> {
    let given = flags.swept.0.first().map(|(key, _)| key.replace('_', "-"));
    let given = given.or_else(|| flags.rate.as_ref().map(|_| "rate".into()));
    let given = given.or_else(|| flags.config.as_ref().map(|_| "config".into()));
    if let Some(flag) = given {
        return Err(UsageError(format!(
            "--{flag} with --resume: a sweep goes on with the settings that it began with; leave --{flag} out"
        ))
        .into());
    }
    let mut record = read(folder)?;
    if record.is_being_measured() {
        bail!("{}: launcher {} is measuring it", folder.display(), record.launcher.0);
    }
    let key = |machine: &Machine| MachineKey {
        hostname: machine.hostname.clone(),
        cpu_model: machine.cpu_model.clone(),
        cores_allowed: machine.cores_allowed.clone(),
    };
    if key(&record.machine) != key(machine) {
        bail!(
            "{}: measured on {} ({}): the rest would be of another machine or other cores; begin a new sweep",
            folder.display(),
            record.machine.hostname,
            record.machine.cpu_model
        );
    }
    record.take_over();
    record.save(folder)?;
    discard_strangers(&record, folder);
    Ok(record)
}

/// Measures what a record lacks, with the real launcher.
///
/// # Errors
/// As [`measure`].
pub fn measured(record: &mut SweepRecord, folder: &Path, quiet: bool) -> Result<Ended> {
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    clean::clean(Scope::KeepLogs).context("cannot look into /dev/shm")?;
    let machine = crate::host::machine();
    let how = Presentation {
        quiet: true,
        weaker_sandbox: record.weaker_sandbox,
        start_timeout: Duration::from_nanos(record.start_timeout_ns),
        signals: &signals,
    };
    let mut make = |settings: &Settings| -> Result<Made> {
        // Ctrl-C while the logs are merged is seen by the next run, which then does not begin: this one is whole.
        Ok(run::run(&planner::resolve(settings, &machine)?, &machine, &how)?.into())
    };
    let is_search = record.search.is_some();
    let steps = record.search.as_ref().map_or(0, |search| search.most_steps as usize * search.points.len());
    let total = if is_search { steps } else { record.points.len() * record.repeats as usize };
    let mut bar = Bar::new(!quiet, total);
    let ended = if is_search {
        search(record, folder, &mut make, &mut bar, !quiet)
    } else {
        measure(record, folder, &mut make, &mut bar)
    };
    bar.clear();
    ended
}

/// Prints a sweep and writes its tables; says what to do where it is not complete.
///
/// # Errors
/// A folder that cannot be written.
pub fn finish(record: &SweepRecord, folder: &Path, json: bool, ended: Ended) -> Result<ExitCode> {
    let grids = match &record.search {
        Some(search) => vec![highest_rates(record, search)],
        None => tables::rt_venue(record).into_iter().chain(knee::knee(record)).collect(),
    };
    let notes = notes(record);
    export::save_runs(record, folder)?;
    export::save_grids(folder, "sweep", &heading(record), &notes, &grids)?;
    html::write(folder, &folder.join(html::HTML_FILE))?;
    show(record, folder, &grids, &notes, json)?;
    Ok(code(record, folder, ended))
}

/// The exit code of a sweep: interrupted, a run failed, or all is well.
pub fn code(record: &SweepRecord, folder: &Path, ended: Ended) -> ExitCode {
    if ended == Ended::Interrupted {
        eprintln!("interrupted: launcher sweep --resume {} goes on", folder.display());
        return ExitCode::from(INTERRUPTED);
    }
    let bad: Vec<_> = record.runs().filter(|run| !run.outline.is_sound()).collect();
    if let Some(first) = bad.first() {
        let why = first.outline.reasons.first().map_or("no reason given", String::as_str);
        eprintln!(
            "error: {} of {} runs failed, the first: {}: {why}",
            bad.len(),
            record.runs().count(),
            first.folder
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Prints tables and notes, or the whole record as JSON.
///
/// # Errors
/// What stdout answers.
pub fn show(record: &SweepRecord, folder: &Path, grids: &[Grid], notes: &[String], json: bool) -> Result<()> {
    let mut out = crate::output::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, record)?;
        writeln!(out)?;
        return Ok(());
    }
    let colour = out.is_coloured();
    for grid in grids {
        writeln!(out, "{}", grid.terminal(colour))?;
    }
    for note in notes {
        writeln!(out, "{}", wrapped(note))?;
    }
    writeln!(out, "\nSaved in {}", folder.display())?;
    Ok(())
}

/// What to know about a sweep as a whole.
pub fn notes(record: &SweepRecord) -> Vec<String> {
    let mut notes = record.notes.clone();
    let (all, wanted) = (record.runs().count(), record.points.len() * record.repeats as usize);
    if record.search.is_none() && all < wanted {
        notes.push(format!("{all} of {wanted} runs are done"));
    }
    let unfit: Vec<_> = record.runs().filter(|run| !run.outline.fit_for_latency).collect();
    if let Some(first) = unfit.first() {
        let why = first.outline.reasons.first().map_or("no reason given", String::as_str);
        notes.push(format!("{} of {all} runs are not fit for latency claims, e.g. {why}", unfit.len()));
    }
    notes
}

/// The heading of a sweep's document.
pub fn heading(record: &SweepRecord) -> String {
    let preset = record.preset.as_ref().filter(|preset| **preset != record.kind);
    let what = preset.map_or_else(String::new, |preset| format!(" {preset}"));
    format!("{}{what}, {} on {}", record.kind, record.started, record.machine.cpu_model)
}

fn highest_rates(record: &SweepRecord, search: &SearchRecord) -> Grid {
    let row = |(point, search): (&analysis::experiment::Point, &Search)| {
        let best = search.steps.iter().find(|step| Some(step.rate_per_s) == search.highest_per_s);
        Row::plain(vec![
            point.name.clone(),
            search.highest_per_s.map_or_else(|| "none".into(), plain),
            duration_or_dash(best.and_then(|step| step.p999_ns)),
            search.steps.len().to_string(),
        ])
    };
    let points = || record.points.iter().zip(&search.points);
    Grid {
        name: "max_rate".into(),
        title: format!(
            "highest rate with rt_venue from due p99.9 ≤ {} and ≥ 99% of it sent, orders/s",
            duration(search.bound_ns)
        ),
        head: ["setting", "highest", "p99.9", "steps"].map(str::to_owned).to_vec(),
        keys: 1,
        rows: points().map(row).collect(),
        notes: points()
            .filter(|(_, search)| !search.ended.is_empty())
            .map(|(point, search)| format!("{}: {}", point.name, search.ended))
            .collect(),
    }
}

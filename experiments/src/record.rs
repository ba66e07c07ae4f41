//! The record of an experiment, `experiment.json`: created, saved after each run, and resumed.

use super::flags::SweepRequest;
use super::usage;
use analysis::experiment::{Experiment, Kind, RowKind};
use analysis::stats::MachineKey;
use anyhow::{Context, Result, bail};
use planner::config::{CONFIG_FILE, Common, Settings};
use planner::host::{Machine, System};
use planner::result_folder::create_result_folder;
use record::document::Document;
use record::run::RunRecord;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Creates the record of a requested experiment of a kind, without rows.
pub fn new_record(
    kind: Kind,
    asked: &SweepRequest,
    default_repeats: u64,
    machine: Machine,
    common: &Common,
) -> Experiment {
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let repeats = u32::try_from(asked.repeats(default_repeats).0).unwrap_or(u32::MAX);
    Experiment {
        preset: asked.preset.clone(),
        seed: asked.base.seed.map_or(1, |seed| seed.0),
        asked_repeats: repeats,
        repeats,
        weaker_sandbox: common.allow_weaker_sandbox,
        start_timeout_ns: common.start_timeout.0,
        ..Experiment::new(kind, env!("CARGO_PKG_VERSION"), &started, &machine)
    }
}

/// Returns an error for a folder without an experiment.
pub fn check_is_experiment(folder: &Path) -> Result<()> {
    match Experiment::is_in(folder) {
        true => Ok(()),
        false => usage(format!(
            "{}: not the folder of an experiment: no {} in it; launcher list shows what there is",
            folder.display(),
            Experiment::FILE
        )),
    }
}

/// Reads the record of an experiment that makes runs, and checks that this build supports every
/// setting in it.
pub fn read(folder: &Path) -> Result<Experiment> {
    check_is_experiment(folder)?;
    let record = Experiment::read(folder)?;
    if record.kind.entry().rows != RowKind::Run {
        return usage(format!("{}: the folder of a {}, which has no runs", folder.display(), record.kind));
    }
    let settings = record.rows.iter().map(|row| &row.setting.settings);
    for texts in std::iter::once(&record.base).chain(settings) {
        Settings::from_texts(texts).with_context(|| format!("{}: damaged", folder.display()))?;
    }
    Ok(record)
}

/// Reads the experiment's record in a folder, and returns an error unless the experiment is of the
/// given kind.
pub fn read_kind(kind: Kind, folder: &Path) -> Result<Experiment> {
    let record = read(&catalog::folder_of(folder)?)?;
    if record.kind != kind {
        return usage(format!("--{kind} {}: the folder of a {}", folder.display(), record.kind));
    }
    Ok(record)
}

/// Creates the folder of a new experiment, `<out>/<time>-<kind>`, and saves the record in it.
pub fn create(mut record: Experiment, out: Option<PathBuf>) -> Result<(Experiment, PathBuf)> {
    let out = out.unwrap_or_else(|| PathBuf::from("runs"));
    if let Some(load) = System::read().load {
        record.notes.push(format!("load of the machine when it began: {load:.1}"));
    }
    let folder = create_result_folder(&out, &record.started, record.kind.name())?;
    record.set_launcher();
    record.save(&folder)?;
    Ok((record, folder))
}

/// Reads an interrupted experiment's record, marks this process as its launcher, and removes the
/// folders of unfinished runs.
pub fn resume(folder: &Path, machine: &Machine) -> Result<Experiment> {
    let mut record = read(folder)?;
    if record.is_shared {
        let name = folder.display();
        let how = format!("launcher sweep --run all {name} makes what is missing, --join gathers it");
        return usage(format!("{name}: a planned sweep: {how}"));
    }
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
    record.set_launcher();
    record.save(folder)?;
    discard_unrecorded_runs(&record, folder);
    Ok(record)
}

/// Removes the folders of unfinished runs from an experiment's folder. Those are folders with a
/// run's files that the record does not name.
pub(super) fn discard_unrecorded_runs(record: &Experiment, folder: &Path) {
    let known = record.folders();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let path = entry.path();
        let named = known.iter().any(|name| entry.file_name() == **name);
        if !named && (path.join(CONFIG_FILE).exists() || path.join(RunRecord::FILE).exists()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

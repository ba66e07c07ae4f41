//! The record of an experiment, `sweep.json`: created, saved after each run, and resumed.

use super::flags::SweepRequest;
use super::measure::discard_unrecorded_runs;
use super::usage;
use crate::config::{Common, Settings};
use crate::host::{Machine, System};
use crate::planner;
use crate::runtime::folder;
use analysis::document::Document;
use analysis::experiment::{SweepPlan, SweepRecord, SweepState};
use analysis::stats::MachineKey;
use analysis::units::Count;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Creates the record of a requested experiment, without points.
pub fn new_record(
    kind: &str,
    asked: &SweepRequest,
    default_repeats: u64,
    machine: Machine,
    common: &Common,
) -> SweepRecord {
    SweepRecord {
        version: env!("CARGO_PKG_VERSION").into(),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        kind: kind.into(),
        preset: asked.preset.clone(),
        state: SweepState::Running,
        launcher: (0, 0),
        machine,
        seed: asked.base.seed.map_or(1, |seed| seed.0),
        base: asked.base.to_texts(),
        axes: Vec::new(),
        repeats: u32::try_from(asked.repeats(default_repeats).0).unwrap_or(u32::MAX),
        keep_logs: false,
        weaker_sandbox: common.allow_weaker_sandbox,
        start_timeout_ns: common.start_timeout.0,
        notes: Vec::new(),
        points: Vec::new(),
        search: None,
        keeps_failures: false,
    }
}

/// Sets what all points of a record share. Whether a run can have these settings is for its points:
/// alone they may lack a setting that each point adds.
pub fn set_base(record: &mut SweepRecord, base: Settings) {
    let base = Settings { repeats: Some(Count(record.repeats.into())), ..base };
    record.base = base.to_texts();
}

/// Sets what all points of a record share, and checks that a run can have these settings.
pub fn set_checked_base(record: &mut SweepRecord, base: Settings) -> Result<()> {
    planner::resolve(&Settings { technique: None, isolation: None, ..base.clone() }, &record.machine)?;
    set_base(record, base);
    Ok(())
}

/// Reads the record of an experiment, and checks that this build has every setting in it.
pub fn read(folder: &Path) -> Result<SweepRecord> {
    let record = SweepRecord::read(folder)?;
    for texts in std::iter::once(&record.base).chain(record.points.iter().map(|point| &point.settings)) {
        Settings::from_texts(texts).with_context(|| format!("{}: damaged", folder.display()))?;
    }
    Ok(record)
}

/// Creates the folder of a new experiment, `<out>/<time>-<kind>`, and saves the record in it.
pub fn create(mut record: SweepRecord) -> Result<(SweepRecord, PathBuf)> {
    let out = Settings::from_texts(&record.base)?.out.unwrap_or_else(|| PathBuf::from("runs"));
    if let Some(load) = System::read().load {
        record.notes.push(format!("load of the machine when it began: {load:.1}"));
    }
    let folder = folder::create_result_folder(&out, &record.started, &record.kind)?;
    record.take_over();
    record.save(&folder)?;
    Ok((record, folder))
}

/// Reads the record of an interrupted experiment, to be continued by this process.
pub fn resume(folder: &Path, machine: &Machine) -> Result<SweepRecord> {
    if folder.join(SweepPlan::FILE).exists() {
        let name = folder.display();
        let how = format!("launcher sweep --run all {name} makes what is missing, --join gathers it");
        return usage(format!("{name}: a planned sweep: {how}"));
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
    discard_unrecorded_runs(&record, folder);
    Ok(record)
}

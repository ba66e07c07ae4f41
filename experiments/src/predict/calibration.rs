//! Earlier runs of this machine and build as the calibration of a prediction.

use crate::usage;
use ::record::document::Document;
use analysis::experiment::predict::fit;
use analysis::experiment::{Experiment, Kind, MeasuredCell, PredictPart, Row};
use analysis::stats::MachineKey;
use anyhow::Result;
use planner::host::Machine;
use std::fs;
use std::path::Path;

/// Settings that a calibration shares with what is predicted by it.
const SHARED: [&str; 5] = ["technique", "isolation", "idle", "delay", "working_set"];

/// Takes the runs of an earlier prediction or grid.
///
/// # Errors
/// It is of another machine, build or setting, or has too few runs.
pub(super) fn take(record: &mut Experiment, folder: &Path) -> Result<()> {
    let found = super::super::record::read_kind(Kind::Predict, folder)?;
    match mismatch(record, &found) {
        Some(why) => {
            usage(format!("--calibration {}: {why}; leave it out to calibrate this one", folder.display()))
        }
        None => {
            adopt(record, found, folder);
            Ok(())
        }
    }
}

/// Takes the runs of the newest fitting prediction or grid in a folder of results, if there is one;
/// else notes why the newest does not fit.
pub(super) fn take_newest(record: &mut Experiment, out: &Path) {
    let entries = fs::read_dir(out).into_iter().flatten().flatten().map(|entry| entry.path());
    let saved = entries.filter(|path| Experiment::is_in(path)).filter_map(|path| {
        let found = Experiment::read(&path).ok().filter(|found| found.kind == Kind::Predict)?;
        Some((found, path))
    });
    let mut all: Vec<_> = saved.collect();
    all.sort_by(|a, b| b.0.started.cmp(&a.0.started));
    let mut refused = None;
    for (found, path) in all {
        match mismatch(record, &found) {
            None => return adopt(record, found, &path),
            Some(why) => {
                refused = refused.or(Some(format!("calibrated again: {} is not used: {why}", path.display())))
            }
        }
    }
    record.notes.extend(refused);
}

/// Returns why an earlier prediction does not calibrate a record.
fn mismatch(record: &Experiment, found: &Experiment) -> Option<String> {
    let key = |machine: &Machine| MachineKey {
        hostname: machine.hostname.clone(),
        cpu_model: machine.cpu_model.clone(),
        cores_allowed: machine.cores_allowed.clone(),
    };
    if key(&found.machine) != key(&record.machine) {
        let Machine { hostname, cpu_model, .. } = &found.machine;
        return Some(format!("it is of another machine or other cores: {hostname} ({cpu_model})"));
    }
    let build = |of: &Experiment| of.figures.part::<String>("build").ok().flatten().unwrap_or_default();
    if build(found) != build(record) {
        return Some(format!("it is of build {}, this is {}", build(found), build(record)));
    }
    let text = |of: &Experiment, key: &str| {
        of.rows.first().and_then(|row| of.settings_of(row).get(key).cloned()).unwrap_or_default()
    };
    if let Some(key) = SHARED.into_iter().find(|key| text(found, key) != text(record, key)) {
        let name = key.replace('_', "-");
        return Some(format!("it has --{name} {}, not {}", text(found, key), text(record, key)));
    }
    fit(&fitted(found)).is_none().then(|| "too few of its runs count".into())
}

/// Returns the cells to which a prediction's model is fitted.
fn fitted(found: &Experiment) -> Vec<MeasuredCell> {
    MeasuredCell::all(found).into_iter().filter(|cell| cell.part.is_fitted()).collect()
}

/// Replaces the planned runs of a record by those of an earlier prediction, whose folders are not
/// its own.
fn adopt(record: &mut Experiment, found: Experiment, folder: &Path) {
    let of = found.figures.part::<String>("calibration").ok().flatten();
    record.figures.insert("calibration", &of.unwrap_or_else(|| folder.display().to_string()));
    let switch: Vec<record::switch_price::SwitchPrice> =
        found.figures.part("switch").ok().flatten().unwrap_or_default();
    record.figures.insert("switch", &switch);
    let wake: Option<record::wake_times::WakeTimes> = found.figures.part("wake").ok().flatten();
    record.figures.insert("wake", &wake);
    record.base = found.base;
    let is_fitted = |row: &Row| row.is_made() && PredictPart::of(row).is_some_and(PredictPart::is_fitted);
    record.rows = found.rows.into_iter().filter(is_fitted).collect();
    record.rows.iter_mut().for_each(|row| row.folder.clear());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::SweepRequest;
    use crate::predict::stages::plan_pilot;
    use crate::record::new_record;
    use planner::config::Common;
    use planner::host::fake;
    use protocol::plan::Isolation;
    use record::units::Bytes;

    fn planned(cores: u32, level: Isolation, set: u64, build: &str) -> Experiment {
        let machine = fake::plain(cores).machine();
        let mut record = new_record(Kind::Predict, &SweepRequest::default(), 1, machine, &Common::default());
        record.figures.insert("build", &build);
        plan_pilot(&mut record, level.into(), Bytes(set)).unwrap();
        record
    }

    #[test]
    fn calibration_of_another_machine_build_or_setting_is_refused() {
        let record = planned(2, Isolation::Process, 0, "0000abcd");
        let why = |found: &Experiment| mismatch(&record, found).unwrap();
        assert!(why(&planned(3, Isolation::Process, 0, "0000abcd")).contains("another machine"));
        assert!(why(&planned(2, Isolation::Process, 0, "0000beef")).contains("build 0000beef"));
        let other = why(&planned(2, Isolation::Process, 4096, "0000abcd"));
        assert!(other.contains("--working-set 4KiB, not 0"), "{other}");
        assert!(why(&record).contains("too few of its runs"), "nothing is measured");
    }

    #[test]
    fn refused_calibration_is_noted_and_measured_again() {
        let out = tempfile::tempdir().unwrap();
        let saved = out.path().join("a-predict");
        fs::create_dir(&saved).unwrap();
        planned(2, Isolation::Process, 0, "0000beef").save(&saved).unwrap();
        let mut record = planned(2, Isolation::Process, 0, "0000abcd");
        let notes = record.notes.len();
        take_newest(&mut record, out.path());
        assert_eq!(record.rows.len(), 1, "the pilot is to be made");
        assert!(
            record.notes[notes..].iter().any(|note| note.contains("build 0000beef")),
            "{:?}",
            record.notes
        );
        let error = take(&mut record, &saved).unwrap_err().to_string();
        assert!(error.starts_with("--calibration") && error.contains("0000beef"), "{error}");
    }
}

//! Experiments that are parts of a survey or a ladder: each is a command that a user could give,
//! with its folder inside that of the whole, and has its share of the time.

use super::contain;
use super::launch::measure_until;
use super::measure::MeasureEnd;
use super::{ExperimentFlags, publish};
use ::record::document::Document;
use analysis::experiment::{Experiment, Kind};
use anyhow::{Result, bail};
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The words of a note on a setting that this machine cannot have.
const LEFT_OUT: &str = " left out: ";

/// An experiment that `launcher survey` or `launcher ladder` has measured as one of its parts.
pub struct NestedExperiment {
    /// The experiment's record.
    pub record: Experiment,
    /// The experiment's folder.
    pub folder: PathBuf,
    /// Why the experiment has no result, or less than planned; `None` if it is complete.
    pub shortfall: Option<String>,
}

/// Measures an experiment until a time, in a new folder within `out`, and saves its report. `show`
/// gets its kind and the number of each run.
pub fn measure_nested<F: ExperimentFlags + Args>(
    arguments: &str,
    out: &Path,
    until: Instant,
    show: &dyn Fn(Kind, u32),
) -> Result<NestedExperiment> {
    let (mut record, folder) = flags::<F>(arguments, Some(out))?.begin()?;
    let (planned, kind) = (record.settings().len(), record.kind);
    let (ended, failure) = measure_until(&mut record, &folder, until, &|number| show(kind, number))?;
    if ended == MeasureEnd::Interrupted {
        bail!("interrupted");
    }
    let (made, keeps_failures) = (record.settings().len(), kind.entry().keeps_failures);
    let shortfall = (made < planned).then(|| format!("there was time for {made} of {planned} runs"));
    if made == 0 || made < planned && !keeps_failures {
        bail!(failure.unwrap_or_else(|| format!("no time for one run of each of {planned} settings")));
    }
    let left_out = record.notes.iter().find(|note| note.contains(LEFT_OUT)).cloned();
    contain::add_cost(&mut record);
    record.save(&folder)?;
    publish::save(&record.answer(&folder)?, &record, &folder)?;
    Ok(NestedExperiment { record, folder, shortfall: failure.or(left_out).or(shortfall) })
}

/// Parses the flags of an experiment's command, with `out` as the folder of its results. `every
/// DUR` stays one word with its fault.
pub fn flags<F: Args>(arguments: &str, out: Option<&Path>) -> Result<F> {
    let arguments = arguments.replace(" every ", "\u{a0}every\u{a0}");
    let arguments =
        arguments.split(' ').filter(|word| !word.is_empty()).map(|word| word.replace('\u{a0}', " ").into());
    let out = out.into_iter().flat_map(|out| ["--out".into(), out.into()]);
    let all = std::iter::once(OsString::from("launcher")).chain(arguments).chain(out);
    let matches = F::augment_args(clap::Command::new("launcher")).try_get_matches_from(all)?;
    Ok(F::from_arg_matches(&matches)?)
}

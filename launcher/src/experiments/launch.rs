//! Measures an experiment with the real launcher.

use super::measure::{Ended, Made, measure};
use super::progress::Bar;
use super::search::search;
use crate::config::Settings;
use crate::planner;
use crate::runtime::clean::{self, CleanScope};
use crate::runtime::run::{self, Presentation};
use crate::runtime::signals::Signals;
use analysis::experiment::SweepRecord;
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;

/// Measures what a record lacks, with the real launcher.
///
/// # Errors
/// As [`measure`].
pub fn launch(record: &mut SweepRecord, folder: &Path, quiet: bool) -> Result<Ended> {
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    clean::clean(CleanScope::KeepLogs).context("cannot look into /dev/shm")?;
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

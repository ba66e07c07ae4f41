//! `launcher export`: converts a run to a Perfetto trace, a CSV table of orders, a recorded flow or
//! an SVG picture, and the curves of a bill or a sweep to a picture.

mod flow;
mod orders;
mod perfetto;
mod proto;

use crate::experiments;
use crate::saved_results::check_has_orders;
use anyhow::{Context, Result, anyhow};
use catalog::folder_of;
use clap::Args;
use planner::config::UsageError;
use record::document::Document;
use record::experiment::ExperimentHead;
use record::run::RunRecord;
use record::screen;
use record::units::Count;
use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use system::folder::{NotRegular, OpenDir};
use verdict::html::order_path;
use verdict::summary::Summary;

/// The examples below the help of `launcher export`.
pub const EXAMPLES: &str = "\
Examples:
  launcher export latest --perfetto run.pftrace     for ui.perfetto.dev
  launcher export latest --csv orders.csv           its orders with their stamps, for DuckDB or pandas
  launcher export latest --svg path.svg             where an order's time goes, for a README
  launcher export BILL --svg cost.svg               what levels add along --strategies or --working-set
  launcher export SWEEP --svg knee.svg              p99 − W over --work, and the queueing knee
  launcher export latest --flow flow.csv            its orders, for launcher run --schedule flow.csv";

/// Error if there is nothing to draw.
const NO_PICTURE: &str = "no orders around the median: the stages were not stamped (--stamps ends), or too few orders came back; \
                          choose another run";

/// The command-line flags of `launcher export`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ExportFlags {
    /// Name the run's folder, or latest
    pub run: PathBuf,
    /// Write a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Trace only the first N orders
    #[arg(long, value_name = "N", default_value = "100k")]
    pub orders: Count,
    /// Write a row for each order with its stamps
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draw the path of an order around the median, with the time of each stage; of a bill, what
    /// levels add along a setting; of a disturb, what each disturbance adds; of a sweep over work
    /// or rate, latency and waiting by load
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the orders that were sent, for run --schedule FILE
    #[arg(long, value_name = "FILE")]
    pub flow: Option<PathBuf>,
}

/// Writes the files that the flags request, each in another program's format.
pub fn export(flags: &ExportFlags) -> Result<ExitCode> {
    let merges = flags.perfetto.is_some() || flags.csv.is_some() || flags.flow.is_some();
    if !merges && flags.svg.is_none() {
        let names = "--perfetto FILE, --csv FILE, --svg FILE or --flow FILE";
        return Err(UsageError(format!("nothing to write: name {names}")).into());
    }
    let folder = folder_of(&flags.run)?;
    if let Some(path) = &flags.svg {
        let drawn = picture(&folder)?;
        written(&folder, path, |out| Ok(out.write_all(drawn.as_bytes())?))?;
    }
    if merges {
        let record = RunRecord::read(&folder)?;
        check_has_orders(&record, &folder)?;
        // First: it may refuse.
        let schedule = flags.flow.is_some().then(|| flow::schedule_of(&folder, &record)).transpose()?;
        let merged = merge::merge(folder.as_path(), &record, |_, _| {})?;
        if let Some(path) = &flags.perfetto {
            let max_orders = usize::try_from(flags.orders.0).unwrap_or(usize::MAX);
            written(&folder, path, |mut out| Ok(perfetto::write(&record, &merged, max_orders, &mut out)?))?;
        }
        if let Some((path, schedule)) = flags.flow.as_ref().zip(schedule) {
            written(&folder, path, |out| flow::write(&record, &schedule, &merged, out))?;
        }
        if let Some(path) = &flags.csv {
            written(&folder, path, |out| orders::write(&record, &merged, out))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws the path of a run's orders, or what a bill or a disturb shows.
fn picture(folder: &Path) -> Result<String> {
    if ExperimentHead::is_in(folder) {
        return experiments::picture(folder);
    }
    let summary = Summary::read(folder)?;
    order_path(&summary).with_context(|| format!("--svg: {NO_PICTURE}"))
}

/// The output of an export.
type Sink<'a> = dyn Write + 'a;

/// Writes a file that the user named. A regular file is replaced atomically. Anything else (a pipe,
/// `/dev/stdout`) is written to directly, but not in the run's own folder, which may hold foreign
/// files.
fn written(run: &Path, path: &Path, write: impl FnOnce(&mut Sink<'_>) -> Result<()>) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    if !path.symlink_metadata().is_ok_and(|facts| !facts.is_file()) {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let real = parent.canonicalize().with_context(cannot)?.join(path.file_name().unwrap_or_default());
        return whole(&real, path, write);
    }
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    if parent.zip(run.canonicalize().ok()).is_some_and(|(parent, run)| parent.starts_with(run)) {
        return Err(anyhow!(NotRegular::Kind)).with_context(cannot);
    }
    let mut out = BufWriter::new(File::create(path).with_context(cannot)?);
    write(&mut out).and_then(|()| Ok(out.flush()?)).with_context(cannot)?;
    writeln!(screen::stdout(), "{}", path.display())?;
    Ok(())
}

/// Writes a regular file atomically; `shown` is its name in messages. Links are replaced and not
/// followed.
fn whole(path: &Path, shown: &Path, write: impl FnOnce(&mut Sink<'_>) -> Result<()>) -> Result<()> {
    let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
    let save = || -> Result<()> {
        let place = OpenDir::open(folder)?;
        let mut out = BufWriter::new(place.draft(name)?);
        write(&mut out)?;
        out.into_inner().map_err(IntoInnerError::into_error)?.save()?;
        Ok(())
    };
    save().with_context(|| format!("cannot write {}", shown.display()))?;
    writeln!(screen::stdout(), "{}", shown.display())?;
    Ok(())
}

//! `launcher export`: a run for other programs: a Perfetto trace, NumPy's records, Parquet's tables, HdrHistogram's percentiles.

#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
mod proto;
mod tables;

use crate::config::UsageError;
use crate::output;
use crate::shelf::folder_of;
use analysis::document::Document;
use analysis::hlog;
use analysis::merge;
use analysis::record::RunRecord;
use analysis::units::Count;
use anyhow::{Context, Result};
use clap::Args;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `export --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  launcher export latest --perfetto run.pftrace     for ui.perfetto.dev
  launcher export runs/RUN --npy orders.npy         numpy.load, or mmap_mode
  launcher export runs/RUN --hgrm percentiles       a .hgrm for each stage";

/// The flags of `export`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ExportFlags {
    /// The run's folder, or latest
    pub run: PathBuf,
    /// Write a trace for ui.perfetto.dev and trace_processor
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Of a trace: only the first orders
    #[arg(long, value_name = "N", default_value = "100k")]
    pub orders: Count,
    /// Write a record for each order, for NumPy
    #[arg(long, value_name = "FILE")]
    pub npy: Option<PathBuf>,
    /// Write orders.parquet and stages.parquet (needs a launcher built with --features parquet)
    #[arg(long, value_name = "FOLDER")]
    pub parquet: Option<PathBuf>,
    /// Write each histogram as percentiles, a .hgrm file each
    #[arg(long, value_name = "FOLDER")]
    pub hgrm: Option<PathBuf>,
}

/// Writes what is asked for.
///
/// # Errors
/// [`UsageError`]: nothing is asked for. A run that cannot be merged, files that cannot be written.
pub fn export(flags: &ExportFlags) -> Result<ExitCode> {
    let merges = flags.perfetto.is_some() || flags.npy.is_some() || flags.parquet.is_some();
    if !merges && flags.hgrm.is_none() {
        let names = "--perfetto FILE, --npy FILE, --parquet FOLDER or --hgrm FOLDER";
        return Err(UsageError(format!("nothing to write: name {names}")).into());
    }
    if flags.parquet.is_some() && !cfg!(feature = "parquet") {
        let way = "build it with `cargo build --release --features parquet`, or take --npy";
        return Err(UsageError(format!("--parquet: this launcher was built without Parquet: {way}")).into());
    }
    let folder = folder_of(&flags.run)?;
    let record = RunRecord::read(&folder)?;
    if merges {
        let merged = merge::merge(folder.as_path(), &record, |_, _| {})?;
        if let Some(path) = &flags.perfetto {
            let most = usize::try_from(flags.orders.0).unwrap_or(usize::MAX);
            written(path, |out| Ok(perfetto::write(&record, &merged, most, out)?))?;
        }
        if let Some(path) = &flags.npy {
            written(path, |out| Ok(tables::npy(&record, &merged, out)?))?;
        }
        #[cfg(feature = "parquet")]
        if let Some(into) = &flags.parquet {
            std::fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
            written(&into.join("orders.parquet"), |out| parquet::orders(&record, &merged, out))?;
            written(&into.join("stages.parquet"), |out| parquet::stages(&record, &merged, out))?;
        }
    }
    if let Some(into) = &flags.hgrm {
        std::fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
        for (measure, histogram) in hlog::read(&folder)? {
            written(&into.join(format!("{}.hgrm", measure.name())), |out| {
                Ok(tables::hgrm(&histogram, out)?)
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn written(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut out = BufWriter::new(File::create(path).with_context(cannot)?);
    write(&mut out).and_then(|()| Ok(out.flush()?)).with_context(cannot)?;
    writeln!(output::stdout(), "{}", path.display())?;
    Ok(())
}

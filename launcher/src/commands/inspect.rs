//! `launcher inspect`: the stamp records of a run or of one log, or the spacing of a recorded flow.

use crate::cli::InspectFlags;
use crate::saved_results;
use anyhow::Result;
use record::document::Document;
use record::run::RunRecord;
use record::screen;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use strategy::schedule::read_times;
use verdict::inspect::{self, Format};
use verdict::spacing::{SpacingCollector, to_json};

/// Runs `launcher inspect`: prints orders, stages and gaps of a saved run.
pub fn inspect(flags: &InspectFlags) -> Result<ExitCode> {
    if flags.spacing {
        return spacing(&flags.path, flags.json);
    }
    let path = catalog::path_of(&flags.path)?;
    saved_results::check_is_run_folder(&path)?;
    if path.is_dir() && (flags.order.is_some() || flags.worst.is_some()) {
        saved_results::check_has_orders(&RunRecord::read(&path)?, &path)?;
    }
    let format = match (flags.json, flags.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Text,
    };
    let options = inspect::Options {
        head: flags.head,
        tail: flags.tail,
        order: flags.order,
        worst: flags.worst,
        format,
    };
    inspect::inspect(&path, &options, &mut screen::stdout_while_read())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the distribution of the time between two rows of a recorded flow.
fn spacing(flow: &Path, json: bool) -> Result<ExitCode> {
    let mut collector = SpacingCollector::default();
    read_times(flow, |venue, time_ns| collector.add(venue, time_ns))?;
    let instruments = collector.finish();
    let mut out = screen::stdout_while_read();
    if json {
        out.write_all(&to_json(&flow.display().to_string(), &instruments)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for spacing in &instruments {
        writeln!(out, "{}", spacing.table().terminal(false))?;
    }
    Ok(ExitCode::SUCCESS)
}

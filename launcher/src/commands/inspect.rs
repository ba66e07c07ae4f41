//! `launcher inspect`: the stamp records of a run or of one log.

use crate::cli::InspectFlags;
use crate::{experiments, output, shelf};
use analysis::document::Document;
use analysis::inspect::{self, Format};
use analysis::record::RunRecord;
use anyhow::Result;
use std::process::ExitCode;

pub fn inspect(flags: &InspectFlags) -> Result<ExitCode> {
    let path = shelf::path_of(&flags.path)?;
    experiments::check_is_run_folder(&path)?;
    if path.is_dir() && (flags.order.is_some() || flags.worst.is_some()) {
        experiments::check_has_orders(&RunRecord::read(&path)?, &path)?;
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
    inspect::inspect(&path, &options, &mut output::stdout_while_read())?;
    Ok(ExitCode::SUCCESS)
}

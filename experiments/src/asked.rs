//! Results of experiments that the launcher requests from this program.

use crate::cli::{AgainstFlags, LinesFlags, PageFlags, PictureFlags, ReportFlags, command};
use crate::compare;
use crate::publish::{OutputForm, print};
use ::record::document::Document;
use ::record::experiment::ExperimentLine;
use ::record::screen::stdout;
use analysis::experiment::{Experiment, isolation_cost};
use anyhow::{Result, anyhow};
use planner::command_line::definition::CommandDefinition;
use planner::config::ReportLength;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use verdict::summary::Summary;

/// Compares runs with those of a folder, and lets a gate decide.
pub(crate) fn against(flags: &AgainstFlags) -> Result<ExitCode> {
    let runs: Vec<Summary> = flags.runs.iter().map(|run| Summary::read(run)).collect::<Result<_, _>>()?;
    let found = compare::against(&flags.baseline, &runs)?;
    if !flags.quiet {
        writeln!(stdout())?;
        compare::show(&found, OutputForm::Report(flags.report))?;
    }
    if let Some(gate) = flags.fail_if_slower {
        compare::check_gate(gate, &found)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the complete report of an experiment, or its answer as JSON.
pub(crate) fn report(flags: &ReportFlags) -> Result<ExitCode> {
    let answer = Experiment::read(&flags.folder)?.answer(&flags.folder)?;
    print(&answer, OutputForm::new(flags.json, ReportLength::Full))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of an experiment.
pub(crate) fn page(flags: &PageFlags) -> Result<ExitCode> {
    analysis::html::write(&flags.folder, &flags.file)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the picture of an experiment, as SVG.
pub(crate) fn picture(flags: &PictureFlags) -> Result<ExitCode> {
    stdout().write_all(drawn(&flags.folder)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn drawn(folder: &Path) -> Result<String> {
    let experiment = Experiment::read(folder)?;
    let draw = experiment.kind.entry().picture.unwrap_or(isolation_cost::picture);
    draw(&experiment).map_err(|why| anyhow!("--svg: {why}"))
}

/// Prints experiments in a line each; one that cannot be read has an empty one.
pub(crate) fn lines(flags: &LinesFlags) -> Result<ExitCode> {
    let line = |folder: &PathBuf| {
        let Ok(experiment) = Experiment::read(folder) else { return ExperimentLine::default() };
        let entry = experiment.kind.entry();
        let (setting, fitness) = ((entry.summary)(&experiment), Some((entry.fitness)(&experiment)));
        ExperimentLine { setting, fitness }
    };
    let lines: Vec<ExperimentLine> = flags.folders.iter().map(line).collect();
    stdout().write_all(&serde_json::to_vec(&lines)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the definitions of the experiments' commands.
pub(crate) fn definitions() -> Result<ExitCode> {
    let command = command();
    let all: Vec<CommandDefinition> =
        command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(CommandDefinition::from).collect();
    stdout().write_all(&serde_json::to_vec(&all)?)?;
    Ok(ExitCode::SUCCESS)
}

//! What the launcher asks of the results of experiments.

use crate::cli::{AgainstFlags, LinesFlags, PageFlags, PictureFlags, command};
use crate::compare;
use ::record::document::Document;
use ::record::experiment::ExperimentLine;
use ::record::screen::stdout;
use analysis::experiment::disturb::disturbance_picture;
use analysis::experiment::isolation_cost::growth_picture;
use analysis::experiment::sweep::sweep_picture;
use analysis::experiment::{Disturbances, Experiment, ExperimentRuns, IsolationCosts, Kind};
use anyhow::{Context, Result, anyhow};
use planner::command_line::definition::CommandDefinition;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use verdict::summary::Summary;

/// Error if nothing was compared with calm runs.
const NO_DISTURBANCE: &str =
    "no disturbance has enough pairs of runs: measure at least 5, for example launcher disturb --repeats 10";
/// Error if a sweep has neither work nor rates.
const NO_LOADS: &str = "the sweep varies neither work nor rate, or no run of it is sound; measure one: \
                        launcher sweep --technique spsc-mux,array-queue --work 0ns,500ns,1000ns";

/// Error if a bill has no curve.
const NO_CURVES: &str = "no level was measured against threads with enough repeats; measure them: \
                         launcher bill --isolation thread,process --strategies 1,2,4 --idle park";

/// Compares runs with those of a folder, and lets a gate decide.
pub(crate) fn against(flags: &AgainstFlags) -> Result<ExitCode> {
    let runs: Vec<Summary> = flags.runs.iter().map(|run| Summary::read(run)).collect::<Result<_, _>>()?;
    let found = compare::against(&flags.baseline, &runs)?;
    if !flags.quiet {
        writeln!(stdout())?;
        compare::show(&found, false)?;
    }
    if let Some(gate) = flags.fail_if_slower {
        compare::pass(gate, &found)?;
    }
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
    let refused = |why| anyhow!("--svg: {why}");
    if experiment.kind == Kind::Disturb {
        let found = Disturbances::from_experiment(&experiment).map_err(refused)?;
        return disturbance_picture(&found).with_context(|| format!("--svg: {NO_DISTURBANCE}"));
    }
    let runs = ExperimentRuns::new(&experiment);
    if experiment.kind == Kind::Sweep {
        return sweep_picture(&runs).with_context(|| format!("--svg: {NO_LOADS}"));
    }
    let bill = IsolationCosts::from_runs(&runs).map_err(refused)?;
    growth_picture(&bill).with_context(|| format!("--svg: {NO_CURVES}"))
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

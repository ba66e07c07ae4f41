//! `launcher contain`: injects each fault at each isolation level, and records the effects on the
//! others.
//!
//! A case of the matrix is one run, and a point of the record: three strategies trade, the second
//! one has a fault, and the others continue or do not. The victim is restarted (`--on-death
//! restart`), as a thread if its process lives on.

mod cost;
pub(super) mod disturb;
mod matrix;
mod preset;
mod rows;

use super::dry_run::dry_run;
use super::flags::SweptSettings;
use super::launcher::{DestroyedLog, LaunchedRun};
use super::record::read_kind;
use super::{ExperimentFlags, measure_and_publish};
use analysis::experiment::{
    Disturbances, Experiment, ExperimentState, FaultOutcome, Figures, Kind, ProtectionCost,
};
use anyhow::{Error, Result};
use clap::Args;
use matrix::{
    ContainCase, carries_programs, case_of, choose_victim, contain_cases, cross_process_techniques,
    has_program, settings,
};
use planner::config::{Common, Settings, UsageError};
use planner::host::Machine;
pub(super) use preset::FaultPreset;
use preset::every_level;
use protocol::plan::{IsolationLevels, Technique};
use rows::{destroyed_row, role_row, row, venue_row};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command-line flags of `launcher contain`: technique and isolation may be lists.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ContainFlags {
    #[command(flatten)]
    swept: SweptSettings,
    #[command(flatten)]
    common: Common,
    /// Add whether the others were undisturbed, measured before by launcher disturb
    #[arg(long, value_name = "FOLDER")]
    disturb: Option<PathBuf>,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, help_heading = "Run")]
    dry_run: bool,
}

/// Runs `launcher contain`: every combination of fault, technique and isolation level that the
/// flags select.
pub fn run(flags: &ContainFlags) -> Result<ExitCode> {
    if flags.dry_run {
        return dry_run(&flags.plan(planner::host::machine())?);
    }
    let (record, folder) = flags.begin()?;
    measure_and_publish(record, &folder, &flags.common)
}

/// What `launcher contain` tries.
const CONTAIN: FaultPreset = FaultPreset {
    kind: Kind::Contain,
    repeats: 1,
    is_compared: false,
    techniques: |asked| {
        let mut techniques = cross_process_techniques();
        techniques.retain(|of| !has_program(asked) || Technique::built_in().contains(of));
        techniques
    },
    levels: |asked| {
        let mut levels = every_level();
        levels.retain(|levels| {
            !has_program(asked) || levels.distinct().all(|level| carries_programs(level.kind()))
        });
        levels
    },
    cases,
    settings,
    figures: |settings, run| {
        let mut figures = Figures::default();
        outcome(settings, run).iter().for_each(|outcome| figures.insert_outcome(outcome));
        figures
    },
};

impl FaultPreset {
    /// Returns the preset for a kind of experiment; `None` for a kind that injects no faults of its
    /// own.
    pub fn of_kind(kind: Kind) -> Option<&'static Self> {
        [&CONTAIN, &disturb::DISTURB].into_iter().find(|preset| preset.kind == kind)
    }
}

fn cases(
    techniques: &[Technique],
    isolations: &[IsolationLevels],
    asked: &Settings,
) -> Result<Vec<ContainCase>> {
    let mut cases = contain_cases(techniques, isolations, asked.fault.as_ref());
    if asked.fault.is_none() {
        cases.retain_mut(|case| choose_victim(case, asked));
    }
    if !cases.is_empty() {
        return Ok(cases);
    }
    let levels = isolations.iter().flat_map(IsolationLevels::distinct);
    let mut all = levels.flat_map(|level| techniques.iter().map(move |of| (*of, level)));
    let refused =
        all.find_map(|(technique, isolation)| planner::check_reach(technique, isolation.kind()).err());
    let names: Vec<&str> = techniques.iter().map(|technique| technique.name()).collect();
    let none = || UsageError(format!("nothing to try: no fault of these fits {}", names.join(", ")));
    Err(refused.unwrap_or_else(none).into())
}

impl ExperimentFlags for ContainFlags {
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        let mut record = CONTAIN.plan(&self.swept, &self.common, machine)?;
        if let Some(folder) = &self.disturb {
            record.set_undisturbed(&disturbances(folder)?.conclusions());
        }
        Ok(record)
    }

    fn out(&self) -> Result<Option<PathBuf>> {
        Ok(self.swept.request(None, self.common.config.as_ref())?.base.out)
    }
}

/// Reads the table of `launcher disturb` in a folder.
fn disturbances(folder: &Path) -> Result<Disturbances> {
    Disturbances::from_experiment(&read_kind(Kind::Disturb, folder)?).map_err(Error::msg)
}

/// Returns the outcome of the fault in a run with these settings. `None`: the run ended too early.
fn outcome(settings: &Settings, run: &LaunchedRun) -> Option<FaultOutcome> {
    let case = case_of(settings)?;
    let folder = run.folder.file_name().unwrap_or_default().to_string_lossy();
    let summary = match &run.summary {
        Ok(summary) => summary,
        Err(DestroyedLog { what, .. }) => {
            let strategies = settings.strategies().0 as u16;
            return Some(FaultOutcome::Strategy(destroyed_row(&case, strategies, what, &folder)));
        }
    };
    if case.scenario.fault.kind.is_of_venue() {
        venue_row(&case, summary, &folder).map(FaultOutcome::Venue)
    } else if case.is_of_role() {
        Some(FaultOutcome::Role(role_row(&case, summary, &folder)))
    } else {
        Some(FaultOutcome::Strategy(row(&case, summary, &folder)))
    }
}

/// Plans the next runs of a search for the heaviest storm. Returns `false` if it has ended, or the
/// experiment is none.
pub(super) fn plan_next_storms(record: &mut Experiment) -> Result<bool> {
    analysis::experiment::plan_next_storms(record).map_err(Error::msg)
}

/// Adds the cost of crash protection, measured now, to a complete containment table.
pub(super) fn add_cost(record: &mut Experiment) {
    let is_contain = FaultPreset::of_kind(record.kind).is_some_and(|preset| !preset.is_compared);
    if is_contain
        && record.state == ExperimentState::Complete
        && let Some(cost) = cost::measure()
    {
        record.figures.insert(ProtectionCost::NAME, &cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::experiment::ExperimentRuns;
    use clap::Parser;
    use planner::host::fake;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        flags: ContainFlags,
    }

    fn planned(arguments: &[&str]) -> Result<Experiment> {
        let line = TestCommandLine::try_parse_from([&["contain"], arguments].concat()).unwrap();
        line.flags.plan(fake::plain(2).machine())
    }

    #[test]
    fn program_beside_player_is_tried() {
        let arguments = ["--strategy", "player,exec:./mine --fast", "--technique", "spsc-mux"];
        let record = planned(&arguments).unwrap();
        let points = ExperimentRuns::new(&record).points;
        assert!(points.iter().any(|point| point.name == "kill against spsc-mux under process"));
        assert!(points.iter().all(|point| point.settings["strategies"] == "3"));
        let levels: Vec<&String> = points.iter().map(|point| &point.settings["isolation"]).collect();
        assert!(levels.iter().all(|level| ["process", "container"].contains(&level.as_str())), "{levels:?}");
        // What is named is tried as it is, or refused.
        let refused = |more: &[&str]| planned(&[&arguments, more].concat()).unwrap_err().to_string();
        assert!(refused(&["--isolation", "sandbox"]).contains("--isolation container"));
        assert!(refused(&["--isolation", "process", "--fault", "hang"]).contains("is a program"));
    }
}

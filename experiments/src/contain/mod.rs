//! `launcher contain`: injects each fault at each isolation level, and records the effects on the
//! others.
//!
//! A case of the matrix is one run, and a point of the record: three strategies trade, the second
//! one has a fault, and the others continue or do not. The victim is restarted (`--on-death
//! restart`), as a thread if its process lives on.

mod cost;
pub(super) mod disturb;
pub(super) mod matrix;
mod rows;

use super::dry_run::dry_run;
use super::flags::{SweepRequest, SweptSettings};
use super::launcher::LaunchedRun;
use super::points::new_point;
use super::record::{new_record, read_kind};
use super::{ExperimentFlags, measure_and_publish, usage};
use analysis::experiment::axis::CostRole;
use analysis::experiment::{
    Disturbances, Experiment, ExperimentState, FaultOutcome, Kind, ProtectionCost, Setting,
};
use anyhow::{Error, Result};
use clap::Args;
use matrix::{
    ContainCase, carries_programs, case_of, choose_victim, contain_cases, cross_process_techniques,
    has_program, settings,
};
use planner::config::{Common, Settings, UsageError};
use planner::host::Machine;
use protocol::plan::{Isolation, IsolationLevels, Technique};
pub(super) use rows::row;
use rows::{role_row, venue_row};
use std::collections::BTreeMap;
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

/// Runs every combination of fault, technique and isolation level that the flags select.
pub fn run(flags: &ContainFlags) -> Result<ExitCode> {
    if flags.dry_run {
        return dry_run(&flags.plan(planner::host::machine())?);
    }
    let (record, folder) = flags.begin()?;
    measure_and_publish(record, &folder, &flags.common)
}

/// What to try, and the settings that all runs share.
fn asked(flags: &ContainFlags) -> Result<(Settings, Vec<ContainCase>)> {
    let asked = flags.swept.request(None, flags.common.config.as_ref())?;
    if asked.preset.is_some() {
        return usage("--preset with contain: there is none; leave it out");
    }
    asked.check_axes(|axis| axis.entry().cost_role == CostRole::Row)?;
    let (mut techniques, mut isolations) = (Vec::new(), Vec::new());
    for value in asked.axes.iter().flatten() {
        let mut settings = Settings::default();
        value.apply(&mut settings);
        techniques.extend(settings.technique);
        isolations.extend(settings.isolation);
    }
    techniques.extend(asked.base.technique);
    isolations.extend(asked.base.isolation);
    let has_program = has_program(&asked.base);
    if techniques.is_empty() {
        techniques = cross_process_techniques();
        techniques.retain(|of| !has_program || Technique::built_in().contains(of));
    }
    if isolations.is_empty() {
        isolations = Isolation::ALL.iter().map(|level| IsolationLevels::all(*level)).collect();
        isolations.retain(|levels| !has_program || levels.distinct().all(carries_programs));
    }
    let mut cases = contain_cases(&techniques, &isolations, asked.base.fault.as_ref());
    if asked.base.fault.is_none() {
        cases.retain_mut(|case| choose_victim(case, &asked.base));
    }
    if !cases.is_empty() {
        return Ok((asked.base, cases));
    }
    let levels = isolations.iter().flat_map(IsolationLevels::distinct);
    let mut all = levels.flat_map(|level| techniques.iter().map(move |of| (*of, level)));
    let refused = all.find_map(|(technique, isolation)| planner::check_reach(technique, isolation).err());
    let names: Vec<&str> = techniques.iter().map(|technique| technique.name()).collect();
    let none = || UsageError(format!("nothing to try: no fault of these fits {}", names.join(", ")));
    Err(refused.unwrap_or_else(none).into())
}

impl ExperimentFlags for ContainFlags {
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        let (base, cases) = asked(self)?;
        let point = |case: &ContainCase| -> Result<Setting> {
            // Found out before the first run: a setting that cannot be.
            let resolved = planner::resolve(&settings(case, &base), &machine)?;
            Ok(new_point(case.name(), BTreeMap::new(), resolved))
        };
        let points: Vec<Setting> = cases.iter().map(point).collect::<Result<_>>()?;
        let asked = SweepRequest { base, ..SweepRequest::default() };
        let mut record = new_record(Kind::Contain, &asked, 1, machine, &self.common);
        record.plan_rows(&points);
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
pub(super) fn outcome(settings: &Settings, run: &LaunchedRun) -> Option<FaultOutcome> {
    let case = case_of(settings)?;
    let folder = run.folder.file_name().unwrap_or_default().to_string_lossy();
    if case.scenario.fault.kind.is_of_venue() {
        venue_row(&case, &run.summary, &folder).map(FaultOutcome::Venue)
    } else if case.is_of_role() {
        Some(FaultOutcome::Role(role_row(&case, &run.summary, &folder)))
    } else {
        Some(FaultOutcome::Strategy(row(&case, &run.summary, &folder)))
    }
}

/// Adds the cost of crash protection, measured now, to a complete containment table.
pub(super) fn add_cost(record: &mut Experiment) {
    if record.kind == Kind::Contain
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

    fn planned(words: &[&str]) -> Result<Experiment> {
        let line = TestCommandLine::try_parse_from([&["contain"], words].concat()).unwrap();
        line.flags.plan(fake::plain(2).machine())
    }

    #[test]
    fn program_beside_player_is_tried() {
        let words = ["--strategy", "player,exec:./mine --fast", "--technique", "spsc-mux"];
        let record = planned(&words).unwrap();
        let points = ExperimentRuns::new(&record).points;
        assert!(points.iter().any(|point| point.name == "kill against spsc-mux under process"));
        assert!(points.iter().all(|point| point.settings["strategies"] == "3"));
        let levels: Vec<&String> = points.iter().map(|point| &point.settings["isolation"]).collect();
        assert!(levels.iter().all(|level| ["process", "container"].contains(&level.as_str())), "{levels:?}");
        // What is named is tried as it is, or refused.
        let refused = |more: &[&str]| planned(&[&words, more].concat()).unwrap_err().to_string();
        assert!(refused(&["--isolation", "sandbox"]).contains("--isolation container"));
        assert!(refused(&["--isolation", "process", "--fault", "hang"]).contains("is a program"));
    }
}

//! `launcher contain`: injects each fault at each isolation level, and records the effects on the
//! others.
//!
//! A case of the matrix is one run, and a point of the record: three strategies trade, the second
//! one has a fault, and the others continue or do not. Under `process` and `sandbox` the launcher
//! restarts the victim (`--on-death restart`); a thread can neither be killed nor started again
//! alone, so there the run ends, which is what the row shows.

mod cost;
mod matrix;
mod rows;

use super::dry_run::dry_run;
use super::flags::{SweepRequest, SweptSettings};
use super::measure::MeasureEnd;
use super::points::new_point;
use super::publish::PublishableReport;
use super::record::{new_record, set_base};
use super::{Experiment, measure_and_publish, usage};
use crate::config::{Common, Settings, UsageError};
use crate::host::Machine;
use crate::planner;
use analysis::document::Document;
use analysis::experiment::{Axis, Containments, SweepPoint, SweepRecord, contain, sweep};
use analysis::summary::Summary;
use anyhow::{Context, Result};
use clap::Args;
use matrix::{
    ContainCase, carries_programs, case_of, choose_victim, contain_cases, cross_process_techniques,
    has_program, settings,
};
use protocol::plan::{Isolation, Technique};
use rows::{role_row, row, venue_row};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// The command-line flags of `launcher contain`: technique and isolation may be lists.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ContainFlags {
    #[command(flatten)]
    swept: SweptSettings,
    #[command(flatten)]
    common: Common,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, help_heading = "Run")]
    dry_run: bool,
}

/// Runs every combination of fault, technique and isolation level that the flags select.
pub fn run(flags: &ContainFlags) -> Result<ExitCode> {
    if flags.dry_run {
        return dry_run(&flags.plan(crate::host::machine())?);
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
    asked.check_axes(|axis| matches!(axis, Axis::Technique | Axis::Isolation))?;
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
        isolations = Isolation::ALL.to_vec();
        isolations.retain(|level| !has_program || carries_programs(*level));
    }
    let mut cases = contain_cases(&techniques, &isolations, asked.base.fault.as_ref());
    if asked.base.fault.is_none() {
        cases.retain_mut(|case| choose_victim(case, &asked.base));
    }
    if !cases.is_empty() {
        return Ok((asked.base, cases));
    }
    let mut all = isolations.iter().flat_map(|isolation| techniques.iter().map(move |of| (*of, *isolation)));
    let refused = all.find_map(|(technique, isolation)| planner::check_reach(technique, isolation).err());
    let names: Vec<&str> = techniques.iter().map(|technique| technique.name()).collect();
    let none = || UsageError(format!("nothing to try: no fault of these fits {}", names.join(", ")));
    Err(refused.unwrap_or_else(none).into())
}

impl Experiment for ContainFlags {
    fn plan(&self, machine: Machine) -> Result<SweepRecord> {
        let (base, cases) = asked(self)?;
        let point = |case: &ContainCase| -> Result<SweepPoint> {
            // Found out before the first run: a setting that cannot be.
            let resolved = planner::resolve(&settings(case, &base), &machine)?;
            Ok(new_point(case.name(), BTreeMap::new(), resolved))
        };
        let points = cases.iter().map(point).collect::<Result<_>>()?;
        let base = Settings { fault: None, technique: None, isolation: None, on_death: None, ..base };
        let asked = SweepRequest { base: base.clone(), ..SweepRequest::default() };
        let record = new_record("contain", &asked, 1, machine, &self.common);
        let mut record = SweepRecord { keeps_failures: true, points, ..record };
        set_base(&mut record, base);
        Ok(record)
    }
}

/// Returns the report of a containment matrix. That of a complete one has the cost of crash
/// protection, measured now.
pub(super) fn report(record: &SweepRecord, folder: &Path, ended: MeasureEnd) -> Result<PublishableReport> {
    let cost = (ended == MeasureEnd::Complete).then(cost::measure);
    let mut all = Containments {
        machine: record.machine.cpu_model.clone(),
        rows: Vec::new(),
        venues: Vec::new(),
        roles: Vec::new(),
        cost,
        conditions: sweep::condition_line(record),
        notes: sweep::notes(record),
    };
    all.notes.extend(cost.map(|cost| cost.note()));
    for point in &record.points {
        let case = case_of(&Settings::from_texts(&point.settings)?)
            .with_context(|| format!("{}: no case of a containment table", point.name))?;
        for run in &point.runs {
            let summary = Summary::read(&folder.join(&run.folder))?;
            if case.scenario.fault.kind.is_of_venue() {
                all.venues.extend(venue_row(&case, &summary, &run.folder));
            } else if case.is_of_role() {
                all.roles.push(role_row(&case, &summary, &run.folder));
            } else {
                all.rows.push(row(&case, &summary, &run.folder));
            }
        }
    }
    PublishableReport::new(contain::report(&all, folder, Some(record)), &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;
    use clap::Parser;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        flags: ContainFlags,
    }

    fn planned(words: &[&str]) -> Result<SweepRecord> {
        let line = TestCommandLine::try_parse_from([&["contain"], words].concat()).unwrap();
        line.flags.plan(fake::plain(2).machine())
    }

    #[test]
    fn program_beside_player_is_tried() {
        let words = ["--strategy", "player,exec:./mine --fast", "--technique", "spsc-mux"];
        let record = planned(&words).unwrap();
        assert!(record.points.iter().any(|point| point.name == "kill against spsc-mux under process"));
        assert!(record.points.iter().all(|point| point.settings["strategies"] == "3"));
        let levels: Vec<&String> = record.points.iter().map(|point| &point.settings["isolation"]).collect();
        assert!(levels.iter().all(|level| ["process", "container"].contains(&level.as_str())), "{levels:?}");
        // What is named is tried as it is, or refused.
        let refused = |more: &[&str]| planned(&[&words, more].concat()).unwrap_err().to_string();
        assert!(refused(&["--isolation", "sandbox"]).contains("--isolation container"));
        assert!(refused(&["--isolation", "process", "--fault", "hang"]).contains("is a program"));
    }
}

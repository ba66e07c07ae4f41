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
use matrix::{ContainCase, case_of, contain_cases, cross_process_techniques, settings};
use protocol::plan::Isolation;
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
    measure_and_publish(record, &folder, flags.common.json)
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
    if techniques.is_empty() {
        techniques = cross_process_techniques();
    }
    if isolations.is_empty() {
        isolations = Isolation::ALL.to_vec();
    }
    let cases = contain_cases(&techniques, &isolations, asked.base.fault.as_ref());
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
        set_base(&mut record, base)?;
        Ok(record)
    }
}

/// Returns the report of a containment matrix, with the cost of crash protection, measured now.
pub(super) fn report(record: &SweepRecord, folder: &Path) -> Result<PublishableReport> {
    let cost = cost::measure();
    let mut all = Containments {
        machine: record.machine.cpu_model.clone(),
        rows: Vec::new(),
        venues: Vec::new(),
        roles: Vec::new(),
        cost: Some(cost),
        conditions: sweep::condition_line(record),
        notes: sweep::notes(record),
    };
    all.notes.push(cost.note());
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

//! `launcher contain`: injects each fault at each isolation level, and records the effects on the
//! others. Each combination of fault, technique and isolation level is a real run; the table has
//! the outcomes.
//!
//! A case of the matrix is one run, and a point of the record: three strategies trade, the second
//! one has a fault, and the others continue or do not. Under `process` and `sandbox` the launcher
//! restarts the victim (`--on-death restart`); a thread can neither be killed nor started again
//! alone, so there the run ends, which is what the row shows.

mod cost;
mod matrix;
mod rows;

use super::flags::{SweepRequest, SweptSettings};
use super::measure_and_publish;
use super::points::PointLayout;
use super::publish::PublishableReport;
use super::record::{create, new_record};
use crate::config::{Common, Settings, UsageError};
use crate::planner;
use analysis::document::Document;
use analysis::experiment::{Axis, Containments, SweepPoint, SweepRecord, contain, sweep};
use analysis::summary::Summary;
use anyhow::{Context, Result};
use clap::Args;
use matrix::{ContainCase, case_of, contain_cases, cross_process_techniques, settings};
use protocol::plan::{FaultTarget, Isolation, Technique};
use rows::{role_row, row, venue_row};
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
}

/// Runs every combination of fault, technique and isolation level that the flags select.
pub fn run(flags: &ContainFlags) -> Result<ExitCode> {
    let (record, folder) = begin(flags)?;
    measure_and_publish(record, &folder, flags.common.json)
}

/// What to try, and the settings that all runs share.
fn asked(flags: &ContainFlags) -> Result<(Settings, Vec<ContainCase>), UsageError> {
    let asked = flags.swept.request(None, flags.common.config.as_ref())?;
    if asked.preset.is_some() {
        return Err(UsageError("--preset with contain: there is none; leave it out".into()));
    }
    let (mut techniques, mut isolations) = (Vec::new(), Vec::new());
    for value in asked.axes.iter().flatten() {
        let mut settings = Settings::default();
        value.apply(&mut settings);
        match value.axis {
            Axis::Technique => techniques.extend(settings.technique),
            Axis::Isolation => isolations.extend(settings.isolation),
            axis => {
                let why = format!("launcher sweep --{axis} A,B varies it");
                return Err(UsageError(format!("--{axis} takes one value here: {why}")));
            }
        }
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
    let names: Vec<&str> = techniques.iter().map(|technique: &Technique| technique.name()).collect();
    Err(refused.unwrap_or_else(|| {
        UsageError(format!("nothing to try: no fault of these fits {}", names.join(", ")))
    }))
}

/// Creates the record of a planned containment matrix, and its folder.
pub(super) fn begin(flags: &ContainFlags) -> Result<(SweepRecord, PathBuf)> {
    let machine = crate::host::machine();
    let (base, cases) = asked(flags)?;
    let point = |case: &ContainCase| -> Result<SweepPoint> {
        // Found out before the first run: a setting that cannot be.
        let resolved = planner::resolve(&settings(case, &base), &machine)?;
        let ContainCase { technique, isolation, scenario, journal } = case;
        Ok(SweepPoint {
            name: match scenario.fault.target {
                FaultTarget::Exchange(_) => {
                    format!("{} with journal {journal} under {isolation}", scenario.fault)
                }
                FaultTarget::Gateway(_) => {
                    format!("{} against {technique} under {isolation}", scenario.fault)
                }
                _ => format!("{} against {technique} under {isolation}", scenario.name),
            },
            values: BTreeMap::new(),
            settings: Settings { seed: None, out: None, repeats: None, ..resolved.settings }.to_texts(),
            runs: Vec::new(),
        })
    };
    let points = cases.iter().map(point).collect::<Result<_>>()?;
    let base = Settings { fault: None, technique: None, isolation: None, on_death: None, ..base };
    let layout = PointLayout { base: base.clone(), axes: Vec::new(), points, notes: Vec::new() };
    let asked = SweepRequest { base, ..SweepRequest::default() };
    let mut record = new_record("contain", &asked, layout, 1, machine, &flags.common)?;
    record.keeps_failures = true;
    let folder = create(&mut record)?;
    Ok((record, folder))
}

/// Returns the report of a containment matrix, with the cost of crash protection, measured now.
pub(super) fn shown(record: &SweepRecord, folder: &Path) -> Result<PublishableReport> {
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

//! The command: a cell of the matrix is a point with one run; its row comes from the run's summary.

use super::cost;
use super::matrix::{Cell, across_processes, cell, cells, settings};
use super::rows::{role_row, row, venue_row};
use crate::config::{Common, Settings, UsageError};
use crate::experiments::axes::Axis;
use crate::experiments::documents::{self, Documents};
use crate::experiments::flags::{Asked as Flags, Swept};
use crate::experiments::points::Layout;
use crate::experiments::record::{create, new_record};
use crate::planner;
use analysis::document::Document;
use analysis::experiment::{Containments, SweepPoint, SweepRecord};
use analysis::report::contain as table;
use analysis::summary::Summary;
use anyhow::{Context, Result};
use clap::Args;
use protocol::plan::{Isolation, Target, Technique};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The flags of `contain`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ContainFlags {
    /// The settings of `run`; technique and isolation may be lists, fault says what is tried.
    #[command(flatten)]
    pub swept: Swept,
    /// What every command has.
    #[command(flatten)]
    pub common: Common,
}

/// What to try.
struct Asked {
    base: Settings,
    cells: Vec<Cell>,
}

impl ContainFlags {
    fn asked(&self) -> Result<Asked, UsageError> {
        let asked = self.swept.asked(None, self.common.config.as_ref())?;
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
                    return Err(UsageError(format!(
                        "--{axis} takes one value here: launcher sweep --{axis} A,B varies it"
                    )));
                }
            }
        }
        techniques.extend(asked.base.technique);
        isolations.extend(asked.base.isolation);
        if techniques.is_empty() {
            techniques = across_processes();
        }
        if isolations.is_empty() {
            isolations = Isolation::ALL.to_vec();
        }
        let cells = cells(&techniques, &isolations, asked.base.fault.as_ref());
        if cells.is_empty() {
            let mut all =
                isolations.iter().flat_map(|isolation| techniques.iter().map(move |of| (*of, *isolation)));
            let refused =
                all.find_map(|(technique, isolation)| planner::check_reach(technique, isolation).err());
            let names: Vec<&str> = techniques.iter().map(|technique: &Technique| technique.name()).collect();
            return Err(refused.unwrap_or_else(|| {
                UsageError(format!("nothing to try: no fault of these fits {}", names.join(", ")))
            }));
        }
        Ok(Asked { base: asked.base, cells })
    }
}

/// The record of a matrix to try and its folder.
///
/// # Errors
/// [`UsageError`] for what cannot be had.
pub fn begin(flags: &ContainFlags) -> Result<(SweepRecord, PathBuf)> {
    let machine = crate::host::machine();
    let Asked { base, cells } = flags.asked()?;
    let point = |cell: &Cell| -> Result<SweepPoint> {
        // Found out before the first run: a setting that cannot be.
        let resolved = planner::resolve(&settings(cell, &base), &machine)?;
        let Cell { technique, isolation, scenario, journal } = cell;
        Ok(SweepPoint {
            name: match scenario.fault.target {
                Target::Exchange(_) => format!("{} with journal {journal} under {isolation}", scenario.fault),
                Target::Gateway(_) => format!("{} against {technique} under {isolation}", scenario.fault),
                _ => format!("{} against {technique} under {isolation}", scenario.name),
            },
            values: BTreeMap::new(),
            settings: Settings { seed: None, out: None, repeats: None, ..resolved.settings() }.to_texts(),
            runs: Vec::new(),
        })
    };
    let points = cells.iter().map(point).collect::<Result<_>>()?;
    let base = Settings { fault: None, technique: None, isolation: None, on_death: None, ..base };
    let layout = Layout { base: base.clone(), axes: Vec::new(), points, notes: Vec::new() };
    let asked = Flags { base, ..Flags::default() };
    let mut record = new_record("contain", &asked, layout, 1, machine, &flags.common)?;
    record.keeps_failures = true;
    let folder = create(&mut record)?;
    Ok((record, folder))
}

/// What the runs of a matrix show, and what the protection costs, measured now.
///
/// # Errors
/// A run's summary that cannot be read.
pub fn documents(record: &SweepRecord, folder: &Path) -> Result<Documents> {
    let cost = cost::measure();
    let mut all = Containments {
        machine: record.machine.cpu_model.clone(),
        rows: Vec::new(),
        venues: Vec::new(),
        roles: Vec::new(),
        cost: Some(cost),
        notes: documents::notes(record),
    };
    all.notes.push(cost.words());
    for point in &record.points {
        let cell = cell(&Settings::from_texts(&point.settings)?)
            .with_context(|| format!("{}: no cell of a containment table", point.name))?;
        for run in &point.runs {
            let summary = Summary::read(&folder.join(&run.folder))?;
            if cell.scenario.fault.kind.is_of_venue() {
                all.venues.extend(venue_row(&cell, &summary, &run.folder));
            } else if cell.is_of_role() {
                all.roles.push(role_row(&cell, &summary, &run.folder));
            } else {
                all.rows.push(row(&cell, &summary, &run.folder));
            }
        }
    }
    let mut wide = table::narrow(&all);
    if !all.rows.is_empty() {
        wide.push(table::wide(&all));
    }
    Ok(Documents {
        name: "contain",
        heading: "What isolation buys: containment".into(),
        notes: all.notes.clone(),
        narrow: table::narrow(&all),
        wide,
        json: all.json()?,
        file: Some(Containments::FILE),
    })
}

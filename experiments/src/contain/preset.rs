//! Shared parts of the experiments with faults, whose cases are a fault with a technique at an
//! isolation level.

use super::matrix::ContainCase;
use crate::flags::{SweepRequest, SweptSettings};
use crate::launcher::LaunchedRun;
use crate::points::{check, new_point};
use crate::record::new_record;
use crate::usage;
use analysis::experiment::axis::CostRole;
use analysis::experiment::{Axis, Experiment, Figures, Kind, Setting};
use anyhow::Result;
use planner::config::{Common, Settings, UsageError};
use planner::host::Machine;
use protocol::plan::{FaultKind, Isolation, IsolationLevels, Technique};

/// A function that selects the cases of an experiment with faults, for these techniques and
/// isolation levels.
pub type SelectCases = fn(&[Technique], &[IsolationLevels], &Settings) -> Result<Vec<ContainCase>>;

/// A definition of an experiment with injected faults (`contain`, `disturb`): its defaults, its
/// cases and the figures read from each run.
pub struct FaultPreset {
    pub kind: Kind,
    /// Default number of repeats of each case.
    pub repeats: u64,
    /// Whether runs with a fault are compared with calm ones, which are repeated as an A/A test.
    /// What this machine cannot have is left out then.
    pub is_compared: bool,
    /// Returns the default techniques.
    pub techniques: fn(&Settings) -> Vec<Technique>,
    /// Returns the default isolation levels.
    pub levels: fn(&Settings) -> Vec<IsolationLevels>,
    /// Selects the cases with given techniques at given isolation levels.
    pub cases: SelectCases,
    /// Returns the settings of a case's runs: those of the user, overridden by the case's own.
    pub settings: fn(&ContainCase, &Settings) -> Settings,
    /// Reads the figures of a finished run beyond the figures in its outline.
    pub figures: fn(&Settings, &LaunchedRun) -> Figures,
}

/// Returns one setting for each isolation level, which applies that level to all strategies of a
/// run.
pub fn every_level() -> Vec<IsolationLevels> {
    Isolation::ALL.iter().map(|level| IsolationLevels::uniform(*level)).collect()
}

impl FaultPreset {
    /// Returns the record of the requested experiment with faults, with nothing measured and
    /// nothing saved.
    pub fn plan(&self, swept: &SweptSettings, common: &Common, machine: Machine) -> Result<Experiment> {
        let asked = swept.request(None, common.config.as_ref())?;
        if asked.preset.is_some() {
            return usage(format!("--preset with {}: there is none; leave it out", self.kind));
        }
        asked.check_axes(|axis| axis.entry().cost_role == CostRole::Row)?;
        let (mut techniques, mut isolations) = (Vec::new(), Vec::new());
        for value in asked.axes.iter().flatten() {
            let mut settings = Settings::default();
            value.apply(&mut settings);
            techniques.extend(settings.technique);
            isolations.extend(settings.isolation);
        }
        let base = asked.base;
        techniques.extend(base.technique);
        isolations.extend(base.isolation);
        let is_every_level = isolations.is_empty();
        if techniques.is_empty() {
            techniques = (self.techniques)(&base);
        }
        if is_every_level {
            isolations = (self.levels)(&base);
        }
        let (mut points, mut notes) = (Vec::new(), Vec::new());
        for case in (self.cases)(&techniques, &isolations, &base)? {
            let (name, settings) = (case.name(), (self.settings)(&case, &base));
            // Found out before the first run: a setting that cannot be.
            let resolved = match self.is_compared {
                true => check(&settings, &machine, common.allow_weaker_sandbox),
                false => planner::resolve(&settings, &machine),
            };
            let resolved = match resolved {
                Ok(resolved) => resolved,
                // All levels: those that this machine has.
                Err(UsageError(why)) if self.is_compared && is_every_level => {
                    notes.push(format!("{name} left out: {}", why.lines().next().unwrap_or("")));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut point = new_point(name, [].into(), resolved);
            let fault = point.settings.get(&Axis::Fault.key());
            point.values = fault.map(|fault| (Axis::Fault, fault.clone())).into_iter().collect();
            let is_reference = self.is_compared && case.scenario.fault.kind == FaultKind::Calm;
            let again = Setting { name: format!("{} A/A", point.name), is_aa_test: true, ..point.clone() };
            points.push(point);
            points.extend(is_reference.then_some(again));
        }
        let asked = SweepRequest { base, ..SweepRequest::default() };
        let mut record = new_record(self.kind, &asked, self.repeats, machine, common);
        record.notes.extend(notes);
        record.plan_rows(&points);
        Ok(record)
    }
}

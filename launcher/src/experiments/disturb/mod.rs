//! `launcher disturb`: what a strategy that makes no mistake does to its neighbors, at each
//! isolation level.
//!
//! A point is a disturbance at a level; the runs of all points alternate. Three strategies trade.
//! The second one works on the side, or does nothing: that is what the others are compared with,
//! and once more itself, as an A/A test.

use super::dry_run::dry_run;
use super::flags::{SweepRequest, SweptSettings};
use super::points::{check, new_point};
use super::record::new_record;
use super::{ExperimentFlags, measure_and_publish, usage};
use crate::config::value::SettingValue;
use crate::config::{Common, FaultSpec, Faults, Settings, UsageError};
use crate::host::Machine;
use analysis::experiment::axis::BillRole;
use analysis::experiment::{DisturbanceDone, Experiment, Kind, Setting};
use analysis::stats::Margin;
use analysis::summary::Summary;
use analysis::units::{Count, Nanos};
use anyhow::Result;
use clap::Args;
use protocol::labels::{Counter, StrategyCounter};
use protocol::plan::{FaultKind, FaultTarget, Isolation, IsolationLevels, OnDeath, Role, Technique};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// The strategy that disturbs, of three.
const DISTURBING: u16 = 1;
const STRATEGIES: Count = Count(3);
/// Repeats unless told: 100,000 orders of the others a side, with the standard load.
const REPEATS: u64 = 10;
/// The standard load: the others have two thirds of the orders, of which a tenth warms up.
const LOAD: (Count, Nanos) = (Count(17_000), Nanos(1_000_000_000));

/// The command-line flags of `launcher disturb`: technique and isolation may be lists.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct DisturbFlags {
    #[command(flatten)]
    swept: SweptSettings,
    #[command(flatten)]
    common: Common,
    /// Largest difference that counts as none: a time, a percentage, or the larger of both
    /// [default: 10ns,5%]
    #[arg(long, value_name = "MARGIN")]
    margin: Option<Margin>,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, help_heading = "Run")]
    dry_run: bool,
}

/// Runs every combination of disturbance, technique and isolation level that the flags select.
pub fn run(flags: &DisturbFlags) -> Result<ExitCode> {
    if flags.dry_run {
        return dry_run(&flags.plan(crate::host::machine())?);
    }
    let (record, folder) = flags.begin()?;
    measure_and_publish(record, &folder, &flags.common)
}

/// Returns the disturbances that the flags name, or all, each once.
fn kinds(asked: &Settings) -> Result<Vec<FaultSpec>> {
    let named = asked.fault.as_ref().map_or_else(Vec::new, |faults| faults.0.clone());
    if let Some(other) = named.iter().find(|fault| !fault.kind.is_disturbance()) {
        return usage(format!(
            "--fault {other}: the strategy would not trade on.\nUse launcher contain, or one of {}",
            standard_kinds().map(FaultKind::name).collect::<Vec<_>>().join(", ")
        ));
    }
    let standard = || standard_kinds().map(spec).collect();
    let mut kinds: Vec<FaultSpec> = if named.is_empty() { standard() } else { named };
    kinds.retain(|fault| fault.kind != FaultKind::Calm);
    Ok(kinds)
}

fn standard_kinds() -> impl Iterator<Item = FaultKind> {
    FaultKind::ALL.iter().copied().filter(|kind| kind.is_disturbance() && *kind != FaultKind::Calm)
}

const fn spec(kind: FaultKind) -> FaultSpec {
    FaultSpec { kind, target: FaultTarget::Strategy(DISTURBING), when: None, every: None, lasts: None }
}

/// Returns the settings of the runs of one disturbance.
fn settings(
    fault: FaultSpec,
    technique: Technique,
    isolation: IsolationLevels,
    asked: &Settings,
) -> Settings {
    let fault = match fault.target {
        FaultTarget::Any => FaultSpec { target: FaultTarget::Strategy(DISTURBING), ..fault },
        _ => fault,
    };
    let has_threads = isolation.has(Isolation::Thread);
    let own = Settings {
        technique: Some(technique),
        isolation: Some(isolation),
        fault: Some(Faults(vec![fault])),
        // A strategy that is refused what it tries dies; as a thread nothing is refused.
        on_death: Some(if has_threads { OnDeath::Stop } else { OnDeath::Continue }),
        ..Settings::default()
    };
    let load = Settings {
        strategies: Some(STRATEGIES),
        venues: Some(Count(2)),
        orders: Some(LOAD.0),
        window: Some(LOAD.1),
        delay: SettingValue::parse("uniform:1ms..20ms").ok(),
        idle: SettingValue::parse("park").ok(),
        ..Settings::default()
    };
    own.over(asked.clone()).over(load)
}

impl ExperimentFlags for DisturbFlags {
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        let asked = self.swept.request(None, self.common.config.as_ref())?;
        if asked.preset.is_some() {
            return usage("--preset with disturb: there is none; leave it out");
        }
        asked.check_axes(|axis| axis.entry().bill == BillRole::Row)?;
        let (mut techniques, mut isolations) = (Vec::new(), Vec::new());
        for value in asked.axes.iter().flatten() {
            let mut settings = Settings::default();
            value.apply(&mut settings);
            techniques.extend(settings.technique);
            isolations.extend(settings.isolation);
        }
        techniques.extend(asked.base.technique);
        isolations.extend(asked.base.isolation);
        let is_every_level = isolations.is_empty();
        if techniques.is_empty() {
            techniques.push(Technique::default());
        }
        if is_every_level {
            isolations = Isolation::ALL.iter().map(|level| IsolationLevels::all(*level)).collect();
        }
        let kinds = kinds(&asked.base)?;
        let base = Settings { fault: None, ..asked.base.clone() };
        let (mut points, mut notes) = (Vec::new(), Vec::new());
        for &isolation in &isolations {
            for &technique in &techniques {
                let calm = FaultSpec { ..spec(FaultKind::Calm) };
                for fault in [calm].into_iter().chain(kinds.iter().copied()) {
                    let name = format!("{} against {technique} under {isolation}", fault.kind);
                    let settings = settings(fault, technique, isolation, &base);
                    match check(&settings, &machine, self.common.allow_weaker_sandbox) {
                        Ok(resolved) => points.push(new_point(name, BTreeMap::new(), resolved)),
                        // All levels: those that this machine has.
                        Err(UsageError(why)) if is_every_level => {
                            notes.push(format!("{name} left out: {}", why.lines().next().unwrap_or("")));
                        }
                        Err(error) => return Err(error.into()),
                    }
                    if fault.kind == FaultKind::Calm
                        && let Some(calm) = points
                            .last()
                            .filter(|point| point.name.ends_with(&format!("{technique} under {isolation}")))
                    {
                        let again =
                            Setting { name: format!("{} A/A", calm.name), is_aa_test: true, ..calm.clone() };
                        points.push(again);
                    }
                }
            }
        }
        let asked = SweepRequest { base, ..SweepRequest::default() };
        let mut record = new_record(Kind::Disturb, &asked, REPEATS, machine, &self.common);
        record.endpoint.margin = self.margin.unwrap_or_default();
        record.notes.extend(notes);
        record.plan_rows(&points);
        Ok(record)
    }

    fn out(&self) -> Result<Option<PathBuf>> {
        Ok(self.swept.request(None, self.common.config.as_ref())?.base.out)
    }
}

/// Returns what the disturbing strategy of a run did.
pub(super) fn done(summary: &Summary) -> DisturbanceDone {
    let disturbing = summary.plan.faults.iter().find_map(|fault| match fault.target {
        FaultTarget::Strategy(strategy) if fault.kind.is_disturbance() => Some(strategy),
        _ => None,
    });
    let Some(strategy) = disturbing else { return DisturbanceDone::default() };
    let (role, name) = (
        Role::Strategy(strategy).to_string(),
        StrategyCounter::LABELS[StrategyCounter::Disturbed.index()].name,
    );
    let agents = summary.processes.iter().flat_map(|thread| &thread.agents);
    let steps = agents.filter(|agent| agent.role == role).filter_map(|agent| agent.counters.get(name)).sum();
    let died = summary.incidents.iter().find(|incident| incident.strategy == strategy);
    DisturbanceDone { steps, died: died.map_or_else(String::new, |incident| incident.cause.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;
    use clap::Parser;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        flags: DisturbFlags,
    }

    fn planned(words: &str) -> Result<Experiment> {
        let words = ["disturb"].into_iter().chain(words.split_whitespace());
        TestCommandLine::try_parse_from(words).unwrap().flags.plan(fake::plain(2).machine())
    }

    #[test]
    fn each_level_has_its_own_calm_runs() {
        let record = planned("--isolation thread,process --fault map-storm;calm --repeats 2").unwrap();
        let names: Vec<String> = record.settings().into_iter().map(|setting| setting.name).collect();
        let of = |level: &str| {
            ["calm against spsc-mux", "calm against spsc-mux", "map-storm against spsc-mux"]
                .iter()
                .zip(["", " A/A", ""])
                .map(|(name, aa)| format!("{name} under {level}{aa}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(names, [of("thread"), of("process")].concat());
        assert_eq!(record.rows.len(), 2 * 6);
    }

    #[test]
    fn fault_that_ends_the_strategy_is_refused() {
        let error = planned("--fault kill").unwrap_err().to_string();
        assert!(error.contains("launcher contain") && error.contains("fork-storm"), "{error}");
    }
}

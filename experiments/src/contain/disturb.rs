//! `launcher disturb`: what a strategy that makes no mistake does to its neighbors, at each
//! isolation level.
//!
//! A point is a disturbance at a level; the runs of all points alternate. Three strategies trade.
//! The second one works on the side, or has another fault, or does nothing: that is what the others
//! are compared with, and once more itself, as an A/A test.

use super::matrix::{ContainCase, NamedFault, case_of};
use super::preset::{FaultPreset, every_level};
use super::rows::row;
use crate::dry_run::dry_run;
use crate::flags::SweptSettings;
use crate::{ExperimentFlags, measure_and_publish, usage};
use analysis::experiment::{
    Contained, DISTURBANCE_MARGIN, DisturbanceDone, EngineGaps, Experiment, Figures, Kind,
};
use analysis::stats::Margin;
use anyhow::Result;
use clap::Args;
use planner::config::value::SettingValue;
use planner::config::{Common, FaultSpec, Faults, Settings};
use planner::host::Machine;
use protocol::index::StrategyIndex;
use protocol::labels::{Counter, StrategyCounter};
use protocol::plan::{FaultKind, FaultTarget, IsolationLevels, Journaling, OnDeath, Role, Technique};
use record::run::RunOutcome;
use record::units::{Count, Nanos};
use std::path::PathBuf;
use std::process::ExitCode;
use verdict::summary::{Summary, ThreadSummary};

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
    /// [default: 10ns,50%]
    #[arg(long, value_name = "MARGIN")]
    margin: Option<Margin>,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, help_heading = "Run")]
    dry_run: bool,
}

/// Runs every combination of disturbance, technique and isolation level that the flags select.
pub fn run(flags: &DisturbFlags) -> Result<ExitCode> {
    if flags.dry_run {
        return dry_run(&flags.plan(planner::host::machine())?);
    }
    let (record, folder) = flags.begin()?;
    measure_and_publish(record, &folder, &flags.common)
}

/// Returns the faults of strategies that the flags name, or all disturbances, each once.
fn faults(asked: &Settings) -> Result<Vec<NamedFault>> {
    let named = asked.fault.as_ref().map_or_else(Vec::new, |faults| faults.0.clone());
    let is_of_strategy =
        |fault: &FaultSpec| matches!(fault.target, FaultTarget::Any | FaultTarget::Strategy(_));
    if let Some(other) = named.iter().find(|fault| fault.kind.is_of_venue() || !is_of_strategy(fault)) {
        return usage(format!(
            "--fault {other}: it is no strategy's, and disturbs by what it does not do.\nUse launcher contain, or one of {}",
            standard_kinds().map(FaultKind::name).collect::<Vec<_>>().join(", ")
        ));
    }
    let mut faults: Vec<FaultSpec> =
        if named.is_empty() { standard_kinds().map(spec).collect() } else { named };
    faults.retain(|fault| fault.kind != FaultKind::Calm);
    Ok(faults.into_iter().map(of_strategy).collect())
}

/// Names a fault. A disturbance goes on for the whole window; any other has its time.
fn of_strategy(fault: FaultSpec) -> NamedFault {
    if !fault.kind.is_disturbance() {
        return NamedFault::new(fault);
    }
    let target = match fault.target {
        FaultTarget::Any => FaultTarget::Strategy(StrategyIndex(DISTURBING)),
        target => target,
    };
    NamedFault { name: fault.kind.name().to_owned(), fault: FaultSpec { target, ..fault } }
}

fn standard_kinds() -> impl Iterator<Item = FaultKind> {
    FaultKind::ALL.iter().copied().filter(|kind| kind.is_disturbance() && *kind != FaultKind::Calm)
}

const fn spec(kind: FaultKind) -> FaultSpec {
    FaultSpec {
        kind,
        target: FaultTarget::Strategy(StrategyIndex(DISTURBING)),
        when: None,
        every: None,
        lasts: None,
    }
}

/// Returns the settings of the runs of one fault. Before one that ends the strategy it is calm, so
/// that its own orders are left out of the figures.
fn settings(case: &ContainCase, asked: &Settings) -> Settings {
    let fault = case.scenario.fault;
    let (faults, on_death) = if fault.kind.is_disturbance() {
        // A strategy that is refused what it tries dies.
        (vec![fault], OnDeath::Continue)
    } else {
        let calm = FaultSpec { target: fault.target, ..spec(FaultKind::Calm) };
        (vec![calm, fault], asked.on_death.unwrap_or(OnDeath::Restart))
    };
    let own = Settings {
        technique: Some(case.technique),
        isolation: Some(case.isolation),
        fault: Some(Faults(faults)),
        on_death: Some(on_death),
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

/// What `launcher disturb` tries: each fault against the same runs with a calm strategy.
pub(super) const DISTURB: FaultPreset = FaultPreset {
    kind: Kind::Disturb,
    repeats: REPEATS,
    is_compared: true,
    techniques: |_| vec![Technique::default()],
    levels: |_| every_level(),
    cases,
    settings,
    figures: |settings, run| {
        let mut figures = Figures::default();
        figures.insert_disturbance(&done(settings, &run.summary));
        figures
    },
};

fn cases(
    techniques: &[Technique],
    isolations: &[IsolationLevels],
    asked: &Settings,
) -> Result<Vec<ContainCase>> {
    let faults = faults(asked)?;
    let mut cases = Vec::new();
    for &isolation in isolations {
        for &technique in techniques {
            let calm = of_strategy(spec(FaultKind::Calm));
            let fitting = faults.iter().filter(|fault| fault.applies_to(technique)).cloned();
            let case = |scenario| ContainCase { technique, isolation, scenario, journal: Journaling::None };
            cases.extend([calm].into_iter().chain(fitting).map(case));
        }
    }
    Ok(cases)
}

impl ExperimentFlags for DisturbFlags {
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        let mut record = DISTURB.plan(&self.swept, &self.common, machine)?;
        record.endpoint.margin = self.margin.unwrap_or(DISTURBANCE_MARGIN);
        Ok(record)
    }

    fn out(&self) -> Result<Option<PathBuf>> {
        Ok(self.swept.request(None, self.common.config.as_ref())?.base.out)
    }
}

/// Returns what the disturbing strategy of a run with these settings did, and what became of it.
fn done(settings: &Settings, summary: &Summary) -> DisturbanceDone {
    let Some(case) = case_of(settings) else { return DisturbanceDone::default() };
    let strategy = case.victim();
    let role = Role::Strategy(StrategyIndex(strategy)).to_string();
    let name = StrategyCounter::LABELS[StrategyCounter::Disturbed.index()].name;
    let agents = || summary.processes.iter().flat_map(|thread| &thread.agents);
    let own = agents().filter(|agent| agent.role == role);
    let steps = own.filter_map(|agent| agent.counters.get(name)).sum();
    let died = summary.incidents.iter().find(|incident| incident.strategy == StrategyIndex(strategy));
    let is_complete_and_valid = summary.outcome == RunOutcome::Complete && summary.valid;
    let (steps, survived) = if case.scenario.fault.kind.is_disturbance() {
        (steps, if is_complete_and_valid { Contained::Yes } else { Contained::No })
    } else {
        let outcome = row(&case, summary, "").contained;
        (u64::from(outcome != Contained::Nothing), outcome)
    };
    let is_engine = |thread: &&ThreadSummary| {
        thread.agents.iter().any(|agent| agent.role == Role::Orchestrator.to_string())
    };
    let engine = summary.processes.iter().find(is_engine);
    DisturbanceDone {
        steps,
        died: died.map_or_else(String::new, |incident| incident.cause.clone()),
        survived: Some(survived),
        gaps: engine.map_or_else(EngineGaps::default, |thread| EngineGaps {
            running_ns: thread.running_ns.unwrap_or(0),
            classes: thread.gap_classes.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use planner::host::fake;

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
    fn strategy_is_calm_before_a_fault_that_ends_it() {
        let record = planned("--isolation process --fault kill;hang").unwrap();
        let faults: Vec<String> =
            record.settings().into_iter().map(|setting| setting.settings["fault"].clone()).collect();
        let calm = "calm:strategy-1";
        let kill = format!("{calm}; kill:strategy-1@400ms");
        let hang = format!("{calm}; hang:strategy-1@400ms");
        assert_eq!(faults, [calm, calm, &kill, &hang]);
    }

    #[test]
    fn fault_of_another_role_is_refused() {
        for fault in ["slow", "kill:engine"] {
            let error = planned(&format!("--fault {fault}")).unwrap_err().to_string();
            assert!(error.contains("launcher contain") && error.contains("fork-storm"), "{error}");
        }
    }
}

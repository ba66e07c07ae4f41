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
use crate::launcher::DestroyedLog;
use crate::{ExperimentFlags, measure_and_publish, usage};
use analysis::experiment::{
    Contained, DISTURBANCE_MARGIN, DisturbanceDone, EngineGaps, Experiment, FIRST_EVERY, Figures, Kind,
    StormSearch,
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
/// Repeats unless told: in nine of ten experiments as noisy as those saved from 16 cores, they say
/// that a calm strategy does not disturb.
const REPEATS: u64 = 12;
/// The standard load: the others have two thirds of the orders, of which a tenth warms up.
const LOAD: (Count, Nanos) = (Count(17_000), Nanos(1_000_000_000));

/// The command-line flags of `launcher disturb`: technique and isolation may be lists.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct DisturbFlags {
    #[command(flatten)]
    swept: SweptSettings,
    #[command(flatten)]
    common: Common,
    /// Longest delay that counts as none: a time, a percentage (twice that at p99), or the larger
    /// of both [default: 10ns,50%]
    #[arg(long, value_name = "MARGIN")]
    margin: Option<Margin>,
    /// Search the heaviest storm at which the others stay undisturbed, at each level: thrash and
    /// fork-storm, unless --fault names others
    #[arg(long, help_heading = "Heaviest storm")]
    find_limit: bool,
    /// Maximum number of rates that are tried for each disturbance and level
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        requires = "find_limit",
        help_heading = "Heaviest storm"
    )]
    steps: u32,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, help_heading = "Run")]
    dry_run: bool,
}

/// Runs `launcher disturb`: measures how much one strategy's disturbance, such as a fork storm,
/// delays the others. The flags select the disturbances, techniques and isolation levels to
/// combine.
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
    let every = fault.every.map_or_else(String::new, |every| format!(" every {every}"));
    NamedFault { name: format!("{}{every}", fault.kind), fault: FaultSpec { target, ..fault } }
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
        let done = match &run.summary {
            Ok(summary) => done(settings, summary),
            // Another strategy or the engine was hit: the others did not survive it.
            Err(DestroyedLog { what, .. }) => DisturbanceDone {
                died: what.clone(),
                survived: Some(Contained::No),
                ..DisturbanceDone::default()
            },
        };
        figures.insert_disturbance(&done);
        figures
    },
};

/// What `launcher disturb --find-limit` tries first.
const FIND_LIMIT: FaultPreset = FaultPreset { cases: first_cases, ..DISTURB };

/// Returns each disturbance at its first rate, and calm runs.
fn first_cases(
    techniques: &[Technique],
    isolations: &[IsolationLevels],
    asked: &Settings,
) -> Result<Vec<ContainCase>> {
    let standard = || Faults([FaultKind::Thrash, FaultKind::ForkStorm].map(spec).to_vec());
    let mut asked = asked.clone();
    let faults = asked.fault.get_or_insert_with(standard);
    if let Some(other) = faults.0.iter().find(|fault| !fault.kind.is_disturbance()) {
        return usage(format!("--fault {other} with --find-limit: it is no disturbance, and has no rate"));
    }
    faults.0.iter_mut().for_each(|fault| fault.every = Some(FIRST_EVERY));
    cases(techniques, isolations, &asked)
}

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
        let preset = if self.find_limit { FIND_LIMIT } else { DISTURB };
        let mut record = preset.plan(&self.swept, &self.common, machine)?;
        record.endpoint.margin = self.margin.unwrap_or(DISTURBANCE_MARGIN);
        if self.find_limit {
            record.figures.insert(StormSearch::NAME, &StormSearch { max_steps: self.steps });
        }
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
    use analysis::experiment::{Disturbances, Row, plan_next_storms};
    use analysis::stats::fixtures;
    use clap::Parser;
    use planner::host::fake;
    use protocol::plan::Isolation;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        flags: DisturbFlags,
    }

    fn planned(arguments: &str) -> Result<Experiment> {
        let arguments = ["disturb"].into_iter().chain(arguments.split_whitespace());
        TestCommandLine::try_parse_from(arguments).unwrap().flags.plan(fake::plain(2).machine())
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
    fn search_goes_on_at_each_level_with_calm_runs_of_its_own() {
        let record = planned("--find-limit --isolation thread,process --repeats 2").unwrap();
        let names: Vec<String> = record.settings().into_iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), 2 * 4, "calm, A/A, thrash and fork-storm: {names:?}");
        assert!(names.contains(&"thrash every 500us against spsc-mux under thread".to_owned()), "{names:?}");
        let refused = planned("--find-limit --fault kill --isolation process").unwrap_err().to_string();
        assert!(refused.contains("--find-limit"), "{refused}");
        assert!(TestCommandLine::try_parse_from(["disturb", "--steps", "3"]).is_err());
    }

    /// Invents the missing runs: with threads the others are disturbed from 5,000 steps a second
    /// on, with processes from 60,000.
    fn invent_runs(record: &mut Experiment) {
        let all: Vec<Settings> =
            record.rows.iter().map(|row| Settings::from_texts(&record.settings_of(row)).unwrap()).collect();
        for (row, settings) in record.rows.iter_mut().zip(all).filter(|(row, _)| !row.is_made()) {
            let fault = settings.fault.unwrap().0[0];
            let per_s = fault.every.map_or(0.0, |every| 1e9 / every.0 as f64);
            let limit = if settings.isolation == Some(Isolation::Thread.into()) { 5_000.0 } else { 60_000.0 };
            let ns = if per_s < limit { 1_000.0 } else { 9_000.0 };
            let mut outline = fixtures::run(row.repeat as usize, ns);
            outline.run += &row.setting.name;
            let done = DisturbanceDone { steps: (0.9 * per_s) as u64, ..DisturbanceDone::default() };
            let mut figures = Figures::default();
            figures.insert_disturbance(&done);
            row.figures = Figures::from_outline(&outline).and(&figures);
        }
    }

    #[test]
    fn search_finds_the_heaviest_storm_of_each_level() {
        let arguments = "--find-limit --fault thrash --isolation thread,process --repeats 8 --steps 9";
        let mut record = planned(arguments).unwrap();
        invent_runs(&mut record);
        let first = record.rows.len();
        while plan_next_storms(&mut record).unwrap() {
            assert!(record.rows.len() < 500, "the search ends");
            invent_runs(&mut record);
        }
        let found = Disturbances::from_experiment(&record).unwrap().limits;
        let [thread, process] = &found[..] else { panic!("{found:?}") };
        for (of, limit) in [(thread, 5_000.0), (process, 60_000.0)] {
            let (held, failed) = (of.undisturbed_per_s.unwrap(), of.disturbed_per_s.unwrap());
            assert!(held < limit && failed >= limit && failed / held <= 1.51, "{of:?}");
            assert_eq!(of.ended, "within a factor of 1.5");
        }
        let answer = record.answer(std::path::Path::new("")).unwrap();
        let (text, page) = (answer.report.terminal(false), analysis::html::experiment_page(&answer.report));
        assert!(text.contains("undisturbed up to") && text.contains("GB/s"), "{text}");
        assert!(page.contains("storm-rates"), "the page draws p99 over the rate");
        // Each rate has calm runs of its own: as many at each level as there are rates.
        let is_calm = |row: &&Row| row.setting.name.starts_with("calm");
        let added = record.rows[first..].iter();
        assert_eq!(added.clone().filter(is_calm).count() * 2, added.count());
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

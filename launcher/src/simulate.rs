//! The command `launcher simulate`: draws seeds, simulates a run for each, and reports failures.

use anyhow::Result;
use clap::Args;
use planner::config::UsageError;
use planner::config::value::named;
use protocol::plan::Technique;
use record::fitness::Fitness;
use record::numbers::{count, counted};
use record::screen::{print_warning, program};
use record::units::Count;
use runtime::progress::Progress;
use simulation::broken::Defect;
use simulation::scenario::{draw_technique, is_simulated};
use simulation::{
    SimulationOptions, SimulationReport, SimulationTotals, Trial, simulate_all, trial, unplanned,
};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// The command-line flags of `launcher simulate`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct SimulateFlags {
    /// Simulate the runs of seeds 0 to N − 1
    #[arg(long, value_name = "N", default_value = "1000")]
    pub seeds: Count,
    /// Simulate only the run of this seed, and describe it
    #[arg(long, value_name = "S", conflicts_with = "seeds")]
    pub seed: Option<Count>,
    /// Draw from these in-memory techniques [default: all]
    #[arg(long, value_name = "LIST", value_parser = named::<Technique>(), value_delimiter = ',')]
    pub technique: Vec<Technique>,
    /// Simulate only crash recovery of the engine and exchanges from journals (with spsc-mux)
    #[arg(long, alias = "comebacks", conflicts_with = "technique")]
    pub crash_recovery: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Inject a ring defect that must be detected: doubles, drops, reorders, tears
    #[arg(long = "broken", value_name = "HOW", hide = true, value_parser = named::<Defect>())]
    pub defect: Option<Defect>,
}

impl SimulateFlags {
    /// Returns the simulation options.
    fn options(&self) -> SimulationOptions {
        let (recovery_only, defect) = (self.crash_recovery, self.defect);
        SimulationOptions { recovery_only, defect, ..SimulationOptions::default() }
    }
}

/// Returns the techniques to draw from.
fn techniques(requested: &[Technique]) -> Result<Vec<Technique>> {
    if let Some(unsimulated) = requested.iter().find(|technique| !is_simulated(**technique)) {
        let why = match unsimulated.is_foreign() {
            true => "makes files of its own and goes by the machine's clock, and the simulation has neither",
            false => "passes through the kernel, of which the simulation has none",
        };
        return Err(UsageError(format!("--technique {unsimulated}: {why}. Choose one in memory")).into());
    }
    let every_technique =
        || Technique::all().into_iter().filter(|technique| is_simulated(*technique)).collect();
    Ok(if requested.is_empty() { every_technique() } else { requested.to_vec() })
}

/// Runs `launcher simulate`: draws random seeds, simulates a run of the engine for each, and
/// reports failures.
///
/// # Errors
/// A usage error for a technique that cannot be simulated; an output that cannot be written.
pub fn command(flags: &SimulateFlags) -> Result<ExitCode> {
    let techniques = techniques(&flags.technique)?;
    match flags.seed {
        Some(Count(seed)) => replay(seed, &techniques, flags),
        None => simulate_seeds(&techniques, flags),
    }
}

fn simulate_seeds(techniques: &[Technique], flags: &SimulateFlags) -> Result<ExitCode> {
    let seeds = flags.seeds.0;
    let bar = Progress::new(!flags.json);
    bar.phase("simulating", seeds);
    let started = Instant::now();
    let report = simulate_all(seeds, techniques, &flags.options(), |seed| bar.at(seed))?;
    bar.clear();
    let mut total = SimulationTotals::default();
    report.by.values().for_each(|totals| total.merge(totals));
    let mut out = record::screen::stdout();
    if flags.json {
        let groups: Vec<_> = report
            .by
            .iter()
            .map(|((technique, kind), totals)| {
                serde_json::json!({ "technique": technique, "kind": kind, "tally": totals })
            })
            .collect();
        let failed: Vec<_> = report.failed.iter().map(|trial| failure(trial, flags)).collect();
        let json = serde_json::json!({ "total": total, "by": groups, "failed": failed });
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", table(&report, &total))?;
        writeln!(out, "{:.1} s; digest {:016x}", started.elapsed().as_secs_f64(), total.digest)?;
        writeln!(out, "{}\n{}", verdict(report.failed.len(), total.runs), latency_fitness())?;
    }
    for trial in &report.failed {
        print_failure(trial, flags);
    }
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the line on whether a promise was broken, given in how many runs one was.
fn verdict(failed_runs: usize, runs: u64) -> String {
    match (failed_runs, runs) {
        (0, 1) => "No promise was broken.".into(),
        (0, runs) => format!("No promise was broken in {} runs.", count(runs)),
        (_, 1) => "A promise was broken; see above.".into(),
        (failed, runs) => format!("A promise was broken in {failed} of {} runs; see above.", count(runs)),
    }
}

/// Returns the line that simulated times are not fit for latency claims, with the reason.
fn latency_fitness() -> String {
    Fitness::simulated().sentence()
}

fn table(report: &SimulationReport, total: &SimulationTotals) -> String {
    let row = |name: &str, totals: &SimulationTotals| {
        format!(
            "{name:<24} {:>8} {:>12} {:>10} {:>12} {:>10} {:>10}\n",
            count(totals.runs),
            count(totals.sent),
            count(totals.incidents),
            count(totals.quarantined),
            count(totals.restarted),
            count(totals.recoveries),
        )
    };
    let mut by_technique: BTreeMap<&str, SimulationTotals> = BTreeMap::new();
    let mut by_kind: BTreeMap<&str, SimulationTotals> = BTreeMap::new();
    for ((technique, kind), totals) in &report.by {
        by_technique.entry(technique).or_default().merge(totals);
        by_kind.entry(kind).or_default().merge(totals);
    }
    let mut text = format!(
        "{:<24} {:>8} {:>12} {:>10} {:>12} {:>10} {:>10}\n",
        "", "runs", "orders", "incidents", "quarantined", "restarted", "recovered"
    );
    by_technique.iter().for_each(|(name, totals)| text += &row(name, totals));
    text.push('\n');
    by_kind.iter().for_each(|(name, totals)| text += &row(name, totals));
    text.push('\n');
    text + &row("all", total)
}

/// Returns the command that replays a run.
fn replay_command(trial: &Trial, flags: &SimulateFlags) -> String {
    let defect = flags.defect.map_or_else(String::new, |defect| format!(" --broken {defect}"));
    let program = program();
    if flags.crash_recovery {
        return format!("{program} simulate --seed {} --crash-recovery{defect}", trial.seed);
    }
    format!("{program} simulate --seed {} --technique {}{defect}", trial.seed, trial.technique)
}

fn failure(trial: &Trial, flags: &SimulateFlags) -> serde_json::Value {
    serde_json::json!({
        "seed": trial.seed,
        "technique": trial.technique,
        "kind": trial.kind.name(),
        "broken": trial.broken,
        "replay": replay_command(trial, flags),
    })
}

/// Prints a failed run to stderr.
fn print_failure(trial: &Trial, flags: &SimulateFlags) {
    print_warning(&format!("error: seed {} ({}, {}):", trial.seed, trial.technique, trial.kind.name()));
    trial.broken.iter().for_each(|promise| print_warning(&format!("  {promise}")));
    print_warning(&format!("  replay: {}", replay_command(trial, flags)));
}

/// Replays one run and describes it.
fn replay(seed: u64, techniques: &[Technique], flags: &SimulateFlags) -> Result<ExitCode> {
    let technique = draw_technique(seed, techniques);
    let options = flags.options();
    let scenario = options.scenario(seed, technique).map_err(|error| unplanned(seed, technique, &error))?;
    let trial = trial(seed, technique, &options).map_err(|error| unplanned(seed, technique, &error))?;
    let mut out = record::screen::stdout();
    if flags.json {
        let failed = (!trial.broken.is_empty()).then(|| failure(&trial, flags));
        let json = serde_json::json!({
            "seed": seed,
            "technique": trial.technique,
            "kind": trial.kind.name(),
            "scenario": scenario.describe(),
            "tally": trial.totals,
            "failed": failed,
        });
        serde_json::to_writer_pretty(&mut out, &json)?;
        writeln!(out)?;
    } else {
        writeln!(out, "seed {seed}: {}", scenario.describe())?;
        for fault in &scenario.plan.faults {
            writeln!(out, "  {} {:?} {:?}", fault.kind, fault.target, fault.when)?;
        }
        // A burst is a few kills from outside, close together.
        for (ns, role) in &scenario.bursts {
            writeln!(out, "  {role} is killed after {ns} ns")?;
        }
        for event in &scenario.endings {
            writeln!(out, "  {}", event.describe())?;
        }
        writeln!(
            out,
            "{} sent, {} returned; {}, {} quarantined, {} restarted; {} recovered; {} turns; digest {:016x}",
            counted(trial.totals.sent, "order"),
            trial.totals.returned,
            counted(trial.totals.incidents, "incident"),
            trial.totals.quarantined,
            trial.totals.restarted,
            trial.totals.recoveries,
            trial.totals.turns,
            trial.digest
        )?;
        let failed_runs = usize::from(!trial.broken.is_empty());
        writeln!(out, "{}\n{}", verdict(failed_runs, 1), latency_fitness())?;
    }
    if trial.broken.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    print_failure(&trial, flags);
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_recovery_is_replayed_as_one() {
        let options = SimulationOptions { recovery_only: true, ..SimulationOptions::default() };
        let trial = trial(1, Technique::default(), &options).unwrap();
        let (seed, technique, defect) = (None, Vec::new(), None);
        let flags =
            SimulateFlags { seeds: Count(2), seed, technique, crash_recovery: true, json: false, defect };
        assert_eq!(
            replay_command(&trial, &flags),
            format!("{} simulate --seed 1 --crash-recovery", program())
        );
    }
}

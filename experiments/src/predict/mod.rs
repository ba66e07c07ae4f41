//! `launcher predict`: what strategies will cost as processes instead of threads.
//!
//! A small calibration of this machine, or an earlier one, gives a model; the model predicts what
//! was asked; then that is measured, and the prediction's own error is printed. `--grid` measures
//! many cells, of which a third is left out of the fit.

mod calibration;
mod stages;

pub(crate) use stages::plan_next;

use super::benchmark::check_isolation;
use super::dry_run::dry_run;
use super::flags::SweepRequest;
use super::publish::publish;
use super::record::new_record;
use super::{ExperimentFlags, doctor, measure_experiment, usage};
use ::record::document::Document;
use ::record::numbers::plain;
use ::record::units::{Bytes, Count, Nanos};
use analysis::experiment::predict::{MAX_STRATEGIES, PathCosts};
use analysis::experiment::search::MAX_RATE_PER_S;
use analysis::experiment::{Experiment, Figures, Kind, PredictQuestion};
use anyhow::Result;
use clap::Args;
use planner::config::{Common, ReportLength, Settings, UsageError};
use planner::host::Machine;
use protocol::plan::{Idle, Isolation, IsolationLevel};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use verdict::summary::Summary;

/// The command-line flags of `launcher predict`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct PredictFlags {
    /// Predict this number of strategies
    #[arg(long, value_name = "N", required_unless_present = "grid", value_parser = read_strategies)]
    strategies: Option<u32>,
    /// Place them on K cores in turn
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    strategy_cores: u32,
    /// Offer R orders a second, of all strategies together
    #[arg(long, value_name = "R", required_unless_present = "grid")]
    rate: Option<Count>,
    /// Compare this level with threads
    #[arg(long, value_name = "LEVEL", default_value = "process", value_parser = read_level)]
    isolation: IsolationLevel,
    /// Let strategies wait like this: park, or spin on a core each
    #[arg(long, value_name = "HOW", default_value = "park", value_parser = read_idle)]
    idle: Idle,
    /// Let each strategy walk a heap of its own between its orders
    #[arg(long, value_name = "SIZE", default_value = "0")]
    working_set: Bytes,
    /// Measure 30 cells instead, with a third left out of the fit: about ten minutes
    #[arg(long, conflicts_with_all = ["strategies", "strategy_cores", "rate"])]
    grid: bool,
    /// Use the runs of this earlier prediction or grid, or refuse it with the reason [default: the
    /// newest of this machine and build]
    #[arg(long, value_name = "FOLDER", conflicts_with = "grid")]
    calibration: Option<PathBuf>,
    /// Calibrate again, whatever was measured before
    #[arg(long, conflicts_with = "calibration")]
    recalibrate: bool,
    /// Draw schedules and held-out cells from this seed
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: Count,
    /// Save it in a new folder in this one [default: runs]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Print the first runs that would be made, and stop
    #[arg(long)]
    dry_run: bool,
    /// Print JSON on stdout instead of tables
    #[arg(long)]
    json: bool,
    /// Print the answer on one screen, or every table and note
    #[arg(long, value_enum, value_name = "LENGTH", default_value_t)]
    report: ReportLength,
    /// Continue if the kernel lacks a sandbox feature
    #[arg(long)]
    allow_weaker_sandbox: bool,
}

fn read_strategies(text: &str) -> Result<u32, String> {
    let count = text.parse::<u32>().ok().filter(|count| (1..=MAX_STRATEGIES).contains(count));
    count.ok_or_else(|| format!("expected a number of strategies from 1 to {MAX_STRATEGIES}, for example 24"))
}

fn read_idle(text: &str) -> Result<Idle, String> {
    let idle = Idle::from_name(text).filter(|idle| matches!(idle, Idle::Park | Idle::Spin));
    idle.ok_or_else(|| "expected park or spin: no other way of waiting is predicted".into())
}

fn read_level(text: &str) -> Result<IsolationLevel, String> {
    let level = IsolationLevel::from_name(text).filter(|level| *level != Isolation::Thread);
    level
        .ok_or_else(|| "expected a level that is compared with threads: process, container or sandbox".into())
}

/// Runs `launcher predict`: predicts what strategies cost as processes instead of threads and
/// measures it, or measures a grid of settings.
pub fn run(flags: &PredictFlags) -> Result<ExitCode> {
    let common = Common { json: flags.json, report: flags.report, ..Common::default() };
    if flags.dry_run {
        let code = dry_run(&flags.plan(planner::host::machine())?)?;
        let later = if flags.grid { "its cells" } else { "what was asked" };
        writeln!(
            ::record::screen::stdout(),
            "· then runs at rates that follow from the first one, and {later}"
        )?;
        return Ok(code);
    }
    let (mut record, folder) = flags.begin()?;
    if flags.idle == Idle::Spin {
        // A core each needs no calibration.
    } else if let Some(from) = record.figures.part::<String>("calibration")? {
        let line = format!("calibrated by {from}: this machine and build (--recalibrate measures again)");
        say(&line, flags.json);
    } else {
        let found = doctor::findings_here();
        record.figures.insert("switch", &found.switch);
        record.figures.insert("wake", &found.wake);
    }
    let ended = measure_experiment(&mut record, &folder, flags.json)?;
    record.save(&folder)?;
    publish(&record, &folder, &record.answer(&folder)?, &common, ended)
}

/// Returns the figures of a run that predictions alone use: each level's costs, turn by turn.
pub(crate) fn figures(summary: &Summary) -> Figures {
    let mut figures = Figures::default();
    summary.crossover.iter().for_each(|found| figures.insert("crossover", found));
    if let Some(line_ns) = summary.core_to_core_rtt.unsynchronized_ns {
        let path = PathCosts { line_ns, stamps_ns: summary.clock.stamps_ns };
        figures.insert(PathCosts::NAME, &path);
    }
    figures
}

/// Prints a line for people. Measure even if it cannot be printed.
fn say(line: &str, is_quiet: bool) {
    let _ = if is_quiet { Ok(()) } else { writeln!(::record::screen::stdout(), "{line}") };
}

impl ExperimentFlags for PredictFlags {
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        let cores = machine.cores_allowed.len().saturating_sub(1).max(1) as u32;
        if self.strategy_cores > cores {
            let wanted = self.strategy_cores;
            return usage(format!(
                "--strategy-cores {wanted}: this machine has {cores} next to the engine's; use up to {cores}"
            ));
        }
        if let Some(Count(rate)) =
            self.rate.filter(|rate| *rate == Count(0) || rate.0 as f64 > MAX_RATE_PER_S)
        {
            let most = plain(MAX_RATE_PER_S);
            return usage(format!("--rate {rate}: give 1 to {most} orders a second, for example 50k"));
        }
        if let Err(why) = check_isolation([self.isolation.kind()].into_iter(), self.allow_weaker_sandbox) {
            return Err(UsageError(format!("--isolation {}: {why:#}", self.isolation)).into());
        }
        let base = Settings { seed: Some(self.seed), ..Settings::default() };
        let asked = SweepRequest { base, ..SweepRequest::default() };
        let common = Common {
            allow_weaker_sandbox: self.allow_weaker_sandbox,
            start_timeout: Nanos(30_000_000_000),
            ..Common::default()
        };
        let mut record = new_record(Kind::Predict, &asked, 1, machine, &common);
        let is_shared = self.strategies.is_none_or(|strategies| strategies > self.strategy_cores);
        if self.idle == Idle::Spin && is_shared {
            return usage(
                "--idle spin: strategies that share a core and spin wait for time slices, which nothing predicts; \
                 give each a core (--strategy-cores), or --idle park",
            );
        }
        record.figures.insert("build", &build_info::COMMIT);
        if self.grid {
            record.figures.insert("grid", &true);
        }
        if let (Some(strategies), Some(Count(rate))) = (self.strategies, self.rate) {
            let question =
                PredictQuestion { strategies, cores: self.strategy_cores, rate_per_s: rate as f64 };
            record.figures.insert(PredictQuestion::NAME, &question);
        }
        if self.idle == Idle::Spin {
            stages::plan_core_each(&mut record, self.isolation, self.working_set)?;
            return Ok(record);
        }
        stages::plan_pilot(&mut record, self.isolation, self.working_set)?;
        if let Some(folder) = &self.calibration {
            calibration::take(&mut record, &catalog::folder_of(folder)?)?;
        } else if !self.recalibrate && !self.grid {
            calibration::take_newest(&mut record, &self.out()?.unwrap_or_else(|| catalog::RUNS.into()));
        }
        Ok(record)
    }

    fn out(&self) -> Result<Option<PathBuf>> {
        Ok(self.out.clone())
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
        flags: PredictFlags,
    }

    fn parse(line: &str) -> Result<PredictFlags, clap::Error> {
        let arguments = ["predict"].into_iter().chain(line.split_whitespace());
        TestCommandLine::try_parse_from(arguments).map(|line| line.flags)
    }

    #[test]
    fn impossible_questions_are_refused() {
        for (line, expected) in [
            ("--strategies 0 --rate 1k", "from 1 to 256"),
            ("--strategies 257 --rate 1k", "from 1 to 256"),
            ("--strategies 4", "--rate"),
            ("--strategies 4 --rate fast", "--rate"),
            ("--strategies 4 --rate 1k --isolation thread", "compared with threads"),
            ("--strategies 4 --rate 1k --strategy-cores 0", "--strategy-cores"),
            ("--strategies 4 --rate 1k --idle yield", "park or spin"),
            ("--grid --rate 1k", "--grid"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(expected), "{line}: {error}");
        }
        let refused = |line: &str| {
            let error = parse(line).unwrap().plan(fake::plain(2).machine()).unwrap_err();
            assert!(error.is::<UsageError>(), "{line}: {error}");
            error.to_string()
        };
        assert!(refused("--strategies 4 --rate 0").contains("--rate 0"));
        assert!(refused("--strategies 4 --rate 60M").contains("1 to 50,000,000"));
        assert!(refused("--strategies 2 --rate 1k --idle spin").contains("--idle spin"));
        let cores = refused("--strategies 4 --rate 1k --strategy-cores 2");
        assert!(cores.contains("this machine has 1 next to the engine's"), "{cores}");
    }

    #[test]
    fn pilot_is_planned_with_the_question() {
        let out = tempfile::tempdir().unwrap();
        let line = format!("--strategies 24 --rate 50k --out {}", out.path().display());
        let record = parse(&line).unwrap().plan(fake::plain(2).machine()).unwrap();
        assert_eq!(record.rows.len(), 1);
        let asked = PredictQuestion::of_experiment(&record).unwrap();
        assert_eq!((asked.strategies, asked.cores, asked.rate_per_s), (24, 1, 50_000.0));
        assert_eq!(record.base["isolation"], "thread+thread+process");
        assert_eq!(record.base["strategies"], "12");
        let each = parse("--strategies 1 --rate 50k --idle spin").unwrap();
        let each = each.plan(fake::plain(2).machine()).unwrap();
        let levels: Vec<&str> =
            each.rows.iter().map(|row| row.setting.settings["isolation"].as_str()).collect();
        assert_eq!(levels, ["thread", "process", "process", "thread", "thread", "process"], "alternated");
        let grid = parse("--grid").unwrap().plan(fake::plain(2).machine()).unwrap();
        assert_eq!(PredictQuestion::of_experiment(&grid), None);
    }
}

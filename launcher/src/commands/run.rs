//! `launcher run`: runs the engine, once or several times, and reports.

use super::report::show;
use crate::experiments;
use anyhow::{Context, Result};
use planner::command_line::{report_unfired, worse};
use planner::config::{ReportLength, RunCommand};
use planner::host::Machine;
use planner::{self, Resolved};
use record::document::Document;
use record::run::RunOutcome;
use record::screen::{self, print_warning};
use runtime::clean::{self, CleanScope};
use runtime::prepare::{Prepared, prepare};
use runtime::run::{self, FinishedRun, Interruption, KeptRun, Presentation};
use runtime::signals::{self, Signals};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Runs `launcher run`: makes one or several runs of the engine, and reports each. The exit code is
/// 1 if a run failed or is not valid.
pub fn run(command: &RunCommand) -> Result<ExitCode> {
    let RunCommand { run: flags, remote, dry_run, quiet, baseline, fail_if_slower, .. } = command;
    let baseline = baseline.as_deref().map(catalog::folder_of).transpose()?;
    if baseline.is_some() {
        experiments::check_program_exists()?;
    }
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    clean::clean(CleanScope::KeepLogs).context("cannot look into /dev/shm")?;
    let machine = planner::host::machine();
    let resolved = planner::resolve(&flags.settings()?.with_remotes(remote)?, &machine)?;
    if *dry_run {
        return plan_only(&resolved, &machine, flags.common.allow_weaker_sandbox);
    }
    let how = Presentation {
        quiet: flags.common.json || *quiet,
        report: flags.common.report,
        weaker_sandbox: flags.common.allow_weaker_sandbox,
        start_timeout: Duration::from_nanos(flags.common.start_timeout.0),
        signals: &signals,
        interruption: Interruption::Drain,
    };
    let mut code = ExitCode::SUCCESS;
    // Several summaries form one document as well: a list.
    let (repeats, seed) = (resolved.settings.repeats().0, resolved.settings.seed().0);
    let mut list = (flags.common.json && repeats > 1).then(Vec::new);
    let mut runs = Vec::new();
    for repeat in 0..repeats {
        // A fresh schedule for each repeat, the same ones for the same --seed.
        let resolved = resolved.with_seed(seed.wrapping_add(repeat));
        let finished = run::run(&resolved, &machine, &how).inspect_err(|error| {
            // The folder is the answer of a quiet run: also of one that no log describes any more.
            if let Some(KeptRun { folder }) = error.downcast_ref().filter(|_| *quiet && !flags.common.json) {
                let _ = writeln!(screen::stdout(), "{}", folder.display());
            }
        })?;
        match &mut list {
            Some(list) => list.push(serde_json::from_slice::<serde_json::Value>(&finished.summary.json()?)?),
            None if *quiet && !flags.common.json => {
                writeln!(screen::stdout(), "{}", finished.folder.display())?;
            }
            None if flags.common.json => screen::stdout().write_all(&finished.summary.json()?)?,
            None => show(&finished.summary, flags.common.report)?,
        }
        if !flags.common.json && !quiet {
            writeln!(screen::stdout(), "Saved in {}", finished.folder.display())?;
            if flags.common.report == ReportLength::Short {
                write!(screen::stdout(), "{}", next_commands(&finished))?;
            }
        }
        code = worse(code, exit_code(&finished));
        code = worse(code, report_unfired(&finished.summary.unfired_faults, flags.common.allow_unfired));
        if let RunOutcome::Failed { process, pid, what } = &finished.outcome {
            print_warning(&format!("error: {process} (pid {pid}): {what}"));
        }
        if finished.outcome != RunOutcome::Complete {
            break;
        }
        runs.push(finished.folder);
    }
    if let Some(baseline) = baseline.filter(|_| code == ExitCode::SUCCESS) {
        experiments::against(&baseline, &runs, *fail_if_slower, *quiet, flags.common.report)?;
    }
    if let Some(list) = list {
        writeln!(screen::stdout(), "{:#}", serde_json::Value::from(list))?;
    }
    Ok(code)
}

/// Formats the commands that show more of a run: its page, its slowest orders, the state of the
/// machine if the run is not fit, and the complete report.
fn next_commands(finished: &FinishedRun) -> String {
    let program = screen::program();
    let runs = std::env::current_dir().map(|here| here.join(catalog::RUNS)).ok();
    let is_latest = runs.is_some() && finished.folder.parent() == runs.as_deref();
    let run = if is_latest { "latest".into() } else { finished.folder.display().to_string() };
    let doctor = if finished.summary.fit_for_latency { "" } else { " | launcher doctor" };
    let next = format!("launcher open {run} | launcher inspect {run} --worst 3{doctor}");
    format!("next: {next}\nfull: launcher report {run}\n").replace("launcher", &program)
}

/// `run --dry-run`: prepares the run without starting it.
fn plan_only(resolved: &Resolved, machine: &Machine, weaker_sandbox: bool) -> Result<ExitCode> {
    let Prepared { schedule, record, .. } = prepare(resolved, machine, weaker_sandbox, SystemTime::now())?;
    let resolved = resolved.spanning(schedule.window_ns());
    let plan = planner::show(&record.plan, &resolved, machine, &record.warnings);
    writeln!(screen::stdout(), "{plan}\nNothing was started (--dry-run).")?;
    Ok(ExitCode::SUCCESS)
}

fn exit_code(finished: &FinishedRun) -> ExitCode {
    match finished.outcome {
        RunOutcome::Complete if finished.summary.valid => ExitCode::SUCCESS,
        RunOutcome::Interrupted => signals::exit_code(),
        _ => ExitCode::FAILURE,
    }
}

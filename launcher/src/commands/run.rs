//! `launcher run`: runs the engine, once or several times, and reports.

use super::report::show;
use crate::experiments;
use crate::runtime::clean::{self, CleanScope};
use crate::runtime::prepare::{Prepared, prepare};
use crate::runtime::run::{self, FinishedRun, Interruption, KeptRun, Presentation};
use crate::runtime::signals::{self, Signals};
use anyhow::{Context, Result};
use planner::command_line::{report_unfired, worse};
use planner::config::RunCommand;
use planner::host::Machine;
use planner::{self, Resolved};
use record::document::Document;
use record::run::RunOutcome;
use record::screen::{self, complain};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Runs the engine once or several times. The exit code is 1 if a run failed or is not valid.
pub fn run(command: &RunCommand) -> Result<ExitCode> {
    let RunCommand { run: flags, remote, dry_run, quiet, baseline, fail_if_slower, .. } = command;
    let baseline = baseline.as_deref().map(catalog::folder_of).transpose()?;
    if baseline.is_some() {
        experiments::check()?;
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
            None => show(&finished.summary, flags.common.json)?,
        }
        if !flags.common.json && !quiet {
            writeln!(screen::stdout(), "Saved in {}", finished.folder.display())?;
        }
        code = worse(code, exit_code(&finished));
        code = worse(code, report_unfired(&finished.summary.unfired_faults, flags.common.allow_unfired));
        if let RunOutcome::Failed { process, pid, what } = &finished.outcome {
            complain(&format!("error: {process} (pid {pid}): {what}"));
        }
        if finished.outcome != RunOutcome::Complete {
            break;
        }
        runs.push(finished.folder);
    }
    if let Some(baseline) = baseline.filter(|_| code == ExitCode::SUCCESS) {
        experiments::against(&baseline, &runs, *fail_if_slower, *quiet)?;
    }
    if let Some(list) = list {
        writeln!(screen::stdout(), "{:#}", serde_json::Value::from(list))?;
    }
    Ok(code)
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

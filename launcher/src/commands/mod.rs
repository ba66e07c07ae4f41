//! What each subcommand does, and what the process says and returns in the end: 0 done, 1 failed or not valid, 2 usage,
//! 130 interrupted (143 by SIGTERM, 129 by SIGHUP).

mod doctor;
mod journal;
mod kill;
mod limits;
mod open;
mod pages;

use crate::board;
use crate::cli::{CleanFlags, Cli, Command, DoctorFlags, InspectFlags, JoinFlags, ReportFlags};
use crate::config::{RunCommand, Slower, UsageError, program};
use crate::experiments::{self, compare};
use crate::exports;
use crate::host::groups::Tree;
use crate::host::{Machine, System};
use crate::output;
use crate::planner::{self, Resolved};
use crate::runtime::active::ActiveRun;
use crate::runtime::clean::{self, CleanScope};
use crate::runtime::container::{self, groups};
use crate::runtime::gather;
use crate::runtime::merge_room;
use crate::runtime::prepare::prepare;
use crate::runtime::progress::{Progress, complain};
use crate::runtime::run::{self, FinishedRun, Interrupted, Presentation};
use crate::runtime::signals::{self, Signals};
use crate::runtime::{spill, warden};
use crate::shelf;
use crate::simulate;
use crate::watch;
use analysis::document::Document;
use analysis::escape::in_a_line;
use analysis::html;
use analysis::inspect;
use analysis::inspect::Format;
use analysis::record::{Outcome, RunRecord};
use analysis::report;
use analysis::summary::Summary;
use anyhow::{Context, Result};
use roles::role;
use shm::memory::sigbus;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use system::memory;
use system::scratch::Room;

/// Does what the command line says.
pub fn main(cli: Cli) -> ExitCode {
    output::measure();
    if !matches!(cli.command, Command::Role(_)) {
        // Without it a segment that somebody truncates ends this process, as it always has.
        let _ = sigbus::survive();
    }
    let result = match cli.command {
        Command::Run(flags) => run(&flags),
        Command::Join(flags) => join(&flags).map(|never| match never {}),
        Command::Sweep(flags) => experiments::sweep::run(&flags),
        Command::Compare(flags) => experiments::compare::run(&flags),
        Command::Bill(flags) => experiments::bill::run(&flags),
        Command::Contain(flags) => experiments::contain::run(&flags),
        Command::Lab(flags) => experiments::lab::lab(&flags),
        Command::Simulate(flags) => simulate::command(&flags),
        Command::Board(flags) => board::board(&flags),
        Command::Inspect(flags) => inspect(&flags),
        Command::Report(flags) => report(&flags),
        Command::Open(flags) => open::open(&flags),
        Command::Journal(flags) => journal::journal(&flags),
        Command::Doctor(flags) => doctor(flags),
        Command::Kill(flags) => kill::turn(&flags, true),
        Command::Revive(flags) => kill::turn(&flags, false),
        Command::Limits(flags) => limits::limits(&flags),
        Command::List(flags) => shelf::show(&flags),
        Command::Delete(flags) => shelf::delete(&flags),
        Command::Export(flags) => exports::export(&flags),
        Command::Completions(flags) => pages::completions(&flags),
        Command::Man(flags) => pages::man(&flags),
        Command::Watch(flags) => watch::watch(&flags),
        Command::Clean(flags) => clean(flags),
        Command::Role(flags) if flags.contain => {
            container::role(&flags.name, &flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) if flags.name == warden::NAME => {
            warden::run(&flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) if flags.name == spill::NAME => {
            spill::run(&flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) if flags.name.starts_with(experiments::lab::PREFIX) => {
            experiments::lab::role(&flags.name, &flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) if flags.name.starts_with(board::PREFIX) => {
            board::child(&flags.name, &flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) => role::run(&flags.name, &flags.run).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        if is_broken_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        complain(&format!("error: {}{}", chain(&error), way_out(&error)));
        // A file that was being read when Ctrl-C came is no mistake of the user's.
        let is_usage = error.is::<UsageError>();
        if is_usage && !signals::asked() {
            ExitCode::from(2)
        } else if is_usage || error.is::<Interrupted>() {
            signals::exit_code()
        } else {
            ExitCode::FAILURE
        }
    })
}

/// An error and what caused it, in one line. Some say their cause themselves: it is not said twice.
fn chain(error: &anyhow::Error) -> String {
    // A usage error may show the line of a configuration file below it; it has seen to that line itself.
    let has_lines = error.is::<UsageError>();
    let line = |cause: String| if has_lines { cause } else { in_a_line(&cause) };
    error.chain().fold(String::new(), |said, cause| match line(cause.to_string()) {
        cause if said.is_empty() => cause,
        cause if said.contains(&cause) => said,
        cause => format!("{said}: {cause}"),
    })
}

/// What to do about a file that is larger than this process may write; the error itself does not say whose limit it is.
fn way_out(error: &anyhow::Error) -> String {
    let is_limit = error.chain().any(|cause| cause.to_string().contains(&too_large().to_string()));
    match memory::file_limit().filter(|_| is_limit) {
        Some(bytes) => format!(
            "; files of this process may have at most {} KiB: raise that limit (ulimit -f unlimited)",
            bytes >> 10
        ),
        None => String::new(),
    }
}

fn too_large() -> std::io::Error {
    nix::errno::Errno::EFBIG.into()
}

/// Whoever reads our output has seen enough: `launcher inspect … | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(is_pipe))
}

/// Becomes the program that meets other hosts.
fn join(flags: &JoinFlags) -> Result<core::convert::Infallible> {
    let bridge = program::bridge()?;
    let error = std::process::Command::new(&bridge).arg("join").args(&flags.words).exec();
    Err(error).with_context(|| format!("cannot start {}", bridge.display()))
}

fn run(command: &RunCommand) -> Result<ExitCode> {
    let RunCommand { run: flags, remote, strict_faults, dry_run, quiet, baseline, fail_if_slower } = command;
    let baseline = baseline.as_deref().map(shelf::folder_of).transpose()?;
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    clean::clean(CleanScope::KeepLogs).context("cannot look into /dev/shm")?;
    let machine = crate::host::machine();
    let resolved = planner::resolve(&flags.settings()?.with_remotes(remote)?, &machine)?;
    if *dry_run {
        return plan_only(&resolved, &machine, flags.common.allow_weaker_sandbox);
    }
    let how = Presentation {
        quiet: flags.common.json || *quiet,
        weaker_sandbox: flags.common.allow_weaker_sandbox,
        start_timeout: Duration::from_nanos(flags.common.start_timeout.0),
        signals: &signals,
    };
    let mut code = ExitCode::SUCCESS;
    // Several summaries are one document as well: a list.
    let (repeats, seed) = (resolved.settings.repeats().0, resolved.settings.seed().0);
    let mut list = (flags.common.json && repeats > 1).then(Vec::new);
    let mut summaries = Vec::new();
    for repeat in 0..repeats {
        // A fresh schedule for each repeat, the same ones for the same --seed.
        let resolved = resolved.with_seed(seed.wrapping_add(repeat));
        let finished = run::run(&resolved, &machine, &how)?;
        match &mut list {
            Some(list) => list.push(serde_json::from_slice::<serde_json::Value>(&finished.summary.json()?)?),
            None if *quiet && !flags.common.json => {
                writeln!(output::stdout(), "{}", finished.folder.display())?;
            }
            None => show(&finished.summary, flags.common.json)?,
        }
        if !flags.common.json && !quiet {
            writeln!(output::stdout(), "\nSaved in {}", finished.folder.display())?;
        }
        code = exit_code(&finished);
        if *strict_faults && !finished.summary.unstruck.is_empty() {
            complain("error: --strict-faults: a fault never fired");
            code = ExitCode::FAILURE;
        }
        if let Outcome::Failed { process, pid, what } = &finished.outcome {
            complain(&format!("error: {process} (pid {pid}): {what}"));
        }
        if finished.outcome != Outcome::Complete {
            break;
        }
        summaries.push(finished.summary);
    }
    if let Some(baseline) = baseline.filter(|_| code == ExitCode::SUCCESS) {
        against(&baseline, &summaries, *fail_if_slower, *quiet)?;
    }
    if let Some(list) = list {
        writeln!(output::stdout(), "{:#}", serde_json::Value::from(list))?;
    }
    Ok(code)
}

/// Compares what was run with a folder of runs.
fn against(baseline: &Path, summaries: &[Summary], gate: Option<Slower>, quiet: bool) -> Result<()> {
    let found = compare::against(baseline, summaries)?;
    if !quiet {
        writeln!(output::stdout())?;
        compare::show(&found, false)?;
    }
    gate.map_or(Ok(()), |gate| compare::pass(gate, &found))
}

/// `run --dry-run`: everything but the run.
fn plan_only(resolved: &Resolved, machine: &Machine, weaker_sandbox: bool) -> Result<ExitCode> {
    let prepared = prepare(resolved, machine, weaker_sandbox, SystemTime::now())?;
    let resolved = resolved.spanning(prepared.schedule.window_ns());
    let plan = planner::show(&prepared.plan, &resolved, machine, &prepared.warnings);
    writeln!(output::stdout(), "{plan}\nNothing was started (--dry-run).")?;
    Ok(ExitCode::SUCCESS)
}

fn exit_code(finished: &FinishedRun) -> ExitCode {
    match finished.outcome {
        Outcome::Complete if finished.summary.valid => ExitCode::SUCCESS,
        Outcome::Interrupted => signals::exit_code(),
        _ => ExitCode::FAILURE,
    }
}

/// Prints a summary: for people, or as JSON for machines.
fn show(summary: &Summary, json: bool) -> Result<()> {
    let mut out = output::stdout();
    if json {
        out.write_all(&summary.json()?)?;
    } else {
        let colour = out.is_coloured();
        write!(out, "{}", report::terminal(summary, colour))?;
    }
    Ok(())
}

fn report(flags: &ReportFlags) -> Result<ExitCode> {
    let folder = shelf::folder_of(&flags.run)?;
    if let Some(file) = &flags.html {
        return report_html(&folder, file.as_deref());
    }
    experiments::is_none(&folder)?;
    let record = read_record(&folder)?;
    let progress = Progress::new(!flags.json);
    let room = merge_room::asked(&folder, &record.plan, flags.max_memory)?;
    let summary = run::evaluate(&room, &folder, &record, &progress)?;
    progress.clear();
    show(&summary, flags.json)?;
    Ok(if summary.valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A run's record. Logs of it that a full disk kept in `/dev/shm` are saved beside it first.
fn read_record(folder: &Path) -> Result<RunRecord> {
    let record = RunRecord::read(folder)?;
    let rescued = gather::rescue(&record.plan, folder)?;
    if rescued > 0 {
        complain(&format!("{rescued} logs that had stayed in /dev/shm are saved in {}", folder.display()));
    }
    Ok(record)
}

/// Makes the page and says where it is.
fn report_html(folder: &Path, file: Option<&Path>) -> Result<ExitCode> {
    let file = file.map_or_else(|| folder.join(html::HTML_FILE), Path::to_owned);
    make_page(folder, &file)?;
    writeln!(output::stdout(), "Written to {}", file.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a folder, from saved results; a run of which some are missing is merged first.
fn make_page(folder: &Path, file: &Path) -> Result<()> {
    if html::needs_merge(folder) {
        let progress = Progress::new(true);
        run::evaluate(&Room::memory(), folder, &read_record(folder)?, &progress)?;
        progress.clear();
    }
    html::write(folder, file)
}

fn inspect(flags: &InspectFlags) -> Result<ExitCode> {
    let path = shelf::folder_of(&flags.path)?;
    experiments::is_none(&path)?;
    let format = match (flags.json, flags.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Text,
    };
    let options = inspect::Options {
        head: flags.head,
        tail: flags.tail,
        order: flags.order,
        worst: flags.worst,
        format,
    };
    inspect::inspect(&path, &options, &mut output::stdout_while_read())?;
    Ok(ExitCode::SUCCESS)
}

fn doctor(flags: DoctorFlags) -> Result<ExitCode> {
    let (no_container, unlimited) = (container::missing(false), groups::unlimited(Tree::real()));
    let system = System { no_container, unlimited, ..System::read() };
    let checks = doctor::check(&crate::host::machine(), &system, &ActiveRun::all());
    writeln!(
        output::stdout(),
        "{}",
        if flags.json { doctor::json(&checks) } else { doctor::table(&checks) }
    )?;
    Ok(ExitCode::SUCCESS)
}

fn clean(flags: CleanFlags) -> Result<ExitCode> {
    let scope = if flags.dry_run { CleanScope::Nothing } else { CleanScope::Everything };
    let cleaned = clean::clean(scope).context("cannot look into /dev/shm")?;
    let mut out = output::stdout();
    if flags.dry_run {
        cleaned.removed.iter().try_for_each(|name| writeln!(out, "{name}"))?;
    }
    let (what, others) = (if flags.dry_run { "would be removed" } else { "removed" }, cleaned.others);
    let others = if others == 0 { String::new() } else { format!(", {others} of other users left alone") };
    writeln!(out, "{} segments {what}, {} of living runs kept{others}", cleaned.removed.len(), cleaned.kept)?;
    for failed in &cleaned.failed {
        complain(&format!("error: {failed}"));
    }
    Ok(if cleaned.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

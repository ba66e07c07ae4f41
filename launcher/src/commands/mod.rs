//! Dispatches subcommands and maps results to exit codes: 0 done, 1 failed or invalid, 2 usage, 3 a
//! comparison that decides nothing, 130 interrupted (143 by SIGTERM, 129 by SIGHUP).

mod add;
mod clean;
mod doctor;
mod inspect;
mod journal;
mod journal_record;
mod kill;
mod limits;
mod pages;
mod replace;
mod report;
mod run;

use crate::cli::{Cli, Command, JoinFlags};
use crate::experiments;
use crate::runtime::run::Interrupted;
use crate::runtime::signals;
use crate::runtime::{container, reaper};
use crate::{exports, saved_results, simulate, watch};
use anyhow::{Context, Result};
use planner::config::{Undecided, UsageError, program};
use record::document::{DocumentError, DocumentFault};
use record::escape::single_line;
use record::screen::{self, complain};
use roles::role;
use shm::memory::sigbus;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use system::memory;

/// Parses the command line and runs its command. Returns the exit code.
pub fn main(cli: Cli) -> ExitCode {
    screen::measure();
    if !matches!(cli.command, Command::Role(_)) {
        // Without it a truncated segment kills this process.
        let _ = sigbus::install_handler();
    }
    let result = match cli.command {
        Command::Run(flags) => run::run(&flags),
        Command::Join(flags) => join(&flags).map(|never| match never {}),
        Command::Sweep(flags) => experiments::sweep::run(&flags),
        Command::Resume(flags) => experiments::resume(&flags, doctor::unfit_here),
        Command::Compare(flags) => experiments::compare::run(&flags),
        Command::Bill(flags) => experiments::bill::run(&flags),
        Command::Contain(flags) => experiments::contain::run(&flags),
        Command::Disturb(flags) => experiments::disturb::run(&flags),
        Command::Lab(flags) => experiments::lab::run(&flags, doctor::unfit_here),
        Command::Survey(flags) => experiments::survey::run(&flags, doctor::check_here),
        Command::Simulate(flags) => simulate::command(&flags),
        Command::Board(flags) => experiments::board::run(&flags, doctor::unfit_here),
        Command::Inspect(flags) => inspect::inspect(&flags),
        Command::Report(flags) => report::report(&flags),
        Command::Open(flags) => report::open(&flags),
        Command::Journal(flags) => journal::journal(&flags),
        Command::Doctor(flags) => doctor::doctor(flags),
        Command::Kill(flags) => kill::switch(&flags, true),
        Command::Revive(flags) => kill::switch(&flags, false),
        Command::Retire(flags) => replace::retire(&flags),
        Command::Replace(flags) => replace::replace(&flags),
        Command::Add(flags) => add::add(&flags),
        Command::Limits(flags) => limits::limits(&flags),
        Command::List(flags) => saved_results::show(&flags),
        Command::Delete(flags) => saved_results::delete(&flags),
        Command::Export(flags) => exports::export(&flags),
        Command::Completions(flags) => pages::completions(&flags),
        Command::Man(flags) => pages::man(&flags),
        Command::Watch(flags) => watch::watch(&flags),
        Command::Clean(flags) => clean::clean(flags),
        Command::Role(flags) if flags.contain => {
            container::role(&flags.name, &flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) if flags.name == reaper::NAME => {
            reaper::run(&flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) => role::run(&flags.name, &flags.run).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        if is_broken_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        let limit = remedy_for_file_limit(&error);
        complain(&format!("error: {}{limit}", chain(&error)));
        // A read interrupted by Ctrl-C is not a usage error.
        let is_usage = error.is::<UsageError>() || names_no_results(&error) || !limit.is_empty();
        if is_usage && !signals::is_end_requested() {
            ExitCode::from(2)
        } else if is_usage || error.is::<Interrupted>() {
            signals::exit_code()
        } else if error.is::<Undecided>() {
            ExitCode::from(3)
        } else {
            ExitCode::FAILURE
        }
    })
}

/// Returns `true` if the error is about a folder that does not exist, or in which is neither a run
/// nor an experiment.
fn names_no_results(error: &anyhow::Error) -> bool {
    let absent = |error: &DocumentError| {
        error.fault == DocumentFault::Absent && !error.path.parent().is_some_and(saved_results::is_result)
    };
    error.downcast_ref().is_some_and(absent)
}

/// Formats an error and its causes in one line, without repeating a cause that is already included.
fn chain(error: &anyhow::Error) -> String {
    // A usage error may show the line of a configuration file on further lines, already escaped.
    let has_lines = error.is::<UsageError>();
    let line = |cause: String| if has_lines { cause } else { single_line(&cause) };
    error.chain().fold(String::new(), |message, cause| match line(cause.to_string()) {
        cause if message.is_empty() => cause,
        cause if message.contains(&cause) => message,
        cause => format!("{message}: {cause}"),
    })
}

/// Returns the remedy for a file that exceeds this process's file-size limit, which the error
/// itself does not name.
fn remedy_for_file_limit(error: &anyhow::Error) -> String {
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

/// Returns `true` if the reader closed our output: `launcher inspect … | head`.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(std::io::ErrorKind::BrokenPipe)
    })
}

/// Replaces this process by the bridge program, which connects to other hosts.
fn join(flags: &JoinFlags) -> Result<core::convert::Infallible> {
    let bridge = program::bridge()?;
    let error = std::process::Command::new(&bridge).arg("join").args(&flags.words).exec();
    Err(error).with_context(|| format!("cannot start {}", bridge.display()))
}

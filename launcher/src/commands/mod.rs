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

use crate::cli::{self, Cli, Command, JoinFlags};
use crate::experiments;
use crate::{exports, saved_results, simulate, watch};
use anyhow::{Context, Result};
use planner::command_line;
use planner::config::program;
use record::screen;
use roles::role;
use runtime::{benchmark, container, reaper};
use shm::memory::sigbus;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

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
        Command::Experiment(_) => {
            experiments::replace(cli::help_as_flag(std::env::args_os()).into_iter().skip(1))
                .map(|never| match never {})
        }
        Command::Simulate(flags) => simulate::command(&flags),
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
        Command::Benchmark => benchmark::serve(),
        Command::Role(flags) if flags.contain => {
            container::role(&flags.name, &flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) if flags.name == reaper::NAME => {
            reaper::run(&flags.run).map(|()| ExitCode::SUCCESS)
        }
        Command::Role(flags) => role::run(&flags.name, &flags.run).map(|()| ExitCode::SUCCESS),
    };
    command_line::exit_code(result, catalog::is_result)
}

/// Replaces this process by the bridge program, which connects to other hosts.
fn join(flags: &JoinFlags) -> Result<core::convert::Infallible> {
    let bridge = program::find_bridge()?;
    let error = std::process::Command::new(&bridge).arg("join").args(&flags.arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", bridge.display()))
}

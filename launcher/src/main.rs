//! bulkhead's one executable: the command line, and each process of a run.
#![forbid(unsafe_code)]

use clap::Parser;
use launcher::cli::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    launcher::commands::main(Cli::parse())
}

//! The flags of `watch`.

use clap::Args;

/// The command-line flags of `launcher watch`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct WatchFlags {
    /// Name the run: its id, a prefix of the id, its folder, or latest
    #[arg(default_value = "latest")]
    pub run: String,
    /// Print the tables once and exit, as without a terminal
    #[arg(long)]
    pub once: bool,
    /// Print a line of JSON each second until the run ends; with --once one line
    #[arg(long)]
    pub json: bool,
}

/// Examples in the help of `launcher watch`.
pub const EXAMPLES: &str = "\
Examples:
  launcher watch                        the newest active run, each second
  launcher watch runs/RUN               a run by its folder, or by its id
  launcher watch --once                 the tables once
  launcher watch --json | jq .rate      a line each second, until the run ends

It only reads. Ctrl-C ends it.";

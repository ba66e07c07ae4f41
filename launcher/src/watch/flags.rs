//! The flags of `watch`.

use analysis::units::Nanos;
use clap::Args;

/// The command-line flags of `launcher watch`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct WatchFlags {
    /// Name the run: its id, a prefix of the id, its folder, or latest
    #[arg(default_value = "latest")]
    pub run: String,
    /// Print one frame and exit
    #[arg(long)]
    pub once: bool,
    /// Print JSON: a line each poll until the run ends; with --once one document
    #[arg(long)]
    pub json: bool,
    /// Poll at this interval, 50ms at least
    #[arg(long, value_name = "DUR", default_value = "250ms")]
    pub interval: Nanos,
}

/// Examples in the help of `launcher watch`.
pub const EXAMPLES: &str = "\
Examples:
  launcher watch                        the newest active run
  launcher watch runs/RUN               a run by its folder, or by its id
  launcher watch --once                 one frame as text
  launcher watch --json | jq .rate      a line each poll, until the run ends

It only reads, four times a second. Keys: up and down select a strategy,
k kills it, r revives it, l sets a limit for it, K kills everybody, R revives
everybody, q quits. Figures of stages are samples; the report after the run
is the measurement.";

//! The command line of `launcher`: its commands and their flags. Nothing else reads it:
//! `RunFlags::settings` turns the flags into
//! `Settings`.
//!
//! Clap reports what it cannot parse and exits with 2; a `UsageError`
//! from anything later does the same.

mod help;
mod run_help;
mod suggestion;

use crate::exports::ExportFlags;
use crate::saved_results::{DeleteFlags, ListFlags};
use crate::simulate::SimulateFlags;
use crate::watch::WatchFlags;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use planner::command_line;
use planner::config::RunCommand;
use protocol::wire::OrderId;
use record::units::Nanos;
use std::ffi::OsString;
use std::path::PathBuf;
use suggestion::with_suggestion;

/// The command line: what it costs to put every trading strategy into its own process, and what it
/// buys.
#[derive(Parser, Clone, Debug, PartialEq)]
#[command(name = "launcher", version, max_term_width = 80, after_help = EXAMPLES)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the process's own command line. Prints help and errors itself and then ends the
    /// process, as clap does.
    pub fn read() -> Self {
        Self::read_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Parses the arguments of a command line.
    ///
    /// # Errors
    /// The command line is not valid, or requests help.
    pub fn read_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let arguments = command_line::join_negative_values(help_as_flag(arguments));
        let (mut command, arguments) = help::with_first_help(command(), arguments);
        let matches = command.try_get_matches_from_mut(arguments);
        Self::from_arg_matches(&matches.map_err(|error| with_suggestion(error, &command))?)
    }
}

/// Rewrites the arguments `help compare` to `compare --help` for the experiments, whose own program
/// parses their flags.
pub fn help_as_flag(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if let [_, help, command] = &mut arguments[..]
        && help == "help"
        && command.to_str().is_some_and(ExperimentCommand::has_subcommand)
    {
        *help = core::mem::replace(command, "--help".into());
    }
    arguments
}

/// Builds the complete clap command. A number with a minus sign is read as a value, which its flag
/// then refuses, and not as a flag. The last of repeated flags with one value wins: wrappers append
/// theirs.
pub fn command() -> clap::Command {
    let command = Cli::command().args_override_self(true);
    command.mut_subcommands(|sub| sub.allow_negative_numbers(true))
}

/// The subcommands of `launcher`.
#[derive(Subcommand, Clone, Debug, PartialEq)]
pub enum Command {
    /// Run the engine once and report what every hand-off cost
    #[command(after_help = run_help::examples())]
    Run(Box<RunCommand>),
    /// Run strategies here whose orders go to an engine on another host
    Join(JoinFlags),
    /// An experiment, which the program of experiments reads.
    #[command(flatten)]
    Experiment(ExperimentCommand),
    /// Simulate runs with crashes and attacks, and check each; starts no process
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateFlags),
    /// Print the stamp records of a run or of one log
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(InspectFlags),
    /// Print the complete report of a run, whose logs are merged again, or of an experiment
    Report(ReportFlags),
    /// Open the HTML report, generating it if missing, and print its path
    Open(OpenFlags),
    /// Turn on a kill switch of a run: reject new orders, cancel open ones
    #[command(after_help = KILL_EXAMPLES, override_usage = "launcher kill [OPTIONS] WHOM RUN")]
    Kill(KillFlags),
    /// Turn off a kill switch of a run
    #[command(override_usage = "launcher revive [OPTIONS] WHOM RUN")]
    Revive(KillFlags),
    /// End a strategy of a run; the others trade on
    #[command(after_help = RETIRE_EXAMPLES)]
    Retire(RetireFlags),
    /// Replace a strategy of a run by a new process; the others trade on
    #[command(after_help = REPLACE_EXAMPLES)]
    Replace(ReplaceFlags),
    /// Add a strategy to a run, in the place of a spare or of one that has ended
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddFlags),
    /// Show or change the limits of an active run
    #[command(after_help = LIMITS_EXAMPLES)]
    Limits(LimitsFlags),
    /// List, verify, dump, follow or repair a journal
    #[command(after_help = JOURNAL_EXAMPLES)]
    Journal(JournalFlags),
    /// Watch an active run: tables, JSON or metrics, each second
    #[command(after_help = crate::watch::EXAMPLES)]
    Watch(WatchFlags),
    /// List runs and experiments
    List(ListFlags),
    /// Delete results; active runs are kept
    Delete(DeleteFlags),
    /// Export a run to Perfetto, CSV, SVG or a recorded flow
    #[command(after_help = crate::exports::EXAMPLES)]
    Export(ExportFlags),
    /// Check whether this machine is fit for latency figures
    Doctor(DoctorFlags),
    /// Remove shared memory that dead runs and queues left behind
    Clean(CleanFlags),
    /// Print a shell completion script
    Completions(CompletionsFlags),
    /// Print the manual, or write its pages
    Man(ManFlags),
    /// Run one process of a run; only the launcher starts it
    #[command(hide = true)]
    Role(RoleFlags),
    /// Make the runs of a benchmark that are requested on stdin; only lab and board start it
    #[command(hide = true)]
    Benchmark,
}

/// The experiments, by name: their flags are read by their program.
#[derive(Subcommand, Clone, Debug, PartialEq, Eq)]
pub enum ExperimentCommand {
    /// Measure settings against each other, alternated
    #[command(disable_help_flag = true)]
    Sweep(ForwardedArguments),
    /// Go on with an experiment that was interrupted: make its missing runs, and report
    #[command(disable_help_flag = true)]
    Resume(ForwardedArguments),
    /// Compare two runs, settings or folders: is B faster or slower than A?
    #[command(disable_help_flag = true)]
    Compare(ForwardedArguments),
    /// Measure what every isolation level costs, by technique
    #[command(disable_help_flag = true)]
    Bill(ForwardedArguments),
    /// Measure what isolation buys: every fault at every level, with every technique
    #[command(disable_help_flag = true)]
    Contain(ForwardedArguments),
    /// Measure what a strategy that makes no mistake does to the others, at every level
    #[command(disable_help_flag = true)]
    Disturb(ForwardedArguments),
    /// Compare queues and ways of waiting: what each costs and buys
    #[command(disable_help_flag = true)]
    Lab(ForwardedArguments),
    /// Survey this machine: every experiment in short, and one card
    #[command(disable_help_flag = true)]
    Survey(ForwardedArguments),
    /// Measure every isolation level of this machine, side by side: one card
    #[command(disable_help_flag = true)]
    Ladder(ForwardedArguments),
    /// Predict what strategies will cost as processes, and measure the error
    #[command(disable_help_flag = true)]
    Predict(ForwardedArguments),
    /// Measure the board: one writer, any number of reader processes
    #[command(disable_help_flag = true)]
    Board(ForwardedArguments),
}

/// The arguments of a command that another program reads.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ForwardedArguments {
    /// Flags of the command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub arguments: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  launcher doctor                       is this machine fit to measure on?
  launcher run                          what the machine can carry, ~6 s
  launcher run --preset seed            the seed benchmark's numbers
  launcher inspect runs/RUN --order 0/17

Times are written with their unit (500ns, 5us, 5ms, 10s, 2m, 1h), counts as
400000, 400k or 4M. Exit codes: 0 done, 1 the run failed or is not valid,
2 usage, 3 a comparison decides nothing, 130 interrupted (143 by SIGTERM, 129 by
SIGHUP).";

const JOURNAL_EXAMPLES: &str = "\
Examples:
  launcher journal verify DIR           would a start find everything?
  launcher journal dump DIR --from 1000 --format csv
  launcher journal follow DIR --format json | jq .payload

Only cut changes anything, and only where something is damaged.";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  launcher simulate                     a thousand runs
  launcher simulate --seeds 1M          a million
  launcher simulate --seed 17           one of them again

The same seed gives the same run on every machine. Exit code 1 if something did
not hold, with the seed and how to see it again.";

const INSPECT_EXAMPLES: &str = "\
Examples:
  launcher inspect runs/RUN             its logs, and what is wrong with them
  launcher inspect runs/RUN --order 3/1042
  launcher inspect runs/RUN --worst 10  why the slowest orders were slow
  launcher inspect runs/RUN/engine.stamps --head 20
  launcher inspect runs/RUN/engine.stamps --csv
  launcher inspect flow.csv --spacing   how much time a consumer has for a tick";

const KILL_EXAMPLES: &str = "\
Examples:
  launcher kill latest --strategy 0
  launcher kill 20261120 --instrument BTC-USD
  launcher kill latest --all
  launcher revive latest --all";

const RETIRE_EXAMPLES: &str = "\
Examples:
  launcher retire latest strategy-1
  launcher retire latest 1 --open-orders cancel

The run must go on without a strategy: start it with --on-death continue or
restart. Exit codes: 0 it has ended, 1 it has not, 2 usage.";

const REPLACE_EXAMPLES: &str = "\
Examples:
  launcher replace latest strategy-1                    the same kind again
  launcher replace latest 1 --with exec:./quoter-2 --within 2s

The run must go on without a strategy: start it with --on-death continue or
restart. Exit codes: 0 the successor runs, 1 it does not, 2 usage.";

const ADD_EXAMPLES: &str = "\
Examples:
  launcher add latest --strategy maker                  into the first free slot
  launcher add latest 4 --strategy exec:./quoter --limits max-position=5k

Slots are free if the run was started with --spare-strategies N, or if their
strategies have ended. Exit codes: 0 it runs, 1 it does not, 2 usage.";

const LIMITS_EXAMPLES: &str = "\
Examples:
  launcher limits latest                what is in force, what was rejected
  launcher limits latest max-position=5k message-rate=1000
  launcher limits latest --strategy 0 max-position=off

Quantities are in 1e-8 units, money is in cents, rates are a second.";

/// The scope of a kill switch or a limit, given by exactly one of these flags.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[group(required = true, multiple = false)]
pub struct KillTarget {
    /// Select one strategy by its index
    #[arg(long, value_name = "N")]
    pub strategy: Option<u16>,
    /// Select the strategies of a credential
    #[arg(long, value_name = "N")]
    pub credential: Option<u16>,
    /// Select orders for a venue
    #[arg(long, value_name = "N")]
    pub venue: Option<u16>,
    /// Select orders in an instrument, by name or index
    #[arg(long, value_name = "NAME")]
    pub instrument: Option<String>,
    /// Select all strategies
    #[arg(long)]
    pub all: bool,
}

/// The command-line flags of `launcher kill` and `launcher revive`, which turn a kill switch of a
/// run on and off.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct KillFlags {
    /// Name the run: its id, a prefix of the id, its folder, or latest
    pub run: String,
    /// The target.
    #[command(flatten)]
    pub target: KillTarget,
    /// Wait this long for the last confirmed cancel
    #[arg(long, value_name = "DUR", default_value = "5s")]
    pub timeout: Nanos,
}

/// The command-line flags of `launcher retire`, which ends a strategy of an active run; the others
/// trade on.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct RetireFlags {
    /// Name the run: its id, a prefix of the id, its folder, or latest
    pub run: String,
    /// Name the strategy: 2 or strategy-2
    pub strategy: String,
    /// Wait until its open orders have ended, or cancel them at their venues
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub open_orders: OpenOrdersFlag,
    /// Cancel the orders that are still open after this time
    #[arg(long, value_name = "DUR", default_value = "10s")]
    pub within: Nanos,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The command-line flags of `launcher replace`, which replaces a strategy of an active run by a
/// new process.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ReplaceFlags {
    /// The strategy and its open orders.
    #[command(flatten)]
    pub end: RetireFlags,
    /// Start a strategy of this kind, such as exec:COMMAND [default: the same kind]
    #[arg(long, value_name = "KIND")]
    pub with: Option<String>,
}

/// The command-line flags of `launcher add`, which adds a strategy to an active run.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct AddFlags {
    /// Name the run: its id, a prefix of the id, its folder, or latest
    pub run: String,
    /// Name the slot: 4 or strategy-4 [default: the first spare, or one that has ended]
    #[arg(value_name = "STRATEGY")]
    pub slot: Option<String>,
    /// Start a strategy of this kind: player, maker, taker, exec:COMMAND
    #[arg(long, value_name = "KIND")]
    pub strategy: String,
    /// Require this isolation level, which the run has fixed for each slot at its start
    #[arg(long, value_name = "LEVEL")]
    pub isolation: Option<String>,
    /// Set a limit of the strategy before it starts, as CONTROL=VALUE; may be repeated
    #[arg(long, visible_alias = "limit", value_name = "LIST")]
    pub limits: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// What happens to the open orders of a strategy that is retired or replaced.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenOrdersFlag {
    /// Wait until the last of them is filled, cancelled or rejected
    #[default]
    Drain,
    /// Cancel them at their venues
    Cancel,
}

/// The command-line flags of `launcher journal`, which lists, checks, prints or repairs a journal.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct JournalFlags {
    /// Choose the action
    #[arg(value_enum)]
    pub action: JournalAction,
    /// Name the journal's folder, or a file in it
    pub path: PathBuf,
    /// Start dump and follow at this record [default: the first]
    #[arg(long, value_name = "N")]
    pub from: Option<u64>,
    /// Print the records of dump and follow in this format
    #[arg(long, value_enum, default_value_t)]
    pub format: RecordFormat,
}

/// The actions of `launcher journal`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalAction {
    /// List segments and snapshots, a line each
    List,
    /// Read everything as recovery would; exit code 1 if something is damaged
    Verify,
    /// Print every record
    Dump,
    /// Print every record and new ones until Ctrl-C
    Follow,
    /// Truncate at the first damaged record; the removed part is kept as a copy
    Cut,
}

/// The output format of records that `launcher journal` prints.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordFormat {
    /// For people
    #[default]
    Text,
    /// A JSON object a line
    Json,
    /// With a header line
    Csv,
}

/// The command-line flags of `launcher limits`, which shows or changes the risk limits of an active
/// run.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct LimitsFlags {
    /// Name the run: its id, a prefix of the id, its folder, or latest
    pub run: String,
    /// Set CONTROL=VALUE; without any, print the limits in force
    pub set: Vec<String>,
    /// Set the limit for one strategy
    #[arg(long, value_name = "N", conflicts_with_all = ["credential", "instrument"])]
    pub strategy: Option<u16>,
    /// Set the limit for one credential
    #[arg(long, value_name = "N", conflicts_with = "instrument")]
    pub credential: Option<u16>,
    /// Set the limit for one instrument, by name or index
    #[arg(long, value_name = "NAME")]
    pub instrument: Option<String>,
    /// Wait this long for the engine to apply a value
    #[arg(long, value_name = "DUR", default_value = "5s")]
    pub timeout: Nanos,
}

/// The command-line flags of `launcher inspect`, which prints the stamp records of a run or of one
/// log.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct InspectFlags {
    /// Name a run's folder, one stamp log, or with --spacing a recorded flow
    pub path: PathBuf,
    /// Print only the first N records of a log
    #[arg(long, value_name = "N")]
    pub head: Option<u64>,
    /// Print only the last N records of a log
    #[arg(long, value_name = "N")]
    pub tail: Option<u64>,
    /// Print only this order's records: STRATEGY/SEQUENCE
    #[arg(long, value_name = "ID")]
    pub order: Option<OrderId>,
    /// Explain why the slowest orders of a run were slow, and print the N worst
    #[arg(long, value_name = "N", conflicts_with_all = ["order", "head", "tail"])]
    pub worst: Option<usize>,
    /// Print how a recorded flow's rows are spaced in time, for each instrument
    #[arg(long, conflicts_with_all = ["order", "head", "tail", "worst", "csv"])]
    pub spacing: bool,
    /// Print one JSON document
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print records as CSV
    #[arg(long)]
    pub csv: bool,
}

/// The command-line flags of `launcher report`, which prints the complete report of a run or an
/// experiment.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct ReportFlags {
    /// Name the folder of a run or an experiment
    pub run: PathBuf,
    /// Print the summary as JSON
    #[arg(long, conflicts_with = "html")]
    pub json: bool,
    /// Write the charts as one HTML file instead [default: report.html in the folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub html: Option<Option<PathBuf>>,
}

/// The command-line flags of `launcher doctor`.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoctorFlags {
    /// Print the checks as JSON
    #[arg(long)]
    pub json: bool,
}

/// The command-line flags of `launcher clean`, which removes shared memory that dead runs and
/// queues left.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanFlags {
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The command-line flags of `launcher completions`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct CompletionsFlags {
    /// Complete for this shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
    /// Complete for a program of this name
    #[arg(long, value_name = "NAME", default_value = "launcher")]
    pub name: String,
}

/// The command-line flags of `launcher man`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ManFlags {
    /// Write a page for each command into this directory instead of the main page to stdout
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Print all commands and flags as one Markdown page
    #[arg(long, conflicts_with = "out")]
    pub markdown: bool,
}

/// The command-line flags of `launcher open`, which opens the HTML report of a run or an
/// experiment.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct OpenFlags {
    /// Name the folder of a run or an experiment, or latest for the newest in runs
    #[arg(value_name = "FOLDER", default_value = "latest")]
    pub folder: PathBuf,
}

/// The command-line flags of `launcher join`, which runs strategies here whose orders go to an
/// engine on another host. The launcher passes them to the bridge program.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct JoinFlags {
    /// Connect to the engine at NAME@HOST:PORT; then the flags of `run`
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "NAME@HOST:PORT"
    )]
    pub arguments: Vec<String>,
}

/// The arguments of a child process; everything else is in the run's plan.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct RoleFlags {
    /// Name of the process in the plan
    pub name: String,
    /// Id of the run
    pub run: String,
    /// Start the process in a container, as its shim
    #[arg(long)]
    pub contain: bool,
}

#[cfg(test)]
mod tests;

//! The command lines of the experiments, under the name `launcher`.

use crate::bill::BillFlags;
use crate::board::BoardFlags;
use crate::compare::CompareFlags;
use crate::contain::ContainFlags;
use crate::contain::disturb::DisturbFlags;
use crate::flags::ResumeFlags;
use crate::lab::LabFlags;
use crate::ladder::LadderFlags;
use crate::predict::PredictFlags;
use crate::survey::SurveyFlags;
use crate::sweep::SweepFlags;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use planner::command_line;
use planner::config::{ReportLength, Slower};
use std::ffi::OsString;
use std::path::PathBuf;

/// The command line of an experiment. The launcher calls the program with it.
#[derive(Parser, Clone, Debug, PartialEq)]
#[command(name = "launcher", version, max_term_width = 80)]
#[command(subcommand_required = true, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the arguments of an experiment's command line.
    ///
    /// # Errors
    /// The command line is not valid, or requests help.
    pub fn read_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = command().try_get_matches_from_mut(command_line::join_negative_values(arguments));
        Self::from_arg_matches(&matches?)
    }
}

/// Builds the clap command with all experiments as subcommands, whose help texts are adapted to
/// each. A number with a minus sign is read as a value, which its flag then refuses, and not as a
/// flag. The last of repeated flags with one value wins: wrappers append theirs.
pub fn command() -> clap::Command {
    let command = Cli::command().args_override_self(true);
    let command = command.mut_subcommands(|sub| sub.allow_negative_numbers(true));
    HELP_BY_COMMAND.iter().fold(command, |command, (name, flag, help)| {
        command.mut_subcommand(name, |sub| sub.mut_arg(flag, |arg| arg.help(*help)))
    })
}

/// Help texts of flags whose meaning differs from `run`: command, flag, text.
const HELP_BY_COMMAND: [(&str, &str, &str); 9] = [
    ("compare", "repeats", "Run each side R times, alternated; a verdict needs 5 [default: 10]"),
    ("contain", "repeats", "Run each fault R times [default: 1]"),
    (
        "contain",
        "technique",
        "Use these techniques for the two contended hand-offs [default: all that cross processes]",
    ),
    ("contain", "isolation", "Separate strategies and engine at these levels [default: all]"),
    ("disturb", "isolation", "Separate strategies and engine at these levels [default: all]"),
    ("disturb", "repeats", "Run each disturbance R times, alternated; a verdict needs 5 [default: 12]"),
    (
        "bill",
        "repeats",
        "Run each row R times, each with its own schedule [default: 15 or fewer, as five minutes allow; declared: 12]",
    ),
    (
        "bill",
        "technique",
        "Use these techniques for the two contended hand-offs [default: spsc-mux; with --preset bill: all]",
    ),
    (
        "bill",
        "isolation",
        "Separate strategies and engine at these levels; native: threads over rings on the heap [default: all and native]",
    ),
];

/// The subcommands of this program: those that the launcher's users type, such as `sweep`, and
/// hidden ones that the launcher itself calls.
#[derive(Subcommand, Clone, Debug, PartialEq)]
pub enum Command {
    /// Measure settings against each other, alternated
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Box<SweepFlags>),
    /// Go on with an experiment that was interrupted: make its missing runs, and report
    Resume(ResumeFlags),
    /// Compare two runs, settings or folders: is B faster or slower than A?
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Box<CompareFlags>),
    /// Measure what every isolation level costs, by technique
    #[command(after_help = BILL_EXAMPLES)]
    Bill(Box<BillFlags>),
    /// Measure what isolation buys: every fault at every level, with every technique
    #[command(after_help = CONTAIN_EXAMPLES)]
    Contain(Box<ContainFlags>),
    /// Measure what a strategy that makes no mistake does to the others, at every level
    #[command(after_help = DISTURB_EXAMPLES)]
    Disturb(Box<DisturbFlags>),
    /// Compare queues and ways of waiting: what each costs and buys
    #[command(after_help = LAB_EXAMPLES)]
    Lab(Box<LabFlags>),
    /// Survey this machine: every experiment in short, and one card
    #[command(after_help = SURVEY_EXAMPLES)]
    Survey(SurveyFlags),
    /// Measure every isolation level of this machine, side by side: one card
    #[command(after_help = LADDER_EXAMPLES)]
    Ladder(LadderFlags),
    /// Predict what strategies will cost as processes, and measure the error
    #[command(after_help = PREDICT_EXAMPLES)]
    Predict(Box<PredictFlags>),
    /// Measure the board: one writer, any number of reader processes
    #[command(after_help = BOARD_EXAMPLES)]
    Board(Box<BoardFlags>),
    /// Compare runs with a baseline: launcher run --baseline
    #[command(hide = true)]
    Against(AgainstFlags),
    /// Print the complete report of an experiment: launcher report
    #[command(hide = true)]
    Report(ReportFlags),
    /// Write the page of an experiment: launcher report and open
    #[command(hide = true)]
    Page(PageFlags),
    /// Print the picture of an experiment: launcher export --svg
    #[command(hide = true)]
    Picture(PictureFlags),
    /// Print experiments in a line each, as JSON: launcher list
    #[command(hide = true)]
    Lines(LinesFlags),
    /// Print the definitions of the commands, as JSON: launcher completions and man
    #[command(hide = true)]
    Definitions,
}

/// The flags of the command `against`, which compares runs with those of a baseline folder
/// (`launcher run --baseline`).
#[derive(Args, Clone, Debug, PartialEq)]
pub struct AgainstFlags {
    /// The folder of the baseline's runs
    pub baseline: PathBuf,
    /// The folders of the runs
    pub runs: Vec<PathBuf>,
    /// Fail if they are slower by more than this
    #[arg(long)]
    pub fail_if_slower: Option<Slower>,
    /// Print no table
    #[arg(long)]
    pub quiet: bool,
    /// Print the answer with one table, or every table
    #[arg(long, value_enum, default_value_t)]
    pub report: ReportLength,
}

/// The flags of the command `report`, which prints the complete report of a saved experiment.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ReportFlags {
    /// The folder of the experiment
    pub folder: PathBuf,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// The flags of the command `page`, which writes an experiment's HTML page.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct PageFlags {
    /// The folder of the experiment
    pub folder: PathBuf,
    /// The page's file
    pub file: PathBuf,
}

/// The flags of the command `picture`, which prints a saved experiment's chart as SVG.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct PictureFlags {
    /// The folder of the experiment
    pub folder: PathBuf,
}

/// The flags of the command `lines`, which prints a summary of each experiment as JSON, for
/// `launcher list`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct LinesFlags {
    /// The folders of experiments
    pub folders: Vec<PathBuf>,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  launcher sweep --isolation thread,process --work 0ns,500ns --repeats 10
  launcher sweep --preset seed          the seed benchmark: half an hour, 15 cores
  launcher sweep --preset bill          isolation levels × techniques
  launcher sweep --find-max-rate --p999 100us --isolation thread,process
  launcher resume runs/SWEEP            go on after Ctrl-C or a crash
  launcher sweep --plan FOLDER --isolation thread,process
  launcher sweep --run turn:0 FOLDER    makes a part of it, on any host
  launcher sweep --join FOLDER          gathers all

--technique, --isolation, --idle, --capacity, --work, --strategies, --venues
and --rate take lists. Every repeat has a schedule seed of its own.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  launcher compare runs/A runs/B        two runs, or two folders of runs
  launcher compare runs/SWEEP --a isolation=thread --b isolation=process
  launcher compare --a isolation=thread --b isolation=process --repeats 10
  launcher compare --a technique=spsc-mux --b technique=spsc-mux   does it claim what is not?

Without a folder both are measured now, alternated. Five pairs of runs with
the same schedule are needed for a verdict.";

const BILL_EXAMPLES: &str = "\
Examples:
  launcher bill                         native and every level, in five minutes
  launcher bill --preset bill           every level with every technique
  launcher bill --isolation native,thread,process --repeats 10
  launcher bill --isolation thread,process --stamps all,ends
  launcher bill runs/BILL               the table of what was measured before";

const DISTURB_EXAMPLES: &str = "\
Examples:
  launcher disturb                      every disturbance at every level: about fifteen minutes
  launcher disturb --isolation thread,process --fault 'fork-storm;map-storm'
  launcher disturb --isolation thread+process --fault thrash      the disturbing strategy is the process";

const CONTAIN_EXAMPLES: &str = "\
Examples:
  launcher contain                      everything: about ten minutes
  launcher contain --technique spsc-mux,array-queue --isolation process
  launcher contain --fault 'kill;hang@push:claimed:500' --isolation sandbox

Strategy 1 of three has it, 400 ms after the start. Under process and
sandbox it is started again; a thread cannot be.";

const LAB_EXAMPLES: &str = "\
Examples:
  launcher lab                          two queues, four ways of waiting
  launcher lab --technique spsc-mux,pipe --isolation thread,process,sandbox
  launcher lab --producers 1,4 --producer fast --consumer slow
  launcher lab --consumers 0,1,2        one producer, so many readers of all
  launcher lab --seed-table --events 1k --runs 20
  launcher resume runs/LAB              go on after Ctrl-C

Every run checks that each event came once, whole and in its producer's
order. Exit code 1 if one did not.";

const SURVEY_EXAMPLES: &str = "\
Examples:
  launcher survey                       at most fifteen minutes
  launcher survey --minutes 5           fewer settings and repeats";

const LADDER_EXAMPLES: &str = "\
Examples:
  launcher ladder                       at most four minutes
  launcher ladder --strategies 16       the cost of 16 strategies of each level
  launcher ladder --json                the same as data";

const PREDICT_EXAMPLES: &str = "\
Examples:
  launcher predict --strategies 24 --rate 30k
  launcher predict --strategies 24 --strategy-cores 4 --rate 200k --isolation sandbox
  launcher predict --grid               30 cells, a third of them left out of the fit

The first one calibrates this machine, in about a minute. Later ones use that
calibration, and need only the run that shows the error.";

const BOARD_EXAMPLES: &str = "\
Examples:
  launcher board                        three loads, about ten seconds
  launcher board --preset seed          the seed's study, with its thresholds
  launcher board --readers 12 --duration 60s --mode poisson:10k
  launcher board --mode stress --readers 0,1,4,16,64 --size 64,4096
  launcher board --isolation thread,process,sandbox --waiting spin,yield,park
  launcher board --mode replay:flow.csv --cells 64
  launcher board --board-folder /dev/shm,/var/tmp --nodes 0:0,0:1
  launcher board --healthy write-p99=5us,write-rate=off

A figure at its limit is a warning, no failure. Exit code 1 if a value was torn,
versions do not add up, somebody died or writes that were due were not made.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        let arguments = std::iter::once("launcher").chain(line.split_whitespace());
        Cli::read_from(arguments.map(Into::into)).map(|cli| cli.command)
    }

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_wrong_value_says_what_would_be_right() {
        for (line, expected) in [
            ("survey --minutes abc", "a whole number of minutes from 1 to 60"),
            ("survey --minutes 90", "a whole number of minutes from 1 to 60"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn last_of_repeated_flags_wins() {
        assert!(matches!(parse("survey --minutes 3 --minutes 4"), Ok(Command::Survey(_))));
    }

    #[test]
    fn help_fits_eighty_columns() {
        for command in "sweep resume compare bill contain disturb survey lab predict board".split(' ') {
            let line = format!("{command} --help");
            let help = parse(&line).unwrap_err();
            assert_eq!(help.kind(), ErrorKind::DisplayHelp);
            let help = help.to_string();
            assert!(help.contains(&format!("Usage: launcher {command}")), "{help}");
            // One example is wider.
            let is_wide = |text: &&str| text.chars().count() > if command == "disturb" { 110 } else { 80 };
            assert_eq!(help.lines().find(is_wide), None, "{line}");
        }
    }
}

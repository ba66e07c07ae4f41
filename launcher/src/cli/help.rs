//! The help that a person sees first: the commands by what they are for, twelve flags of `run`, and
//! topics. `--all` shows every command, or every flag.

use super::run_help;
use clap::Command;
use std::ffi::OsString;

/// The commands by what a person wants, in 24 lines of 80 columns.
const FIRST_HELP: &str = "\
launcher: what isolating trading strategies costs, and what it buys

Start here   run        one run that fits this machine, ~6 s
             doctor     may I quote figures from here?
             open       the last report, in a browser
             inspect    why were the slowest orders slow?
Cost         compare    is B slower than A, with an interval
             bill       what does each isolation level add?
             predict    what would my load pay?
             sweep      many settings; the highest rate
Benefit      contain    does a fault stay where it began?
             disturb    does honest work slow the others?
             ladder     every level of isolation on one card
A live run   watch, kill, revive, replace, add, retire, limits
Results      list, report, export, delete, resume, clean, journal
More         lab, board, survey, simulate, join, completions, man
             help COMMAND, help --all, help units|faults|verdicts|exit-codes

Examples     launcher run
             launcher bill --strategies 8 --idle park --strategy-cores 1
             launcher contain --technique spsc-mux --fault kill
             launcher open latest
RUN is an id, its beginning, a folder of launcher list, or latest.
Exit codes: 0 good, 1 bad run, 2 usage, 3 cannot tell, 130 Ctrl-C.
";

const UNITS: &str = "\
Times have a unit: 500ns, 5us, 5ms, 10s, 2m, 1h. Counts: 400000, 400k, 4M.
Sizes: 64B, 256KiB, 4MiB, 1GiB. Delays: fixed:5ms, uniform:5ms..500ms.
In a report s/M is seconds of CPU time for a million orders, which is the same
number of microseconds an order. Quantities of orders are in 1e-8 units, money
is in cents.
";

const VERDICTS: &str = "\
Of a run, in front of its figures:
  INVALID   orders were lost, doubled or contradictory: quote nothing
  NOT FIT   the accounts hold, but the machine disturbed the run: each reason
            has a remedy; counts and containment may be quoted, latencies not
  FIT       latencies may be quoted
Of a comparison, with a 95 % interval and a margin declared before:
  slower, faster   the interval is beyond 0
  equivalent       it is within the margin
  cannot tell      neither: the answer says how many more pairs would help
";

const EXIT_CODES: &str = "\
  0    good
  1    a run failed or is not valid, or a check or gate is not passed
  2    wrong usage: the message names the flag and what would be right
  3    a comparison that cannot tell
  130  ended by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)
";

/// Returns the text of a topic of `launcher help`.
fn topic(name: &str) -> Option<String> {
    match name {
        "units" => Some(UNITS.into()),
        "faults" => Some(run_help::faults()),
        "verdicts" => Some(VERDICTS.into()),
        "exit-codes" => Some(EXIT_CODES.into()),
        _ => None,
    }
}

/// Returns the command with the help that the words of a command line ask for, and the words
/// without `--all`.
pub(super) fn with_first_help(command: Command, arguments: Vec<OsString>) -> (Command, Vec<OsString>) {
    let texts: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let is_help = |word: &str| ["help", "--help", "-h"].contains(&word);
    let has_all = texts.contains(&"--all");
    let rest: Vec<&str> = texts.iter().copied().filter(|word| *word != "--all").collect();
    let asked = |command: Command| {
        let program = arguments.first().cloned().unwrap_or_default();
        (command, vec![program, "--help".into()])
    };
    match rest.as_slice() {
        [help] if is_help(help) && has_all => asked(command),
        [] if !has_all => (command.override_help(FIRST_HELP), arguments),
        [help] if is_help(help) => asked(command.override_help(FIRST_HELP)),
        ["help", name] if let Some(text) = topic(name) => asked(command.override_help(text)),
        ["help", "run"] | ["run", "-h" | "--help"] => {
            let program = arguments.first().cloned().unwrap_or_default();
            let command = if has_all { command } else { command.mut_subcommand("run", with_first_flags) };
            (command, vec![program, "run".into(), "--help".into()])
        }
        ["run", .., "-h" | "--help"] if !has_all => {
            (command.mut_subcommand("run", with_first_flags), arguments)
        }
        _ => (command, arguments),
    }
}

/// Hides the flags of `run` that a first run does not need.
fn with_first_flags(run: Command) -> Command {
    let run = run.mut_args(|arg| {
        let is_first = run_help::FIRST_FLAGS.contains(&arg.get_id().as_str());
        arg.hide(!is_first).help_heading(None::<&str>)
    });
    run.after_help(run_help::FIRST_EXAMPLES)
}

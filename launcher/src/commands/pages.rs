//! `launcher completions` and `launcher man`: shell completions, man pages and the book's page of
//! commands, from the command line's definition.

use crate::cli::{self, CompletionsFlags, ManFlags};
use crate::experiments;
use anyhow::{Context, Result};
use clap::builder::PossibleValue;
use clap::{Arg, Command};
use clap_complete::Shell;
use planner::command_line::definition::CommandDefinition;
use record::screen;
use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

/// Runs `launcher completions`: prints the completions for a shell.
pub fn completions(flags: &CompletionsFlags) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(flags.shell, &mut complete_command(), flags.name.clone(), &mut text);
    screen::stdout().write_all(&text)?;
    screen::stdout().write_all(run_names(flags.shell, &flags.name).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the complete command line: the launcher's with the flags of the experiments, if their
/// program is there.
fn complete_command() -> Command {
    let commands = experiments::definitions().into_iter().map(CommandDefinition::into_command);
    commands.fold(cli::command(), |command, experiment| {
        let name = experiment.get_name().to_owned();
        command.mut_subcommand(name, |_| experiment)
    })
}

/// Ids of the positional arguments that name a run or an experiment.
const RUN_ARGS: [&str; 4] = ["run", "folder", "folders", "path"];

/// Flags whose values name runs or experiments.
const RUN_FLAGS: [&str; 4] = ["baseline", "resume", "contain", "disturb"];

/// Returns the commands whose first arguments name runs or experiments.
fn commands_of_runs() -> Vec<String> {
    let command = complete_command();
    let takes_run = |command: &&Command| {
        let first = command.get_positionals().next();
        first.is_some_and(|arg| RUN_ARGS.contains(&arg.get_id().as_str())) && command.get_name() != "list"
    };
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    commands.filter(takes_run).map(|command| command.get_name().to_owned()).collect()
}

/// Returns the lines that complete the names of runs (`launcher list --names`), in addition to a
/// shell's script; empty for shells in which paths are completed only.
fn run_names(shell: Shell, name: &str) -> String {
    let commands = commands_of_runs();
    match shell {
        Shell::Bash => format!(
            r#"
_{ident}_runs() {{
    _{ident} "$@"
    local cur="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    [[ $COMP_CWORD -ge 2 && $cur != -* ]] || return 0
    case "${{COMP_WORDS[1]}} $before" in
        {flags}) ;;
        *" --"*) return 0 ;;
        {named}) ;;
        *) return 0 ;;
    esac
    COMPREPLY=($(compgen -W "$({name} list --names 2>/dev/null)" -- "$cur") $(compgen -f -- "$cur"))
}}
complete -F _{ident}_runs -o bashdefault -o default {name}
"#,
            flags = RUN_FLAGS.map(|flag| format!("*\" --{flag}\"")).join("|"),
            named = commands.iter().map(|name| format!("\"{name} \"*")).collect::<Vec<_>>().join("|"),
            ident = name.replace('-', "__"),
        ),
        Shell::Fish => {
            let lines = commands.iter().map(|command| {
                format!(
                    r#"complete -c {name} -n "__fish_seen_subcommand_from {command}" -a "({name} list --names 2>/dev/null)""#
                ) + "\n"
            });
            lines.collect()
        }
        Shell::Zsh => format!(
            r#"
_{name}_runs() {{
    case "$words[2]" in
        {})
            if [[ $PREFIX != -* && $words[CURRENT-1] != --* ]]; then
                compadd -- ${{(f)"$({name} list --names 2>/dev/null)"}}
            fi
            ;;
    esac
    _{name} "$@"
}}
compdef _{name}_runs {name}
"#,
            commands.join("|")
        ),
        _ => String::new(),
    }
}

/// Prints the main man page, or all commands as one Markdown page, or writes a man page for each
/// command to a folder.
pub fn man(flags: &ManFlags) -> Result<ExitCode> {
    // Without it each command has a second page, for `help COMMAND`.
    let mut command = complete_command().disable_help_subcommand(true);
    command.build();
    if flags.markdown {
        screen::stdout().write_all(markdown(&command).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    match &flags.out {
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(command).render(&mut text)?;
            screen::stdout().write_all(&text)?;
        }
        Some(folder) => {
            let cannot = || format!("cannot write {}", folder.display());
            std::fs::create_dir_all(folder).with_context(cannot)?;
            clap_mangen::generate_to(command, folder).with_context(cannot)?;
            writeln!(screen::stdout(), "man pages written to {}", folder.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

const HEAD: &str = "\
# Commands

Every command and flag of `launcher`, for looking up; `launcher man --markdown` prints this page. `launcher --help` and `launcher run --help`
have what one needs first. `RUN` is a run's id, the beginning of one, its folder, the folder's name in `list`, or `latest`; TAB completes
it. Exit codes: 0; 1 for a run that failed or is not valid, for a check or gate that is not passed; 2 for wrong usage; 3 for a comparison
that decides nothing; 130 if interrupted.

## Settings

The flags that `run`, `sweep`, `compare`, `contain` and `bill` share, also keys of a `--config` file. For `sweep` some take a list of
values: ";

/// Maximum number of values that are listed for a flag of one command.
const MAX_VALUES: usize = 5;

/// Returns the book's page of all commands: the settings that several share, then what each command
/// does and its other flags.
fn markdown(launcher: &Command) -> String {
    let is_hidden = |command: &Command| command.is_hide_set() || command.get_name() == "help";
    let commands: Vec<_> = launcher.get_subcommands().filter(|command| !is_hidden(command)).collect();
    let named = |name: &str| flags(commands.iter().find(|command| command.get_name() == name));
    let (run, compare) = (named("run"), named("compare"));
    let is_in = |args: &[&Arg], arg: &Arg| args.iter().any(|other| is_same(other, arg));
    let settings: Vec<_> = run.into_iter().filter(|arg| is_in(&compare, arg)).collect();
    let is_list_setting = |arg: &&Arg| is_list(arg) && is_in(&settings, arg);
    let lists: Vec<_> = named("sweep").into_iter().filter(is_list_setting).collect();
    let mut page = format!("{HEAD}{}.{}", names(&lists), list(&settings, usize::MAX));
    let mut before = Vec::new();
    for command in &commands {
        let (shared, own): (Vec<_>, Vec<_>) =
            flags(Some(command)).into_iter().partition(|arg| is_in(&settings, arg));
        let about = command.get_about().unwrap_or_default().to_string();
        let stop = if about.ends_with('?') { "" } else { "." };
        let _ = write!(page, "\n## {}\n\n{about}{stop}", command.get_name());
        if shared.len() * 2 > settings.len() {
            page.push_str(" It has the [settings](#settings).");
        } else if !shared.is_empty() {
            let _ = write!(page, " Like `run` it has {}.", names(&shared));
        }
        let is_repeated = own.len() == before.len() && own.iter().all(|arg| is_in(&before, arg));
        page.push_str(&match own[..] {
            [] => "\n".into(),
            _ if is_repeated => " Its flags are those of the command above.\n".into(),
            _ => list(&own, MAX_VALUES),
        });
        before = own;
    }
    page
}

fn flags<'a>(command: Option<&&'a Command>) -> Vec<&'a Arg> {
    let is_visible = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help";
    command.into_iter().flat_map(|command| command.get_arguments()).filter(is_visible).collect()
}

fn is_list(arg: &Arg) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "LIST"))
}

fn is_same(one: &Arg, other: &Arg) -> bool {
    one.get_long() == other.get_long()
        && one.get_help().map(ToString::to_string) == other.get_help().map(ToString::to_string)
}

/// Returns the long names of flags, separated by commas.
fn names(args: &[&Arg]) -> String {
    let names: Vec<_> =
        args.iter().filter_map(|arg| arg.get_long()).map(|long| format!("`--{long}`")).collect();
    names.join(", ")
}

/// Returns the flags as a list, each with its values if it has at most `max_values`.
fn list(args: &[&Arg], max_values: usize) -> String {
    args.iter().fold(String::from("\n\n"), |mut text, arg| {
        // An equals sign, so that flag and value are one word.
        let spelled = arg.to_string().replace(" <", "=<");
        let _ = writeln!(text, "- `{spelled}`: {}", description(arg, max_values));
        text
    })
}

/// Returns the help of a flag with its default and at most `max_values` values, where the text does
/// not name them.
fn description(arg: &Arg, max_values: usize) -> String {
    let mut text = arg.get_help().unwrap_or_default().to_string();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() && !text.contains("[default") {
        let _ = write!(text, " [default: {}]", defaults.join(" "));
    }
    let values = arg.get_possible_values();
    let is_named = |value: &PossibleValue| text.contains(value.get_name());
    if arg.get_action().takes_values() && values.len() <= max_values && !values.iter().all(is_named) {
        let names: Vec<_> = values.iter().map(PossibleValue::get_name).collect();
        let _ = write!(text, " [{}]", names.join("|"));
    }
    text
}

//! What clap lacks: help that depends on the command, numbers with a minus as values, the nearest name.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What flags mean where it is not what `run` makes of them.
const ELSEWHERE: [(&str, &str, &str); 6] = [
    ("compare", "repeats", "Runs of each side, alternated; a verdict needs 5 [default: 10]"),
    ("contain", "repeats", "Runs of each fault [default: 1]"),
    ("contain", "technique", "What carries the two contended hand-offs [default: all that cross processes]"),
    ("contain", "isolation", "What stands between strategies and engine [default: all]"),
    ("bill", "technique", "What carries the two contended hand-offs [default: all]"),
    ("bill", "isolation", "What stands between strategies and engine [default: all]"),
];

/// The command line with help as each command means it, where a number with a minus is a value that its flag refuses, not a flag.
pub fn tuned(command: clap::Command) -> clap::Command {
    let command = command.mut_subcommands(|sub| sub.allow_negative_numbers(true));
    ELSEWHERE.iter().fold(command, |command, (name, flag, help)| {
        command.mut_subcommand(name, |sub| sub.mut_arg(flag, |arg| arg.help(*help)))
    })
}

/// With the nearest name, where clap finds none: two letters in the wrong order, capitals.
pub fn suggested(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (given, names, suggestion) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let names = command.get_subcommands().filter(|sub| !sub.is_hide_set());
            let names = names.map(|sub| sub.get_name().to_owned()).collect();
            (text(&error, ContextKind::InvalidSubcommand), names, ContextKind::SuggestedSubcommand)
        }
        ErrorKind::InvalidValue => {
            let names = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(names)) => names.clone(),
                _ => Vec::new(),
            };
            (text(&error, ContextKind::InvalidValue), names, ContextKind::SuggestedValue)
        }
        _ => return error,
    };
    let near = given.and_then(|given| crate::config::nearest(&given, names.iter().map(String::as_str)));
    if let Some(near) = near.filter(|_| error.get(suggestion).is_none()) {
        // A list of subcommands, one value.
        let near = match suggestion {
            ContextKind::SuggestedValue => ContextValue::String(near.to_owned()),
            _ => ContextValue::Strings(vec![near.to_owned()]),
        };
        error.insert(suggestion, near);
    }
    error
}

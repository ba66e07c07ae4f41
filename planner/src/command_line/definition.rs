//! The definitions of commands as data: a program's completions and man pages include those of
//! another program.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use serde::{Deserialize, Serialize};

/// The definition of a command: its help texts and flags, without their parsers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandDefinition {
    name: String,
    about: String,
    after_help: Option<String>,
    args: Vec<ArgDefinition>,
}

/// The definition of a flag or a positional argument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ArgDefinition {
    id: String,
    long: Option<String>,
    short: Option<char>,
    help: String,
    heading: Option<String>,
    value_names: Vec<String>,
    defaults: Vec<String>,
    possible_values: Vec<(String, String)>,
    takes_values: bool,
    is_list: bool,
    is_required: bool,
    is_hidden: bool,
}

impl From<&Command> for CommandDefinition {
    fn from(command: &Command) -> Self {
        Self {
            name: command.get_name().into(),
            about: command.get_about().map(ToString::to_string).unwrap_or_default(),
            after_help: command.get_after_help().map(ToString::to_string),
            args: command.get_arguments().map(ArgDefinition::from).collect(),
        }
    }
}

impl From<&Arg> for ArgDefinition {
    fn from(arg: &Arg) -> Self {
        let value = |value: &PossibleValue| {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            (value.get_name().to_owned(), help)
        };
        let takes_values = arg.get_action().takes_values();
        let values = if takes_values { arg.get_possible_values() } else { Vec::new() };
        let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
        let value_names = arg.get_value_names().into_iter().flatten().map(ToString::to_string);
        Self {
            id: arg.get_id().to_string(),
            long: arg.get_long().map(Into::into),
            short: arg.get_short(),
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            heading: arg.get_help_heading().map(Into::into),
            value_names: if takes_values { value_names.collect() } else { Vec::new() },
            defaults: if takes_values { defaults.collect() } else { Vec::new() },
            possible_values: values.iter().filter(|value| !value.is_hide_set()).map(value).collect(),
            takes_values,
            is_list: matches!(arg.get_action(), ArgAction::Append),
            is_required: arg.is_required_set(),
            is_hidden: arg.is_hide_set(),
        }
    }
}

impl CommandDefinition {
    /// Converts the definition to a clap command with its help texts and flags. Its texts live as
    /// long as the program.
    pub fn into_command(self) -> Command {
        let command = Command::new(leak(self.name)).about(leak(self.about));
        let command = match self.after_help {
            Some(text) => command.after_help(leak(text)),
            None => command,
        };
        command.args(self.args.into_iter().filter(|arg| arg.id != "help").map(ArgDefinition::into_arg))
    }
}

impl ArgDefinition {
    fn into_arg(self) -> Arg {
        let mut arg = Arg::new(leak(self.id)).help(leak(self.help)).hide(self.is_hidden);
        arg = arg.required(self.is_required).help_heading(self.heading.map(leak));
        if let Some(long) = self.long {
            arg = arg.long(leak(long));
        }
        if let Some(short) = self.short {
            arg = arg.short(short);
        }
        if !self.takes_values {
            return arg.action(ArgAction::SetTrue);
        }
        arg = arg.action(if self.is_list { ArgAction::Append } else { ArgAction::Set });
        if !self.value_names.is_empty() {
            arg = arg.value_names(self.value_names.into_iter().map(leak));
        }
        if !self.possible_values.is_empty() {
            let value = |(name, help): (String, String)| {
                let value = PossibleValue::new(leak(name));
                if help.is_empty() { value } else { value.help(leak(help)) }
            };
            arg = arg.value_parser(self.possible_values.into_iter().map(value).collect::<Vec<_>>());
        }
        arg.default_values(self.defaults.into_iter().map(leak))
    }
}

fn leak(text: String) -> &'static str {
    text.leak()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RunCommand;
    use clap::Args;

    #[test]
    fn definition_of_a_command_gives_the_same_definition() {
        let run = RunCommand::augment_args(Command::new("run").about("Run").after_help("Examples"));
        let definition = CommandDefinition::from(&run);
        assert!(definition.args.len() > 40);
        let json = serde_json::to_string(&definition).unwrap();
        let again: CommandDefinition = serde_json::from_str(&json).unwrap();
        assert_eq!(CommandDefinition::from(&again.into_command()), definition);
    }
}

//! Suggests the most similar command for an unknown one, where clap suggests none: `rnu` for `run`.

use clap::error::{ContextKind, ContextValue};
use planner::config::nearest;

/// Adds the most similar command to the error about an unknown one, where clap suggests none.
pub fn with_suggestion(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && error.get(ContextKind::SuggestedSubcommand).is_none()
    {
        let all = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        if let Some(near) = nearest(name, all.map(clap::Command::get_name)) {
            let near = ContextValue::Strings(vec![near.to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, near);
        }
    }
    error
}

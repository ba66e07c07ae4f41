//! `launcher completions` and `launcher man`: shell completions and man pages from the command
//! line's definition.

use crate::cli::{self, CompletionsFlags, ManFlags};
use crate::output;
use anyhow::{Context, Result};
use std::io::Write;
use std::process::ExitCode;

pub fn completions(flags: &CompletionsFlags) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(flags.shell, &mut cli::command(), flags.name.clone(), &mut text);
    output::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual's main page, or writes all pages.
pub fn man(flags: &ManFlags) -> Result<ExitCode> {
    // Without it each command has a second page, for `help COMMAND`.
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    match &flags.out {
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(command).render(&mut text)?;
            output::stdout().write_all(&text)?;
        }
        Some(folder) => {
            let cannot = || format!("cannot write {}", folder.display());
            std::fs::create_dir_all(folder).with_context(cannot)?;
            clap_mangen::generate_to(command, folder).with_context(cannot)?;
            writeln!(output::stdout(), "man pages written to {}", folder.display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

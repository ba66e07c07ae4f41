//! `launcher clean`: removes shared memory and cgroups that dead runs and queues left.

use crate::cli::CleanFlags;
use anyhow::{Context, Result};
use record::numbers::counted;
use record::screen::{self, print_warning};
use runtime::clean::{self, CleanScope};
use std::io::Write;
use std::process::ExitCode;

/// Runs `launcher clean`: removes the files of ended runs in `/dev/shm` and their cgroups.
pub fn clean(flags: CleanFlags) -> Result<ExitCode> {
    let scope = if flags.dry_run { CleanScope::Nothing } else { CleanScope::Everything };
    let cleaned = clean::clean(scope).context("cannot look into /dev/shm")?;
    let mut out = screen::stdout();
    if flags.dry_run {
        cleaned.removed.iter().chain(&cleaned.cgroups).try_for_each(|name| writeln!(out, "{name}"))?;
    }
    let (verb, others) = (if flags.dry_run { "would be removed" } else { "removed" }, cleaned.others);
    let others = if others == 0 { String::new() } else { format!(", {others} of other users left alone") };
    let cgroups = match cleaned.cgroups.len() {
        0 => String::new(),
        count => format!(" and {}", counted(count as u64, "cgroup")),
    };
    writeln!(
        out,
        "{}{cgroups} {verb}, {} of active runs kept{others}",
        counted(cleaned.removed.len() as u64, "segment"),
        cleaned.kept
    )?;
    for failed in &cleaned.failed {
        print_warning(&format!("error: {failed}"));
    }
    Ok(if cleaned.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

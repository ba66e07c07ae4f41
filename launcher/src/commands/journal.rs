//! `launcher journal`: lists, verifies, dumps, follows and cuts journals.

use super::journal_record::describer;
use crate::cli::{JournalAction, JournalFlags, RecordFormat};
use anyhow::{Result, anyhow};
use journal::tool::{self, DumpFormat, ToolError};
use planner::config::UsageError;
use record::numbers::counted;
use record::screen;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Runs `launcher journal`: lists, checks or prints a journal (a role's write-ahead log), or
/// truncates it at the first damaged record.
pub fn journal(flags: &JournalFlags) -> Result<ExitCode> {
    let JournalFlags { action: act, path, from, format } = flags;
    if (from.is_some() || *format != RecordFormat::Text)
        && !matches!(act, JournalAction::Dump | JournalAction::Follow)
    {
        return Err(UsageError("--from and --format are for dump and follow".into()).into());
    }
    if let Err(error) = std::fs::metadata(path) {
        return Err(UsageError(format!("{}: cannot be read: {error}", path.display())).into());
    }
    if !tool::is_journal(path)? {
        return Err(anyhow!("{}: not a journal: it has no segment and no snapshot", path.display()));
    }
    let form = match format {
        RecordFormat::Text => DumpFormat::Text,
        RecordFormat::Json => DumpFormat::Json,
        RecordFormat::Csv => DumpFormat::Csv,
    };
    let describe = describer(tool::folder(path));
    let mut out = screen::stdout();
    let is_whole = match act {
        JournalAction::List => tool::list(path, &mut out).map(|()| true),
        JournalAction::Verify => tool::verify(path, &mut out),
        JournalAction::Dump => {
            tool::dump_described(path, *from, form, &mut out, describe, || false).map(|_| true)
        }
        JournalAction::Follow => {
            let goes_on = || {
                std::thread::sleep(POLL_INTERVAL);
                true
            };
            tool::dump_described(path, *from, form, &mut out, describe, goes_on).map(|_| true)
        }
        JournalAction::Cut => match tool::cut(path) {
            Ok(left) => {
                writeln!(
                    out,
                    "left: {}; the removed part is kept as orphaned-* in the same folder",
                    counted(left, "record")
                )?;
                Ok(true)
            }
            Err(error) => Err(error),
        },
    };
    match is_whole {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        // Unchanged: a closed pipe is recognized by the kind of its error.
        Err(ToolError::Output(error)) => Err(error.into()),
        Err(error) => Err(anyhow!(error)),
    }
}

//! `launcher journal`: what people do with a journal's folder.

use crate::cli::{JournalAct, JournalFlags, RecordFormat};
use crate::config::UsageError;
use crate::output;
use crate::runtime::signals::{self, Signals};
use anyhow::{Context as _, Result, anyhow};
use journal::tool::{self, DumpFormat, ToolError};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// How often a followed journal is looked at where nothing new is there.
const LOOK: Duration = Duration::from_millis(1);

/// One that is blocked in a write that nobody reads ends so long after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// Does what the flags say.
pub fn journal(flags: &JournalFlags) -> Result<ExitCode> {
    let JournalFlags { act, path, from, format } = flags;
    if (from.is_some() || *format != RecordFormat::Text)
        && !matches!(act, JournalAct::Dump | JournalAct::Follow)
    {
        return Err(UsageError("--from and --format are for dump and follow".into()).into());
    }
    std::fs::metadata(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    if !tool::is_journal(path)? {
        return Err(anyhow!("{}: there is no journal: no segment and no snapshot", path.display()));
    }
    let form = match format {
        RecordFormat::Text => DumpFormat::Text,
        RecordFormat::Json => DumpFormat::Json,
        RecordFormat::Csv => DumpFormat::Csv,
    };
    let mut out = output::stdout();
    let is_whole = match act {
        JournalAct::List => tool::list(path, &mut out).map(|()| true),
        JournalAct::Verify => tool::verify(path, &mut out),
        JournalAct::Dump => tool::dump(path, *from, form, &mut out, || false).map(|_| true),
        JournalAct::Follow => {
            let signals = Signals::catch().context("cannot catch Ctrl-C")?;
            signals::end_anyway(GRACE);
            let goes_on = || {
                std::thread::sleep(LOOK);
                signals.take() == 0
            };
            tool::dump(path, *from, form, &mut out, goes_on).map(|_| true)
        }
        JournalAct::Cut => match tool::cut(path) {
            Ok(left) => {
                writeln!(out, "{left} records are left; the removed part is kept as orphaned-*")?;
                Ok(true)
            }
            Err(error) => Err(error),
        },
    };
    match is_whole {
        Ok(true) => Ok(signals::exit_code_of_reader()),
        Ok(false) => Ok(ExitCode::FAILURE),
        // As it is: a reader that hangs up is told by the kind of its error.
        Err(ToolError::Output(error)) => Err(error.into()),
        Err(error) => Err(anyhow!(error)),
    }
}

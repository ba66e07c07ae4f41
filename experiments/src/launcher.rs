//! Makes a run of an experiment by calling `launcher run`, and reads the run's folder.

use crate::caller;
use anyhow::{Context, Result, anyhow};
use merge::MergeError;
use planner::config::{Settings, UsageError};
use planner::host::signals::{Interrupted, Signals, is_end_requested};
use protocol::plan::{Fault, FaultKind};
use record::document::Document;
use record::logfile::LogFault;
use record::run::{RunOutcome, RunRecord};
use record::screen::print_warning;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use system::process;
use verdict::summary::Summary;

/// The exit code of a launcher that refused its command line.
const USAGE: i32 = 2;
/// How long a wait for a run lasts before a termination signal is looked for again.
const PAUSE: Duration = Duration::from_millis(500);

/// How an experiment makes its runs.
pub(super) struct Launcher<'a> {
    /// Whether a kernel that lacks a sandbox feature is accepted.
    pub weaker_sandbox: bool,
    /// Maximum time for the processes of a run to become ready.
    pub start_timeout: Duration,
    pub signals: &'a Signals,
}

/// A run that was made: its folder, and what is saved there.
pub(super) struct LaunchedRun {
    pub folder: PathBuf,
    pub outcome: RunOutcome,
    /// The run's summary, or the log that its fault overwrote, so that no log has the orders.
    pub summary: Result<Summary, DestroyedLog>,
}

/// Why a run has no summary: a log that its fault overwrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DestroyedLog {
    /// Description of the log and its damage: `engine.stamps: record 0 … overwritten`.
    pub what: String,
    /// The launcher's error message.
    pub error: String,
}

impl DestroyedLog {
    /// Finds the log of a run that a fault of its plan overwrote, by reading the logs again.
    /// `None`: the run has no summary for another reason, and the launcher's error states it.
    fn find(folder: &Path, record: &RunRecord, error: &str) -> Option<Self> {
        let can_destroy = |fault: &Fault| {
            fault.kind.is_wild_write() || matches!(fault.kind, FaultKind::Scribble | FaultKind::ForgeHeader)
        };
        if !record.plan.faults.iter().any(can_destroy) {
            return None;
        }
        match merge::merge(folder, record, |_, _| {}) {
            Err(MergeError::Log(damage)) if damage.fault == LogFault::Invalid => {
                let whole = damage.to_string();
                let prefix = format!("{}/", folder.display());
                let what = whole.strip_prefix(&prefix).unwrap_or(&whole).to_owned();
                Some(Self { what, error: error.to_owned() })
            }
            _ => None,
        }
    }
}

/// What a launcher left when it ended.
struct Ended {
    status: ExitStatus,
    stdout: String,
    error: String,
}

impl Launcher<'_> {
    /// Makes one run of an experiment with these settings. A termination signal ends it at once.
    ///
    /// # Errors
    /// [`UsageError`] if the settings are refused, [`Interrupted`] after a termination signal, or
    /// any reason why no run was made.
    pub fn run(&self, settings: &Settings) -> Result<LaunchedRun> {
        Interrupted::check()?;
        let mut command = caller::launcher();
        command.args(["run", "--quiet", "--start-timeout"]);
        command.arg(format!("{}ns", self.start_timeout.as_nanos()));
        if self.weaker_sandbox {
            command.arg("--allow-weaker-sandbox");
        }
        let Ended { status, stdout, error } = self.wait_for(command.args(flags(settings)))?;
        match stdout.lines().next().map(PathBuf::from) {
            Some(folder) if error.is_empty() || folder.join(Summary::FILE).exists() => {
                let (record, summary) = (RunRecord::read(&folder)?, Summary::read(&folder)?);
                Ok(LaunchedRun { folder, outcome: record.outcome, summary: Ok(summary) })
            }
            Some(folder) if !is_end_requested() => {
                let record = RunRecord::read(&folder).ok();
                let destroyed =
                    record.as_ref().and_then(|record| DestroyedLog::find(&folder, record, &error));
                match record.zip(destroyed) {
                    Some((RunRecord { outcome, .. }, why)) => {
                        Ok(LaunchedRun { folder, outcome, summary: Err(why) })
                    }
                    None => Err(anyhow!(error)),
                }
            }
            _ if is_end_requested() => Err(Interrupted.into()),
            _ if status.code() == Some(USAGE) => Err(UsageError(error).into()),
            _ if error.is_empty() => Err(anyhow!("launcher run ended without a run: {status}")),
            _ => Err(anyhow!(error)),
        }
    }

    /// Runs a command of the launcher. A termination signal ends it. Its standard error is passed
    /// on, except for its error message.
    fn wait_for(&self, command: &mut Command) -> Result<Ended> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        process::die_with_starter(command);
        let mut child = command.spawn().context("cannot start the launcher")?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            let stdout = scope.spawn(|| read_all(stdout));
            let error = scope.spawn(|| stderr.map_or_else(String::new, pass_on));
            let status = self.end_with_signals(&mut child)?;
            let text = |text: ScopedJoinHandle<'_, String>| text.join().unwrap_or_default();
            Ok(Ended { status, stdout: text(stdout), error: text(error) })
        })
    }

    /// Waits for the end of a launcher, which a termination signal brings about at once.
    fn end_with_signals(&self, child: &mut Child) -> Result<ExitStatus> {
        let pidfd = process::pidfd_open(child.id())?;
        let mut is_asked = false;
        loop {
            if is_end_requested() && !is_asked {
                is_asked = true;
                // Two signals, which differ so that none is lost, end a run at once.
                let _ = process::interrupt(pidfd.as_fd()).and_then(|()| process::terminate(pidfd.as_fd()));
            }
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let fds = [pidfd.as_fd(), self.signals.as_fd()];
            process::wait_readable(&fds[..if is_asked { 1 } else { 2 }], PAUSE)?;
        }
    }
}

fn read_all(output: Option<impl Read>) -> String {
    let mut text = String::new();
    // What was read before an error is kept.
    let _ = output.map(|mut output| output.read_to_string(&mut text));
    text
}

/// Prints the lines of a launcher's standard error up to its error message, which is the last, and
/// returns that.
fn pass_on(stderr: impl Read) -> String {
    let mut error: Option<String> = None;
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        match (&mut error, line.strip_prefix("error: ")) {
            (Some(error), None) => *error = format!("{error}\n{line}"),
            (Some(error), Some(next)) => *error = format!("{error}\n{next}"),
            (none, Some(first)) => *none = Some(first.to_owned()),
            (None, None) => print_warning(&line),
        }
    }
    error.unwrap_or_default()
}

/// Returns the flags of one run with these settings.
fn flags(settings: &Settings) -> Vec<String> {
    let one = Settings { repeats: None, ..settings.clone() };
    one.texts().into_iter().map(|(key, text)| format!("--{}={text}", key.replace('_', "-"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use planner::config::RunCommand;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        run: RunCommand,
    }

    #[test]
    fn flags_of_a_run_are_its_settings() {
        let texts = [
            ("technique", "array-queue"),
            ("isolation", "thread,process,sandbox"),
            ("strategy", "maker,taker,exec:./mine --fast"),
            ("fault", "kill@push:claimed:500"),
            ("on_death", "restart"),
            ("window", "250ms"),
            ("delay", "fixed:1ms"),
            ("seed", "7"),
            ("huge_pages", "on"),
        ];
        let texts = texts.iter().map(|(key, text)| ((*key).into(), (*text).into())).collect();
        let settings = Settings::from_texts(&texts).unwrap();
        let arguments = ["run".to_owned()].into_iter().chain(flags(&settings));
        let parsed = TestCommandLine::try_parse_from(arguments).unwrap().run.run.settings().unwrap();
        assert_eq!(parsed, settings);
    }

    #[test]
    fn error_message_of_a_launcher_is_returned() {
        let stderr = "note: x\nerror: --orders 0: none\nUse more\n";
        assert_eq!(pass_on(stderr.as_bytes()), "--orders 0: none\nUse more");
        assert_eq!(pass_on("note: x\n".as_bytes()), "");
    }
}

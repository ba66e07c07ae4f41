//! The process that makes the runs of a benchmark: `launcher benchmark`, which reads requests.

use crate::caller;
use anyhow::{Context, Error, Result, anyhow, bail};
use planner::config::UsageError;
use planner::host::signals::Interrupted;
use protocol::status::LOG_OFFSET;
use record::benchmark::{
    BenchmarkFailure, BenchmarkReply, BenchmarkRequest, FailureKind, RunReply, read_line, read_words,
    write_line, write_words,
};
use shm::memory::ReadOnlyWords;
use std::io::{BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use system::process;

/// A process that makes runs of a benchmark, one after the other. It ends when this value is
/// dropped, or with the thread that started it.
pub(super) struct BenchmarkProcess {
    child: Child,
    pidfd: OwnedFd,
    /// Its stdin and its stdout; closed before it is waited for.
    pipes: Option<(ChildStdin, BufReader<ChildStdout>)>,
    /// A request has no reply yet.
    is_busy: bool,
}

/// A run that was made, with the words of its memory.
pub(super) struct RunMemory {
    pub(super) reply: RunReply,
    /// Status, counters and results of each thread; empty if an end was never ready.
    pub(super) threads: Vec<(ReadOnlyWords, Option<ReadOnlyWords>)>,
    pub(super) board: Option<ReadOnlyWords>,
}

impl BenchmarkProcess {
    /// Starts the process in a process group of its own: Ctrl-C reaches it through
    /// [`BenchmarkProcess::interrupt`] alone.
    pub(super) fn start() -> Result<Self> {
        let mut command = caller::launcher();
        command.arg("benchmark").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        process::die_with_starter(&mut command);
        let mut child = command.spawn().context("cannot start launcher benchmark")?;
        let pidfd = process::pidfd_open(child.id())?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let pipes = pipes.map(|(input, output)| (input, BufReader::new(output)));
        Ok(Self { child, pidfd, pipes, is_busy: false })
    }

    /// Sends a request, with the due times of a board's writes.
    pub(super) fn send(&mut self, request: &BenchmarkRequest, write_times: &[u64]) -> Result<()> {
        let (input, _) = self.pipes.as_mut().context("launcher benchmark has no pipes")?;
        let mut line = Vec::new();
        write_line(&mut line, request)?;
        let sent = input.write_all(&line).and_then(|()| write_words(input, write_times.iter().copied()));
        self.is_busy = true;
        sent.map_err(|error| self.describe_end(error.into()))
    }

    /// Waits for the reply to a run.
    ///
    /// # Errors
    /// Those of the run, as the process describes them ([`failure`]), or that the process ended.
    pub(super) fn receive_run(&mut self) -> Result<RunMemory> {
        match self.receive()? {
            BenchmarkReply::Run(reply) => {
                let memory = self.read_memory(*reply);
                self.is_busy = false;
                memory.map_err(|error| self.describe_end(error))
            }
            BenchmarkReply::Failed(failed) => Err(failure(failed)),
            BenchmarkReply::HasContainers => bail!("launcher benchmark replied to another request"),
        }
    }

    /// Waits for the line of a reply.
    fn receive(&mut self) -> Result<BenchmarkReply> {
        let (_, output) = self.pipes.as_mut().context("launcher benchmark has no pipes")?;
        let reply = match read_line(output) {
            Ok(Some(reply)) => reply,
            Ok(None) => return Err(self.describe_end(anyhow!("no reply"))),
            Err(error) => return Err(self.describe_end(error.into())),
        };
        self.is_busy = matches!(reply, BenchmarkReply::Run(_));
        Ok(reply)
    }

    /// Reads the words that follow the reply to a run.
    fn read_memory(&mut self, reply: RunReply) -> Result<RunMemory> {
        let (_, output) = self.pipes.as_mut().context("launcher benchmark has no pipes")?;
        let mut threads = Vec::new();
        for results in &reply.result_words {
            let thread = read_words(output, LOG_OFFSET)?;
            threads.push((thread, results.map(|count| read_words(output, count)).transpose()?));
        }
        let board = reply.board_words.map(|count| read_words(output, count)).transpose()?;
        Ok(RunMemory { reply, threads, board })
    }

    /// Returns the error that the process is not usable: how it ended, if it has, or `error`.
    fn describe_end(&mut self, error: Error) -> Error {
        self.pipes = None;
        let pid = self.child.id();
        // Closed pipes end it, unless its run goes on.
        let _ = process::terminate(self.pidfd.as_fd());
        match self.child.wait() {
            Ok(status) if !status.success() => {
                anyhow!("launcher benchmark (pid {pid}), which makes the runs, ended: {status}")
            }
            _ => error.context(format!("launcher benchmark (pid {pid}), which makes the runs")),
        }
    }

    /// Ends the run of the process as Ctrl-C does.
    pub(super) fn interrupt(&self) {
        // One that has ended has nothing to interrupt.
        let _ = process::terminate(self.pidfd.as_fd());
    }

    /// Checks that containers can be started here.
    ///
    /// # Errors
    /// A [`UsageError`] that names what is missing.
    pub(super) fn check_containers(weaker_sandbox: bool) -> Result<()> {
        let mut process = Self::start()?;
        process.send(&BenchmarkRequest::CheckContainers { weaker_sandbox }, &[])?;
        match process.receive()? {
            BenchmarkReply::HasContainers => Ok(()),
            BenchmarkReply::Failed(failed) => Err(failure(failed)),
            BenchmarkReply::Run(_) => bail!("launcher benchmark replied to another request"),
        }
    }
}

impl AsFd for BenchmarkProcess {
    /// Returns the descriptor that becomes readable with the reply, or when the process ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipes.as_ref().map_or(self.pidfd.as_fd(), |(_, output)| output.get_ref().as_fd())
    }
}

impl Drop for BenchmarkProcess {
    fn drop(&mut self) {
        if self.is_busy {
            self.interrupt();
        }
        self.pipes = None;
        let _ = self.child.wait();
    }
}

/// Returns the error of a request, with its causes.
fn failure(failed: BenchmarkFailure) -> Error {
    let BenchmarkFailure { kind, mut causes } = failed;
    let root = causes.pop().unwrap_or_default();
    let root = match kind {
        FailureKind::Usage => UsageError(root).into(),
        FailureKind::Interrupted => Interrupted.into(),
        FailureKind::Other => anyhow!(root),
    };
    causes.into_iter().rev().fold(root, Error::context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_keeps_kind_and_causes() {
        let causes = ["a", "b", "c"].map(String::from).to_vec();
        let error = failure(BenchmarkFailure { kind: FailureKind::Usage, causes: causes.clone() });
        assert!(error.is::<UsageError>());
        assert_eq!(error.chain().map(ToString::to_string).collect::<Vec<_>>(), causes);
        let error = failure(BenchmarkFailure { kind: FailureKind::Interrupted, causes });
        assert!(error.is::<Interrupted>() && !error.is::<UsageError>());
    }
}

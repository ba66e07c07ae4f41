//! The handle of a started process: its pidfd, output and exit status. A process executes this
//! executable or a program, and is killed and reaped through the handle.

use crate::container::{self, ContainerHandle};
use crate::usage::ProcessAccount;
use anyhow::{Context, Result};
use protocol::plan::Trading;
use protocol::supervision::ProofOfDeath;
use protocol::trading::{KIND_VARIABLE, PROCESS_VARIABLE, RUN_VARIABLE};
use record::numbers::duration;
use shm::memory::sealed;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use system::folder::{append_regular, open_regular};
use system::process;
use system::start::StartConditions;

/// Maximum time between SIGKILL and exit; for a container, that of its shim.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// Time after SIGKILL from which on a tracer may be why the process has not ended.
const TRACER_CHECK: Duration = Duration::from_millis(20);
/// Maximum time to wait for any exit. A process that the kernel does not end by then is left to it.
const REAP_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a process's stderr is searched for its last message, in bytes.
const TAIL_BYTES: u64 = 64 << 10;

/// Opens the file for stderr. A restarted strategy keeps its predecessors' messages.
fn open_output(path: &Path) -> Result<File> {
    append_regular(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads the last bytes of a file without blocking: the process may have replaced it by any kind of
/// file, or have written without end.
fn read_tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns `true` for a line of a backtrace.
fn is_frame(line: &str) -> bool {
    let line = line.trim();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < line.len() && number.starts_with(": ");
    is_numbered || ["at ", "note: ", "stack backtrace:"].iter().any(|front| line.starts_with(front))
}

const MAX_HEX_BYTES: usize = 48;

/// Returns a line that a process wrote: text as it is, else in quotes, as `"\x1b[2J\xff"`.
fn shown_line(line: &[u8]) -> String {
    match std::str::from_utf8(line.trim_ascii_end()) {
        Ok(text) if !text.chars().any(|c| c.is_control() && c != '\t') => text.to_owned(),
        _ if line.len() > MAX_HEX_BYTES => format!("\"{}…\"", line[..MAX_HEX_BYTES].escape_ascii()),
        _ => format!("\"{}\"", line.escape_ascii()),
    }
}

/// A process of the run, owned by the launcher: its handle, name and standard error.
pub struct Process {
    /// Name of the process in the plan.
    pub name: String,
    child: Child,
    pidfd: OwnedFd,
    /// The process inside the container, if the child is a container shim.
    container: Option<ContainerHandle>,
    container_failure: Option<String>,
    killed: Cell<Option<Instant>>,
    /// How the process ended; `None` while it runs.
    pub status: Option<ExitStatus>,
    /// It has ended, but its tracer keeps this process from waiting for it.
    is_kept: bool,
    /// The kernel has not dismantled it: it counts as ended since its threads are all exiting.
    is_dismantled_later: bool,
    /// How it ends, with the proof of its death, once its threads are all exiting.
    early_exit: Option<(ExitStatus, ProofOfDeath)>,
    /// It executes a user's program.
    is_program: bool,
    stderr: PathBuf,
    /// Kernel accounts of the process and of its predecessors.
    pub account: ProcessAccount,
    /// It had to be killed this long after it was asked to end.
    overdue: Option<Duration>,
    /// The limit that has killed it; `Some(None)` if none has, `None` while it runs.
    met_limit: Option<Option<String>>,
}

/// The parameters with which a process that runs roles of the plan is started.
pub struct RoleProcess<'a> {
    /// Name of the process in the plan.
    pub name: &'a str,
    /// Address of the run's control segment.
    pub address: &'a str,
    /// The process's own copy of the executable; `None`: it runs from the launcher's.
    pub executable: Option<PathBuf>,
    /// The files whose descriptors the process inherits; it inherits no others.
    pub inherited: Vec<&'a File>,
    /// The kind of the process's strategy, if it differs from the plan's.
    pub kind: Option<&'a str>,
    /// Limits, user and other conditions that are set before the process executes anything.
    pub conditions: StartConditions,
}

impl RoleProcess<'_> {
    fn command(&self) -> Command {
        let mut command = container::role_command_of(self.name, self.executable.as_deref());
        command.envs(kind_variable(self.name, self.kind));
        command
    }
}

/// Returns the environment variable that tells a process its kind.
fn kind_variable(name: &str, kind: Option<&str>) -> Option<(&'static str, String)> {
    kind.map(|kind| (KIND_VARIABLE, format!("{name}={kind}")))
}

impl Process {
    /// Starts a process of a run: the launcher's executable with the arguments `role NAME ADDRESS`,
    /// where ADDRESS is that of the run's control segment. Its stderr goes to `NAME.stderr` in the
    /// folder.
    pub fn start(role: RoleProcess<'_>, folder: &Path) -> Result<Self> {
        let stderr = folder.join(format!("{}.stderr", role.name));
        Self::start_with(role, &stderr, Stdio::null())
    }

    /// Starts a process as [`Process::start`] does, with a path for stderr and a standard input.
    pub(super) fn start_with(role: RoleProcess<'_>, stderr: &Path, stdin: Stdio) -> Result<Self> {
        let mut command = role.command();
        command.args([role.name, role.address]).stdin(stdin).stdout(Stdio::null());
        command.stderr(open_output(stderr)?);
        role.conditions.apply(&mut command);
        Self::spawn(role.name, command, stderr, &role.inherited)
    }

    /// Starts a user's program as a process of the run; the program finds the run through its
    /// environment. Its stdout and stderr go to `NAME.stderr` in the folder. `will_start` extends
    /// the command with what happens before `exec`.
    pub fn start_program(
        program: &str,
        will_start: impl FnOnce(&mut Command),
        role: RoleProcess<'_>,
        folder: &Path,
    ) -> Result<Self> {
        let RoleProcess { name, address, kind, .. } = role;
        let stderr = folder.join(format!("{name}.stderr"));
        let log = open_output(&stderr)?;
        let mut arguments = program.split_whitespace();
        let mut command = Command::new(arguments.next().unwrap_or_default());
        command
            .args(arguments)
            .env(RUN_VARIABLE, address)
            .env(PROCESS_VARIABLE, name)
            .envs(kind_variable(name, kind))
            .stdin(Stdio::null())
            .stdout(log.try_clone().with_context(|| format!("cannot write {}", stderr.display()))?)
            .stderr(log);
        will_start(&mut command);
        // First, since another user loses its parent-death signal.
        role.conditions.apply(&mut command);
        // The program may never attach and set this itself.
        process::die_with_starter(&mut command);
        let started = Self::spawn(name, command, &stderr, &role.inherited)
            .with_context(|| format!("{}{program}", Trading::PROGRAM))?;
        Ok(Self { is_program: true, ..started })
    }

    /// Starts a strategy, built in or a user's program, in a container of its own. Its output goes
    /// to `NAME.stderr` in the folder. It inherits the given descriptors and no others. If the
    /// container cannot be created, the process has exited or is about to:
    /// [`Process::container_failure`].
    pub fn start_contained(role: RoleProcess<'_>, folder: &Path) -> Result<Self> {
        let stderr = folder.join(format!("{}.stderr", role.name));
        let log = open_output(&stderr)?;
        let said_before = log.metadata().map_or(0, |file| file.len());
        let mut command = role.command();
        command.args([container::FLAG, role.name, role.address]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        role.conditions.apply(&mut command);
        let mut process = Self::spawn(role.name, command, &stderr, &role.inherited)?;
        let (inside, made) = ContainerHandle::from_shim(&mut process.child);
        process.container = inside;
        if let Err(why) = made {
            let says_why = std::fs::metadata(&stderr).is_ok_and(|file| file.len() > said_before);
            let message = if says_why { process.stderr_tail() } else { format!("{why:#}") };
            process.container_failure = Some(message);
            process.end();
        }
        Ok(process)
    }

    /// Returns the reason why the process's container could not be created; `None` if it could.
    pub fn container_failure(&self) -> Option<&str> {
        self.container_failure.as_deref()
    }

    fn spawn(name: &str, mut command: Command, stderr: &Path, inherited: &[&File]) -> Result<Self> {
        // Ctrl-C on the terminal is for the launcher, which drains the run.
        command.process_group(0);
        let account = ProcessAccount::begin();
        let child = sealed::inherited_by(inherited, || command.spawn()).map_err(|error| {
            // The kernel's answer to a process that enters a cgroup which was removed.
            let is_without_cgroup = error.raw_os_error() == Some(nix::libc::ENODEV);
            let why = if is_without_cgroup { ": another program has removed its cgroup" } else { "" };
            anyhow::Error::new(error).context(format!("cannot start process {name}{why}"))
        })?;
        let process = Self::watch(name, child, stderr.to_owned(), process::pidfd_open)?;
        Ok(Self { account, ..process })
    }

    /// Watches a new child. One that cannot be watched is killed: its exit would not be noticed.
    fn watch(
        name: &str,
        mut child: Child,
        stderr: PathBuf,
        open: impl FnOnce(u32) -> io::Result<OwnedFd>,
    ) -> Result<Self> {
        match open(child.id()) {
            Ok(pidfd) => {
                let account = ProcessAccount::begin();
                Ok(Self {
                    name: name.to_owned(),
                    child,
                    pidfd,
                    container: None,
                    container_failure: None,
                    killed: Cell::new(None),
                    status: None,
                    is_kept: false,
                    is_dismantled_later: false,
                    early_exit: None,
                    is_program: false,
                    stderr,
                    account,
                    overdue: None,
                    met_limit: None,
                })
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error).with_context(|| format!("cannot watch process {name}"))
            }
        }
    }

    /// Kills the process unless it has exited; with a container, also every process inside. The
    /// signal goes through the pidfd: it reaches this process or none.
    pub fn kill(&self) {
        self.killed.set(self.killed.get().or_else(|| Some(Instant::now())));
        self.send(process::kill, self.container.as_ref().map(ContainerHandle::init));
    }

    /// Stops the process by SIGSTOP.
    pub fn stop(&self) {
        self.send(process::stop, self.container.as_ref().map(ContainerHandle::main));
    }

    fn send(&self, signal: fn(BorrowedFd<'_>) -> io::Result<()>, to: Option<&OwnedFd>) {
        if self.status.is_none() {
            // The process may have exited just now: not an error.
            let _ = signal(to.unwrap_or(&self.pidfd).as_fd());
        }
    }

    /// Returns `true` if free locks of its threads may prove that the process is dead before the
    /// kernel reports its exit. They may not in containers or for users' programs, nor after the
    /// exit was recorded.
    pub const fn can_prove_death_early(&self) -> bool {
        self.status.is_none() && !self.is_program && self.container.is_none()
    }

    /// Kills the process, and returns the number of its threads and how many of them are exiting.
    pub fn observe_exiting(&mut self) -> io::Result<(usize, usize)> {
        let (found, proof) = ProofOfDeath::confirm_exiting(self.pidfd.as_fd())?;
        // The kernel shows a status of 0 to those who may not see it.
        let status = found.status.filter(|status| !status.success());
        self.early_exit = status.zip(proof);
        Ok((found.count, if found.is_all() && self.early_exit.is_none() { 0 } else { found.exiting }))
    }

    /// Records the exit of the process once all its threads were found exiting, before the kernel
    /// has dismantled it.
    pub fn conclude_exit(&mut self) {
        if let (None, Some((status, _))) = (self.status, &self.early_exit) {
            (self.status, self.is_dismantled_later) = (Some(*status), true);
            self.account.record_exit(self.child.id());
        }
    }

    /// Returns `true` if the process's death was proven before the kernel had dismantled it.
    pub const fn has_exited_early(&self) -> bool {
        self.status.is_some() && self.early_exit.is_some()
    }

    /// Returns proof that the process, and all inside its container, are dead; `None` if some may
    /// run. The shim of a container may have exited before the processes inside.
    pub fn proof_of_death(&self) -> io::Result<Option<ProofOfDeath>> {
        if let Some((_, proof)) = self.early_exit.as_ref().filter(|_| self.has_exited_early()) {
            return Ok(Some(proof.clone()));
        }
        let inside = self.container.as_ref().map(|inside| ProofOfDeath::confirm(inside.init().as_fd()));
        if let Some(None) = inside.transpose()? {
            return Ok(None);
        }
        ProofOfDeath::confirm(self.pidfd.as_fd())
    }

    /// Returns the process id of the role's process, as seen outside of any container.
    pub fn pid(&self) -> u32 {
        self.container.as_ref().and_then(|inside| inside.pid).unwrap_or_else(|| self.child.id())
    }

    /// Returns the process id of the launcher's started child, which may be the shim of a
    /// container.
    pub fn child_pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the last lines of the process's stderr, at most three, joined into one; backtraces
    /// are skipped. A line that is not text is shown in quotes, with its bytes in hexadecimal.
    pub fn stderr_tail(&self) -> String {
        let bytes = read_tail(&self.stderr).unwrap_or_default();
        let lines: Vec<String> = bytes
            .split(|byte| *byte == b'\n')
            .map(shown_line)
            .filter(|line| !line.trim().is_empty() && !is_frame(line))
            .collect();
        lines[lines.len().saturating_sub(3)..].join(" · ")
    }

    /// Returns the pidfd of the process, which is readable once the process has exited.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Reaps the process if it has exited, without waiting.
    pub fn poll(&mut self) -> io::Result<()> {
        if self.status.is_none() {
            self.await_status(Duration::ZERO)?;
            if self.status.is_some() {
                // The kernel was quicker.
                self.early_exit = None;
            }
        } else if self.is_dismantled_later {
            self.reap_later(Duration::ZERO)?;
        } else if self.is_kept {
            // Until it is reaped, nobody else's orphans are.
            self.is_kept = self.child.try_wait()?.is_none();
        }
        if self.status.is_none() && self.killed.get().is_some_and(|since| since.elapsed() > KILL_TIMEOUT) {
            // A container shim that does not see the exit is stopped.
            let _ = process::kill(self.pidfd.as_fd());
        }
        Ok(())
    }

    /// Reaps the process if it exits within `at_most`. Before, reads the kernel's account, which
    /// reaping discards.
    ///
    /// The parent of a traced zombie cannot reap it before its tracer has let it go. No thread of
    /// it can write memory if its pidfd is readable, or if it was killed and all its threads are
    /// zombies (traced threads stay until their tracer has waited for them). So its exit status
    /// counts as soon as `/proc` shows it.
    fn await_status(&mut self, at_most: Duration) -> io::Result<()> {
        let ended = process::wait_readable(&[self.pidfd.as_fd()], at_most);
        let has_ended = ended.is_ok_and(|ended| ended.contains(&true));
        if has_ended {
            self.account.record_exit(self.pid());
        }
        self.status = self.child.try_wait()?;
        if self.status.is_none() && (has_ended || self.is_held_by_tracer()) {
            self.status = process::zombie_status(self.child.id());
            self.is_kept = self.status.is_some();
        }
        Ok(())
    }

    /// Reaps a process whose exit was concluded before, if the kernel has dismantled it within
    /// `at_most`.
    fn reap_later(&mut self, at_most: Duration) -> io::Result<()> {
        if process::wait_readable(&[self.pidfd.as_fd()], at_most)?[0] {
            self.account.record_exit(self.child.id());
            self.is_dismantled_later = false;
            self.is_kept = self.child.try_wait()?.is_none();
        }
        Ok(())
    }

    /// Returns `true` if a tracer may hold the process: it has ended and cannot be reaped, or it
    /// was killed and has not ended.
    pub fn is_held_by_tracer(&self) -> bool {
        let is_late = |since: Instant| since.elapsed() > TRACER_CHECK;
        self.is_kept || (self.status.is_none() && self.killed.get().is_some_and(is_late))
    }

    /// Records that the process has reached the start barrier.
    pub fn mark_ready(&mut self) {
        self.account.record_ready(self.child.id());
    }

    /// Records the current memory of the process, unless it has exited.
    pub fn sample_memory(&mut self) {
        if self.status.is_none() {
            self.account.sample_memory(self.child.id());
        }
    }

    /// Records how the memory of the process is mapped; with a container, that of the process
    /// inside. Returns its proportional set size in bytes.
    pub fn sample_mappings(&mut self) -> Option<u64> {
        let pid = self.pid();
        self.account.sample_mappings(pid)
    }

    /// Adds to the process's resource usage that of the predecessor that it replaces.
    #[must_use]
    pub fn continuing(self, earlier: &Self) -> Self {
        let account = self.account.continuing(earlier.account);
        Self { account, ..self }
    }

    /// Kills the process if it still runs, and reaps it, within a bounded time. An empty stderr
    /// file is removed.
    pub fn end(&mut self) {
        if self.status.is_none() {
            self.kill();
            let _ = self.await_status(KILL_TIMEOUT);
        }
        if self.status.is_none() {
            let _ = process::kill(self.pidfd.as_fd());
            let _ = self.await_status(REAP_TIMEOUT);
        } else if self.is_dismantled_later {
            let _ = self.reap_later(REAP_TIMEOUT);
        }
        self.wait_for_container();
        if std::fs::symlink_metadata(&self.stderr).is_ok_and(|file| file.len() == 0) {
            let _ = std::fs::remove_file(&self.stderr);
        }
    }

    /// Waits until everything in a container has ended whose shim exited first.
    fn wait_for_container(&self) {
        let Some(inside) = &self.container else { return };
        let (began, step) = (Instant::now(), Duration::from_millis(1));
        let is_there = || process::wait_readable(&[inside.init().as_fd()], step).is_ok_and(|ended| !ended[0]);
        while is_there() && began.elapsed() < KILL_TIMEOUT {
            let _ = process::kill(inside.init().as_fd());
        }
    }

    /// Kills and reaps, as [`Process::end`] does, a process that has not exited within the time
    /// `after` since it was asked to. If it has to be killed now, [`Process::exit_text`] mentions
    /// that time. A process that had already exited by itself was not killed.
    pub fn end_overdue(&mut self, after: Duration) {
        let ran = self.status.is_none();
        self.end();
        let killed = self.status.is_some_and(|status| status.signal() == Some(nix::libc::SIGKILL));
        self.overdue = Some(after).filter(|_| ran && killed);
    }

    /// Records once, after the process has exited, which resource limit has killed it. `find`
    /// returns it, given whether a signal has ended the process.
    pub fn record_met_limit(&mut self, find: impl FnOnce(bool) -> Option<String>) {
        if let Some(status) = self.status {
            self.met_limit.get_or_insert_with(|| find(status.signal().is_some()));
        }
    }

    /// Returns the text of how the process exited, with the resource limit that it met.
    pub fn exit_text(&self) -> String {
        let limit = self.met_limit.iter().flatten().map(|limit| format!("; {limit}"));
        limit.fold(self.exit_status_text(), |text, limit| text + &limit)
    }

    fn exit_status_text(&self) -> String {
        if let Some(why) = &self.container_failure {
            return format!("its container could not be made: {why}");
        }
        if let Some(after) = self.overdue {
            return format!("killed {} after it was asked to exit", duration(after.as_nanos() as u64));
        }
        let Some(status) = self.status else { return "still running".into() };
        match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => match signal_hook::low_level::signal_name(signal) {
                Some(name) => format!("signal {signal} ({name})"),
                None => format!("signal {signal}"),
            },
            (None, None) => "unknown".into(),
        }
    }
}

#[cfg(test)]
mod tests;

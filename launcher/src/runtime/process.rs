//! One process of a run: started by executing this very executable, watched through its pidfd,
//! killed and reaped.

use crate::runtime::container::{self, Inside, Unmade};
use crate::runtime::usage::Account;
use analysis::numbers::duration;
use anyhow::{Context, Result};
use protocol::plan::Trading;
use protocol::supervision::ProofOfDeath;
use protocol::trading::{PROCESS_VARIABLE, RUN_VARIABLE};
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

/// How long a process that was killed may take to end, of one in a container the one outside of it.
const DYING: Duration = Duration::from_secs(1);
/// How long the end of a process is waited for at most. One that the kernel does not end then is
/// left to it.
const GONE: Duration = Duration::from_secs(10);
/// So much of what a process printed is searched for its last words, in bytes.
const LAST_BYTES: u64 = 64 << 10;

/// The file for what a process says. Appended: a strategy that is started again keeps its
/// predecessors' last words.
fn said_in(path: &Path) -> Result<File> {
    append_regular(path).with_context(|| format!("cannot write {}", path.display()))
}

/// The last bytes of a file, without waiting: the process may have put anything in its place, or
/// have written without end.
fn end_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(LAST_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LAST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub struct Process {
    pub name: String,
    child: Child,
    pidfd: OwnedFd,
    /// Of a process in a container, which the child is outside of.
    inside: Option<Inside>,
    /// Why its container was not made.
    unmade: Option<String>,
    killed: Cell<Option<Instant>>,
    /// How it ended, once it has.
    pub status: Option<ExitStatus>,
    stderr: PathBuf,
    /// What the kernel said of it, and of those that it was started again after.
    pub account: Account,
    /// It had to be killed so long after it was told to end.
    late: Option<Duration>,
}

impl Process {
    /// Starts this executable as `role NAME ADDRESS`. What it says on stderr goes to `NAME.stderr`
    /// in the folder. It inherits these descriptors and no others.
    pub fn start(name: &str, address: &str, folder: &Path, inherited: &[&File]) -> Result<Self> {
        Self::start_with(name, address, &folder.join(format!("{name}.stderr")), inherited, Stdio::null())
    }

    /// The same with a name for what it says on stderr, and something to read.
    pub(super) fn start_with(
        name: &str,
        address: &str,
        stderr: &Path,
        inherited: &[&File],
        stdin: Stdio,
    ) -> Result<Self> {
        // /proc/self/exe is this executable even if its file was replaced since: every process has
        // one layout.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0(format!("bulkhead {name}"))
            .args(["role", name, address])
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(said_in(stderr)?);
        Self::spawn(name, command, stderr, inherited)
    }

    /// Starts a program that is not ours as the process of that name: it finds the run by its
    /// environment. What it says on stdout and stderr goes to `NAME.stderr` in the folder.
    /// `will_start` adds to the command what it is to do before it becomes the program.
    pub fn start_program(
        program: &str,
        will_start: impl FnOnce(&mut Command),
        name: &str,
        address: &str,
        folder: &Path,
    ) -> Result<Self> {
        let stderr = folder.join(format!("{name}.stderr"));
        let log = said_in(&stderr)?;
        let mut words = program.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .env(RUN_VARIABLE, address)
            .env(PROCESS_VARIABLE, name)
            .stdin(Stdio::null())
            .stdout(log.try_clone().with_context(|| format!("cannot write {}", stderr.display()))?)
            .stderr(log);
        will_start(&mut command);
        // It may never come to ask for it itself.
        process::die_with_starter(&mut command);
        Self::spawn(name, command, &stderr, &[]).with_context(|| format!("{}{program}", Trading::PROGRAM))
    }

    /// Starts a strategy, ours or a program, in a container of its own. What it says goes to
    /// `NAME.stderr` in the folder. It inherits these descriptors and no others. Where the
    /// container cannot be made it is a process that has ended, or is about to:
    /// [`Process::unmade`].
    pub fn start_contained(name: &str, address: &str, folder: &Path, inherited: &[&File]) -> Result<Self> {
        let stderr = folder.join(format!("{name}.stderr"));
        let log = said_in(&stderr)?;
        let said_before = log.metadata().map_or(0, |file| file.len());
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0(format!("bulkhead {name}"))
            .args(["role", container::FLAG, name, address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut process = Self::spawn(name, command, &stderr, inherited)?;
        match Inside::of(&mut process.child) {
            Ok(inside) => process.inside = Some(inside),
            Err(unmade) => {
                let Unmade { why, inside } = *unmade;
                process.inside = inside;
                let says_why = std::fs::metadata(&stderr).is_ok_and(|file| file.len() > said_before);
                let said = if says_why { process.last_words() } else { format!("{why:#}") };
                process.unmade = Some(said);
                process.end();
            }
        }
        Ok(process)
    }

    /// Why its container was not made.
    pub fn unmade(&self) -> Option<&str> {
        self.unmade.as_deref()
    }

    fn spawn(name: &str, mut command: Command, stderr: &Path, inherited: &[&File]) -> Result<Self> {
        // Ctrl-C on the terminal is for the launcher, which ends the run in order.
        command.process_group(0);
        let account = Account::begin();
        let child = sealed::inherited_by(inherited, || command.spawn())
            .with_context(|| format!("cannot start process {name}"))?;
        let process = Self::watch(name, child, stderr.to_owned(), process::pidfd_open)?;
        Ok(Self { account, ..process })
    }

    /// Watches a child that has just been started. One that cannot be watched is killed: nobody
    /// would see its end.
    fn watch(
        name: &str,
        mut child: Child,
        stderr: PathBuf,
        open: impl FnOnce(u32) -> io::Result<OwnedFd>,
    ) -> Result<Self> {
        match open(child.id()) {
            Ok(pidfd) => {
                let account = Account::begin();
                Ok(Self {
                    name: name.to_owned(),
                    child,
                    pidfd,
                    inside: None,
                    unmade: None,
                    killed: Cell::new(None),
                    status: None,
                    stderr,
                    account,
                    late: None,
                })
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error).with_context(|| format!("cannot watch process {name}"))
            }
        }
    }

    /// Kills it, unless it is known to have ended; of one in a container everything that it has
    /// started as well. The signal goes through the pidfd: it reaches this process or nobody.
    pub fn kill(&self) {
        self.killed.set(self.killed.get().or_else(|| Some(Instant::now())));
        self.send(process::kill, self.inside.as_ref().map(Inside::init));
    }

    /// Stops it (SIGSTOP), unless it is known to have ended.
    pub fn stop(&self) {
        self.send(process::stop, self.inside.as_ref().map(Inside::main));
    }

    fn send(&self, signal: fn(BorrowedFd<'_>) -> io::Result<()>, to: Option<&OwnedFd>) {
        if self.status.is_none() {
            // Gone in the meantime is no error.
            let _ = signal(to.unwrap_or(&self.pidfd).as_fd());
        }
    }

    /// Proof that it has ended, if it has. In a container the one outside may have been killed, and
    /// what is inside be about to be.
    pub fn death(&self) -> io::Result<Option<ProofOfDeath>> {
        let inside = self.inside.as_ref().map(|inside| ProofOfDeath::confirm(inside.init().as_fd()));
        if let Some(None) = inside.transpose()? {
            return Ok(None);
        }
        ProofOfDeath::confirm(self.pidfd.as_fd())
    }

    /// Its process id, as it is known outside of any container.
    pub fn pid(&self) -> u32 {
        self.inside.as_ref().and_then(|inside| inside.pid).unwrap_or_else(|| self.child.id())
    }

    /// The process id of the child, which may be outside of the container of the one that this is
    /// about.
    pub fn child_pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, at most that long: what gives up ends soon.
    pub fn await_end(&mut self, at_most: Duration) -> io::Result<()> {
        if self.status.is_none() {
            process::wait_readable(&[self.pidfd.as_fd()], at_most)?;
        }
        self.look()
    }

    /// The last lines that it printed to stderr, at most three, on one line; a backtrace is none of
    /// them.
    pub fn last_words(&self) -> String {
        let text = end_of(&self.stderr).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let is_frame = |line: &str| {
            let line = line.trim();
            let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
            let is_numbered = number.len() < line.len() && number.starts_with(": ");
            is_numbered || ["at ", "note: ", "stack backtrace:"].iter().any(|front| line.starts_with(front))
        };
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.trim().is_empty() && !is_frame(line)).collect();
        lines[lines.len().saturating_sub(3)..].join(" · ")
    }

    /// Becomes readable when it ends.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Takes note of its end, if it has ended.
    pub fn look(&mut self) -> io::Result<()> {
        if self.status.is_none() {
            self.settle(Duration::ZERO);
            self.status = self.child.try_wait()?;
        }
        if self.status.is_none() && self.killed.get().is_some_and(|since| since.elapsed() > DYING) {
            // One that is outside of a container and does not see its end: it is stopped.
            let _ = process::kill(self.pidfd.as_fd());
        }
        Ok(())
    }

    /// Asks the kernel for its account once it has ended, within that time: when it is reaped the
    /// account is gone.
    fn settle(&mut self, at_most: Duration) {
        if process::wait_readable(&[self.pidfd.as_fd()], at_most).is_ok_and(|ended| ended.contains(&true)) {
            self.account.ended(self.pid());
        }
    }

    pub fn ready(&mut self) {
        self.account.ready(self.child.id());
    }

    pub fn see_memory(&mut self) {
        if self.status.is_none() {
            self.account.see_memory(self.child.id());
        }
    }

    /// The same process with the account of the one that it was started again after.
    #[must_use]
    pub fn after(self, earlier: &Self) -> Self {
        let account = self.account.after(earlier.account);
        Self { account, ..self }
    }

    /// Kills it if it still runs, and reaps it; it is not waited for without end. What it printed
    /// is kept only where it says something.
    pub fn end(&mut self) {
        if self.status.is_none() {
            self.kill();
            self.settle(DYING);
            self.status = self.child.try_wait().ok().flatten();
        }
        if self.status.is_none() {
            let _ = process::kill(self.pidfd.as_fd());
            self.settle(GONE);
            self.status = self.child.try_wait().ok().flatten();
        }
        self.wait_for_inside();
        if std::fs::symlink_metadata(&self.stderr).is_ok_and(|file| file.len() == 0) {
            let _ = std::fs::remove_file(&self.stderr);
        }
    }

    /// Of a container whose outer process has ended before it: nothing of the container is left
    /// behind.
    fn wait_for_inside(&self) {
        let Some(inside) = &self.inside else { return };
        let (began, step) = (Instant::now(), Duration::from_millis(1));
        let is_there = || process::wait_readable(&[inside.init().as_fd()], step).is_ok_and(|ended| !ended[0]);
        while is_there() && began.elapsed() < DYING {
            let _ = process::kill(inside.init().as_fd());
        }
    }

    /// The same of one that was told to end so long ago: if it has to be killed for that, it is
    /// said. One that has ended by itself, and nobody has looked yet, was not killed.
    pub fn end_late(&mut self, after: Duration) {
        let ran = self.status.is_none();
        self.end();
        let killed = self.status.is_some_and(|status| status.signal() == Some(nix::libc::SIGKILL));
        self.late = Some(after).filter(|_| ran && killed);
    }

    pub fn how(&self) -> String {
        if let Some(why) = &self.unmade {
            return format!("its container could not be made: {why}");
        }
        if let Some(after) = self.late {
            return format!("killed {} after it was told to end", duration(after.as_nanos() as u64));
        }
        match self.status {
            None => "still running".into(),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit {code}"),
                (None, Some(signal)) => match signal_hook::low_level::signal_name(signal) {
                    Some(name) => format!("signal {signal} ({name})"),
                    None => format!("signal {signal}"),
                },
                (None, None) => "unknown".into(),
            },
        }
    }
}

#[cfg(test)]
mod tests;

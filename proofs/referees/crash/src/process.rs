//! Processes with an end, and what they answer.

use crate::peer::{Attach, End, Peer, Program};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use shm::sync::{AtomicU64, Ordering};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time after which a process that does not answer counts as hanging. The machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum time without a core that is added to that.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// Time for a program to start, before it attaches anything.
const START_TIME: Duration = Duration::from_secs(20);

/// Answers for which this program has waited in vain.
static HANGS: AtomicU64 = AtomicU64::new(0);

/// Returns how often a process has hung so far, for [`PATIENCE`] each time.
pub fn hangs() -> u64 {
    HANGS.load(Ordering::Relaxed)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Line(String),
    Hangs,
    Died,
}

impl Answer {
    pub fn is_ready(&self) -> bool {
        *self == Self::Line("ready".into())
    }
}

/// A child process that holds an end of a transport. It is killed and reaped when it is dropped.
pub struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Bytes of a line that is not complete.
    rest: Vec<u8>,
    /// The thread that holds the end, which is traced: the first one unless the program names it.
    pub(crate) thread: Pid,
    pub(crate) is_traced: bool,
    is_ended: bool,
}

fn program(peer: &Peer) -> Command {
    match &peer.program {
        Program::Own { .. } => {
            let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
            command.arg("role");
            command
        }
        Program::External(words) => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        }
    }
}

/// Returns `true` if a line is an answer to a command: a library may print lines of its own.
fn is_answer(line: &str) -> bool {
    const ANSWERS: [&str; 9] =
        ["gate", "ready", "refused", "pushed", "popped", "stepped", "dropped", "bye", "not attached"];
    ANSWERS.iter().any(|answer| line.starts_with(answer))
}

/// A wait for an answer. Time without a core extends it, up to [`MAX_WAIT`].
struct Wait {
    end: Instant,
    last: Instant,
    /// The process's time without a core when the wait was last extended.
    waited: Duration,
}

impl Wait {
    /// Time without a core that does not extend a wait.
    const NEGLIGIBLE: Duration = Duration::from_millis(50);

    fn new(now: Instant, patience: Duration, waited: Duration) -> Self {
        Self { end: now + patience, last: now + patience + MAX_WAIT, waited }
    }

    /// Returns `true` if the wait is over, after it was extended by the process's time without a
    /// core.
    fn is_over(&mut self, now: Instant, waited: impl FnOnce() -> Duration) -> bool {
        if now < self.end {
            return false;
        }
        let waited = waited();
        let since = waited.saturating_sub(self.waited);
        if now >= self.last || since < Self::NEGLIGIBLE {
            return true;
        }
        (self.end, self.waited) = (self.end + since, waited);
        false
    }
}

impl Process {
    /// Starts a child process that attaches an end of a transport. Returns its answer once it is
    /// attached: `ready`, or `refused` with the reason.
    pub fn start(peer: &Peer, end: End, place: &Path, attach: Attach, id: u64) -> (Self, Answer) {
        let mut process = Self::start_at_gate(peer, end, place, attach, id);
        let answer = process.ask("go");
        (process, answer)
    }

    /// Starts a child process that attaches its end when it is told to: `go`.
    pub fn start_at_gate(peer: &Peer, end: End, place: &Path, attach: Attach, id: u64) -> Self {
        let mut command = program(peer);
        command.arg(peer.name).arg(end.name()).arg(place).arg(attach.name()).arg(id.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a process");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (rest, thread) = (Vec::new(), Pid::from_raw(child.id() as i32));
        let mut process = Self { child, input, output, rest, thread, is_traced: false, is_ended: false };
        let answer = process.answer(START_TIME);
        let Answer::Line(gate) = answer else { panic!("{}: its program does not start", peer.name) };
        if let Some(thread) = gate.strip_prefix("gate ").and_then(|thread| thread.parse().ok()) {
            process.thread = Pid::from_raw(thread);
        }
        process
    }

    /// Removes what is left at a place, the way the transport documents. Returns `false` if that
    /// fails or hangs.
    pub fn clean_up(peer: &Peer, place: &Path) -> bool {
        let mut command = program(peer);
        command.arg(peer.name).arg("clean").arg(place);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a process");
        let end = Instant::now() + START_TIME;
        while Instant::now() < end {
            if let Ok(Some(status)) = child.try_wait() {
                return status.success();
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        HANGS.fetch_add(1, Ordering::Relaxed);
        let _ = child.kill();
        let _ = child.wait();
        false
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    pub fn send_command(&mut self, command: &str) {
        // A process that is gone is found by its answer.
        let _ = writeln!(self.input, "{command}");
    }

    pub fn ask(&mut self, command: &str) -> Answer {
        self.send_command(command);
        self.answer(PATIENCE)
    }

    pub fn answer(&mut self, patience: Duration) -> Answer {
        let mut wait = Wait::new(Instant::now(), patience, self.waited());
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                let line = String::from_utf8_lossy(&line[..at]).into_owned();
                if is_answer(&line) {
                    return Answer::Line(line);
                }
                continue;
            }
            let left = wait.end.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left.as_millis() as i32).unwrap_or(PollTimeout::ZERO);
            let mut fds = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) if wait.is_over(Instant::now(), || self.waited()) => {
                    HANGS.fetch_add(1, Ordering::Relaxed);
                    return Answer::Hangs;
                }
                Ok(0) | Err(_) => continue,
                Ok(_) => {}
            }
            let mut bytes = [0; 4096];
            match self.output.read(&mut bytes) {
                Ok(0) | Err(_) => return Answer::Died,
                Ok(count) => self.rest.extend(&bytes[..count]),
            }
        }
    }

    /// Returns the time for which the process could run and had no core.
    fn waited(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.pid())).unwrap_or_default();
        let nanoseconds = text.split_whitespace().nth(1).and_then(|waited| waited.parse().ok());
        Duration::from_nanos(nanoseconds.unwrap_or(0))
    }

    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // Its number may be another process's after it was reaped.
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        let _ = self.child.kill();
        // A traced process reports stops first.
        while self.is_traced
            && !matches!(
                waitpid(self.thread, Some(WaitPidFlag::__WALL)),
                Err(_) | Ok(WaitStatus::Signaled(..) | WaitStatus::Exited(..))
            )
        {}
        let _ = self.child.wait();
    }

    /// Lets the child process end in order, or kills it if it does not. Returns `true` if it did.
    pub fn finish(mut self) -> bool {
        let is_bye = self.ask("exit") == Answer::Line("bye".into());
        if is_bye {
            // What a runtime does at its end comes after that line.
            let _ = self.status();
        }
        is_bye
    }

    /// Returns how the child process ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the millisecond at which a wait of a second is over, if it is checked every 10 ms.
    /// `waited`: the process's milliseconds without a core until then.
    fn over(waited: impl Fn(u64) -> u64) -> Option<u64> {
        let start = Instant::now();
        let mut wait = Wait::new(start, PATIENCE, Duration::from_millis(waited(0)));
        (0..20_000).step_by(10).find(|at| {
            wait.is_over(start + Duration::from_millis(*at), || Duration::from_millis(waited(*at)))
        })
    }

    #[test]
    fn hang_with_a_core_is_over_after_its_patience() {
        assert_eq!(over(|_| 7), Some(1000));
        assert_eq!(over(|at| 7 + at / 100), Some(1000), "a little time without a core does not count");
    }

    #[test]
    fn time_without_a_core_extends_a_wait() {
        assert_eq!(over(|at| at.min(600)), Some(1600));
    }

    #[test]
    fn wait_without_a_core_is_bounded() {
        assert_eq!(over(|at| at), Some(4000));
    }
}

//! Processes with an end, and what they answer.

use crate::peer::{Attach, End};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Time after which a process that does not answer counts as hanging. The machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Line(String),
    Hangs,
    Died,
}

/// A child process that holds an end of a transport. It is killed and reaped when it is dropped.
pub struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Bytes of a line that is not complete.
    rest: Vec<u8>,
    is_traced: bool,
    is_ended: bool,
}

impl Process {
    /// Starts a child process that attaches an end of a transport. Returns its answer once it is
    /// attached: `ready`, or `refused` with the reason.
    pub fn start(peer: &str, end: End, place: &Path, attach: Attach, id: u64) -> (Self, Answer) {
        let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
        command.arg("role").arg(peer).arg(if end == End::Sender { "sender" } else { "receiver" });
        command.arg(place).arg(match attach {
            Attach::Create => "create",
            Attach::Join => "join",
            Attach::Resume => "resume",
        });
        command.arg(id.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a process");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut process = Self { child, input, output, rest: Vec::new(), is_traced: false, is_ended: false };
        let answer = process.answer(PATIENCE);
        (process, answer)
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
        let end = Instant::now() + patience;
        loop {
            if let Some(at) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=at).collect();
                return Answer::Line(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            let left = end.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left.as_millis() as i32).unwrap_or(PollTimeout::ZERO);
            let mut fds = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, timeout) {
                Ok(0) if left.is_zero() || Instant::now() >= end => return Answer::Hangs,
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

    /// Runs the child process up to the first instruction of one push or pop, and stops it there.
    pub fn begin_step(&mut self) {
        ptrace::seize(self.pid(), Options::empty()).expect("a child may be traced");
        self.is_traced = true;
        self.send_command("step");
        assert!(self.is_at_trap_after(|| waitpid(self.pid(), None)), "it was to stop at its trap");
    }

    fn is_at_trap_after(&self, wait: impl FnOnce() -> nix::Result<WaitStatus>) -> bool {
        let status = wait().expect("a child of ours");
        assert!(matches!(status, WaitStatus::Stopped(_, Signal::SIGTRAP)), "{status:?}");
        // A step has code TRAP_TRACE, a trap instruction SI_KERNEL.
        ptrace::getsiginfo(self.pid()).expect("it is stopped").si_code == 0x80
    }

    /// Lets the stopped process execute at most that many instructions, and stops it again. Returns
    /// the number of instructions executed, fewer than `count` if the push or pop is complete.
    pub fn step(&mut self, count: usize) -> usize {
        for done in 0..count {
            ptrace::step(self.pid(), None).expect("it is stopped");
            if self.is_at_trap_after(|| waitpid(self.pid(), None)) {
                return done;
            }
        }
        count
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
        // A traced process reports a stop first.
        while self.is_traced
            && !matches!(
                waitpid(self.pid(), None),
                Err(_) | Ok(WaitStatus::Signaled(..) | WaitStatus::Exited(..))
            )
        {}
        let _ = self.child.wait();
    }

    /// Lets the child process end in order, or kills it if it does not. Returns `true` if it did.
    pub fn finish(mut self) -> bool {
        self.ask("exit") == Answer::Line("bye".into())
    }

    /// Returns how the child process ended, if it has.
    pub fn status(&mut self) -> Option<std::process::ExitStatus> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

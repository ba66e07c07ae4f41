//! Runs a command under ptrace, stops it before and after each system call of each of its threads,
//! and kills it where asked.
//!
//! Children of the command stop only when they were created and when they have executed their
//! program. At both stops the command may be killed while the child is stopped.
#![expect(clippy::disallowed_methods, reason = "a tracee is waited for here and nowhere else")]

use super::calls::{Call, call_of};
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use stepper::{Resume, Stop as TaskStop, Tracee};

#[derive(Clone, Debug)]
pub struct Stop {
    /// `before openat /dev/shm/…`, for example.
    pub description: String,
    pub changes_state: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAction {
    Go,
    Interrupt,
    Kill,
}

#[derive(Clone, Debug)]
pub enum TraceEnd {
    Itself(i32),
    KilledAt(Stop),
    /// The command was ended by a signal that the tracer did not send.
    Signal(Signal),
}

#[derive(Debug)]
pub struct TracedCommand {
    pub pid: u32,
    pub children: Vec<u32>,
    pub end: TraceEnd,
}

struct Tracer<'a, F> {
    main: Pid,
    out: &'a Path,
    decide: F,
    /// The threads of the command and the system call that each is in.
    threads: HashMap<Pid, Option<Call>>,
    children: Vec<Pid>,
    killed_at: Option<Stop>,
}

/// Runs `program` with `arguments` to its end. `decide` returns the action at each stop.
pub fn trace(
    program: &str,
    arguments: &[&str],
    stderr: impl Into<Stdio>,
    out: &Path,
    decide: impl FnMut(&Stop) -> StopAction,
) -> nix::Result<TracedCommand> {
    let main = start_stopped(program, arguments, stderr);
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_EXITKILL;
    if let Err(errno) = Tracee::seize(main, options) {
        kill(main, Signal::SIGKILL).unwrap();
        waitpid(main, None).unwrap();
        return Err(errno);
    }
    run_to_program(main);
    let threads = HashMap::from([(main, None)]);
    let mut tracer = Tracer { main, out, decide, threads, children: Vec::new(), killed_at: None };
    resume(main, None);
    let end = tracer.run();
    let children = tracer.children.iter().map(|child| child.as_raw() as u32).collect();
    Ok(TracedCommand { pid: main.as_raw() as u32, children, end })
}

/// Starts a shell that stops itself and executes the program when it continues, so that the trace
/// misses no call.
fn start_stopped(program: &str, arguments: &[&str], stderr: impl Into<Stdio>) -> Pid {
    let mut command = Command::new("sh");
    command.args(["-c", r#"kill -STOP $$; exec "$0" "$@""#, program]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let pid = Pid::from_raw(command.spawn().unwrap().id() as i32);
    let status = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(status, WaitStatus::Stopped(pid, Signal::SIGSTOP));
    pid
}

/// Continues the shell until it has executed the program.
fn run_to_program(main: Pid) {
    kill(main, Signal::SIGCONT).unwrap();
    let main = Tracee::new(main);
    loop {
        match main.wait().unwrap() {
            stop if stop.is_exec() => return,
            TaskStop::Event(_) => main.resume(Resume::Run, None).unwrap(),
            TaskStop::Signal(signal) => main.resume(Resume::Run, Some(signal)).unwrap(),
            TaskStop::Trap => main.resume(Resume::Run, Some(Signal::SIGTRAP)).unwrap(),
            stop => panic!("the shell: {stop:?}"),
        }
    }
}

/// Resumes a task until its next stop at a system call.
pub fn resume(task: Pid, signal: Option<Signal>) {
    Tracee::new(task)
        .resume(Resume::Call, signal)
        .unwrap_or_else(|errno| panic!("cannot resume {task}: {errno}"));
}

impl<F: FnMut(&Stop) -> StopAction> Tracer<'_, F> {
    /// Handles stops until this thread has no more tracees or children.
    fn run(&mut self) -> TraceEnd {
        let mut end = None;
        loop {
            // Only tracees of this thread: other tests have children as well.
            match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.main => end = Some(TraceEnd::Itself(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.main => {
                    end = Some(self.killed_at.take().map_or(TraceEnd::Signal(signal), TraceEnd::KilledAt));
                }
                Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {}
                Ok(status) => self.stopped(status.pid().expect("a stop has a task"), status),
                Err(Errno::EINTR) => {}
                Err(Errno::ECHILD) => return end.expect("the command is waited for"),
                Err(errno) => panic!("waitpid: {errno}"),
            }
        }
    }

    fn stopped(&mut self, task: Pid, status: WaitStatus) {
        let Some(stop) = TaskStop::from_status(status) else { return };
        if !self.threads.contains_key(&task) && !self.children.contains(&task) {
            if is_process(task) {
                self.children.push(task);
            } else {
                self.threads.insert(task, None);
            }
        }
        if self.children.contains(&task) {
            self.child_stopped(Tracee::new(task), stop);
            return;
        }
        match stop {
            TaskStop::Call => {
                if let Ok(stop) = self.at_call(task) {
                    self.ask(stop);
                }
                resume(task, None);
            }
            _ => resume(task, signal_of(stop)),
        }
    }

    /// Handles a child's stops at its creation and after its `exec`; then detaches.
    fn child_stopped(&mut self, child: Tracee, stop: TaskStop) {
        let signal = signal_of(stop);
        if signal.is_none() {
            let name = if stop.is_exec() { "a child has executed its program" } else { "a child is made" };
            self.ask(Stop { description: name.into(), changes_state: true });
        }
        let should_detach = stop.is_exec() || self.killed_at.is_some();
        let resumed = if should_detach { child.detach(signal) } else { child.resume(Resume::Run, signal) };
        resumed.unwrap_or_else(|errno| panic!("cannot resume child {}: {errno}", child.pid()));
    }

    /// Returns the stop before or after a system call.
    fn at_call(&mut self, task: Pid) -> nix::Result<Stop> {
        let before = ptrace::syscall_info(task)?.op == libc::PTRACE_SYSCALL_INFO_ENTRY;
        let entered = self.threads.get_mut(&task).and_then(Option::take);
        let call = match entered {
            // The call as recorded at its entry: after a close the descriptor has no file.
            Some(call) if !before => call,
            _ => call_of(self.main, task, self.out)?,
        };
        let side = if before { "before" } else { "after" };
        let stop =
            Stop { description: format!("{side} {}", call.description), changes_state: call.changes_state };
        self.threads.insert(task, before.then_some(call));
        Ok(stop)
    }

    fn ask(&mut self, stop: Stop) {
        if self.killed_at.is_some() {
            return;
        }
        let signal = match (self.decide)(&stop) {
            StopAction::Go => return,
            StopAction::Interrupt => Signal::SIGINT,
            StopAction::Kill => {
                self.killed_at = Some(stop);
                Signal::SIGKILL
            }
        };
        kill(self.main, signal).unwrap();
    }
}

/// Returns the signal that a stopped task gets when it is resumed.
fn signal_of(stop: TaskStop) -> Option<Signal> {
    match stop {
        TaskStop::Signal(signal) => Some(signal),
        TaskStop::Trap => Some(Signal::SIGTRAP),
        _ => None,
    }
}

/// Returns `true` if a task is a process, not a further thread of one.
fn is_process(task: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Tgid:").is_some_and(|id| id.trim() == task.to_string()))
}

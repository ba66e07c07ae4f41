//! Stops another process or thread between two of its machine instructions, or before and after its
//! system calls.
//!
//! A test stops a victim at each instruction, or at each call, and kills it there. What the victim
//! runs, which stops count and what must hold afterwards is the test's own.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a tracee is waited for by its tracer and nobody else")]

use nix::errno::Errno;
#[cfg(target_arch = "x86_64")]
use nix::sys::ptrace::AddressType;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The code of SIGTRAP after a trap instruction; after a step it is TRAP_TRACE.
const SI_KERNEL: i32 = 0x80;

/// A reason for which a tracee has stopped, or cannot stop any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has executed one instruction, or has met a breakpoint.
    Trap,
    /// It is before or after a system call.
    Call,
    /// It is about to get this signal, and gets it if it is resumed with it.
    Signal(Signal),
    /// An event of the tracer's options has happened, such as `PTRACE_EVENT_EXEC`.
    Event(i32),
    /// It has exited with this code.
    Exited(i32),
    /// A signal has ended it.
    Killed(Signal),
}

impl Stop {
    /// Returns the stop that a status of `waitpid` describes; `None` while the tracee runs.
    pub fn from_status(status: WaitStatus) -> Option<Self> {
        Some(match status {
            WaitStatus::PtraceSyscall(_) => Self::Call,
            WaitStatus::PtraceEvent(_, _, event) => Self::Event(event),
            WaitStatus::Stopped(_, Signal::SIGTRAP) => Self::Trap,
            WaitStatus::Stopped(_, signal) => Self::Signal(signal),
            WaitStatus::Exited(_, code) => Self::Exited(code),
            WaitStatus::Signaled(_, signal, _) => Self::Killed(signal),
            WaitStatus::Continued(_) | WaitStatus::StillAlive => return None,
        })
    }

    /// Returns `true` if the tracee has just executed another program.
    pub const fn is_exec(self) -> bool {
        matches!(self, Self::Event(event) if event == Event::PTRACE_EVENT_EXEC as i32)
    }

    /// Returns `true` if the tracer has interrupted the tracee.
    pub const fn is_interruption(self) -> bool {
        matches!(self, Self::Event(event) if event == Event::PTRACE_EVENT_STOP as i32)
    }

    /// Returns `true` if the tracee has ended.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Exited(_) | Self::Killed(_))
    }
}

/// How far a stopped tracee goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// To the next instruction.
    Step,
    /// To the next entry or exit of a system call.
    Call,
    /// To the next signal, event or breakpoint.
    Run,
}

/// A process or a thread that the calling thread traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tracee(Pid);

/// Takes the error of a request to a tracee that has ended for success: the next wait tells.
fn unless_ended(result: nix::Result<()>) -> nix::Result<()> {
    if result == Err(Errno::ESRCH) { Ok(()) } else { result }
}

impl Tracee {
    /// Names a task that is traced already, because it has asked for that or a tracee has made it.
    pub const fn new(task: Pid) -> Self {
        Self(task)
    }

    /// Begins to trace a task, which runs on.
    pub fn seize(task: Pid, options: Options) -> nix::Result<Self> {
        ptrace::seize(task, options)?;
        Ok(Self(task))
    }

    /// Returns the task's id.
    pub const fn pid(self) -> Pid {
        self.0
    }

    /// Waits until the tracee stops or ends.
    pub fn wait(self) -> nix::Result<Stop> {
        loop {
            if let Some(stop) = Stop::from_status(waitpid(self.0, Some(WaitPidFlag::__WALL))?) {
                return Ok(stop);
            }
        }
    }

    /// Returns the tracee's stop; `None` if it runs.
    pub fn poll(self) -> nix::Result<Option<Stop>> {
        Ok(Stop::from_status(waitpid(self.0, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG))?))
    }

    /// Resumes the stopped tracee, with a signal if there is one. It may have ended.
    pub fn resume(self, mode: Resume, signal: Option<Signal>) -> nix::Result<()> {
        unless_ended(match mode {
            Resume::Step => ptrace::step(self.0, signal),
            Resume::Call => ptrace::syscall(self.0, signal),
            Resume::Run => ptrace::cont(self.0, signal),
        })
    }

    /// Executes one instruction. Returns the stop after it.
    pub fn step(self) -> nix::Result<Stop> {
        self.resume(Resume::Step, None)?;
        self.wait()
    }

    /// Asks the seized tracee to stop with an [interruption](Stop::is_interruption). Another stop
    /// may come first.
    pub fn interrupt(self) -> nix::Result<()> {
        unless_ended(ptrace::interrupt(self.0))
    }

    /// Ends the tracing of the stopped tracee, which runs on. It may have ended.
    pub fn detach(self, signal: Option<Signal>) -> nix::Result<()> {
        unless_ended(ptrace::detach(self.0, signal))
    }

    /// Kills the tracee and waits for its end, before which the kernel does not tell its parent.
    pub fn kill(self) -> nix::Result<()> {
        kill(self.0, Signal::SIGKILL)?;
        while !self.wait()?.is_end() {}
        Ok(())
    }

    /// Sets the tracer's options of the stopped tracee.
    pub fn set_options(self, options: Options) -> nix::Result<()> {
        ptrace::setoptions(self.0, options)
    }

    /// Runs the stopped tracee to the instruction at an address. Returns its stack pointer.
    ///
    /// # Panics
    /// If it stops elsewhere first.
    #[cfg(target_arch = "x86_64")]
    pub fn run_to(self, address: u64) -> nix::Result<u64> {
        let location = address as AddressType;
        let code = ptrace::read(self.0, location)?;
        // A temporary breakpoint in its copy of the page: it stops after that byte, and is reset to
        // before it.
        ptrace::write(self.0, location, code & !0xff | 0xcc)?;
        self.resume(Resume::Run, None)?;
        let stop = self.wait()?;
        assert_eq!(stop, Stop::Trap, "it was to stop at a breakpoint");
        ptrace::write(self.0, location, code)?;
        let mut registers = ptrace::getregs(self.0)?;
        assert_eq!(registers.rip, address + 1, "it stopped at another breakpoint");
        registers.rip = address;
        ptrace::setregs(self.0, registers)?;
        Ok(registers.rsp)
    }

    /// Returns `true` if the next instruction of the stopped tracee is a system call.
    #[cfg(target_arch = "x86_64")]
    pub fn is_at_call(self) -> bool {
        let word = ptrace::getregs(self.0).and_then(|at| ptrace::read(self.0, at.rip as AddressType));
        word.is_ok_and(|word| word.to_le_bytes()[..2] == [0x0f, 0x05])
    }

    /// Returns `true` if a trap instruction in its own code has stopped the tracee, not a step.
    pub fn is_at_own_trap(self) -> bool {
        ptrace::getsiginfo(self.0).is_ok_and(|info| info.si_code == SI_KERNEL)
    }
}

/// Returns the reason if the stopped child cannot be stepped: some containers and sandboxes forbid
/// that.
#[cfg(target_arch = "x86_64")]
pub fn refusal(child: Pid) -> Option<String> {
    let tracee = Tracee(child);
    let stop = tracee.wait().ok()?;
    if stop != Stop::Signal(Signal::SIGSTOP) {
        return Some(format!("a child that asks to be traced ends so: {stop:?}"));
    }
    let refused = ptrace::getregs(child).and_then(|_| tracee.step()).err();
    let _ = tracee.kill();
    refused.map(|errno| format!("a traced child cannot be stepped: {errno}"))
}

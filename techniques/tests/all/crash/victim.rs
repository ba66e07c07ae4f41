//! The tracer's control of a victim: builds it for release, starts it, stops it at any instruction
//! of its push or pop, and kills it.

use super::commands::{
    COUNT, DONE, ENTRY, LOG, LOG_ENTRIES, NUMBER, RETIRE, RETIRE_ENTRY, WORDS, commands_name,
};
use nix::libc::{CLONE_PARENT, PTRACE_EVENT_FORK, SIGCHLD, SYS_clone, user_regs_struct};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use protocol::plan::Plan;
use protocol::supervision::ProofOfDeath;
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering::Relaxed;
use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use stepper::{Resume, Stop, Tracee};
use system::process;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Producer(usize),
    Consumer,
    Board,
}

impl Role {
    fn words(self) -> (&'static str, usize) {
        match self {
            Role::Producer(index) => ("producer", index),
            Role::Consumer => ("consumer", 0),
            Role::Board => ("board", 0),
        }
    }
}

/// The position in a stepped call: the address of the next instruction, relative to the first;
/// `None` after it has returned.
pub type StepPosition = Option<u64>;

/// Upper bound of the size of the victim's program, in bytes.
const PROGRAM_BYTES: u64 = 1 << 28;
/// Marks an address in a library, of which only the offset in the page is the same in all
/// processes.
const OUTSIDE: u64 = 1 << 62;

/// A victim's stop when it is ready, and after its commands.
const STOPPED: Stop = Stop::Signal(Signal::SIGSTOP);

/// The cost of running to a breakpoint, in single steps.
const STOPS_PER_PASS: usize = 3;

/// Builds the victim once, like the processes of a run.
fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let build = Command::new(env!("CARGO"))
            // With the whole workspace, so that its dependencies have the usual features.
            .args(["build", "--release", "--workspace", "--bin", "victim", "--message-format=json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo runs");
        assert!(build.status.success(), "the victim does not build");
        let lines = String::from_utf8(build.stdout).expect("cargo writes UTF-8");
        let artifacts = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let executables = artifacts.filter(|artifact| artifact["target"]["name"] == "victim");
        let path =
            executables.filter_map(|artifact| Some(artifact["executable"].as_str()?.to_owned())).next_back();
        PathBuf::from(path.expect("cargo names what it built"))
    })
}

/// Creates the commands segment of a victim, once for each role; it is cleared for each victim.
pub fn commands(plan: &Plan, role: Role) -> AtomicWords {
    let (name, index) = role.words();
    Region::create(&plan.segment_name(&commands_name(name, index)), WORDS).expect("space").words()
}

/// A traced process; its tracer is the thread that started it.
pub struct Victim {
    task: Tracee,
    pidfd: OwnedFd,
    commands: AtomicWords,
    /// The address of its stepped call, and its return address and stack pointer.
    entry: u64,
    return_point: (u64, u64),
    alive: bool,
}

impl Victim {
    #[expect(clippy::zombie_processes, reason = "waited for by its id")]
    /// Starts a victim on the run's segments, reports its id, and waits until it is ready.
    pub fn start(plan: &Plan, role: Role, commands: &AtomicWords, started: impl FnOnce(u32)) -> Self {
        commands.iter().for_each(|word| word.store(0, Relaxed));
        let (name, index) = role.words();
        let child = Command::new(program())
            .args([&plan.run, name, &index.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the victim starts");
        started(child.id());
        let task = Tracee::new(Pid::from_raw(child.id() as i32));
        let pidfd = process::pidfd_open(child.id()).expect("the process exists");
        let mut victim =
            Self { task, pidfd, commands: commands.clone(), entry: 0, return_point: (0, 0), alive: true };
        victim.wait(STOPPED);
        // It is killed when its tracer ends.
        let options = Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACEFORK;
        task.set_options(options).expect("it is traced");
        victim.entry = victim.commands[ENTRY].load(Relaxed);
        victim
    }

    /// Makes a copy of this victim, which has attached and waits for its first commands: a process
    /// of its own, at the same instruction, and far sooner ready than a new one. The two share
    /// their commands, so this one must stay stopped.
    pub fn copy(&self) -> Self {
        for word in [COUNT, NUMBER, DONE, RETIRE] {
            self.commands[word].store(0, Relaxed);
        }
        let task = self.task.pid();
        let stopped = ptrace::getregs(task).expect("it is stopped");
        // It has stopped itself by a system call: the same instruction makes the copy.
        let call = stopped.rip - 2;
        let code = ptrace::read(task, call as ptrace::AddressType).expect("its code");
        assert_eq!(code & 0xffff, 0x050f, "a system call");
        // The copy is a child of this process, which waits for its end.
        let flags = (CLONE_PARENT | SIGCHLD) as u64;
        let call = user_regs_struct { rip: call, rax: SYS_clone as u64, orig_rax: u64::MAX, ..stopped };
        let clone = user_regs_struct { rdi: flags, rsi: 0, rdx: 0, r10: 0, r8: 0, ..call };
        ptrace::setregs(task, clone).expect("it is stopped");
        assert_eq!(self.task.step(), Ok(Stop::Event(PTRACE_EVENT_FORK)), "the event of a copy");
        let pid = Pid::from_raw(ptrace::getevent(task).expect("the copy's id") as i32);
        self.step(1);
        ptrace::setregs(task, stopped).expect("it is stopped");
        let pidfd = process::pidfd_open(pid.as_raw() as u32).expect("the process exists");
        let copy = Self {
            task: Tracee::new(pid),
            pidfd,
            commands: self.commands.clone(),
            entry: self.entry,
            return_point: (0, 0),
            alive: true,
        };
        copy.wait(STOPPED);
        ptrace::setregs(pid, stopped).expect("it is stopped");
        copy
    }

    fn wait(&self, expected: Stop) {
        assert_eq!(self.task.wait(), Ok(expected));
    }

    /// Lets the victim push or pop a number of times, to its next stop.
    pub fn run(&self, times: u64) {
        self.commands[COUNT].store(times, Relaxed);
        self.finish();
    }

    /// Lets the victim continue to its next stop.
    pub fn finish(&self) {
        self.task.resume(Resume::Run, None).expect("it is stopped");
        self.wait(STOPPED);
    }

    /// Returns the number of accepted pushes, or of successful pops.
    pub fn done(&self) -> u64 {
        self.commands[DONE].load(Relaxed)
    }

    /// Returns the `n`th message that the victim has popped.
    pub fn popped(&self, n: u64) -> Message {
        let entry = LOG + n as usize % LOG_ENTRIES * MESSAGE_WORDS;
        core::array::from_fn(|index| self.commands[entry + index].load(Relaxed))
    }

    /// Starts a retirement, and stops before its first instruction.
    pub fn begin_retirement(&mut self, dead: usize) {
        self.commands[RETIRE].store(dead as u64 + 1, Relaxed);
        self.entry = self.commands[RETIRE_ENTRY].load(Relaxed);
        self.begin();
    }

    /// Starts one push or pop, and stops before its first instruction.
    pub fn begin(&mut self) {
        self.commands[COUNT].store(1, Relaxed);
        let stack = self.run_to(self.entry);
        let return_point = ptrace::read(self.task.pid(), stack as ptrace::AddressType).expect("its stack");
        self.return_point = (return_point as u64, stack + 8);
    }

    /// Runs it to the instruction at that address. Returns its stack pointer.
    fn run_to(&self, address: u64) -> u64 {
        self.task.run_to(address).expect("it is stopped")
    }

    /// Replays a recorded path from its first to its last position: runs to a late position by a
    /// breakpoint, and single-steps the rest, because a stop at every instruction would dominate
    /// the time of these tests.
    ///
    /// # Panics
    /// If it takes another path.
    pub fn replay(&self, path_to: &[StepPosition]) {
        let mut times = HashMap::<StepPosition, usize>::new();
        let mut best = (path_to.len() - 1, None);
        for (index, at) in path_to.iter().enumerate() {
            let times = times.entry(*at).or_default();
            *times += 1;
            let stops = *times * STOPS_PER_PASS + path_to.len() - 1 - index;
            match at {
                Some(offset) if offset & OUTSIDE == 0 && stops < best.0 => {
                    best = (stops, Some((index, *offset, *times)));
                }
                _ => {}
            }
        }
        let mut now = 0;
        if let Some((index, offset, times)) = best.1 {
            let address = self.entry.wrapping_add(offset);
            self.run_to(address);
            for _ in 1..times {
                self.step(1);
                self.run_to(address);
            }
            now = index;
        }
        self.step(path_to.len() - 1 - now);
        assert_eq!(Some(&self.at()), path_to.last(), "another path than recorded");
    }

    pub fn step(&self, instructions: usize) {
        for _ in 0..instructions {
            assert_eq!(self.task.step(), Ok(Stop::Trap));
        }
    }

    /// Single-steps up to `instructions` instructions, not beyond the end of its push or pop.
    pub fn step_at_most(&self, instructions: usize) {
        for _ in 0..instructions {
            if self.at().is_none() {
                break;
            }
            self.step(1);
        }
    }

    pub fn at(&self) -> StepPosition {
        let registers = ptrace::getregs(self.task.pid()).expect("it is stopped");
        if (registers.rip, registers.rsp) == self.return_point {
            return None;
        }
        let offset = registers.rip.wrapping_sub(self.entry) as i64;
        // A library is at another page-aligned address in each process.
        let is_own = offset.unsigned_abs() < PROGRAM_BYTES;
        Some(if is_own { offset as u64 } else { OUTSIDE | registers.rip & 0xfff })
    }

    pub fn death(&self) -> Option<ProofOfDeath> {
        ProofOfDeath::confirm(self.pidfd.as_fd()).expect("the kernel answers")
    }

    pub fn kill(mut self) -> ProofOfDeath {
        assert!(self.death().is_none(), "dead before it was killed");
        self.end();
        self.death().expect("a reaped process is dead")
    }

    fn end(&mut self) {
        process::kill(self.pidfd.as_fd()).expect("not waited for yet");
        assert_eq!(self.task.wait(), Ok(Stop::Killed(Signal::SIGKILL)));
        self.alive = false;
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if self.alive {
            let _ = process::kill(self.pidfd.as_fd());
            let _ = self.task.wait();
        }
    }
}

#[expect(clippy::zombie_processes, reason = "waited for by its id")]
/// Returns the reason if processes cannot be traced here: some containers and sandboxes forbid it.
pub fn refusal() -> Option<String> {
    let child =
        Command::new(program()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    stepper::refusal(Pid::from_raw(child.id() as i32))
}

//! A child process that is stopped at an instruction or a system call between two traps.
//!
//! A survey executes a stretch instruction by instruction, and records its system calls and the
//! instructions after which shared memory differs. Between these, other processes cannot tell one
//! instruction from the next. In a trial the tracer goes from system call to system call, and
//! executes instruction by instruction after the last one.

use crate::process::Process;
use crate::shared::SharedMemory;
use nix::sys::ptrace::Options;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use stepper::{Resume, Stop, Tracee};

/// Instructions that a survey executes one by one; after them it counts system calls only.
const MAX_STEPS: usize = 300_000;
/// Time for one traced stretch; a process that takes longer is killed and counts as stopped.
const MAX_TIME: Duration = Duration::from_secs(30);

/// A place in a stretch: after that many system calls, and that many instructions after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    pub calls: usize,
    pub steps: usize,
}

/// The length of a stretch.
#[derive(Debug, Default)]
pub struct Stretch {
    /// Instructions, at most [`MAX_STEPS`].
    pub instructions: usize,
    /// Number of instructions before each system call, those within the counted instructions.
    before_calls: Vec<usize>,
    /// Number of instructions after which shared memory differs.
    changes: Vec<usize>,
    /// System calls in all.
    pub calls: usize,
}

impl Stretch {
    fn at(&self, instruction: usize) -> Point {
        let calls = self.before_calls.partition_point(|before| *before < instruction);
        let start = calls.checked_sub(1).map_or(0, |last| self.before_calls[last] + 1);
        Point { calls, steps: instruction - start }
    }

    /// Returns the number of changes of shared memory.
    pub const fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Returns at most `limit` of the points between instructions, at equal distances, the first
    /// and the last among them.
    pub fn every_instruction(&self, limit: usize) -> Vec<Point> {
        in_turns(&spread(self.instructions, limit).map(|at| self.at(at)).collect::<Vec<_>>())
    }

    /// Returns points of the call at which to kill its process: half of `limit` at equal distances,
    /// and at most `limit` each directly after a change of shared memory and next to a system call.
    pub fn points(&self, limit: usize) -> Vec<Point> {
        let mut points: Vec<Point> = spread(self.instructions, limit / 2).map(|at| self.at(at)).collect();
        if let Some(last) = self.changes.len().checked_sub(1) {
            points.extend(spread(last, limit).map(|at| self.at(self.changes[at])));
        }
        let around = self.before_calls.iter().flat_map(|before| [self.at(*before), self.at(*before + 1)]);
        let uncounted = (self.before_calls.len()..self.calls).map(|call| Point { calls: call + 1, steps: 0 });
        let boundaries: Vec<Point> = around.chain(uncounted).collect();
        if let Some(last) = boundaries.len().checked_sub(1) {
            points.extend(spread(last, limit).map(|at| boundaries[at]));
        }
        points.sort_unstable();
        points.dedup();
        in_turns(&points)
    }
}

/// Orders points so that the first ones, if the time ends, are from all over the stretch.
fn in_turns(points: &[Point]) -> Vec<Point> {
    const TURNS: usize = 8;
    (0..TURNS).flat_map(|turn| points.iter().skip(turn).step_by(TURNS)).copied().collect()
}

/// Returns at most `limit` numbers from 0 to `last`, both among them.
fn spread(last: usize, limit: usize) -> impl Iterator<Item = usize> {
    let count = (last + 1).min(limit.max(2));
    (0..count).map(move |number| if count < 2 { 0 } else { number * last / (count - 1) })
}

/// A place at which a stretch has stopped.
enum StretchStop {
    /// At one of the traps of the child.
    Trap,
    Step,
    Call,
    Gone,
}

/// The child that is being traced, and until when it may run.
static WATCHED: Mutex<Option<(i32, Instant)>> = Mutex::new(None);

/// Kills a traced child that takes too long; the tracer waits for it without a limit.
fn start_watching() {
    static STARTED: std::sync::Once = std::sync::Once::new();
    STARTED.call_once(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let mut watched = WATCHED.lock().expect("no panic there");
                if let Some((pid, _)) = watched.take_if(|(_, end)| Instant::now() >= *end) {
                    #[expect(clippy::disallowed_methods, reason = "its tracer has not reaped it")]
                    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
            }
        });
    });
}

fn watch(pid: Option<Pid>) {
    *WATCHED.lock().expect("no panic there") = pid.map(|pid| (pid.as_raw(), Instant::now() + MAX_TIME));
}

impl Process {
    /// Runs the child process up to the first trap of a command, and stops it there.
    pub fn begin(&mut self, command: &str) {
        start_watching();
        Tracee::seize(self.thread, Options::PTRACE_O_TRACESYSGOOD).expect("a child may be traced");
        self.is_traced = true;
        self.send_command(command);
        watch(Some(self.thread));
        let stop = self.wait_stop(Resume::Run);
        assert!(matches!(stop, StretchStop::Trap | StretchStop::Gone), "it was to stop at its trap");
    }

    const fn tracee(&self) -> Tracee {
        Tracee::new(self.thread)
    }

    /// Waits for a stop, and passes on the signals that are the child's own.
    fn wait_stop(&self, again: Resume) -> StretchStop {
        loop {
            let resumed = match self.tracee().wait() {
                Ok(Stop::Call) => return StretchStop::Call,
                Ok(Stop::Trap) if self.tracee().is_at_own_trap() => return StretchStop::Trap,
                Ok(Stop::Trap) => return StretchStop::Step,
                Ok(Stop::Signal(signal)) => self.tracee().resume(again, Some(signal)),
                Ok(Stop::Event(_)) => self.tracee().resume(Resume::Run, None),
                _ => return StretchStop::Gone,
            };
            if resumed.is_err() {
                return StretchStop::Gone;
            }
        }
    }

    fn resume_with(&self, mode: Resume) -> StretchStop {
        if self.tracee().resume(mode, None).is_err() { StretchStop::Gone } else { self.wait_stop(mode) }
    }

    fn step_once(&self) -> StretchStop {
        self.resume_with(Resume::Step)
    }

    /// Runs the stopped process to the next end of a system call. Returns `false` if the stretch
    /// ended first.
    fn pass_call(&self) -> bool {
        let to_call = || self.resume_with(Resume::Call);
        matches!(to_call(), StretchStop::Call) && matches!(to_call(), StretchStop::Call)
    }

    /// Executes the whole stretch and returns its length. The process is not stopped afterwards.
    pub fn survey(&mut self) -> Stretch {
        let mut stretch = Stretch::default();
        let mut memory = SharedMemory::new(self.thread);
        while stretch.instructions < MAX_STEPS {
            let is_call = self.tracee().is_at_call();
            if is_call {
                stretch.before_calls.push(stretch.instructions);
            }
            if !matches!(self.step_once(), StretchStop::Step) {
                stretch.calls = stretch.before_calls.len();
                self.release();
                return stretch;
            }
            stretch.instructions += 1;
            if is_call {
                memory.find();
            }
            if memory.has_changed() && !is_call {
                stretch.changes.push(stretch.instructions);
            }
        }
        stretch.calls = stretch.before_calls.len();
        while self.pass_call() {
            stretch.calls += 1;
        }
        self.release();
        stretch
    }

    /// Lets the stopped process run up to a point of its stretch, or to its end.
    pub fn run_to(&mut self, point: Point) {
        let is_there = (0..point.calls).all(|_| self.pass_call());
        if is_there {
            let _ = (0..point.steps).all(|_| matches!(self.step_once(), StretchStop::Step));
        }
        watch(None);
    }

    /// Lets the process run without a tracer.
    fn release(&mut self) {
        watch(None);
        if self.tracee().detach(None).is_ok() {
            self.is_traced = false;
        }
    }
}

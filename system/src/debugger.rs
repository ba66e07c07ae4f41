//! A debugger of the own process: a child that stops its threads by `ptrace`, as `gdb -p` or a
//! stack sampler does, single-steps one of them, and lets all go on.
//!
//! The child attaches for a stop only and detaches afterwards, so that it changes nothing between
//! two stops: signals reach the process as usual, and no thread stays stopped if the child dies. It
//! ends when its [`Debugger`] is dropped, and with the thread that started it.

use super::fault::exit;
use core::ffi::c_void;
use core::ptr::{null_mut, without_provenance_mut};
use core::time::Duration;
use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, gettid, pipe2};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

/// How long all threads stay stopped, besides the time that stopping and stepping take.
const HOLD: Duration = Duration::from_micros(100);
/// Instructions that the stepped thread executes one by one.
const INSTRUCTIONS: u8 = 8;
/// Time within which threads stop, before those that did are held.
const STOP_PATIENCE: Duration = Duration::from_millis(1);
/// Time within which all steps end, before the other threads go on.
const STEP_PATIENCE: Duration = Duration::from_micros(200);
/// The pause between two looks for a stop.
const LOOK_EVERY: Duration = Duration::from_micros(10);
/// `PTRACE_EVENT_STOP`: the event of a stop that `PTRACE_INTERRUPT` caused.
const EVENT_STOP: i32 = 128;

/// The type of a request of `ptrace`, by C library.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// The child's answer to a request: it stopped no thread.
const NONE_STOPPED: u8 = 0;
/// It stopped at least one thread, and all go on. It adds the number of instructions stepped.
const STOPPED: u8 = 1;
/// The system refused to attach it.
const REFUSED: u8 = u8::MAX;

/// A child process that stops and steps the threads of its parent on request.
#[derive(Debug)]
pub struct Debugger {
    child: Pid,
    /// Requests of the parent, a byte each; `None` once it is to end.
    requests: Option<OwnedFd>,
    /// The answers; reading does not wait.
    answers: OwnedFd,
    is_asked: bool,
    instructions: u64,
}

impl Debugger {
    /// Starts a debugger of the threads that the process has now. It steps the calling thread.
    ///
    /// # Errors
    /// The threads cannot be listed, or the system refuses to start a process.
    pub fn of_this_process() -> io::Result<Self> {
        let numbers = std::fs::read_dir("/proc/self/task")?;
        let threads = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        Self::of_threads(threads.collect(), gettid().as_raw())
    }

    /// Starts a debugger of threads of this process, which steps one of them.
    fn of_threads(threads: Vec<i32>, stepped: i32) -> io::Result<Self> {
        let threads = threads.into_iter().map(TracedThread::new).collect();
        let mut process = TracedProcess { pid: getpid().as_raw(), threads, stepped };
        let (next_request, requests) = pipe2(OFlag::O_CLOEXEC)?;
        let (answers, answer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        // SAFETY: the child calls nothing but `serve`, which makes system calls and writes to
        // memory that was allocated before: it takes no lock, allocates nothing and drops nothing,
        // and it does not return.
        match unsafe { fork() }? {
            ForkResult::Child => serve(&mut process, next_request.as_raw_fd(), answer.as_raw_fd()),
            ForkResult::Parent { child } => {
                // Yama lets nobody attach to an ancestor otherwise. Without Yama the call fails.
                allow_tracer(child.as_raw());
                Ok(Self { child, requests: Some(requests), answers, is_asked: false, instructions: 0 })
            }
        }
    }

    /// Asks the child process (the debugger) to stop the threads once more, unless a stop is still
    /// pending. Returns how many stops there were since the last call, in which at least one thread
    /// was really stopped: none or one.
    ///
    /// # Errors
    /// The system does not let the child attach, or the child has died.
    pub fn request_stop(&mut self) -> io::Result<u64> {
        let mut answer = [NONE_STOPPED];
        let mut stops = 0;
        match nix::unistd::read(&self.answers, &mut answer) {
            Ok(0) => return Err(io::ErrorKind::BrokenPipe.into()),
            Ok(_) if answer[0] == REFUSED => return Err(io::ErrorKind::PermissionDenied.into()),
            Ok(_) => {
                stops = u64::from(answer[0] >= STOPPED);
                self.instructions += u64::from(answer[0].saturating_sub(STOPPED));
                self.is_asked = false;
            }
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !self.is_asked
            && let Some(requests) = &self.requests
        {
            nix::unistd::write(requests, &[0])?;
            self.is_asked = true;
        }
        Ok(stops)
    }

    /// Returns the number of instructions that were executed one by one, in all stops.
    pub const fn stepped_instructions(&self) -> u64 {
        self.instructions
    }
}

impl Drop for Debugger {
    fn drop(&mut self) {
        // The child ends at the end of the requests. It is not killed: a thread that it steps would
        // trap without it. That may be this one: in a system call that waits for the child it would
        // wait for ever.
        self.requests = None;
        while matches!(
            waitpid(self.child, Some(WaitPidFlag::WNOHANG)),
            Ok(WaitStatus::StillAlive) | Err(nix::Error::EINTR)
        ) {
            std::thread::sleep(LOOK_EVERY);
        }
        allow_tracer(0);
    }
}

/// Lets a process attach to this one (Yama); 0: none but an ancestor.
fn allow_tracer(pid: i32) {
    // SAFETY: takes integers and touches no memory. Its result does not matter: a child that may
    // not attach says so.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, pid as libc::c_ulong, 0, 0, 0) };
}

/// The process that a debugger stops, as it was when the debugger was started.
struct TracedProcess {
    pid: i32,
    threads: Vec<TracedThread>,
    /// The thread that is stepped.
    stepped: i32,
}

/// A thread, and how far it is stopped.
#[derive(Clone, Copy)]
struct TracedThread {
    tid: i32,
    state: TraceState,
}

/// How far a thread is stopped.
#[derive(Clone, Copy, PartialEq)]
enum TraceState {
    /// Not attached, or ended.
    Free,
    /// Attached, and about to stop.
    Stopping,
    /// Executes one instruction, after which it stops by SIGTRAP.
    Stepping,
    /// Stopped; it continues with this signal, or none (0).
    Stopped(i32),
}

/// The body of the child, in a forked copy of a process that has other threads.
fn serve(process: &mut TracedProcess, requests: i32, answers: i32) -> ! {
    confine_child(process.pid, requests, answers);
    let mut byte = [0u8];
    loop {
        // SAFETY: reads at most one byte into a local one.
        match unsafe { libc::read(requests, byte.as_mut_ptr().cast(), 1) } {
            1 => {
                byte[0] = process.stop_and_step();
                // SAFETY: writes one local byte.
                unsafe { libc::write(answers, byte.as_ptr().cast(), 1) };
            }
            // All signals but SIGKILL are blocked: nothing interrupts it.
            _ => exit(0),
        }
    }
}

/// Ends this child with the thread that started it, and keeps nothing of its parent's but the two
/// pipes: no file, no lock, no signal.
fn confine_child(parent: i32, requests: i32, answers: i32) {
    let (low, high) = (i64::from(requests.min(answers)), i64::from(requests.max(answers)));
    let ranges = [(0, low - 1), (low + 1, high - 1), (high + 1, i64::from(u32::MAX))];
    // SAFETY: system calls that take integers, and a signal set on the stack, which `sigfillset`
    // initializes. The closed descriptors belong to this copy of the process, which uses no other
    // than the two that stay open.
    unsafe {
        let mut all = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0);
        if libc::getppid() != parent {
            exit(0);
        }
        for (first, last) in ranges.into_iter().filter(|(first, last)| first <= last) {
            libc::syscall(libc::SYS_close_range, first, last, 0);
        }
    }
}

impl TracedProcess {
    /// Stops all threads, holds them, steps one, and lets all go on. Returns the answer.
    fn stop_and_step(&mut self) -> u8 {
        for thread in &mut self.threads {
            // Another thread may be about to end.
            if !thread.attach(self.pid) && thread.tid == self.stepped {
                // What is attached already must stop to be let go.
                self.release_all();
                return REFUSED;
            }
        }
        let deadline = Instant::now() + STOP_PATIENCE;
        while self.threads.iter_mut().any(|thread| !thread.is_settled()) && Instant::now() < deadline {
            pause(LOOK_EVERY);
        }
        let is_stopped = |thread: &TracedThread| matches!(thread.state, TraceState::Stopped(_));
        let has_stopped = self.threads.iter().any(is_stopped);
        let mut instructions = 0;
        if has_stopped {
            pause(HOLD);
            if let Some(thread) = self.threads.iter_mut().find(|thread| thread.tid == self.stepped) {
                instructions = thread.step_instructions();
            }
        }
        self.release_all();
        if has_stopped { STOPPED + instructions } else { NONE_STOPPED }
    }

    /// Lets all threads go on: at once those that are stopped, then those that stop later, such as
    /// after a write to disk or in a system call into which they stepped.
    fn release_all(&mut self) {
        for thread in &mut self.threads {
            thread.release();
        }
        for thread in &mut self.threads {
            while thread.is_awaited() {
                thread.wait(0);
            }
            thread.release();
        }
    }
}

impl TracedThread {
    const fn new(tid: i32) -> Self {
        Self { tid, state: TraceState::Free }
    }

    /// Attaches to the thread and asks it to stop. Returns `false` if the system refuses it. A
    /// thread that has ended stays free, also if another process has its number now.
    fn attach(&mut self, process: i32) -> bool {
        self.state = TraceState::Free;
        // SAFETY: takes integers; signal 0 only asks whether the process has that thread.
        if unsafe { libc::syscall(libc::SYS_tgkill, process, self.tid, 0) } != 0 {
            return true;
        }
        let is_attached = request(libc::PTRACE_SEIZE, self.tid, 0);
        if is_attached {
            self.state = TraceState::Stopping;
            // Fails only if it has ended.
            request(libc::PTRACE_INTERRUPT, self.tid, 0);
        }
        is_attached
    }

    fn is_awaited(&self) -> bool {
        matches!(self.state, TraceState::Stopping | TraceState::Stepping)
    }

    /// Looks whether the thread has stopped or ended by now.
    fn is_settled(&mut self) -> bool {
        if self.is_awaited() {
            self.wait(libc::WNOHANG);
        }
        !self.is_awaited()
    }

    /// Waits for the thread's stop or end.
    fn wait(&mut self, flags: i32) {
        let mut status = 0;
        // SAFETY: writes the status into a local number.
        match unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL | flags) } {
            0 => {}
            tid if tid == self.tid && libc::WIFSTOPPED(status) => {
                let (signal, is_event) = (libc::WSTOPSIG(status), status >> 16 == EVENT_STOP);
                if is_event && self.state == TraceState::Stepping {
                    // The process was stopped by a signal. The trap of the step may be pending, and
                    // would kill the process once nobody traces it.
                    self.step();
                    return;
                }
                // A signal that arrived first is handed on, but for the trap of a step.
                let is_own = is_event || signal == Signal::SIGTRAP as i32;
                self.state = TraceState::Stopped(if is_own { 0 } else { signal });
            }
            // It has ended, or is no tracee any more.
            _ => self.state = TraceState::Free,
        }
    }

    /// Executes a few instructions one by one, if no signal is due. An instruction that is a system
    /// call may sleep: then the thread is still [`TraceState::Stepping`], and stops at its return.
    /// Returns how many were executed.
    fn step_instructions(&mut self) -> u8 {
        let deadline = Instant::now() + STEP_PATIENCE;
        let mut executed = 0;
        while executed < INSTRUCTIONS && self.state == TraceState::Stopped(0) {
            self.step();
            while !self.is_settled() && Instant::now() < deadline {
                pause(LOOK_EVERY);
            }
            executed += u8::from(self.state == TraceState::Stopped(0));
        }
        executed
    }

    /// Lets the stopped thread execute its next instruction.
    fn step(&mut self) {
        // Fails only if it was killed.
        let is_stepping = request(libc::PTRACE_SINGLESTEP, self.tid, 0);
        self.state = if is_stepping { TraceState::Stepping } else { TraceState::Free };
    }

    /// Detaches from the thread if it is stopped, and lets it go on.
    fn release(&mut self) {
        if let TraceState::Stopped(signal) = self.state {
            // Fails only if it was killed.
            request(libc::PTRACE_DETACH, self.tid, signal);
            self.state = TraceState::Free;
        }
    }
}

/// Makes a request without an address. Returns whether the system has granted it.
fn request(kind: Request, tid: i32, data: i32) -> bool {
    let data: *mut c_void = without_provenance_mut(data as usize);
    // SAFETY: these requests take an integer in the place of `data` and touch no memory of this
    // process.
    unsafe { libc::ptrace(kind, tid, null_mut::<c_void>(), data) == 0 }
}

fn pause(time: Duration) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: reads a local structure.
    unsafe { libc::nanosleep(&raw const time, null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{state_in, thread_id};
    use crate::storm;
    use shm::sync::{AtomicU64, Ordering};

    fn new_debugger(threads: &[u32]) -> Debugger {
        Debugger::of_threads(threads.iter().map(|tid| *tid as i32).collect(), gettid().as_raw()).unwrap()
    }

    /// Asks for stops, sleeping and working in turns. Returns how many there were; `None`: this
    /// machine allows no debugger.
    fn count_stops(debugger: &mut Debugger, enough: u64) -> Option<u64> {
        let mut stops = 0;
        for round in 0..1_000 {
            match debugger.request_stop() {
                Ok(more) => stops += more,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    eprintln!("SKIPPED: ptrace is refused");
                    return None;
                }
                Err(error) => panic!("{error}"),
            }
            if stops >= enough {
                break;
            }
            if round % 2 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            } else {
                storm::signal_process().unwrap();
            }
        }
        Some(stops)
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn stopped_threads_go_on_and_no_child_stays() {
        let _guard = crate::only_one_has_children();
        storm::handle_signal().unwrap();
        static WORKER: AtomicU64 = AtomicU64::new(0);
        static IS_OVER: AtomicU64 = AtomicU64::new(0);
        let worker = std::thread::spawn(|| {
            WORKER.store(thread_id().into(), Ordering::Release);
            while IS_OVER.load(Ordering::Acquire) == 0 {
                std::hint::spin_loop();
            }
        });
        while WORKER.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        let tid = WORKER.load(Ordering::Acquire) as u32;
        let mut debugger = new_debugger(&[tid, thread_id()]);
        let Some(stops) = count_stops(&mut debugger, 50) else { return IS_OVER.store(1, Ordering::Release) };
        assert_eq!(stops, 50);
        assert!(debugger.stepped_instructions() > 0, "it was stepped");
        let child = debugger.child;
        drop(debugger);
        assert!(!std::path::Path::new(&format!("/proc/{child}")).exists(), "it was waited for");
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        assert_ne!(state_in(&stat), Some('t'), "it goes on");
        IS_OVER.store(1, Ordering::Release);
        worker.join().unwrap();
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn debugger_that_stops_nothing_counts_nothing() {
        let _guard = crate::only_one_has_children();
        storm::handle_signal().unwrap();
        let ended = std::thread::spawn(thread_id).join().unwrap();
        for threads in [&[][..], &[ended]] {
            let mut debugger = new_debugger(threads);
            assert_eq!(count_stops(&mut debugger, 1).unwrap_or(0), 0, "{threads:?}");
            assert!(debugger.is_asked, "and it was asked");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no ptrace")]
    fn refusal_is_that_of_the_stepped_thread() {
        // No thread may attach to one of its own process.
        let (pid, tid) = (getpid().as_raw(), gettid().as_raw());
        for (stepped, answer) in [(tid, REFUSED), (0, NONE_STOPPED)] {
            let mut process = TracedProcess { pid, threads: vec![TracedThread::new(tid)], stepped };
            assert_eq!(process.stop_and_step(), answer);
        }
    }
}

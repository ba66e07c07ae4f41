//! The threads of a process of a run.
//!
//! Where the run continues after a death, a strategy that is a thread of the engine's process dies
//! alone if its thread ends or hangs:
//!
//! | the thread | in this process | the launcher |
//! |---|---|---|
//! | panics | unwinds, is caught at its top, publishes why | fences it; may restart it |
//! | exits by a system call of its own | is gone, without unwinding | fences it |
//! | hangs | is abandoned: the process ends without it | fences it |
//!
//! The main thread watches the fences. It stops a fenced thread that runs again, and starts a
//! strategy's next incarnation once the launcher has published its epoch. What ends the process, such
//! as an abort or a fault of memory, ends all threads.

use super::compose::Loop;
use super::runner::{Confinement, Runner};
use anyhow::{Error, Result, anyhow};
use protocol::control::{Control, RunState};
use protocol::plan::{Plan, ThreadPlan};
use protocol::stamps::StampLog;
use protocol::status::StatusWriter;
use shm::idle::IdleStrategy;
use shm::memory::AtomicWords;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Scope};
use std::time::Duration;

/// Interval at which the main thread looks at the fences of strategies that die alone.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

thread_local! {
    /// The last panic of a thread that dies alone; `None` for every other thread.
    static OWN_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the message of a panic for its thread's status. Returns `false` if the process ends of it.
pub(super) fn keep_panic(info: &PanicHookInfo<'_>) -> bool {
    OWN_PANIC.with_borrow_mut(|kept| {
        let Some(kept) = kept else { return false };
        let what = info.payload_as_str().unwrap_or("without a message");
        *kept = match info.location() {
            Some(at) => format!("panicked: {what} ({}:{})", at.file(), at.line()),
            None => format!("panicked: {what}"),
        };
        true
    })
}

/// The loop of a thread, with all that it needs.
pub(super) struct ThreadLoop<'a> {
    pub thread: &'a ThreadPlan,
    pub run: Loop,
    pub segment: AtomicWords,
    pub log: StampLog,
    pub idle: IdleStrategy,
}

/// One thread of a process.
struct OwnThread<'a> {
    plan: &'a ThreadPlan,
    /// The strategy that it runs, if that dies alone.
    alone: Option<u16>,
    control: Control,
    status: StatusWriter,
}

/// The threads of a process, which its main thread starts and watches.
pub(super) struct ProcessThreads<'a> {
    plan: &'a Plan,
    control: &'a Control,
    sandbox: Option<&'a Confinement>,
    all: Vec<OwnThread<'a>>,
}

/// The end of a thread: its index, and its result.
type ThreadEnd = (usize, Result<()>);

impl<'a> ProcessThreads<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        control: &'a Control,
        sandbox: Option<&'a Confinement>,
        loops: &[ThreadLoop<'a>],
    ) -> Self {
        let own = |it: &ThreadLoop<'a>| {
            let alone = plan.strategy_dying_alone(it.thread);
            let control = if alone.is_some() { control.for_thread() } else { control.clone() };
            OwnThread { plan: it.thread, alone, control, status: StatusWriter::new(&it.segment) }
        };
        Self { plan, control, sandbox, all: loops.iter().map(own).collect() }
    }

    /// Runs the loops, each on a thread, until all have ended. `next` builds the loop of a
    /// strategy's next incarnation. If only threads are left that are fenced and have not ended,
    /// this ends the process.
    pub(super) fn run(
        &self,
        loops: Vec<ThreadLoop<'a>>,
        mut next: impl FnMut(&'a ThreadPlan) -> Result<Vec<ThreadLoop<'a>>>,
    ) -> Result<()> {
        let (sender, ends) = mpsc::channel();
        let mut is_running = vec![true; self.all.len()];
        let mut epochs = vec![0; self.all.len()];
        let mut result = Ok(());
        thread::scope(|scope| {
            for (index, one) in loops.into_iter().enumerate() {
                self.start(scope, index, one, &sender);
            }
            loop {
                let is_over = |(index, own): (usize, &OwnThread<'_>)| {
                    !is_running[index] || own.alone.is_some() && own.control.is_revoked()
                };
                if self.all.iter().enumerate().all(is_over) {
                    break;
                }
                if let Some((index, ended)) = self.await_end(&ends) {
                    is_running[index] = false;
                    // Of a strategy that dies alone it is in its status.
                    if self.all[index].alone.is_none() {
                        result = std::mem::replace(&mut result, Ok(())).and(ended);
                    }
                }
                for (index, own) in self.all.iter().enumerate() {
                    let Some(strategy) = own.alone else { continue };
                    let (life, epoch) = (self.control.incarnation(strategy), &mut epochs[index]);
                    if self.control.is_abandoned() {
                        own.control.abandon();
                    } else if is_running[index] && life.fenced && life.epoch == *epoch {
                        own.control.revoke();
                    } else if !is_running[index]
                        && !life.fenced
                        && life.epoch > *epoch
                        && self.control.state() != RunState::Stop
                    {
                        *epoch = life.epoch;
                        match next(own.plan) {
                            Ok(built) => {
                                is_running[index] = true;
                                built.into_iter().for_each(|it| self.start(scope, index, it, &sender));
                            }
                            Err(error) => own.status.fail(&format!("cannot be started: {error:#}")),
                        }
                    }
                }
            }
            if is_running.contains(&true) {
                exit_without_abandoned(&result);
            }
            result
        })
    }

    /// Starts a loop on a new thread, which sends its end.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        index: usize,
        one: ThreadLoop<'a>,
        ends: &Sender<ThreadEnd>,
    ) {
        let (own, ends) = (&self.all[index], ends.clone());
        let ThreadLoop { thread, run, segment, log, idle } = one;
        let runner =
            Runner { plan: self.plan, thread, segment, log, control: &own.control, sandbox: self.sandbox };
        scope.spawn(move || {
            let ended = match own.alone {
                Some(_) => run_alone(&own.status, move || run(runner, idle)),
                None => run(runner, idle),
            };
            // The main thread receives until all have ended.
            let _ = ends.send((index, ended));
        });
    }

    /// Waits for the next end of a thread; not for long if fences are to be watched.
    fn await_end(&self, ends: &Receiver<ThreadEnd>) -> Option<ThreadEnd> {
        if self.all.iter().all(|own| own.alone.is_none()) {
            return ends.recv().ok();
        }
        match ends.recv_timeout(WATCH_INTERVAL) {
            Ok(end) => Some(end),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

/// Runs the loop of a strategy that dies alone: at the top of its thread. A panic is caught once all
/// that the strategy had is dropped, and published in its status.
fn run_alone(status: &StatusWriter, run: impl FnOnce() -> Result<()>) -> Result<()> {
    OWN_PANIC.set(Some(String::new()));
    let ended = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        // Its destructor is the strategy's code, and may panic as well.
        std::mem::forget(payload);
        Err(anyhow!(OWN_PANIC.take().unwrap_or_default()))
    });
    ended.inspect_err(|error| status.fail(&format!("{error:#}")))
}

/// Ends the process although a fenced thread has not ended: it hangs, and cannot be joined.
fn exit_without_abandoned(result: &Result<(), Error>) -> ! {
    match result {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("error: {error:#}");
            std::process::exit(1)
        }
    }
}

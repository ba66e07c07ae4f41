//! The threads of a process of a run.
//!
//! Where the run continues after a death, a strategy that is a thread of the engine's process dies
//! alone if its thread ends or hangs:
//!
//! | the thread | in this process | the launcher |
//! |---|---|---|
//! | panics | unwinds, is caught at its top, publishes why | fences it; may restart it |
//! | exits by a system call of its own | is gone, without unwinding | the same |
//! | hangs | is abandoned: the process ends without it | fences it |
//! | errs, with a protection key | is gone, its handler published why | fences it; may restart it |
//!
//! The main thread watches the fences. It stops a fenced thread that runs again, and starts a
//! strategy's next incarnation once the launcher has published its epoch. What ends the process,
//! such as an abort or a fault of memory, ends all threads.

use super::compose::Loop;
use super::runner::{Confinement, Runner, ThreadKeys};
use anyhow::{Error, Result, anyhow};
use protocol::control::{Control, RunState};
use protocol::index::StrategyIndex;
use protocol::plan::{Plan, ThreadPlan};
use protocol::stamps::StampLog;
use protocol::status::StatusWriter;
use shm::idle::IdleStrategy;
use shm::memory::AtomicWords;
use shm::sync::{AtomicU64, Ordering};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Scope};
use std::time::Duration;
use system::keys::WriteRights;

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
    /// Memory that the thread may write, if it has a protection key.
    pub rights: Option<WriteRights>,
}

/// One thread of a process.
struct OwnThread<'a> {
    plan: &'a ThreadPlan,
    /// The strategy that it runs, if that dies alone.
    alone: Option<StrategyIndex>,
    status: StatusWriter,
    /// Set once a thread has ended at a mistake, in its signal handler: it sends no end.
    has_vanished: Arc<AtomicU64>,
}

impl OwnThread<'_> {
    /// Returns the function by which the thread's signal handler publishes why it ends.
    fn report(&self) -> Box<dyn Fn(&str)> {
        let (status, has_vanished) = (self.status.clone(), Arc::clone(&self.has_vanished));
        Box::new(move |why| {
            status.fail(why);
            // Release: pairs with the Acquire load of the main thread.
            has_vanished.store(1, Ordering::Release);
        })
    }

    fn has_vanished(&self) -> bool {
        // Acquire: pairs with the Release store of the thread's signal handler.
        self.has_vanished.load(Ordering::Acquire) > 0
    }
}

/// The state of a thread, as the main thread follows it.
struct WatchedThread {
    /// It has not sent its end.
    is_running: bool,
    /// Its incarnation.
    epoch: u16,
    /// Stops this incarnation, if its strategy dies alone.
    control: Control,
}

/// The threads of a process, which its main thread starts and watches.
pub(super) struct ProcessThreads<'a> {
    plan: &'a Plan,
    control: &'a Control,
    sandbox: Option<&'a Confinement>,
    all: Vec<OwnThread<'a>>,
    /// Some threads have a protection key, and vanish at a mistake.
    has_keys: bool,
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
        let own = |it: &ThreadLoop<'a>| OwnThread {
            plan: it.thread,
            alone: plan.strategy_dying_alone(it.thread),
            status: StatusWriter::new(&it.segment),
            has_vanished: Arc::default(),
        };
        let has_keys = loops.iter().any(|it| it.rights.is_some());
        Self { plan, control, sandbox, all: loops.iter().map(own).collect(), has_keys }
    }

    /// Runs the loops, each on a thread, until all have ended. `next` builds the loop of a
    /// strategy's next incarnation. If only threads are left that are fenced and have not ended,
    /// this ends the process.
    pub(super) fn run(
        &self,
        loops: Vec<ThreadLoop<'a>>,
        mut next: impl FnMut(&'a ThreadPlan) -> Result<Vec<ThreadLoop<'a>>>,
    ) -> Result<()> {
        let (sender, thread_ends) = mpsc::channel();
        let mut result = Ok(());
        thread::scope(|scope| {
            let start = |(index, one)| self.start(scope, index, 0, one, &sender);
            let mut watched: Vec<WatchedThread> = loops.into_iter().enumerate().map(start).collect();
            while !self.has_ended(&watched) {
                if let Some((index, ended)) = self.await_end(&thread_ends) {
                    watched[index].is_running = false;
                    // Of a strategy that dies alone it is in its status.
                    if self.all[index].alone.is_none() {
                        result = std::mem::replace(&mut result, Ok(())).and(ended);
                    }
                }
                self.exit_on_vanished();
                for (index, it) in watched.iter_mut().enumerate() {
                    let Some(epoch) = self.follow_fence(index, it) else { continue };
                    it.epoch = epoch;
                    match next(self.all[index].plan) {
                        Ok(built) => {
                            let started = |one| self.start(scope, index, epoch, one, &sender);
                            built.into_iter().for_each(|one| *it = started(one));
                        }
                        Err(error) => self.all[index].status.fail(&format!("cannot be started: {error:#}")),
                    }
                }
            }
            // A thread that has vanished is never joined.
            if watched.iter().any(|it| it.is_running) || self.all.iter().any(OwnThread::has_vanished) {
                exit_without_abandoned(&result);
            }
            result
        })
    }

    /// Ends the process if a thread has vanished whose end is that of the run.
    fn exit_on_vanished(&self) {
        if let Some(own) = self.all.iter().find(|own| own.alone.is_none() && own.has_vanished()) {
            eprintln!("error: {} ended at a mistake", own.plan.name);
            std::process::exit(101);
        }
    }

    /// Returns `true` if every thread has ended, or is fenced.
    fn has_ended(&self, watched: &[WatchedThread]) -> bool {
        watched.iter().all(|it| !it.is_running || it.control.is_revoked())
    }

    /// Stops a strategy that dies alone if it is fenced. Returns the epoch of its next incarnation,
    /// if that is to be started: the launcher publishes it once the last one's thread is gone.
    fn follow_fence(&self, index: usize, it: &WatchedThread) -> Option<u16> {
        let life = self.control.incarnation(self.all[index].alone?);
        if self.control.is_abandoned() {
            it.control.abandon();
        } else if life.fenced && life.epoch == it.epoch {
            it.control.revoke();
        }
        let is_next = !life.fenced && life.epoch > it.epoch && self.control.state() != RunState::Stop;
        is_next.then_some(life.epoch)
    }

    /// Starts a loop on a new thread, which sends its end.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        index: usize,
        epoch: u16,
        one: ThreadLoop<'a>,
        thread_ends: &Sender<ThreadEnd>,
    ) -> WatchedThread {
        let (own, thread_ends) = (&self.all[index], thread_ends.clone());
        let control = if own.alone.is_some() { self.control.for_thread() } else { self.control.clone() };
        let watched = WatchedThread { is_running: true, epoch, control: control.clone() };
        let ThreadLoop { thread, run, segment, log, idle, rights } = one;
        scope.spawn(move || {
            let (plan, sandbox) = (self.plan, self.sandbox);
            let keys = rights.map(|rights| ThreadKeys { rights, report: own.report() });
            let run = || run(Runner { plan, thread, segment, log, control: &control, sandbox, keys }, idle);
            let ended = if own.alone.is_some() { run_alone(&own.status, run) } else { run() };
            // The main thread receives until all have ended.
            let _ = thread_ends.send((index, ended));
        });
        watched
    }

    /// Waits for the next end of a thread; not for long if fences are to be watched.
    fn await_end(&self, thread_ends: &Receiver<ThreadEnd>) -> Option<ThreadEnd> {
        if self.all.iter().all(|own| own.alone.is_none()) && !self.has_keys {
            return thread_ends.recv().ok();
        }
        thread_ends.recv_timeout(WATCH_INTERVAL).ok()
    }
}

/// Runs the loop of a strategy that dies alone, at the top of its thread. A panic is caught once
/// all that the strategy had is dropped, and published in its status.
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

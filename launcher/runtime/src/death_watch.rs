//! Watches the locks that a run's threads hold while they live, next to the pidfds of its
//! processes.
//!
//! A dead thread's lock is free before the kernel has dismantled its process ([`system::robust`]).
//! A futex cannot be polled with descriptors, so threads of the launcher sleep on the words, and
//! one whose word changes wakes the launcher through a socket. They sleep for as long as nobody
//! dies.
//!
//! Such a thread also lets the process exit before others get its cores ([`system::dying`]): the
//! launcher finds all threads exiting when it looks.
//!
//! The words belong to suspects. A word is watched until it changes once, so a process that writes
//! it again and again wakes the launcher once. What a free lock means is decided in
//! [`supervision`].

use protocol::plan::{Plan, ProcessPlan};
use run_memory::segments::Segments;
use shm::futex::{self, MAX_WORDS, Woken};
use shm::memory::AtomicWords;
use shm::sync::{AtomicU64, Ordering};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use system::dying::hasten_exit;
use system::robust::LockState;

/// Maximum time for which the exit of a process is hastened: its threads exit within microseconds
/// of its death, and one that is not dying would be waited for in vain.
const MAX_HASTE: Duration = Duration::from_millis(2);
/// A thread that sleeps this long looks at its words again.
const SLEEP: Duration = Duration::from_secs(3600);

/// The word of a thread's lock.
#[derive(Clone)]
struct WatchedWord {
    word: AtomicWords,
    /// The word's value while the thread lives.
    value: u32,
    /// The id of the thread's process.
    pid: u32,
}

impl WatchedWord {
    fn has_changed(&self) -> bool {
        self.word[0].load(Ordering::Relaxed) as u32 != self.value
    }

    fn has_owner_died(&self) -> bool {
        LockState::from_word(self.word[0].load(Ordering::Relaxed)) == LockState::OwnerDied
    }
}

/// What the launcher and a sleeping thread share.
#[derive(Default)]
struct WatchState {
    words: Mutex<Vec<WatchedWord>>,
    /// A futex that changes with `words`; [`STOPPED`]: the thread is to end.
    changes: AtomicU64,
}

impl WatchState {
    fn lock(&self) -> MutexGuard<'_, Vec<WatchedWord>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value of `changes` at which the thread ends.
const STOPPED: u64 = u64::MAX;

/// A thread that sleeps until a word changes.
struct Sleeper {
    state: Arc<WatchState>,
    thread: Option<JoinHandle<()>>,
}

impl Sleeper {
    /// Starts a thread, which writes a byte to the socket whenever a word has changed. Without it
    /// the locks are only looked at when the launcher wakes up for something else.
    fn start(socket: UnixStream) -> Self {
        let state = Arc::<WatchState>::default();
        let own = Arc::clone(&state);
        let thread = thread::Builder::new().name("deaths".into()).spawn(move || sleep(&own, &socket)).ok();
        Self { state, thread }
    }

    fn watch(&self, word: WatchedWord) {
        self.state.lock().push(word);
        // Release: pairs with the Acquire load of the thread.
        self.state.changes.fetch_add(1, Ordering::Release);
        futex::wake_all(&self.state.changes);
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.state.changes.store(STOPPED, Ordering::Release);
        futex::wake_all(&self.state.changes);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns `true` if a process was not reaped yet.
fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Sleeps until words change, and reports that, until it is stopped.
fn sleep(state: &WatchState, mut socket: &UnixStream) {
    let mut hastened = None;
    loop {
        // Acquire: pairs with the Release stores of the launcher.
        let changes = state.changes.load(Ordering::Acquire);
        if changes == STOPPED {
            return;
        }
        let changed: Vec<WatchedWord> = state.lock().extract_if(.., |word| word.has_changed()).collect();
        if !changed.is_empty() {
            for dead in changed.iter().filter(|word| word.has_owner_died()) {
                // One at a time: where no core idles, it stays for seconds, and the run's end
                // waits.
                let is_alone = hastened == Some(dead.pid) || !hastened.is_some_and(exists);
                if is_alone && hasten_exit(dead.pid, MAX_HASTE) {
                    hastened = Some(dead.pid);
                }
            }
            // A full socket wakes the launcher as well.
            let _ = socket.write(&[1]);
        }
        let words = state.lock().clone();
        let watched = words.iter().map(|watched| (&watched.word[0], watched.value));
        let all = std::iter::once((&state.changes, changes as u32)).chain(watched);
        if futex::wait_any(all, SLEEP) == Woken::Unsupported {
            futex::wait(&state.changes, changes as u32, SLEEP);
        }
    }
}

/// The locks of a run's threads.
pub(super) struct DeathWatch {
    /// The lock of each thread of the plan; `None`: its death is not proven early.
    locks: Vec<Option<AtomicWords>>,
    /// The locks that threads of the present incarnations were found to hold.
    are_watched: Vec<bool>,
    sleepers: Vec<Sleeper>,
    socket: UnixStream,
    /// The sleepers' end. Held open without sleepers as well: a socket whose other end is closed is
    /// readable for good, so that the launcher would never sleep.
    _theirs: UnixStream,
}

impl DeathWatch {
    /// Starts threads that watch the robust locks of a run's threads, which the kernel releases
    /// when a thread ends.
    pub fn start(segments: &Segments) -> std::io::Result<Self> {
        let plan = &segments.plan;
        let lock = |thread: usize| {
            let owner = plan.processes.iter().find(|process| process.threads.contains(&(thread as u32)))?;
            segments.robust_lock(thread).filter(|_| is_watched(plan, owner))
        };
        Self::watch((0..plan.threads.len()).map(lock).collect())
    }

    /// Starts the threads that watch locks, those of a run's threads in the order of its plan.
    fn watch(locks: Vec<Option<AtomicWords>>) -> std::io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        // One word of each call is the thread's own.
        let count = locks.iter().flatten().count().div_ceil(MAX_WORDS - 1);
        let sleepers = (0..count).map(|_| Ok(Sleeper::start(theirs.try_clone()?)));
        let sleepers = sleepers.collect::<std::io::Result<_>>()?;
        Ok(Self { are_watched: vec![false; locks.len()], locks, sleepers, socket, _theirs: theirs })
    }

    /// Returns `true` if the robust locks of a process's threads show that at least one thread has
    /// died and no thread holds its lock. Begins to watch those that it finds held. `pid` is the
    /// process's id.
    pub fn is_lock_free(&mut self, process: &ProcessPlan, pid: u32) -> bool {
        let (mut has_died, mut is_held) = (false, false);
        for thread in process.threads.iter().map(|thread| *thread as usize) {
            let Some(lock) = &self.locks[thread] else { return false };
            let word = lock[0].load(Ordering::Relaxed);
            match LockState::from_word(word) {
                LockState::OwnerDied => has_died = true,
                LockState::Free => {}
                LockState::Held => {
                    is_held = true;
                    if !std::mem::replace(&mut self.are_watched[thread], true) && !self.sleepers.is_empty() {
                        // Those of one sleeper are as many as it can watch.
                        self.sleepers[thread % self.sleepers.len()].watch(WatchedWord {
                            word: lock.clone(),
                            value: word as u32,
                            pid,
                        });
                    }
                }
            }
        }
        has_died && !is_held
    }

    /// Marks the locks of a restarted process as not watched, so that those of its next incarnation
    /// are watched again.
    pub fn forget(&mut self, process: &ProcessPlan) {
        process.threads.iter().for_each(|thread| self.are_watched[*thread as usize] = false);
    }

    /// Discards the pending notifications that a watched thread's lock word has changed.
    pub fn clear(&mut self) {
        while self.socket.read(&mut [0; 64]).is_ok_and(|len| len > 0) {}
    }
}

impl AsFd for DeathWatch {
    /// Returns a descriptor that is readable once a word has changed.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns `true` if the deaths of a process are proven early, and the run goes on after them.
fn is_watched(plan: &Plan, process: &ProcessPlan) -> bool {
    plan.can_prove_death_early(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::memory::Region;
    use system::process::wait_readable;

    fn store(word: &AtomicWords, value: u64) {
        word[0].store(value, Ordering::Relaxed);
        futex::wake_all(&word[0]);
    }

    #[test]
    fn watch_without_locks_wakes_nobody() {
        let watch = DeathWatch::watch(vec![None]).unwrap();
        assert_eq!(wait_readable(&[watch.as_fd()], Duration::ZERO).unwrap(), [false]);
    }

    #[test]
    fn word_that_changes_wakes_once() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (word, other) = (Region::heap(1).words(), Region::heap(1).words());
        store(&word, 7);
        store(&other, 8);
        let sleeper = Sleeper::start(theirs);
        sleeper.watch(WatchedWord { word: word.clone(), value: 7, pid: 0 });
        sleeper.watch(WatchedWord { word: other.clone(), value: 8, pid: 0 });
        store(&word, 9);
        assert_eq!(wait_readable(&[ours.as_fd()], Duration::from_secs(60)).unwrap(), [true]);
        assert_eq!((&ours).read(&mut [0; 8]).unwrap(), 1);
        (0..100).for_each(|value| store(&word, value));
        store(&other, 0);
        assert_eq!(wait_readable(&[ours.as_fd()], Duration::from_secs(60)).unwrap(), [true]);
        drop(sleeper);
        assert_eq!((&ours).read(&mut [0; 8]).unwrap(), 1, "the first word is watched no more");
    }
}

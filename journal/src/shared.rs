//! What the writer and its threads share: how far the log has come, how far it is on the disk, and whether it has failed.

use crate::disk::{self, Disk};
use crate::error::JournalError;
use crate::format::WATERMARK;
use shm::memory::Region;
use shm::sync::{AtomicU64, Ordering};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A counter in cache lines of its own: the writer and the threads must not take each other's.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Line(AtomicU64);

impl core::ops::Deref for Line {
    type Target = AtomicU64;

    #[inline(always)]
    fn deref(&self) -> &AtomicU64 {
        &self.0
    }
}

/// A segment that the writer has mapped.
pub(crate) struct Mapped {
    pub index: u64,
    pub path: PathBuf,
    pub file: File,
    pub region: Arc<Region>,
    pub seed: u32,
}

/// Shared by the writer, its threads and its watermarks.
pub(crate) struct Shared {
    pub folder: PathBuf,
    pub log: u64,
    pub disk: Arc<dyn Disk>,
    /// The last record that was appended. The writer stores it (Release), whoever syncs loads it (Acquire).
    pub appended: Line,
    /// The segment that it stands in, stored before it.
    pub segment: Line,
    /// The last record that is on the disk. Stored (Release) by whoever has synced, under `syncing`.
    pub durable: Line,
    /// 1 from the first failure on.
    failed: Line,
    /// 1 when the threads shall end.
    pub stop: Line,
    /// The highest record that somebody waits for.
    pub asked: Line,
    /// The first failure's message.
    reason: Mutex<String>,
    /// Segments that may hold what is not yet on the disk, the first one first.
    segments: Mutex<Vec<Arc<Mapped>>>,
    syncing: Mutex<()>,
    synced: Condvar,
    /// The thread that syncs groups.
    pub syncer: OnceLock<Thread>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn new(folder: PathBuf, log: u64, disk: Arc<dyn Disk>, last: u64, durable: u64) -> Self {
        let shared = Self {
            folder,
            log,
            disk,
            appended: Line::default(),
            segment: Line::default(),
            durable: Line::default(),
            failed: Line::default(),
            stop: Line::default(),
            asked: Line::default(),
            reason: Mutex::default(),
            segments: Mutex::default(),
            syncing: Mutex::default(),
            synced: Condvar::new(),
            syncer: OnceLock::new(),
        };
        shared.appended.store(last, Ordering::Relaxed);
        shared.durable.store(durable, Ordering::Relaxed);
        shared
    }

    /// A segment that will be written.
    pub fn add(&self, segment: &Arc<Mapped>) {
        locked(&self.segments).push(Arc::clone(segment));
    }

    #[inline(always)]
    pub fn is_failed(&self) -> bool {
        // Relaxed: it only must be seen some time soon. Who wants to know what is certain asks the watermark.
        self.failed.load(Ordering::Relaxed) != 0
    }

    /// The error of everything that is asked after a failure.
    #[cold]
    pub fn failure(&self) -> JournalError {
        JournalError::Failed(locked(&self.reason).clone())
    }

    /// Stops the journal for good.
    #[cold]
    pub fn fail(&self, error: JournalError) -> JournalError {
        let mut reason = locked(&self.reason);
        if reason.is_empty() {
            *reason = match error {
                JournalError::Failed(reason) => reason,
                error => error.to_string(),
            };
        }
        drop(reason);
        // Release: whoever sees it finds the reason.
        self.failed.store(1, Ordering::Release);
        drop(locked(&self.syncing));
        self.synced.notify_all();
        self.failure()
    }

    /// Puts everything that was appended before this call on the disk; the last record of that. The first failure is the last call
    /// that tries.
    pub fn sync(&self) -> Result<u64, JournalError> {
        let turn = locked(&self.syncing);
        if self.is_failed() {
            return Err(self.failure());
        }
        // Acquire: pairs with the Release of the append. Its segment was stored before it.
        let appended = self.appended.load(Ordering::Acquire);
        if appended == self.durable.load(Ordering::Relaxed) {
            return Ok(appended);
        }
        // Acquire: pairs with the Release of the roll. All records of the segments before it are stored, so that these are done with.
        let current = self.segment.load(Ordering::Acquire);
        let open: Vec<_> =
            locked(&self.segments).iter().filter(|segment| segment.index <= current).cloned().collect();
        for segment in &open {
            if let Err(error) = disk::sync(&*self.disk, &segment.path, &segment.file) {
                drop(turn);
                return Err(self.fail(error));
            }
        }
        locked(&self.segments).retain(|segment| segment.index >= current);
        // Release: whoever sees it may believe that the disk has it.
        self.durable.store(appended, Ordering::Release);
        if let Some(segment) = open.last() {
            // For recovery: goes to the disk with the next sync. Torn, it is not believed.
            let words = segment.region.words();
            words[WATERMARK / 8 + 1].store(!appended, Ordering::Relaxed);
            words[WATERMARK / 8].store(appended, Ordering::Relaxed);
        }
        drop(turn);
        self.synced.notify_all();
        Ok(appended)
    }
}

/// How far the log is on the disk: to be looked at, or waited for, from any thread.
#[derive(Clone)]
pub struct Watermark(pub(crate) Arc<Shared>);

impl Watermark {
    /// The last record that is on the disk, with all before it. Never goes back. Under [`crate::Durability::Process`] it moves only when
    /// somebody syncs: a snapshot, or [`crate::Writer::sync`].
    pub fn durable(&self) -> u64 {
        // Acquire: pairs with the Release in `sync`.
        self.0.durable.load(Ordering::Acquire)
    }

    /// Whether the journal has failed: the watermark stands still then, for ever.
    ///
    /// # Errors
    /// [`JournalError::Failed`] with the reason.
    pub fn check(&self) -> Result<(), JournalError> {
        if self.0.is_failed() { Err(self.0.failure()) } else { Ok(()) }
    }

    /// Waits until that record is on the disk, at most so long; whether it is. Under [`crate::Durability::Group`] the group is synced at
    /// once.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn wait(&self, sequence: u64, at_most: Duration) -> Result<bool, JournalError> {
        let shared = &*self.0;
        let until = Instant::now() + at_most;
        shared.asked.fetch_max(sequence, Ordering::AcqRel);
        loop {
            if self.durable() >= sequence {
                return Ok(true);
            }
            self.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if let Some(syncer) = shared.syncer.get() {
                syncer.unpark();
            }
            // While a sync runs this waits for its lock, and finds its result. Otherwise not long: a notification may be missed.
            let turn = locked(&shared.syncing);
            if self.durable() < sequence && !shared.is_failed() {
                drop(shared.synced.wait_timeout(turn, left.min(Duration::from_millis(1))));
            }
        }
    }
}

//! State that the writer and its threads share: end of the log, synced end, failure.

use crate::disk::{self, Disk};
use crate::error::JournalError;
use crate::format::WATERMARK;
use crate::segment;
use shm::memory::Region;
use shm::sync::{AtomicU64, Ordering};
use std::fs::File;
use std::io;
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

/// A segment that is mapped, to be written.
pub(crate) struct Mapped {
    pub index: u64,
    pub path: PathBuf,
    pub file: File,
    pub region: Arc<Region>,
    pub seed: u32,
}

/// Segments that may hold what is not yet on the disk.
struct Segments {
    /// The number of the first of them.
    unsynced: u64,
    /// Those that are mapped, the first one first. Before them are those that were let go: their
    /// numbers are enough to find them.
    mapped: Vec<Arc<Mapped>>,
}

/// Shared by the writer, its threads and its watermarks.
pub(crate) struct Shared {
    pub folder: PathBuf,
    pub log: u64,
    pub disk: Arc<dyn Disk>,
    /// The last record that was appended. The writer stores it (Release), whoever syncs loads it
    /// (Acquire).
    pub appended: Line,
    /// The segment that it stands in, stored before it.
    pub segment: Line,
    /// The last record that is on the disk. Stored (Release) by whoever has synced, under
    /// `syncing`.
    pub durable: Line,
    /// 1 from the first failure on.
    failed: Line,
    /// 1 when the threads shall end.
    pub stop: Line,
    /// The highest record that somebody waits for.
    pub asked: Line,
    /// The first failure's message.
    reason: Mutex<String>,
    segments: Mutex<Segments>,
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
    /// From that segment on records may not be on the disk; none is mapped yet.
    pub fn new(
        folder: PathBuf,
        log: u64,
        disk: Arc<dyn Disk>,
        last: u64,
        durable: u64,
        unsynced: u64,
    ) -> Self {
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
            segments: Mutex::new(Segments { unsynced, mapped: Vec::new() }),
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
        locked(&self.segments).mapped.push(Arc::clone(segment));
    }

    /// Where nobody waits for the disk: unmaps and closes what is written to its end, in the
    /// calling thread. Who syncs opens it again.
    pub fn let_go(&self) {
        // Acquire: pairs with the Release of the roll. The writer has let go of all segments before
        // it.
        let current = self.segment.load(Ordering::Acquire);
        let mut segments = locked(&self.segments);
        let done = segments.mapped.partition_point(|segment| segment.index < current);
        let done: Vec<_> = segments.mapped.drain(..done).collect();
        // Unmapping takes its time: not under the lock.
        drop(segments);
        drop(done);
    }

    #[inline(always)]
    pub fn is_failed(&self) -> bool {
        // Relaxed: it only must be seen some time soon. Who wants to know what is certain asks the
        // watermark.
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

    /// Puts everything that was appended before this call on the disk; the last record of that. The
    /// first failure is the last call that tries.
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
        // Acquire: pairs with the Release of the roll. All records of the segments before it are
        // stored, so that these are done with.
        let current = self.segment.load(Ordering::Acquire);
        let segments = locked(&self.segments);
        let open: Vec<_> =
            segments.mapped.iter().filter(|segment| segment.index <= current).cloned().collect();
        let mut closed = segments.unsynced..open.first().map_or(current, |segment| segment.index);
        drop(segments);
        let synced = closed.try_for_each(|index| self.sync_closed(index)).and_then(|()| {
            open.iter().try_for_each(|segment| disk::sync(&*self.disk, &segment.path, &segment.file))
        });
        if let Err(error) = synced {
            drop(turn);
            return Err(self.fail(error));
        }
        let mut segments = locked(&self.segments);
        segments.mapped.retain(|segment| segment.index >= current);
        segments.unsynced = current;
        drop(segments);
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

    /// Puts a segment on the disk that was let go, or that a predecessor wrote. One that is not
    /// there any more was removed behind a snapshot, before which the log was synced. A write of
    /// the kernel's that has failed meanwhile is told to who opens the file next, if nobody was
    /// told before (Linux 4.17).
    fn sync_closed(&self, index: u64) -> Result<(), JournalError> {
        let path = segment::path(&self.folder, index);
        match File::open(&path) {
            Ok(file) => disk::sync(&*self.disk, &path, &file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(JournalError::io(&path, "open it")(error)),
        }
    }
}

/// How far the log is on the disk: to be looked at, or waited for, from any thread.
#[derive(Clone)]
pub struct Watermark(pub(crate) Arc<Shared>);

impl Watermark {
    /// The last record that is on the disk, with all before it. Never goes back. Under
    /// [`crate::Durability::Process`] it moves only when somebody syncs: a snapshot, or
    /// [`crate::Writer::sync`].
    pub fn durable(&self) -> u64 {
        // Acquire: pairs with the Release in `sync`.
        self.0.durable.load(Ordering::Acquire)
    }

    /// Puts everything that was appended on the disk, in this thread, if it is not there yet.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn sync(&self) -> Result<(), JournalError> {
        self.0.sync().map(drop)
    }

    /// Whether the journal has failed: the watermark stands still then, for ever.
    ///
    /// # Errors
    /// [`JournalError::Failed`] with the reason.
    pub fn check(&self) -> Result<(), JournalError> {
        if self.0.is_failed() { Err(self.0.failure()) } else { Ok(()) }
    }

    /// Waits until that record is on the disk, at most so long; whether it is. Under
    /// [`crate::Durability::Group`] the group is synced at once.
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
            // While a sync runs this waits for its lock, and finds its result. Otherwise not long:
            // a notification may be missed.
            let turn = locked(&shared.syncing);
            if self.durable() < sequence && !shared.is_failed() {
                drop(shared.synced.wait_timeout(turn, left.min(Duration::from_millis(1))));
            }
        }
    }
}

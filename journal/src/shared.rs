//! The state that the writer shares with its threads: end of the log, durable end, failure.

use crate::disk::{self, Disk};
use crate::error::JournalError;
use crate::format::WATERMARK;
use crate::mapping::MappedWords;
use crate::segment;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A counter on cache lines of its own, against false sharing.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct PaddedCounter(AtomicU64);

impl core::ops::Deref for PaddedCounter {
    type Target = AtomicU64;

    #[inline(always)]
    fn deref(&self) -> &AtomicU64 {
        &self.0
    }
}

pub(crate) struct MappedSegment {
    pub index: u64,
    pub path: PathBuf,
    pub file: File,
    pub words: MappedWords,
    pub seed: u32,
}

impl MappedSegment {
    /// Stores the watermark in the header, for recovery. It reaches the disk with the next sync; a
    /// torn one is ignored.
    fn store_watermark(&self, durable: u64) {
        self.words[WATERMARK / 8 + 1].store(!durable, Ordering::Relaxed);
        self.words[WATERMARK / 8].store(durable, Ordering::Relaxed);
    }
}

/// The segments that may hold records which are not durable yet.
struct UnsyncedSegments {
    /// Index of the first of them.
    unsynced: u64,
    /// The mapped ones in order. Earlier ones were unmapped, and are opened by their index.
    mapped: Vec<Arc<MappedSegment>>,
}

/// The state that a log's writer shares with its threads and watermarks.
pub(crate) struct Shared {
    pub folder: PathBuf,
    pub log: u64,
    pub disk: Arc<dyn Disk>,
    /// Last appended record. Stored by the writer (Release), loaded by the syncing thread
    /// (Acquire).
    pub appended: PaddedCounter,
    /// Segment of the last appended record, stored before it.
    pub segment: PaddedCounter,
    /// Last durable record. Stored (Release) by the syncing thread, which holds `syncing`.
    pub durable: PaddedCounter,
    /// 1 after the first failure.
    failed: PaddedCounter,
    /// 1 once the threads must stop.
    pub stop: PaddedCounter,
    reason: Mutex<String>,
    segments: Mutex<UnsyncedSegments>,
    /// Held while a thread syncs: others wait for it, and find its result.
    syncing: Mutex<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No data is left inconsistent under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Creates the state that the threads of an open journal share; from the journal's segment
    /// `unsynced` on, records may not be durable yet.
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
            appended: PaddedCounter::default(),
            segment: PaddedCounter::default(),
            durable: PaddedCounter::default(),
            failed: PaddedCounter::default(),
            stop: PaddedCounter::default(),
            reason: Mutex::default(),
            segments: Mutex::new(UnsyncedSegments { unsynced, mapped: Vec::new() }),
            syncing: Mutex::default(),
        };
        shared.appended.store(last, Ordering::Relaxed);
        shared.durable.store(durable, Ordering::Relaxed);
        shared
    }

    /// Adds a log segment (file) to which records will be written.
    pub fn add(&self, segment: &Arc<MappedSegment>) {
        let mut segments = locked(&self.segments);
        // Relaxed: stored under this lock.
        segment.store_watermark(self.durable.load(Ordering::Relaxed));
        segments.mapped.push(Arc::clone(segment));
    }

    /// Unmaps and closes the full log segments, in the calling thread. A later sync opens them
    /// again. For durabilities that do not wait for the disk.
    pub fn unmap_written(&self) {
        // Acquire: pairs with the Release of the roll. The writer no longer uses earlier segments.
        let current = self.segment.load(Ordering::Acquire);
        let mut segments = locked(&self.segments);
        let done = segments.mapped.partition_point(|segment| segment.index < current);
        let done: Vec<_> = segments.mapped.drain(..done).collect();
        // Unmapping is slow, so not under the lock.
        drop(segments);
        drop(done);
    }

    #[inline(always)]
    pub fn is_failed(&self) -> bool {
        // Relaxed: it only needs to be seen soon. Durability is decided by the watermark.
        self.failed.load(Ordering::Relaxed) != 0
    }

    /// Returns an error, with the first failure's reason, if the journal has failed.
    #[inline(always)]
    pub fn check(&self) -> Result<(), JournalError> {
        if self.is_failed() { Err(self.failure()) } else { Ok(()) }
    }

    #[cold]
    fn failure(&self) -> JournalError {
        JournalError::Failed(locked(&self.reason).clone())
    }

    /// Marks the journal as failed for all later calls. Returns the error of all later calls.
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
        // Release: a thread that sees it finds the reason.
        self.failed.store(1, Ordering::Release);
        self.failure()
    }

    /// Makes all of the log's records durable that were appended before this call. Returns the last
    /// of them. If another thread syncs, waits for it first: threads that wait together share one
    /// sync. After the first failure no sync is tried again.
    pub fn sync(&self) -> Result<u64, JournalError> {
        let _turn = locked(&self.syncing);
        self.check()?;
        // Acquire: pairs with the Release of the append. Its segment was stored before it.
        let appended = self.appended.load(Ordering::Acquire);
        if appended == self.durable.load(Ordering::Relaxed) {
            return Ok(appended);
        }
        // Acquire: pairs with the Release of the roll. All records of earlier segments are stored.
        let current = self.segment.load(Ordering::Acquire);
        let segments = locked(&self.segments);
        let open: Vec<_> =
            segments.mapped.iter().filter(|segment| segment.index <= current).cloned().collect();
        let closed = segments.unsynced..open.first().map_or(current, |segment| segment.index);
        drop(segments);
        let synced = self.sync_closed(closed).and_then(|()| {
            open.iter().try_for_each(|segment| disk::sync(&*self.disk, &segment.path, &segment.file))
        });
        if let Err(error) = synced {
            return Err(self.fail(error));
        }
        let mut segments = locked(&self.segments);
        segments.mapped.retain(|segment| segment.index >= current);
        segments.unsynced = current;
        // Before records count as durable, and also in the prepared segment, which comes first: at
        // most one header is torn by a kill, and the loss of one segment leaves the other's.
        segments.mapped.iter().rev().for_each(|segment| segment.store_watermark(appended));
        // Release: pairs with the Acquire in `Watermark::durable`.
        self.durable.store(appended, Ordering::Release);
        drop(segments);
        Ok(appended)
    }

    /// Syncs the segments of a range of indices that were unmapped, or that a predecessor wrote. A
    /// missing one was removed after a snapshot, before which the log was synced. If the kernel
    /// failed to write a page of it, opening the file reports that error once (Linux 4.17).
    fn sync_closed(&self, indices: Range<u64>) -> Result<(), JournalError> {
        if indices.is_empty() {
            return Ok(());
        }
        // Listed, not counted: after a stray file the indices continue at its number.
        for (_, path) in segment::list(&self.folder)?.iter().filter(|(index, _)| indices.contains(index)) {
            match File::open(path) {
                Ok(file) => disk::sync(&*self.disk, path, &file)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(JournalError::io(path, "open it")(error)),
            }
        }
        Ok(())
    }
}

/// A handle to the durable end of a log, to read or wait for from any thread.
#[derive(Clone)]
pub struct Watermark(pub(crate) Arc<Shared>);

impl Watermark {
    /// Returns the sequence number of the log's last durable record; all before it are durable too.
    /// Never decreases. Under [`crate::Durability::Process`] it advances only with a snapshot or an
    /// explicit sync.
    pub fn durable(&self) -> u64 {
        // Acquire: pairs with the Release in `sync`.
        self.0.durable.load(Ordering::Acquire)
    }

    /// Makes all of the log's appended records durable, working in the calling thread.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn sync(&self) -> Result<(), JournalError> {
        self.0.sync().map(drop)
    }

    /// Checks that the journal has not failed; after a failure the watermark no longer advances.
    ///
    /// # Errors
    /// [`JournalError::Failed`] with the reason.
    pub fn check(&self) -> Result<(), JournalError> {
        self.0.check()
    }

    /// Waits until the record with this sequence number is durable, at most for `timeout`. Returns
    /// `false` if it was not appended within `timeout`.
    ///
    /// The calling thread syncs the log itself, unless another thread does so already: of all
    /// threads that wait, one syncs for all (leader-based group commit). The timeout does not
    /// interrupt a sync.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn wait(&self, sequence: u64, timeout: Duration) -> Result<bool, JournalError> {
        let until = Instant::now() + timeout;
        loop {
            if self.durable() >= sequence {
                return Ok(true);
            }
            self.check()?;
            // Acquire: as in `sync`.
            if self.0.appended.load(Ordering::Acquire) >= sequence {
                self.sync()?;
                continue;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            thread::sleep(left.min(Duration::from_millis(1)));
        }
    }
}

//! The writer: appends records, hands snapshots over, and says how far everything is on the disk.

use crate::disk::{self, Disk, Os};
use crate::error::JournalError;
use crate::format::{self, ROLL, SEGMENT_HEADER};
use crate::helper::{self, Job, Make};
use crate::reader::Reader;
use crate::recovery::{self, End, Recovered};
use crate::segment;
use crate::shared::{Mapped, Shared, Watermark};
use crate::snapshot;
use shm::memory::{AtomicWords, Region};
use shm::prefetch::prefetch_ahead;
use shm::sync::Ordering;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use system::folder::OpenDir;

/// What an append promises; see the [crate's table](crate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing.
    None,
    /// It survives the process.
    Process,
    /// As `Process`, and the machine once the watermark is there: a thread syncs when so many
    /// records wait, or one for so long.
    Group {
        /// Records.
        records: u64,
        /// Time.
        within: Duration,
    },
    /// It survives the machine.
    Each,
}

/// How a journal is written.
#[derive(Clone)]
pub struct Options {
    /// What an append promises.
    pub durability: Durability,
    /// Bytes of a segment: from 4096, a multiple of 8.
    pub segment_bytes: u64,
    /// Records after which [`Writer::snapshot_is_due`]; 0 for never.
    pub snapshot_every: u64,
    /// Snapshots that are kept, from 1; the log is kept from the oldest of them on.
    pub keep_snapshots: usize,
    /// What is asked before each system call that changes the disk.
    pub disk: Arc<dyn Disk>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Process,
            segment_bytes: 64 << 20,
            snapshot_every: 0,
            keep_snapshots: 2,
            disk: Arc::new(Os),
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), JournalError> {
        let wrong = |what: String| Err(JournalError::Options(what));
        if self.segment_bytes < 4096 || !self.segment_bytes.is_multiple_of(8) || self.segment_bytes > 1 << 31
        {
            return wrong(format!(
                "segments of {} bytes: from 4096 to 2^31, a multiple of 8",
                self.segment_bytes
            ));
        }
        if self.keep_snapshots == 0 {
            return wrong("no snapshot kept: 1 at least".to_owned());
        }
        Ok(())
    }
}

/// The one writer of a folder.
pub struct Writer {
    words: AtomicWords,
    /// The word where the next record begins.
    at: usize,
    seed: u32,
    next: u64,
    most: usize,
    durability: Durability,
    shared: Arc<Shared>,
    ready: Option<Receiver<Arc<Mapped>>>,
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    snapshot_every: u64,
    snapshot_at: u64,
    waited: u64,
    end: End,
    _lock: Option<Lock>,
}

impl Writer {
    /// Makes the folder if it is not there, recovers what is in it, and goes on behind it.
    /// Unfinished files are removed; segments behind the end are set aside under the names
    /// `aside-…`, for people to look at.
    ///
    /// Under [`Durability::None`] the folder is not looked at.
    ///
    /// # Errors
    /// [`JournalError::Locked`], and those of [`crate::recover`].
    pub fn open(
        folder: &Path,
        options: &Options,
        apply: impl FnMut(Recovered<'_>),
    ) -> Result<Self, JournalError> {
        Self::open_with(folder, options, || recovery::recover(folder, apply))
    }

    /// The same where what is recovered may be refused: with the first error of `apply` nothing is
    /// changed. Who has followed the log with that reader ([`crate::follow`]) is given only what
    /// comes then.
    ///
    /// # Errors
    /// As [`Writer::open`], and those of `apply`.
    pub fn recover<E: From<JournalError>>(
        folder: &Path,
        options: &Options,
        followed: Option<Reader>,
        mut apply: impl FnMut(Recovered<'_>) -> Result<(), E>,
    ) -> Result<Self, E> {
        Self::open_with(folder, options, || {
            let mut failed = None;
            let apply = |part: Recovered<'_>| {
                if failed.is_none() {
                    failed = apply(part).err();
                }
            };
            let end = match followed {
                Some(reader) => recovery::go_on(folder, reader, apply),
                None => recovery::recover(folder, apply),
            };
            failed.map_or(Ok(end?), Err)
        })
    }

    fn open_with<E: From<JournalError>>(
        folder: &Path,
        options: &Options,
        recover: impl FnOnce() -> Result<End, E>,
    ) -> Result<Self, E> {
        options.check()?;
        if options.durability == Durability::None {
            return Ok(Self::unsaved(options));
        }
        let disk = &*options.disk;
        fs::create_dir_all(folder).map_err(JournalError::io(folder, "make the folder"))?;
        let lock = lock(folder)?;
        let end = recover()?;
        let is_settled = options.durability != Durability::Process;
        let unused = tidy(disk, folder, &end, is_settled)?;
        let durable = if is_settled { end.last } else { end.watermark.min(end.last) };
        let log = end.log.unwrap_or_else(|| RandomState::new().hash_one(folder));
        let index = end.highest + 1;
        // What was before the first that recovery has read is in a snapshot.
        let unsynced = end.segments.first().copied().filter(|_| !is_settled).unwrap_or(index);
        let disk = Arc::clone(&options.disk);
        let shared = Arc::new(Shared::new(folder.to_owned(), log, disk, end.last, durable, unsynced));
        let segments = Make { bytes: options.segment_bytes, settled: is_settled };
        let first = helper::make(&shared, segments, index, false)?;
        shared.add(&first);
        shared.segment.store(index, Ordering::Relaxed);

        let (ready_to, ready) = mpsc::sync_channel(1);
        let (jobs, jobs_from) = mpsc::channel();
        let mut threads = Vec::new();
        let (helped, keep, touched) = (Arc::clone(&shared), options.keep_snapshots, Arc::clone(&first));
        threads.push(start("journal-helper", move || {
            helper::remove(&helped, &unused);
            helper::help(&helped, segments, index + 1, keep, &ready_to, &jobs_from, touched);
        })?);
        if let Durability::Group { records, within } = options.durability {
            let synced = Arc::clone(&shared);
            let syncer = start("journal-sync", move || helper::sync_groups(&synced, records, within))?;
            let _ = shared.syncer.set(syncer.thread().clone());
            threads.push(syncer);
        }
        Ok(Self {
            words: first.region.words(),
            at: SEGMENT_HEADER / 8,
            seed: first.seed,
            next: end.last + 1,
            most: format::most(options.segment_bytes),
            durability: options.durability,
            shared,
            ready: Some(ready),
            jobs: Some(jobs),
            threads,
            snapshot_every: options.snapshot_every,
            snapshot_at: end.snapshot,
            waited: 0,
            end,
            _lock: Some(lock),
        })
    }

    fn unsaved(options: &Options) -> Self {
        Self {
            words: Region::heap(options.segment_bytes as usize / 8).words(),
            at: SEGMENT_HEADER / 8,
            seed: 0,
            next: 1,
            most: format::most(options.segment_bytes),
            durability: Durability::None,
            shared: Arc::new(Shared::new(Path::new("").into(), 0, Arc::clone(&options.disk), 0, 0, 0)),
            ready: None,
            jobs: None,
            threads: Vec::new(),
            snapshot_every: options.snapshot_every,
            snapshot_at: 0,
            waited: 0,
            end: End::default(),
            _lock: None,
        }
    }

    /// Where recovery ended.
    pub fn recovered(&self) -> &End {
        &self.end
    }

    /// The last record that was appended or recovered; 0 for none.
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// How often an append had to wait for a segment that was not prepared yet.
    pub fn waited(&self) -> u64 {
        self.waited
    }

    /// Up to which record what came of it may be told: as far as it is as certain as was asked for.
    #[inline]
    pub fn settled(&self) -> u64 {
        // Acquire: pairs with the Release in `sync`.
        if self.waits() { self.shared.durable.load(Ordering::Acquire) } else { u64::MAX }
    }

    /// Whether what was appended may not be settled yet.
    #[inline]
    pub const fn waits(&self) -> bool {
        matches!(self.durability, Durability::Group { .. })
    }

    /// Why nothing is written any more, if it is so.
    pub fn failure(&self) -> Option<JournalError> {
        self.shared.is_failed().then(|| self.shared.failure())
    }

    /// How far the log is on the disk.
    pub fn watermark(&self) -> Watermark {
        Watermark(Arc::clone(&self.shared))
    }

    /// Appends a record; its sequence. Allocates nothing, and calls the system only under
    /// [`Durability::Each`], or if the next segment is not prepared yet ([`Writer::waited`]).
    ///
    /// # Errors
    /// [`JournalError::Length`]; [`JournalError::Failed`], after which nothing is taken any more.
    #[inline]
    pub fn append(&mut self, payload: &[u8]) -> Result<u64, JournalError> {
        if self.shared.is_failed() {
            return Err(self.shared.failure());
        }
        if payload.len().wrapping_sub(1) >= self.most {
            return Err(JournalError::Length { bytes: payload.len(), most: self.most });
        }
        let words = format::size(payload.len()) / 8;
        // Behind the record there is always room for the end of the segment.
        if self.at + words + format::RECORD_HEADER / 8 > self.words.len() {
            self.roll()?;
        }
        let sequence = self.next;
        let place = &self.words[self.at..self.at + words];
        place[1].store(sequence, Ordering::Relaxed);
        let (whole, rest) = payload.as_chunks::<8>();
        for (word, bytes) in place[2..].iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            place[words - 1].store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
        // Release: whoever sees this word, a reader or the recovery after a death, sees the
        // record's other words.
        place[0]
            .store(format::first_word(self.seed, payload.len() as u32, sequence, payload), Ordering::Release);
        prefetch_ahead(&place[0], words * 8 + 64);
        prefetch_ahead(&place[0], words * 8 + 128);
        self.at += words;
        self.next += 1;
        // Release: pairs with the Acquire of whoever syncs.
        self.shared.appended.store(sequence, Ordering::Release);
        if self.durability == Durability::Each {
            self.shared.sync()?;
        }
        Ok(sequence)
    }

    /// Ends this segment and goes on in the next one.
    #[cold]
    fn roll(&mut self) -> Result<(), JournalError> {
        let Some(ready) = &self.ready else {
            // No file is behind it: from the start again.
            self.at = SEGMENT_HEADER / 8;
            return Ok(());
        };
        let mut next = ready.try_recv();
        self.waited += u64::from(next.is_err());
        while next.is_err() {
            if self.shared.is_failed() {
                return Err(self.shared.failure());
            }
            if self.threads.iter().any(JoinHandle::is_finished) {
                let gone = JournalError::Options("a thread of the journal has ended".to_owned());
                return Err(self.shared.fail(gone));
            }
            self.threads.iter().for_each(|thread| thread.thread().unpark());
            std::thread::yield_now();
            next = ready.try_recv();
        }
        let Ok(next) = next else { return Ok(()) };
        self.words[self.at + 1].store(self.next, Ordering::Relaxed);
        // Release: as for a record.
        self.words[self.at].store(format::first_word(self.seed, ROLL, self.next, &[]), Ordering::Release);
        // Let go of before that is said: unmapping it is the helper's work.
        self.words = next.region.words();
        // Before the first record of the segment is said to be appended: whoever syncs that syncs
        // this segment.
        self.shared.segment.store(next.index, Ordering::Release);
        self.seed = next.seed;
        self.at = SEGMENT_HEADER / 8;
        Ok(())
    }

    /// Puts everything that was appended on the disk, in this thread.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn sync(&self) -> Result<(), JournalError> {
        self.shared.sync().map(drop)
    }

    /// Whether so many records were appended since the last snapshot as the options say.
    pub fn snapshot_is_due(&self) -> bool {
        self.snapshot_every > 0 && self.last() - self.snapshot_at >= self.snapshot_every
    }

    /// Hands over the state as it is behind the last record. The helper writes it: this thread only
    /// encodes its copy, most simply with [`crate::codec::encode`], and goes on. Older snapshots
    /// and segments that nobody needs go then.
    ///
    /// # Errors
    /// [`JournalError::Failed`]. That *this* snapshot cannot be written stops the journal as well:
    /// a later call says so.
    pub fn snapshot(&mut self, state: Vec<u8>) -> Result<(), JournalError> {
        if self.shared.is_failed() {
            return Err(self.shared.failure());
        }
        self.snapshot_at = self.last();
        if let Some(jobs) = &self.jobs {
            // A helper that has ended has failed, and said so.
            let _ = jobs.send(Job { sequence: self.last(), state });
            self.threads.iter().for_each(|thread| thread.thread().unpark());
        }
        Ok(())
    }

    /// Ends: snapshots that were handed over are written, a group is synced.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn close(mut self) -> Result<(), JournalError> {
        self.end_threads();
        if self.shared.is_failed() { Err(self.shared.failure()) } else { Ok(()) }
    }

    fn end_threads(&mut self) {
        self.shared.stop.store(1, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
        // What was prepared and never written.
        if let Some(spare) = self.ready.as_ref().and_then(|ready| ready.try_recv().ok()) {
            let _ = fs::remove_file(&spare.path);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end_threads();
    }
}

/// Starts a thread, and waits until it runs: who refuses system calls to his process from then on
/// meets none that is half made.
fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, JournalError> {
    let (begins, begun) = mpsc::channel();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _ = begins.send(());
        run();
    });
    let thread =
        thread.map_err(|error| JournalError::Options(format!("cannot start the thread {name}: {error}")))?;
    let _ = begun.recv();
    Ok(thread)
}

/// A folder that is this writer's. It is let go of by name, not by closing the file alone: a child
/// that another thread starts at this moment holds the file as well until it executes its program.
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        drop(self.0.unlock());
    }
}

/// Takes the folder. Held for as long as the file is open: the kernel gives it back when the
/// process dies.
pub(crate) fn lock(folder: &Path) -> Result<Lock, JournalError> {
    let path = folder.join("lock");
    let file = OpenDir::open(folder).and_then(|folder| folder.edit("lock"));
    let file = file.map_err(JournalError::io(&path, "open it"))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(JournalError::Locked(folder.to_owned())),
        Err(TryLockError::Error(source)) => Err(JournalError::io(&path, "lock it")(source)),
    }
}

/// Before anything new is written: what was recovered is on the disk if it must be, what does not
/// count is out of the way. The segments that were prepared for nothing, which are for the helper
/// to remove: that takes a disk its time, and what has no record changes nothing.
fn tidy(disk: &dyn Disk, folder: &Path, end: &End, is_settled: bool) -> Result<Vec<PathBuf>, JournalError> {
    let mut unused = Vec::new();
    for name in [segment::UNFINISHED, snapshot::UNFINISHED] {
        if folder.join(name).exists() {
            disk::remove(disk, &folder.join(name))?;
        }
    }
    let last = end.segments.last().copied().unwrap_or(0);
    for (index, path) in segment::list(folder)? {
        if index > last {
            // Its records, if any, are behind the end. Were it left, the log could seem to go on in
            // it.
            let has_records =
                segment::OpenSegment::open(&path).map_or(true, |open| !matches!(open.first(), Ok(None)));
            if has_records {
                disk::rename(disk, &path, &folder.join(format!("aside-{index:08}")))?;
            } else {
                unused.push(path);
            }
        } else if is_settled && end.segments.contains(&index) {
            let file = File::open(&path).map_err(JournalError::io(&path, "open it"))?;
            disk::sync(disk, &path, &file)?;
        }
    }
    if is_settled {
        disk::sync_folder(disk, folder)?;
    }
    Ok(unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_given_back_also_where_a_child_still_holds_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        assert!(matches!(lock(folder.path()), Err(JournalError::Locked(_))));
        let of_a_child = held.0.try_clone().unwrap();
        drop(held);
        assert!(lock(folder.path()).is_ok());
        drop(of_a_child);
    }
}

//! The writer: appends records, hands over snapshots, and reports the durable end of the log.

use crate::disk::{self, Disk, OsDisk};
use crate::error::JournalError;
use crate::format::{self, ROLL, SEGMENT_HEADER};
use crate::helper::{self, SegmentOptions, SnapshotJob};
use crate::lock::{self, DirLock};
use crate::mapping::{MappedWords, prefetch};
use crate::reader::Reader;
use crate::recovery::{self, LogEnd, Recovered};
use crate::segment;
use crate::shared::{MappedSegment, Shared, Watermark};
use crate::snapshot;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum index of a writer's first segment.
const MAX_FIRST_INDEX: u64 = u64::MAX / 2;

/// The failures that a journal record survives once it is appended; see the [crate's table](crate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A record survives nothing: records stay in memory.
    None,
    /// A record survives the death of the process.
    Process,
    /// A record survives the death of the process, and a power failure once the watermark has
    /// reached the record. A thread syncs once `records` records wait or one has waited `within`.
    GroupCommit {
        /// Number of waiting records that triggers a sync.
        records: u64,
        /// Maximum wait before a sync.
        within: Duration,
    },
    /// A record survives a power failure: each append syncs.
    EveryRecord,
}

/// The options of a journal's writer: durability, segments and snapshots.
#[derive(Clone)]
pub struct Options {
    /// The failures that an appended record survives.
    pub durability: Durability,
    /// Size of a segment in bytes: a multiple of 8, from 4,096 to 2^31.
    pub segment_bytes: u64,
    /// Number of records after which a snapshot is due ([`Writer::is_snapshot_due`]); 0 for never.
    pub snapshot_every: u64,
    /// Number of snapshots kept, from 1. The log is kept from the oldest of them on.
    pub keep_snapshots: usize,
    /// Hook that is called before each system call that changes the disk.
    pub disk: Arc<dyn Disk>,
    /// The directory's lock, if another process has taken it for this writer and its successors
    /// ([`crate::lock_directory`]): the writer neither takes nor releases it. `None`: it does both.
    pub inherited_lock: Option<Arc<File>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Process,
            segment_bytes: 64 << 20,
            snapshot_every: 0,
            keep_snapshots: 2,
            disk: Arc::new(OsDisk),
            inherited_lock: None,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), JournalError> {
        let invalid = |what: String| Err(JournalError::Options(what));
        if self.segment_bytes < 4096 || !self.segment_bytes.is_multiple_of(8) || self.segment_bytes > 1 << 31
        {
            return invalid(format!(
                "segments of {} bytes: from 4096 to 2^31, a multiple of 8",
                self.segment_bytes
            ));
        }
        if self.keep_snapshots == 0 {
            return invalid("no snapshots kept: keep at least 1".to_owned());
        }
        Ok(())
    }
}

/// The single writer of a log in a directory.
pub struct Writer {
    words: MappedWords,
    /// Index of the word where the next record begins.
    at: usize,
    seed: u32,
    next: u64,
    max_payload: usize,
    durability: Durability,
    shared: Arc<Shared>,
    ready: Option<Receiver<Arc<MappedSegment>>>,
    jobs: Option<Sender<SnapshotJob>>,
    threads: Vec<JoinHandle<()>>,
    snapshot_every: u64,
    snapshot_at: u64,
    segment_stalls: u64,
    end: LogEnd,
    _lock: Option<DirLock>,
}

impl Writer {
    /// Opens the log in a directory for writing, after passing its newest snapshot and later
    /// records to `apply`. Creates the directory if it does not exist, recovers its snapshot and
    /// records, and continues after the last record. Unfinished files are removed; segments after
    /// the end of the log are renamed to `orphaned-…` for inspection.
    ///
    /// Under [`Durability::None`] the directory is not used.
    ///
    /// # Errors
    /// [`JournalError::Locked`], and those of [`crate::recover`]. Under [`Durability::Process`]
    /// also [`JournalError::Missing`] if records are missing before a later segment of a log that
    /// was never synced.
    pub fn open(
        folder: &Path,
        options: &Options,
        apply: impl FnMut(Recovered<'_>),
    ) -> Result<Self, JournalError> {
        Self::open_with(folder, options, || recovery::recover(folder, apply))
    }

    /// Opens a log as [`Writer::open`] does, with an `apply` that can fail: its first error ends
    /// recovery. The directory then stays unchanged. With the reader of a state that has followed
    /// the log ([`crate::follow`]), only the records after it are recovered.
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
                Some(reader) => recovery::resume(folder, reader, apply),
                None => recovery::recover(folder, apply),
            };
            failed.map_or(Ok(end?), Err)
        })
    }

    fn open_with<E: From<JournalError>>(
        folder: &Path,
        options: &Options,
        recover: impl FnOnce() -> Result<LogEnd, E>,
    ) -> Result<Self, E> {
        options.check()?;
        if options.durability == Durability::None {
            let shared = Shared::new(Path::new("").into(), 0, Arc::clone(&options.disk), 0, 0, 0);
            let words = MappedWords::heap(options.segment_bytes as usize / 8);
            return Ok(Self::in_memory(options, Arc::new(shared), words, 0, LogEnd::default()));
        }
        let disk = &*options.disk;
        fs::create_dir_all(folder).map_err(JournalError::io(folder, "make the folder"))?;
        let lock = match &options.inherited_lock {
            Some(held) => DirLock::Inherited(Arc::clone(held)),
            None => lock::lock(folder)?,
        };
        let end = recover()?;
        let is_synced = options.durability != Durability::Process;
        // A gap in a log that was synced comes from a power failure, if it is above the watermark.
        if !is_synced && end.watermark == 0 {
            recovery::check_gap(folder, &end)?;
        }
        let unused = prepare_dir(disk, folder, &end, is_synced)?;
        let durable = if is_synced { end.last } else { end.watermark.min(end.last) };
        let log = end.log.unwrap_or_else(|| RandomState::new().hash_one(folder));
        // Room for those of this writer and its successors.
        let index =
            end.highest.checked_add(1).filter(|index| *index <= MAX_FIRST_INDEX).ok_or_else(|| {
                let stray = segment::path(folder, end.highest);
                JournalError::Options(format!(
                    "{}: no index is left after it: move the file away",
                    stray.display()
                ))
            })?;
        // Records before the first segment that recovery has read are in a snapshot.
        let unsynced = end.segments.first().copied().filter(|_| !is_synced).unwrap_or(index);
        let disk = Arc::clone(&options.disk);
        let shared = Arc::new(Shared::new(folder.to_owned(), log, disk, end.last, durable, unsynced));
        let segments = SegmentOptions { bytes: options.segment_bytes, synced: is_synced };
        let first = helper::create_segment(&shared, segments, index, false)?;
        shared.add(&first);
        shared.segment.store(index, Ordering::Relaxed);

        let (segment_sender, ready) = mpsc::sync_channel(1);
        let (jobs, job_receiver) = mpsc::channel();
        let mut threads = Vec::new();
        let (helper_shared, keep, first_segment) =
            (Arc::clone(&shared), options.keep_snapshots, Arc::clone(&first));
        threads.push(spawn_running("journal-helper", move || {
            helper::remove_unused(&helper_shared, &unused);
            helper::run_helper(
                &helper_shared,
                segments,
                index + 1,
                keep,
                &segment_sender,
                &job_receiver,
                first_segment,
            );
        })?);
        if let Durability::GroupCommit { records, within } = options.durability {
            let sync_shared = Arc::clone(&shared);
            threads.push(spawn_running("journal-sync", move || {
                helper::sync_groups(&sync_shared, records, within);
            })?);
        }
        let mut writer = Self::in_memory(options, shared, first.words.clone(), first.seed, end);
        (writer.ready, writer.jobs) = (Some(ready), Some(jobs));
        (writer.threads, writer._lock) = (threads, Some(lock));
        Ok(writer)
    }

    /// Creates a writer into memory, without threads and without a directory.
    fn in_memory(options: &Options, shared: Arc<Shared>, words: MappedWords, seed: u32, end: LogEnd) -> Self {
        Self {
            words,
            at: SEGMENT_HEADER / 8,
            seed,
            next: end.last + 1,
            max_payload: format::max_payload(options.segment_bytes),
            durability: options.durability,
            shared,
            ready: None,
            jobs: None,
            threads: Vec::new(),
            snapshot_every: options.snapshot_every,
            snapshot_at: end.snapshot,
            segment_stalls: 0,
            end,
            _lock: None,
        }
    }

    /// Returns the state of the log's end as recovery found it when the writer was opened.
    pub fn recovered(&self) -> &LogEnd {
        &self.end
    }

    /// Returns the sequence number of the last record appended or recovered; 0 for none.
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// Returns how often an append waited for a log segment that was not prepared in time.
    pub fn segment_stalls(&self) -> u64 {
        self.segment_stalls
    }

    /// Returns the sequence number of the last record whose outputs may be sent: the last durable
    /// record under group commit, otherwise `u64::MAX`.
    #[inline]
    pub fn durable_sequence(&self) -> u64 {
        // Acquire: pairs with the Release in `sync`.
        if self.is_group_commit() { self.shared.durable.load(Ordering::Acquire) } else { u64::MAX }
    }

    /// Returns `true` if outputs must wait until their record is durable (group commit).
    #[inline]
    pub const fn is_group_commit(&self) -> bool {
        matches!(self.durability, Durability::GroupCommit { .. })
    }

    /// Returns the reason why the journal has failed, if it has.
    pub fn failure(&self) -> Option<JournalError> {
        self.shared.check().err()
    }

    /// Returns a handle to the durable end of the log.
    pub fn watermark(&self) -> Watermark {
        Watermark(Arc::clone(&self.shared))
    }

    /// Appends a record with this payload to the log. Returns its sequence. Allocates nothing, and
    /// makes a system call only under [`Durability::EveryRecord`], or if the next segment is not
    /// prepared yet ([`Writer::segment_stalls`]).
    ///
    /// # Errors
    /// [`JournalError::Length`]; [`JournalError::Failed`], which is final.
    #[inline]
    pub fn append(&mut self, payload: &[u8]) -> Result<u64, JournalError> {
        self.shared.check()?;
        if payload.len().wrapping_sub(1) >= self.max_payload {
            return Err(JournalError::Length { bytes: payload.len(), max: self.max_payload });
        }
        let words = format::record_size(payload.len()) / 8;
        // After the record there must be space for the segment's end mark.
        if self.at + words + format::RECORD_HEADER / 8 > self.words.len() {
            self.roll()?;
        }
        let sequence = self.next;
        let record = &self.words[self.at..self.at + words];
        record[1].store(sequence, Ordering::Relaxed);
        let (whole, remainder) = payload.as_chunks::<8>();
        for (word, bytes) in record[2..].iter().zip(whole) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if !remainder.is_empty() {
            let mut last = [0; 8];
            last[..remainder.len()].copy_from_slice(remainder);
            record[words - 1].store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
        // Release: a reader or a recovery that sees this word sees the record's other words.
        record[0]
            .store(format::first_word(self.seed, payload.len() as u32, sequence, payload), Ordering::Release);
        prefetch(&record[0], words * 8 + 64);
        prefetch(&record[0], words * 8 + 128);
        self.at += words;
        self.next += 1;
        // Release: pairs with the Acquire of the syncing thread.
        self.shared.appended.store(sequence, Ordering::Release);
        if self.durability == Durability::EveryRecord {
            self.shared.sync()?;
        }
        Ok(sequence)
    }

    /// Ends the segment and continues in the next one.
    #[cold]
    fn roll(&mut self) -> Result<(), JournalError> {
        let Some(ready) = &self.ready else {
            // In memory only: reuse it from the start.
            self.at = SEGMENT_HEADER / 8;
            return Ok(());
        };
        let mut next = ready.try_recv();
        self.segment_stalls += u64::from(next.is_err());
        while next.is_err() {
            self.shared.check()?;
            if self.threads.iter().any(JoinHandle::is_finished) {
                let error = JournalError::Options("a thread of the journal has ended".to_owned());
                return Err(self.shared.fail(error));
            }
            self.threads.iter().for_each(|thread| thread.thread().unpark());
            std::thread::yield_now();
            next = ready.try_recv();
        }
        let Ok(next) = next else { return Ok(()) };
        self.words[self.at + 1].store(self.next, Ordering::Relaxed);
        // Release: as for a record.
        self.words[self.at].store(format::first_word(self.seed, ROLL, self.next, &[]), Ordering::Release);
        // Replaced before the roll is published, because the helper may then unmap the old segment.
        self.words = next.words.clone();
        // Published before the segment's first record, so that its sync includes this segment.
        self.shared.segment.store(next.index, Ordering::Release);
        self.seed = next.seed;
        self.at = SEGMENT_HEADER / 8;
        Ok(())
    }

    /// Makes all of the log's appended records durable, in this thread.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn sync(&self) -> Result<(), JournalError> {
        self.shared.sync().map(drop)
    }

    /// Returns `true` if [`Options::snapshot_every`] records were appended since the last snapshot.
    pub fn is_snapshot_due(&self) -> bool {
        self.snapshot_every > 0 && self.last() - self.snapshot_at >= self.snapshot_every
    }

    /// Starts to write a snapshot from `state`, the caller's encoded state after the last record
    /// ([`crate::codec::encode`]). The helper thread writes the snapshot, and then removes older
    /// snapshots and the segments before them.
    ///
    /// # Errors
    /// [`JournalError::Failed`]. If this snapshot cannot be written, the journal fails, and a later
    /// call reports it.
    pub fn snapshot(&mut self, state: Vec<u8>) -> Result<(), JournalError> {
        self.shared.check()?;
        self.snapshot_at = self.last();
        if let Some(jobs) = &self.jobs {
            // A helper that has ended has failed the journal.
            let _ = jobs.send(SnapshotJob { sequence: self.last(), state });
            self.threads.iter().for_each(|thread| thread.thread().unpark());
        }
        Ok(())
    }

    /// Closes the journal's writer after writing pending snapshots and syncing the last records.
    ///
    /// # Errors
    /// [`JournalError::Failed`].
    pub fn close(mut self) -> Result<(), JournalError> {
        self.stop_threads();
        self.shared.check()
    }

    fn stop_threads(&mut self) {
        self.shared.stop.store(1, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
        // A segment that was prepared and never used.
        if let Some(unused) = self.ready.as_ref().and_then(|ready| ready.try_recv().ok()) {
            let _ = fs::remove_file(&unused.path);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

/// Starts a thread and waits until it runs, so that a seccomp filter installed next does not
/// interrupt its creation.
fn spawn_running(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, JournalError> {
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

/// Prepares a directory for a new writer: syncs the recovered segments if required, and moves
/// segments after the end out of the way. Returns the empty segments, which the helper removes
/// later because that is slow.
fn prepare_dir(
    disk: &dyn Disk,
    folder: &Path,
    end: &LogEnd,
    is_synced: bool,
) -> Result<Vec<PathBuf>, JournalError> {
    let mut unused = Vec::new();
    for name in [segment::UNFINISHED, snapshot::UNFINISHED] {
        if folder.join(name).exists() {
            disk::remove(disk, &folder.join(name))?;
        }
    }
    let last = end.segments.last().copied().unwrap_or(0);
    for (index, path) in segment::list(folder)? {
        if index > last {
            // Its records, if any, are after the end: the log could seem to continue in it.
            let has_records =
                segment::OpenSegment::open(&path).map_or(true, |open| !matches!(open.first(), Ok(None)));
            if has_records {
                disk::rename(disk, &path, &folder.join(format!("orphaned-{index:08}")))?;
            } else {
                unused.push(path);
            }
        } else if is_synced && end.segments.contains(&index) {
            let file = File::open(&path).map_err(JournalError::io(&path, "open it"))?;
            disk::sync(disk, &path, &file)?;
        }
    }
    if is_synced {
        disk::sync_dir(disk, folder)?;
    }
    Ok(unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_lists_each_segment_with_records_once() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { segment_bytes: 4096, ..Options::default() };
        let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
        for _ in 0..10 {
            writer.append(&[7; 1000]).unwrap();
        }
        writer.close().unwrap();
        let end = crate::recover(folder.path(), |_| {}).unwrap();
        assert_eq!((end.last, end.segments), (10, vec![1, 2, 3, 4]), "three records each");
    }
}

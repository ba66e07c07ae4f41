//! The writer's threads: one creates segments and writes snapshots, the other syncs groups.

use crate::disk;
use crate::error::JournalError;
use crate::format::SegmentHeader;
use crate::mapping::MappedWords;
use crate::segment;
use crate::shared::{MappedSegment, Shared};
use crate::snapshot;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

const IDLE_SLEEP: Duration = Duration::from_millis(10);
/// Time that a crashed writer's successor has to begin before its helper thread works: it would
/// wait for the locks that this work takes, of the address space and of the directory.
const HEAD_START: Duration = Duration::from_millis(20);

#[derive(Clone, Copy)]
pub(crate) struct SegmentOptions {
    pub bytes: u64,
    /// Whether a segment is made durable (name, header and zeros) before it is written, so that a
    /// sync of records allocates no blocks.
    pub synced: bool,
}

/// Creates a log segment with its disk space reserved. The first segment of a writer is not touched
/// ahead, because the writer waits for it.
pub(crate) fn create_segment(
    shared: &Shared,
    options: SegmentOptions,
    index: u64,
    touches_pages: bool,
) -> Result<Arc<MappedSegment>, JournalError> {
    let disk = &*shared.disk;
    let unfinished = shared.folder.join(segment::UNFINISHED);
    disk::remove(disk, &unfinished)?;
    let file = disk::create(disk, &unfinished)?;
    disk::reserve(disk, &unfinished, &file, options.bytes)?;
    // Acquire: as in `Watermark::durable`. With it, a lost segment before this one is found.
    let watermark = shared.durable.load(Ordering::Acquire);
    let header = SegmentHeader { log: shared.log, index, bytes: options.bytes, watermark };
    disk::write(disk, &unfinished, &file, &header.encode())?;
    let words = MappedWords::map(&file).map_err(JournalError::io(&unfinished, "map it"))?;
    if touches_pages {
        let touched = words.touch_ranges().try_for_each(|range| words.touch(range));
        touched.map_err(JournalError::io(&unfinished, "touch its pages"))?;
    } else {
        words.read_ahead(false);
    }
    if options.synced {
        disk::sync(disk, &unfinished, &file)?;
    }
    let path = segment::path(&shared.folder, index);
    disk::rename(disk, &unfinished, &path)?;
    if options.synced {
        disk::sync_dir(disk, &shared.folder)?;
    }
    Ok(Arc::new(MappedSegment { index, path, file, words, seed: header.seed() }))
}

/// Bytes of the first segment that are touched before they are synced.
const SYNC_BYTES: usize = 1 << 20;

/// Touches the segment that the writer uses already. If appends are synced, each megabyte is
/// written to the disk at once: otherwise every sync would convert blocks from reserved to written,
/// which is a commit of the file system's journal.
fn touch_first(shared: &Shared, options: SegmentOptions, first: &MappedSegment) -> Result<(), JournalError> {
    first.words.read_ahead(true);
    for range in first.words.touch_ranges() {
        if shared.stop.load(Ordering::Relaxed) != 0 {
            break;
        }
        let is_full = range.end.is_multiple_of(SYNC_BYTES);
        first.words.touch(range).map_err(JournalError::io(&first.path, "touch its pages"))?;
        if options.synced && is_full {
            // Not through `Disk`: nothing waits for this sync.
            first.file.sync_data().map_err(JournalError::io(&first.path, "sync it (fdatasync)"))?;
        }
    }
    Ok(())
}

/// A snapshot that the helper thread is to write: the encoded state and its last record.
pub(crate) struct SnapshotJob {
    pub sequence: u64,
    pub state: Vec<u8>,
}

/// Removes the segments that a crashed writer had prepared and not used, after [`HEAD_START`] or
/// once the writer needs its helper.
pub(crate) fn remove_unused(shared: &Shared, unused: &[PathBuf]) {
    if !unused.is_empty() {
        thread::park_timeout(HEAD_START);
    }
    if let Err(error) = unused.iter().try_for_each(|path| disk::remove(&*shared.disk, path)) {
        shared.fail(error);
    }
}

/// Runs the helper thread, which creates the next segments and writes snapshots until it must stop.
/// An error fails the journal.
pub(crate) fn run_helper(
    shared: &Shared,
    segments: SegmentOptions,
    mut index: u64,
    keep: usize,
    ready: &SyncSender<Arc<MappedSegment>>,
    jobs: &Receiver<SnapshotJob>,
    first: Arc<MappedSegment>,
) {
    if let Err(error) = touch_first(shared, segments, &first) {
        shared.fail(error);
    }
    drop(first);
    let mut prepared: Option<Arc<MappedSegment>> = None;
    // Acquire: pairs with the Release in `stop_threads`; snapshots were sent before it.
    while !shared.is_failed() {
        let is_last = shared.stop.load(Ordering::Acquire) != 0;
        let mut result = Ok(());
        if let Ok(job) = jobs.try_recv() {
            let sync_log = || shared.sync().map(drop);
            result = snapshot::write(
                &*shared.disk,
                &shared.folder,
                shared.log,
                job.sequence,
                &job.state,
                sync_log,
            )
            .and_then(|()| snapshot::prune(&*shared.disk, &shared.folder, keep));
        } else if is_last {
            break;
        } else if prepared.is_none() {
            // The writer has taken a segment, so that an earlier one may be full.
            if !segments.synced {
                shared.unmap_written();
            }
            result = create_segment(shared, segments, index, true).map(|segment| {
                // Before the writer can use it, so that a sync finds it.
                shared.add(&segment);
                index += 1;
                prepared = Some(segment);
            });
        } else if let Some(segment) = prepared.take() {
            match ready.try_send(segment) {
                Ok(()) => {}
                Err(TrySendError::Full(segment)) => {
                    prepared = Some(segment);
                    thread::park_timeout(IDLE_SLEEP);
                }
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        if let Err(error) = result {
            shared.fail(error);
        }
    }
    if let Some(unused) = prepared {
        let _ = std::fs::remove_file(&unused.path);
    }
}

/// Runs the sync thread of group commit until it must stop. It syncs once `records` records wait or
/// one has waited `within`.
pub(crate) fn sync_groups(shared: &Shared, records: u64, within: Duration) {
    let sleep = (within / 4).clamp(Duration::from_micros(10), Duration::from_millis(1));
    let mut since = None;
    loop {
        let is_last = shared.stop.load(Ordering::Acquire) != 0;
        let durable = shared.durable.load(Ordering::Relaxed);
        let waiting = shared.appended.load(Ordering::Relaxed) - durable;
        if waiting > 0 {
            let since = since.get_or_insert_with(Instant::now);
            if is_last || waiting >= records || since.elapsed() >= within {
                if shared.sync().is_err() {
                    return;
                }
                *since = Instant::now();
                continue;
            }
        } else {
            since = None;
        }
        if is_last {
            return;
        }
        thread::park_timeout(sleep);
    }
}

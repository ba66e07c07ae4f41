//! The threads beside the writer: one prepares segments and writes snapshots, the other syncs
//! groups.

use crate::disk;
use crate::error::JournalError;
use crate::format::SegmentHeader;
use crate::segment;
use crate::shared::{Mapped, Shared};
use crate::snapshot;
use shm::memory::Region;
use shm::sync::Ordering;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the helper sleeps when there is nothing to do.
const NAP: Duration = Duration::from_millis(10);

/// How segments are made.
#[derive(Clone, Copy)]
pub(crate) struct Make {
    pub bytes: u64,
    /// Whether they must be on the disk, name, header and zeros, before they are written: then a
    /// sync of records has no blocks to allocate.
    pub settled: bool,
}

/// Makes a segment. The first one of a writer is not touched ahead: the writer waits for it.
pub(crate) fn make(
    shared: &Shared,
    make: Make,
    index: u64,
    ahead: bool,
) -> Result<Arc<Mapped>, JournalError> {
    let disk = &*shared.disk;
    let unfinished = shared.folder.join(segment::UNFINISHED);
    disk::remove(disk, &unfinished)?;
    let file = disk::create(disk, &unfinished)?;
    disk::reserve(disk, &unfinished, &file, make.bytes)?;
    let header = SegmentHeader { log: shared.log, index, bytes: make.bytes, watermark: 0 };
    disk::write(disk, &unfinished, &file, &header.encode())?;
    let mapping = |what| JournalError::io(&unfinished, what);
    let region = Region::map(&unfinished.display().to_string(), &file, false)
        .map_err(|error| mapping("map it")(io::Error::other(error)))?;
    if ahead {
        region.touch().map_err(mapping("touch its pages"))?;
    }
    if make.settled {
        disk::sync(disk, &unfinished, &file)?;
    }
    let path = segment::path(&shared.folder, index);
    disk::rename(disk, &unfinished, &path)?;
    if make.settled {
        disk::sync_folder(disk, &shared.folder)?;
    }
    Ok(Arc::new(Mapped { index, path, file, region, seed: header.seed() }))
}

/// A state to be written, and the last record in it.
pub(crate) struct Job {
    pub sequence: u64,
    pub state: Vec<u8>,
}

/// Removes what a dead writer had prepared.
pub(crate) fn remove(shared: &Shared, unused: &[PathBuf]) {
    if let Err(error) = unused.iter().try_for_each(|path| disk::remove(&*shared.disk, path)) {
        shared.fail(error);
    }
}

/// Prepares each next segment and writes what snapshots there are, until it is told to stop. A
/// failure stops the journal.
pub(crate) fn help(
    shared: &Shared,
    segments: Make,
    mut index: u64,
    keep: usize,
    ready: &SyncSender<Arc<Mapped>>,
    jobs: &Receiver<Job>,
    first: Arc<Mapped>,
) {
    // The writer is at work in it already: until this is done it has a page fault now and then.
    // What is to be synced is left alone: all of the segment would go to the disk with the first
    // group.
    if !segments.settled
        && let Err(error) = first.region.touch()
    {
        shared.fail(JournalError::io(&first.path, "touch its pages")(error));
    }
    drop(first);
    let mut prepared: Option<Arc<Mapped>> = None;
    // Acquire: pairs with the Release of the writer's end; its jobs came before.
    while !shared.is_failed() {
        let is_last = shared.stop.load(Ordering::Acquire) != 0;
        let mut result = Ok(());
        if let Ok(job) = jobs.try_recv() {
            let settle = || shared.sync().map(drop);
            result =
                snapshot::write(&*shared.disk, &shared.folder, shared.log, job.sequence, &job.state, settle)
                    .and_then(|()| snapshot::prune(&*shared.disk, &shared.folder, keep));
        } else if is_last {
            break;
        } else if prepared.is_none() {
            // One more is on its way to the writer than before: perhaps one is written to its end.
            if !segments.settled {
                shared.let_go();
            }
            result = make(shared, segments, index, true).map(|segment| {
                // Known before it can be written: whoever syncs finds it.
                shared.add(&segment);
                index += 1;
                prepared = Some(segment);
            });
        } else if let Some(segment) = prepared.take() {
            match ready.try_send(segment) {
                Ok(()) => {}
                Err(TrySendError::Full(segment)) => {
                    prepared = Some(segment);
                    thread::park_timeout(NAP);
                }
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        if let Err(error) = result {
            shared.fail(error);
        }
    }
    if let Some(spare) = prepared {
        let _ = std::fs::remove_file(&spare.path);
    }
}

/// Syncs when so many records wait, when one has waited so long, or when somebody waits for one;
/// until it is told to stop.
pub(crate) fn sync_groups(shared: &Shared, records: u64, within: Duration) {
    let nap = (within / 4).clamp(Duration::from_micros(10), Duration::from_millis(1));
    let mut since = None;
    loop {
        let is_last = shared.stop.load(Ordering::Acquire) != 0;
        let durable = shared.durable.load(Ordering::Relaxed);
        let waiting = shared.appended.load(Ordering::Relaxed) - durable;
        if waiting > 0 {
            let since = since.get_or_insert_with(Instant::now);
            let is_asked = shared.asked.load(Ordering::Relaxed) > durable;
            if is_last || waiting >= records || is_asked || since.elapsed() >= within {
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
        thread::park_timeout(nap);
    }
}

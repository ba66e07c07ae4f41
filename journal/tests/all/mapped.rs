//! The number of mappings and descriptors of a writer does not grow with the log, and unmapped
//! segments are synced nevertheless.

use crate::basics::{open, options};
use crate::common::{State, append, folder, recovered, wait_until};
use journal::format::SEGMENT_HEADER;
use journal::{Disk, DiskOperation, Durability, Options, Writer};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Segments of a log that is longer than the limit of mappings.
const SEGMENTS: u64 = 60;
/// Maximum mappings and descriptors: the current segment, the previous one, two prepared ones; the
/// lock.
const MAX_HELD: (usize, usize) = (4, 5);

/// Returns the numbers of mappings and descriptors of this process in a directory.
fn count_held(folder: &Path) -> (usize, usize) {
    let folder = folder.to_str().unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let maps = maps.lines().filter(|line| line.contains(folder)).count();
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    (maps, open.filter(|path| path.starts_with(folder)).count())
}

fn is_few((maps, open): (usize, usize)) -> bool {
    maps <= MAX_HELD.0 && open <= MAX_HELD.1
}

/// Appends until the log has `segments` more segments.
fn roll(writer: &mut Writer, folder: &Path, segments: u64) {
    let last = |folder: &Path| fs::read_dir(folder).unwrap().flatten().filter(is_segment).count() as u64;
    let last_index = last(folder) + segments;
    while last(folder) < last_index {
        append(writer, 20);
    }
}

fn is_segment(entry: &fs::DirEntry) -> bool {
    journal::index_of(&entry.path()).is_some()
}

/// A disk that records the synced segments in order.
#[derive(Default)]
struct SyncRecorder(Mutex<Vec<u64>>);

impl Disk for SyncRecorder {
    fn before(&self, step: DiskOperation, path: &Path) -> io::Result<()> {
        if let (DiskOperation::Sync, Some(index)) = (step, journal::index_of(path)) {
            self.0.lock().unwrap().push(index);
        }
        Ok(())
    }
}

impl SyncRecorder {
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn written_segments(folder: &Path) -> Vec<u64> {
    let has_record = |entry: &fs::DirEntry| {
        fs::read(entry.path()).unwrap()[SEGMENT_HEADER..].iter().any(|byte| *byte != 0)
    };
    let segments = fs::read_dir(folder).unwrap().flatten().filter(is_segment).filter(has_record);
    let mut indices: Vec<u64> = segments.filter_map(|entry| journal::index_of(&entry.path())).collect();
    indices.sort_unstable();
    indices
}

fn written_segments_from(folder: &Path, first: u64) -> Vec<u64> {
    written_segments(folder).into_iter().filter(|index| *index >= first).collect()
}

#[test]
fn mappings_and_descriptors_do_not_grow_with_log() {
    let folder = folder();
    let mut writer = open(folder.path());
    roll(&mut writer, folder.path(), SEGMENTS);
    wait_until("few segments are mapped", || is_few(count_held(folder.path())));
    assert!(count_held(folder.path()).0 > 0, "mappings are counted");
    let last = writer.last();
    drop(writer);
    assert_eq!(count_held(folder.path()), (0, 0));
    // The segments of a predecessor are not mapped either.
    let writer = open(folder.path());
    wait_until("few segments are mapped", || is_few(count_held(folder.path())));
    drop(writer);
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(last));
}

/// A group that is never synced keeps all its mappings, as a writer would that never unmaps.
#[test]
fn writer_that_keeps_all_mappings_is_detected() {
    let folder = folder();
    let manual = Durability::GroupCommit { records: u64::MAX, within: Duration::from_secs(3600) };
    let mut writer = Writer::open(folder.path(), &options(manual), |_| {}).unwrap();
    roll(&mut writer, folder.path(), SEGMENTS);
    let (maps, open) = count_held(folder.path());
    assert!(!is_few((maps, open)) && maps as u64 >= SEGMENTS && open > maps, "{maps} mapped, {open} open");
    writer.sync().unwrap();
    wait_until("few segments are mapped", || is_few(count_held(folder.path())));
}

#[test]
fn unmapped_segments_are_synced_before_snapshot_is_named() {
    let (folder, disk) = (folder(), Arc::new(SyncRecorder::default()));
    let options = Options { disk: disk.clone(), ..options(Durability::Process) };
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    roll(&mut writer, folder.path(), SEGMENTS);
    wait_until("few segments are mapped", || is_few(count_held(folder.path())));
    assert_eq!(disk.take(), Vec::<u64>::new(), "nothing is synced without a request");
    writer.sync().unwrap();
    let (synced, written) = (disk.take(), written_segments(folder.path()));
    assert_eq!(synced, written, "each segment is synced once");
    assert_eq!(writer.watermark().durable(), writer.last());
    assert_ne!(
        synced[synced.len() - MAX_HELD.0..],
        written[..],
        "a sync of only the mapped segments is detected"
    );

    let from = written[written.len() - 1];
    roll(&mut writer, folder.path(), SEGMENTS);
    writer.snapshot(State::after(writer.last()).encode()).unwrap();
    let name = folder.path().join(format!("snapshot-{:020}", writer.last()));
    wait_until("the snapshot is written", || name.exists());
    assert_eq!(disk.take(), written_segments_from(folder.path(), from));

    // A sync ignores segments that a follower's snapshot made obsolete.
    let from = written_segments(folder.path()).pop().unwrap();
    roll(&mut writer, folder.path(), SEGMENTS);
    wait_until("few segments are mapped", || is_few(count_held(folder.path())));
    for index in from..from + 10 {
        fs::remove_file(folder.path().join(format!("log-{index:08}"))).unwrap();
    }
    writer.sync().unwrap();
    assert_eq!(disk.take(), written_segments_from(folder.path(), from));
}

#[test]
fn first_sync_includes_segments_of_predecessor() {
    let (folder, disk) = (folder(), Arc::new(SyncRecorder::default()));
    let options = Options { disk: disk.clone(), ..options(Durability::Process) };
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    roll(&mut writer, folder.path(), SEGMENTS);
    drop(writer);
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    append(&mut writer, 1);
    assert_eq!(disk.take(), Vec::<u64>::new(), "nothing is synced without a request");
    writer.sync().unwrap();
    let synced = disk.take();
    assert!(written_segments(folder.path()).iter().all(|index| synced.contains(index)), "{synced:?}");
}

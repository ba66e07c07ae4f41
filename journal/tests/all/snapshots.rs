//! Snapshots: crashes between the system calls of writing one, torn snapshots, and no record
//! applied twice.

use crate::basics::options;
use crate::common::{State, append, copy, folder, payload, recovered, wait_until};
use journal::{Disk, DiskOperation, Durability, JournalError, Options, Reader, Recovered, Writer, recover};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A disk that copies the directory before each change.
struct ImageRecorder {
    folder: PathBuf,
    images: Mutex<Vec<(DiskOperation, tempfile::TempDir)>>,
}

impl Disk for ImageRecorder {
    fn before(&self, operation: DiskOperation, _: &Path) -> io::Result<()> {
        let image = folder();
        copy(&self.folder, image.path());
        self.images.lock().unwrap().push((operation, image));
        Ok(())
    }
}

fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snapshot-")));
    paths.sort();
    paths
}

/// Writes three snapshots of a log of several segments, each completed before the next append.
fn write_three_snapshots(folder: &Path, options: &Options) -> Writer {
    let mut writer = Writer::open(folder, options, |_| {}).unwrap();
    for round in 1..=3 {
        append(&mut writer, 150);
        writer.snapshot(State::after(writer.last()).encode()).unwrap();
        let name = folder.join(format!("snapshot-{:020}", round * 150));
        wait_until("a snapshot is written", || name.exists());
    }
    append(&mut writer, 40);
    writer
}

#[test]
fn crash_before_any_syscall_recovers_exactly_once() {
    let folder = folder();
    let recorder = Arc::new(ImageRecorder { folder: folder.path().to_owned(), images: Mutex::default() });
    let options = Options { disk: recorder.clone(), ..options(Durability::Process) };
    write_three_snapshots(folder.path(), &options).close().unwrap();
    let mut images = recorder.images.lock().unwrap();
    let mut renamed_not_pruned = 0;
    for (operation, image) in images.drain(..) {
        let (state, end) = recovered(image.path()).unwrap();
        assert_eq!(state, State::after(end.last), "before {operation:?}");
        // After the rename the log still has records that are in the snapshot.
        let mut log = Reader::open(image.path(), None).unwrap();
        let first = log.next_record().unwrap().map(|record| record.sequence);
        renamed_not_pruned += u64::from(end.snapshot > 0 && first.is_some_and(|first| first <= end.snapshot));
        let mut writer = Writer::open(image.path(), &with_real_disk(&options), |_| {}).unwrap();
        append(&mut writer, 3);
        writer.close().unwrap();
        assert_eq!(recovered(image.path()).unwrap().0, State::after(end.last + 3), "before {operation:?}");
    }
    assert!(renamed_not_pruned > 5, "{renamed_not_pruned}");
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(490));
}

fn with_real_disk(options: &Options) -> Options {
    Options { disk: Arc::new(journal::OsDisk), ..options.clone() }
}

#[test]
fn journal_that_applies_tail_twice_is_detected() {
    let folder = folder();
    write_three_snapshots(folder.path(), &options(Durability::Process)).close().unwrap();
    let mut state = State::default();
    recover(folder.path(), |part| {
        if let Recovered::Snapshot { state: bytes, .. } = part {
            state = journal::codec::decode(1, bytes).unwrap();
        }
    })
    .unwrap();
    // All records of the log, also those in the snapshot.
    let mut log = Reader::open(folder.path(), None).unwrap();
    while let Some(record) = log.next_record().unwrap() {
        state.apply(record.payload);
    }
    assert_ne!(state, State::after(490));
    assert!(state.records > 490);
}

#[test]
fn obsolete_snapshots_and_segments_are_removed() {
    let folder = folder();
    let writer = write_three_snapshots(folder.path(), &options(Durability::Process));
    wait_until("the third snapshot's pruning", || snapshots(folder.path()).len() == 2);
    // Once the segments are pruned. An empty one is ready for the writer, which does not mean that
    // the log's beginning is missing.
    wait_until("the log begins after record 1", || {
        matches!(Reader::open(folder.path(), Some(1)), Err(JournalError::Gap { .. }))
    });
    writer.close().unwrap();
    let first = Reader::open(folder.path(), None).unwrap().next_sequence();
    assert!(
        first > 1 && first <= 301,
        "the older snapshot kept is of record 300, the log begins with {first}"
    );
}

#[test]
fn snapshot_torn_at_any_byte_falls_back_to_previous() {
    let folder = folder();
    write_three_snapshots(folder.path(), &options(Durability::Process)).close().unwrap();
    let newest = snapshots(folder.path()).pop().unwrap();
    let bytes = fs::read(&newest).unwrap();
    assert_eq!(recovered(folder.path()).unwrap().1.snapshot, 450);
    let mut images = 0;
    let mut assert_falls_back = |torn: &[u8], damage: &str| {
        fs::write(&newest, torn).unwrap();
        let (state, end) = recovered(folder.path()).unwrap();
        assert_eq!((end.snapshot, end.bad_snapshots.len()), (300, 1), "{damage}");
        assert_eq!(state, State::after(490), "{damage}");
        images += 1;
    };
    for cut in 0..bytes.len() {
        assert_falls_back(&bytes[..cut], &format!("cut at {cut}"));
        // Unwritten blocks hold zeros or old data.
        let mut torn = bytes.clone();
        torn[cut] ^= 0x40;
        assert_falls_back(&torn, &format!("byte {cut} changed"));
    }
    assert!(images >= 2 * 64);
    // Without both, and without the beginning of the log, recovery fails.
    for path in snapshots(folder.path()) {
        fs::remove_file(path).unwrap();
    }
    assert!(matches!(recovered(folder.path()), Err(JournalError::Gap { .. })));
}

/// A disk that fails the `n`th system call.
struct FailingSyscall {
    calls: Mutex<u64>,
    failing_call: u64,
    errno: i32,
}

impl Disk for FailingSyscall {
    fn before(&self, _: DiskOperation, _: &Path) -> io::Result<()> {
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        if *calls == self.failing_call { Err(io::Error::from_raw_os_error(self.errno)) } else { Ok(()) }
    }
}

#[test]
fn any_failed_syscall_stops_journal_without_loss() {
    for errno in [nix::libc::EIO, nix::libc::ENOSPC, nix::libc::EROFS] {
        let mut failures = 0;
        for failing_call in 1.. {
            let folder = folder();
            let disk = Arc::new(FailingSyscall { calls: Mutex::default(), failing_call, errno });
            let options = Options { disk: disk.clone(), ..options(Durability::EveryRecord) };
            let (mut acknowledged, mut failed) = (0, None);
            match Writer::open(folder.path(), &options, |_| {}) {
                Err(error) => failed = Some(error),
                Ok(mut writer) => {
                    while acknowledged < 200 && failed.is_none() {
                        if acknowledged == 100 {
                            failed = writer.snapshot(State::after(100).encode()).err();
                        }
                        match writer.append(&payload(acknowledged + 1)) {
                            Ok(sequence) => acknowledged = sequence,
                            Err(error) => failed = Some(error),
                        }
                    }
                    failed = writer.close().err().or(failed);
                }
            }
            let (state, end) = recovered(folder.path()).unwrap();
            assert_eq!(state, State::after(end.last));
            assert!(
                end.last >= acknowledged,
                "{} of {acknowledged} acknowledged records, call {failing_call}",
                end.last
            );
            let Some(error) = failed else { break };
            assert!(error.to_string().contains("os error"), "{error}");
            failures += 1;
        }
        // The syncs of 200 records, and the system calls of segments and snapshot.
        assert!(failures > 210, "{failures}");
    }
}

/// A follower writes the snapshots, and a writer that continues from it recovers only later
/// records.
#[test]
fn follower_writes_snapshots_and_becomes_writer() {
    let (folder, options) = (folder(), options(Durability::Process));
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    let mut reader = journal::follow(folder.path(), |_| panic!("there is none")).unwrap();
    let mut snapshots_written = 0;
    for round in 1..=5u64 {
        append(&mut writer, 150);
        // The follower never reaches the end.
        while reader.next_sequence() <= round * 150 - 10 {
            reader.next_record().unwrap().unwrap();
        }
        let state = State::after(reader.next_sequence() - 1).encode();
        journal::write_snapshot(&*options.disk, folder.path(), &reader, &state, 2).unwrap();
        snapshots_written += 1;
    }
    assert_eq!((snapshots(folder.path()).len(), snapshots_written), (2, 5));
    let first = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
    let first = first.filter(|name| name.to_string_lossy().starts_with("log-")).min().unwrap();
    assert_ne!(first.to_str(), Some("log-00000001"), "obsolete segments are removed");
    drop(writer);
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(750));

    let first_missing = reader.next_sequence();
    let mut replayed = Vec::new();
    let mut writer = Writer::recover(folder.path(), &options, Some(reader), |part| match part {
        Recovered::Record { sequence, .. } => {
            replayed.push(sequence);
            Ok::<(), JournalError>(())
        }
        Recovered::Snapshot { .. } => panic!("the follower already has the state"),
    })
    .unwrap();
    assert!(replayed.iter().copied().eq(first_missing..=750), "{replayed:?}");
    append(&mut writer, 10);
    drop(writer);
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(760));
}

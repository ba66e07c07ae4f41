//! Real faults of the disk: full, a file size limit, missing permissions, and a file truncated
//! under a reader or under its writer.

use crate::basics::{open, options};
use crate::common::{State, append, folder, payload, recovered};
use crate::victim::{Victim, victim};
use journal::{Durability, JournalError, Options, Reader, Writer};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

#[test]
fn full_disk_fails_at_segment_creation() {
    // A limit on the length of files stands for a full disk.
    let status = victim("limited", folder().path()).wait();
    assert_eq!(status.code(), Some(0), "{status:?}");
}

/// Runs in a process of its own, because the limit is permanent.
pub fn limited(folder: &std::path::Path) {
    use nix::sys::resource::{Resource, setrlimit};
    setrlimit(Resource::RLIMIT_FSIZE, 100_000, 100_000).unwrap();
    nix::sys::signal::SigSet::from(nix::sys::signal::Signal::SIGXFSZ).thread_block().unwrap();
    let large = Options { segment_bytes: 200_000, ..options(Durability::Process) };
    let error = Writer::open(folder, &large, |_| {}).err().unwrap();
    assert!(matches!(error, JournalError::Io { .. }), "{error}");
    assert!(error.to_string().contains("reserve its space"), "{error}");
    let mut writer = open(folder);
    append(&mut writer, 10);
    // A snapshot that does not fit fails the journal; the log is complete.
    writer.snapshot(vec![0; 200_000]).unwrap();
    let error = writer.close().unwrap_err().to_string();
    assert!(error.contains("unfinished-snapshot") && error.contains("write it"), "{error}");
    assert_eq!(recovered(folder).unwrap().1.last, 10);
}

#[test]
fn file_truncated_under_reader_is_an_error() {
    let folder = folder();
    let mut writer = open(folder.path());
    append(&mut writer, 60);
    writer.close().unwrap();
    let mut reader = Reader::open(folder.path(), None).unwrap();
    assert_eq!(reader.next_record().unwrap().unwrap().sequence, 1);
    let path = folder.path().join("log-00000001");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(1500).unwrap();
    // Its buffered records remain; a new reader finds the truncation.
    while let Ok(Some(_)) = reader.next_record() {}
    let mut reader = Reader::open(folder.path(), None).unwrap();
    let error = loop {
        match reader.next_record() {
            Ok(Some(record)) => assert_eq!(record.payload, payload(record.sequence)),
            Ok(None) => panic!("the cut is an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, JournalError::Bad { what: "the file is cut short", .. }), "{error}");
    file.set_len(0).unwrap();
    assert!(reader.next_record().is_err());
    assert_eq!(recovered(folder.path()).unwrap().1.last, 0);
}

#[test]
fn file_truncated_under_writer_leaves_a_prefix() {
    let folder = folder();
    let mut victim: Victim = victim("append", folder.path());
    while victim.acknowledged() < 20 {
        std::thread::yield_now();
    }
    for index in 1..1000 {
        let path = folder.path().join(format!("log-{index:08}"));
        if let Ok(file) = fs::File::options().write(true).open(path) {
            let _ = file.set_len(4096);
        }
    }
    // It either meets the truncation, or was past it already.
    std::thread::sleep(std::time::Duration::from_millis(20));
    victim.kill();
    let status = victim.wait();
    assert!([Some(7), Some(9)].contains(&status.signal()), "{status:?}");
    match recovered(folder.path()) {
        Ok((state, end)) => assert_eq!(state, State::after(end.last)),
        // The log was synced for a snapshot, or a segment after its end is cut short: damage.
        Err(error) => {
            use JournalError::{Damaged, Gap, Missing};
            assert!(matches!(error, Damaged { .. } | Gap { .. } | Missing { .. }), "{error}")
        }
    }
}

#[test]
fn closed_segment_that_cannot_be_opened_fails_the_sync() {
    let folder = folder();
    append(&mut open(folder.path()), 300);
    // Its predecessor synced nothing, so a sync includes the segments that it wrote.
    let mut writer = open(folder.path());
    append(&mut writer, 1);
    let first = folder.path().join("log-00000001");
    fs::remove_file(&first).unwrap();
    std::os::unix::fs::symlink(&first, &first).unwrap();
    let error = writer.sync().unwrap_err().to_string();
    assert!(error.contains("log-00000001") && error.contains("cannot open it"), "{error}");
}

#[test]
fn log_without_its_first_segment_has_no_beginning() {
    let folder = folder();
    append(&mut open(folder.path()), 300);
    // Not a gap that a snapshot left: the segment is there, without a record.
    let first = folder.path().join("log-00000001");
    fs::write(&first, vec![0; fs::metadata(&first).unwrap().len() as usize]).unwrap();
    let mut reader = Reader::open(folder.path(), Some(1)).unwrap();
    assert!(matches!(reader.next_record(), Err(JournalError::Gap { .. })));
}

#[test]
fn file_in_place_of_directory_is_named() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = Writer::open(&file, &options(Durability::Process), |_| {}).err().unwrap().to_string();
    assert!(error.contains("file") && error.contains("make the folder"), "{error}");
}

#[test]
fn unreadable_or_unwritable_file_is_named() {
    let folder = folder();
    let mut writer = open(folder.path());
    append(&mut writer, 10);
    writer.close().unwrap();
    let status = victim("unprivileged", folder.path()).wait();
    assert_eq!(status.code(), Some(0), "{status:?}");
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(10));
}

/// Runs in a process of its own without root's privileges: with the directory and its files allowed
/// and forbidden in turn.
pub fn unprivileged(folder: &std::path::Path) {
    let segment = folder.join("log-00000001");
    let set_mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    if nix::unistd::geteuid().is_root() {
        // It owns the files that it may not use, as the test's user would.
        let nobody = nix::unistd::Uid::from_raw(65534);
        for path in [folder.to_owned(), folder.join("lock"), segment.clone()] {
            nix::unistd::chown(&path, Some(nobody), None).unwrap();
        }
        nix::unistd::setuid(nobody).unwrap();
    }
    let write = || Writer::open(folder, &options(Durability::Process), |_| {}).err().unwrap().to_string();
    let read =
        || Reader::open(folder, None).and_then(|mut reader| reader.next_record().map(drop)).unwrap_err();
    let assert_denied = |error: String, path: &std::path::Path, step: &str| {
        let is_named = error.contains(&*path.to_string_lossy()) && error.contains(step);
        assert!(is_named && error.contains("denied"), "{error}");
    };

    set_mode(folder, 0o500);
    assert_denied(write(), folder, "create it");
    set_mode(folder, 0o300);
    assert_denied(write(), folder, "list the folder");
    assert_denied(read().to_string(), folder, "list the folder");
    set_mode(folder, 0o700);
    set_mode(&segment, 0);
    assert_denied(write(), &segment, "open it");
    assert_denied(read().to_string(), &segment, "open it");
    set_mode(&segment, 0o600);
    set_mode(&folder.join("lock"), 0);
    assert_denied(write(), &folder.join("lock"), "open it");
    set_mode(&folder.join("lock"), 0o600);
}

#[test]
fn foreign_files_are_skipped_or_orphaned() {
    let folder = folder();
    let mut writer = open(folder.path());
    append(&mut writer, 30);
    writer.close().unwrap();
    fs::write(folder.path().join("log-00000099"), "not a segment").unwrap();
    fs::write(folder.path().join("log-x"), "not a segment either").unwrap();
    fs::write(folder.path().join("snapshot-00000000000000000031"), "not a snapshot").unwrap();
    let mut writer = open(folder.path());
    assert_eq!((writer.last(), writer.recovered().bad_snapshots.len()), (30, 1));
    append(&mut writer, 30);
    writer.close().unwrap();
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(60));
    assert_eq!(fs::read(folder.path().join("orphaned-00000099")).unwrap(), b"not a segment");
}

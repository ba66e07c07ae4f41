//! Faults of the disk, for real: a full one, a file that may not grow, a folder that may not be
//! written, a file cut off under a reader and under a writer.

use crate::basics::options;
use crate::common::{State, append, folder, payload, recovered};
use crate::victim::{Victim, victim};
use journal::{Durability, JournalError, Options, Reader, Writer};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

#[test]
fn a_disk_without_room_says_so_when_the_segment_is_made() {
    // As the disk of the test: no file may be longer than that.
    let status = victim("limited", folder().path()).wait();
    assert_eq!(status.code(), Some(0), "{status:?}");
}

/// In a process of its own: the limit stays.
pub fn limited(folder: &std::path::Path) {
    use nix::sys::resource::{Resource, setrlimit};
    setrlimit(Resource::RLIMIT_FSIZE, 100_000, 100_000).unwrap();
    nix::sys::signal::SigSet::from(nix::sys::signal::Signal::SIGXFSZ).thread_block().unwrap();
    let large = Options { segment_bytes: 200_000, ..options(Durability::Process) };
    let error = Writer::open(folder, &large, |_| {}).err().unwrap();
    assert!(matches!(error, JournalError::Io { .. }), "{error}");
    assert!(error.to_string().contains("reserve its room"), "{error}");
    // What fits works.
    let mut writer = Writer::open(folder, &options(Durability::Process), |_| {}).unwrap();
    append(&mut writer, 10);
    // A snapshot that does not fit stops the journal; the log has everything.
    writer.snapshot(vec![0; 200_000]).unwrap();
    let error = writer.close().unwrap_err().to_string();
    assert!(error.contains("unfinished-snapshot") && error.contains("write it"), "{error}");
    assert_eq!(recovered(folder).unwrap().1.last, 10);
}

#[test]
fn a_file_cut_off_under_a_reader_is_an_error_and_no_signal() {
    let folder = folder();
    let mut writer = Writer::open(folder.path(), &options(Durability::Process), |_| {}).unwrap();
    append(&mut writer, 60);
    writer.close().unwrap();
    let mut reader = Reader::open(folder.path(), None).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().sequence, 1);
    let path = folder.path().join("log-00000001");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(1500).unwrap();
    // What it has read before it has; a reader that begins now finds the cut.
    while let Ok(Some(_)) = reader.next() {}
    let mut reader = Reader::open(folder.path(), None).unwrap();
    let error = loop {
        match reader.next() {
            Ok(Some(record)) => assert_eq!(record.payload, payload(record.sequence)),
            Ok(None) => panic!("the cut is an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, JournalError::Bad { what: "the file is cut short", .. }), "{error}");
    file.set_len(0).unwrap();
    assert!(reader.next().is_err());
    assert_eq!(recovered(folder.path()).unwrap().1.last, 0);
}

#[test]
fn a_file_cut_off_under_its_writer_ends_the_writer_and_leaves_a_prefix() {
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
    // Either it meets the cut, or it was behind it already.
    std::thread::sleep(std::time::Duration::from_millis(20));
    victim.kill();
    let status = victim.wait();
    assert!([Some(7), Some(9)].contains(&status.signal()), "{status:?}");
    match recovered(folder.path()) {
        Ok((state, end)) => assert_eq!(state, State::after(end.last)),
        // A snapshot had the log synced: what is cut off then is damage, and said.
        Err(error) => {
            assert!(matches!(error, JournalError::Damaged { .. } | JournalError::Gap { .. }), "{error}")
        }
    }
}

#[test]
fn a_file_in_the_folders_place_is_named() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = Writer::open(&file, &options(Durability::Process), |_| {}).err().unwrap().to_string();
    assert!(error.contains("file") && error.contains("make the folder"), "{error}");
}

#[test]
fn what_may_not_be_written_or_read_is_named() {
    let folder = folder();
    let mut writer = Writer::open(folder.path(), &options(Durability::Process), |_| {}).unwrap();
    append(&mut writer, 10);
    writer.close().unwrap();
    let status = victim("stranger", folder.path()).wait();
    assert_eq!(status.code(), Some(0), "{status:?}");
    // Nothing of it has harmed what is there.
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(10));
}

/// In a process of its own, which gives up what root may do: with the folder and its files allowed
/// and forbidden in turn.
pub fn stranger(folder: &std::path::Path) {
    let segment = folder.join("log-00000001");
    let allow = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    if nix::unistd::geteuid().is_root() {
        // It owns what it may not use, as the test's own user would.
        let nobody = nix::unistd::Uid::from_raw(65534);
        for path in [folder.to_owned(), folder.join("lock"), segment.clone()] {
            nix::unistd::chown(&path, Some(nobody), None).unwrap();
        }
        nix::unistd::setuid(nobody).unwrap();
    }
    let write = || Writer::open(folder, &options(Durability::Process), |_| {}).err().unwrap().to_string();
    let read = || Reader::open(folder, None).and_then(|mut reader| reader.next().map(drop)).unwrap_err();
    let says = |error: String, path: &std::path::Path, step: &str| {
        let is_named = error.contains(&*path.to_string_lossy()) && error.contains(step);
        assert!(is_named && error.contains("denied"), "{error}");
    };

    allow(folder, 0o500);
    says(write(), folder, "create it");
    allow(folder, 0o300);
    says(write(), folder, "list the folder");
    says(read().to_string(), folder, "list the folder");
    allow(folder, 0o700);
    allow(&segment, 0);
    says(write(), &segment, "open it");
    says(read().to_string(), &segment, "open it");
    allow(&segment, 0o600);
    allow(&folder.join("lock"), 0);
    says(write(), &folder.join("lock"), "open it");
    allow(&folder.join("lock"), 0o600);
}

#[test]
fn files_of_strangers_are_passed_over_or_set_aside() {
    let folder = folder();
    let mut writer = Writer::open(folder.path(), &options(Durability::Process), |_| {}).unwrap();
    append(&mut writer, 30);
    writer.close().unwrap();
    fs::write(folder.path().join("log-00000099"), "not a segment").unwrap();
    fs::write(folder.path().join("log-x"), "nor this").unwrap();
    fs::write(folder.path().join("snapshot-00000000000000000031"), "nor a snapshot").unwrap();
    let mut writer = Writer::open(folder.path(), &options(Durability::Process), |_| {}).unwrap();
    assert_eq!((writer.last(), writer.recovered().bad_snapshots.len()), (30, 1));
    append(&mut writer, 30);
    writer.close().unwrap();
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(60));
    assert_eq!(fs::read(folder.path().join("aside-00000099")).unwrap(), b"not a segment");
}

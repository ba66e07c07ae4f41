//! `launcher journal`: what it prints, what it changes, and what users get wrong.

use crate::common::{command, output, text, wait_until};
use journal::{Durability, Options, Writer};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Stdio;

/// A journal of three records, and its writer.
fn three_records() -> (tempfile::TempDir, Writer) {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { durability: Durability::EveryRecord, segment_bytes: 1 << 16, ..Options::default() };
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    for payload in ["buy", "sell", "cancel"] {
        writer.append(payload.as_bytes()).unwrap();
    }
    (folder, writer)
}

/// What it printed, what it complained of, how it ended.
fn journal(act: &str, folder: &tempfile::TempDir, more: &[&str]) -> (String, String, Option<i32>) {
    let made = output(&[&["journal", act, folder.path().to_str().unwrap()], more].concat());
    (text(&made.stdout), text(&made.stderr), made.status.code())
}

#[test]
fn journal_commands_cut_only_damaged_journals() {
    let (folder, writer) = three_records();
    let dumped = journal("dump", &folder, &["--from", "2", "--format", "csv"]);
    assert_eq!(dumped.0, "sequence,length,payload\n2,4,73656c6c\n3,6,63616e63656c\n");
    let (_, error, code) = journal("cut", &folder, &[]);
    assert!(code == Some(1) && error.contains("error:"), "somebody writes: {error}");
    writer.close().unwrap();
    assert!(journal("list", &folder, &[]).0.contains("from record 1"));
    let (verified, _, code) = journal("verify", &folder, &[]);
    assert_eq!((verified.contains("the last one is 3"), code), (true, Some(0)), "{verified}");
    let (_, error, code) = journal("cut", &folder, &[]);
    assert_eq!((error.contains("is not damaged"), code), (true, Some(1)), "{error}");
    // A byte of the second record falls over: two of three were synced at the close and are lost.
    let mut segments: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let damaged = segments
        .into_iter()
        .find(|path| fs::read(path).unwrap().windows(4).any(|four| four == b"sell"))
        .unwrap();
    let at = fs::read(&damaged).unwrap().windows(4).position(|four| four == b"sell").unwrap();
    File::options().write(true).open(&damaged).unwrap().write_all_at(b"S", at as u64).unwrap();
    let (verified, _, code) = journal("verify", &folder, &[]);
    assert_eq!((verified.contains("DAMAGED: records 2 to 3"), code), (true, Some(1)), "{verified}");
    let (dumped, error, code) = journal("dump", &folder, &[]);
    assert_eq!((dumped.as_str(), code), ("1  3  buy\n", Some(1)), "{error}");
    let (cut, _, code) = journal("cut", &folder, &[]);
    assert_eq!((cut.starts_with("1 records are left"), code), (true, Some(0)), "{cut}");
    assert_eq!(journal("verify", &folder, &[]).2, Some(0));
}

#[test]
fn journal_follow_prints_new_records() {
    let (folder, mut writer) = three_records();
    let seen = folder.path().join("seen");
    let mut child = command(&["journal", "follow", folder.path().to_str().unwrap()])
        .stdout(Stdio::from(File::create(&seen).unwrap()))
        .spawn()
        .unwrap();
    let lines = || fs::read_to_string(&seen).unwrap().lines().count();
    wait_until("what is there is printed", || lines() == 3);
    writer.append(b"more").unwrap();
    wait_until("what comes is printed", || lines() == 4);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn non_journal_is_refused_by_name() {
    let empty = tempfile::tempdir().unwrap();
    let name = empty.path().display().to_string();
    for act in ["list", "verify", "dump", "cut"] {
        let (printed, error, code) = journal(act, &empty, &[]);
        assert_eq!((printed.as_str(), code), ("", Some(1)), "{act}: {error}");
        assert!(error.contains(&name) && error.contains("not a journal"), "{act}: {error}");
    }
    let (_, error, code) = journal("list", &empty, &["--format", "csv"]);
    assert!(code == Some(2) && error.contains("--format"), "{error}");
    let missing = output(&["journal", "verify", "/nowhere"]);
    assert!(missing.status.code() == Some(2) && text(&missing.stderr).contains("/nowhere"));
}

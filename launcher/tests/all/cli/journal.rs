//! `launcher journal`: output, effects on the journal, and usage errors.

use crate::common::{CommandResult, command, entries, output, wait_until};
use journal::{Durability, Options, Writer};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;

/// A journal of three records, and its writer.
fn journal_of_three_records() -> (tempfile::TempDir, Writer) {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { durability: Durability::EveryRecord, segment_bytes: 1 << 16, ..Options::default() };
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    for payload in ["buy", "sell", "cancel"] {
        writer.append(payload.as_bytes()).unwrap();
    }
    (folder, writer)
}

fn journal(action: &str, folder: &tempfile::TempDir) -> CommandResult {
    output(&format!("journal {action} {}", folder.path().display()))
}

#[test]
fn journal_commands_cut_only_damaged_journals() {
    let (folder, writer) = journal_of_three_records();
    let dumped = journal("dump --from 2 --format csv", &folder);
    assert_eq!(dumped.stdout, "sequence,length,payload\n2,4,73656c6c\n3,6,63616e63656c\n");
    journal("cut", &folder).fails(1, &["error:"]);
    writer.close().unwrap();
    assert!(journal("list", &folder).stdout.contains("from record 1"));
    let verified = journal("verify", &folder).succeeds();
    assert!(verified.contains("the last one is 3"), "{verified}");
    journal("cut", &folder).fails(1, &["is not damaged"]);
    // A byte of the second record is changed: records 2 and 3, synced at the close, are lost.
    let find_sell = |path: &Path| fs::read(path).unwrap().windows(4).position(|four| four == b"sell");
    let (damaged, offset) =
        entries(folder.path()).into_iter().find_map(|path| Some((path.clone(), find_sell(&path)?))).unwrap();
    File::options().write(true).open(&damaged).unwrap().write_all_at(b"S", offset as u64).unwrap();
    let verified = journal("verify", &folder).fails(1, &[]).stdout;
    assert!(verified.contains("DAMAGED: records 2 to 3"), "{verified}");
    assert_eq!(journal("dump", &folder).fails(1, &[]).stdout, "1  3  buy\n");
    let cut = journal("cut", &folder).succeeds();
    assert!(cut.starts_with("left: 1 record;"), "{cut}");
    journal("verify", &folder).succeeds();
}

#[test]
fn journal_follow_prints_new_records() {
    let (folder, mut writer) = journal_of_three_records();
    let printed = folder.path().join("printed");
    let mut child = command(&format!("journal follow {}", folder.path().display()))
        .stdout(Stdio::from(File::create(&printed).unwrap()))
        .spawn()
        .unwrap();
    let lines = || fs::read_to_string(&printed).unwrap().lines().count();
    wait_until("existing records are printed", || lines() == 3);
    writer.append(b"more").unwrap();
    wait_until("a new record is printed", || lines() == 4);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn non_journal_is_refused_by_name() {
    let empty = tempfile::tempdir().unwrap();
    let name = empty.path().display().to_string();
    for action in ["list", "verify", "dump", "cut"] {
        let refused = journal(action, &empty).fails(1, &[&name, "not a journal"]);
        assert_eq!(refused.stdout, "", "{action}");
    }
    journal("list --format csv", &empty).fails(2, &["--format"]);
    output("journal verify /nowhere").fails(2, &["/nowhere"]);
}

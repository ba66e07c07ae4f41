//! The tools: their output, and that a log is cut only on request.

use crate::basics::{open, options};
use crate::common::{State, append, folder, recovered};
use journal::tool::{self, DumpFormat, ToolError};
use journal::{Durability, JournalError, Writer};
use std::fs;
use std::path::Path;

fn printed(print: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    print(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn dump_has_each_record_in_each_format() {
    let folder = folder();
    let mut writer = open(folder.path());
    for payload in ["buy 3 of €\nx".as_bytes(), b"\x01\xff", b"sell"] {
        writer.append(payload).unwrap();
    }
    let dump =
        |form, from| printed(|out| assert!(tool::dump(folder.path(), from, form, out, || false).is_ok()));
    assert_eq!(dump(DumpFormat::Text, None), "1  14  buy 3 of €\\nx\n2  2  01ff\n3  4  sell\n");
    assert_eq!(dump(DumpFormat::Csv, Some(2)), "sequence,length,payload\n2,2,01ff\n3,4,73656c6c\n");
    assert_eq!(dump(DumpFormat::Json, Some(3)), "{\"payload\":\"73656c6c\",\"sequence\":3}\n");
    // Following also dumps records appended during the dump.
    let mut rounds = 0;
    let followed = printed(|out| {
        let should_continue = || {
            rounds += 1;
            writer.append(b"more").unwrap();
            rounds < 3
        };
        assert_eq!(tool::dump(folder.path(), Some(3), DumpFormat::Text, out, should_continue).unwrap(), 3);
    });
    assert_eq!(followed, "3  4  sell\n4  4  more\n5  4  more\n");
    writer.snapshot(vec![7; 10]).unwrap();
    writer.close().unwrap();
    let listed = printed(|out| tool::list(&folder.path().join("log-00000001"), out).unwrap());
    assert!(listed.contains("log-00000001  8192 bytes  from record 1"), "{listed}");
    assert!(listed.contains("snapshot-00000000000000000006  10 bytes  up to record 6"), "{listed}");
}

#[test]
fn journal_is_known_by_a_segment_or_a_snapshot() {
    let folder = folder();
    assert!(!tool::is_journal(folder.path()).unwrap());
    for name in ["log-00000001", "snapshot-00000000000000000001"] {
        let path = folder.path().join(name);
        fs::write(&path, "").unwrap();
        assert!(tool::is_journal(folder.path()).unwrap(), "{name}");
        fs::remove_file(&path).unwrap();
    }
}

fn damage(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0xff;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_log_is_copied_before_cut() {
    let folder = folder();
    let options = options(Durability::EveryRecord);
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    append(&mut writer, 300);
    writer.close().unwrap();
    let intact_report = printed(|out| assert!(tool::verify(folder.path(), out).unwrap()));
    assert!(intact_report.contains("the last one is 300"), "{intact_report}");
    assert!(matches!(tool::cut(folder.path()), Err(ToolError::Undamaged(_))));

    damage(&folder.path().join("log-00000002"), 3000);
    let damage_report = printed(|out| assert!(!tool::verify(folder.path(), out).unwrap()));
    assert!(damage_report.contains("DAMAGED") && damage_report.contains("log-00000002"), "{damage_report}");
    let refused = Writer::open(folder.path(), &options, |_| {}).err();
    assert!(matches!(refused, Some(JournalError::Damaged { .. })), "{refused:?}");
    let remaining = tool::cut(folder.path()).unwrap();
    assert!(remaining > 100 && remaining < 300, "{remaining}");
    assert!(
        folder.path().join("orphaned-00000002").exists() && folder.path().join("orphaned-00000003").exists()
    );
    assert!(
        printed(|out| assert!(tool::verify(folder.path(), out).unwrap())).contains(&remaining.to_string())
    );
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    append(&mut writer, 50);
    writer.close().unwrap();
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(remaining + 50));
}

//! Saved logs, valid and damaged.

use crate::fixture::{Fixture, Shape};
use proptest::prelude::*;
use protocol::stamps::Record;
use record::logfile::{LogError, LogReader, RECORDS_AT};

fn read(bytes: &[u8]) -> (Vec<Record>, Result<(), LogError>) {
    let mut records = Vec::new();
    let mut log = match LogReader::new(bytes, "a.stamps".into(), Some("test-1")) {
        Ok(log) => log,
        Err(error) => return (records, Err(error)),
    };
    loop {
        match log.next_block() {
            Ok(Some(block)) => {
                assert_eq!(block.first, records.len() as u64);
                assert!(!block.bytes.is_empty());
                records.extend(block.records());
                assert_eq!(log.records(), records.len() as u64);
            }
            Ok(None) => return (records, Ok(())),
            Err(error) => return (records, Err(error)),
        }
    }
}

fn sample() -> (Fixture, Vec<u8>) {
    let mut fixture = Fixture::new(Shape::PLAIN);
    fixture.sums[0].clear();
    let bytes = fixture.bytes(0);
    (fixture, bytes)
}

/// 65,536 records are a block.
#[test]
fn log_round_trips_and_ends_at_zero_key() {
    let mut fixture = Fixture::new(Shape { strategies: 1, orders: 50_000, ..Shape::PLAIN });
    fixture.sums[0].clear();
    for records in [150_000, 131_072, 65_537, 65_536, 65_535, 60] {
        fixture.logs[0].truncate(records);
        let mut bytes = fixture.bytes(0);
        for zeros in [0, 4096] {
            bytes.extend(vec![0; zeros]);
            let (read, end) = read(&bytes);
            assert!(read == fixture.logs[0] && read.len() == records && end.is_ok(), "{records}: {end:?}");
        }
    }
}

#[test]
fn each_damage_has_its_error_after_good_records() {
    let (fixture, bytes) = sample();
    type Spoil = fn(&mut Vec<u8>);
    let cases: [(usize, &str, Spoil); 11] = [
        (7, "inside record 7 (at byte 9200)", |bytes| bytes.truncate(RECORDS_AT as usize + 16 * 7 + 5)),
        (4, "record 4 (at byte 9152) has the unknown point code 60", |bytes| {
            bytes[RECORDS_AT as usize + 16 * 4 + 7] = 0xF0;
        }),
        (3, "ends at record 3, yet record 4", |bytes| bytes[RECORDS_AT as usize + 16 * 3..][..8].fill(0)),
        (0, "100 bytes: too short", |bytes| bytes.truncate(100)),
        (0, "status block, at byte 300 of 9088", |bytes| bytes.truncate(300)),
        (0, "wrong magic", |bytes| bytes[0] = 0),
        (0, "format version 9", |bytes| bytes[8] = 9),
        (0, "layout hash", |bytes| bytes[16] ^= 1),
        (0, "segment kind 2", |bytes| bytes[32] = 2),
        (0, "impossible geometry", |bytes| bytes[40..48].fill(0xFF)),
        (0, "belongs to another run", |bytes| bytes[72] ^= 1),
    ];
    for (good, expected, introduce) in cases {
        let mut bytes = bytes.clone();
        introduce(&mut bytes);
        let (records, end) = read(&bytes);
        assert_eq!(records, fixture.logs[0][..good], "{expected}");
        let error = end.unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn file_longer_than_its_segment_is_refused() {
    let (_, mut bytes) = sample();
    bytes.extend([0; 4096]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.stamps");
    std::fs::write(&path, bytes).unwrap();
    let error = LogReader::open(&path, None).err().unwrap();
    assert!(error.to_string().contains("header promises"), "{error}");
    let error = LogReader::open(folder.path(), None).err().unwrap();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

proptest! {
    #[test]
    fn random_bytes_are_not_a_log(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let (records, end) = read(&bytes);
        prop_assert!(records.is_empty() && end.is_err());
    }
}

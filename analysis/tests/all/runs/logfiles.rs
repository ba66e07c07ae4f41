//! Saved logs, valid and damaged.

use crate::fixture::{Fixture, Shape};
use analysis::logfile::{LogError, LogReader, RECORDS_AT};
use proptest::prelude::*;
use protocol::stamps::Record;

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
                assert!(!block.is_empty());
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

#[test]
fn log_round_trips() {
    let (fixture, bytes) = sample();
    let (records, end) = read(&bytes);
    assert_eq!(records, fixture.logs[0]);
    assert!(end.is_ok());
}

#[test]
fn log_longer_than_a_block_round_trips() {
    // 3 records an order and 65,536 records a block; one order more than fits two blocks exactly.
    let mut fixture = Fixture::new(Shape { strategies: 1, orders: 50_000, ..Shape::PLAIN });
    fixture.sums[0].clear();
    let (records, end) = read(&fixture.bytes(0));
    assert_eq!(records, fixture.logs[0]);
    assert!(end.is_ok());
}

#[test]
fn log_ending_on_block_boundary_ends() {
    for records in [65_535, 65_536, 65_537, 131_072] {
        let mut fixture = Fixture::new(Shape { strategies: 1, orders: 50_000, ..Shape::PLAIN });
        fixture.logs[0].truncate(records);
        fixture.sums[0].clear();
        let (read, end) = read(&fixture.bytes(0));
        assert_eq!(read.len(), records);
        assert!(end.is_ok());
    }
}

#[test]
fn zero_key_ends_a_log() {
    let (fixture, mut bytes) = sample();
    bytes.extend([0; 4096]);
    let (records, end) = read(&bytes);
    assert_eq!(records.len(), fixture.logs[0].len());
    assert!(end.is_ok());
}

#[test]
fn each_damage_has_its_error_after_good_records() {
    let (fixture, bytes) = sample();
    let spoiled = |spoil: fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        spoil(&mut bytes);
        let (records, end) = read(&bytes);
        assert_eq!(records, fixture.logs[0][..records.len()]);
        (records.len(), end.unwrap_err().to_string())
    };
    let (records, error) = spoiled(|bytes| bytes.truncate(RECORDS_AT as usize + 16 * 7 + 5));
    assert_eq!(records, 7);
    assert!(error.contains("inside record 7 (at byte 9200)"), "{error}");

    let (records, error) = spoiled(|bytes| bytes[RECORDS_AT as usize + 16 * 4 + 7] = 0xF0);
    assert_eq!(records, 4);
    assert!(error.contains("record 4 (at byte 9152)") && error.contains("point code 60"), "{error}");

    let (records, error) = spoiled(|bytes| bytes[RECORDS_AT as usize + 16 * 3..][..8].fill(0));
    assert_eq!(records, 3);
    assert!(error.contains("ends at record 3, yet record 4"), "{error}");

    assert!(spoiled(|bytes| bytes.truncate(100)).1.contains("100 bytes: too short"));
    assert!(spoiled(|bytes| bytes.truncate(300)).1.contains("status block, at byte 300 of 9088"));
    assert!(spoiled(|bytes| bytes[0] = 0).1.contains("wrong magic"));
    assert!(spoiled(|bytes| bytes[8] = 9).1.contains("format version 9"));
    assert!(spoiled(|bytes| bytes[16] ^= 1).1.contains("layout hash"));
    assert!(spoiled(|bytes| bytes[32] = 2).1.contains("segment kind 2"));
    assert!(spoiled(|bytes| bytes[40..48].fill(0xFF)).1.contains("impossible geometry"));
    assert!(spoiled(|bytes| bytes[72] ^= 1).1.contains("belongs to another run"));
}

#[test]
fn file_longer_than_its_segment_is_refused() {
    let (_, mut bytes) = sample();
    bytes.extend([0; 4096]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.stamps");
    std::fs::write(&path, bytes).unwrap();
    let error = LogReader::open(&path, None).unwrap_err();
    assert!(error.to_string().contains("header promises"), "{error}");
    let error = LogReader::open(folder.path(), None).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

proptest! {
    #[test]
    fn corrupt_bytes_never_panic_log_reader(
        cut in 0usize..3000, scribbles in prop::collection::vec((0usize..3000, any::<u8>()), 0..20),
    ) {
        let (fixture, mut bytes) = sample();
        bytes.truncate(cut);
        for (index, byte) in scribbles {
            if let Some(old) = bytes.get_mut(index) {
                *old = byte;
            }
        }
        let (records, _) = read(&bytes);
        prop_assert!(records.len() <= fixture.logs[0].len());
    }

    #[test]
    fn random_bytes_are_not_a_log(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let (records, end) = read(&bytes);
        prop_assert!(records.is_empty() && end.is_err());
    }
}

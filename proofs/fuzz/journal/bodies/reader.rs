//! Arbitrary bytes as a journal: recovery does not panic, read out of bounds, allocate much or
//! loop, and returns records in order.

use journal::format::{SEGMENT_HEADER, SegmentHeader, first_word, record_size};
use journal::{Recovered, recover};
use std::fs;

/// Recovers a directory with one file. The first byte selects its kind: a segment after a valid
/// header, with or without corrected CRCs; a segment with its header; a snapshot.
pub fn read(data: &[u8]) {
    let Some((what, data)) = data.split_first() else { return };
    let folder = tempfile::Builder::new().prefix("journal-fuzz-").tempdir_in("/dev/shm").expect("space");
    let header =
        SegmentHeader { log: 1, index: 1, bytes: (SEGMENT_HEADER + data.len()) as u64, watermark: 0 };
    let segment = [&header.encode()[..], data].concat();
    let (name, bytes) = match what % 4 {
        0 => ("log-00000001", segment),
        1 => ("log-00000001", with_right_crcs(segment, header.seed())),
        2 => ("log-00000001", data.to_vec()),
        _ => ("snapshot-00000000000000000001", data.to_vec()),
    };
    fs::write(folder.path().join(name), bytes).expect("space");
    let (mut due, mut bytes) = (1, 0);
    let end = recover(folder.path(), |part| {
        if let Recovered::Record { sequence, payload } = part {
            assert_eq!(sequence, due);
            due += 1;
            bytes += record_size(payload.len());
        }
    });
    assert!(bytes <= data.len(), "more records than bytes");
    if let Ok(end) = end {
        assert_eq!(end.last, due - 1);
    }
    // A log without its beginning is an error; anything else is reported in the result.
    let _ = journal::tool::verify(folder.path(), &mut std::io::sink());
    let _ = journal::tool::list(folder.path(), &mut std::io::sink());
}

/// Corrects the CRCs, so that lengths and sequences are parsed as well.
fn with_right_crcs(mut bytes: Vec<u8>, seed: u32) -> Vec<u8> {
    let mut at = SEGMENT_HEADER;
    while at + 16 <= bytes.len() {
        let word =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let (length, sequence) = (word(at) as u32 % 64, word(at + 8) % 8);
        let end = (at + 16 + length as usize).min(bytes.len());
        let first = first_word(seed, length, sequence, &bytes[at + 16..end]);
        bytes[at..at + 8].copy_from_slice(&first.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&sequence.to_le_bytes());
        at += record_size(length as usize);
    }
    bytes
}

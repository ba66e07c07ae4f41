//! Any bytes as a folder: nothing panics, reads behind the end, asks for much memory or goes on for
//! ever, and whoever reads is given records in order.

use journal::format::{SEGMENT_HEADER, SegmentHeader, first_word, size};
use journal::{Recovered, recover};
use std::fs;

/// The first byte says which file the rest is: a segment behind a good header, of which records'
/// CRCs are made right or not; a segment with its header; a snapshot.
pub fn read(data: &[u8]) {
    let Some((what, data)) = data.split_first() else { return };
    let folder = tempfile::Builder::new().prefix("journal-fuzz-").tempdir_in("/dev/shm").expect("room");
    let header =
        SegmentHeader { log: 1, index: 1, bytes: (SEGMENT_HEADER + data.len()) as u64, watermark: 0 };
    let segment = [&header.encode()[..], data].concat();
    let (name, bytes) = match what % 4 {
        0 => ("log-00000001", segment),
        1 => ("log-00000001", with_right_crcs(segment, header.seed())),
        2 => ("log-00000001", data.to_vec()),
        _ => ("snapshot-00000000000000000001", data.to_vec()),
    };
    fs::write(folder.path().join(name), bytes).expect("room");
    let (mut due, mut bytes) = (1, 0);
    let end = recover(folder.path(), |part| {
        if let Recovered::Record { sequence, payload } = part {
            assert_eq!(sequence, due);
            due += 1;
            bytes += size(payload.len());
        }
    });
    assert!(bytes <= data.len(), "more records than bytes");
    if let Ok(end) = end {
        assert_eq!(end.last, due - 1);
    }
    // A log that does not begin at the beginning is an error; anything else is said in words.
    let _ = journal::tool::verify(folder.path(), &mut std::io::sink());
    let _ = journal::tool::list(folder.path(), &mut std::io::sink());
}

/// So that lengths and sequences are looked at as well.
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
        at += size(length as usize);
    }
    bytes
}

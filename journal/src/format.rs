//! The file format of a segment: header and records, and their validation. All numbers are little
//! endian.
//!
//! ```text
//! segment   log-00000001, of a fixed size
//!   byte  0  magic "bulkwal1"
//!         8  version        2
//!        16  log id         the same in all segments of a folder
//!        24  index          1, 2, 3 …; indices of unused segments are missing
//!        32  bytes          of the whole file
//!        40  check          CRC-32C of bytes 0 to 39
//!        48  watermark      a record that is durable, with all before it; may be out of date, and
//!                           0 in new segments of earlier builds
//!        56  its inverse    otherwise the watermark is ignored
//!        64  records        the first unused byte and all after it are zero
//!
//! record    at a multiple of 8
//!   byte  0  length u32     of the payload, 1 or more
//!         4  check u32      CRC-32C of the payload XOR a hash of its place: the segment's check,
//!                           the length and the sequence
//!         8  sequence u64   1, 2, 3 … through all segments
//!        16  payload, then zeros to a multiple of 8
//! ```
//! Length and check are one word, stored last: a process killed in the middle of a record
//! leaves a zero there, which marks the end of the log. A segment with a successor ends with a
//! record of length `u32::MAX` without payload.
//!
//! The check of the segment's header is part of each record's check. A record of another log or
//! segment, or a stale one in reused blocks of the disk, is therefore invalid.
//!
//! **Why not one CRC over all of it?** For records of some 70 bytes a second call, over 24 bytes,
//! takes longer than the first one: 17 ns instead of 7. A hash of numbers that the reader knows
//! already finds what a CRC of them would.

use crc_fast::crc32_iscsi as crc32c;

/// Length of a log segment's header (start of each file) in bytes.
pub const SEGMENT_HEADER: usize = 64;
/// Length of the header of each journal record in bytes.
pub const RECORD_HEADER: usize = 16;
/// Byte offset in a segment's header of the watermark: the sequence number of a record that is
/// durable, with all before it.
pub const WATERMARK: usize = 48;
/// The length field that marks the end of a segment: the log continues in the next one.
pub(crate) const ROLL: u32 = u32::MAX;
const MAGIC: u64 = u64::from_le_bytes(*b"bulkwal1");
const VERSION: u64 = 2;
/// Odd constants with pseudo-random bits, from splitmix64's finaliser.
const SPREAD: [u64; 2] = [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];

/// Writes words into bytes from the byte `at` on.
pub(crate) fn put(bytes: &mut [u8], at: usize, words: &[u64]) {
    let slots = bytes[at..].as_chunks_mut::<8>().0.iter_mut();
    slots.zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

const DAMAGED_HEADER: &str = "the segment's header is damaged";
const CUT_SHORT: &str = "the segment is cut short in its header";

fn is_cut_header(bytes: &[u8]) -> bool {
    let magic = MAGIC.to_le_bytes();
    !bytes.is_empty() && bytes.len() < SEGMENT_HEADER && magic.iter().zip(bytes).all(|(a, b)| a == b)
}

/// Returns `true` if the header is valid apart from its magic.
fn is_header_but_magic(bytes: &[u8]) -> bool {
    let mut restored = [0; 40];
    restored.copy_from_slice(&bytes[..40]);
    put(&mut restored, 0, &[MAGIC]);
    word(bytes, 40) == u64::from(crc32c(&restored))
}

/// The decoded and validated header of a log segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Id of the log, equal in all its segments.
    pub log: u64,
    /// Index of the segment, from 1.
    pub index: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Sequence of a record that is known to be durable, as are all before it; 0 for none.
    pub watermark: u64,
}

impl SegmentHeader {
    /// Encodes the segment's header as bytes of the file.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        put(&mut bytes, 0, &[MAGIC, VERSION, self.log, self.index, self.bytes]);
        let check = u64::from(crc32c(&bytes[..40]));
        put(&mut bytes, 40, &[check, self.watermark, !self.watermark]);
        bytes
    }

    /// Decodes and validates a segment's header.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.len() < SEGMENT_HEADER {
            return Err(if is_cut_header(bytes) {
                CUT_SHORT
            } else {
                "too short for the header of a segment"
            });
        }
        if word(bytes, 0) != MAGIC {
            return Err(if is_header_but_magic(bytes) {
                DAMAGED_HEADER
            } else {
                "not a segment of a journal"
            });
        }
        if word(bytes, 8) != VERSION {
            return Err("a segment of another version: use the build that wrote it");
        }
        if word(bytes, 40) != u64::from(crc32c(&bytes[..40])) {
            return Err(DAMAGED_HEADER);
        }
        let watermark = word(bytes, WATERMARK);
        let is_intact = word(bytes, WATERMARK + 8) == !watermark;
        let watermark = if is_intact { watermark } else { 0 };
        Ok(Self { log: word(bytes, 16), index: word(bytes, 24), bytes: word(bytes, 32), watermark })
    }

    /// Returns `true` if bytes without a valid header are a segment nevertheless: damaged, cut
    /// short, or of another version. Recovery skips any other file.
    pub(crate) fn was_segment(bytes: &[u8]) -> bool {
        is_cut_header(bytes)
            || bytes.len() >= SEGMENT_HEADER && (word(bytes, 0) == MAGIC || is_header_but_magic(bytes))
    }

    /// Returns the CRC-32C of the segment's header, which is part of each record's check.
    pub fn seed(&self) -> u32 {
        crc32c(&self.encode()[..40])
    }
}

/// Returns the maximum payload in bytes of a record in segments of `segment_bytes` bytes. The end
/// mark takes one record header.
pub const fn max_payload(segment_bytes: u64) -> usize {
    (segment_bytes as usize).saturating_sub(SEGMENT_HEADER + 2 * RECORD_HEADER) & !7
}

/// Returns the length in bytes of a journal record with a payload of `length` bytes.
#[inline(always)]
pub const fn record_size(length: usize) -> usize {
    RECORD_HEADER + length.next_multiple_of(8)
}

/// Returns the first 64-bit word of a record, which holds its length and its check (CRC).
#[inline(always)]
pub fn first_word(seed: u32, length: u32, sequence: u64, payload: &[u8]) -> u64 {
    let segment_and_sequence = (sequence ^ u64::from(seed) << 32).wrapping_mul(SPREAD[0]);
    let place = segment_and_sequence ^ u64::from(length).wrapping_mul(SPREAD[1]);
    // The high half of a product depends on all bits of its factors.
    u64::from(length) | u64::from(crc32c(payload) ^ (place >> 32) as u32) << 32
}

/// The result of reading one position of a segment: a record, no record, the segment's end mark,
/// too few bytes, or damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanResult {
    /// The expected record was found, with the length of its payload in bytes.
    Record(usize),
    /// The end mark of the segment was found: the log continues in the next segment.
    SegmentEnd,
    /// No record was written at the position.
    Empty,
    /// More bytes are needed: this number from the position on.
    NeedsMore(usize),
    /// The bytes are not a valid record, or not the expected one; with a description.
    Invalid(&'static str),
}

/// Decodes the record at the start of `bytes`, which must have the number `expected`. `remaining`
/// is the distance to the end of the segment, which no record exceeds. Trusts no byte, and reads
/// none after `bytes`.
pub fn scan(bytes: &[u8], remaining: usize, seed: u32, expected: u64) -> ScanResult {
    if remaining < RECORD_HEADER {
        return ScanResult::Invalid("after the last record of the segment");
    }
    if bytes.len() < RECORD_HEADER {
        return ScanResult::NeedsMore(RECORD_HEADER);
    }
    let first = word(bytes, 0);
    if first == 0 {
        return ScanResult::Empty;
    }
    let (length, sequence) = (first as u32, word(bytes, 8));
    if length == ROLL {
        let is_expected = first_word(seed, ROLL, sequence, &[]) == first && sequence == expected;
        return if is_expected {
            ScanResult::SegmentEnd
        } else {
            ScanResult::Invalid("the mark of the segment's end is damaged")
        };
    }
    let length = length as usize;
    if length == 0 || record_size(length) > remaining {
        return ScanResult::Invalid("an impossible length");
    }
    if bytes.len() < RECORD_HEADER + length {
        return ScanResult::NeedsMore(RECORD_HEADER + length);
    }
    if first_word(seed, length as u32, sequence, &bytes[RECORD_HEADER..RECORD_HEADER + length]) != first {
        return ScanResult::Invalid("a wrong check");
    }
    if sequence != expected {
        return ScanResult::Invalid("another record's sequence");
    }
    ScanResult::Record(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_is_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn header_roundtrips_and_detects_any_bit_flip() {
        let header = SegmentHeader { log: 7, index: 3, bytes: 1 << 20, watermark: 99 };
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        for bit in 0..SEGMENT_HEADER * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            let found = SegmentHeader::decode(&changed);
            if bit < WATERMARK * 8 {
                assert!(found.is_err(), "bit {bit}");
            } else {
                assert_eq!(found.map(|found| found.watermark), Ok(0), "bit {bit}");
            }
        }
    }

    /// Records with equal payloads at places that differ in one bit, or are neighbors, have
    /// different words. Without the hash of the place they are equal.
    #[test]
    fn equal_payloads_at_different_places_have_different_checks() {
        let payload = [7; 72];
        let check = |seed, sequence| first_word(seed, 72, sequence, &payload) >> 32;
        let mut seeds = vec![0, 1, 5, u32::MAX];
        seeds.extend((0..32).map(|bit| 0xdead_beef ^ 1 << bit));
        for (seed, sequence) in [(0xdead_beef_u32, 9_u64), (0, 1), (u32::MAX, 1 << 40)] {
            for other in seeds.iter().filter(|other| **other != seed) {
                assert_ne!(check(seed, sequence), check(*other, sequence));
            }
            for other in (0..64).map(|bit| sequence ^ 1 << bit).chain(sequence + 1..sequence + 100_000) {
                assert_ne!(check(seed, sequence), check(seed, other), "sequences {sequence} and {other}");
            }
        }
        assert_ne!(first_word(1, 8, 1, &[0; 8]) >> 32, u64::from(crc32c(&[0; 8])), "the place is in it");
    }

    #[test]
    fn record_detects_any_bit_flip_and_wrong_position() {
        let payload = [0xa5; 21];
        let mut bytes = vec![0; record_size(21)];
        bytes[..8].copy_from_slice(&first_word(5, 21, 9, &payload).to_le_bytes());
        bytes[8..16].copy_from_slice(&9_u64.to_le_bytes());
        bytes[16..37].copy_from_slice(&payload);
        assert_eq!(scan(&bytes, 64, 5, 9), ScanResult::Record(21));
        assert_eq!(scan(&bytes, 64, 5, 8), ScanResult::Invalid("another record's sequence"));
        assert_eq!(scan(&bytes, 64, 6, 9), ScanResult::Invalid("a wrong check"), "of another segment");
        assert_eq!(scan(&bytes[..30], 64, 5, 9), ScanResult::NeedsMore(37));
        for bit in 0..37 * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(
                !matches!(scan(&changed, 64, 5, 9), ScanResult::Record(_) | ScanResult::SegmentEnd),
                "bit {bit}"
            );
        }
    }
}

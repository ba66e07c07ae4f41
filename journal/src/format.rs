//! The bytes of a segment: its header, its records, and how each of them is checked. All numbers
//! are little endian.
//!
//! ```text
//! segment   log-00000001, of a fixed size
//!   byte  0  magic "bulkwal1"
//!         8  version        1
//!        16  log id         the same in all segments of a folder
//!        24  index          1, 2, 3 …; those of failed preparations are missing
//!        32  bytes          of the whole file
//!        40  check          CRC-32C of bytes 0 to 39
//!        48  watermark      sequence of a record that was synced, with all before it; may be behind
//!        56  its inverse    otherwise the watermark is not believed
//!        64  records        the first unused byte and all after it are zero
//!
//! record    at a multiple of 8
//!   byte  0  length u32     of the payload, 1 or more
//!         4  crc32c u32     of: CRC of bytes 0 to 39 of the header u32, length u32, sequence u64, CRC-32C of the payload u32
//!         8  sequence u64   1, 2, 3 … through all segments
//!        16  payload, then zeros to a multiple of 8
//! ```
//! Length and CRC are one word, stored last: a process that dies in the middle leaves a zero there,
//! which is no record. The end of a segment that is followed by another one is a record of the
//! length `u32::MAX` without payload.
//!
//! The segment is part of every CRC: a record of another folder or file, or one that stood in these
//! blocks of the disk before, is none.

use crc_fast::crc32_iscsi as crc32c;

/// Bytes of a segment's header.
pub const SEGMENT_HEADER: usize = 64;
/// Bytes before a record's payload.
pub const RECORD_HEADER: usize = 16;
/// Where the header has its watermark.
pub const WATERMARK: usize = 48;
/// The length that says: it goes on in the next segment.
pub(crate) const ROLL: u32 = u32::MAX;
const MAGIC: u64 = u64::from_le_bytes(*b"bulkwal1");
const VERSION: u64 = 1;

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// A segment's header, decoded and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The same in all segments of a folder.
    pub log: u64,
    /// The segment's number, from 1.
    pub index: u64,
    /// Of the whole file.
    pub bytes: u64,
    /// The last record that was certainly on the disk when this was written; 0 for none.
    pub watermark: u64,
}

impl SegmentHeader {
    /// As it stands in the file.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        let words = [MAGIC, VERSION, self.log, self.index, self.bytes];
        for (at, word) in words.iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        let check = u64::from(crc32c(&bytes[..40]));
        for (at, word) in [check, self.watermark, !self.watermark].iter().enumerate() {
            bytes[40 + at * 8..48 + at * 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Checks a header.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.len() < SEGMENT_HEADER {
            return Err("too short for the header of a segment");
        }
        if word(bytes, 0) != MAGIC {
            return Err("not a segment of a journal");
        }
        if word(bytes, 8) != VERSION {
            return Err("a segment of another version: use the build that wrote it");
        }
        if word(bytes, 40) != u64::from(crc32c(&bytes[..40])) {
            return Err("the segment's header is damaged");
        }
        let watermark = word(bytes, WATERMARK);
        let is_whole = word(bytes, WATERMARK + 8) == !watermark;
        let watermark = if is_whole { watermark } else { 0 };
        Ok(Self { log: word(bytes, 16), index: word(bytes, 24), bytes: word(bytes, 32), watermark })
    }

    /// What its records' CRCs begin with.
    pub fn seed(&self) -> u32 {
        crc32c(&self.encode()[..40])
    }
}

/// The longest payload in segments of so many bytes. The end of the segment takes a record's
/// header.
pub const fn most(segment_bytes: u64) -> usize {
    (segment_bytes as usize).saturating_sub(SEGMENT_HEADER + 2 * RECORD_HEADER) & !7
}

/// Bytes of a record with so long a payload.
#[inline(always)]
pub const fn size(length: usize) -> usize {
    RECORD_HEADER + length.next_multiple_of(8)
}

/// A record's first word: its length and its CRC.
#[inline(always)]
pub fn first_word(seed: u32, length: u32, sequence: u64, payload: &[u8]) -> u64 {
    let inner = crc32c(payload);
    let mut block = [0; 24];
    block[..4].copy_from_slice(&seed.to_le_bytes());
    block[4..8].copy_from_slice(&length.to_le_bytes());
    block[8..16].copy_from_slice(&sequence.to_le_bytes());
    block[16..20].copy_from_slice(&inner.to_le_bytes());
    u64::from(length) | u64::from(crc32c(&block)) << 32
}

/// What stands at a place in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The record that was due, with so long a payload.
    Record(usize),
    /// The end of the segment: it goes on in the next one.
    Roll,
    /// Nothing was written here.
    Empty,
    /// So many bytes from here on are needed to tell.
    More(usize),
    /// Not a record, or not the one that was due.
    Bad(&'static str),
}

/// Looks at what stands at the beginning of `bytes`, where record `due` should. `room` is the
/// distance to the end of the segment: no record reaches beyond it. Believes nothing: whatever the
/// bytes are, it reads none behind them.
pub fn scan(bytes: &[u8], room: usize, seed: u32, due: u64) -> Found {
    if room < RECORD_HEADER {
        return Found::Bad("behind the last place of the segment");
    }
    if bytes.len() < RECORD_HEADER {
        return Found::More(RECORD_HEADER);
    }
    let first = word(bytes, 0);
    if first == 0 {
        return Found::Empty;
    }
    let (length, sequence) = (first as u32, word(bytes, 8));
    if length == ROLL {
        let is_ours = first_word(seed, ROLL, sequence, &[]) == first && sequence == due;
        return if is_ours { Found::Roll } else { Found::Bad("the mark of the segment's end is damaged") };
    }
    let length = length as usize;
    if length == 0 || size(length) > room {
        return Found::Bad("an impossible length");
    }
    if bytes.len() < RECORD_HEADER + length {
        return Found::More(RECORD_HEADER + length);
    }
    if first_word(seed, length as u32, sequence, &bytes[RECORD_HEADER..RECORD_HEADER + length]) != first {
        return Found::Bad("a wrong CRC");
    }
    if sequence != due {
        return Found::Bad("another record's sequence");
    }
    Found::Record(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_header_comes_back_and_no_bit_of_it_can_change() {
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

    #[test]
    fn no_bit_of_a_record_can_change_and_it_is_only_itself() {
        let payload = [0xa5; 21];
        let mut bytes = vec![0; size(21)];
        bytes[..8].copy_from_slice(&first_word(5, 21, 9, &payload).to_le_bytes());
        bytes[8..16].copy_from_slice(&9_u64.to_le_bytes());
        bytes[16..37].copy_from_slice(&payload);
        assert_eq!(scan(&bytes, 64, 5, 9), Found::Record(21));
        assert_eq!(scan(&bytes, 64, 5, 8), Found::Bad("another record's sequence"));
        assert_eq!(scan(&bytes, 64, 6, 9), Found::Bad("a wrong CRC"), "of another segment");
        assert_eq!(scan(&bytes[..30], 64, 5, 9), Found::More(37));
        for bit in 0..37 * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(scan(&changed, 64, 5, 9), Found::Record(_) | Found::Roll), "bit {bit}");
        }
    }
}

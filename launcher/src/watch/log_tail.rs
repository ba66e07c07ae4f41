//! Follows a growing stamp log: reads new records at each poll, up to a bound, and counts skipped
//! ones.

use super::source::SegmentFile;
use protocol::record::{RECORD_WORDS, Record};
use protocol::spill::{CHUNK_RECORDS, LogRing};
use protocol::status::LOG_OFFSET;

/// How much of a growing stamp log is read at each poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailMode {
    /// The newest records, up to this number: a sample.
    Newest(usize),
    /// Every record, up to this number at each poll; a reader that is far too late skips records.
    Every(usize),
}

/// How many polls' worth of records may wait to be read.
const LOOKS_BEHIND: usize = 32;

/// A read position in a stamp log that is still being written.
#[derive(Clone, Debug)]
pub struct LogTail {
    mode: TailMode,
    /// The ring of a spilled log.
    ring: Option<LogRing>,
    /// The next record to be read.
    next: usize,
    /// Number of records of the log that were skipped.
    pub skipped: u64,
}

impl LogTail {
    /// Starts reading at the beginning of a stamp log; of one that is moved to disk, with its ring.
    pub const fn new(reading: TailMode, ring: Option<LogRing>) -> Self {
        Self { mode: reading, ring, next: 0, skipped: 0 }
    }

    /// Passes the log's new records to `each`, oldest first. Invalid records are skipped. `chunk`:
    /// the chunk of a spilled log that its thread reports to write.
    pub fn poll(&mut self, log: &SegmentFile, chunk: u64, mut each: impl FnMut(Record)) -> bool {
        let Ok(words) = log.len() else { return false };
        let end = match self.ring {
            None => self.end(log, self.next, words.saturating_sub(LOG_OFFSET) / RECORD_WORDS),
            Some(ring) => self.end_in(ring, log, chunk),
        };
        let new = end.saturating_sub(self.next);
        let most = match self.mode {
            TailMode::Newest(most) => {
                self.skip(new.saturating_sub(most));
                most
            }
            TailMode::Every(most) => {
                self.skip(new.saturating_sub(most.saturating_mul(LOOKS_BEHIND)));
                most
            }
        };
        let mut left = end.saturating_sub(self.next).min(most);
        while left > 0 {
            let (place, behind) = self.place(self.next);
            let many = left.min(behind);
            let mut words = vec![0; many * RECORD_WORDS];
            if log.read(LOG_OFFSET + place * RECORD_WORDS, &mut words).is_err() {
                return false;
            }
            self.next += many;
            left -= many;
            for words in words.chunks_exact(RECORD_WORDS) {
                // A record has a nonzero key; one that a scribbling process left is invalid and is
                // skipped. A chunk moved to disk by now has been cleared.
                match Record::from_words(words[0], words[1]) {
                    Some(record) => each(record),
                    None => self.skipped += u64::from(self.ring.is_some()),
                }
            }
        }
        self.next < end
    }

    fn skip(&mut self, records: usize) {
        self.skipped = self.skipped.saturating_add(records as u64);
        self.next += records;
    }

    /// Returns a record's index in the segment, and how many follow contiguously.
    fn place(&self, record: usize) -> (usize, usize) {
        let Some(ring) = self.ring else { return (record, usize::MAX) };
        let records = (ring.chunks * CHUNK_RECORDS) as usize;
        (record % records, records - record % records)
    }

    /// Returns the current end of a spilled log whose thread writes that chunk. Chunks already
    /// moved to disk are skipped.
    fn end_in(&mut self, ring: LogRing, log: &SegmentFile, chunk: u64) -> usize {
        let chunk = chunk.min(ring.max_chunks - 1);
        let first = |chunk: u64| chunk.saturating_mul(CHUNK_RECORDS) as usize;
        let oldest = first((chunk + 1).saturating_sub(ring.chunks));
        self.skip(oldest.saturating_sub(self.next));
        self.end(log, self.next.max(first(chunk)), first(chunk + 1))
    }

    /// Returns the current end of the log: the first zero key from `from` on.
    fn end(&self, log: &SegmentFile, from: usize, capacity: usize) -> usize {
        let is_there = |record: usize| {
            log.word(LOG_OFFSET + self.place(record).0 * RECORD_WORDS).is_some_and(|key| key != 0)
        };
        let (mut low, mut step) = (from, 64);
        // Exponential search first: most polls find few new records.
        while low < capacity && low.saturating_add(step) < capacity && is_there(low + step) {
            low += step;
            step = step.saturating_mul(2);
        }
        let mut high = low.saturating_add(step).min(capacity);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_there(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::source::tests::segment_of;
    use protocol::record::Point;
    use protocol::spill::ChunkSpiller;
    use protocol::stamps::StampLog;
    use protocol::status;
    use protocol::wire::OrderId;
    use shm::memory::Region;
    use shm::sync::Ordering;

    /// Creates a log of that many records, with space for as many again.
    fn log(records: u64) -> SegmentFile {
        let stamp =
            |sequence| Record { point: Point::Due, id: OrderId::new(1, 0, sequence), detail: 0, value: 7 };
        let mut words = vec![0; LOG_OFFSET];
        words.extend((0..records).flat_map(|sequence| stamp(sequence).words()));
        words.resize(LOG_OFFSET + 2 * records as usize * RECORD_WORDS + 1, 0);
        segment_of(&words)
    }

    fn read(follower: &mut LogTail, log: &SegmentFile) -> (Vec<u64>, bool) {
        let mut seen = Vec::new();
        let more = follower.poll(log, 0, |record| seen.push(record.id.sequence()));
        (seen, more)
    }

    #[test]
    fn every_record_comes_once_and_in_order() {
        for records in [0, 1, 63, 64, 65, 1_000, 4_097] {
            let log = log(records);
            let mut follower = LogTail::new(TailMode::Every(1_000), None);
            let mut all = Vec::new();
            loop {
                let (seen, more) = read(&mut follower, &log);
                all.extend(seen);
                if !more {
                    break;
                }
            }
            assert_eq!(all, (0..records).collect::<Vec<_>>());
            assert_eq!((follower.skipped, read(&mut follower, &log)), (0, (Vec::new(), false)));
        }
    }

    #[test]
    fn skipped_records_are_counted() {
        let (seen, more) = read(&mut LogTail::new(TailMode::Newest(10), None), &log(1_000));
        assert_eq!((seen, more), ((990..1_000).collect(), false));
        let mut slow = LogTail::new(TailMode::Every(10), None);
        assert_eq!(read(&mut slow, &log(1_000)), ((680..690).collect(), true));
        assert_eq!(slow.skipped, 680);
    }

    #[test]
    fn spilled_ring_is_followed_and_evicted_chunks_skipped() {
        let ring = LogRing { chunks: 2, max_chunks: 9, instruments: 0 };
        let words = Region::heap(ring.segment_words()).words();
        let spilled = Region::heap(ring.spilled_words()).words();
        let mut log = StampLog::in_ring(&words, &spilled.clone().into(), ring);
        let mut drain = ChunkSpiller::new(words.clone(), spilled, ring);
        let mut follower = LogTail::new(TailMode::Every(usize::MAX / 64), Some(ring));
        let mut all = Vec::new();
        let mut look = |all: &mut Vec<u64>| {
            let copy: Vec<u64> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            let chunk = status::read(&words.clone().into()).chunk();
            follower.poll(&segment_of(&copy), chunk, |record| all.push(record.id.sequence()));
            follower.skipped
        };
        let end = 7 * CHUNK_RECORDS + 100;
        let mut skipped = 0;
        for sequence in 0..end {
            log.append(Point::Due, OrderId::new(1, 0, sequence), 7);
            while drain.spill_next(|_, _| Ok(())).unwrap() {}
            // No poll between the middle of the third chunk and that of the sixth.
            let is_away = (5 * CHUNK_RECORDS / 2..11 * CHUNK_RECORDS / 2).contains(&sequence);
            if sequence % 1_000 == 0 && !is_away {
                skipped = look(&mut all);
            }
        }
        skipped = skipped.max(look(&mut all));
        assert_eq!((log.dropped(), all.len() as u64 + skipped), (0, end));
        assert!(skipped >= 2 * CHUNK_RECORDS && all.is_sorted(), "{skipped}");
    }
}

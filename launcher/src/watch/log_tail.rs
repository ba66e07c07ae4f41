//! Follows a growing stamp log: reads new records at each poll, up to a bound, and counts skipped
//! ones.

use super::source::SegmentFile;
use protocol::record::{RECORD_WORDS, Record};
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
    /// The next record to be read.
    next: usize,
    /// Number of records of the log that were skipped.
    pub skipped: u64,
}

impl LogTail {
    /// Starts reading at the beginning of a stamp log.
    pub const fn new(mode: TailMode) -> Self {
        Self { mode, next: 0, skipped: 0 }
    }

    /// Passes the log's new records to `each`, oldest first. Invalid records are skipped.
    pub fn poll(&mut self, log: &SegmentFile, mut each: impl FnMut(Record)) -> bool {
        let Ok(words) = log.len() else { return false };
        let end = end(log, self.next, words.saturating_sub(LOG_OFFSET) / RECORD_WORDS);
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
        let count = end.saturating_sub(self.next).min(most);
        let mut words = vec![0; count * RECORD_WORDS];
        if log.read(LOG_OFFSET + self.next * RECORD_WORDS, &mut words).is_err() {
            return false;
        }
        self.next += count;
        // A record that a scribbling process left is invalid.
        let records = words.chunks_exact(RECORD_WORDS);
        records.filter_map(|words| Record::from_words(words[0], words[1])).for_each(&mut each);
        self.next < end
    }

    fn skip(&mut self, records: usize) {
        self.skipped = self.skipped.saturating_add(records as u64);
        self.next += records;
    }
}

/// Returns the current end of the log: the first zero key from `from` on.
fn end(log: &SegmentFile, from: usize, capacity: usize) -> usize {
    let is_there = |record: usize| log.word(LOG_OFFSET + record * RECORD_WORDS).is_some_and(|key| key != 0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::source::tests::segment_of;
    use protocol::record::Point;
    use protocol::wire::OrderId;

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
        let more = follower.poll(log, |record| seen.push(record.id.sequence()));
        (seen, more)
    }

    #[test]
    fn every_record_comes_once_and_in_order() {
        for records in [0, 1, 63, 64, 65, 1_000, 4_097] {
            let log = log(records);
            let mut follower = LogTail::new(TailMode::Every(1_000));
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
        let (seen, more) = read(&mut LogTail::new(TailMode::Newest(10)), &log(1_000));
        assert_eq!((seen, more), ((990..1_000).collect(), false));
        let mut slow = LogTail::new(TailMode::Every(10));
        assert_eq!(read(&mut slow, &log(1_000)), ((680..690).collect(), true));
        assert_eq!(slow.skipped, 680);
    }
}

//! A log that grows, read behind its writer: what is new at each look, bounded; what was passed over is said.

use super::source::Segment;
use protocol::record::{RECORD_WORDS, Record};
use protocol::status::LOG_OFFSET;

/// How much of a log is read at each look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The newest records, so many at most: a sample.
    Newest(usize),
    /// Every record, so many at a look; what is further behind than a few looks is passed over.
    Every(usize),
}

/// So many looks' worth of records may wait to be read.
const LOOKS_BEHIND: usize = 32;

/// A place in a log.
#[derive(Clone, Debug)]
pub struct Follower {
    reading: Reading,
    /// The next record to be read.
    next: usize,
    /// Records that were passed over.
    pub skipped: u64,
}

impl Follower {
    /// At the beginning of a log.
    pub const fn new(reading: Reading) -> Self {
        Self { reading, next: 0, skipped: 0 }
    }

    /// Hands over what is new, oldest first; whether more is there that waits for the next look. What is no record is passed over.
    pub fn read(&mut self, log: &Segment, mut each: impl FnMut(Record)) -> bool {
        let Ok(words) = log.len() else { return false };
        let end = self.end(log, words.saturating_sub(LOG_OFFSET) / RECORD_WORDS);
        let new = end.saturating_sub(self.next);
        let most = match self.reading {
            Reading::Newest(most) => {
                self.skip(new.saturating_sub(most));
                most
            }
            Reading::Every(most) => {
                self.skip(new.saturating_sub(most.saturating_mul(LOOKS_BEHIND)));
                most
            }
        };
        let many = end.saturating_sub(self.next).min(most);
        let mut words = vec![0; many * RECORD_WORDS];
        if many == 0 || log.read(LOG_OFFSET + self.next * RECORD_WORDS, &mut words).is_err() {
            return false;
        }
        self.next += many;
        for words in words.chunks_exact(RECORD_WORDS) {
            // A record has a key; one that a scribbler left has no meaning, and none is made up.
            if let Some(record) = Record::from_words(words[0], words[1]) {
                each(record);
            }
        }
        self.next < end
    }

    fn skip(&mut self, records: usize) {
        self.skipped = self.skipped.saturating_add(records as u64);
        self.next += records;
    }

    /// Where the log ends now: the first key that is zero, looked for from where we are.
    fn end(&self, log: &Segment, capacity: usize) -> usize {
        let is_there =
            |record: usize| log.word(LOG_OFFSET + record * RECORD_WORDS).is_some_and(|key| key != 0);
        let (mut low, mut step) = (self.next, 64);
        // In growing steps first: most looks find little that is new.
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
    use protocol::wire::OrderId;

    /// A log of that many records, with room for as many again.
    fn log(records: u64) -> Segment {
        let stamp =
            |sequence| Record { point: Point::Due, id: OrderId::new(1, 0, sequence), detail: 0, value: 7 };
        let mut words = vec![0; LOG_OFFSET];
        words.extend((0..records).flat_map(|sequence| stamp(sequence).words()));
        words.resize(LOG_OFFSET + 2 * records as usize * RECORD_WORDS + 1, 0);
        segment_of(&words)
    }

    fn read(follower: &mut Follower, log: &Segment) -> (Vec<u64>, bool) {
        let mut seen = Vec::new();
        let more = follower.read(log, |record| seen.push(record.id.sequence()));
        (seen, more)
    }

    #[test]
    fn every_record_comes_once_and_in_order() {
        for records in [0, 1, 63, 64, 65, 1_000, 4_097] {
            let log = log(records);
            let mut follower = Follower::new(Reading::Every(1_000));
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
    fn what_is_passed_over_is_said() {
        let (seen, more) = read(&mut Follower::new(Reading::Newest(10)), &log(1_000));
        assert_eq!((seen, more), ((990..1_000).collect(), false));
        let mut slow = Follower::new(Reading::Every(10));
        assert_eq!(read(&mut slow, &log(1_000)), ((680..690).collect(), true));
        assert_eq!(slow.skipped, 680);
    }
}

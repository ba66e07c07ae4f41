//! Loom models of spilled logs: their chunks, and the totals of the saved chunks. See
//! `.ci/loom.sh`.

use loom::thread;
use protocol::point_totals::PointTotals;
use protocol::spill::{ChunkSpiller, LogRing, SpillLocation, UnspilledTail};
use protocol::stamps::{Point, Record, StampLog};
use protocol::wire::OrderId;
use shm::memory::{AtomicWords, Region};
use std::io::Write;

fn heap(words: usize) -> AtomicWords {
    Region::heap(words).words()
}

/// A log in a ring of two chunks of one record each, and its spiller: records that are not counted
/// as dropped are in the file or in memory, complete, once and in order.
#[test]
fn chunks_are_saved_complete_and_freed_empty() {
    loom::model(|| {
        let ring = LogRing { chunks: 2, max_chunks: 4, instruments: 0 };
        let (segment, spilled) = (heap(ring.segment_words()), heap(ring.spilled_words()));
        let mut log = StampLog::in_ring(&segment, &spilled.clone().into(), ring);
        let mut spiller = ChunkSpiller::new(segment.clone(), spilled.clone(), ring);
        let writer = thread::spawn(move || {
            for n in 1..=4 {
                log.append(Point::Due, OrderId::new(1, 0, n), n * 10);
            }
            log.dropped()
        });
        let mut file = Vec::new();
        for _ in 0..2 {
            spiller.spill_next(|_, bytes| file.write_all(bytes)).unwrap();
        }
        let dropped = writer.join().unwrap();
        while spiller.spill_next(|_, bytes| file.write_all(bytes)).unwrap() {}
        let saved = UnspilledTail::new(&segment.clone().into(), &spilled.clone().into(), ring)
            .for_each_chunk(|bytes| file.write_all(bytes));
        saved.unwrap();
        let mut last = 0;
        for record in file.chunks_exact(16) {
            let [key, value] =
                [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| record[at + byte])));
            let record = Record::from_words(key, value).expect("a record, and no hole");
            assert!(record.value == record.id.sequence() * 10 && record.id.sequence() > last);
            last = record.id.sequence();
        }
        assert_eq!(file.len() as u64 / 16 + dropped, 4);
    });
}

/// Makes a log in a ring, the spiller's segment, and both ends, with `records` records, each in its
/// own chunk.
fn spilled(
    ring: LogRing,
    records: u64,
) -> (AtomicWords, AtomicWords, ChunkSpiller, impl FnMut(u64) + Send + 'static) {
    let (segment, spilled) = (heap(ring.segment_words()), heap(ring.spilled_words()));
    let mut log = StampLog::in_ring(&segment, &spilled.clone().into(), ring);
    let mut append = move |n| log.append(Point::StrategySend, OrderId::new(1, 0, n), n * 10);
    (1..=records).for_each(&mut append);
    let spiller = ChunkSpiller::new(segment.clone(), spilled.clone(), ring);
    (segment, spilled, spiller, append)
}

/// Scans that log like a hot standby, from its last position. Returns the number of records, which
/// must be a prefix of the log.
fn scan(
    ring: LogRing,
    segment: &AtomicWords,
    spilled: &AtomicWords,
    location: &mut SpillLocation,
    totals: &mut PointTotals,
) -> u64 {
    UnspilledTail::new(&segment.clone().into(), &spilled.clone().into(), ring).scan(location, totals);
    let count = totals.count(Point::StrategySend);
    assert_eq!(totals.last(Point::StrategySend).map_or(0, |id| id.sequence()), count);
    count
}

/// A reader that scans a log while its table of totals is rewritten still gets correct totals.
#[test]
fn totals_are_consistent_while_table_is_rewritten() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let ring = LogRing { chunks: 4, max_chunks: 5, instruments: 0 };
        let (segment, spilled_words, mut spiller, _) = spilled(ring, 4);
        assert!(spiller.spill_next(|_, _| Ok(())).unwrap());
        let thread = thread::spawn(move || {
            assert!(spiller.spill_next(|_, _| Ok(())).unwrap());
            assert!(spiller.spill_next(|_, _| Ok(())).unwrap());
        });
        let (mut location, mut totals) = (SpillLocation::default(), PointTotals::new(0));
        assert_eq!(scan(ring, &segment, &spilled_words, &mut location, &mut totals), 4);
        thread.join().unwrap();
        assert_eq!(scan(ring, &segment, &spilled_words, &mut location, &mut totals), 4);
    });
}

/// A reader that scans a log while its chunk is saved, zeroed and refilled still gets correct
/// totals.
#[test]
fn totals_are_consistent_while_chunk_is_freed() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let ring = LogRing { chunks: 2, max_chunks: 4, instruments: 0 };
        let (segment, spilled_words, mut spiller, mut append) = spilled(ring, 2);
        let thread = thread::spawn(move || {
            assert!(spiller.spill_next(|_, _| Ok(())).unwrap());
            append(3);
        });
        let (mut location, mut totals) = (SpillLocation::default(), PointTotals::new(0));
        assert!((2..=3).contains(&scan(ring, &segment, &spilled_words, &mut location, &mut totals)));
        thread.join().unwrap();
        assert_eq!(scan(ring, &segment, &spilled_words, &mut location, &mut totals), 3);
    });
}

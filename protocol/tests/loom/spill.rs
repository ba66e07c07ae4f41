//! Loom models of logs that are spilled: their chunks, and the sums of what has left. See
//! `.ci/loom.sh`.

use loom::thread;
use protocol::spill::{Drain, Ring, SpillLocation, UnspilledTail};
use protocol::stamps::{Point, Record, StampLog};
use protocol::sums::PointTotals;
use protocol::wire::OrderId;
use shm::memory::{AtomicWords, Region};
use std::io::Write;

fn heap(words: usize) -> AtomicWords {
    Region::heap(words).words()
}

/// A log in a ring of two chunks of a record each, and its spiller: what is not counted as dropped
/// is in the file or in memory, whole, once and in its order.
#[test]
fn chunks_are_handed_over_whole_and_given_back_empty() {
    loom::model(|| {
        let ring = Ring { chunks: 2, last: 4, instruments: 0 };
        let (segment, spilled) = (heap(ring.segment_words()), heap(ring.spilled_words()));
        let mut log = StampLog::in_ring(&segment, &spilled.clone().into(), ring);
        let mut drain = Drain::new(segment.clone(), spilled.clone(), ring);
        let writer = thread::spawn(move || {
            for n in 1..=4 {
                log.append(Point::Due, OrderId::new(1, 0, n), n * 10);
            }
            log.dropped()
        });
        let mut file = Vec::new();
        for _ in 0..2 {
            drain.step(|_, bytes| file.write_all(bytes)).unwrap();
        }
        let dropped = writer.join().unwrap();
        while drain.step(|_, bytes| file.write_all(bytes)).unwrap() {}
        let rest = UnspilledTail::new(&segment.clone().into(), &spilled.clone().into(), ring)
            .each(|bytes| file.write_all(bytes));
        rest.unwrap();
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

/// A log in a ring, what its spiller says of it, and both ends; so many records are there, each in
/// a chunk of its own.
fn spilled(ring: Ring, records: u64) -> (AtomicWords, AtomicWords, Drain, impl FnMut(u64) + Send + 'static) {
    let (segment, spilled) = (heap(ring.segment_words()), heap(ring.spilled_words()));
    let mut log = StampLog::in_ring(&segment, &spilled.clone().into(), ring);
    let mut append = move |n| log.append(Point::StrategySend, OrderId::new(1, 0, n), n * 10);
    (1..=records).for_each(&mut append);
    let drain = Drain::new(segment.clone(), spilled.clone(), ring);
    (segment, spilled, drain, append)
}

/// Looks at that log as a spare does, from where it looked last: how many records there are, which
/// must be those of a beginning of the log.
fn look(
    ring: Ring,
    segment: &AtomicWords,
    spilled: &AtomicWords,
    place: &mut SpillLocation,
    sums: &mut PointTotals,
) -> u64 {
    UnspilledTail::new(&segment.clone().into(), &spilled.clone().into(), ring).look(place, sums);
    let count = sums.count(Point::StrategySend);
    assert_eq!(sums.last(Point::StrategySend).map_or(0, |id| id.sequence()), count);
    count
}

/// Who counts a log while the table of sums that it reads is written anew counts all the same what
/// is there.
#[test]
fn sums_are_whole_while_their_table_is_written_anew() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let ring = Ring { chunks: 4, last: 5, instruments: 0 };
        let (segment, told, mut drain, _) = spilled(ring, 4);
        assert!(drain.step(|_, _| Ok(())).unwrap());
        let spiller = thread::spawn(move || {
            assert!(drain.step(|_, _| Ok(())).unwrap());
            assert!(drain.step(|_, _| Ok(())).unwrap());
        });
        let (mut place, mut sums) = (SpillLocation::default(), PointTotals::new(0));
        assert_eq!(look(ring, &segment, &told, &mut place, &mut sums), 4);
        spiller.join().unwrap();
        assert_eq!(look(ring, &segment, &told, &mut place, &mut sums), 4);
    });
}

/// The same while the chunk that it reads leaves, is zeroed and is filled again.
#[test]
fn sums_are_whole_while_a_chunk_leaves() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let ring = Ring { chunks: 2, last: 4, instruments: 0 };
        let (segment, told, mut drain, mut append) = spilled(ring, 2);
        let spiller = thread::spawn(move || {
            assert!(drain.step(|_, _| Ok(())).unwrap());
            append(3);
        });
        let (mut place, mut sums) = (SpillLocation::default(), PointTotals::new(0));
        assert!((2..=3).contains(&look(ring, &segment, &told, &mut place, &mut sums)));
        spiller.join().unwrap();
        assert_eq!(look(ring, &segment, &told, &mut place, &mut sums), 3);
    });
}

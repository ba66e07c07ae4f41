//! Tests that a spilled log equals the written one after deaths at any point, and that faulty
//! spillers are detected.

use crate::record::Point;
use crate::spill::*;
use crate::stamps::StampLog;
use crate::status::{self, LostRecords, SPILL_CHUNK, STATUS_WORDS, ThreadStatus};
use crate::wire::OrderId;
use proptest::prelude::*;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, Region};
use shm::sync::Ordering;
use std::io::{self, Write};
use std::thread;

const RING: LogRing = LogRing { chunks: 3, max_chunks: 12, instruments: 1 };
const CHUNK: u64 = CHUNK_RECORDS;

struct World {
    log: AtomicWords,
    spilled: AtomicWords,
    ring: LogRing,
}

impl World {
    fn new(ring: LogRing) -> Self {
        let (log, spilled) =
            (Region::heap(ring.segment_words()).words(), Region::heap(ring.spilled_words()).words());
        Self { log, spilled, ring }
    }

    fn writer(&self) -> StampLog {
        StampLog::in_ring(&self.log, &self.spilled.clone().into(), self.ring)
    }

    fn drain(&self) -> ChunkSpiller {
        ChunkSpiller::new(self.log.clone(), self.spilled.clone(), self.ring)
    }

    fn rest<T>(&self, of: impl FnOnce(&UnspilledTail<'_>) -> T) -> T {
        let (log, spilled): (ReadOnlyWords, ReadOnlyWords) =
            (self.log.clone().into(), self.spilled.clone().into());
        of(&UnspilledTail::new(&log, &spilled, self.ring))
    }

    /// The content of the file at the end.
    fn whole(&self, file: &[u8]) -> Vec<u8> {
        let saved = self.rest(|rest| rest.saved()) * CHUNK_BYTES;
        let mut whole = file[..file.len().min(saved as usize)].to_vec();
        whole.resize(saved as usize, 0);
        self.rest(|rest| rest.for_each_chunk(|bytes| whole.write_all(bytes))).unwrap();
        whole
    }

    fn lost(&self) -> LostRecords {
        let words = std::array::from_fn(|word| self.log[HEADER_WORDS + word].load(Ordering::Relaxed));
        let status: [u64; STATUS_WORDS] = words;
        ThreadStatus::from_words(status).lost()
    }
}

/// Every third record has another point.
const fn point_of(sequence: u64) -> Point {
    if sequence.is_multiple_of(3) { Point::StrategyRecv } else { Point::StrategySend }
}

fn append(log: &mut StampLog, sequences: core::ops::Range<u64>) {
    sequences.for_each(|sequence| log.append(point_of(sequence), OrderId::new(1, 0, sequence), sequence + 7));
}

/// Returns the first error of a file; `None` if it has the records of these sequences, each once
/// and in order.
fn verdict(file: &[u8], wanted: impl Iterator<Item = u64>) -> Option<String> {
    let mut records = file.as_chunks::<16>().0.iter();
    for sequence in wanted {
        let Some(record) = records.next() else { return Some(format!("ends before {sequence}")) };
        let [key, value] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| record[at + byte])));
        let key_wanted = crate::record::key_with(point_of(sequence), OrderId::new(1, 0, sequence), 0);
        if (key, value) != (key_wanted, sequence + 7) {
            return Some(format!("{key:x} {value} where {sequence} should be"));
        }
    }
    (records.count() > 0).then(|| "goes on behind its end".into())
}

/// Writes a chunk to its offset.
fn save(file: &mut Vec<u8>, chunk: u64, bytes: &[u8]) -> io::Result<()> {
    let at = (chunk * CHUNK_BYTES) as usize;
    file.resize(file.len().max(at + bytes.len()), 0);
    file[at..at + bytes.len()].copy_from_slice(bytes);
    Ok(())
}

#[test]
fn spilled_log_equals_written_log() {
    for end in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 7 * CHUNK + 5, 12 * CHUNK] {
        let world = World::new(RING);
        let (mut log, mut drain, mut file) = (world.writer(), world.drain(), Vec::new());
        for sequence in 0..end {
            append(&mut log, sequence..sequence + 1);
            if sequence % CHUNK == 17 {
                while drain.spill_next(|chunk, bytes| save(&mut file, chunk, bytes)).unwrap() {}
            }
        }
        assert_eq!((log.dropped(), verdict(&world.whole(&file), 0..end)), (0, None), "{end}");
        let counted = world.rest(|rest| [Point::StrategyRecv, Point::StrategySend].map(|p| rest.count(p)));
        assert_eq!(counted, [end.div_ceil(3), end - end.div_ceil(3)]);
    }
}

#[test]
fn writer_and_spiller_threads_agree_on_records() {
    let world = World::new(LogRing { chunks: 2, max_chunks: 200, instruments: 0 });
    let end = if cfg!(miri) { 1 } else { 40 } * CHUNK + 99;
    let mut file = Vec::new();
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut log = world.writer();
            let mut written = Vec::new();
            for sequence in 0..end {
                let before = log.dropped();
                append(&mut log, sequence..sequence + 1);
                if log.dropped() == before {
                    written.push(sequence)
                }
            }
            (written, log.dropped())
        });
        let mut drain = world.drain();
        while !writer.is_finished() {
            // Dies now and then, also in the middle of a chunk.
            let dies = drain.saved % 3 == 1;
            let step = drain.spill_next(|chunk, bytes| {
                save(&mut file, chunk, bytes)?;
                if dies { Err(io::Error::other("killed")) } else { Ok(()) }
            });
            if step.is_err() {
                drain = world.drain();
                let _ = drain.spill_next(|chunk, bytes| save(&mut file, chunk, bytes));
            }
        }
        writer.join().unwrap()
    });
    let (written, dropped) = written;
    assert_eq!(written.len() as u64 + dropped, end);
    assert_eq!(world.lost().records, dropped);
    assert_eq!(verdict(&world.whole(&file), written.into_iter()), None);
}

#[test]
fn writer_without_free_chunk_continues_and_records_loss() {
    let world = World::new(RING);
    let (mut log, mut file) = (world.writer(), Vec::new());
    append(&mut log, 0..3 * CHUNK + 50);
    assert_eq!(world.lost(), LostRecords { records: 50, from: 3 * CHUNK, to: 3 * CHUNK });
    let mut drain = world.drain();
    assert!(drain.spill_next(|chunk, bytes| save(&mut file, chunk, bytes)).unwrap());
    append(&mut log, 3 * CHUNK + 50..4 * CHUNK + 70);
    assert_eq!(world.lost(), LostRecords { records: 70, from: 3 * CHUNK, to: 4 * CHUNK });
    // The next incarnation keeps the count of lost records.
    drop(log);
    let mut log = world.writer();
    assert_eq!(log.dropped(), 70);
    while drain.spill_next(|chunk, bytes| save(&mut file, chunk, bytes)).unwrap() {}
    append(&mut log, 4 * CHUNK + 70..4 * CHUNK + 90);
    let written = (0..3 * CHUNK).chain(3 * CHUNK + 50..4 * CHUNK + 50).chain(4 * CHUNK + 70..4 * CHUNK + 90);
    assert_eq!(verdict(&world.whole(&file), written), None);
}

#[test]
fn spilled_log_stops_at_its_maximum_length() {
    let world = World::new(LogRing { chunks: 2, max_chunks: 3, instruments: 0 });
    let (mut log, mut drain, mut file) = (world.writer(), world.drain(), Vec::new());
    for chunk in 0..4 {
        append(&mut log, chunk * CHUNK..(chunk + 1) * CHUNK);
        while drain.spill_next(|chunk, bytes| save(&mut file, chunk, bytes)).unwrap() {}
    }
    assert_eq!((log.dropped(), verdict(&world.whole(&file), 0..3 * CHUNK)), (CHUNK, None));
}

#[test]
fn spiller_death_neither_loses_nor_duplicates_chunks() {
    for death in 0..3 {
        let world = World::new(RING);
        let (mut log, mut file) = (world.writer(), Vec::new());
        for chunk in 0..9 {
            append(&mut log, chunk * CHUNK..(chunk + 1) * CHUNK);
            // Each chunk has one spiller that dies while saving it, and a successor.
            let mut drain = world.drain();
            match death {
                // Half of the chunk is written.
                0 => drop(drain.spill_next(|chunk, bytes| {
                    save(&mut file, chunk, &bytes[..bytes.len() / 2])?;
                    Err(io::Error::other("killed"))
                })),
                // The chunk is saved and not freed.
                1 => drop(drain.save_next_chunk(|chunk, bytes| save(&mut file, chunk, bytes))),
                // The chunk is half zeroed.
                _ => {
                    if drain.save_next_chunk(|chunk, bytes| save(&mut file, chunk, bytes)).unwrap() {
                        let first = RING.chunk_offset(drain.freed);
                        world.log[first..first + CHUNK_WORDS / 2]
                            .iter()
                            .for_each(|w| w.store(0, Ordering::Relaxed));
                    }
                }
            }
            let counted = world.rest(|rest| rest.count(Point::StrategyRecv));
            assert_eq!(counted, ((chunk + 1) * CHUNK).div_ceil(3), "also while nobody spills");
            while world.drain().spill_next(|chunk, bytes| save(&mut file, chunk, bytes)).unwrap() {}
        }
        assert_eq!((log.dropped(), verdict(&world.whole(&file), 0..9 * CHUNK)), (0, None), "death {death}");
    }
}

/// Faulty spillers: each handles a chunk by its number, and returns the content of its file.
#[test]
fn broken_spillers_are_found() {
    type Broken = fn(&mut ChunkSpiller, &mut Vec<u8>) -> bool;
    let skips: Broken = |drain, file| {
        drain.spill_next(|chunk, bytes| if chunk == 2 { Ok(()) } else { save(file, chunk, bytes) }).unwrap()
    };
    let doubles: Broken = |drain, file| {
        // Appends without numbers: its successor appends the chunk again.
        let times = if drain.saved == 2 { 2 } else { 1 };
        drain.spill_next(|_, bytes| (0..times).try_for_each(|_| file.write_all(bytes))).unwrap()
    };
    let late: Broken = |drain, file| {
        // Frees the chunk before it is written.
        if drain.saved != 2 {
            return drain.spill_next(|chunk, bytes| save(file, chunk, bytes)).unwrap();
        }
        let moved = drain.spill_next(|_, _| Ok(())).unwrap();
        let first = drain.ring.chunk_offset(2);
        let words = drain.log[first..first + CHUNK_WORDS].iter();
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        save(file, 2, &bytes).unwrap();
        moved
    };
    let sound: Broken = |drain, file| drain.spill_next(|chunk, bytes| save(file, chunk, bytes)).unwrap();
    for (name, spiller, is_broken) in
        [("skips", skips, true), ("doubles", doubles, true), ("late", late, true), ("sound", sound, false)]
    {
        let world = World::new(RING);
        let (mut log, mut drain, mut file) = (world.writer(), world.drain(), Vec::new());
        for chunk in 0..8 {
            append(&mut log, chunk * CHUNK..(chunk + 1) * CHUNK);
            while spiller(&mut drain, &mut file) {}
        }
        let verdict = verdict(&world.whole(&file), 0..8 * CHUNK);
        assert_eq!(verdict.is_some(), is_broken, "{name}: {verdict:?}");
    }
}

#[test]
fn uncounted_gaps_of_earlier_incarnations_are_counted() {
    let world = World::new(RING);
    let gap = crate::gaps::Gap { ended: 1, ticks: 1, events: crate::gaps::KernelEvents(0) };
    let (mut log, mut drain, mut file) = (world.writer(), world.drain(), Vec::new());
    (0..5).for_each(|_| log.append_gap(gap));
    append(&mut log, 0..2 * CHUNK);
    assert!(drain.spill_next(|chunk, bytes| save(&mut file, chunk, bytes)).unwrap());
    // Reset like the status block of a strategy.
    world.log[status::GAPS].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    let mut log = world.writer();
    log.append_gap(gap);
    let view: ReadOnlyWords = world.log.clone().into();
    assert_eq!(view.load(status::GAPS.end - 1, Ordering::Relaxed), 7, "six, and one");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 24 }))]
    #[test]
    fn arbitrary_spill_state_stays_in_bounds(said: u64, chunks in 2u64..5, steps in 0usize..4) {
        let world = World::new(LogRing { chunks, max_chunks: 6, instruments: 0 });
        append(&mut world.writer(), 0..CHUNK + 5);
        status::spill(&world.log)[SPILL_CHUNK].store(said, Ordering::Relaxed);
        let (mut drain, mut file) = (world.drain(), Vec::new());
        for _ in 0..steps {
            prop_assert!(drain.spill_next(|chunk, bytes| save(&mut file, chunk, bytes)).is_ok());
        }
        prop_assert!(drain.saved <= 6 && file.len() as u64 <= 6 * CHUNK_BYTES);
        let mut log = world.writer();
        append(&mut log, 0..10);
        prop_assert!(world.whole(&file).len() as u64 <= 6 * CHUNK_BYTES);
        world.rest(|rest| rest.count(Point::StrategySend));
    }
}

//! Loom models of the start barrier and the stamp log. See `.ci/loom.sh`.

use loom::thread;
use protocol::control::{ControlWriter, PLAN, RunState};
use protocol::stamps::{Point, RECORD_WORDS, Record, StampLog, count_records};
use protocol::status::{self, LOG_OFFSET, StatusField, StatusWriter, ThreadState};
use protocol::wire::OrderId;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Region};
use shm::sync::{Ordering, spin_hint};

fn heap(words: usize) -> AtomicWords {
    Region::heap(words).words()
}

/// Waits for one child, as the launcher does.
fn await_ready(segment: &AtomicWords, n: u64) {
    loop {
        let seen = status::read(&segment.clone().into());
        if seen.state() == ThreadState::Ready {
            return assert_eq!(seen.get(StatusField::CorePlusOne), n, "set before Ready");
        }
        spin_hint();
    }
}

/// A child prepares, sets `Ready` and sleeps until `Go`; the launcher opens the barrier.
#[test]
fn passing_the_barrier_shows_earlier_stores() {
    let mut model = loom::model::Builder::new();
    // Every read of a status block is 64 loads.
    model.max_branches = 20_000;
    model.check(|| {
        let launching = ControlWriter::new(heap(PLAN + 1));
        let control = launching.control();
        let segment = heap(LOG_OFFSET);
        let (theirs, opened) = (segment.clone(), control.clone());
        let child = thread::spawn(move || {
            let status = StatusWriter::new(&theirs);
            status.set(StatusField::CorePlusOne, 1);
            status.set_state(ThreadState::Ready);
            assert_eq!(opened.wait_for_go(), RunState::Go);
            assert_eq!(opened.start_ticks(), 42, "stored before the state");
        });
        await_ready(&segment, 1);
        launching.go(42);
        child.join().unwrap();
    });
}

/// The launcher sees the preparation of two children, and each that sees `Go` that of the other.
#[test]
fn barrier_publishes_preparation_of_other_threads() {
    let mut model = loom::model::Builder::new();
    // Every read of a status block is 64 loads.
    model.max_branches = 20_000;
    model.check(|| {
        let launching = ControlWriter::new(heap(PLAN + 1));
        let control = launching.control();
        let segments = [heap(LOG_OFFSET), heap(LOG_OFFSET)];
        let child = |n: usize| {
            let (control, segments) = (control.clone(), segments.clone());
            thread::spawn(move || {
                let status = StatusWriter::new(&segments[n]);
                status.set(StatusField::CorePlusOne, n as u64 + 1);
                status.set_state(ThreadState::Ready);
                if control.state() == RunState::Go {
                    assert_eq!(control.start_ticks(), 42, "stored before the state");
                    let other = segments[1 - n][HEADER_WORDS + StatusField::CorePlusOne as usize]
                        .load(Ordering::Relaxed);
                    assert_eq!(other, 2 - n as u64, "seen by the launcher before it said Go");
                }
            })
        };
        let children = [child(0), child(1)];
        await_ready(&segments[0], 1);
        await_ready(&segments[1], 2);
        launching.go(42);
        children.into_iter().for_each(|child| child.join().unwrap());
    });
}

/// A reader of a live log that sees a key sees its value, for every record that it counts.
#[test]
fn visible_record_is_complete() {
    loom::model(|| {
        let segment = heap(LOG_OFFSET + 2 * RECORD_WORDS);
        let theirs = segment.clone();
        let writer = thread::spawn(move || {
            let mut log = StampLog::new(&theirs);
            for n in 1..=2 {
                log.append(Point::Due, OrderId::new(1, 0, n), n * 10);
            }
        });
        let records = &segment[LOG_OFFSET..];
        for n in 0..count_records(&segment.clone().into()) {
            let [key, value] = [0, 1].map(|i| records[n * RECORD_WORDS + i].load(Ordering::Relaxed));
            let expected = Record {
                point: Point::Due,
                id: OrderId::new(1, 0, n as u64 + 1),
                detail: 0,
                value: (n as u64 + 1) * 10,
            };
            assert_eq!(Record::from_words(key, value), Some(expected), "the key was there");
        }
        writer.join().unwrap();
        assert_eq!(count_records(&segment.clone().into()), 2);
    });
}

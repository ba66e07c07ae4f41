//! Loom models of what surrounds the rings: the doorbell, the start barrier, the stamp log. See `.ci/loom.sh`.

use core::time::Duration;
use loom::thread;
use protocol::control::{Launching, PLAN, RunState};
use protocol::stamps::{Point, RECORD_WORDS, Record, StampLog, count_records};
use protocol::status::{self, Field, LOG_OFFSET, StatusWriter, ThreadState};
use protocol::wire::OrderId;
use shm::bell::{BELL, Bell, Listener, RUNG, bell_words};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{Region, Words};
use shm::ring::spsc::{Consumer, Producer, ring_words, write_header};
use shm::sync::{Ordering, spin_hint};

fn heap(words: usize) -> Words {
    Region::heap(words).words()
}

/// The parked receiver of `idle::Park`: poll, arm, poll again, sleep. Loom's futex has no time-out, so a wake-up that
/// is lost hangs the model, which loom reports.
#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let words = heap(ring_words(2, 1));
        write_header::<1>(&words, 2);
        let mut producer = Producer::<1>::attach(&words).unwrap();
        let mut consumer = Consumer::<1>::attach(&words).unwrap();
        let (own, theirs) = (heap(bell_words(1)), heap(bell_words(1)));
        let mut listener = Listener::new(&own);
        listener.add_sender(&theirs.clone().into(), 0);
        let rings = Bell::new(&own.into(), &theirs, 0);
        let sender = thread::spawn(move || {
            producer.try_push(&[7]).unwrap();
            rings.ring();
        });
        loop {
            listener.arm();
            if let Some(message) = consumer.try_pop().unwrap() {
                assert_eq!(message, [7]);
                break;
            }
            listener.wait(Duration::MAX);
        }
        sender.join().unwrap();
    });
}

/// Two senders with words of their own, one listener: none of both wake-ups is lost.
#[test]
fn two_senders_wake_one_sleeper() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let own = heap(bell_words(1));
        let mut listener = Listener::new(&own);
        let flags = heap(2);
        let senders: Vec<_> = (0..2)
            .map(|i| {
                let theirs = heap(bell_words(1));
                listener.add_sender(&theirs.clone().into(), 0);
                let (bell, flags) = (Bell::new(&own.clone().into(), &theirs, 0), flags.clone());
                thread::spawn(move || {
                    flags[i].store(1, Ordering::Release);
                    bell.ring();
                })
            })
            .collect();
        loop {
            listener.arm();
            if (0..2).all(|i| flags[i].load(Ordering::Acquire) == 1) {
                break;
            }
            listener.wait(Duration::MAX);
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

/// One who writes anything into its own word wakes the listener for nothing, and takes nothing of another one's wake-up away.
#[test]
fn no_wake_up_is_lost_beside_one_who_rings_for_nothing() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let own = heap(bell_words(1));
        let mut listener = Listener::new(&own);
        let flag = heap(1);
        let words = [heap(bell_words(1)), heap(bell_words(1))];
        words.iter().for_each(|sender| listener.add_sender(&sender.clone().into(), 0));
        let [honest, hostile] = words;
        let (bell, sent) = (Bell::new(&own.clone().into(), &honest, 0), flag.clone());
        let honest = thread::spawn(move || {
            sent[0].store(1, Ordering::Release);
            bell.ring();
        });
        let hostile = thread::spawn(move || {
            for step in [0, 2] {
                let word = own[BELL].load(Ordering::Relaxed).wrapping_add(step);
                hostile[RUNG].store(word, Ordering::Relaxed);
            }
        });
        loop {
            listener.arm();
            if flag[0].load(Ordering::Acquire) == 1 {
                break;
            }
            listener.wait(Duration::MAX);
        }
        honest.join().unwrap();
        hostile.join().unwrap();
    });
}

/// The launcher's wait for one child.
fn await_ready(segment: &Words, n: u64) {
    loop {
        let seen = status::read(&segment.clone().into());
        if seen.state() == ThreadState::Ready {
            return assert_eq!(seen.get(Field::CorePlusOne), n, "set before Ready");
        }
        spin_hint();
    }
}

/// A child prepares, says `Ready` and sleeps until `Go`; the launcher waits for it and opens the barrier.
#[test]
fn who_passes_the_barrier_sees_what_came_before() {
    let mut model = loom::model::Builder::new();
    // Every look at a status block is 64 loads.
    model.max_branches = 20_000;
    model.check(|| {
        let launching = Launching::new(heap(PLAN + 1));
        let control = launching.control();
        let segment = heap(LOG_OFFSET);
        let (theirs, opened) = (segment.clone(), control.clone());
        let child = thread::spawn(move || {
            let status = StatusWriter::new(&theirs);
            status.set(Field::CorePlusOne, 1);
            status.set_state(ThreadState::Ready);
            assert_eq!(opened.wait_for_go(), RunState::Go);
            assert_eq!(opened.start_ticks(), 42, "stored before the state");
        });
        await_ready(&segment, 1);
        launching.go(42);
        child.join().unwrap();
    });
}

/// Two children: the launcher sees what both have prepared, and each that sees `Go` also sees what the other had
/// prepared, through the launcher. They look once; a third thread that waits would be too much for loom.
#[test]
fn the_barrier_passes_on_what_the_others_prepared() {
    let mut model = loom::model::Builder::new();
    // Every look at a status block is 64 loads.
    model.max_branches = 20_000;
    model.check(|| {
        let launching = Launching::new(heap(PLAN + 1));
        let control = launching.control();
        let segments = [heap(LOG_OFFSET), heap(LOG_OFFSET)];
        let child = |n: usize| {
            let (control, segments) = (control.clone(), segments.clone());
            thread::spawn(move || {
                let status = StatusWriter::new(&segments[n]);
                status.set(Field::CorePlusOne, n as u64 + 1);
                status.set_state(ThreadState::Ready);
                if control.state() == RunState::Go {
                    assert_eq!(control.start_ticks(), 42, "stored before the state");
                    let other =
                        segments[1 - n][HEADER_WORDS + Field::CorePlusOne as usize].load(Ordering::Relaxed);
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

/// A reader of a live log that finds a key finds its value, for every record that it counts.
#[test]
fn a_record_that_is_there_is_whole() {
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

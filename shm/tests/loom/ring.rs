//! Loom runs these in every order of steps, and with every value, that the orderings allow:
//! `.ci/loom.sh`. Small models (capacity 2, few messages, bounded waiting) reach every race of the
//! ring.

use core::ops::ControlFlow;
use loom::thread;
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc::{Consumer, HEAD_WORDS, Producer, SLOTS, ring_words, slot_words, write_header};
use shm::ring::{Full, Step};
use shm::sync::{Ordering, spin_hint};

const CAPACITY: usize = 2;

fn ring<const W: usize>() -> (Producer<W>, Consumer<W>) {
    let words: AtomicWords = Region::heap(ring_words(CAPACITY, W)).words();
    write_header::<W>(&words, CAPACITY);
    (Producer::attach(&words).unwrap(), Consumer::attach(&words).unwrap())
}

/// The value `n` in every word: a mixed message shows.
const fn message<const W: usize>(n: u64) -> [u64; W] {
    [n; W]
}

/// Pushes 1, 2, … `count`, waiting for room.
fn push_all<const W: usize>(producer: &mut Producer<W>, count: u64) {
    for n in 1..=count {
        while producer.try_push(&message(n)).is_err() {
            spin_hint();
        }
    }
}

/// Pops `count` messages and checks that they are 1, 2, … in order and whole.
fn pop_all<const W: usize>(consumer: &mut Consumer<W>, count: u64) {
    for n in 1..=count {
        let got = loop {
            match consumer.try_pop().expect("an honest peer") {
                Some(got) => break got,
                None => spin_hint(),
            }
        };
        assert_eq!(got, message(n), "in order, none lost, none torn");
    }
}

#[test]
fn messages_arrive_in_order_round_the_ring() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::<2>();
        let other = thread::spawn(move || push_all(&mut producer, 3));
        pop_all(&mut consumer, 3);
        other.join().unwrap();
        assert_eq!(consumer.try_pop(), Ok(None), "nothing twice");
    });
}

/// A batch concurrent with pops and drains: in order, whole, and as long as reported.
#[test]
fn batch_arrives_in_order() {
    for drains in [false, true] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let words: AtomicWords = Region::heap(ring_words(4, 2)).words();
            write_header::<2>(&words, 4);
            let mut producer = Producer::<2>::attach(&words).unwrap();
            let mut consumer = Consumer::<2>::attach(&words).unwrap();
            let other = thread::spawn(move || {
                push_all(&mut producer, 1);
                let batch: Vec<[u64; 2]> = (2..=6).map(message).collect();
                producer.try_push_many(&batch)
            });
            let mut got = Vec::new();
            for _ in 0..2 {
                if drains {
                    let before = got.len();
                    let drained = consumer.drain(4, |message| got.push(message)).expect("an honest peer");
                    assert_eq!(drained, got.len() - before);
                } else {
                    got.extend(consumer.try_pop().expect("an honest peer"));
                }
            }
            let pushed = other.join().unwrap() as u64;
            assert!((3..=4).contains(&pushed), "as many as there is room for");
            while consumer.drain(2, |message| got.push(message)).expect("an honest peer") > 0 {}
            assert_eq!(got, (1..=pushed + 1).map(message).collect::<Vec<_>>());
        });
    }
}

/// Batches round the ring: a group is not written over what a drain has not given back.
#[test]
fn batches_go_round_the_ring() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (mut producer, mut consumer) = ring::<1>();
        let other = thread::spawn(move || {
            let mut rest: &[[u64; 1]] = &[[1], [2], [3], [4]];
            while !rest.is_empty() {
                let pushed = producer.try_push_many(rest);
                rest = &rest[pushed..];
                if pushed == 0 {
                    spin_hint();
                }
            }
        });
        let mut got = Vec::new();
        while got.len() < 4 {
            if consumer.drain(4, |[n]| got.push(n)).expect("an honest peer") == 0 {
                spin_hint();
            }
        }
        assert_eq!(got, [1, 2, 3, 4]);
        other.join().unwrap();
    });
}

/// Successors of both ends continue while the other end goes on: each message comes, in order, and
/// no slot is written while it is read.
#[test]
fn successors_continue_a_ring_in_use() {
    for resumed in [Resumed::Consumer, Resumed::Producer, Resumed::Both] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let words: AtomicWords = Region::heap(ring_words(CAPACITY, 1)).words();
            write_header::<1>(&words, CAPACITY);
            let mut producer = Producer::<1>::attach(&words).unwrap();
            let mut consumer = Consumer::<1>::attach(&words).unwrap();
            push_all(&mut producer, 2);
            let theirs = words.clone();
            let other = thread::spawn(move || {
                if resumed != Resumed::Consumer {
                    producer = Producer::resume(&theirs).unwrap();
                }
                // There may be room for two, one or none.
                (3..=4).take_while(|&n| producer.try_push(&message(n)).is_ok()).count() as u64
            });
            pop_all(&mut consumer, 1);
            if resumed != Resumed::Producer {
                consumer = Consumer::resume(&words).unwrap();
            }
            let mut got = vec![1];
            let mut pop = |got: &mut Vec<u64>| match consumer.try_pop().expect("an honest peer") {
                Some([n]) => got.push(n),
                None => spin_hint(),
            };
            pop(&mut got);
            pop(&mut got);
            let pushed = other.join().unwrap();
            (0..3).for_each(|_| pop(&mut got));
            assert_eq!(got, (1..=2 + pushed).collect::<Vec<_>>());
        });
    }
}

/// A message that was taken and not released is taken again, by the consumer that moved back or by
/// its successor; the producer pushes concurrently and never writes over it.
#[test]
fn unreleased_message_is_taken_again() {
    for crashes in [false, true] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let words: AtomicWords = Region::heap(ring_words(CAPACITY, 1)).words();
            write_header::<1>(&words, CAPACITY);
            let mut producer = Producer::<1>::attach(&words).unwrap();
            let mut consumer = Consumer::<1>::attach(&words).unwrap();
            push_all(&mut producer, 1);
            let other = thread::spawn(move || {
                (2..=4).take_while(|&n| producer.try_push(&message(n)).is_ok()).count() as u64
            });
            let take = |consumer: &mut Consumer<1>| consumer.take().expect("an honest peer");
            assert_eq!(take(&mut consumer), Some([1]));
            if crashes {
                consumer = Consumer::resume(&words).unwrap();
            } else {
                consumer.rewind(1);
            }
            assert_eq!(take(&mut consumer), Some([1]), "it is taken again, whole");
            consumer.release();
            let mut got = vec![1];
            let mut take_next = |got: &mut Vec<u64>| {
                got.extend(take(&mut consumer).map(|[n]| n));
                consumer.release();
            };
            take_next(&mut got);
            let pushed = other.join().unwrap();
            (0..3).for_each(|_| take_next(&mut got));
            assert_eq!(got, (1..=1 + pushed).collect::<Vec<_>>());
        });
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Resumed {
    Consumer,
    Producer,
    Both,
}

/// The producer pushes some messages and dies at each step of the next push: what is published
/// comes out whole, the rest does not exist, and the ring is begun again for a successor over
/// memory that was reset.
#[test]
fn producer_crash_in_push_leaves_usable_ring() {
    for dies_after in 0..=2u64 {
        for step in [Step::Entered, Step::HalfWritten, Step::Written, Step::Published] {
            loom::model(move || {
                let words: AtomicWords = Region::heap(ring_words(CAPACITY, 2)).words();
                write_header::<2>(&words, CAPACITY);
                let mut producer = Producer::<2>::attach(&words).unwrap();
                let mut consumer = Consumer::<2>::attach(&words).unwrap();
                let other = thread::spawn(move || {
                    push_all(&mut producer, dies_after);
                    let mut reached = false;
                    let _ = producer.try_push_with(&message(dies_after + 1), &mut |at| {
                        reached |= at == step;
                        if at == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    });
                    reached && step == Step::Published
                });
                pop_all(&mut consumer, dies_after);
                let early = consumer.try_pop().expect("an honest peer");
                let published = other.join().unwrap();
                let popped = early.or(consumer.try_pop().expect("an honest peer"));
                assert_eq!(popped, published.then_some(message(dies_after + 1)));
                assert_eq!(consumer.try_pop(), Ok(None), "what was not published does not exist");
                consumer.renew();
                let slots = HEAD_WORDS + SLOTS;
                for word in &words[slots..slots + CAPACITY * slot_words(2)] {
                    word.store(0, Ordering::Relaxed);
                }
                let mut successor = Producer::<2>::attach(&words).unwrap();
                push_all(&mut successor, 2);
                assert_eq!(successor.try_push(&message(3)), Err(Full));
                pop_all(&mut consumer, 2);
            });
        }
    }
}

/// The consumer dies after some pops: the producer fills what is left of the ring, and then finds
/// it full; it never overwrites what was not read, and never waits.
#[test]
fn consumer_crash_leaves_producer_running_until_full() {
    for popped in 0..=2 {
        loom::model(move || {
            let words: AtomicWords = Region::heap(ring_words(CAPACITY, 1)).words();
            write_header::<1>(&words, CAPACITY);
            let mut producer = Producer::<1>::attach(&words).unwrap();
            let mut consumer = Consumer::<1>::attach(&words).unwrap();
            let other = thread::spawn(move || pop_all(&mut consumer, popped));
            let mut pushed = 0;
            for n in 1..=5 {
                // Tried twice, so that a pop in between is seen in some of the orders.
                if producer.try_push(&message(n)).is_ok() || producer.try_push(&message(n)).is_ok() {
                    pushed = n;
                } else {
                    break;
                }
            }
            assert!(
                pushed >= CAPACITY as u64 && pushed <= CAPACITY as u64 + popped,
                "{pushed}, {popped} read"
            );
            other.join().unwrap();
        });
    }
}

/// What a process that attaches sees: nothing, or the whole header.
#[test]
fn header_is_visible_once_magic_is_stored() {
    loom::model(|| {
        let words: AtomicWords = Region::heap(ring_words(CAPACITY, 1)).words();
        let theirs = words.clone();
        let other = thread::spawn(move || write_header::<1>(&theirs, CAPACITY));
        // Any refusal but for the missing magic would be a half-written header.
        if let Err(error) = Consumer::<1>::attach(&words) {
            assert_eq!(error, shm::memory::HeaderError::Magic(0));
        }
        other.join().unwrap();
        assert!(Consumer::<1>::attach(&words).is_ok());
    });
}

//! Loom runs these in every order of steps, and with every value, that the orderings allow: the
//! ring with a stamp per slot. Two producers, one consumer, capacity 2; waiting threads yield. The
//! channel over it is modelled in the crate `techniques`.
//!
//! Mutants: each Acquire and Release of a stamp made Relaxed dies.
//!
//! `.ci/loom.sh arrays::`

use loom::{model, thread};
use shm::memory::{AtomicWords, Region};
use shm::ring::array_queue::{Consumer, Producer, SLOTS as SLOTS_AT, TAIL, ring_words, write_header};
use shm::ring::{SharedQueue, intent};
use shm::sync::{Ordering, spin_hint};

const CAPACITY: usize = 2;

#[derive(Clone)]
struct Memory {
    ring: AtomicWords,
    intents: Vec<AtomicWords>,
}

impl Memory {
    fn producer<const W: usize>(&self, index: usize) -> Producer<W> {
        Producer::attach(&self.ring, &self.intents[index]).unwrap()
    }

    fn consumer<const W: usize>(&self) -> Consumer<W> {
        Consumer::attach(&self.ring, self.intents.clone()).unwrap()
    }
}

fn memory<const W: usize>() -> Memory {
    let ring = Region::heap(ring_words(CAPACITY, W)).words();
    write_header::<W>(&ring, CAPACITY);
    Memory { ring, intents: intent::on_heap(2) }
}

/// Pushes the numbers from `first` on, `count` times, waiting for space; the number in every word.
fn push_all<const W: usize>(memory: &Memory, first: u64, count: u64) {
    let mut producer = memory.producer::<W>(0);
    for n in first..first + count {
        while producer.try_push(&[n; W]).is_err() {
            spin_hint();
        }
    }
}

/// Pops `count` messages, waiting for them; each must be whole. Returns their numbers.
fn pop_all<const W: usize>(consumer: &mut Consumer<W>, count: usize) -> Vec<u64> {
    let mut got: Vec<u64> = Vec::new();
    while got.len() < count {
        match consumer.try_pop().expect("honest peers") {
            None => spin_hint(),
            Some(message) => {
                let n = message[0];
                assert_eq!(message, [n; W], "torn");
                got.push(n);
            }
        }
    }
    got
}

/// No waiting here: a thread that yields is shown everything that it has ever seen the beginning
/// of, and that hides what a missing Acquire or Release lets it see.
#[test]
fn two_producers_lose_duplicate_and_tear_nothing() {
    model(|| {
        let memory = memory::<2>();
        let mut consumer = memory.consumer::<2>();
        let producers = [0, 1].map(|index| {
            let mut producer = memory.producer::<2>(index);
            thread::spawn(move || producer.try_push(&[10 * (index as u64 + 1); 2]).unwrap())
        });
        let mut got: Vec<[u64; 2]> = std::iter::from_fn(|| consumer.try_pop().unwrap()).collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        got.extend(std::iter::from_fn(|| consumer.try_pop().unwrap()));
        got.sort_unstable();
        assert_eq!(got, [[10; 2], [20; 2]]);
    });
}

/// The ring begins its second lap, and is full for a while: a producer that finds it full gives up.
/// (Waiting would be too much for loom: it also tries the schedule in which two waiting threads
/// only yield to each other.)
#[test]
fn each_producers_messages_arrive_in_order_round_the_ring() {
    model(|| {
        let memory = memory::<1>();
        let mut consumer = memory.consumer::<1>();
        push_all::<1>(&memory, 10, 1);
        let mut got = pop_all(&mut consumer, 1);
        let producer = |index: usize, first: u64, count: u64| {
            let mut producer = memory.producer::<1>(index);
            thread::spawn(move || {
                (first..first + count).take_while(|n| producer.try_push(&[*n]).is_ok()).count()
            })
        };
        let producers = [producer(0, 11, 2), producer(1, 20, 1)];
        got.extend(consumer.try_pop().unwrap().map(|[n]| n));
        let pushed: usize = producers.into_iter().map(|producer| producer.join().unwrap()).sum();
        got.extend(std::iter::from_fn(|| consumer.try_pop().unwrap()).map(|[n]| n));
        assert_eq!(got.len(), pushed + 1, "{got:?}");
        let of_the_first: Vec<u64> = got.iter().copied().filter(|n| *n < 20).collect();
        assert!([10, 11, 12].starts_with(&of_the_first), "{got:?}");
        assert!(pushed >= CAPACITY, "full only when it is");
    });
}

/// A slot is reused while it is read: the next lap's producer never writes into the message that is
/// being copied.
#[test]
fn slot_is_not_reused_before_it_is_read() {
    model(|| {
        let memory = memory::<2>();
        push_all::<2>(&memory, 10, 2);
        let mut consumer = memory.consumer::<2>();
        let producer = thread::spawn(move || {
            let mut producer = memory.producer::<2>(1);
            // Not waiting: both outcomes are fine.
            producer.try_push(&[12; 2])
        });
        assert_eq!(pop_all(&mut consumer, 2), [10, 11]);
        let pushed = producer.join().unwrap();
        assert_eq!(consumer.try_pop(), Ok(pushed.ok().map(|()| [12; 2])));
    });
}

/// A corrupt stamp is repaired, on an unclaimed slot and on a claimed one: in both cases no message
/// is overwritten while it is being copied.
#[test]
fn repaired_slot_is_not_reused_before_read() {
    for claimed in [0, CAPACITY as u64] {
        model(move || {
            let memory = memory::<1>();
            push_all::<1>(&memory, 10, 2);
            let mut consumer = memory.consumer::<1>();
            memory.ring[TAIL].store(2 + claimed, Ordering::Relaxed);
            let mut producer = memory.producer::<1>(1);
            let producer = thread::spawn(move || {
                // Not waiting: both outcomes are fine.
                let _ = producer.try_push(&[12]);
            });
            assert_eq!(pop_all(&mut consumer, 2), [10, 11]);
            memory.ring[SLOTS_AT].store(99, Ordering::Relaxed);
            let _ = consumer.try_pop();
            producer.join().unwrap();
        });
    }
}

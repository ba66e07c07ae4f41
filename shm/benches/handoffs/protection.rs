//! What the announcement costs by which a death in the middle of a push can be repaired: `array-queue` with it beside itself
//! without it.
//!
//! A B A B …, and a ratio is that of two neighbouring samples. For instructions instead of time: run this section under
//! `valgrind --tool=callgrind` and read off the inclusive costs of `with_it` and `without_it`, which do the same work.

use crate::Options;
use crate::report::{Goal, Report, Row};
use shm::clock::{Clock, Monotonic};
use shm::floor::wait;
use shm::memory::{Region, Words};
use shm::os::pin;
use shm::ring::array_queue::{self, Consumer, Producer};
use shm::ring::intent;
use shm::wire::{MESSAGE_WORDS, Message};
use std::hint::black_box;

/// Both ends of a ring of its own, in memory that is mapped as that of a run.
struct Ring<const PROTECTED: bool> {
    producer: Producer<MESSAGE_WORDS, PROTECTED>,
    consumer: Consumer,
}

impl<const PROTECTED: bool> Ring<PROTECTED> {
    fn new(capacity: usize) -> Self {
        let mapped =
            |words| -> Words { Region::memfd("protection", words).expect("room for a ring").words() };
        let ring = mapped(array_queue::ring_words(capacity, MESSAGE_WORDS));
        array_queue::write_header::<MESSAGE_WORDS>(&ring, capacity);
        let intent = mapped(intent::INTENT_WORDS);
        intent::write_header(&intent, 0);
        Self {
            producer: Producer::attach(&ring, &intent).expect("a fresh ring has good headers"),
            consumer: Consumer::attach(&ring, vec![intent]).expect("a fresh ring has good headers"),
        }
    }

    /// Pushes and takes that many messages on this thread.
    #[inline(always)]
    fn one_thread(&mut self, count: u64) {
        for n in 0..count {
            let message: Message = black_box([n; MESSAGE_WORDS]);
            assert!(self.producer.try_push(&message).is_ok(), "room for one");
            assert!(black_box(self.consumer.try_pop()) == Ok(Some(message)), "lost or torn");
        }
    }

    /// The same with the producer on another core; nanoseconds a message from the first to the last.
    fn two_threads(&mut self, core: u32, count: u64) -> f64 {
        let Self { producer, consumer } = self;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                pin::pin_to(core).expect("an allowed core");
                for n in 0..count {
                    let message = black_box([n; MESSAGE_WORDS]);
                    wait::<true>(|| producer.try_push(&message).is_ok());
                }
            });
            let mut start = 0;
            for n in 0..count {
                let mut got = None;
                wait::<true>(|| {
                    got = consumer.try_pop().expect("an honest peer");
                    got.is_some()
                });
                assert_eq!(got, Some([n; MESSAGE_WORDS]));
                if n == 0 {
                    start = Monotonic.now();
                }
            }
            (Monotonic.now() - start) as f64 / (count - 1) as f64
        })
    }
}

#[inline(never)]
fn with_it(ring: &mut Ring<true>, count: u64) {
    ring.one_thread(count);
}

#[inline(never)]
fn without_it(ring: &mut Ring<false>, count: u64) {
    ring.one_thread(count);
}

/// Nanoseconds a message.
fn time(count: u64, work: impl FnOnce()) -> f64 {
    let start = Monotonic.now();
    work();
    (Monotonic.now() - start) as f64 / count as f64
}

/// Measures both in turn.
pub fn run(options: &Options, report: &mut Report) {
    pin::pin_to(options.cores.0).expect("an allowed core");
    let (samples, count) = options.effort(301, 1_000, 50_000);
    let (mut ours, mut bare) = (Ring::<true>::new(options.capacity), Ring::<false>::new(options.capacity));
    let [mut one, mut one_bare, mut two, mut two_bare]: [Vec<f64>; 4] = Default::default();
    for _ in 0..samples {
        one.push(time(count, || with_it(&mut ours, count)));
        one_bare.push(time(count, || without_it(&mut bare, count)));
        two.push(ours.two_threads(options.cores.1, count));
        two_bare.push(bare.two_threads(options.cores.1, count));
    }
    let ratio = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let rows = vec![
        Row::new("one thread, unprotected", "ns", one_bare.clone(), Goal::None),
        Row::new("one thread, protected", "ns", one.clone(), Goal::None),
        Row::new("", "× unprotected", ratio(&one, &one_bare), Goal::AtMost(1.05)),
        Row::new("two threads, unprotected", "ns", two_bare.clone(), Goal::None),
        Row::new("two threads, protected", "ns", two.clone(), Goal::None),
        Row::new("", "× unprotected", ratio(&two, &two_bare), Goal::AtMost(1.05)),
    ];
    report.add("What it costs array-queue that a producer may die (push and pop of a 64-byte slot)", rows);
}

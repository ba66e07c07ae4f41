//! What the announcement costs by which a death in the middle of a push can be repaired: `array-queue` with it beside itself
//! without it.
//!
//! A B A B …, and a ratio is that of two neighbouring samples. For instructions instead of time: run this section under
//! `valgrind --tool=callgrind` and read off the inclusive costs of `with_it` and `without_it`, which do the same work.

use crate::Options;
use crate::report::{BenchReport, FigureRow, Goal};
use protocol::wire::MESSAGE_WORDS;
use shm::clock::{Clock, Monotonic};
use shm::floor::wait;
use shm::memory::{Region, Words};
use shm::os::pin;
use shm::ring::array_queue::{self, Consumer, Producer};
use shm::ring::{SharedQueue, intent};
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
            // Little beside the push and the pop: it would hide what one of them costs.
            assert!(self.producer.try_push(black_box(&[n; MESSAGE_WORDS])).is_ok(), "room for one");
            assert!(matches!(black_box(self.consumer.try_pop()), Ok(Some(_))), "lost");
        }
    }

    /// The same on two threads of their own cores; nanoseconds a message from the first to the last.
    fn two_threads(&mut self, cores: (u32, u32), count: u64) -> f64 {
        let Self { producer, consumer } = self;
        let receive = move || {
            pin::pin_to(cores.0).expect("an allowed core");
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
        };
        std::thread::scope(|scope| {
            let receives = scope.spawn(receive);
            scope.spawn(move || {
                pin::pin_to(cores.1).expect("an allowed core");
                for n in 0..count {
                    let message = black_box([n; MESSAGE_WORDS]);
                    wait::<true>(|| producer.try_push(&message).is_ok());
                }
            });
            receives.join().expect("everything arrives")
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

/// What is measured: both in turn, and the ratio of each pair.
fn compare(
    options: &Options,
    what: &str,
    goal: Goal,
    mut pair: impl FnMut(u64) -> [f64; 2],
) -> Vec<FigureRow> {
    let (samples, count) = options.effort(301, 1_000, 50_000);
    let pairs: Vec<[f64; 2]> = (0..samples).map(|_| pair(count)).collect();
    let of = |which: usize| pairs.iter().map(|pair| pair[which]).collect();
    vec![
        FigureRow::new(format!("{what}, unprotected"), "ns", of(1), Goal::None),
        FigureRow::new(format!("{what}, protected"), "ns", of(0), Goal::None),
        FigureRow::new("", "× unprotected", pairs.iter().map(|[a, b]| a / b).collect(), goal),
    ]
}

/// Both ends on one thread: nothing but the instructions.
pub fn run(options: &Options, report: &mut BenchReport) {
    pin::pin_to(options.cores.0).expect("an allowed core");
    let (mut ours, mut bare) = (Ring::<true>::new(options.capacity), Ring::<false>::new(options.capacity));
    let rows = compare(options, "one thread", Goal::AtMost(1.05), |count| {
        [time(count, || with_it(&mut ours, count)), time(count, || without_it(&mut bare, count))]
    });
    report.add("What it costs array-queue that a producer may die (push and pop of a message)", rows);
}

/// Each end on a core of its own. No goal: whether the two ends meet at every message or one runs ahead is decided anew in each
/// sample, and makes a difference that the announcement does not. Before this thread is pinned: those it starts are allowed no other core then.
pub fn run_threads(options: &Options, report: &mut BenchReport) {
    let (mut ours, mut bare) = (Ring::<true>::new(options.capacity), Ring::<false>::new(options.capacity));
    let cores = options.cores;
    let rows = compare(options, "two threads", Goal::None, |count| {
        [ours.two_threads(cores, count), bare.two_threads(cores, count)]
    });
    report.add("The same as a stream between two cores", rows);
}

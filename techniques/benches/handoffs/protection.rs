//! The cost of repairability after a death in a push or pop: `array-queue` and `linked` with and
//! without it. Both announce before they claim; `linked` also stores its consumer's cursor for a
//! successor.
//!
//! Alternated (A B A B …); a ratio is that of two adjacent samples. For instructions instead of
//! time: run this section for one technique (`--technique NAME`) under `valgrind --tool=callgrind`
//! and compare the inclusive costs of `with_it` and `without_it`, which do equal work.
//! `.ci/instructions.sh --protection` does that.

use crate::Options;
use crate::report::{BenchReport, FigureRow, Goal};
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::memory::{AtomicWords, Region};
use shm::ring::{Full, SharedQueue, array_queue, intent};
use std::hint::black_box;
use system::clock::{Clock, Monotonic};
use system::floor::wait;
use system::pin;
use techniques::{Technique, linked};

/// A sending end, with or without protection.
trait Push: Send {
    fn push(&mut self, message: &Message) -> Result<(), Full>;
}

impl<const PROTECTED: bool> Push for array_queue::Producer<MESSAGE_WORDS, PROTECTED> {
    #[inline(always)]
    fn push(&mut self, message: &Message) -> Result<(), Full> {
        self.try_push(message)
    }
}

impl<const PROTECTED: bool> Push for linked::Producer<MESSAGE_WORDS, { linked::BLOCK_SLOTS }, PROTECTED> {
    #[inline(always)]
    fn push(&mut self, message: &Message) -> Result<(), Full> {
        self.try_push(message)
    }
}

/// Both ends of a queue.
struct QueueEnds<P, C> {
    producer: P,
    consumer: C,
}

/// Makes memory that is mapped like that of a run.
fn mapped(words: usize) -> AtomicWords {
    Region::memfd("protection", words).expect("room for a queue").words()
}

fn announcement() -> AtomicWords {
    let intent = mapped(intent::INTENT_WORDS);
    intent::write_header(&intent, 0);
    intent
}

fn array<const PROTECTED: bool>(capacity: usize) -> QueueEnds<impl Push, impl SharedQueue> {
    let (ring, intent) = (mapped(array_queue::ring_words(capacity, MESSAGE_WORDS)), announcement());
    array_queue::write_header::<MESSAGE_WORDS>(&ring, capacity);
    QueueEnds {
        producer: array_queue::Producer::<MESSAGE_WORDS, PROTECTED>::attach(&ring, &intent)
            .expect("a fresh ring has good headers"),
        consumer: array_queue::Consumer::<MESSAGE_WORDS>::attach(&ring, vec![intent])
            .expect("a fresh ring has good headers"),
    }
}

fn list<const PROTECTED: bool>(capacity: usize) -> QueueEnds<impl Push, impl SharedQueue> {
    const SLOTS: usize = linked::BLOCK_SLOTS;
    let blocks = linked::reserved_blocks(capacity, 1);
    let (arena, intent) = (mapped(linked::arena_words(blocks, SLOTS, MESSAGE_WORDS)), announcement());
    linked::write_header::<MESSAGE_WORDS, SLOTS>(&arena, blocks);
    QueueEnds {
        producer: linked::Producer::<MESSAGE_WORDS, SLOTS, PROTECTED>::attach(&arena, &intent)
            .expect("a fresh list has good headers"),
        consumer: linked::Consumer::<MESSAGE_WORDS, SLOTS, PROTECTED>::attach(&arena, vec![intent])
            .expect("a fresh list has good headers"),
    }
}

impl<P: Push, C: SharedQueue> QueueEnds<P, C> {
    /// Pushes and takes `count` messages on this thread.
    #[inline(always)]
    fn one_thread(&mut self, count: u64) {
        for n in 0..count {
            // Minimal work besides push and pop, which would hide their cost.
            assert!(self.producer.push(black_box(&[n; MESSAGE_WORDS])).is_ok(), "room for one");
            assert!(black_box(self.consumer.pop(&mut None)).is_some(), "lost");
        }
    }

    /// Pushes and takes `count` messages on two threads, each on its own core. Returns the
    /// nanoseconds per message, from the first to the last.
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
                    wait::<true>(|| producer.push(&message).is_ok());
                }
            });
            receives.join().expect("everything arrives")
        })
    }
}

#[inline(never)]
fn with_it(ends: &mut QueueEnds<impl Push, impl SharedQueue>, count: u64) {
    ends.one_thread(count);
}

#[inline(never)]
fn without_it(ends: &mut QueueEnds<impl Push, impl SharedQueue>, count: u64) {
    ends.one_thread(count);
}

/// Returns the nanoseconds per message.
fn time(count: u64, work: impl FnOnce()) -> f64 {
    let start = Monotonic.now();
    work();
    (Monotonic.now() - start) as f64 / count as f64
}

/// Measures both, alternated, and the ratio of each pair.
fn compare(
    options: &Options,
    what: Technique,
    goal: Goal,
    mut pair: impl FnMut(u64) -> [f64; 2],
) -> Vec<FigureRow> {
    let (samples, count) = options.effort(301, 1_000, 50_000);
    let pairs: Vec<[f64; 2]> = (0..samples).map(|_| pair(count)).collect();
    let of = |which: usize| pairs.iter().map(|pair| pair[which]).collect();
    vec![
        FigureRow::new(format!("{}, unprotected", what.name()), "ns", of(1), Goal::None),
        FigureRow::new(format!("{}, protected", what.name()), "ns", of(0), Goal::None),
        FigureRow::new("", "× unprotected", pairs.iter().map(|[a, b]| a / b).collect(), goal),
    ]
}

/// Compares both on one thread: the cost of the instructions.
fn on_one_thread(
    options: &Options,
    what: Technique,
    mut ours: QueueEnds<impl Push, impl SharedQueue>,
    mut bare: QueueEnds<impl Push, impl SharedQueue>,
) -> Vec<FigureRow> {
    compare(options, what, Goal::AtMost(1.03), |count| {
        [time(count, || with_it(&mut ours, count)), time(count, || without_it(&mut bare, count))]
    })
}

/// Compares both with each end on its own core. No goal: in each sample the two ends either meet at
/// every message or one runs ahead, which has a larger effect than the announcement.
fn on_two_threads(
    options: &Options,
    what: Technique,
    mut ours: QueueEnds<impl Push, impl SharedQueue>,
    mut bare: QueueEnds<impl Push, impl SharedQueue>,
) -> Vec<FigureRow> {
    let cores = options.cores;
    compare(options, what, Goal::None, |count| {
        [ours.two_threads(cores, count), bare.two_threads(cores, count)]
    })
}

/// Returns the techniques with protection that were selected.
fn wanted(options: &Options) -> impl Iterator<Item = Technique> {
    let only = options.technique;
    ["array-queue", "linked"]
        .into_iter()
        .filter_map(Technique::from_name)
        .filter(move |technique| only.is_none_or(|only| only == *technique))
}

/// Measures on one thread.
pub fn run(options: &Options, report: &mut BenchReport) {
    pin::pin_to(options.cores.0).expect("an allowed core");
    let capacity = options.capacity;
    let rows = wanted(options).flat_map(|what| match what.name() {
        "linked" => on_one_thread(options, what, list::<true>(capacity), list::<false>(capacity)),
        _ => on_one_thread(options, what, array::<true>(capacity), array::<false>(capacity)),
    });
    report.add("What it costs that an end may die (push and pop of a message)", rows.collect());
}

/// Measures on two threads. Call it before this thread is pinned, because threads inherit its
/// affinity.
pub fn run_threads(options: &Options, report: &mut BenchReport) {
    let capacity = options.capacity;
    let rows = wanted(options).flat_map(|what| match what.name() {
        "linked" => on_two_threads(options, what, list::<true>(capacity), list::<false>(capacity)),
        _ => on_two_threads(options, what, array::<true>(capacity), array::<false>(capacity)),
    });
    report.add("The same as a stream between two cores", rows.collect());
}

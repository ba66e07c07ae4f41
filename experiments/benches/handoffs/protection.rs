//! The cost of repairability after a death in a push or pop: `array-queue` and `linked` with and
//! without it. Both announce before they claim; `linked` also stores its consumer's cursor for a
//! successor.
//!
//! Alternated (A B A B …); a ratio is that of two adjacent samples. For instructions instead of
//! time: run this section for one technique (`--technique NAME`) under `valgrind --tool=callgrind`
//! and compare the inclusive costs of `with_it` and `without_it`, which do equal work.
//! `.ci/instructions.sh --protection` does that.

use crate::Options;
use crate::report::{BenchReport, FigureRow, Goal, ns_each};
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::memory::{AtomicWords, Region};
use shm::ring::{Full, SharedQueue, array_queue, intent};
use std::hint::black_box;
use system::pin;
use techniques::{Technique, linked};

type Pushed = Result<(), Full>;

/// Makes memory that is mapped like that of a run.
fn mapped(words: usize) -> AtomicWords {
    Region::memfd("protection", words).expect("room for a queue").words()
}

fn announcement() -> AtomicWords {
    let intent = mapped(intent::INTENT_WORDS);
    intent::write_header(&intent, 0);
    intent
}

fn array<const PROTECTED: bool>(capacity: usize) -> (impl FnMut(&Message) -> Pushed, impl SharedQueue) {
    let (ring, intent) = (mapped(array_queue::ring_words(capacity, MESSAGE_WORDS)), announcement());
    array_queue::write_header::<MESSAGE_WORDS>(&ring, capacity);
    let producer = array_queue::Producer::<MESSAGE_WORDS, PROTECTED>::attach(&ring, &intent);
    let mut producer = producer.expect("a fresh ring has good headers");
    (
        #[inline(always)]
        move |message: &Message| producer.try_push(message),
        array_queue::Consumer::<MESSAGE_WORDS>::attach(&ring, vec![intent])
            .expect("a fresh ring has good headers"),
    )
}

fn list<const PROTECTED: bool>(capacity: usize) -> (impl FnMut(&Message) -> Pushed, impl SharedQueue) {
    const SLOTS: usize = linked::BLOCK_SLOTS;
    let blocks = linked::reserved_blocks(capacity, 1);
    let (arena, intent) = (mapped(linked::arena_words(blocks, SLOTS, MESSAGE_WORDS)), announcement());
    linked::write_header::<MESSAGE_WORDS, SLOTS>(&arena, blocks);
    let producer = linked::Producer::<MESSAGE_WORDS, SLOTS, PROTECTED>::attach(&arena, &intent);
    let mut producer = producer.expect("a fresh list has good headers");
    (
        #[inline(always)]
        move |message: &Message| producer.try_push(message),
        linked::Consumer::<MESSAGE_WORDS, SLOTS, PROTECTED>::attach(&arena, vec![intent])
            .expect("a fresh list has good headers"),
    )
}

#[inline(always)]
fn one_thread((push, consumer): &mut (impl FnMut(&Message) -> Pushed, impl SharedQueue), count: u64) {
    for n in 0..count {
        // Minimal work besides push and pop, which would hide their cost.
        assert!(push(black_box(&[n; MESSAGE_WORDS])).is_ok(), "room for one");
        assert!(black_box(consumer.pop(&mut None)).is_some(), "lost");
    }
}

#[inline(never)]
fn with_it(ends: &mut (impl FnMut(&Message) -> Pushed, impl SharedQueue), count: u64) {
    one_thread(ends, count);
}

#[inline(never)]
fn without_it(ends: &mut (impl FnMut(&Message) -> Pushed, impl SharedQueue), count: u64) {
    one_thread(ends, count);
}

/// Measures both, alternated, and the ratio of each pair: the cost of the instructions.
fn compare(
    options: &Options,
    what: Technique,
    mut ours: (impl FnMut(&Message) -> Pushed, impl SharedQueue),
    mut bare: (impl FnMut(&Message) -> Pushed, impl SharedQueue),
) -> Vec<FigureRow> {
    let (samples, count) = options.effort(301, 1_000, 50_000);
    let mut with_it = || ns_each(count, || with_it(&mut ours, count));
    let mut without_it = || ns_each(count, || without_it(&mut bare, count));
    let pairs: Vec<[f64; 2]> = (0..samples).map(|_| [with_it(), without_it()]).collect();
    let column = |which: usize| pairs.iter().map(|pair| pair[which]).collect();
    let ratios = pairs.iter().map(|[a, b]| a / b).collect();
    vec![
        FigureRow::new(format!("{}, unprotected", what.name()), "ns", column(1), Goal::None),
        FigureRow::new(format!("{}, protected", what.name()), "ns", column(0), Goal::None),
        FigureRow::new("", "× unprotected", ratios, Goal::AtMost(1.03)),
    ]
}

fn wanted(options: &Options) -> impl Iterator<Item = Technique> {
    let only = options.technique;
    ["array-queue", "linked"]
        .into_iter()
        .filter_map(Technique::from_name)
        .filter(move |technique| only.is_none_or(|only| only == *technique))
}

/// Adds to the report the cost of crash protection, in rings that can be repaired after a death.
pub fn run(options: &Options, report: &mut BenchReport) {
    pin::pin_to(options.cores.0).expect("an allowed core");
    let capacity = options.capacity;
    let rows = wanted(options).flat_map(|what| match what.name() {
        "linked" => compare(options, what, list::<true>(capacity), list::<false>(capacity)),
        _ => compare(options, what, array::<true>(capacity), array::<false>(capacity)),
    });
    report.add("What it costs that an end may die (push and pop of a message)", rows.collect());
}

//! The ring against a model queue, over heap memory and over a mapped segment, and against hostile
//! cursors.

use proptest::prelude::*;
use shm::memory::{AtomicWords, LINE_WORDS, Region};
use shm::ring::MESSAGE_WORDS;
use shm::ring::spsc::{self, HEAD, HEAD_WORDS, SLOTS, ring_words, slot_words};
use shm::ring::spsc_mux::Mux;
use shm::ring::{Consumer as _, Full, PeerFault};
use shm::sync::Ordering;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Pop,
    PushMany(usize),
    /// Pushes from an iterator that declares a wrong length, or panics at the end.
    PushMisdeclared(usize, usize, bool),
    Drain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Push),
        4 => Just(Step::Pop),
        1 => messages().prop_map(Step::PushMany),
        1 => (0usize..40, 0usize..40, any::<bool>()).prop_map(|(declared, actual, panics)| Step::PushMisdeclared(declared, actual, panics)),
        1 => messages().prop_map(Step::Drain),
    ]
}

/// Sizes of batches and drains; now and then laps of a large ring.
fn messages() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..40, 1 => 0usize..if cfg!(miri) { 80 } else { 2_000 }]
}

type Ring = (AtomicWords, spsc::Producer, spsc::Consumer);

fn ring(words: AtomicWords, capacity: usize) -> Ring {
    spsc::write_header::<MESSAGE_WORDS>(&words, capacity);
    let (producer, consumer) = (spsc::Producer::attach(&words), spsc::Consumer::attach(&words));
    (words, producer.unwrap(), consumer.unwrap())
}

fn heap_ring(capacity: usize) -> Ring {
    ring(Region::heap(ring_words(capacity, MESSAGE_WORDS)).words(), capacity)
}

/// The value `n` in every word, so that a torn message shows.
fn message(n: u64) -> [u64; MESSAGE_WORDS] {
    [n; MESSAGE_WORDS]
}

/// Returns the index of a position's sequence in a region that has both parts.
fn sequence_of(position: u64, capacity: u64) -> usize {
    HEAD_WORDS + SLOTS + (position % capacity) as usize * slot_words(MESSAGE_WORDS) + MESSAGE_WORDS
}

/// Messages whose number differs from the declared one, and which may end in a panic.
struct MisdeclaredIterator {
    next: u64,
    remaining: usize,
    declared: usize,
    panics: bool,
}

impl Iterator for MisdeclaredIterator {
    type Item = [u64; MESSAGE_WORDS];

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            // Without printing a message.
            return if self.panics { resume_unwind(Box::new(())) } else { None };
        }
        (self.remaining, self.next) = (self.remaining - 1, self.next + 1);
        Some(message(self.next - 1))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.declared, Some(self.declared))
    }
}

impl ExactSizeIterator for MisdeclaredIterator {}

/// Returns the number of messages published if the iterator panics: those in whole batches.
fn published_in_whole_batches(capacity: usize, actual: usize) -> usize {
    let max_batch = (capacity - 1).clamp(1, 16);
    actual / max_batch * max_batch
}

/// Applies the steps to a ring and to a `VecDeque`, and compares after each.
fn compare_with_model((_, mut producer, mut consumer): Ring, capacity: usize, steps: &[Step]) {
    let (mut queue, mut n) = (VecDeque::new(), 0);
    for step in steps {
        match step {
            Step::Push => {
                let full = queue.len() == capacity;
                assert_eq!(producer.try_push(&message(n)), if full { Err(Full) } else { Ok(()) });
                if !full {
                    queue.push_back(n);
                    n += 1;
                }
            }
            Step::Pop => assert_eq!(consumer.try_pop(), Ok(queue.pop_front().map(message))),
            Step::PushMany(count) => {
                let batch: Vec<_> = (n..n + *count as u64).map(message).collect();
                let pushed = producer.try_push_many(&batch);
                assert_eq!(pushed, (*count).min(capacity - queue.len()));
                queue.extend(n..n + pushed as u64);
                n += pushed as u64;
            }
            Step::PushMisdeclared(declared, actual, panics) => {
                let free = capacity - queue.len();
                let messages =
                    MisdeclaredIterator { next: n, remaining: *actual, declared: *declared, panics: *panics };
                let pushed = catch_unwind(AssertUnwindSafe(|| producer.try_push_iter(messages)));
                let panics = *panics && *actual < *declared && *actual < free;
                assert_eq!(pushed.is_err(), panics);
                let expected = if panics {
                    published_in_whole_batches(capacity, *actual)
                } else {
                    free.min(*declared).min(*actual)
                };
                assert!(pushed.is_err() || pushed.is_ok_and(|pushed| pushed == expected));
                queue.extend(n..n + expected as u64);
                n += expected as u64;
            }
            Step::Drain(max) => {
                // A quarter of the ring at a time, half of a small one.
                let max_drain = if capacity < 32 { capacity / 2 } else { capacity / 4 };
                let max = max_drain.max(1).min(*max);
                let expected: Vec<_> = queue.drain(..queue.len().min(max)).map(message).collect();
                let mut got = Vec::new();
                assert_eq!(consumer.drain(max, |message| got.push(message)), Ok(expected.len()));
                assert_eq!(got, expected);
            }
        }
    }
}

/// Under Miri drawing a step takes longer than applying it.
const MAX_STEPS: usize = if cfg!(miri) { 24 } else { 200 };
/// Maximum number of hostile writes, each with tens of messages around it.
const MAX_WRITES: usize = if cfg!(miri) { 6 } else { 60 };

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ring_behaves_like_a_bounded_queue(log2 in 0u32..if cfg!(miri) { 10 } else { 12 }, steps in prop::collection::vec(step(), 1..MAX_STEPS)) {
        let capacity = 1 << log2;
        compare_with_model(heap_ring(capacity), capacity, &steps);
        if !cfg!(miri) {
            // The same code over memory that another process could share.
            let memory = Region::memfd("ring-properties", ring_words(capacity, MESSAGE_WORDS)).unwrap();
            compare_with_model(ring(memory.words(), capacity), capacity, &steps);
        }
    }

    #[test]
    fn impossible_sequence_is_a_fault_and_reads_nothing(log2 in 0u32..9, taken in 0u64..600, sequence: u64, near in -600i64..600) {
        let capacity = 1u64 << log2;
        for sequence in [sequence, taken.saturating_add_signed(near)] {
            let (words, mut producer, mut consumer) = heap_ring(capacity as usize);
            for n in 0..taken {
                producer.try_push(&message(n)).unwrap();
                consumer.try_pop().unwrap();
            }
            let (expected, stale) = (taken + 1, (taken + 1).saturating_sub(capacity));
            let found = words[sequence_of(taken, capacity)].swap(sequence, Ordering::Release);
            prop_assert_eq!(found, stale);
            // Its successor, which has not polled before, returns equal values.
            for consumer in [&mut spsc::Consumer::<MESSAGE_WORDS>::resume(&words).unwrap(), &mut consumer] {
                prop_assert_eq!(consumer.looks_empty(), sequence == stale);
                match consumer.take() {
                    Ok(None) => prop_assert_eq!(sequence, stale),
                    Ok(Some(_)) => prop_assert_eq!(sequence, expected),
                    Err(fault) => {
                        prop_assert!(sequence != stale && sequence != expected);
                        prop_assert_eq!(fault, PeerFault::InvalidSequence { found: sequence, position: taken });
                    }
                }
            }
            prop_assert_eq!(words[HEAD].load(Ordering::Relaxed), taken, "nothing was freed");
        }
    }

    #[test]
    fn scribbled_ring_words_keep_both_ends_in_bounds(
        log2 in 1u32..9,
        acts in prop::collection::vec((any::<usize>(), any::<u64>(), 0u64..300), 1..MAX_WRITES),
    ) {
        let capacity = 1usize << log2;
        let (words, mut producer, mut consumer) = heap_ring(capacity);
        for (n, (index, value, near)) in acts.into_iter().enumerate() {
            (0..n % 40).for_each(|_| _ = producer.try_push(&message(7)));
            (0..n % 37).for_each(|_| _ = consumer.try_pop());
            let sequence = sequence_of(index as u64, capacity as u64);
            words[sequence].store(if n % 3 == 0 { value } else { near }, Ordering::Relaxed);
            words[HEAD].store(if n % 2 == 0 { near } else { value }, Ordering::Relaxed);
            prop_assert!(producer.try_push_many(&[message(8); 50]) <= 50);
            let drained = consumer.drain(capacity, |_| ());
            prop_assert!(drained.is_err() || drained.is_ok_and(|taken| taken <= capacity));
            match n % 5 {
                0 => consumer = spsc::Consumer::resume(&words).unwrap(),
                1 => producer = spsc::Producer::resume(&words).unwrap(),
                2 => consumer.skip_to(near),
                _ => _ = spsc::published::<MESSAGE_WORDS>(
                    &words.slice(HEAD_WORDS, words.len() - HEAD_WORDS).into(),
                    &words.slice(0, HEAD_WORDS).into(),
                ),
            }
        }
    }

    #[test]
    fn hostile_head_never_lets_producer_overrun(head: u64, pushed in 0u64..4) {
        let (words, mut producer, _) = heap_ring(4);
        (0..pushed).for_each(|n| producer.try_push(&message(n)).unwrap());
        words[HEAD].store(head, Ordering::Release);
        let accepted = (0..100).take_while(|n| producer.try_push(&message(*n)).is_ok()).count();
        prop_assert!(accepted <= 8, "at most the free slots, and one lap after an accepted head");
    }

    #[test]
    fn scribbled_headers_are_refused(word in 0usize..16, value: u64, len in 0usize..200) {
        let (words, ..) = heap_ring(8);
        let before = words[word].swap(value, Ordering::Relaxed);
        let attached = spsc::Consumer::<MESSAGE_WORDS>::attach(&words);
        // Capacity may shrink to another power of two that fits; every other checked word must be
        // as it was.
        if before != value && (word <= 4 || word == 6) {
            prop_assert!(attached.is_err());
        }
        let short = words.slice(0, len.min(words.len()));
        prop_assert!(spsc::Producer::<MESSAGE_WORDS>::attach(&short).is_err() || len >= words.len());
    }
}

#[test]
fn mux_detects_producer_that_goes_back() {
    let [(_, first, one), (words, second, two)] = [heap_ring(8), heap_ring(8)];
    let (mut mux, mut producers) = (Mux::new(vec![one, two]), [first, second]);
    for _ in 0..3 {
        for n in 0..6 {
            producers.iter_mut().for_each(|producer| producer.try_push(&message(n)).unwrap());
            while mux.try_pop().is_some() {}
        }
        (0..300).for_each(|_| assert_eq!(mux.try_pop(), None));
        assert_eq!(mux.take_fault(), None, "an idle correct producer");
    }
    // 18 messages were taken: the slot of the next one has had two.
    producers[1] = spsc::Producer::attach(&words).unwrap();
    (0..8).for_each(|n| producers[1].try_push(&message(n)).unwrap());
    assert_eq!(mux.try_pop(), None);
    let fault = PeerFault::InvalidSequence { position: 18, found: 3 };
    assert_eq!(mux.take_fault(), Some((Some(1), fault)), "at the first poll");
    producers[0].try_push(&message(7)).unwrap();
    assert_eq!((mux.try_pop(), mux.take_fault()), (Some((Some(0), message(7))), None), "others continue");
    assert_eq!(mux.try_pop(), None);
}

/// Messages shorter than a line: in a full ring the slot that is written next must not share a line
/// with the slot that is read next.
#[test]
fn full_ring_has_its_ends_in_separate_lines() {
    const CAPACITY: usize = 64;
    let words = Region::heap(ring_words(CAPACITY, 1)).words();
    spsc::write_header::<1>(&words, CAPACITY);
    let (mut producer, mut consumer) =
        (spsc::Producer::<1>::attach(&words).unwrap(), spsc::Consumer::<1>::attach(&words).unwrap());
    let all = |words: &AtomicWords| words.iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let slot = |index: usize| HEAD_WORDS + SLOTS + index * slot_words(1);
    let shares_line = |written: usize, read: usize| written / LINE_WORDS == read / LINE_WORDS;
    (0..CAPACITY as u64).for_each(|n| producer.try_push(&[n]).unwrap());
    assert_eq!(producer.try_push(&[0]), Err(Full));
    for position in CAPACITY..4 * CAPACITY {
        consumer.try_pop().unwrap().unwrap();
        let before = all(&words);
        producer.try_push(&[u64::MAX]).unwrap();
        let written = all(&words).iter().zip(&before).position(|(new, old)| new != old).unwrap();
        let read = slot((position + 1 - CAPACITY) % spsc::slot_count(CAPACITY, 1));
        assert!(!shares_line(written, read), "message {position}");
        // The broken variant, as many slots as messages, is detected except at the end of a line.
        let dense = |position: usize| slot(position % CAPACITY);
        let ends_line = (position + 1).is_multiple_of(LINE_WORDS / slot_words(1));
        assert_eq!(shares_line(dense(position), dense(position + 1 - CAPACITY)), !ends_line, "{position}");
    }
}

#[test]
fn two_threads_lose_nothing() {
    let count = if cfg!(miri) { 100 } else { 100_000 };
    let (mut producer, mut consumer) = spsc::heap_ring::<MESSAGE_WORDS>(4);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..count {
                while producer.try_push(&message(n)).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        for n in 0..count {
            let got = loop {
                match consumer.try_pop().unwrap() {
                    Some(got) => break got,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(got, message(n), "in order and whole");
        }
    });
}

//! Both ends of a ring, which die and are replaced, on words that may change between two calls.

use crate::common::Run;
use arbitrary::{Arbitrary, Unstructured};
use core::ops::ControlFlow;
use protocol::segments::{self, heap_segment};
use protocol::wire::MESSAGE_WORDS;
use shm::memory::AtomicWords;
use shm::memory::header::HEADER_WORDS;
use shm::ring::{Consumer, Link, Producer, SegmentSpec};
use shm::sync::Ordering::Relaxed;
use techniques::Technique;
use techniques::with_link;

const PRODUCERS: usize = 3;
const CAPACITY: u32 = 4;

#[derive(Arbitrary, Debug)]
enum Act {
    Push(u8),
    /// Pushes and pops, so that there is data to damage, and blocks are reused.
    Trade(u8),
    /// A push that is aborted at one of its steps; then a new producer is attached.
    Die {
        producer: u8,
        step: u8,
    },
    Pop,
    Retire(u8),
    Renew(u8),
    Check,
    /// The consumer dies and is replaced.
    Resume,
    Scribble {
        place: u16,
        value: Value,
    },
    /// Overwrites the first words of a segment's first cache lines, where its cursors are.
    ScribbleCursor {
        segment: u8,
        line: u8,
        value: Value,
    },
}

#[derive(Arbitrary, Debug)]
enum Value {
    Any(u64),
    Small(u8),
    /// Counted from the top.
    Large(u8),
    Beside(i8),
    Copy(u16),
    /// A link of `linked`.
    Link {
        number: u8,
        id: u8,
    },
}

/// Writes a word of the link's memory, except headers, which [`header`](super::header) covers.
fn scribble(memory: &[(SegmentSpec, AtomicWords)], place: usize, value: &Value) {
    let mut words = memory.iter().flat_map(|(_, words)| &words[HEADER_WORDS..]);
    let len = words.clone().count();
    let copied = |place: usize| words.clone().nth(place % len).map_or(0, |word| word.load(Relaxed));
    let current = copied(place);
    let value = match *value {
        Value::Any(value) => value,
        Value::Small(value) => value.into(),
        Value::Large(value) => u64::MAX - u64::from(value >> 4),
        Value::Beside(by) => current.wrapping_add_signed(by.into()),
        Value::Copy(other) => copied(other.into()),
        Value::Link { number, id } => u64::from(number) << 24 | u64::from(id) << 1 | 1,
    };
    if let Some(word) = words.nth(place % len) {
        word.store(value, Relaxed);
    }
}

/// Runs on a technique in memory whose consumer can be replaced, selected by the first byte. To run
/// a single technique: `BULKHEAD_ONLY=linked`.
pub fn rings(bytes: &[u8]) {
    let only = std::env::var("BULKHEAD_ONLY").unwrap_or_default();
    let is_wanted =
        |technique: &Technique| technique.info().consumer_resumable && technique.name().contains(&only);
    let techniques: Vec<_> = Technique::all().into_iter().filter(is_wanted).collect();
    let Some((first, bytes)) = bytes.split_first() else { return };
    let technique = techniques[usize::from(*first) % techniques.len()];
    with_link!(technique, T => ring::<T>(technique, bytes));
}

/// Runs random actions. Every call must return without a panic; refused pushes, faults and invalid
/// messages are allowed.
fn ring<T: Link>(technique: Technique, bytes: &[u8]) {
    let run = Run::new(technique, PRODUCERS as u16, CAPACITY);
    let link = run.link();
    let mut attached = segments::attach(run.plan(), None);
    let mut memory: Vec<(SegmentSpec, AtomicWords)> = Vec::new();
    for spec in T::segments(&link) {
        let region = heap_segment(run.plan(), &spec);
        attached.adopt(&spec.name, region.clone());
        memory.push((spec, region.words()));
    }
    let (mut consumer, mut producers) = run.attach::<T>(&mut attached);
    let mut bytes = Unstructured::new(bytes);
    while !bytes.is_empty() {
        let Ok(act) = Act::arbitrary(&mut bytes) else { break };
        let index = |producer: u8| usize::from(producer) % PRODUCERS;
        match act {
            Act::Push(producer) => _ = producers[index(producer)].try_push(&[7; MESSAGE_WORDS]),
            Act::Trade(messages) => {
                for n in 0..messages {
                    let _ = producers[index(n)].try_push(&[n.into(); MESSAGE_WORDS]);
                    let _ = consumer.try_pop();
                }
            }
            Act::Die { producer, step } => {
                let mut steps = 0;
                let mut at = |_| {
                    steps += 1;
                    if steps > step % 16 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let _ = producers[index(producer)].try_push_with(&[9; MESSAGE_WORDS], &mut at);
                producers[index(producer)] =
                    attached.producer::<T>(&link, index(producer)).expect("the headers are good");
            }
            Act::Pop => _ = consumer.try_pop(),
            // Also an index that does not exist.
            Act::Retire(producer) => _ = consumer.retire(usize::from(producer) % (PRODUCERS + 1)),
            Act::Renew(producer) => consumer.renew(usize::from(producer) % (PRODUCERS + 1)),
            Act::Check => _ = consumer.check(),
            Act::Resume => consumer = T::resume_consumer(&link, &mut attached).expect("the headers are good"),
            Act::Scribble { place, value } => scribble(&memory, place.into(), &value),
            Act::ScribbleCursor { segment, line, value } => {
                let segment = usize::from(segment) % memory.len();
                let before: usize =
                    memory[..segment].iter().map(|(_, words)| words.len() - HEADER_WORDS).sum();
                let place = usize::from(line % 8) * 16 + usize::from(line >> 7);
                scribble(&memory, before + place, &value);
            }
        }
        let _ = (consumer.take_fault(), consumer.allocation(), consumer.passed_over());
    }
}

//! Both ends of a ring over words that anybody may change between two calls, and that die and are
//! replaced.

use crate::common::Run;
use arbitrary::{Arbitrary, Unstructured};
use core::ops::ControlFlow;
use protocol::segments::{self, on_heap};
use protocol::wire::MESSAGE_WORDS;
use shm::memory::AtomicWords;
use shm::memory::header::HEADER_WORDS;
use shm::ring::{Consumer, Link, Producer, SegmentSpec};
use shm::sync::Ordering::Relaxed;
use techniques::Technique;
use techniques::with_link;

const PRODUCERS: usize = 3;
const CAPACITY: u32 = 4;

/// What is done next.
#[derive(Arbitrary, Debug)]
enum Act {
    Push(u8),
    /// So many pushes and pops, so that there is something to be damaged, and blocks come round.
    Trade(u8),
    /// A push that breaks off at one of its steps; then there is a new producer.
    Die {
        producer: u8,
        step: u8,
    },
    Pop,
    Retire(u8),
    Revive(u8),
    Check,
    /// The consumer dies and another one goes on.
    Resume,
    Scribble {
        place: u16,
        value: Value,
    },
    /// The same, at the first words of a segment's first lines: its cursors.
    ScribbleCursor {
        segment: u8,
        line: u8,
        value: Value,
    },
}

/// What a word becomes.
#[derive(Arbitrary, Debug)]
enum Value {
    Any(u64),
    Small(u8),
    /// Counted from the top.
    Large(u8),
    /// What is there and so much more, or less.
    Beside(i8),
    /// What another word is.
    Copy(u16),
    /// A link of `linked`.
    Link {
        number: u8,
        id: u8,
    },
}

/// Writes a word of the link's memory; headers are left out, their body is
/// [`header`](super::header).
fn scribble(memory: &[(SegmentSpec, AtomicWords)], place: usize, value: &Value) {
    let mut words = memory.iter().flat_map(|(_, words)| &words[HEADER_WORDS..]);
    let len = words.clone().count();
    let copied = |place: usize| words.clone().nth(place % len).map_or(0, |word| word.load(Relaxed));
    let there = copied(place);
    let value = match *value {
        Value::Any(value) => value,
        Value::Small(value) => value.into(),
        Value::Large(value) => u64::MAX - u64::from(value >> 4),
        Value::Beside(by) => there.wrapping_add_signed(by.into()),
        Value::Copy(other) => copied(other.into()),
        Value::Link { number, id } => u64::from(number) << 24 | u64::from(id) << 1 | 1,
    };
    if let Some(word) = words.nth(place % len) {
        word.store(value, Relaxed);
    }
}

/// Plays on a technique in memory whose consumer can be replaced; the first byte says on which.
/// `BULKHEAD_ONLY=linked` for who looks for something.
pub fn rings(bytes: &[u8]) {
    let only = std::env::var("BULKHEAD_ONLY").unwrap_or_default();
    let is_wanted = |technique: &Technique| technique.record().resumable && technique.name().contains(&only);
    let techniques: Vec<_> = Technique::all().into_iter().filter(is_wanted).collect();
    let Some((first, bytes)) = bytes.split_first() else { return };
    let technique = techniques[usize::from(*first) % techniques.len()];
    with_link!(technique, T => ring::<T>(technique, bytes));
}

/// Plays what the bytes say. Every call returns, and nothing panics; a refused push, a fault or
/// nonsense is all right.
fn ring<T: Link>(technique: Technique, bytes: &[u8]) {
    let run = Run::new(technique, PRODUCERS as u16, CAPACITY);
    let link = run.link();
    let mut attached = segments::attach(run.plan(), None);
    let mut memory: Vec<(SegmentSpec, AtomicWords)> = Vec::new();
    for spec in T::segments(&link) {
        let region = on_heap(run.plan(), &spec);
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
            // One more than there is, too.
            Act::Retire(producer) => _ = consumer.retire(usize::from(producer) % (PRODUCERS + 1)),
            Act::Revive(producer) => consumer.revive(usize::from(producer) % (PRODUCERS + 1)),
            Act::Check => _ = consumer.check(),
            Act::Resume => consumer = T::resume(&link, &mut attached).expect("the headers are good"),
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

//! Both ends of a ring over words that anybody may change between two calls, and that die and are replaced.

use crate::common::Run;
use arbitrary::{Arbitrary, Unstructured};
use core::ops::ControlFlow;
use protocol::segments::{self, on_heap};
use protocol::wire::MESSAGE_WORDS;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{Kind, Words};
use shm::ring::Technique;
use shm::ring::array_queue::{self, ArrayQueue};
use shm::ring::channel::{self, Channel};
use shm::ring::linked::{self, Linked};
use shm::ring::spsc_mux::{Mux, SpscMux};
use shm::ring::{Consumer, Link, Producer, SegmentSpec, spsc};
use shm::sync::Ordering::Relaxed;

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
    Bury(u8),
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

/// A technique in memory whose consumer can be replaced.
pub trait Resume: Link {
    const TECHNIQUE: Technique;
    fn resume(memory: &[(SegmentSpec, Words)]) -> Self::Consumer;
}

fn all(memory: &[(SegmentSpec, Words)], kind: Kind) -> impl Iterator<Item = &Words> {
    memory.iter().filter(move |(spec, _)| spec.kind == kind).map(|(_, words)| words)
}

fn one(memory: &[(SegmentSpec, Words)], kind: Kind) -> &Words {
    all(memory, kind).next().expect("a segment of that kind")
}

fn intents(memory: &[(SegmentSpec, Words)]) -> Vec<Words> {
    all(memory, shm::ring::intent::KIND).cloned().collect()
}

impl Resume for SpscMux {
    const TECHNIQUE: Technique = Technique::SpscMux;
    fn resume(memory: &[(SegmentSpec, Words)]) -> Mux {
        let parts = all(memory, shm::ring::spsc::KIND).zip(all(memory, shm::ring::spsc::HEAD_KIND));
        let resume =
            |(tail, head): (&Words, &Words)| spsc::Consumer::resume_parts(&tail.clone().into(), head);
        Mux::new(parts.map(|part| resume(part).expect("headers")).collect())
    }
}

impl Resume for ArrayQueue {
    const TECHNIQUE: Technique = Technique::ArrayQueue;
    fn resume(memory: &[(SegmentSpec, Words)]) -> array_queue::Receiver {
        array_queue::Receiver::resume(one(memory, shm::ring::array_queue::KIND), intents(memory))
            .expect("headers")
    }
}

impl Resume for Channel {
    const TECHNIQUE: Technique = Technique::Channel;
    fn resume(memory: &[(SegmentSpec, Words)]) -> channel::Receiver {
        let ring = one(memory, shm::ring::array_queue::KIND);
        channel::Receiver::resume(ring, intents(memory), one(memory, shm::bell::KIND)).expect("headers")
    }
}

impl Resume for Linked {
    const TECHNIQUE: Technique = Technique::Linked;
    fn resume(memory: &[(SegmentSpec, Words)]) -> linked::Receiver {
        linked::Receiver::resume(one(memory, shm::ring::linked::KIND), intents(memory)).expect("headers")
    }
}

/// Writes a word of the link's memory; headers are left out, their body is [`header`](super::header).
fn scribble(memory: &[(SegmentSpec, Words)], place: usize, value: &Value) {
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

/// Plays what the bytes say. Every call returns, and nothing panics; a refused push, a fault or nonsense is all right.
pub fn ring<T: Resume>(bytes: &[u8]) {
    let run = Run::new(T::TECHNIQUE, PRODUCERS as u16, CAPACITY);
    let link = run.link();
    let mut attached = segments::attach(run.plan(), None);
    let mut memory: Vec<(SegmentSpec, Words)> = Vec::new();
    for spec in T::segments(&link) {
        let region = on_heap(run.plan(), &spec);
        attached.adopt(&spec.what, region.clone());
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
            Act::Bury(producer) => _ = consumer.bury(usize::from(producer) % (PRODUCERS + 1)),
            Act::Revive(producer) => consumer.revive(usize::from(producer) % (PRODUCERS + 1)),
            Act::Check => _ = consumer.check(),
            Act::Resume => consumer = T::resume(&memory),
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

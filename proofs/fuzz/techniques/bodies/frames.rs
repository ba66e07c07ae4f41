//! The pipe's receiver with valid frames and garbage.

use crate::common::Run;
use arbitrary::{Arbitrary, Unstructured};
use protocol::segments;
use shm::ring::{Consumer, MESSAGE_WORDS, PeerFault, Producer};
use std::collections::VecDeque;
use std::io::Write;
use techniques::Technique;
use techniques::named::fifo;
use techniques::pipe::{FRAME_BYTES, Pipe, frame};
use zerocopy::IntoBytes;

#[derive(Arbitrary, Debug)]
enum Action {
    Push([u64; MESSAGE_WORDS]),
    Garbage(Vec<u8>),
    /// Writes a part of a frame with one changed byte.
    FramePart {
        message: [u64; MESSAGE_WORDS],
        from: u8,
        bytes: u8,
        changed: u8,
    },
    Pop,
}

/// Runs random actions: every pushed message arrives in order, nothing else does, and every other
/// byte is counted.
pub fn frames(bytes: &[u8]) {
    let run = Run::new(Technique::from_link::<Pipe>(), 1, 4);
    let name = run.create::<Pipe>().segment_name("submit");
    let (mut consumer, mut producers) = run.attach::<Pipe>(&mut segments::attach(run.plan(), None));
    let mut hostile = fifo::open_writer(&name).expect("the pipe exists");
    let (mut expected, mut written, mut stray) = (VecDeque::new(), 0, 0);
    let mut bytes = Unstructured::new(bytes);
    let mut pop = |expected: &mut VecDeque<_>| {
        let popped = consumer.try_pop();
        if let Some((from, message)) = popped {
            assert_eq!((from, Some(message)), (None, expected.pop_front()), "messages arrive in order");
        }
        match consumer.take_fault() {
            None => {}
            Some((None, PeerFault::Framing { bytes })) => stray += bytes,
            other => panic!("{other:?}"),
        }
        popped.is_some()
    };
    while let Ok(act) = Action::arbitrary(&mut bytes) {
        match act {
            Action::Push(message) => {
                if producers[0].try_push(&message).is_ok() {
                    expected.push_back(message);
                }
            }
            Action::Garbage(garbage) => written += hostile.write(&garbage).unwrap_or(0),
            Action::FramePart { message, from, bytes, changed } => {
                let mut frame = frame(&message);
                let frame = frame.as_mut_bytes();
                frame[usize::from(changed) % FRAME_BYTES] ^= 1;
                let part = &frame[usize::from(from) % FRAME_BYTES..];
                written += hostile.write(&part[..usize::from(bytes).min(part.len())]).unwrap_or(0);
            }
            Action::Pop => _ = pop(&mut expected),
        }
        if bytes.is_empty() {
            break;
        }
    }
    // A poll skips a bounded number of bytes.
    for _ in 0..1_000 {
        while pop(&mut expected) {}
    }
    assert_eq!((expected.len(), stray), (0, written), "no message is lost, and every stray byte is counted");
}

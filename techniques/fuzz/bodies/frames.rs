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
enum Act {
    Push([u64; MESSAGE_WORDS]),
    Garbage(Vec<u8>),
    /// Writes a part of a frame with one changed byte.
    Piece {
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
    let mut hostile = fifo::open_writer(&name).expect("the pipe is there");
    let (mut due, mut written, mut stray) = (VecDeque::new(), 0, 0);
    let mut bytes = Unstructured::new(bytes);
    let mut pop = |due: &mut VecDeque<_>| {
        let popped = consumer.try_pop();
        if let Some((from, message)) = popped {
            assert_eq!((from, Some(message)), (None, due.pop_front()), "what was pushed comes next");
        }
        match consumer.take_fault() {
            None => {}
            Some((None, PeerFault::Framing { bytes })) => stray += bytes,
            other => panic!("{other:?}"),
        }
        popped.is_some()
    };
    while let Ok(act) = Act::arbitrary(&mut bytes) {
        match act {
            Act::Push(message) => {
                if producers[0].try_push(&message).is_ok() {
                    due.push_back(message);
                }
            }
            Act::Garbage(garbage) => written += hostile.write(&garbage).unwrap_or(0),
            Act::Piece { message, from, bytes, changed } => {
                let mut frame = frame(&message);
                let frame = frame.as_mut_bytes();
                frame[usize::from(changed) % FRAME_BYTES] ^= 1;
                let piece = &frame[usize::from(from) % FRAME_BYTES..];
                written += hostile.write(&piece[..usize::from(bytes).min(piece.len())]).unwrap_or(0);
            }
            Act::Pop => _ = pop(&mut due),
        }
        if bytes.is_empty() {
            break;
        }
    }
    // A poll skips a bounded number of bytes.
    for _ in 0..1_000 {
        while pop(&mut due) {}
    }
    assert_eq!(
        (due.len(), stray),
        (0, written),
        "nothing of the messages is lost, nothing of the rest unseen"
    );
}

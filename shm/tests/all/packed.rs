//! The packed ring against a model queue, with crashes of both ends between any two steps.

use proptest::prelude::*;
use shm::ring::packed::{HeapRing, PackedReceiver, PackedSender};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    PushMany(usize),
    Pop,
    PopMany(usize),
    /// Takes messages and moves back to before them.
    TakeBack(usize),
    /// Takes messages and releases them together.
    TakeAndRelease(usize),
    /// The sender crashes after it has written that many of a batch's messages, of which none is
    /// published.
    SenderCrash(usize),
    /// The receiver crashes with that many messages that it has taken and not released.
    ReceiverCrash(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let few = || 0_usize..40;
    prop_oneof![
        3 => Just(Step::Push),
        2 => few().prop_map(Step::PushMany),
        3 => Just(Step::Pop),
        2 => few().prop_map(Step::PopMany),
        1 => few().prop_map(Step::TakeBack),
        1 => few().prop_map(Step::TakeAndRelease),
        1 => (0_usize..5).prop_map(Step::SenderCrash),
        1 => few().prop_map(Step::ReceiverCrash),
    ]
}

/// Returns the bytes of a message, all of which depend on its number.
fn message(n: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|byte| (n * 7 + byte) as u8).collect()
}

/// Attaches the successor of a sender; the broken variant starts from an empty ring.
type AttachSuccessor = fn(&HeapRing) -> PackedSender;

fn continue_ring(ring: &HeapRing) -> PackedSender {
    ring.sender()
}

fn start_again(ring: &HeapRing) -> PackedSender {
    // Its position counts from 0, as if nothing had been published.
    HeapRing { tail: HeapRing::new(ring.shape.message_bytes, ring.shape.capacity).tail, ..ring.clone() }
        .sender()
}

/// Takes up to `count` messages, which must be the first ones of `waiting`. Returns their number.
fn take(receiver: &mut PackedReceiver, waiting: &VecDeque<u64>, count: usize) -> Result<usize, String> {
    let bytes = receiver.message_bytes();
    for number in 0..count {
        let mut taken = vec![0; bytes];
        let has_message = receiver.take(&mut taken).map_err(|fault| fault.to_string())?;
        let expected = waiting.get(number).map(|n| message(*n, bytes));
        if has_message.then_some(taken.clone()) != expected {
            return Err(format!("{has_message} {taken:?} instead of {expected:?}"));
        }
        if !has_message {
            return Ok(number);
        }
    }
    Ok(count)
}

/// Runs the steps on a ring and on a `VecDeque`. Returns an error if they differ.
fn compare_with_model(
    bytes: usize,
    capacity: usize,
    steps: &[Step],
    successor: AttachSuccessor,
) -> Result<(), String> {
    let ring = HeapRing::new(bytes, capacity);
    let (mut sender, mut receiver) = (ring.sender(), ring.receiver());
    let (mut waiting, mut next) = (VecDeque::new(), 0);
    for step in steps {
        match *step {
            Step::Push => {
                let is_pushed = sender.push(&message(next, bytes)).is_ok();
                if is_pushed != (waiting.len() < capacity) {
                    return Err(format!("pushed: {is_pushed}, {} wait", waiting.len()));
                }
                waiting.extend(is_pushed.then_some(next));
                next += u64::from(is_pushed);
            }
            Step::PushMany(count) => {
                let batch: Vec<u8> = (next..next + count as u64).flat_map(|n| message(n, bytes)).collect();
                let pushed = sender.push_many(&batch);
                if pushed != count.min(capacity - waiting.len()) {
                    return Err(format!("pushed {pushed} of {count}, {} wait", waiting.len()));
                }
                waiting.extend(next..next + pushed as u64);
                next += pushed as u64;
            }
            Step::Pop => {
                let taken = take(&mut receiver, &waiting, 1)?;
                receiver.release();
                waiting.drain(..taken);
            }
            Step::PopMany(count) => {
                let mut messages = vec![0; count * bytes];
                let popped = receiver.pop_many(&mut messages).map_err(|fault| fault.to_string())?;
                let expected: Vec<u8> = waiting.drain(..popped).flat_map(|n| message(n, bytes)).collect();
                if popped < count.min(waiting.len()) || messages[..popped * bytes] != expected {
                    return Err(format!("popped {popped} of {count}: {messages:?}"));
                }
            }
            Step::TakeBack(count) => {
                let taken = take(&mut receiver, &waiting, count)?;
                receiver.rewind(taken as u64);
            }
            Step::TakeAndRelease(count) => {
                let taken = take(&mut receiver, &waiting, count)?;
                receiver.release();
                waiting.drain(..taken);
            }
            Step::SenderCrash(written) => {
                for n in 0..written as u64 {
                    let _ = sender.push_half(&message(next + n + 100, bytes));
                }
                sender = successor(&ring);
                if sender.published() != next {
                    return Err(format!("the successor counts {} of {next}", sender.published()));
                }
            }
            Step::ReceiverCrash(count) => {
                take(&mut receiver, &waiting, count)?;
                receiver = ring.receiver();
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn packed_ring_behaves_like_queue_through_crashes(
        bytes in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 12, 24, 56, 64, 72, 128, 130, 1000]),
        log2 in 0_u32..6,
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 20 } else { 200 }),
    ) {
        prop_assert_eq!(compare_with_model(bytes, 1 << log2, &steps, continue_ring), Ok(()));
    }
}

#[test]
fn successor_that_starts_again_is_detected() {
    let steps = [Step::Push, Step::Push, Step::Pop, Step::SenderCrash(1), Step::Push];
    assert_eq!(compare_with_model(8, 8, &steps, continue_ring), Ok(()));
    assert!(compare_with_model(8, 8, &steps, start_again).is_err());
}

#[test]
fn taken_but_unreleased_messages_are_not_overwritten() {
    let ring = HeapRing::new(2, 2);
    let (mut sender, mut receiver) = (ring.sender(), ring.receiver());
    assert_eq!(sender.push_many(&[1, 1, 2, 2, 3, 3]), 2);
    let mut taken = [0; 2];
    assert_eq!((receiver.take(&mut taken), taken), (Ok(true), [1; 2]));
    assert!(sender.push(&[3; 2]).is_err());
    receiver.release();
    assert!(sender.push(&[3; 2]).is_ok());
    let mut rest = [0; 6];
    assert_eq!((receiver.pop_many(&mut rest), rest), (Ok(2), [2, 2, 3, 3, 0, 0]));
}

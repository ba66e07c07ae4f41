//! The packed ring, with messages that fill words and messages that share one.

use loom::thread;
use shm::ring::packed::{HeapRing, PackedReceiver, PackedSender, tail_word};
use shm::sync::{Ordering, spin_hint};

const CAPACITY: usize = 2;
/// Sizes of a message: two words, one, and a quarter of one.
const SIZES: [usize; 3] = [16, 8, 2];

/// The value `n` in every byte: a mixed message shows.
fn message(n: u8, bytes: usize) -> Vec<u8> {
    vec![n; bytes]
}

/// Pushes `first`, … `last`, waiting for room.
fn push_all(sender: &mut PackedSender, numbers: std::ops::RangeInclusive<u8>) {
    for n in numbers {
        while sender.push(&message(n, sender.message_bytes())).is_err() {
            spin_hint();
        }
    }
}

/// Pops a message if there is one, and returns its number.
fn pop(receiver: &mut PackedReceiver) -> Option<u8> {
    let mut popped = vec![0; receiver.message_bytes()];
    let is_popped = receiver.pop(&mut popped).expect("an honest peer");
    is_popped.then(|| whole(&popped))
}

/// Returns the number of a message, which must be whole.
fn whole(message: &[u8]) -> u8 {
    assert!(message.iter().all(|byte| *byte == message[0]), "torn: {message:?}");
    message[0]
}

/// Pops messages and checks that they are these numbers, in order and whole.
fn pop_all(receiver: &mut PackedReceiver, numbers: std::ops::RangeInclusive<u8>) {
    for n in numbers {
        let popped = loop {
            match pop(receiver) {
                Some(popped) => break popped,
                None => spin_hint(),
            }
        };
        assert_eq!(popped, n, "in order, none lost");
    }
}

fn check_bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn messages_arrive_in_order_round_the_ring() {
    for bytes in SIZES {
        check_bounded(move || {
            let ring = HeapRing::new(bytes, CAPACITY);
            let (mut sender, mut receiver) = (ring.sender(), ring.receiver());
            let other = thread::spawn(move || push_all(&mut sender, 1..=4));
            pop_all(&mut receiver, 1..=4);
            other.join().unwrap();
            assert_eq!(pop(&mut receiver), None, "nothing twice");
        });
    }
}

/// Batches round the ring, which are published and freed with one store each.
#[test]
fn batches_arrive_in_order() {
    for bytes in SIZES {
        check_bounded(move || {
            let ring = HeapRing::new(bytes, CAPACITY);
            let (mut sender, mut receiver) = (ring.sender(), ring.receiver());
            let other = thread::spawn(move || {
                let messages: Vec<u8> = (1..=4).flat_map(|n| message(n, bytes)).collect();
                let mut pushed = 0;
                while pushed < 4 {
                    pushed += sender.push_many(&messages[pushed * bytes..]);
                    spin_hint();
                }
            });
            let mut got = Vec::new();
            while got.len() < 4 {
                let mut messages = vec![0; 3 * bytes];
                let count = receiver.pop_many(&mut messages).expect("an honest peer");
                got.extend(messages.chunks(bytes).take(count).map(whole));
                if count == 0 {
                    spin_hint();
                }
            }
            assert_eq!(got, [1, 2, 3, 4]);
            other.join().unwrap();
        });
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Resumed {
    Receiver,
    Sender,
    Both,
}

/// Successors of both ends continue while the other end goes on; the dead sender had written a
/// message that it did not publish. Each published message comes, in order, and no place is written
/// while it is read.
#[test]
fn successors_continue_a_ring_in_use() {
    for bytes in SIZES {
        for resumed in [Resumed::Receiver, Resumed::Sender, Resumed::Both] {
            check_bounded(move || {
                let ring = HeapRing::new(bytes, CAPACITY);
                let (mut sender, mut receiver) = (ring.sender(), ring.receiver());
                push_all(&mut sender, 1..=1);
                let theirs = ring.clone();
                let other = thread::spawn(move || {
                    if resumed != Resumed::Receiver {
                        let _ = sender.push_half(&message(99, bytes));
                        sender = theirs.sender();
                    }
                    // There may be room for three, two or one.
                    (2..=4).take_while(|&n| sender.push(&message(n, bytes)).is_ok()).count() as u8
                });
                pop_all(&mut receiver, 1..=1);
                if resumed != Resumed::Sender {
                    receiver = ring.receiver();
                }
                let mut got = vec![1];
                got.extend(pop(&mut receiver));
                got.extend(pop(&mut receiver));
                let pushed = other.join().unwrap();
                (0..3).for_each(|_| got.extend(pop(&mut receiver)));
                assert_eq!(got, (1..=1 + pushed).collect::<Vec<_>>());
            });
        }
    }
}

/// A message that was taken and not released is taken again, by the receiver that moved back or by
/// its successor; the sender pushes concurrently and never writes over it.
#[test]
fn unreleased_message_is_taken_again() {
    for (bytes, crashes) in SIZES.into_iter().flat_map(|bytes| [(bytes, false), (bytes, true)]) {
        check_bounded(move || {
            let ring = HeapRing::new(bytes, CAPACITY);
            let (mut sender, mut receiver) = (ring.sender(), ring.receiver());
            push_all(&mut sender, 1..=1);
            let other = thread::spawn(move || {
                (2..=4).take_while(|&n| sender.push(&message(n, bytes)).is_ok()).count() as u8
            });
            let mut taken = message(0, bytes);
            assert_eq!(receiver.take(&mut taken), Ok(true));
            if crashes {
                receiver = ring.receiver();
            } else {
                receiver.rewind(1);
            }
            let mut got = Vec::new();
            got.extend(pop(&mut receiver));
            got.extend(pop(&mut receiver));
            let pushed = other.join().unwrap();
            (0..3).for_each(|_| got.extend(pop(&mut receiver)));
            assert_eq!(got, (1..=1 + pushed).collect::<Vec<_>>());
        });
    }
}

/// A receiver that has died leaves its sender running until the ring is full: it never writes over
/// what was not freed, and never waits.
#[test]
fn dead_receiver_leaves_sender_running_until_full() {
    for popped in 0..=2 {
        check_bounded(move || {
            let ring = HeapRing::new(8, CAPACITY);
            let (mut sender, mut receiver) = (ring.sender(), ring.receiver());
            let other = thread::spawn(move || pop_all(&mut receiver, 1..=popped));
            let mut pushed = 0;
            for n in 1..=5 {
                // Tried twice, so that a pop in between is seen in some of the orders.
                if sender.push(&message(n, 8)).is_ok() || sender.push(&message(n, 8)).is_ok() {
                    pushed = n;
                } else {
                    break;
                }
            }
            assert!(pushed >= 2 && pushed <= 2 + popped, "{pushed}, {popped} read");
            other.join().unwrap();
        });
    }
}

/// A ring that was reset for a successor of its sender begins again at the first place.
#[test]
fn renewed_ring_begins_again() {
    loom::model(|| {
        let ring = HeapRing::new(8, CAPACITY);
        let (mut sender, mut receiver) = (ring.sender(), ring.receiver());
        push_all(&mut sender, 1..=1);
        let _ = sender.push_half(&message(99, 8));
        pop_all(&mut receiver, 1..=1);
        receiver.renew();
        ring.tail[tail_word(0)..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let mut successor = ring.sender();
        let other = thread::spawn(move || push_all(&mut successor, 1..=3));
        pop_all(&mut receiver, 1..=3);
        other.join().unwrap();
    });
}

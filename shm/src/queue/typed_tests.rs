//! Typed queues in one process: ends, states, successors, faults. Real crashes are in
//! `tests/all/queues`.

use super::*;
use crate::ring::{PeerFault, packed};
use crate::sync::Ordering;
use std::time::{Duration, Instant};

type Large = [u64; 100];

fn name(what: &str) -> String {
    format!("typed-{}-{what}", std::process::id())
}

fn drain<T: Message>(receiver: &mut Receiver<T>) -> Vec<T> {
    core::iter::from_fn(|| receiver.pop().unwrap()).collect()
}

#[test]
fn full_queue_refuses_and_keeps_its_messages() {
    let mut queue = spsc::<Large>(&name("full"), 4).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    let pushed = (0..100).take_while(|n| sender.push(&[*n; 100]).is_ok()).count() as u64;
    assert_eq!(pushed, 4);
    for n in 0..1_000 {
        assert_eq!(receiver.pop().unwrap(), Some([n; 100]));
        sender.push(&[n + pushed; 100]).unwrap();
    }
    assert_eq!(drain(&mut receiver).len() as u64, pushed);
}

#[test]
fn messages_of_maximum_size_arrive_whole() {
    let mut queue = spsc::<[u8; MAX_MESSAGE_BYTES]>(&name("maximum"), 2).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    for n in 0..5u8 {
        let message: Box<[u8; MAX_MESSAGE_BYTES]> = Box::new(core::array::from_fn(|i| n ^ i as u8));
        sender.push(&message).unwrap();
        assert!(receiver.pop().unwrap() == Some(*message));
    }
}

#[test]
fn opening_with_another_type_or_technique_is_refused() {
    let name = name("type");
    let _queue = spsc::<u64>(&name, 4).unwrap();
    let error = open::<[u64; 2]>(&name).unwrap_err();
    assert!(matches!(error, QueueError::MessageSize { expected: 16, found: 8, .. }), "{error}");
    assert!(matches!(
        Queue::<crate::ring::spsc_mux::SpscMux>::open(&name),
        Err(QueueError::Technique { .. })
    ));
    assert!(matches!(spsc::<u64>(&name, 4), Err(QueueError::Living(_))));
    assert!(matches!(open::<u64>("none"), Err(QueueError::NotFound(_))));
}

#[test]
fn refused_capacity_is_the_one_that_was_given() {
    let too_many = (1 << 25) + 1;
    let refused = [spsc::<u64>("slots", too_many).unwrap_err(), sealed::<Large>(1, too_many).unwrap_err()];
    for error in refused {
        assert!(matches!(error, QueueError::Capacity(33_554_433)), "{error}");
    }
    let error = spsc::<Large>("slots", u32::MAX).unwrap_err();
    assert_eq!(error.to_string(), "invalid capacity 4294967295: use a power of two from 2 to 33554432");
}

#[test]
fn each_end_has_one_owner_at_a_time() {
    let name = name("ends");
    let mut queue = spsc::<u64>(&name, 4).unwrap();
    let mut other = open::<u64>(&name).unwrap();
    let receiver = queue.receiver().unwrap();
    let sender = other.sender().unwrap();
    assert!(matches!(queue.sender(), Err(QueueError::NoFreeProducer { producers: 1, .. })));
    assert!(matches!(queue.resume_sender(0), Err(QueueError::ProducerAlive(0))));
    assert!(matches!(queue.resume_sender(1), Err(QueueError::Producer { index: 1, producers: 1 })));
    assert!(matches!(other.receiver(), Err(QueueError::Attached { .. })));
    assert!(matches!(other.resume_receiver(), Err(QueueError::Attached { .. })));
    let pid = u64::from(std::process::id());
    assert_eq!(queue.producers().unwrap(), [ProducerState::Alive { pid }]);
    assert!(queue.has_receiver().unwrap());
    drop((sender, receiver));
    assert!(!queue.has_receiver().unwrap());
    assert_eq!(queue.producers().unwrap(), [ProducerState::Free]);
    queue.sender().unwrap();
    other.receiver().unwrap();
}

#[test]
fn closed_ends_continue_where_they_stopped() {
    let mut queue = spsc::<u64>(&name("closed"), 8).unwrap();
    let mut sender = queue.sender().unwrap();
    (0..6).for_each(|n| sender.push(&n).unwrap());
    drop(sender);
    let mut receiver = queue.receiver().unwrap();
    assert_eq!((receiver.pop(), receiver.pop()), (Ok(Some(0)), Ok(Some(1))));
    drop(receiver);
    let mut sender = queue.sender().unwrap();
    (6..9).for_each(|n| sender.push(&n).unwrap());
    assert_eq!(drain(&mut queue.receiver().unwrap()), [2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn crashed_sender_is_resumed_or_renewed() {
    let name = name("crashed");
    let mut queue = mpsc::<u64>(&name, 8).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let (mut first, mut second) = (queue.sender().unwrap(), queue.sender().unwrap());
    first.push(&1).unwrap();
    second.push(&10).unwrap();
    first.abandon();
    let pid = u64::from(std::process::id());
    let states = receiver.producers().unwrap();
    assert_eq!(states[..3], [ProducerState::Dead { pid }, ProducerState::Alive { pid }, ProducerState::Free]);
    assert_eq!(queue.sender().unwrap().index(), 2, "the crashed one's end is not free");
    let _others: Vec<_> = (2..MPSC_PRODUCERS).map(|_| queue.sender().unwrap()).collect();
    let error = queue.sender().unwrap_err();
    assert!(matches!(error, QueueError::SenderCrashed { index: 0, .. }));
    assert!(error.to_string().contains("`resume_sender(0)`"), "{error}");
    let mut heir = open::<u64>(&name).unwrap().resume_sender(0).unwrap();
    heir.push(&2).unwrap();
    assert!(matches!(receiver.renew(0), Err(QueueError::ProducerAlive(0))));
    heir.abandon();
    assert!(!receiver.renew(0).unwrap(), "messages are left");
    let mut taken = drain(&mut receiver);
    taken.sort_unstable();
    assert_eq!(taken, [1, 2, 10]);
    assert!(receiver.renew(0).unwrap());
    assert_eq!(receiver.producers().unwrap()[0], ProducerState::Free);
    let mut successor = queue.sender().unwrap();
    assert_eq!(successor.index(), 0);
    for n in 0..50 {
        successor.push(&n).unwrap();
        assert_eq!((receiver.pop(), receiver.last_producer()), (Ok(Some(n)), 0));
    }
}

#[test]
fn retired_producer_stays_out_until_renewed() {
    let mut queue = mpsc::<u64>(&name("retired"), 8).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let mut sender = queue.sender().unwrap();
    (0..5).for_each(|n| sender.push(&n).unwrap());
    sender.abandon();
    assert!(!receiver.retire(0).unwrap());
    assert_eq!(drain(&mut receiver), [0, 1, 2, 3, 4]);
    assert!(receiver.retire(0).unwrap());
    assert!(matches!(queue.resume_sender(0), Err(QueueError::Retired(0))));
    // A successor of the receiver does not read the ring again.
    receiver.abandon();
    assert!(matches!(queue.receiver(), Err(QueueError::ReceiverCrashed(_))));
    let mut receiver = queue.resume_receiver().unwrap();
    assert_eq!(drain(&mut receiver), []);
    assert_eq!(receiver.producers().unwrap()[0], ProducerState::Retired);
    assert!(receiver.renew(0).unwrap());
    let mut sender = queue.sender().unwrap();
    sender.push(&9).unwrap();
    assert_eq!((sender.index(), receiver.pop()), (0, Ok(Some(9))));
}

#[test]
fn crashed_receiver_loses_nothing() {
    let mut queue = mpsc::<Large>(&name("receiver"), 8).unwrap();
    let (mut first, mut second) = (queue.sender().unwrap(), queue.sender().unwrap());
    let mut receiver = queue.receiver().unwrap();
    first.push(&[1; 100]).unwrap();
    second.push(&[2; 100]).unwrap();
    assert!(receiver.pop().unwrap().is_some());
    receiver.abandon();
    let mut remaining: Vec<u64> =
        drain(&mut queue.resume_receiver().unwrap()).iter().map(|message| message[99]).collect();
    remaining.sort_unstable();
    assert_eq!(remaining, [2]);
}

#[test]
fn large_message_of_crashed_sender_is_dropped() {
    let mut queue = spsc::<Large>(&name("half"), 4).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let mut sender = queue.sender().unwrap();
    sender.push(&[1; 100]).unwrap();
    sender.push_half(&[2; 100]);
    sender.abandon();
    assert_eq!(drain(&mut receiver), [[1; 100]]);
    let mut successor = queue.resume_sender(0).unwrap();
    successor.push(&[3; 100]).unwrap();
    successor.push(&[4; 100]).unwrap();
    assert_eq!(drain(&mut receiver), [[3; 100], [4; 100]]);
}

/// A message that is not released keeps its place, however many are pushed after it.
#[test]
fn full_queue_overwrites_no_taken_message() {
    let mut queue = spsc::<[u8; 64]>(&name("overwrite"), 4).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    for n in 0..40u8 {
        while sender.push(&[n; 64]).is_ok() {}
        let taken = receiver.take().unwrap().expect("the queue is full");
        assert!(sender.push(&[255; 64]).is_err());
        drop(taken);
        let first = receiver.pop().unwrap().expect("it was put back");
        assert_eq!(first, [first[0]; 64]);
        assert!(first[0] <= n);
    }
}

#[test]
fn damaged_places_of_a_producer_are_reset_by_renew() {
    let mut queue = mpsc::<[u8; 64]>(&name("places"), 4).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let sender = queue.sender().unwrap();
    let ring = queue.attached().region("queue-0", packed::KIND).unwrap().words();
    // The ring's tail stays: nothing was published.
    ring[packed::tail_word(0) + 1..].iter().for_each(|word| word.store(77, Ordering::Relaxed));
    sender.abandon();
    assert!(receiver.renew(0).unwrap());
    let mut successor = queue.sender().unwrap();
    for n in 0..20 {
        successor.push(&[n; 64]).unwrap();
        assert_eq!(receiver.pop(), Ok(Some([n; 64])));
    }
}

#[test]
fn overwritten_ring_is_a_fault_of_its_producer() {
    let name = name("fault");
    let mut queue = mpsc::<u64>(&name, 8).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let (bad, mut good) = (queue.sender().unwrap(), queue.sender().unwrap());
    let ring = queue.attached().region("queue-0", packed::KIND).unwrap().words();
    ring[HEADER..].iter().for_each(|word| word.store(77, Ordering::Relaxed));
    good.push(&1).unwrap();
    let mut faults = Vec::new();
    let mut taken = Vec::new();
    for _ in 0..4 {
        match receiver.pop() {
            Ok(message) => taken.extend(message),
            Err(ProducerFault { producer, fault: PeerFault::InvalidTail { tail: 77, position: 0 } }) => {
                faults.push(producer)
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((taken, faults), (vec![1], vec![0]));
    bad.abandon();
    assert!(receiver.renew(0).unwrap());
    let mut successor = queue.sender().unwrap();
    successor.push(&2).unwrap();
    assert_eq!((successor.index(), receiver.pop()), (0, Ok(Some(2))));
}

const HEADER: usize = crate::memory::header::HEADER_WORDS;

#[test]
fn pop_timeout_wakes_for_a_message_and_ends_without() {
    let mut queue = spsc::<u64>(&name("timeout"), 8).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    let start = Instant::now();
    assert_eq!(receiver.pop_timeout(Duration::from_millis(20)), Ok(None));
    assert!(start.elapsed() >= Duration::from_millis(20));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200 {
                std::thread::sleep(Duration::from_micros(100));
                sender.push(&n).unwrap();
                while n % 8 == 7 && !sender.is_taken() {
                    std::thread::yield_now();
                }
            }
        });
        for n in 0..200 {
            assert_eq!(receiver.pop_timeout(Duration::from_secs(60)), Ok(Some(n)));
        }
    });
}

#[test]
fn descriptor_is_readable_once_a_message_is_pushed() {
    use std::os::fd::AsFd as _;
    let mut queue = spsc::<u64>(&name("epoll"), 8).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    let is_readable = |receiver: &Receiver<u64>| {
        let mut polled = libc::pollfd {
            fd: std::os::fd::AsRawFd::as_raw_fd(&receiver.as_fd()),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry, which is ours and outlives the call.
        unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
    };
    for n in 0..3 {
        assert!(receiver.prepare_wait());
        assert!(!is_readable(&receiver));
        sender.push(&n).unwrap();
        assert!(is_readable(&receiver));
        assert_eq!((receiver.pop(), receiver.pop()), (Ok(Some(n)), Ok(None)));
        assert!(!is_readable(&receiver));
        sender.push(&n).unwrap();
        assert!(!receiver.prepare_wait() && !is_readable(&receiver), "a message is available already");
        assert_eq!(receiver.pop(), Ok(Some(n)));
    }
}

/// A push at the same time as a queue's first wait wakes the receiver, or is seen before the wait.
/// Only the first wait of a queue differs from all others, so each queue is new. Without the pause
/// in that wait about every third run finds a push that wakes nobody.
#[test]
fn push_during_the_first_wait_of_a_queue_is_seen() {
    use crate::sync::AtomicU64;
    use std::os::fd::AsRawFd as _;
    let started = AtomicU64::new(0);
    // Both begin at once, after turns that differ by up to 100; on a busy machine one of them may
    // need the core that the other one waits on.
    let start_together = |n: u64, turns: u64| {
        started.fetch_add(1, Ordering::SeqCst);
        let mut waited = 0;
        while started.load(Ordering::SeqCst) < 2 * (n + 1) {
            core::hint::spin_loop();
            waited += 1;
            if waited % 10_000 == 0 {
                std::thread::yield_now();
            }
        }
        (0..turns).for_each(|turn| _ = core::hint::black_box(turn));
    };
    for n in 0..5_000 {
        let mut queue = sealed::<u64>(1, 2).unwrap();
        let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start_together(n, n % 200);
                sender.push(&n).unwrap();
            });
            start_together(n, 100);
            if receiver.prepare_wait() {
                let mut polled = libc::pollfd { fd: receiver.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one entry, which is ours and outlives the call.
                let ready = unsafe { libc::poll(&raw mut polled, 1, 60_000) };
                assert_eq!(ready, 1, "the push of queue {n} woke nobody");
            }
            assert_eq!(receiver.pop(), Ok(Some(n)));
        });
    }
}

/// The words of positions that a peer may write, from a queue of four messages of which two are
/// taken and two wait.
fn hostile_positions() -> Vec<u64> {
    let near = (0..=12).chain(76..80);
    near.chain([u64::MAX, u64::MAX - 1, 1 << 63, u64::MAX >> 8, (u64::MAX >> 8) + 1]).collect()
}

/// Whatever a sender writes as its position, the receiver gets messages or one fault, and no more
/// messages than there are places.
#[test]
fn hostile_tail_is_a_fault_or_messages_of_its_producer() {
    for tail in hostile_positions() {
        let mut queue = sealed::<u64>(2, 4).unwrap();
        let mut receiver = queue.receiver().unwrap();
        let (mut bad, mut good) = (queue.sender().unwrap(), queue.sender().unwrap());
        assert_eq!(bad.push_many(&[0, 1, 2, 3]), 4);
        assert_eq!((receiver.pop(), receiver.pop()), (Ok(Some(0)), Ok(Some(1))));
        let ring = queue.attached().region("queue-0", packed::KIND).unwrap().words();
        ring[packed::tail_word(0)].store(tail, Ordering::Relaxed);
        good.push(&7).unwrap();
        let (mut taken, mut faults) = (Vec::new(), 0);
        for _ in 0..20 {
            match receiver.pop() {
                Ok(Some(message)) => taken.push((receiver.last_producer(), message)),
                Ok(None) => {}
                Err(ProducerFault { producer: 0, fault: PeerFault::InvalidTail { .. } }) => faults += 1,
                Err(other) => panic!("{other}"),
            }
        }
        // Four were known before the tail was overwritten, and are free when it is read again.
        assert_eq!(faults, u32::from(!(4..=8).contains(&tail)), "{tail}");
        assert_eq!(taken.iter().filter(|(producer, _)| *producer == 1).count(), 1, "{tail}");
        let of_bad = taken.len() - 1;
        assert_eq!(of_bad, 2 + if faults == 0 { tail as usize - 4 } else { 0 }, "{tail}");
        // Its successor starts from it, and the receiver resets it: nothing panics.
        bad.abandon();
        let mut successor = queue.resume_sender(0).unwrap();
        (0..8).for_each(|n| _ = successor.push(&n));
        successor.abandon();
        while receiver.pop().is_ok_and(|message| message.is_some()) {}
        let _ = receiver.pop();
        assert!(receiver.renew(0).unwrap());
        let mut successor = queue.sender().unwrap();
        successor.push(&9).unwrap();
        assert_eq!((receiver.pop(), receiver.last_producer()), (Ok(Some(9)), 0), "{tail}");
    }
}

/// Whatever a receiver writes as its position, its sender finds room or none, and writes nowhere
/// but in its places.
#[test]
fn hostile_head_makes_a_queue_look_full() {
    for head in hostile_positions() {
        let mut queue = sealed::<u64>(1, 4).unwrap();
        let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
        assert_eq!(sender.push_many(&[0, 1, 2, 3, 4]), 4);
        assert_eq!((receiver.pop(), receiver.pop()), (Ok(Some(0)), Ok(Some(1))));
        let own = queue.attached().region("queue-0.head", packed::HEAD_KIND).unwrap().words();
        own[packed::HEAD].store(head, Ordering::Relaxed);
        let pushed = (4..20).take_while(|n| sender.push(n).is_ok()).count() as u64;
        assert_eq!(pushed, if head <= 4 { head } else { 0 }, "{head}");
        // The receiver's own position is the one that counts.
        let _ = receiver.pop();
        assert_eq!(own[packed::HEAD].load(Ordering::Relaxed), 3, "{head}");
        receiver.abandon();
        own[packed::HEAD].store(head, Ordering::Relaxed);
        let mut successor = queue.resume_receiver().unwrap();
        (0..20).for_each(|_| _ = successor.pop());
    }
}

#[test]
fn batches_arrive_whole_and_in_order() {
    let mut queue = mpsc_of::<[u16; 3]>(&name("batches"), 2, 32).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let mut senders = [queue.sender().unwrap(), queue.sender().unwrap()];
    let message = |n: u64| [n as u16; 3];
    let (mut pushed, mut taken) = ([0; 2], [0; 2]);
    for round in 0..300 {
        for (sender, pushed) in senders.iter_mut().zip(&mut pushed) {
            let batch: Vec<_> = (*pushed..*pushed + round % 50).map(message).collect();
            let count = sender.push_many(&batch) as u64;
            assert!(count <= batch.len() as u64);
            *pushed += count;
        }
        let mut got = Vec::new();
        if round % 2 == 0 {
            let mut messages = [[0; 3]; 20];
            let count = receiver.pop_many(&mut messages).unwrap();
            got.extend_from_slice(&messages[..count]);
        } else {
            let count = receiver.drain(round as usize % 40, |message| got.push(message)).unwrap();
            assert_eq!(count, got.len());
        }
        for found in got {
            let next = &mut taken[receiver.last_producer()];
            assert_eq!(found, message(*next));
            *next += 1;
        }
    }
    while receiver.drain(100, |_| ()).unwrap() > 0 {}
    assert!(pushed.iter().all(|count| *count > 500), "{pushed:?}");
}

#[test]
fn drained_messages_come_again_if_their_user_panics() {
    let mut queue = sealed::<u64>(1, 8).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    assert_eq!(sender.push_many(&[1, 2, 3]), 3);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        receiver.drain(3, |message| assert!(message < 2, "a panic on purpose"))
    }));
    assert!(failed.is_err());
    assert_eq!(drain(&mut receiver), [1, 2, 3]);
}

/// Messages of a size of zero, and of every size around the bounds of the ways to copy.
#[test]
fn every_kind_of_size_arrives() {
    fn send<const B: usize>() {
        let mut queue = sealed::<[u8; B]>(1, 4).unwrap();
        let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
        for n in 0..30u8 {
            let message: [u8; B] = core::array::from_fn(|at| n ^ at as u8);
            assert_eq!(sender.push_many(&[message, message]), 2, "{B}");
            sender.push(&message).unwrap();
            assert_eq!([receiver.pop(), receiver.pop(), receiver.pop()], [Ok(Some(message)); 3], "{B}");
            assert_eq!(receiver.pop(), Ok(None), "{B}");
        }
    }
    send::<0>();
    send::<1>();
    send::<2>();
    send::<3>();
    send::<4>();
    send::<7>();
    send::<8>();
    send::<12>();
    send::<24>();
    send::<56>();
    send::<63>();
    send::<64>();
    send::<65>();
    send::<128>();
    send::<129>();
    send::<255>();
    send::<1000>();
}

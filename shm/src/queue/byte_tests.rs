//! Queues of messages whose size is known when the program runs, in one process; and typed ends of
//! the same queue.

use super::*;
use std::time::Duration;

fn name(what: &str) -> String {
    format!("bytes-{}-{what}", std::process::id())
}

/// Message `n` of `bytes` bytes: every byte depends on the message and on its place.
fn numbered(n: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| n.wrapping_mul(31).wrapping_add(at as u8)).collect()
}

/// All sizes around a slot and around whole words of overflow, and the largest.
const SIZES: [usize; 14] = [1, 7, 8, 9, 48, 55, 56, 57, 63, 64, 65, 120, 1000, MAX_MESSAGE_BYTES];

#[test]
fn messages_of_every_size_arrive_whole() {
    for bytes in SIZES {
        let mut queue = ByteQueue::sealed(1, 4, bytes).unwrap();
        let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
        assert_eq!([queue.message_bytes(), sender.message_bytes(), receiver.message_bytes()], [bytes; 3]);
        let mut popped = vec![0; bytes];
        for n in 0..20 {
            sender.push(&numbered(n, bytes)).unwrap();
            sender.push(&numbered(n + 1, bytes)).unwrap();
            assert!(receiver.pop_into(&mut popped).unwrap());
            assert!(popped == numbered(n, bytes), "{bytes} bytes");
            assert!(receiver.take().unwrap() == Some(&numbered(n + 1, bytes)[..]), "{bytes} bytes");
            assert!(receiver.release());
            assert_eq!(receiver.pop_into(&mut popped), Ok(false));
        }
        let pushed = (0..100).take_while(|n| sender.push(&numbered(*n, bytes)).is_ok()).count();
        assert_eq!(pushed, 4, "of {bytes} bytes");
        assert_eq!(sender.push(&numbered(0, bytes)), Err(ByteError::Full(Full)));
    }
}

#[test]
fn other_sizes_are_refused() {
    for bytes in [0, MAX_MESSAGE_BYTES + 1, usize::MAX] {
        assert!(matches!(ByteQueue::sealed(1, 4, bytes), Err(QueueError::MessageBytes(_))), "{bytes}");
    }
    let mut queue = ByteQueue::create(&name("sizes"), 1, 4, 24).unwrap();
    assert!(matches!(
        open::<u64>(&name("sizes")),
        Err(QueueError::MessageSize { expected: 8, found: 24, .. })
    ));
    let opened = ByteQueue::open(&name("sizes")).unwrap();
    assert!(opened.check_size(24).is_ok());
    assert!(matches!(opened.check_size(25), Err(QueueError::MessageSize { expected: 25, found: 24, .. })));
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    sender.push(&[1; 24]).unwrap();
    for found in [0, 23, 25] {
        let refused = ByteError::Size { expected: 24, found };
        assert_eq!(sender.push(&vec![2; found]), Err(refused));
        assert_eq!(receiver.pop_into(&mut vec![0; found]), Err(refused));
        assert_eq!(receiver.pop_into_timeout(&mut vec![0; found], Duration::ZERO), Err(refused));
    }
    let mut popped = [0; 24];
    assert!(receiver.pop_into(&mut popped).unwrap() && popped == [1; 24]);
    assert_eq!(receiver.pop_into(&mut popped), Ok(false));
    let _empty = spsc::<()>(&name("empty"), 4).unwrap();
    assert!(matches!(ByteQueue::open(&name("empty")), Err(QueueError::MessageBytes(0))));
}

fn exchange_with_typed_ends<const W: usize>(what: &str) {
    let name = name(what);
    let mut bytes = ByteQueue::create(&name, 2, 8, 8 * W).unwrap();
    let mut typed = open::<[u64; W]>(&name).unwrap();
    let (mut of_bytes, mut of_type) = (bytes.sender().unwrap(), typed.sender().unwrap());
    let mut receiver = bytes.receiver().unwrap();
    let mut popped = vec![0; 8 * W];
    for n in 0..30 {
        of_type.push(&[n; W]).unwrap();
        assert!(receiver.pop_into(&mut popped).unwrap());
        assert_eq!((popped.as_chunks().0, receiver.last_producer()), (&[n.to_le_bytes(); W][..], 1));
    }
    drop(receiver);
    let mut receiver = typed.receiver().unwrap();
    for n in 0..30u64 {
        of_bytes.push(n.to_le_bytes().repeat(W).as_slice()).unwrap();
        assert_eq!(receiver.pop().unwrap(), Some([n; W]));
    }
    // A successor of the other kind, in the middle of the messages.
    of_bytes.push(&[1; 8].repeat(W)).unwrap();
    of_bytes.abandon();
    let mut successor = typed.resume_sender(0).unwrap();
    successor.push(&[2; W]).unwrap();
    assert_eq!(receiver.pop().unwrap(), Some([u64::from_le_bytes([1; 8]); W]));
    receiver.abandon();
    let mut receiver = bytes.resume_receiver().unwrap();
    assert_eq!(receiver.take().unwrap(), Some(&2u64.to_le_bytes().repeat(W)[..]));
}

#[test]
fn ends_of_bytes_and_of_types_exchange_messages() {
    exchange_with_typed_ends::<3>("small");
    exchange_with_typed_ends::<100>("large");
}

fn take_and_put_back(bytes: usize) {
    let mut queue = ByteQueue::sealed(1, 4, bytes).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    assert_eq!(receiver.take_timeout(Duration::from_millis(2)), Ok(None));
    assert!(!receiver.release() && !receiver.put_back());
    for n in 0..20 {
        sender.push(&numbered(2 * n, bytes)).unwrap();
        sender.push(&numbered(2 * n + 1, bytes)).unwrap();
        for _ in 0..3 {
            let taken = receiver.take_timeout(Duration::from_secs(60)).unwrap();
            assert!(taken == Some(&numbered(2 * n, bytes)[..]));
            assert_eq!(receiver.take(), Err(ByteError::Taken));
            assert_eq!(receiver.pop_into(&mut vec![0; bytes]), Err(ByteError::Taken));
            assert!(receiver.put_back());
        }
        assert!(receiver.take().unwrap().is_some() && receiver.release());
        let mut popped = vec![0; bytes];
        assert!(receiver.pop_into(&mut popped).unwrap() && popped == numbered(2 * n + 1, bytes));
    }
    // A message that was taken and not released is the successor's.
    sender.push(&numbered(7, bytes)).unwrap();
    assert!(receiver.take().unwrap().is_some());
    receiver.abandon();
    let mut successor = queue.resume_receiver().unwrap();
    assert!(successor.take().unwrap() == Some(&numbered(7, bytes)[..]));
}

#[test]
fn message_put_back_is_taken_again() {
    take_and_put_back(24);
    take_and_put_back(1000);
}

#[test]
fn message_that_arrives_during_a_wait_is_taken() {
    for bytes in [24, 1000] {
        let mut queue = ByteQueue::sealed(1, 4, bytes).unwrap();
        let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..20 {
                    std::thread::sleep(Duration::from_micros(300));
                    sender.push(&numbered(n, bytes)).unwrap();
                    while !sender.is_taken() {
                        std::thread::yield_now();
                    }
                }
            });
            for n in 0..20 {
                let taken = receiver.take_timeout(Duration::from_secs(60)).unwrap();
                assert!(taken == Some(&numbered(n, bytes)[..]));
                assert!(receiver.release());
            }
        });
    }
}

#[test]
fn sealed_queues_are_opened_by_their_descriptors() {
    let queue = ByteQueue::sealed(1, 4, 100).unwrap();
    let fds = queue.fds().expect("it is sealed").map(|fd| fd.try_clone_to_owned().unwrap());
    let mut opened = ByteQueue::from_fds(fds).unwrap();
    assert_eq!(opened.message_bytes(), 100);
    opened.sender().unwrap().push(&[5; 100]).unwrap();
    let mut popped = [0; 100];
    assert!(opened.receiver().unwrap().pop_into_timeout(&mut popped, Duration::ZERO).unwrap());
    assert_eq!(popped, [5; 100]);
}

#[test]
fn producer_of_a_taken_message_is_not_retired() {
    let mut queue = ByteQueue::sealed(2, 4, 8).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    sender.push(&numbered(1, 8)).unwrap();
    drop(sender);
    assert!(receiver.take().unwrap().is_some());
    assert!(!receiver.retire(0).unwrap() && !receiver.renew(0).unwrap());
    assert!(receiver.retire(1).unwrap(), "the other one has no message");
    assert!(receiver.put_back());
    assert_eq!(receiver.take().unwrap(), Some(&numbered(1, 8)[..]));
    assert!(receiver.release());
    assert!(receiver.retire(0).unwrap());
}

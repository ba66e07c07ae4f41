//! Messages that are taken and released, in one process. Real kills are in `tests/all/receivers`.

use super::*;

type Large = [u64; 100];

fn name(what: &str) -> String {
    format!("taken-{}-{what}", std::process::id())
}

/// Takes and releases all messages; returns the first word of each.
fn release_all<const W: usize>(receiver: &mut Receiver<[u64; W]>) -> Vec<u64> {
    let mut used = Vec::new();
    while let Some(message) = receiver.take().unwrap() {
        used.push(message[0]);
        message.release();
    }
    used
}

/// A dropped message is the next one, for a take and for a pop; a released one is not.
fn take_twice<const W: usize>(what: &str) {
    let mut queue = spsc::<[u64; W]>(&name(what), 4).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    // Round the ring several times.
    for n in 0..50 {
        sender.push(&[2 * n; W]).unwrap();
        sender.push(&[2 * n + 1; W]).unwrap();
        for _ in 0..3 {
            assert_eq!(*receiver.take().unwrap().expect("a message"), [2 * n; W]);
        }
        let taken = receiver.take().unwrap().expect("a message");
        assert_eq!((*taken, taken.producer()), ([2 * n; W], 0));
        taken.release();
        drop(receiver.take().unwrap());
        assert_eq!(receiver.pop().unwrap(), Some([2 * n + 1; W]));
        assert!(receiver.take().unwrap().is_none());
    }
}

#[test]
fn dropped_message_is_taken_again() {
    take_twice::<1>("small");
    take_twice::<100>("large");
}

/// The slots of a taken message are the receiver's until it is released.
#[test]
fn taken_message_keeps_its_slots() {
    let mut queue = spsc::<u64>(&name("slots"), 2).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    (0..2).for_each(|n| sender.push(&n).unwrap());
    let taken = receiver.take().unwrap().expect("a message");
    assert_eq!(sender.push(&2), Err(Full));
    taken.release();
    sender.push(&2).unwrap();
    assert_eq!(receiver.pop(), Ok(Some(1)));
    // One that is popped does not keep them.
    sender.push(&3).unwrap();
}

/// Each producer's messages are released once and in order, however often one was dropped.
#[test]
fn dropped_messages_of_several_producers_keep_their_order() {
    let mut queue = mpsc_of::<Large>(&name("several"), 3, 8).unwrap();
    let mut receiver = queue.receiver().unwrap();
    let mut senders: Vec<_> = (0..3).map(|_| queue.sender().unwrap()).collect();
    let (mut released, mut takes) = ([0; 3], 0);
    for n in 0..100 {
        senders.iter_mut().for_each(|sender| sender.push(&[n; 100]).unwrap());
        while let Some(message) = receiver.take().unwrap() {
            takes += 1;
            assert_eq!(*message, [released[message.producer()]; 100]);
            if takes % 3 != 0 {
                released[message.producer()] += 1;
                message.release();
            }
        }
    }
    assert_eq!(released, [100; 3]);
    assert!(takes > 400, "a third of the takes were dropped");
}

/// A receiver that crashes with a taken message, as its process's death would leave it.
fn crash_with_message<const W: usize>(what: &str, pops: bool) -> Vec<u64> {
    let mut queue = mpsc_of::<[u64; W]>(&name(what), 2, 8).unwrap();
    let (mut first, mut second) = (queue.sender().unwrap(), queue.sender().unwrap());
    first.push(&[1; W]).unwrap();
    second.push(&[2; W]).unwrap();
    first.push(&[3; W]).unwrap();
    let mut receiver = queue.receiver().unwrap();
    receiver.take().unwrap().expect("a message").release();
    if pops {
        receiver.pop().unwrap().expect("a message");
    } else {
        core::mem::forget(receiver.take().unwrap());
    }
    receiver.abandon();
    let mut remaining = release_all(&mut queue.resume_receiver().unwrap());
    remaining.sort_unstable();
    remaining
}

#[test]
fn successor_takes_unreleased_message_again() {
    assert_eq!(crash_with_message::<1>("crash", false), [2, 3]);
    assert_eq!(crash_with_message::<100>("crash-large", false), [2, 3]);
    // The broken receiver: a pop in place of the take loses the message.
    assert_eq!(crash_with_message::<1>("crash-pop", true), [3]);
    assert_eq!(crash_with_message::<100>("crash-large-pop", true), [3]);
}

#[test]
fn take_timeout_waits_as_pop_timeout() {
    use core::time::Duration;
    let mut queue = spsc::<u64>(&name("timeout"), 8).unwrap();
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    assert!(receiver.take_timeout(Duration::from_millis(5)).unwrap().is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..20 {
                std::thread::sleep(Duration::from_micros(100));
                while sender.push(&n).is_err() {}
            }
        });
        for n in 0..20 {
            let message = receiver.take_timeout(Duration::from_secs(60)).unwrap().expect("a sender pushes");
            assert_eq!(*message, n);
            message.release();
        }
    });
}

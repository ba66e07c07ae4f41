//! Queues in sealed memory, in one process: ends over the descriptors, and descriptors that are not
//! a queue's. Processes that inherit them are in `tests/all/queues`.

use super::*;
use crate::memory::header::HEADER_WORDS;
use crate::memory::{AtomicWords, HeaderError, Region, RegionError, sealed};
use crate::ring::PeerFault;
use crate::sync::Ordering;
use std::fs::File;
use std::os::fd::OwnedFd;

type Large = [u64; 100];

fn clone_fds<T: Message>(queue: &MessageQueue<T>) -> [OwnedFd; 2] {
    queue.fds().unwrap().map(|fd| fd.try_clone_to_owned().unwrap())
}

fn duplicate<T: Message>(queue: &MessageQueue<T>) -> MessageQueue<T> {
    from_fds(clone_fds(queue)).unwrap()
}

/// Memory of that many bytes, and a pipe.
fn fds(bytes: u64, is_sealed: bool) -> [OwnedFd; 2] {
    let (_, memory) = Region::memfd_and_file("test", bytes as usize / 8, true).unwrap();
    if is_sealed {
        sealed::seal_size(&memory).unwrap();
    }
    [memory.into(), std::io::pipe().unwrap().0.into()]
}

/// A copy of a queue's memory, changed by `change` before it is sealed.
fn forged(queue: &MessageQueue<u64>, change: impl FnOnce(&AtomicWords)) -> Result<(), QueueError> {
    let original = File::from(queue.fds().unwrap()[0].try_clone_to_owned().unwrap());
    let bytes = original.metadata().unwrap().len() as usize;
    let original = Region::map("test", &original, true).unwrap().words();
    let (copy, memory) = Region::memfd_and_file("test", bytes / 8, true).unwrap();
    let copy = copy.words();
    for (to, from) in copy.iter().zip(original.iter()) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    change(&copy);
    sealed::seal_size(&memory).unwrap();
    from_fds::<u64>([memory.into(), std::io::pipe().unwrap().0.into()]).map(drop)
}

#[test]
fn sealed_queue_connects_handles_without_any_name() {
    let mut queue = sealed::<Large>(3, 8).unwrap();
    assert!(queue.name().is_none() && queue.fds().is_some());
    let mut other = duplicate(&queue);
    let mut receiver = queue.receiver().unwrap();
    assert!(matches!(other.receiver(), Err(QueueError::Attached { .. })));
    let (mut first, mut second) = (other.sender().unwrap(), queue.sender().unwrap());
    assert_eq!((first.index(), second.index()), (0, 1));
    drop((queue, other));
    for n in 0..500 {
        first.push(&[n; 100]).unwrap();
        second.push(&[n + 1_000; 100]).unwrap();
        let mut taken = [(); 2].map(|()| receiver.pop_timeout(MAX_WAIT).unwrap().unwrap()[99]);
        taken.sort_unstable();
        assert_eq!(taken, [n, n + 1_000]);
    }
    let pid = u64::from(std::process::id());
    let states = receiver.producers().unwrap();
    assert_eq!(states, [ProducerState::Alive { pid }, ProducerState::Alive { pid }, ProducerState::Free]);
    let listed = crate::memory::list_segments().unwrap();
    assert!(!listed.iter().any(|name| name.contains("sealed")));
}

#[test]
fn crashed_ends_of_sealed_queue_are_replaced() {
    let mut queue = sealed::<u64>(1, 8).unwrap();
    let mut other = duplicate(&queue);
    let (mut receiver, mut sender) = (queue.receiver().unwrap(), other.sender().unwrap());
    (0..3).for_each(|n| sender.push(&n).unwrap());
    sender.abandon();
    assert_eq!(receiver.pop(), Ok(Some(0)));
    receiver.abandon();
    let mut sender = duplicate(&queue).resume_sender(0).unwrap();
    sender.push(&3).unwrap();
    let mut receiver = other.resume_receiver().unwrap();
    let taken: Vec<u64> = core::iter::from_fn(|| receiver.pop().unwrap()).collect();
    assert_eq!(taken, [1, 2, 3]);
    sender.abandon();
    assert!(receiver.renew(0).unwrap());
    queue.sender().unwrap().push(&4).unwrap();
    assert_eq!(receiver.pop(), Ok(Some(4)));
}

#[test]
fn overwritten_sealed_memory_is_a_fault_and_renewed() {
    let mut queue = sealed::<u64>(1, 8).unwrap();
    let memory = File::from(clone_fds(&queue)[0].try_clone().unwrap());
    let (mut receiver, sender) = (queue.receiver().unwrap(), queue.sender().unwrap());
    let words = Region::map("test", &memory, true).unwrap().words();
    words.iter().for_each(|word| word.store(77, Ordering::Relaxed));
    let fault = receiver.pop().unwrap_err();
    assert!(matches!(fault.fault, PeerFault::InvalidTail { .. }), "{fault}");
    sender.abandon();
    assert!(receiver.renew(0).unwrap(), "headers are not read from memory");
    queue.sender().unwrap().push(&1).unwrap();
    assert_eq!(receiver.pop(), Ok(Some(1)));
}

#[test]
fn descriptors_of_no_queue_are_refused() {
    let refusal = |fds| from_fds::<u64>(fds).map(drop).unwrap_err();
    let assert_refused = |fds, reason: &str| {
        let error = refusal(fds).to_string();
        assert!(error.contains(reason), "{error}");
    };
    let [memory, pipe] = clone_fds(&sealed::<u64>(1, 8).unwrap());
    assert_refused([pipe.try_clone().unwrap(), memory.try_clone().unwrap()], "not anonymous memory");
    let file = || OwnedFd::from(tempfile::tempfile().unwrap());
    let error = refusal([file(), pipe.try_clone().unwrap()]);
    assert!(matches!(error, QueueError::Descriptors(_)), "{error}");
    assert_refused([memory, file()], "not a pipe");
    assert_refused(fds(4096, false), "not sealed");
    assert_refused(fds(64, true), "too short");
    assert_refused(fds(4096, true), "wrong magic");
    let named = spsc::<u64>(&format!("sealed-{}", std::process::id()), 8).unwrap();
    assert!(named.fds().is_none());
}

#[test]
fn unreserved_memory_is_refused() {
    let (_, memory) = Region::memfd_and_file("test", 512, false).unwrap();
    memory.set_len(1 << 40).unwrap();
    sealed::seal_size(&memory).unwrap();
    let pipe = std::io::pipe().unwrap().0.into();
    let error = from_fds::<u64>([memory.into(), pipe]).map(drop).unwrap_err();
    assert!(error.to_string().contains("not reserved"), "{error}");
}

#[test]
fn forged_headers_of_sealed_memory_are_refused() {
    let queue = sealed::<u64>(2, 8).unwrap();
    forged(&queue, |_| ()).expect("an unchanged copy is a queue");
    let refusal = |word: usize, value: u64| {
        forged(&queue, |words| words[word].store(value, Ordering::Relaxed)).unwrap_err()
    };
    let header = |error| match error {
        QueueError::Region(RegionError::Header { source, .. }) => source,
        other => panic!("{other}"),
    };
    assert!(matches!(header(refusal(0, 1)), HeaderError::Magic(1)));
    assert!(matches!(header(refusal(2, 1)), HeaderError::Layout { found: 1, .. }));
    assert!(matches!(header(refusal(3, 136)), HeaderError::TooShort(136)));
    for bytes in [0, 8, 200, u64::MAX] {
        assert!(matches!(header(refusal(3, bytes)), HeaderError::Size { .. }), "{bytes}");
    }
    assert!(matches!(refusal(5, 9), QueueError::Capacity(9)));
    assert!(matches!(refusal(5, 1 << 40), QueueError::Capacity(_)));
    assert!(matches!(header(refusal(5, 16)), HeaderError::Size { .. }));
    let producers = HEADER_WORDS;
    for count in [0, 1, 4, u64::MAX] {
        let error = refusal(producers, count);
        assert!(matches!(error, QueueError::Producers(_) | QueueError::Region(_)), "{count}: {error}");
    }
    assert!(matches!(refusal(producers + 1, 5), QueueError::Technique { .. }));
    assert!(matches!(header(refusal(producers + 2, 16)), HeaderError::Size { .. }));
    assert_eq!(header(refusal(producers + 2, 7)), HeaderError::OtherRun);
    assert!(matches!(refusal(producers + 3, 0), QueueError::Incomplete(_)));
    // The first ring's header: its kind, its size, its run.
    let first = (HEADER_WORDS + 7_usize).next_multiple_of(16);
    for word in [0, 2, 3, 4, 5, 6, 9] {
        header(refusal(first + word, 3));
    }
}

//! Named queues of every technique: leftovers of a dead creator, successors, and unsupported
//! memory. Other tests of named queues are in `shm`.

use shm::memory::header::HEADER_WORDS;
use shm::memory::{Region, SHM_DIR};
use shm::queue::{PREFIX, Queue, QueueError, dead, leftovers, pair, remove};
use shm::ring::array_queue::ArrayQueue;
use shm::ring::spsc_mux::SpscMux;
use shm::ring::{Consumer, Link, LinkSpec, MESSAGE_WORDS, Producer};
use shm::sync::Ordering;
use techniques::channel::Channel;
use techniques::heap::StdMpsc;
use techniques::linked::Linked;
use techniques::pipe::Pipe;
use techniques::unix_seqpacket::UnixSeqpacket;

fn name(suffix: &str) -> String {
    format!("techniques-{}-{suffix}", std::process::id())
}

fn segment_name(queue: &str, suffix: &str) -> String {
    format!("{PREFIX}{queue}.{suffix}")
}

fn files(name: &str) -> usize {
    let names = std::fs::read_dir(SHM_DIR).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|file| file.to_string_lossy().starts_with(&segment_name(name, ""))).count()
}

/// A child of another test holds the lock until it calls `exec`.
fn is_dead_soon(name: &String) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        dead().unwrap().contains(name)
    })
}

#[test]
fn queue_of_dead_creator_is_replaced() {
    fn check<T: Link>() {
        let name = name(T::INFO.name);
        let mut queue = Queue::<T>::create(&name, 2, 8).unwrap();
        // The consumer binds the socket, if there is one.
        let _consumer = queue.consumer().unwrap();
        let file_count = files(&name);
        queue.abandon();
        assert_eq!(files(&name), file_count);
        assert!(is_dead_soon(&name));
        assert_eq!(leftovers(&name).unwrap().len(), file_count);
        assert_eq!(files(&name), file_count, "leftovers are only listed");
        // Listing them held the lock for a moment.
        assert!(is_dead_soon(&name));
        let replacement = Queue::<T>::create(&name, 1, 16).unwrap();
        assert!(!dead().unwrap().contains(&name));
        replacement.abandon();
        assert!(is_dead_soon(&name));
        assert_eq!(remove(&name).unwrap().last(), Some(&segment_name(&name, "about")));
        assert_eq!(files(&name), 0, "{}", T::INFO.name);
        assert!(remove(&name).unwrap().is_empty());
    }
    check::<SpscMux>();
    check::<ArrayQueue>();
    check::<Linked>();
    check::<Channel>();
    check::<Pipe>();
    check::<UnixSeqpacket>();
}

/// A producer overwrites all memory that it has mapped, except the shared memory of messages, and
/// dies.
#[test]
fn successor_attaches_after_dead_producer_overwrote_memory() {
    fn check<T: Link>() {
        let name = name(&format!("scribbled-{}", T::INFO.name));
        let mut queue = Queue::<T>::create(&name, 2, 8).unwrap();
        let mut consumer = queue.consumer().unwrap();
        let mut opened = Queue::<T>::open(&name).unwrap();
        let mut dies = opened.producer(0).unwrap();
        let mut lives = queue.producer(1).unwrap();
        dies.try_push(&[1; MESSAGE_WORDS]).unwrap();
        assert_eq!(consumer.try_pop().map(|(_, message)| message), Some([1; MESSAGE_WORDS]));
        drop(dies);
        let words = |suffix: &str| Region::open(&segment_name(&name, suffix)).unwrap().words();
        for spec in T::segments(&LinkSpec { name: "queue", producers: 2, capacity: 8 }) {
            let words = words(&spec.name);
            let count = if spec.ends.only == Some(0) { words.len() } else { HEADER_WORDS };
            words[..count].iter().for_each(|word| word.store(!0 >> 7, Ordering::Relaxed));
        }
        words("about").iter().for_each(|word| word.store(!0, Ordering::Relaxed));
        drop(opened);
        assert!(Queue::<T>::open(&name).is_err(), "no new process can attach");
        // A ring with invalid sequences is abandoned; the retirement does not wait for it.
        let mut tries = 0;
        while !queue.renew(0, &mut consumer).unwrap() {
            assert_eq!(consumer.try_pop(), None);
            tries += 1;
            assert!(tries < 1000, "the retirement does not end");
        }
        let mut successor = Queue::<T>::open(&name).unwrap().producer(0).unwrap();
        let _ = consumer.take_fault();
        for n in 0..20 {
            for (producer, words) in [(&mut successor, [n; 7]), (&mut lives, [n + 100; 7])] {
                producer.try_push(&words).unwrap();
                assert_eq!(consumer.try_pop().map(|(_, message)| message), Some(words), "{}", T::INFO.name);
            }
        }
        assert_eq!((consumer.try_pop(), consumer.take_fault()), (None, None));
    }
    check::<SpscMux>();
    check::<ArrayQueue>();
    check::<Linked>();
    check::<Channel>();
}

#[test]
fn queue_in_unsupported_memory_is_refused() {
    assert!(matches!(pair::<Pipe>(8), Err(QueueError::Home { technique: "pipe", .. })));
    assert!(matches!(Queue::<StdMpsc>::create(&name("heap"), 1, 8), Err(QueueError::Home { .. })));
}

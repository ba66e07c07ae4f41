//! Queues by name: which one owns a name, what is removed, who can attach. What holds for every
//! technique is tested in the crate `techniques`.
//!
//! A handle that is abandoned leaves what a dead creator leaves. Its id and start time in the
//! headers are those of a living process, this one, as if the id had been given to another process
//! since.

use super::descriptor::{self, AttachedPeers, DESCRIPTOR};
use super::names::segment_name;
use super::*;
use crate::attached::Peers as _;
use crate::memory::{fifo, unlink};
use crate::ring::Consumer;
use crate::ring::array_queue::ArrayQueue;
use crate::ring::spsc_mux::SpscMux;
use crate::sync::Ordering;
use std::path::{Path, PathBuf};

fn name(what: &str) -> String {
    format!("unit-{}-{what}", std::process::id())
}

fn path(file: &str) -> PathBuf {
    Path::new(crate::memory::SHM_DIR).join(file)
}

fn files(name: &str) -> usize {
    let names = std::fs::read_dir(crate::memory::SHM_DIR).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|file| file.to_string_lossy().starts_with(&segment_name(name, ""))).count()
}

#[test]
fn peers_of_a_queue_are_the_processes_at_its_ends() {
    let mut queue = Queue::<ArrayQueue>::create(&name("peers"), 2, 8).unwrap();
    let peers = AttachedPeers { words: queue.words.clone(), producers: queue.producers() };
    assert_eq!([peers.consumer(), peers.producer(0), peers.producer(1)], [None; 3]);
    let _ends = (queue.consumer().unwrap(), queue.producer(1).unwrap());
    let own = Some(std::process::id());
    assert_eq!(
        [peers.consumer(), peers.producer(0), peers.producer(1), peers.producer(2)],
        [own, None, own, None]
    );
}

#[test]
fn named_queue_connects_handles_until_creator_drops() {
    let name = name("one");
    let mut created = Queue::<ArrayQueue>::create(&name, 2, 8).unwrap();
    assert!(Queue::<ArrayQueue>::create(&name, 2, 8).is_err(), "a living creator has the name");
    let mut opened = Queue::<ArrayQueue>::open(&name).unwrap();
    assert_eq!(opened.producers(), 2);
    let (mut consumer, mut producer) = (created.consumer().unwrap(), opened.producer(1).unwrap());
    assert!(matches!(opened.producer(2), Err(QueueError::Producer { index: 2, producers: 2 })));
    producer.try_push(&[7; 7]).unwrap();
    assert_eq!(consumer.try_pop(), Some((None, [7; 7])));
    assert!(matches!(Queue::<SpscMux>::open(&name), Err(QueueError::Technique { .. })));
    drop(opened);
    assert!(files(&name) > 0);
    drop(created);
    assert_eq!(files(&name), 0);
    producer.try_push(&[8; 7]).unwrap();
    assert_eq!(consumer.try_pop(), Some((None, [8; 7])), "attached ends continue");
}

#[test]
fn each_end_is_attached_once() {
    let name = name("ends");
    let mut created = Queue::<SpscMux>::create(&name, 2, 8).unwrap();
    let mut opened = Queue::<SpscMux>::open(&name).unwrap();
    let (_consumer, _producer) = (created.consumer().unwrap(), opened.producer(1).unwrap());
    let me = u64::from(std::process::id());
    assert!(
        matches!(created.producer(1), Err(QueueError::Attached { end, pid }) if end == "producer 1" && pid == me)
    );
    assert!(
        matches!(opened.consumer(), Err(QueueError::Attached { end, pid }) if end == "consumer" && pid == me)
    );
    opened.producer(0).unwrap();
    opened.resume_consumer().unwrap();
}

/// The creator's process id is unknown here, as in another PID namespace.
#[test]
fn queue_of_live_creator_stays_despite_unknown_pid() {
    let name = name("unknown");
    let queue = Queue::<SpscMux>::create(&name, 1, 8).unwrap();
    queue.words[7].store(0x7fff_fff0, Ordering::Relaxed);
    queue.words[8].store(1, Ordering::Relaxed);
    let file_count = files(&name);
    assert!(matches!(remove(&name), Err(QueueError::Living(_))));
    assert!(matches!(Queue::<SpscMux>::create(&name, 1, 8), Err(QueueError::Living(_))));
    assert!(!dead().unwrap().contains(&name));
    assert_eq!(files(&name), file_count);
}

#[test]
fn queue_of_dead_creator_is_listed_until_removed() {
    let name = name("listed");
    Queue::<SpscMux>::create(&name, 1, 8).unwrap().abandon();
    assert!(dead().unwrap().contains(&name));
    remove(&name).unwrap();
    assert!(!dead().unwrap().contains(&name));
}

#[test]
fn half_created_queue_is_removed_by_next_creator() {
    let name = name("half");
    let mut queue = Queue::<SpscMux>::create(&name, 2, 8).unwrap();
    queue.words[descriptor::READY].store(0, Ordering::Relaxed);
    unlink(&queue.names.pop().unwrap()).unwrap();
    queue.abandon();
    assert!(matches!(Queue::<SpscMux>::open(&name), Err(QueueError::Incomplete(_))));
    drop(Queue::<SpscMux>::create(&name, 2, 8).unwrap());
    assert_eq!(files(&name), 0);
}

/// `remove("bulkhead")` removed the segments of all living runs, `remove("sem")` the semaphores of
/// other programs.
#[test]
fn other_programs_files_with_prefix_stay() {
    let (name, long) = (name("sem"), name("sem-2"));
    let living = Queue::<SpscMux>::create(&long, 1, 8).unwrap();
    let semaphore = path(&format!("{name}.test"));
    std::fs::write(&semaphore, "a semaphore").unwrap();
    // Also where a queue of the name has died.
    Queue::<SpscMux>::create(&name, 1, 8).unwrap().abandon();
    assert_eq!(remove(&name).unwrap().len(), 3);
    assert!(remove(&name).unwrap().is_empty());
    assert!(semaphore.exists() && files(&long) == 3);
    drop(living);
    std::fs::remove_file(semaphore).unwrap();
}

/// Under the names of a dead queue's files: another program's file, a FIFO, a link to the real
/// segment, and a segment of another queue.
#[test]
fn foreign_files_under_queue_names_stay() {
    let (name, other) = (name("strange"), name("stranger"));
    Queue::<SpscMux>::create(&name, 4, 8).unwrap().abandon();
    let other = Queue::<SpscMux>::create(&other, 4, 8).unwrap();
    let segment = |what: &str| path(&segment_name(&name, what));
    let replaced = ["queue-0", "queue-1", "queue-2", "queue-3"];
    let kept = path(&format!("{name}.kept"));
    std::fs::rename(segment("queue-2"), &kept).unwrap();
    for what in ["queue-0", "queue-1", "queue-3"] {
        std::fs::remove_file(segment(what)).unwrap();
    }
    std::fs::write(segment("queue-0"), "of another program ".repeat(100)).unwrap();
    fifo::create(&segment_name(&name, "queue-1")).unwrap();
    std::os::unix::fs::symlink(&kept, segment("queue-2")).unwrap();
    std::fs::copy(path(&other.names[6]), segment("queue-3")).unwrap();
    let unlisted = segment("notes");
    std::fs::write(&unlisted, "notes").unwrap();
    let removed = remove(&name).unwrap();
    assert_eq!(removed.len(), 5, "four heads and the list: {removed:?}");
    assert!(replaced.iter().all(|what| segment(what).symlink_metadata().is_ok()) && unlisted.exists());
    // It is in the way, and named.
    let error = Queue::<SpscMux>::create(&name, 4, 8).map(drop).unwrap_err().to_string();
    assert!(error.contains(&segment_name(&name, "queue-0")) && error.contains("exists"), "{error}");
    assert_eq!(files(&name), 5, "a failed creation leaves nothing of its own");
    for what in replaced {
        std::fs::remove_file(segment(what)).unwrap();
    }
    [unlisted, kept].iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

/// As the name of a queue that was removed by hand and made again by another program.
#[test]
fn dropped_queue_leaves_its_successor_of_same_name() {
    let name = name("again");
    let first = Queue::<SpscMux>::create(&name, 1, 8).unwrap();
    first.names.iter().chain([&segment_name(&name, DESCRIPTOR)]).for_each(|file| unlink(file).unwrap());
    let second = Queue::<SpscMux>::create(&name, 1, 8).unwrap();
    drop(first);
    assert_eq!(files(&name), 3);
    drop(second);
    assert_eq!(files(&name), 0);
}

#[test]
fn invalid_queue_parameters_are_refused() {
    assert!(matches!(pair::<ArrayQueue>(3), Err(QueueError::Capacity(3))));
    for producers in [0, MAX_PRODUCERS + 1] {
        let refused = Queue::<ArrayQueue>::on_heap(producers, 8);
        assert!(matches!(refused, Err(QueueError::Producers(count)) if count == producers));
    }
    assert!(matches!(Queue::<ArrayQueue>::create("../etc", 1, 8), Err(QueueError::Name(_))));
    assert!(matches!(Queue::<ArrayQueue>::open(&name("none")), Err(QueueError::NotFound(_))));
}

//! Queues without a run: between the threads of a process, or under a name in `/dev/shm` between processes.
//!
//! Between threads, on the heap:
//!
//! ```
//! use shm::queue;
//! use shm::ring::array_queue::ArrayQueue;
//! use shm::ring::{Consumer, Producer};
//!
//! let (mut producer, mut consumer) = queue::pair::<ArrayQueue>(64)?;
//! producer.try_push(&[1, 2, 3, 4, 5, 6, 7])?;
//! assert_eq!(consumer.try_pop(), Some((None, [1, 2, 3, 4, 5, 6, 7])));
//! assert_eq!(consumer.try_pop(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Between processes, by name. The creator's [`Queue`] removes the name when it is dropped; whoever has attached goes on with
//! the memory that it has:
//!
//! ```
//! use shm::queue::Queue;
//! use shm::ring::spsc_mux::SpscMux;
//! use shm::ring::{Consumer, Producer};
//!
//! let name = format!("doc-{}", std::process::id());
//! let mut ours = Queue::<SpscMux>::create(&name, 2, 64)?;
//! let mut consumer = ours.consumer()?;
//! // In another process:
//! let mut theirs = Queue::<SpscMux>::open(&name)?;
//! theirs.producer(1)?.try_push(&[7; 7])?;
//! assert_eq!(consumer.try_pop(), Some((Some(1), [7; 7])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! - **Messages** are seven words. What a push has returned `Ok` for comes out once, whole, and in the order of its producer's
//!   pushes; between producers there is no order. The kernel's techniques are `pipe` and `unix-seqpacket`, with the same promise.
//! - **Several at once**: [`try_push_many`](crate::ring::Producer::try_push_many) takes the first ones of a slice, as many as there is room
//!   for; [`drain`](crate::ring::Consumer::drain) gives what is there, up to a number. They promise what that many pushes and pops
//!   promise. A producer that dies in a batch has pushed the first ones of it or none; a consumer that dies in a drain leaves messages of it to its successor.
//! - **Memory ordering**: what a producer did before its push happens before what the consumer does after the pop that gives the
//!   message (Release and Acquire). What the consumer did before a pop that made room happens before what the producer does
//!   after the push that uses it, except through the kernel. Nothing is promised about a push that returned `Full` or a pop that returned `None`.
//! - **Nothing blocks**, allocates or panics in a push or a pop, whatever the peers wrote. `array-queue`, `linked` and `channel`
//!   are lock-free between living producers; a producer that stops between its claim and its message holds up what is behind it
//!   until it goes on or is retired. In `spsc-mux` it holds up nobody.
//! - **A producer that dies**: call [`Consumer::retire`](crate::ring::Consumer::retire) when its death is certain (it was reaped),
//!   never because it is slow. [`crate::containment`] says for each technique what is lost then: at most the message that it was pushing.
//! - **One thread an end, one end of each**: a second [`Queue::producer`] of the same index, or a second consumer, while the
//!   first is in use, is a mistake that the types do not see. It is no undefined behaviour (all is atomic words), but
//!   messages get lost or doubled.
//!
//! `shm/examples/two_processes.rs` is a whole program. A process that attaches maps the memory of all, and whoever may write it
//! may damage it: rights for each process are for a run to give, see the crate `protocol`.

use crate::attached::{Access, Attached, Source};
use crate::memory::header::{HEADER_WORDS, run_hash};
use crate::memory::sealed::Handle;
use crate::memory::{Header, Region, RegionError, SegmentKind};
use crate::memory::{SHM_DIR, folder, unlink};
use crate::named::fifo;
use crate::os::process;
use crate::ring::{Ends, Home, Link, LinkSpec, SegmentPlace, SegmentSpec, Technique};
use crate::sync::Ordering;
use core::marker::PhantomData;
use thiserror::Error;

/// What says that a queue is there and complete, and what it is: written last, read first.
const KIND: SegmentKind =
    SegmentKind::new(32, "queue", &[("producers", PRODUCERS), ("technique", TECHNIQUE)]);
const PRODUCERS: usize = HEADER_WORDS;
const TECHNIQUE: usize = PRODUCERS + 1;
/// The name of that segment within the queue.
const ABOUT: &str = "about";

/// The most producers of a queue: what `linked` has bits for, to know whose a block is.
pub const MAX_PRODUCERS: usize = 1 << 10;

/// Why there is no queue.
#[derive(Debug, Error)]
pub enum QueueError {
    /// A name that cannot be one.
    #[error("{0:?} is no name for a queue: 1 to 64 characters of a-z, A-Z, 0-9, - and _")]
    Name(String),
    /// A number of producers that queues do not have.
    #[error("{0} producers: queues take 1 to {MAX_PRODUCERS}")]
    Producers(usize),
    /// A capacity that queues do not have.
    #[error("capacity {0}: queues take a power of two from 2 to 1048576")]
    Capacity(u32),
    /// A technique that cannot be there.
    #[error("{technique} cannot be {where_}")]
    Home {
        /// The technique.
        technique: &'static str,
        /// Where it was wanted.
        where_: &'static str,
    },
    /// Another technique's queue has the name.
    #[error("the queue {name} is of another technique than {technique}")]
    Technique {
        /// The queue's name.
        name: String,
        /// What was asked for.
        technique: &'static str,
    },
    /// A producer that the queue was not made for.
    #[error("producer {index}: the queue was made for {producers}")]
    Producer {
        /// Who was asked for.
        index: usize,
        /// How many there are.
        producers: usize,
    },
    /// A segment that cannot be made or attached.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// One producer's end and the consumer's, on the heap.
///
/// # Errors
/// [`QueueError::Capacity`]; [`QueueError::Home`] for a technique of the kernel's or somebody else's.
pub fn pair<T: Link>(capacity: u32) -> Result<(T::Producer, T::Consumer), QueueError> {
    let mut queue = Queue::<T>::on_heap(1, capacity)?;
    // The consumer first: a socket is bound by it.
    let consumer = queue.consumer()?;
    Ok((queue.producer(0)?, consumer))
}

/// A queue of one technique, from which its ends are attached: one consumer, and one of each producer, at a time.
pub struct Queue<T: Link> {
    attached: Attached<'static>,
    spec: LinkSpec<'static>,
    /// What to remove when this is dropped.
    names: Vec<String>,
    technique: PhantomData<T>,
}

/// Where the segments of a queue are.
struct Names(String);

impl Source for Names {
    fn name(&self, what: &str) -> String {
        format!("{}.{what}", self.0)
    }

    fn run(&self) -> u64 {
        run_hash(&self.0)
    }

    fn right(&self, _: &str) -> Option<Access> {
        Some(Access::Write)
    }

    fn handles(&self) -> &[Handle] {
        &[]
    }
}

fn check_name(name: &str) -> Result<(), QueueError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_good = (1..=64).contains(&name.len()) && name.bytes().all(good);
    if is_good { Ok(()) } else { Err(QueueError::Name(name.into())) }
}

fn header(name: &str, spec: &SegmentSpec) -> Header {
    let creator = std::process::id();
    Header {
        kind: spec.kind,
        bytes: spec.words as u64 * 8,
        capacity: spec.capacity,
        slot_words: spec.slot_words,
        creator_pid: creator,
        creator_start: process::start_time(creator).unwrap_or(0),
        run: run_hash(name),
        index: spec.index,
    }
}

impl<T: Link> Queue<T> {
    fn new(name: &str, producers: usize, capacity: u32) -> Result<Self, QueueError> {
        if !capacity.is_power_of_two() || !(2..=1 << 20).contains(&capacity) {
            return Err(QueueError::Capacity(capacity));
        }
        if !(1..=MAX_PRODUCERS).contains(&producers) {
            return Err(QueueError::Producers(producers));
        }
        let spec = LinkSpec { name: "queue", producers, capacity };
        let attached = Attached::new(Names(name.into()));
        Ok(Self { attached, spec, names: Vec::new(), technique: PhantomData })
    }

    /// A queue for so many producers on the heap of this process, with room for `capacity` messages: in all, or of each
    /// producer where each has a ring of its own.
    ///
    /// # Errors
    /// [`QueueError::Capacity`]; [`QueueError::Producers`]; [`QueueError::Home`] for a technique of the kernel's or somebody
    /// else's.
    pub fn on_heap(producers: usize, capacity: u32) -> Result<Self, QueueError> {
        if matches!(T::RECORD.home, Home::Kernel | Home::Foreign) {
            return Err(QueueError::Home { technique: T::RECORD.name, where_: "on the heap" });
        }
        let mut queue = Self::new("heap", producers, capacity)?;
        for spec in T::segments(&queue.spec) {
            let region = Region::heap(spec.words);
            header("heap", &spec).write(&region.words());
            queue.attached.adopt(&spec.what, region);
        }
        Ok(queue)
    }

    /// A queue under that name in `/dev/shm`, which any process of this user can open. What a dead creator has left under the
    /// name is removed first.
    ///
    /// # Errors
    /// A name that is none, or that a living creator has; [`QueueError::Capacity`]; [`QueueError::Producers`]; [`QueueError::Home`] for a technique
    /// on the heap; too little room. Nothing is left behind then.
    pub fn create(name: &str, producers: usize, capacity: u32) -> Result<Self, QueueError> {
        check_name(name)?;
        if T::RECORD.home == Home::Heap {
            return Err(QueueError::Home { technique: T::RECORD.name, where_: "shared by processes" });
        }
        let mut queue = Self::new(name, producers, capacity)?;
        remove_dead(name);
        for spec in T::segments(&queue.spec) {
            let full = queue.attached.name(&spec.what);
            match spec.place {
                SegmentPlace::Memory => {
                    header(name, &spec).write(&Region::create(&full, spec.words)?.words())
                }
                SegmentPlace::Reserve => {
                    header(name, &spec).write(&Region::create_reserve(&full, spec.words)?.words())
                }
                SegmentPlace::Fifo => fifo::create(&full)?,
                SegmentPlace::Socket => {}
                SegmentPlace::Folder => folder::create(&full)?,
            }
            queue.names.push(full);
        }
        let about = SegmentSpec {
            what: ABOUT.into(),
            place: SegmentPlace::Memory,
            words: TECHNIQUE + 1,
            kind: KIND,
            capacity: capacity.into(),
            slot_words: 0,
            index: 0,
            ends: Ends::NONE,
        };
        let full = queue.attached.name(ABOUT);
        let words = Region::create(&full, about.words)?.words();
        queue.names.push(full);
        // Relaxed: the header's magic (Release) shows them.
        words[PRODUCERS].store(producers as u64, Ordering::Relaxed);
        words[TECHNIQUE].store(run_hash(T::RECORD.name), Ordering::Relaxed);
        header(name, &about).write(&words);
        Ok(queue)
    }

    /// The queue that another process has created under that name.
    ///
    /// # Errors
    /// There is none, or not yet; it is of another technique, or of another build's layout; or its words say what no creator
    /// writes.
    pub fn open(name: &str) -> Result<Self, QueueError> {
        check_name(name)?;
        let full = Names(name.into()).name(ABOUT);
        let view = Region::open_read_only(&full)?;
        let header = Header::read(|i, ordering| view.load(i, ordering), view.len(), KIND)
            .map_err(|source| RegionError::Header { name: full, source })?;
        // Words of which somebody else may have made anything: the technique and the headers are checked where they are used.
        let word = |word: usize| if word < view.len() { view.load(word, Ordering::Relaxed) } else { 0 };
        if word(TECHNIQUE) != run_hash(T::RECORD.name) {
            return Err(QueueError::Technique { name: name.into(), technique: T::RECORD.name });
        }
        let capacity = u32::try_from(header.capacity).unwrap_or(u32::MAX);
        let producers = word(PRODUCERS).min(u64::from(u16::MAX)) as usize;
        Self::new(name, producers, capacity)
    }

    /// Its technique.
    pub fn technique(&self) -> Technique {
        Technique::of::<T>()
    }

    /// How many producers it was made for.
    pub fn producers(&self) -> usize {
        self.spec.producers
    }

    /// The sending end of that producer. Ask for it once, in one process: see the module's promises.
    ///
    /// # Errors
    /// [`QueueError::Producer`]; memory that is not there or damaged.
    pub fn producer(&mut self, index: usize) -> Result<T::Producer, QueueError> {
        let producers = self.spec.producers;
        if index >= producers {
            return Err(QueueError::Producer { index, producers });
        }
        Ok(T::producer(&self.spec, index, &mut self.attached)?)
    }

    /// The receiving end, from the queue's beginning. Ask for it once; in the place of one that has died: [`Queue::resume`].
    ///
    /// # Errors
    /// Memory that is not there or damaged.
    pub fn consumer(&mut self) -> Result<T::Consumer, QueueError> {
        Ok(T::consumer(&self.spec, &mut self.attached)?)
    }

    /// A receiving end in the place of one that has died: see [`Link::resume`].
    ///
    /// # Errors
    /// As [`Queue::consumer`]; a technique whose consumer cannot be replaced.
    pub fn resume(&mut self) -> Result<T::Consumer, QueueError> {
        Ok(T::resume(&self.spec, &mut self.attached)?)
    }
}

impl<T: Link> Drop for Queue<T> {
    fn drop(&mut self) {
        for name in &self.names {
            // A name that cannot be removed is left, and the next creator of the queue removes it.
            let _ = unlink(name);
        }
    }
}

/// Removes what a queue of that name has left, if its creator is dead.
fn remove_dead(name: &str) {
    let Ok(about) = Region::open_read_only(&Names(name.into()).name(ABOUT)) else { return };
    let Ok(header) = Header::read(|i, ordering| about.load(i, ordering), about.len(), KIND) else { return };
    if process::start_time(header.creator_pid) == Some(header.creator_start) {
        return;
    }
    let _ = remove(name);
}

/// Removes every segment of the queue of that name, whoever may still use it: for what a creator that was killed has left.
/// How many they were.
///
/// # Errors
/// What the system refused; a name that is none.
pub fn remove(name: &str) -> std::io::Result<usize> {
    check_name(name).map_err(std::io::Error::other)?;
    let prefix = format!("{name}.");
    let mut removed = 0;
    for entry in std::fs::read_dir(SHM_DIR)? {
        let Ok(found) = entry?.file_name().into_string() else { continue };
        if found.starts_with(&prefix) {
            unlink(&found)?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use crate::ring::Consumer;
    use crate::ring::array_queue::ArrayQueue;
    use crate::ring::pipe::Pipe;
    use crate::ring::spsc_mux::SpscMux;
    use crate::ring::std_mpsc::StdMpsc;

    fn name(what: &str) -> String {
        format!("bulkhead-unit-{}-{what}", std::process::id())
    }

    fn left(name: &str) -> usize {
        let names = std::fs::read_dir(SHM_DIR).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|found| found.to_string_lossy().starts_with(&format!("{name}."))).count()
    }

    #[test]
    fn a_named_queue_is_one_queue_and_goes_with_its_creator() {
        let name = name("one");
        let mut ours = Queue::<ArrayQueue>::create(&name, 2, 8).unwrap();
        assert!(Queue::<ArrayQueue>::create(&name, 2, 8).is_err(), "a living creator has the name");
        let mut theirs = Queue::<ArrayQueue>::open(&name).unwrap();
        assert_eq!(theirs.producers(), 2);
        let (mut consumer, mut producer) = (ours.consumer().unwrap(), theirs.producer(1).unwrap());
        assert!(matches!(theirs.producer(2), Err(QueueError::Producer { index: 2, producers: 2 })));
        producer.try_push(&[7; 7]).unwrap();
        assert_eq!(consumer.try_pop(), Some((None, [7; 7])));
        assert!(matches!(Queue::<SpscMux>::open(&name), Err(QueueError::Technique { .. })));
        drop(theirs);
        assert!(left(&name) > 0);
        drop(ours);
        assert_eq!(left(&name), 0);
        producer.try_push(&[8; 7]).unwrap();
        assert_eq!(consumer.try_pop(), Some((None, [8; 7])), "who is attached goes on");
    }

    #[test]
    fn what_a_dead_creator_left_is_removed() {
        let name = name("dead");
        let queue = Queue::<SpscMux>::create(&name, 1, 8).unwrap();
        // As a creator leaves it that was killed: its names stay, and nobody has its id and start any more.
        let about = Region::open(&queue.attached.name(ABOUT)).unwrap().words();
        about[8].store(1, Ordering::Relaxed);
        std::mem::forget(queue);
        assert!(left(&name) > 0);
        drop(Queue::<SpscMux>::create(&name, 1, 8).unwrap());
        assert_eq!(left(&name), 0);
        assert_eq!(remove(&name).unwrap(), 0);
    }

    #[test]
    fn what_cannot_be_is_named() {
        assert!(matches!(pair::<ArrayQueue>(3), Err(QueueError::Capacity(3))));
        for producers in [0, MAX_PRODUCERS + 1] {
            let refused = Queue::<ArrayQueue>::on_heap(producers, 8);
            assert!(matches!(refused, Err(QueueError::Producers(count)) if count == producers));
        }
        assert!(matches!(pair::<Pipe>(8), Err(QueueError::Home { technique: "pipe", .. })));
        assert!(matches!(Queue::<StdMpsc>::create(&name("heap"), 1, 8), Err(QueueError::Home { .. })));
        assert!(matches!(Queue::<ArrayQueue>::create("../etc", 1, 8), Err(QueueError::Name(_))));
        assert!(matches!(Queue::<ArrayQueue>::open(&name("none")), Err(QueueError::Region(_))));
    }
}

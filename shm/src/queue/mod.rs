//! Queues without a run: between the threads of a process, or under a name in `/dev/shm` between
//! processes.
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
//! Between processes, by name. The creator's [`Queue`] removes the name when it is dropped; whoever
//! has attached goes on with the memory that it has:
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
//! - **Messages** are seven words. What a push has returned `Ok` for comes out once, whole, and in
//!   the order of its producer's pushes; between producers there is no order. The kernel's
//!   techniques are `pipe` and `unix-seqpacket`, with the same promise.
//! - **Several at once**: [`try_push_many`](crate::ring::Producer::try_push_many) takes the first
//!   ones of a slice, as many as there is room for; [`drain`](crate::ring::Consumer::drain) gives
//!   what is there, up to a number. They promise what that many pushes and pops promise. A producer
//!   that dies in a batch has pushed the first ones of it or none; a consumer that dies in a drain
//!   leaves messages of it to its successor.
//! - **Memory ordering**: what a producer did before its push happens before what the consumer does
//!   after the pop that gives the message (Release and Acquire). What the consumer did before a pop
//!   that made room happens before what the producer does after the push that uses it, except
//!   through the kernel. Nothing is promised about a push that returned `Full` or a pop that
//!   returned `None`.
//! - **Nothing blocks**, allocates or panics in a push or a pop, whatever the peers wrote.
//!   `array-queue`, `linked` and `channel` are lock-free between living producers; a producer that
//!   stops between its claim and its message holds up what is behind it until it goes on or is
//!   retired. In `spsc-mux` it holds up nobody.
//! - **A producer that dies**: see "A successor" below. `techniques::containment` says for each
//!   technique what is lost then: at most the message that it was pushing.
//! - **One thread an end, one of each end**: [`Queue::producer`] and [`Queue::consumer`] attach an
//!   end once ([`QueueError::Attached`]). A producer's end comes back with [`Queue::renew`], the
//!   consumer's with [`Queue::resume`].
//!
//! # A successor of a dead producer
//!
//! 1. Its death is certain: it was reaped ([`std::process::Child::wait`]), or its end was dropped.
//!    A slow producer is not dead, and no time-out makes it so.
//! 2. The process that has the consumer calls [`Queue::renew`] until it returns `true`, and pops
//!    between the calls. Messages that the dead producer had published come out; then its end of
//!    the queue is as new.
//! 3. A successor attaches the same index with [`Queue::producer`]. Before `renew` has returned
//!    `true` that is refused.
//!
//! ```
//! use shm::queue::{Queue, QueueError};
//! use shm::ring::spsc_mux::SpscMux;
//! use shm::ring::{Consumer, Producer};
//!
//! let name = format!("doc-successor-{}", std::process::id());
//! let mut queue = Queue::<SpscMux>::create(&name, 1, 8)?;
//! let mut consumer = queue.consumer()?;
//! let mut taken = Vec::new();
//!
//! // In another process, which dies with a message in the queue:
//! let mut dies = Queue::<SpscMux>::open(&name)?.producer(0)?;
//! dies.try_push(&[1; 7])?;
//! drop(dies);
//!
//! // A successor that is too early is refused.
//! assert!(matches!(Queue::<SpscMux>::open(&name)?.producer(0), Err(QueueError::Attached { .. })));
//! while !queue.renew(0, &mut consumer)? {
//!     taken.extend(consumer.try_pop());
//! }
//! let mut successor = Queue::<SpscMux>::open(&name)?.producer(0)?;
//! successor.try_push(&[2; 7])?;
//! taken.extend(consumer.try_pop());
//! assert_eq!(taken, [(Some(0), [1; 7]), (Some(0), [2; 7])]);
//! assert_eq!((consumer.try_pop(), consumer.take_fault()), (None, None));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The dead producer could write to all that it had mapped, headers too. Each [`Queue`] keeps the
//! geometry that it was made or opened with, and `renew` restores every header from it: a successor
//! is not refused because of what its predecessor wrote. Messages that were overwritten stay
//! overwritten, see `techniques::containment`.
//!
//! # Names
//!
//! A queue's files in `/dev/shm` begin with `bulkhead-queue.NAME.`. Its creator holds a lock for as
//! long as its [`Queue`] exists; the kernel releases the lock when the process dies.
//! [`Queue::create`] and [`remove`] remove the files of a queue that nobody has locked, each one
//! only if it is what the queue made of it. The queue of a living creator is never removed by them.
//!
//! `shm/examples/two_processes.rs` and `techniques/examples/successor.rs` are whole programs. A
//! process that attaches maps the memory of all, and whoever may write it may damage it: rights for
//! each process are for a run to give, see the crate `protocol`.

mod descriptor;
mod error;
mod leftovers;
#[cfg(all(test, not(miri)))]
mod tests;

pub use error::QueueError;
pub use leftovers::{dead, leftovers, remove};

use crate::attached::{Access, Attached, Peers, Source};
use crate::memory::header::{HEADER_WORDS, run_hash};
use crate::memory::owned::OwnedSegment;
use crate::memory::sealed::Handle;
use crate::memory::{AtomicWords, Region, RegionError, directory, fifo, unlink};
use crate::ring::{Consumer, Home, Link, LinkSpec, SegmentPlace, SegmentSpec};
use crate::sync::Ordering;
use core::marker::PhantomData;
use descriptor::{AttachedPeers, DESCRIPTOR, ListedFile, QueueDescriptor, QueueEnd};

/// The prefix of the names of all files of all queues in `/dev/shm`; the queue's name and a dot
/// follow.
pub const PREFIX: &str = "bulkhead-queue.";

/// The most producers of a queue: what `linked` has bits for, to know whose a block is.
pub const MAX_PRODUCERS: usize = 1 << 10;

/// One producer's end and the consumer's, on the heap.
///
/// # Errors
/// [`QueueError::Capacity`]; [`QueueError::Home`] for a technique of the kernel's or somebody
/// else's.
pub fn pair<T: Link>(capacity: u32) -> Result<(T::Producer, T::Consumer), QueueError> {
    let mut queue = Queue::<T>::on_heap(1, capacity)?;
    // The consumer first: a socket is bound by it.
    let consumer = queue.consumer()?;
    Ok((queue.producer(0)?, consumer))
}

/// A queue of one technique, from which its ends are attached: one consumer, and one of each
/// producer, at a time.
pub struct Queue<T: Link> {
    /// `None` on the heap.
    name: Option<String>,
    attached: Attached<'static>,
    spec: LinkSpec<'static>,
    /// What the queue is, from when this handle was made: its memory may say something else by now.
    descriptor: QueueDescriptor,
    words: AtomicWords,
    /// The lock of the creator, and the files to remove when this is dropped.
    owned: Option<OwnedSegment>,
    names: Vec<String>,
    technique: PhantomData<T>,
}

/// Where the segments of a queue are, and who has attached to it.
struct QueueSource {
    queue: String,
    words: AtomicWords,
    producers: usize,
}

impl Source for QueueSource {
    fn name(&self, what: &str) -> String {
        segment_name(&self.queue, what)
    }

    fn run(&self) -> u64 {
        run_hash(&self.queue)
    }

    fn right(&self, _: &str) -> Option<Access> {
        Some(Access::Write)
    }

    fn handles(&self) -> &[Handle] {
        &[]
    }

    fn peers(&self, _: &str) -> Box<dyn Peers> {
        Box::new(AttachedPeers { words: self.words.clone(), producers: self.producers })
    }
}

/// The full name of a queue's segment in `/dev/shm`.
fn segment_name(queue: &str, what: &str) -> String {
    format!("{PREFIX}{queue}.{what}")
}

fn check_name(name: &str) -> Result<(), QueueError> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_good = (1..=64).contains(&name.len()) && name.bytes().all(good);
    if is_good { Ok(()) } else { Err(QueueError::Name(name.into())) }
}

/// What a queue of that technique, name and size is.
fn describe<T: Link>(name: &str, producers: usize, capacity: u32) -> Result<QueueDescriptor, QueueError> {
    if !capacity.is_power_of_two() || !(2..=1 << 20).contains(&capacity) {
        return Err(QueueError::Capacity(capacity));
    }
    if !(1..=MAX_PRODUCERS).contains(&producers) {
        return Err(QueueError::Producers(producers));
    }
    Ok(QueueDescriptor::new(name, T::INFO.name, producers, capacity))
}

const fn link_spec(producers: usize, capacity: u32) -> LinkSpec<'static> {
    LinkSpec { name: "queue", producers, capacity }
}

impl<T: Link> Queue<T> {
    fn new(name: &str, capacity: u32, descriptor: QueueDescriptor, words: AtomicWords) -> Self {
        let spec = link_spec(descriptor.producers, capacity);
        let names = QueueSource { queue: name.into(), words: words.clone(), producers: descriptor.producers };
        let attached = Attached::new(names);
        let technique = PhantomData;
        Self { name: None, attached, spec, descriptor, words, owned: None, names: Vec::new(), technique }
    }

    /// A queue for so many producers on the heap of this process, with room for `capacity`
    /// messages: in all, or of each producer where each has a ring of its own.
    ///
    /// # Errors
    /// [`QueueError::Capacity`]; [`QueueError::Producers`]; [`QueueError::Home`] for a technique of
    /// the kernel's or somebody else's.
    pub fn on_heap(producers: usize, capacity: u32) -> Result<Self, QueueError> {
        if matches!(T::INFO.home, Home::Kernel | Home::Foreign) {
            return Err(QueueError::Home { technique: T::INFO.name, where_: "on the heap" });
        }
        let descriptor = describe::<T>("heap", producers, capacity)?;
        let words = Region::heap(descriptor.segment_words()).words();
        descriptor.write(&words);
        let mut queue = Self::new("heap", capacity, descriptor, words);
        for spec in T::segments(&queue.spec) {
            let region = Region::heap(spec.words);
            queue.descriptor.header(&spec).write(&region.words());
            queue.attached.adopt(&spec.name, region);
        }
        Ok(queue)
    }

    /// A queue under that name in `/dev/shm`, which any process of this user can open. What a dead
    /// creator has left under the name is removed first, as by [`remove`].
    ///
    /// # Errors
    /// A name that is none; [`QueueError::Living`]; [`QueueError::Capacity`];
    /// [`QueueError::Producers`]; [`QueueError::Home`] for a technique on the heap; a file that is
    /// in the way; too little room. Nothing is left behind then.
    pub fn create(name: &str, producers: usize, capacity: u32) -> Result<Self, QueueError> {
        check_name(name)?;
        if T::INFO.home == Home::Heap {
            return Err(QueueError::Home { technique: T::INFO.name, where_: "shared by processes" });
        }
        let mut descriptor = describe::<T>(name, producers, capacity)?;
        let segments = T::segments(&link_spec(producers, capacity));
        descriptor.files = segments.iter().map(ListedFile::new).collect();
        if let Err(living @ QueueError::Living(_)) = remove(name) {
            return Err(living);
        }
        // First, so that whatever a creator leaves that dies in here is found by it.
        let descriptor_name = segment_name(name, DESCRIPTOR);
        let (owned, region) =
            OwnedSegment::create(&descriptor_name, descriptor.segment_words(), true, |words| {
                descriptor.write(words)
            })?;
        let mut queue = Self::new(name, capacity, descriptor, region.words());
        queue.name = Some(name.into());
        queue.owned = Some(owned);
        segments.iter().try_for_each(|spec| queue.create_file(spec))?;
        descriptor::set_ready(&queue.words);
        Ok(queue)
    }

    fn create_file(&mut self, spec: &SegmentSpec) -> Result<(), RegionError> {
        let full = self.attached.name(&spec.name);
        match spec.place {
            SegmentPlace::Memory | SegmentPlace::Reserve => {
                let (header, prefault) = (self.descriptor.header(spec), spec.place == SegmentPlace::Memory);
                // It appears with its header, or a creator that dies in here would leave a file
                // that nobody knows.
                let (_, region) =
                    OwnedSegment::create(&full, spec.words, prefault, |words| header.write(words))?;
                self.attached.adopt(&spec.name, region);
            }
            SegmentPlace::Fifo => fifo::create(&full)?,
            SegmentPlace::Socket => {}
            SegmentPlace::Directory => directory::create(&full)?,
        }
        self.names.push(full);
        Ok(())
    }

    /// The queue that another process has created under that name.
    ///
    /// # Errors
    /// There is none, or not yet; it is of another technique, or of another build's layout; or its
    /// words say what no creator writes.
    pub fn open(name: &str) -> Result<Self, QueueError> {
        check_name(name)?;
        let descriptor_name = segment_name(name, DESCRIPTOR);
        let words = Region::open(&descriptor_name)?.words();
        let descriptor = QueueDescriptor::read(&words, name)
            .map_err(|source| RegionError::Header { name: descriptor_name, source })?;
        let capacity = u32::try_from(descriptor.capacity).unwrap_or(u32::MAX);
        let expected = describe::<T>(name, descriptor.producers, capacity)?;
        if descriptor.technique != expected.technique {
            return Err(QueueError::Technique { name: name.into(), technique: T::INFO.name });
        }
        if !descriptor::is_ready(&words) {
            return Err(QueueError::Incomplete(name.into()));
        }
        let mut queue = Self::new(name, capacity, descriptor, words);
        queue.name = Some(name.into());
        Ok(queue)
    }

    /// The name by which other processes open it; `None` on the heap.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// How many producers it was made for.
    pub fn producers(&self) -> usize {
        self.spec.producers
    }

    /// The sending end of that producer: once, until [`Queue::renew`].
    ///
    /// # Errors
    /// [`QueueError::Producer`]; [`QueueError::Attached`]; memory that is not there or damaged.
    pub fn producer(&mut self, index: usize) -> Result<T::Producer, QueueError> {
        self.check_index(index)?;
        let end = QueueEnd::Producer(index);
        let taken = |pid| QueueError::Attached { end: format!("producer {index}"), pid };
        descriptor::claim_end(&self.words, end).map_err(taken)?;
        let producer = T::producer(&self.spec, index, &mut self.attached);
        Ok(producer.inspect_err(|_| descriptor::free_end(&self.words, end))?)
    }

    /// Ends this handle as the death of its process would: the lock goes and the names stay.
    #[cfg(any(test, feature = "fixtures"))]
    pub fn abandon(mut self) {
        self.owned = None;
    }

    fn check_index(&self, index: usize) -> Result<(), QueueError> {
        let producers = self.spec.producers;
        if index < producers { Ok(()) } else { Err(QueueError::Producer { index, producers }) }
    }

    /// The receiving end, from the queue's beginning: once. In the place of one that has died:
    /// [`Queue::resume`].
    ///
    /// # Errors
    /// [`QueueError::Attached`]; memory that is not there or damaged.
    pub fn consumer(&mut self) -> Result<T::Consumer, QueueError> {
        let taken = |pid| QueueError::Attached { end: "consumer".into(), pid };
        descriptor::claim_end(&self.words, QueueEnd::Consumer).map_err(taken)?;
        let consumer = T::consumer(&self.spec, &mut self.attached);
        Ok(consumer.inspect_err(|_| descriptor::free_end(&self.words, QueueEnd::Consumer))?)
    }

    /// A receiving end in the place of one that has died: see [`Link::resume`].
    ///
    /// # Errors
    /// A technique whose consumer cannot be replaced; memory that is not there or damaged.
    pub fn resume(&mut self) -> Result<T::Consumer, QueueError> {
        let consumer = T::resume(&self.spec, &mut self.attached)?;
        descriptor::take_over_end(&self.words, QueueEnd::Consumer);
        Ok(consumer)
    }

    /// Makes room for a successor of a producer whose death is certain, and returns `true` when one
    /// can attach. `false`: messages of the dead producer, or before its last one, are still to be
    /// taken; pop and call it again. The module's documentation has the whole protocol.
    ///
    /// Mends what the dead producer left ([`Consumer::retire`]), makes its memory anew, restores
    /// the headers of all segments, and takes from its index again ([`Consumer::revive`]), in this
    /// order. `consumer` is this queue's.
    ///
    /// # Errors
    /// [`QueueError::Producer`]; memory that is not there or, if this handle has attached nothing
    /// before, damaged.
    pub fn renew(&mut self, index: usize, consumer: &mut T::Consumer) -> Result<bool, QueueError> {
        self.check_index(index)?;
        if !consumer.retire(index) {
            return Ok(false);
        }
        for spec in T::segments(&self.spec) {
            if !matches!(spec.place, SegmentPlace::Memory | SegmentPlace::Reserve) {
                continue;
            }
            let words = self.attached.region(&spec.name, spec.kind)?.words();
            let header = self.descriptor.header(&spec);
            if spec.ends.only == Some(index) {
                // Relaxed: `free_end` shows it to the successor.
                words[HEADER_WORDS..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
            }
            header.write(&words);
        }
        self.descriptor.write(&self.words);
        descriptor::set_ready(&self.words);
        consumer.revive(index);
        descriptor::free_end(&self.words, QueueEnd::Producer(index));
        Ok(true)
    }
}

impl<T: Link> Drop for Queue<T> {
    fn drop(&mut self) {
        // Not if the names were removed by hand, and are another queue's by now.
        let Some(owned) = self.owned.take().filter(OwnedSegment::is_named) else { return };
        for name in &self.names {
            // A name that cannot be removed is left, and the next creator of the queue removes it.
            let _ = unlink(name);
        }
        let _ = owned.unlink();
    }
}

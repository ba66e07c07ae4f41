//! A queue of one technique, on the heap or under a name.

use super::descriptor::{self, AttachedPeers, DESCRIPTOR, ListedFile, QueueDescriptor, QueueEnd};
use super::error::{MAX_PRODUCERS, MAX_SLOTS, QueueError};
use super::leftovers::remove;
use super::names::{check_name, segment_name};
use super::payload::from_word;
use super::rings;
use super::sealed_memory::{SEALED, SealedMemory};
use super::wake::{self, FIFO};
use crate::attached::{Access, Attached, Peers, Source};
use crate::memory::header::{HEADER_WORDS, run_hash};
use crate::memory::owned::OwnedSegment;
use crate::memory::sealed::Handle;
use crate::memory::{AtomicWords, Region, RegionError, directory, fifo, lock, open_safely, unlink};
use crate::ring::{Consumer, Home, Link, LinkSpec, SegmentPlace, SegmentSpec};
use crate::sync::Ordering;
use core::marker::PhantomData;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

/// Creates a queue of one producer on the heap and attaches both ends.
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

/// A handle of a queue with the technique (algorithm) `T`, to which one consumer and several
/// producers can be attached.
pub struct Queue<T: Link> {
    /// `None` on the heap and in sealed memory.
    name: Option<String>,
    pub(super) attached: Attached<'static>,
    pub(super) spec: LinkSpec<'static>,
    /// Geometry from when this handle was made: peers can overwrite the descriptor in memory.
    pub(super) descriptor: QueueDescriptor,
    pub(super) words: AtomicWords,
    /// The descriptor's file; `None` on the heap.
    pub(super) file: Option<File>,
    /// `None` unless the queue is in sealed memory.
    pub(super) sealed: Option<SealedMemory>,
    /// The lock of the creator, and the files to remove when this is dropped.
    owned: Option<OwnedSegment>,
    pub(super) names: Vec<String>,
    technique: PhantomData<T>,
}

/// Locates the segments of a queue, and the processes attached to it.
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

pub(super) fn describe<T: Link>(
    name: &str,
    producers: usize,
    capacity: u32,
) -> Result<QueueDescriptor, QueueError> {
    let has_slots = capacity.is_power_of_two() || T::INFO.exact_capacity;
    if !has_slots || !(2..=MAX_SLOTS).contains(&capacity) {
        return Err(QueueError::Capacity(capacity));
    }
    if !(1..=MAX_PRODUCERS).contains(&producers) {
        return Err(QueueError::Producers(producers));
    }
    Ok(QueueDescriptor::new(name, T::INFO.name, producers, capacity))
}

/// Returns the capacity of a queue whose descriptor was read, after a check of its geometry and its
/// technique.
pub(super) fn check_descriptor<T: Link>(name: &str, found: &QueueDescriptor) -> Result<u32, QueueError> {
    let capacity = u32::try_from(found.capacity).unwrap_or(u32::MAX);
    let expected = describe::<T>(name, found.producers, capacity)?;
    if found.technique == expected.technique { Ok(capacity) } else { Err(other_technique::<T>(name)) }
}

fn other_technique<T: Link>(name: &str) -> QueueError {
    QueueError::Technique { name: name.into(), technique: T::INFO.name }
}

/// Specifies all segments of a queue but its descriptor.
pub(super) fn segments<T: Link>(link: &LinkSpec, descriptor: &QueueDescriptor) -> Vec<SegmentSpec> {
    // Of a size that no queue has, if a peer scribbled on it: then there are no rings.
    rings::segments(link, from_word(descriptor.message_bytes)).into_iter().chain(T::segments(link)).collect()
}

pub(super) const fn link_spec(producers: usize, capacity: u32) -> LinkSpec<'static> {
    LinkSpec { name: "queue", producers, capacity }
}

impl<T: Link> Queue<T> {
    pub(super) fn new(name: &str, capacity: u32, descriptor: QueueDescriptor, words: AtomicWords) -> Self {
        let spec = link_spec(descriptor.producers, capacity);
        let names = QueueSource { queue: name.into(), words: words.clone(), producers: descriptor.producers };
        let attached = Attached::new(names);
        let technique = PhantomData;
        Self {
            name: None,
            attached,
            spec,
            descriptor,
            words,
            file: None,
            sealed: None,
            owned: None,
            names: Vec::new(),
            technique,
        }
    }

    /// Creates a queue for `producers` producers on the heap of this process. It holds `capacity`
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
        for spec in segments::<T>(&queue.spec, &queue.descriptor) {
            let region = Region::heap(spec.words);
            queue.descriptor.header(&spec).write(&region.words());
            queue.attached.adopt(&spec.name, region);
        }
        Ok(queue)
    }

    /// Creates a queue under a name in `/dev/shm`, which any process of this user can open.
    /// Leftovers of a crashed creator are removed first, as by [`remove`].
    ///
    /// # Errors
    /// A name that is none; [`QueueError::Living`]; [`QueueError::Capacity`];
    /// [`QueueError::Producers`]; [`QueueError::Home`] for a technique on the heap; a file that is
    /// in the way; too little room. Nothing is left behind then.
    pub fn create(name: &str, producers: usize, capacity: u32) -> Result<Self, QueueError> {
        Self::create_typed(name, producers, capacity, 0)
    }

    pub(super) fn create_typed(
        name: &str,
        producers: usize,
        capacity: u32,
        message_bytes: u64,
    ) -> Result<Self, QueueError> {
        check_name(name)?;
        if T::INFO.home == Home::Heap {
            return Err(QueueError::Home { technique: T::INFO.name, where_: "shared by processes" });
        }
        let mut descriptor = describe::<T>(name, producers, capacity)?;
        descriptor.message_bytes = message_bytes;
        let segments = segments::<T>(&link_spec(producers, capacity), &descriptor);
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
        queue.file = Some(reopen(owned.file(), name)?);
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
                // that no cleanup recognizes.
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

    /// Opens the queue that another process has created under a name.
    ///
    /// # Errors
    /// There is none, or not yet; it is of another technique, or of another build's layout; or its
    /// words are not what a creator writes.
    pub fn open(name: &str) -> Result<Self, QueueError> {
        let queue = Self::open_any(name)?;
        if queue.descriptor.message_bytes == 0 { Ok(queue) } else { Err(other_technique::<T>(name)) }
    }

    pub(super) fn open_any(name: &str) -> Result<Self, QueueError> {
        check_name(name)?;
        let descriptor_name = segment_name(name, DESCRIPTOR);
        let file = match open_safely(&descriptor_name, OpenOptions::new().read(true).write(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(QueueError::NotFound(name.into()));
            }
            opened => opened.map_err(RegionError::os(&descriptor_name, "open it"))?,
        };
        let words = Region::map(&descriptor_name, &file, true)?.words();
        let descriptor = QueueDescriptor::read(&words, name)
            .map_err(|source| RegionError::Header { name: descriptor_name.clone(), source })?;
        let capacity = check_descriptor::<T>(name, &descriptor)?;
        if !descriptor::is_ready(&words) {
            return Err(QueueError::Incomplete(name.into()));
        }
        let mut queue = Self::new(name, capacity, descriptor, words);
        queue.name = Some(name.into());
        queue.file = Some(file);
        Ok(queue)
    }

    pub(super) fn duplicate(&self) -> Result<Self, QueueError> {
        let (name, spec) = (self.label(), &self.spec);
        if let (Some(file), Some(sealed)) = (&self.file, &self.sealed) {
            return Self::from_sealed(self.descriptor.clone(), reopen(file, name)?, sealed.duplicate()?);
        }
        let mut queue = Self::new(name, spec.capacity, self.descriptor.clone(), self.words.clone());
        queue.name.clone_from(&self.name);
        queue.file = self.file.as_ref().map(|file| reopen(file, name)).transpose()?;
        Ok(queue)
    }

    pub(super) fn label(&self) -> &str {
        let unnamed = if self.sealed.is_some() { SEALED } else { "on the heap" };
        self.name.as_deref().unwrap_or(unnamed)
    }

    /// Opens the FIFO that wakes the receiver, for an end of the queue.
    pub(super) fn open_fifo(&self) -> Result<File, QueueError> {
        match &self.sealed {
            Some(sealed) => sealed.open_pipe(),
            None => Ok(wake::open_fifo(&self.attached.name(FIFO))?),
        }
    }

    /// Takes the lock of a queue's end until the returned file is closed. `None` if another process
    /// or handle has it.
    pub(super) fn lock_end(&self, end: QueueEnd) -> Result<Option<File>, QueueError> {
        let Some(file) = &self.file else { return Ok(None) };
        let file = reopen(file, self.label())?;
        let is_ours = lock::try_lock_byte(&file, end.lock_byte()).map_err(self.failed("lock its end"))?;
        Ok(is_ours.then_some(file))
    }

    /// Returns `true` if the process that attached to an end of the queue still runs and has it.
    pub(super) fn is_end_locked(&self, end: QueueEnd) -> Result<bool, QueueError> {
        let Some(file) = &self.file else { return Ok(false) };
        lock::is_byte_locked(file, end.lock_byte()).map_err(self.failed("ask for the lock of its end"))
    }

    fn failed(&self, what: &'static str) -> impl FnOnce(io::Error) -> QueueError {
        move |source| RegionError::os(segment_name(self.label(), DESCRIPTOR), what)(source).into()
    }

    /// Returns the queue's name, by which other processes open it; `None` without a name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the number of producers that the queue was created for.
    pub fn producers(&self) -> usize {
        self.spec.producers
    }

    /// Attaches the sending end of the producer with this index, only once until [`Queue::renew`].
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

    /// Drops this handle as a killed process would: the queue's names in `/dev/shm` stay.
    #[cfg(any(test, feature = "fixtures"))]
    pub fn abandon(mut self) {
        self.owned = None;
    }

    pub(super) fn check_index(&self, index: usize) -> Result<(), QueueError> {
        let producers = self.spec.producers;
        if index < producers { Ok(()) } else { Err(QueueError::Producer { index, producers }) }
    }

    /// Attaches the receiving end at the start of the queue, only once. A successor of a crashed
    /// consumer uses [`Queue::resume_consumer`].
    ///
    /// # Errors
    /// [`QueueError::Attached`]; memory that is not there or damaged.
    pub fn consumer(&mut self) -> Result<T::Consumer, QueueError> {
        let taken = |pid| QueueError::Attached { end: "consumer".into(), pid };
        descriptor::claim_end(&self.words, QueueEnd::Consumer).map_err(taken)?;
        let consumer = T::consumer(&self.spec, &mut self.attached);
        Ok(consumer.inspect_err(|_| descriptor::free_end(&self.words, QueueEnd::Consumer))?)
    }

    /// Attaches a receiving end in place of a crashed one: see [`Link::resume_consumer`].
    ///
    /// # Errors
    /// A technique whose consumer cannot be replaced; memory that is not there or damaged.
    pub fn resume_consumer(&mut self) -> Result<T::Consumer, QueueError> {
        let consumer = T::resume_consumer(&self.spec, &mut self.attached)?;
        descriptor::resume_end(&self.words, QueueEnd::Consumer);
        Ok(consumer)
    }

    /// Repairs and resets the memory of the dead producer with this index, so that a successor can
    /// be attached. Returns `true` when a successor can attach, `false` while messages are still to
    /// be taken: pop and call it again. The module's documentation has the whole protocol.
    ///
    /// Repairs what the dead producer left ([`Consumer::retire`]), resets its memory, restores
    /// the headers of all segments, and takes from its index again ([`Consumer::renew`]), in this
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
        self.reset_memory(index)?;
        consumer.renew(index);
        descriptor::free_end(&self.words, QueueEnd::Producer(index));
        Ok(true)
    }

    /// Resets the memory of a retired producer, and the headers of all segments.
    pub(super) fn reset_memory(&mut self, index: usize) -> Result<(), QueueError> {
        for spec in segments::<T>(&self.spec, &self.descriptor) {
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
        Ok(())
    }
}

/// Opens the file again, with locks of its own.
fn reopen(file: &File, name: &str) -> Result<File, QueueError> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let opened = File::options().read(true).write(true).open(path);
    Ok(opened.map_err(RegionError::os(&segment_name(name, DESCRIPTOR), "open it again"))?)
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

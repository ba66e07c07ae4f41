//! The trait of a technique that carries an N→1 hand-off.

use super::technique_info::TechniqueInfo;
use super::{Consumer, Producer};
use crate::attached::{Access, Attached};
use crate::memory::{RegionError, SegmentKind};

/// The specification of a link (a queue from several producers to one consumer): its name, number
/// of producers and slots.
#[derive(Clone, Copy, Debug)]
pub struct LinkSpec<'a> {
    /// The link's name, such as `submit` or `completion`; the names of its segments begin with it.
    pub name: &'a str,
    /// Number of producers that feed the link.
    pub producers: usize,
    /// Slots of each ring.
    pub capacity: u32,
}

/// What a technique keeps under a segment's name in `/dev/shm`: shared memory, a FIFO, a socket or
/// a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPlace {
    /// Memory: reserved and prefaulted.
    Memory,
    /// Memory: reserved, so that touching it cannot fail, but touched only as it comes into use.
    Reserve,
    /// A FIFO, made by the launcher. Neither header nor words.
    Fifo,
    /// A Unix socket, bound by the receiver; only its name is known before. Neither header nor
    /// words.
    Socket,
    /// A directory, made by the launcher, for the files of a third-party transport
    /// ([`Home::Foreign`](super::Home::Foreign)). Files that it creates next to it in `/dev/shm`
    /// must begin with the directory's name and a dot: they are removed with it.
    Directory,
}

impl SegmentPlace {
    /// Returns `true` if messages in a file of this type pass through the kernel, so that sending
    /// one is a system call.
    pub const fn is_kernel(self) -> bool {
        matches!(self, SegmentPlace::Fifo | SegmentPlace::Socket)
    }
}

/// The specification of a segment that a link needs: name, file kind, size and access rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSpec {
    /// Name within the run, for example `submit-3`.
    pub name: String,
    /// Kind of file under the name.
    pub place: SegmentPlace,
    /// Size of the segment in words; 0 for files that are not memory.
    pub words: usize,
    /// Kind of the segment.
    pub kind: SegmentKind,
    /// Number of slots, records or entries.
    pub capacity: u64,
    /// Words of each slot, record or entry.
    pub slot_words: u64,
    /// Index of the segment's owner, such as a producer, among the segments of its kind.
    pub index: u64,
    /// The ends of a link that use the segment, and their rights.
    pub ends: EndRights,
}

impl SegmentSpec {
    /// Specifies a shared-memory segment of `words` 64-bit words, with the defaults capacity 1, one
    /// word per slot, and owner index 0.
    pub fn memory(name: impl Into<String>, kind: SegmentKind, words: usize, ends: EndRights) -> Self {
        let place = SegmentPlace::Memory;
        Self { name: name.into(), place, words, kind, capacity: 1, slot_words: 1, index: 0, ends }
    }
}

/// The access rights of producers and consumer to one of a link's segments. `None`: no access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRights {
    /// The only producer that uses the segment, for whose successor it is reset; `None`: all
    /// producers use it.
    pub only: Option<usize>,
    /// Access of the producers that use the segment; `None`: no access.
    pub producer: Option<Access>,
    /// Access of the consumer to the segment; `None`: no access.
    pub consumer: Option<Access>,
}

impl EndRights {
    /// No access for the producers and the consumer of a link: the rights to a segment that does
    /// not belong to a link.
    pub const NONE: Self = Self { only: None, producer: None, consumer: None };

    /// The rights to a segment that producers and consumer may write.
    pub const ALL_WRITE: Self =
        Self { only: None, producer: Some(Access::Write), consumer: Some(Access::Write) };

    /// Returns the access rights to a segment that one producer (by index) and the consumer use.
    pub const fn for_producer(producer: usize, may: Access, consumer_may: Access) -> Self {
        Self { only: Some(producer), producer: Some(may), consumer: Some(consumer_may) }
    }
}

/// A technique: a queue algorithm, or a kernel object such as a pipe, for a link from several
/// producers to one consumer. It has properties, and builds the two ends over regions.
pub trait Link: 'static {
    /// The technique's name and properties.
    const INFO: TechniqueInfo;

    /// The type of the technique's sending end.
    type Producer: Producer + 'static;
    /// The type of the technique's receiving end.
    type Consumer: Consumer + 'static;

    /// Specifies the segments that a link of this technique needs; none for one on the heap.
    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        let _ = spec;
        Vec::new()
    }

    /// Returns the most messages that one producer can push into an empty link; `None` if no count
    /// bounds them: the queue is never full, or its memory is the kernel's.
    fn capacity(spec: &LinkSpec) -> Option<u64> {
        let is_counted =
            Self::INFO.bounded && matches!(Self::INFO.home, super::Home::Memory | super::Home::Heap);
        is_counted.then_some(spec.capacity.into())
    }

    /// Attaches the sending end of the producer with this index.
    ///
    /// # Errors
    /// A segment that is missing or not what it should be.
    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Self::Producer, RegionError>;

    /// Attaches the consumer of the link. Within a process consumers are attached before producers.
    ///
    /// # Errors
    /// A segment that is missing or not what it should be.
    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError>;

    /// Attaches a consumer in place of a crashed one: messages not taken yet arrive whole and in
    /// order. One that was being taken may arrive again. For a technique that is
    /// [`consumer_resumable`](TechniqueInfo::consumer_resumable).
    ///
    /// # Errors
    /// As [`Link::consumer`]; always, if the technique cannot.
    fn resume_consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError> {
        let error = RegionError::os(attached.name(spec.name), "replace its consumer");
        Err(error(std::io::ErrorKind::Unsupported.into()))
    }

    /// Attaches a producer in place of a crashed one: it continues after the last published
    /// message.
    ///
    /// # Errors
    /// As [`Link::producer`]; always, if the technique cannot.
    fn resume_producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Self::Producer, RegionError> {
        let _ = index;
        let error = RegionError::os(attached.name(spec.name), "replace its producer");
        Err(error(std::io::ErrorKind::Unsupported.into()))
    }
}

//! The trait of a technique that carries an N→1 hand-off.

use super::technique_info::TechniqueInfo;
use super::{Consumer, Producer};
use crate::attached::{Access, Attached};
use crate::memory::{RegionError, SegmentKind};

/// An N→1 hand-off: its name, how many producers, how many slots.
#[derive(Clone, Copy, Debug)]
pub struct LinkSpec<'a> {
    /// `submit`, `completion`; the names of its segments begin with it.
    pub name: &'a str,
    /// How many producers feed it.
    pub producers: usize,
    /// Slots of each ring.
    pub capacity: u32,
}

/// What stands behind a segment's name in `/dev/shm`.
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
    /// A folder, made by the launcher, for what somebody else's transport keeps in files
    /// ([`Home::Foreign`](super::Home::Foreign)). What that makes beside it in `/dev/shm` must
    /// begin with the folder's name and a dot: it goes with the folder.
    Directory,
}

impl SegmentPlace {
    /// Whether messages pass through the kernel: sending them is a system call.
    pub const fn is_kernel(self) -> bool {
        matches!(self, SegmentPlace::Fifo | SegmentPlace::Socket)
    }
}

/// A segment that a link needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSpec {
    /// Name within the run, for example `submit-3`.
    pub name: String,
    /// What stands behind the name.
    pub place: SegmentPlace,
    /// Its size in words; 0 for what is not memory.
    pub words: usize,
    /// Its kind.
    pub kind: SegmentKind,
    /// Slots, records or entries.
    pub capacity: u64,
    /// Words in each.
    pub slot_words: u64,
    /// Whose it is among its kind.
    pub index: u64,
    /// Which ends of a link use it, and how.
    pub ends: EndRights,
}

/// What the ends of a link may do with one of its segments. Who is not named may do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRights {
    /// The one producer that uses it, for whose successor it is made anew; `None`: all of them do.
    pub only: Option<usize>,
    /// What that producer, or each, may do.
    pub producer: Option<Access>,
    /// What the consumer may do.
    pub consumer: Option<Access>,
}

impl EndRights {
    /// It belongs to no link.
    pub const NONE: Self = Self { only: None, producer: None, consumer: None };

    /// All ends write it.
    pub const ALL_WRITE: Self =
        Self { only: None, producer: Some(Access::Write), consumer: Some(Access::Write) };

    /// One producer and the consumer use it.
    pub const fn for_producer(producer: usize, may: Access, consumer_may: Access) -> Self {
        Self { only: Some(producer), producer: Some(may), consumer: Some(consumer_may) }
    }
}

/// A technique: its facts, and how to build the two ends of an N→1 hand-off over regions.
pub trait Link: 'static {
    /// Its facts.
    const INFO: TechniqueInfo;

    /// The sending end.
    type Producer: Producer + 'static;
    /// The receiving end.
    type Consumer: Consumer + 'static;

    /// The segments that a link of this kind needs; none for one on the heap.
    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        let _ = spec;
        Vec::new()
    }

    /// Attaches the producer of that index.
    ///
    /// # Errors
    /// A segment that is missing or not what it should be.
    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Self::Producer, RegionError>;

    /// Attaches the consumer. Within a process consumers are attached before producers.
    ///
    /// # Errors
    /// A segment that is missing or not what it should be.
    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError>;

    /// Attaches a consumer in the place of one that has died: what that one had not taken comes
    /// out, whole and in order; a message that it was taking may come out again. For a technique
    /// whose record says that it can.
    ///
    /// # Errors
    /// As [`Link::consumer`]; always, if the technique cannot.
    fn resume(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError> {
        let name = attached.name(spec.name);
        let source = std::io::ErrorKind::Unsupported.into();
        Err(RegionError::Os { name, what: "replace its consumer", source })
    }

    /// Attaches a producer in the place of one that has died: it goes on behind what that one had
    /// published.
    ///
    /// # Errors
    /// As [`Link::producer`]; always, if the technique cannot.
    fn inherit(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Self::Producer, RegionError> {
        let _ = index;
        let name = attached.name(spec.name);
        let source = std::io::ErrorKind::Unsupported.into();
        Err(RegionError::Os { name, what: "replace its producer", source })
    }
}

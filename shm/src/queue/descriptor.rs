//! The segment in which a queue is described: its geometry, the processes attached to its ends, its
//! files.
//!
//! ```text
//! word 0        16          17          18              19      20         21            21 + N
//!      │ header │ producers │ technique │ message bytes │ ready │ consumer │ producer 0… │ files…
//!        creator                                                 each end                  creator
//!
//! ready      1 once all files of the queue are there; stored last (Release), read first (Acquire)
//! message bytes          size of a typed message; 0: the messages of the technique
//! consumer, producer N   process that has attached to that end; 0: free; all ones: retired
//! files                  two words each: hash of the name; segment kind above 8 bits of file kind
//! ```
//!
//! The creator has it locked ([`OwnedSegment`](crate::memory::owned::OwnedSegment)). Every peer can
//! write it, so each handle keeps what it read when it was made, and [`QueueDescriptor::write`]
//! restores the segment from that.

use crate::attached::Peers;
use crate::memory::header::{HEADER_WORDS, run_hash};
use crate::memory::{AtomicWords, Header, HeaderError, SegmentKind};
use crate::process::start_time;
use crate::ring::{SegmentPlace, SegmentSpec};
use crate::sync::{AtomicU64, Ordering};
use std::fs::{File, FileType};
use std::os::unix::fs::FileTypeExt as _;

pub(super) const KIND: SegmentKind = SegmentKind::new(
    32,
    "queue",
    &[
        ("producers", PRODUCERS),
        ("technique", TECHNIQUE),
        ("message-bytes", MESSAGE_BYTES),
        ("ready", READY),
        ("consumer", CONSUMER),
        ("ends", ENDS),
        ("file", FILE_WORDS),
        ("packed", LAYOUT),
    ],
);
/// Version of the layout of a typed queue's memory. 2: packed rings.
const LAYOUT: usize = 2;
const PRODUCERS: usize = HEADER_WORDS;
const TECHNIQUE: usize = PRODUCERS + 1;
const MESSAGE_BYTES: usize = TECHNIQUE + 1;
pub(super) const READY: usize = MESSAGE_BYTES + 1;
const CONSUMER: usize = READY + 1;
const ENDS: usize = CONSUMER + 1;
const FILE_WORDS: usize = 2;

/// The name of the descriptor's segment within its queue.
pub(super) const DESCRIPTOR: &str = "about";

/// An end of a queue: the consumer, or a producer by its index.
#[derive(Clone, Copy)]
pub(super) enum QueueEnd {
    Consumer,
    Producer(usize),
}

impl QueueEnd {
    const fn word(self) -> usize {
        match self {
            Self::Consumer => CONSUMER,
            Self::Producer(index) => ENDS + index,
        }
    }

    /// Returns the byte of the descriptor's file that the owner of a queue's end locks.
    pub(super) const fn lock_byte(self) -> u64 {
        match self {
            Self::Consumer => 1,
            Self::Producer(index) => 2 + index as u64,
        }
    }
}

/// A file of a queue, as the descriptor lists it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ListedFile {
    name: u64,
    kind: u64,
}

impl ListedFile {
    pub(super) fn new(spec: &SegmentSpec) -> Self {
        let place = match spec.place {
            SegmentPlace::Memory | SegmentPlace::Reserve => 0,
            SegmentPlace::Fifo => 1,
            SegmentPlace::Socket => 2,
            SegmentPlace::Directory => 3,
        };
        Self { name: run_hash(&spec.name), kind: spec.kind.code << 8 | place }
    }

    /// Returns `true` if the file is listed under a name within the queue.
    pub(super) fn is_named(self, what: &str) -> bool {
        self.name == run_hash(what)
    }

    /// Returns the code of the file's memory kind; `None` for a file without a header.
    pub(super) const fn memory(self) -> Option<u64> {
        if self.place() == 0 { Some(self.kind >> 8) } else { None }
    }

    /// Returns `true` if a file without a header is of the listed type.
    pub(super) fn has_type(self, found: FileType) -> bool {
        match self.place() {
            1 => found.is_fifo(),
            2 => found.is_socket(),
            3 => found.is_dir(),
            _ => false,
        }
    }

    const fn place(self) -> u64 {
        self.kind & 0xFF
    }
}

#[derive(Clone)]
pub(super) struct QueueDescriptor {
    /// Hash of the queue's name: what the headers of all its segments carry.
    run: u64,
    pub(super) capacity: u64,
    pub(super) producers: usize,
    /// Hash of the technique's name.
    pub(super) technique: u64,
    /// Size of a typed message; 0 for messages of the technique.
    pub(super) message_bytes: u64,
    pub(super) files: Vec<ListedFile>,
    creator_pid: u32,
    creator_start: u64,
}

impl QueueDescriptor {
    pub(super) fn new(name: &str, technique: &str, producers: usize, capacity: u32) -> Self {
        let creator_pid = std::process::id();
        Self {
            run: run_hash(name),
            capacity: capacity.into(),
            producers,
            technique: run_hash(technique),
            message_bytes: 0,
            files: Vec::new(),
            creator_pid,
            creator_start: start_time(creator_pid).unwrap_or(0),
        }
    }

    pub(super) fn segment_words(&self) -> usize {
        ENDS + self.producers + FILE_WORDS * self.files.len()
    }

    pub(super) fn header(&self, spec: &SegmentSpec) -> Header {
        self.header_of(spec.kind, spec.words, spec.capacity, spec.slot_words, spec.index)
    }

    fn header_of(
        &self,
        kind: SegmentKind,
        words: usize,
        capacity: u64,
        slot_words: u64,
        index: u64,
    ) -> Header {
        let &Self { run, creator_pid, creator_start, .. } = self;
        Header { kind, bytes: words as u64 * 8, capacity, slot_words, creator_pid, creator_start, run, index }
    }

    /// Writes the descriptor into its segment, without attached processes and the ready flag.
    pub(super) fn write(&self, words: &AtomicWords) {
        // Relaxed: the name of a new segment, or the word `ready`, shows them.
        words[PRODUCERS].store(self.producers as u64, Ordering::Relaxed);
        words[TECHNIQUE].store(self.technique, Ordering::Relaxed);
        words[MESSAGE_BYTES].store(self.message_bytes, Ordering::Relaxed);
        let listed = words[ENDS + self.producers..].chunks_exact(FILE_WORDS);
        for (pair, file) in listed.zip(&self.files) {
            pair[0].store(file.name, Ordering::Relaxed);
            pair[1].store(file.kind, Ordering::Relaxed);
        }
        self.header_of(KIND, self.segment_words(), self.capacity, 0, 0).write(words);
    }

    /// Reads the descriptor of the queue called `name`.
    pub(super) fn read(words: &AtomicWords, name: &str) -> Result<Self, HeaderError> {
        let header = Header::read(|i, ordering| words[i].load(ordering), words.len(), KIND)?;
        let Header { run, capacity, creator_pid, creator_start, .. } = header;
        if run != run_hash(name) {
            return Err(HeaderError::OtherRun);
        }
        if words.len() < ENDS {
            return Err(HeaderError::TooShort(header.bytes));
        }
        let load = |word: usize| words[word].load(Ordering::Relaxed);
        let producers = usize::try_from(load(PRODUCERS)).unwrap_or(usize::MAX);
        // A list of files has pairs of words.
        if producers > words.len() - ENDS || !(words.len() - ENDS - producers).is_multiple_of(FILE_WORDS) {
            return Err(header.bad_geometry());
        }
        let listed = words[ENDS + producers..].chunks_exact(FILE_WORDS);
        let file = |pair: &[AtomicU64]| {
            let [name, kind] = [0, 1].map(|word: usize| pair[word].load(Ordering::Relaxed));
            ListedFile { name, kind }
        };
        let files = listed.map(file).collect();
        let (technique, message_bytes) = (load(TECHNIQUE), load(MESSAGE_BYTES));
        Ok(Self { run, capacity, producers, technique, message_bytes, files, creator_pid, creator_start })
    }

    /// Returns `true` if a segment with these first words belongs to the queue and has this kind
    /// and size.
    pub(super) fn owns(&self, words: &[u64; HEADER_WORDS], kind: u64, bytes: u64) -> bool {
        Header::creator(words).is_some() && [words[3], words[4], words[9]] == [bytes, kind, self.run]
    }
}

pub(super) fn set_ready(words: &AtomicWords) {
    // Release: pairs with the Acquire in `is_ready`.
    words[READY].store(1, Ordering::Release);
}

pub(super) fn is_ready(words: &AtomicWords) -> bool {
    // Acquire: pairs with the Release in `set_ready`.
    words[READY].load(Ordering::Acquire) == 1
}

pub(super) fn claim_end(words: &AtomicWords, end: QueueEnd) -> Result<(), u64> {
    let ours = u64::from(std::process::id());
    // Acquire: pairs with the Release in `free_end`; a dead producer's memory was reset before.
    words[end.word()].compare_exchange(0, ours, Ordering::AcqRel, Ordering::Relaxed).map(drop)
}

pub(super) fn resume_end(words: &AtomicWords, end: QueueEnd) {
    // Release: as `claim_end`.
    words[end.word()].store(u64::from(std::process::id()), Ordering::Release);
}

/// An end of a typed queue that this process has attached, until it is dropped.
pub(super) struct AttachedEnd {
    words: AtomicWords,
    end: QueueEnd,
    /// Proof of life: the kernel releases its lock when the process ends. `None` in tests of a
    /// crash.
    lock: Option<File>,
}

impl AttachedEnd {
    pub(super) fn resume(words: &AtomicWords, end: QueueEnd, lock: File) -> Self {
        resume_end(words, end);
        Self { words: words.clone(), end, lock: Some(lock) }
    }

    /// Leaves the end as the death of its process would: neither freed nor locked.
    #[cfg(test)]
    pub(super) fn abandon(&mut self) {
        self.lock = None;
    }
}

impl Drop for AttachedEnd {
    fn drop(&mut self) {
        if self.lock.is_some() {
            free_end(&self.words, self.end);
        }
    }
}

pub(super) fn free_end(words: &AtomicWords, end: QueueEnd) {
    // Release: pairs with the Acquire in `claim_end`.
    words[end.word()].store(0, Ordering::Release);
}

/// State of a queue's end in its descriptor: free, attached by a process, or retired.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EndState {
    /// No process has attached the end, or the last one has left in order.
    Free,
    /// Attached by a process of that id, which may have crashed.
    Attached(u64),
    /// A producer's end that its consumer does not poll any more.
    Retired,
}

const RETIRED: u64 = u64::MAX;

/// Reads from the descriptor whether an end of the queue is free, attached or retired.
pub(super) fn end_state(words: &AtomicWords, end: QueueEnd) -> EndState {
    // Acquire: pairs with the Release stores of the states.
    match words[end.word()].load(Ordering::Acquire) {
        0 => EndState::Free,
        RETIRED => EndState::Retired,
        pid => EndState::Attached(pid),
    }
}

pub(super) fn retire_end(words: &AtomicWords, index: usize) {
    // Release: a successor of the consumer that sees it sees a drained ring.
    words[QueueEnd::Producer(index).word()].store(RETIRED, Ordering::Release);
}

/// The ids of the processes attached to a queue's ends, as its descriptor lists them.
pub(super) struct AttachedPeers {
    pub(super) words: AtomicWords,
    pub(super) producers: usize,
}

impl AttachedPeers {
    fn pid_at(&self, end: QueueEnd) -> Option<u32> {
        // Acquire: pairs with the Release in `claim_end`.
        u32::try_from(self.words[end.word()].load(Ordering::Acquire)).ok().filter(|pid| *pid != 0)
    }
}

impl Peers for AttachedPeers {
    fn producer(&self, index: usize) -> Option<u32> {
        if index < self.producers { self.pid_at(QueueEnd::Producer(index)) } else { None }
    }

    fn consumer(&self) -> Option<u32> {
        self.pid_at(QueueEnd::Consumer)
    }
}

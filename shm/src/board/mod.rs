//! Boards: one writer, any number of readers in any number of processes, newest value first.
//!
//! A board is a table of cells, one for each instrument for example. [`Reader::read`] returns a
//! cell's newest value. [`Reader::follow`] returns every value in order, as from a log that
//! overwrites its oldest entries, and counts the missed ones.
//!
//! ```
//! use shm::board::{self, LogPoll, BoardShape};
//!
//! let (mut writer, reader) = board::pair(BoardShape::with_cells(3, 2)?);
//! let mut value = [0; 2];
//! assert_eq!(reader.read(1, &mut value)?, None);
//! writer.write(1, 500, &[99, 101]);
//! let stamp = reader.read(1, &mut value)?.expect("it was written");
//! assert_eq!((stamp.version, stamp.ticks, value), (1, 500, [99, 101]));
//!
//! let (mut writer, reader) = board::pair(BoardShape::log(1, 4)?);
//! let mut follower = reader.follow(0, 0);
//! for n in 1..=10 {
//!     writer.write(0, 0, &[n]);
//! }
//! assert_eq!(follower.next(&mut value[..1])?, LogPoll::Missed(8));
//! assert!(matches!(follower.next(&mut value[..1])?, LogPoll::Entry(stamp) if stamp.version == 9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Between processes, by name; a run has its boards among its segments instead:
//!
//! ```
//! use shm::board::{NamedWriter, Reader, BoardShape, Wait};
//! use std::time::Duration;
//!
//! let name = format!("doc-board-{}", std::process::id());
//! let mut writer = NamedWriter::create(&name, BoardShape::with_cells(1, 2)?)?;
//! // In another process, which cannot write what it maps:
//! let reader = Reader::open(&name)?;
//! writer.write(0, 0, &[1, 2]);
//! writer.wake(0);
//! assert_eq!(reader.wait_for_newer(0, 0, Wait::Sleep, Duration::from_secs(1)), 1);
//! // Its writer dies, or leaves: another one goes on, and the reader sees it.
//! writer.leave();
//! let mut successor = NamedWriter::resume(&name)?;
//! assert_eq!(successor.write(0, 0, &[3, 4]), 2);
//! assert_eq!(reader.version(0), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The bytes
//!
//! ```text
//! word 0         16      17       18    32
//!      │ header   │ words │ slots   │     │ cell 0 │ cell 1 │ …
//!
//! a cell:        0         8                           8 + slot
//!                │ version │ slot 0: time │ value │ pad │ slot 1: time │ value │ pad │ …
//! a small cell:  │ version │ slot 0: time │ value │ slot 1: time │ value │   (one line of 8 words)
//! ```
//!
//! Version v of a cell, 1 for the first, is in slot v modulo the number of slots. The version word
//! names the newest version; 0 is none. Words from the beginning of a cell, which is at a cache
//! line; slots have lines of their own.
//!
//! # Why nothing is torn
//!
//! The writer writes version v into its slot, then stores v as the cell's version (Release). A
//! reader loads v (Acquire), so it sees all of the slot's words. It copies them, then loads the
//! version again: w. The slot is written next for version v + slots, and that write begins after
//! v + slots − 1 was stored: with a Release fence between that store and the first word. If the
//! copy has any word of that write, the reader's Acquire fence after the copy pairs with that
//! fence, and w is at least v + slots − 1. So if w − v < slots − 1, the copy has none, and is
//! whole. It is what the writer passed to one `write`, and nothing else is returned. Versions are
//! never used again: they end at 2^56, before which nothing wraps.
//!
//! # Why no end waits
//!
//! The writer loads nothing that another process writes. It performs its stores and is done,
//! however many readers there are and however they crash: readers write no word. A reader never
//! waits for a write that has begun: the newest whole value is in a slot that this write does not
//! touch. It tries again only if `slots` − 1 writes ended during its copy, so the board has
//! advanced: lock-free. After a thousand tries it returns [`ReadError::Overtaken`].
//!
//! # Deaths and hostile peers
//!
//! - **A writer that dies** at any instruction has stored the new version or not. Either way the
//!   cell's version is that of a whole value; no reader reads the half-written slot, and the
//!   successor's first write overwrites it. Nothing is repaired.
//! - **A reader** maps the board read-only. It cannot write, and its death is not noticed.
//! - **A hostile writer** can publish bad words and bad versions, also values that it changes
//!   during a copy: they are words, which their users must check. It has no lock word to hold: a
//!   reader faces a version that keeps increasing, and gives up ([`ReadError::Overtaken`]), or one
//!   that goes backwards ([`ReadError::Backwards`] for a [`LogReader`]).
//! - **Two writers at once** are a mistake, which [`NamedWriter`] refuses by a lock that the kernel
//!   releases at death. Over other memory it is for the caller: then values can be torn, and
//!   nothing is undefined.
//!
//! # Sizes
//!
//! See [`BoardShape::slots_for`]. Two slots, all in one line, for up to two words: one line to
//! fetch, and a copy is so short that a second write rarely ends within it. Four up to 4 KiB, eight
//! above: a copy of lines from another core's cache may take longer than a write, so that with two
//! slots a writer without pauses makes reads start again. Left-right would copy each value twice
//! and makes the writer wait for readers, which then have to register: a crashed reader would stop
//! it. A seqlock over one slot leaves no value at all after a writer that died in the middle, and
//! makes readers wait for one that was only preempted.
//!
//! Sources: the seqlock's fences after Boehm, "Can seqlocks get along with programming language
//! memory models?" (2012); slots that take turns after Linux's seqcount latch and Simpson's
//! four-slot mechanism (1990); overtaken readers after Agrona's broadcast buffers and Firedancer's
//! mcache.

mod log_reader;
#[cfg(not(loom))]
mod named;
mod reader;
mod shape;
mod typed;
#[cfg(not(loom))]
mod wait;
mod writer;

pub use log_reader::{LogPoll, LogReader};
#[cfg(not(loom))]
pub use named::NamedWriter;
pub use reader::{ReadError, Reader, Stamp};
pub use shape::{BoardShape, KIND};
pub use typed::{Board, BoardValue, ValueReader, ValueWriter};
#[cfg(not(loom))]
pub use wait::{MAX_SLEEP, Wait};
pub use writer::Writer;

use crate::memory::{AtomicWords, Header, HeaderError, Region, RegionError};
use thiserror::Error;

/// Errors of creating, opening or attaching a board (newest values in shared memory).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BoardError {
    /// Numbers that boards do not have.
    #[error(
        "{cells} cells of {words} words in {slots} slots: boards take 1 to {} cells, 1 to {} words, and slots that are a power \
         of two from 2 to {}",
        BoardShape::MAX_CELLS,
        BoardShape::MAX_WORDS,
        BoardShape::MAX_SLOTS
    )]
    Shape {
        /// The requested number of cells.
        cells: usize,
        /// Words of a value.
        words: usize,
        /// Slots of a cell.
        slots: usize,
    },
    /// The name is not valid for a board.
    #[error("{0:?} is not a valid name for a board: 1 to 64 characters of a-z, A-Z, 0-9, - and _")]
    Name(String),
    /// The board already has a writer, and its process is alive.
    #[error("{0} has a writer that lives: a successor can come when it has ended")]
    Written(String),
    /// The board's values have another size than the type with which it is opened.
    #[error("the board has values of {found} bytes, not {expected}: open it with the type of its writer")]
    ValueSize {
        /// Bytes of the type.
        expected: usize,
        /// Bytes of the board's values.
        found: usize,
    },
    /// The version of a cell is higher than any that a writer reaches, so the board was
    /// overwritten.
    #[error(
        "cell {cell} has version {found}, which no writer reaches: the board was scribbled over, make it anew"
    )]
    Version {
        /// The requested cell.
        cell: usize,
        /// The finding, for the message.
        found: u64,
    },
    /// The memory is not a board's.
    #[error("not a board: {0}")]
    Header(#[from] HeaderError),
    /// The board's segment cannot be created or attached.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// Creates a board's memory (latest values from one writer to many readers) with its header on the
/// heap, for tests and for ends in one process.
pub fn heap(shape: BoardShape) -> AtomicWords {
    let words = Region::heap(shape.segment_words()).words();
    shape.write_header(&words, Header::anonymous(KIND, 0, 0, 0, 0));
    words
}

/// Creates a board (newest values of one writer for its readers) on the heap and returns its ends.
///
/// # Panics
/// Never: a fresh board has a good header.
pub fn pair(shape: BoardShape) -> (Writer, Reader) {
    let words = heap(shape);
    let writer = Writer::attach(&words).expect("a fresh board has a good header");
    let reader = Reader::attach(&words.into()).expect("a fresh board has a good header");
    (writer, reader)
}

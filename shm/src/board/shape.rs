//! Layout of a board in memory: cells, slots, value size, offsets.

use super::BoardError;
use crate::memory::header::HEADER_WORDS;
use crate::memory::{AtomicWords, Header, HeaderError, LINE_WORDS as LINE, ReadOnlyWords, SegmentKind};
use crate::sync::Ordering;

const WORDS: usize = HEADER_WORDS;
const SLOTS: usize = WORDS + 1;
/// Where the first cell begins: the words above have two lines to themselves.
const CELLS: usize = HEADER_WORDS + 2 * LINE;

/// The segment kind of a board, which holds the newest values of one writer for its readers.
/// Capacity: its cells. Slot words: those of a cell.
pub const KIND: SegmentKind = SegmentKind::new(
    33,
    "board",
    &[("words", WORDS), ("slots", SLOTS), ("cells", CELLS), ("line", LINE), ("packed", LINE)],
);

/// The dimensions of a board: number of cells, 64-bit words of a value, slots of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardShape {
    cells: usize,
    words: usize,
    slots: usize,
    /// Words from the beginning of a cell to its first slot.
    first: usize,
    /// Words from a slot to the next one.
    slot: usize,
    /// Words from a cell to the next one.
    cell: usize,
}

impl BoardShape {
    /// Maximum number of cells of a board, each with values of its own: 1,048,576.
    pub const MAX_CELLS: usize = 1 << 20;
    /// Maximum number of 64-bit words of a board's value: 1 MiB.
    pub const MAX_WORDS: usize = 1 << 17;
    /// Maximum number of slots in one cell of a board, each with one of the cell's newest values:
    /// 1,048,576.
    pub const MAX_SLOTS: usize = 1 << 20;

    /// Creates the dimensions of a board of `cells` cells for values of `words` 64-bit words. The
    /// number of slots is [`BoardShape::slots_for`].
    ///
    /// # Errors
    /// [`BoardError::Shape`].
    pub fn with_cells(cells: usize, words: usize) -> Result<Self, BoardError> {
        Self::with_slots(cells, words, Self::slots_for(words))
    }

    /// Creates the dimensions of a board that is read as a log: one cell of `slots` slots for
    /// entries of `words` words. A reader may be up to `slots` − 1 entries late before it misses
    /// some.
    ///
    /// # Errors
    /// [`BoardError::Shape`].
    pub fn log(words: usize, slots: usize) -> Result<Self, BoardError> {
        Self::with_slots(1, words, slots)
    }

    /// Creates the dimensions of a board: `cells` cells, values of `words` words, `slots` slots a
    /// cell. The number of slots is a power of two from 2.
    ///
    /// # Errors
    /// [`BoardError::Shape`]: a number that boards do not have.
    pub fn with_slots(cells: usize, words: usize, slots: usize) -> Result<Self, BoardError> {
        let is_good = (1..=Self::MAX_CELLS).contains(&cells)
            && (1..=Self::MAX_WORDS).contains(&words)
            && (2..=Self::MAX_SLOTS).contains(&slots)
            && slots.is_power_of_two();
        if !is_good {
            return Err(BoardError::Shape { cells, words, slots });
        }
        // One line holds all of a small cell, so that a reader fetches one line for version and
        // value. Where that does not fit, no slot shares a line: a reader's lines stay as they are
        // while the writer fills the next slot.
        let packed_words = 1 + slots * (1 + words);
        let is_packed = packed_words <= LINE;
        let (first, slot) =
            if is_packed { (1, 1 + words) } else { (LINE, (1 + words).next_multiple_of(LINE)) };
        let cell = (first + slots * slot).next_multiple_of(LINE);
        Ok(Self { cells, words, slots, first, slot, cell })
    }

    /// Returns the default number of slots of a board's cell for values of `words` words. The
    /// reasons are in the module's documentation, "Sizes".
    pub const fn slots_for(words: usize) -> usize {
        match words {
            ..=2 => 2,
            3..=512 => 4,
            _ => 8,
        }
    }

    /// Returns the number of cells of the board.
    pub const fn cells(&self) -> usize {
        self.cells
    }

    /// Returns the number of 64-bit words of a value on the board.
    pub const fn words(&self) -> usize {
        self.words
    }

    /// Returns the number of slots of each of the board's cells.
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the size of the board's segment in 64-bit words.
    pub const fn segment_words(&self) -> usize {
        CELLS + self.cells * self.cell
    }

    /// Returns the offset (words) of a cell's version in the board's segment.
    ///
    /// # Panics
    /// If `cell` is out of range.
    #[inline(always)]
    pub fn version_at(&self, cell: usize) -> usize {
        assert!(cell < self.cells, "cell {cell} of {}", self.cells);
        CELLS + cell * self.cell
    }

    /// Returns the offset (words), in the board's segment, of the slot for the given version of a
    /// cell.
    ///
    /// # Panics
    /// If `cell` is out of range.
    #[inline(always)]
    pub fn slot_at(&self, cell: usize, version: u64) -> usize {
        // A power of two: any version has a slot of this cell.
        let slot = version as usize & (self.slots - 1);
        self.version_at(cell) + self.first + slot * self.slot
    }

    /// Writes the board's header into a fresh segment of zeros. The caller provides creator, run
    /// and index; the shape provides the rest.
    ///
    /// # Panics
    /// If the segment has not [`BoardShape::segment_words`] words.
    pub fn write_header(&self, words: &AtomicWords, header: Header) {
        assert_eq!(words.len(), self.segment_words(), "a segment of this shape");
        // Relaxed: the header's magic (Release) shows them.
        words[WORDS].store(self.words as u64, Ordering::Relaxed);
        words[SLOTS].store(self.slots as u64, Ordering::Relaxed);
        self.header(header).write(words);
    }

    /// Returns the segment header of a board of this shape. Creator, run and index are the
    /// caller's.
    #[must_use]
    pub fn header(&self, header: Header) -> Header {
        let bytes = self.segment_words() as u64 * 8;
        Header { kind: KIND, bytes, capacity: self.cells as u64, slot_words: self.cell as u64, ..header }
    }

    /// Checks that a segment has the size of a board of this shape, without trusting its header.
    pub(super) fn check_size(&self, words: usize) -> Result<(), HeaderError> {
        let (promised, found) = (self.segment_words() as u64 * 8, words as u64 * 8);
        if promised == found { Ok(()) } else { Err(HeaderError::Size { promised, found }) }
    }

    /// Reads and checks the shape in the header of a board's segment. It is copied once, and not
    /// read from shared memory again.
    pub(super) fn read(view: &ReadOnlyWords) -> Result<Self, HeaderError> {
        let header = view.header(KIND)?;
        if view.len() < CELLS {
            return Err(HeaderError::TooShort(header.bytes));
        }
        let word = |place| usize::try_from(view.load(place, Ordering::Relaxed)).unwrap_or(usize::MAX);
        let cells = usize::try_from(header.capacity).unwrap_or(usize::MAX);
        let shape = Self::with_slots(cells, word(WORDS), word(SLOTS)).map_err(|_| header.bad_geometry())?;
        header.check_geometry(CELLS, shape.cell)?;
        Ok(shape)
    }
}

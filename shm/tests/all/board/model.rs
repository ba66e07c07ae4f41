//! The naive model, and the checks against it: any writes between any two loads of a reader, and
//! writers that crash.

use super::{memory, ticks, value};
use core::ops::ControlFlow;
use proptest::prelude::*;
use shm::board::{BoardShape, LogPoll, LogReader, ReadError, Reader, Stamp, Writer};
use shm::memory::{AtomicWords, ReadOnlyWords};

/// Actions of the writer before the reader's load of a word: index of the word, number of complete
/// writes, and the store before which a further write stops.
pub type ConcurrentWrites = Vec<(usize, u8, Option<usize>)>;

#[derive(Clone, Debug)]
pub enum Act {
    Write {
        cell: usize,
        writes: u8,
    },
    Read {
        cell: usize,
        during: ConcurrentWrites,
    },
    Follow {
        during: ConcurrentWrites,
    },
    /// A write that stops before a store, after which a successor attaches.
    Die {
        cell: usize,
        at: usize,
    },
}

/// A reading end: the library's, or a defective one.
pub trait Reads {
    fn attach(view: &ReadOnlyWords, shape: BoardShape) -> Self;

    fn read(
        &mut self,
        cell: usize,
        into: &mut [u64],
        at: &mut impl FnMut(usize),
    ) -> Result<Option<Stamp>, ReadError>;
}

/// A log reader: the library's, or a defective one.
pub trait Follows {
    fn attach(view: &ReadOnlyWords, shape: BoardShape) -> Self;

    fn next(&mut self, into: &mut [u64], at: &mut impl FnMut(usize)) -> Result<LogPoll, ReadError>;
}

/// A writing end: the library's, or a defective one.
pub trait Writes {
    fn attach(words: &AtomicWords) -> Self;

    fn write(&mut self, cell: usize, ticks: u64, value: &[u64], stops_before: Option<usize>) -> Option<u64>;
}

impl Reads for Reader {
    fn attach(view: &ReadOnlyWords, _: BoardShape) -> Self {
        Reader::attach(view).unwrap()
    }

    fn read(
        &mut self,
        cell: usize,
        into: &mut [u64],
        at: &mut impl FnMut(usize),
    ) -> Result<Option<Stamp>, ReadError> {
        self.try_read_with(cell, into, at)
    }
}

impl Follows for LogReader {
    fn attach(view: &ReadOnlyWords, _: BoardShape) -> Self {
        Reader::attach(view).unwrap().follow(0, 0)
    }

    fn next(&mut self, into: &mut [u64], at: &mut impl FnMut(usize)) -> Result<LogPoll, ReadError> {
        self.next_with(into, at)
    }
}

impl Writes for Writer {
    fn attach(words: &AtomicWords) -> Self {
        Writer::attach(words).unwrap()
    }

    fn write(&mut self, cell: usize, ticks: u64, value: &[u64], stops_before: Option<usize>) -> Option<u64> {
        let at = |store| {
            if stops_before == Some(store) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.write_with(cell, ticks, value, &mut { at })
    }
}

struct CheckedBoard<W, R, F> {
    shape: BoardShape,
    words: AtomicWords,
    writer: W,
    reader: R,
    follower: F,
    newest: Vec<u64>,
    read: Vec<u64>,
    /// Entries that the log reader returned, and the number it reported as missed.
    followed: u64,
}

fn write<W: Writes>(
    writer: &mut W,
    shape: BoardShape,
    newest: &mut [u64],
    cell: usize,
    stops_before: Option<usize>,
) {
    let next = newest[cell] + 1;
    let value = value(cell, next, shape.words());
    if writer.write(cell, ticks(cell, next), &value, stops_before).is_some() {
        newest[cell] = next;
    }
}

fn write_concurrently<W: Writes>(
    writer: &mut W,
    shape: BoardShape,
    newest: &mut [u64],
    cell: usize,
    during: &ConcurrentWrites,
    index: usize,
) {
    for (_, writes, stops_before) in during.iter().filter(|(at, ..)| *at == index) {
        (0..*writes).for_each(|_| write(writer, shape, newest, cell, None));
        if let Some(store) = stops_before {
            write(writer, shape, newest, cell, Some(store % (shape.words() + 2)));
        }
    }
}

macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}

impl<W: Writes, R: Reads, F: Follows> CheckedBoard<W, R, F> {
    fn new(shape: BoardShape) -> Self {
        let words = memory(shape);
        let view = words.clone().into();
        Self {
            shape,
            writer: W::attach(&words),
            reader: R::attach(&view, shape),
            follower: F::attach(&view, shape),
            words,
            newest: vec![0; shape.cells()],
            read: vec![0; shape.cells()],
            followed: 0,
        }
    }

    fn check_value(&self, cell: usize, stamp: Stamp, found: &[u64]) -> Result<(), String> {
        let expected = value(cell, stamp.version, self.shape.words());
        ensure!(found == expected, "torn: version {} of cell {cell}", stamp.version);
        ensure!(stamp.ticks == ticks(cell, stamp.version), "torn: the time of another write: {stamp:?}");
        Ok(())
    }

    fn read(&mut self, cell: usize, during: &ConcurrentWrites) -> Result<(), String> {
        let Self { shape, writer, reader, newest, .. } = self;
        let before = newest[cell];
        let mut into = vec![0; shape.words()];
        let mut at = |index| write_concurrently(writer, *shape, newest, cell, during, index);
        let got = reader.read(cell, &mut into, &mut at);
        let passed = newest[cell] - before;
        match got {
            Ok(None) => ensure!(before == 0, "no value after {before} writes"),
            Ok(Some(stamp)) => {
                self.check_value(cell, stamp, &into)?;
                ensure!(stamp.version == before, "read {stamp:?}, but {before} was the newest");
                ensure!(stamp.version >= self.read[cell], "went back to {stamp:?}");
                self.read[cell] = stamp.version;
            }
            Err(error) => {
                ensure!(passed + 1 >= self.shape.slots() as u64, "{error}, by {passed} writes");
            }
        }
        Ok(())
    }

    fn follow(&mut self, during: &ConcurrentWrites) -> Result<LogPoll, String> {
        let Self { shape, writer, follower, newest, .. } = self;
        let unread = newest[0] - self.followed;
        let mut into = vec![0; shape.words()];
        let mut at = |index| write_concurrently(writer, *shape, newest, 0, during, index);
        let next = follower.next(&mut into, &mut at).map_err(|error| error.to_string())?;
        match next {
            LogPoll::Empty => ensure!(unread == 0, "no entry, {unread} unread"),
            LogPoll::Entry(stamp) => {
                self.check_value(0, stamp, &into)?;
                ensure!(stamp.version == self.followed + 1, "{stamp:?} after {}", self.followed);
                self.followed += 1;
            }
            LogPoll::Missed(missed) => {
                let unread = self.newest[0] - self.followed;
                ensure!(unread >= self.shape.slots() as u64, "missed, {unread} unread");
                ensure!((1..=unread).contains(&missed), "missed {missed}, {unread} unread");
                self.followed += missed;
            }
        }
        Ok(next)
    }
}

/// Performs all operations on a board of these ends, and returns the first difference from the
/// model.
pub fn check<W: Writes, R: Reads, F: Follows>(shape: BoardShape, acts: &[Act]) -> Result<(), String> {
    let mut board = CheckedBoard::<W, R, F>::new(shape);
    for act in acts {
        match act {
            Act::Write { cell, writes } => (0..*writes)
                .for_each(|_| write(&mut board.writer, shape, &mut board.newest, cell % shape.cells(), None)),
            Act::Read { cell, during } => board.read(cell % shape.cells(), during)?,
            Act::Follow { during } => drop(board.follow(during)?),
            Act::Die { cell, at } => {
                let cell = cell % shape.cells();
                write(&mut board.writer, shape, &mut board.newest, cell, Some(at % (shape.words() + 2)));
                board.writer = W::attach(&board.words);
                board.read(cell, &Vec::new())?;
            }
        }
    }
    // Without concurrent writes all is readable: each cell's newest value, and the rest of the log.
    for cell in 0..shape.cells() {
        board.read(cell, &Vec::new())?;
    }
    while board.follow(&Vec::new())? != LogPoll::Empty {}
    if board.followed == board.newest[0] { Ok(()) } else { Err("the log ends early".into()) }
}

pub fn acts() -> impl Strategy<Value = Vec<Act>> {
    let during = || prop::collection::vec((0..4_usize, 0..4_u8, prop::option::of(0..5_usize)), 0..3);
    let act = prop_oneof![
        (0..3_usize, 0..6_u8).prop_map(|(cell, writes)| Act::Write { cell, writes }),
        (0..3_usize, during()).prop_map(|(cell, during)| Act::Read { cell, during }),
        during().prop_map(|during| Act::Follow { during }),
        (0..3_usize, 0..5_usize).prop_map(|(cell, at)| Act::Die { cell, at }),
    ];
    prop::collection::vec(act, 1..40)
}

/// Draws shapes of few and more cells, words and slots.
pub fn shapes() -> impl Strategy<Value = BoardShape> {
    (1..4_usize, 1..4_usize, 1..4_u32)
        .prop_map(|(cells, words, slots)| BoardShape::with_slots(cells, words, 1 << slots).unwrap())
}

//! Boards of typed values: a value is plain data, whose bytes are the words of the board.
//!
//! Nothing is encoded. A write stores the value's own words into the board, a read copies the
//! board's words into a value: one copy, with which a torn value is recognized.

use super::{BoardError, BoardShape, ReadError, Reader, Stamp, Writer};
use core::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A type that a board can hold: plain data without padding, pointers or invalid values. Derive the
/// four traits with `zerocopy`. Its alignment is that of a `u64`, which is checked when it is used:
///
/// ```compile_fail
/// let board = shm::board::Board::<[u8; 8]>::pair(1);
/// ```
///
/// Padding is refused at compile time, because its bytes would be undefined:
///
/// ```compile_fail
/// use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[repr(C)]
/// struct Touch {
///     side: [u8; 4], // four bytes of padding follow
///     price: f64,
/// }
/// ```
pub trait BoardValue: FromBytes + IntoBytes + Immutable + KnownLayout {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> BoardValue for T {}

/// Returns the number of words of a value.
const fn words<T: BoardValue>() -> usize {
    const {
        assert!(
            align_of::<T>().is_multiple_of(align_of::<u64>()) && size_of::<T>() > 0,
            "a board's value has the alignment of a u64 and is not empty: #[repr(C, align(8))]"
        );
    };
    size_of::<T>() / size_of::<u64>()
}

fn as_words<T: BoardValue>(value: &T) -> &[u64] {
    let words = <[u64]>::ref_from_bytes(value.as_bytes());
    words.expect("`words` has checked size and alignment at compile time")
}

fn as_words_mut<T: BoardValue>(value: &mut T) -> &mut [u64] {
    let words = <[u64]>::mut_from_bytes(value.as_mut_bytes());
    words.expect("`words` has checked size and alignment at compile time")
}

fn check_size<T: BoardValue>(shape: BoardShape) -> Result<(), BoardError> {
    match (shape.words(), words::<T>()) {
        (found, expected) if found == expected => Ok(()),
        (found, expected) => Err(BoardError::ValueSize { expected: expected * 8, found: found * 8 }),
    }
}

/// A board whose cells hold values of one type. Its functions make and open the two ends.
///
/// ```
/// use shm::board::Board;
/// use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[repr(C)]
/// struct BidAsk {
///     side: [u8; 4],
///     exchange: [u8; 12],
///     symbol: [u8; 8],
///     price: f64,
///     size: f64,
///     timestamp: f64,
/// }
///
/// #[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[repr(C)]
/// struct BestBidAsk {
///     best_bid: BidAsk,
///     best_offer: BidAsk,
/// }
///
/// let best_bid = BidAsk {
///     side: *b"buy\0",
///     exchange: *b"coinbase\0\0\0\0",
///     symbol: *b"BTC-USD\0",
///     price: 418.25,
///     size: 2.5,
///     timestamp: 1_457_740_800.0,
/// };
/// let best_offer = BidAsk { side: *b"sell", price: 418.5, ..best_bid };
///
/// let name = format!("doc-touch-{}", std::process::id());
/// let mut writer = Board::<BestBidAsk>::create(&name, 64)?;
/// writer.write(3, 500, &BestBidAsk { best_bid, best_offer });
///
/// // In another process. A board of other values is refused.
/// let reader = Board::<BestBidAsk>::open(&name)?;
/// let (stamp, touch) = reader.read(3)?.expect("it was written");
/// assert_eq!((stamp.version, stamp.ticks), (1, 500));
/// assert_eq!(touch, BestBidAsk { best_bid, best_offer });
/// assert!(Board::<[u64; 2]>::open(&name).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Board<T>(PhantomData<fn() -> T>);

impl<T: BoardValue> Board<T> {
    /// Returns the dimensions of a board with `cells` cells for values of this type.
    ///
    /// # Errors
    /// [`BoardError::Shape`].
    pub fn shape(cells: usize) -> Result<BoardShape, BoardError> {
        BoardShape::with_cells(cells, words::<T>())
    }

    /// Creates a board under a name in `/dev/shm`, as [`NamedWriter::create`](super::NamedWriter)
    /// does.
    ///
    /// # Errors
    /// As [`NamedWriter::create`](super::NamedWriter::create).
    #[cfg(not(loom))]
    pub fn create(name: &str, cells: usize) -> Result<ValueWriter<T, super::NamedWriter>, BoardError> {
        Ok(ValueWriter::from_writer(super::NamedWriter::create(name, Self::shape(cells)?)?))
    }

    /// Continues the board, by name, of a crashed writer of such values: attached readers keep them
    /// and see new ones.
    ///
    /// # Errors
    /// [`BoardError::ValueSize`]: its values have another size; as
    /// [`NamedWriter::resume`](super::NamedWriter::resume).
    #[cfg(not(loom))]
    pub fn resume(name: &str) -> Result<ValueWriter<T, super::NamedWriter>, BoardError> {
        // Checked on pages that cannot be written, so that a refusal changes nothing.
        check_size::<T>(Reader::open(name)?.shape())?;
        let writer = super::NamedWriter::resume(name)?;
        check_size::<T>(writer.shape())?;
        Ok(ValueWriter::from_writer(writer))
    }

    /// Attaches a reading end to the board with this name, as [`Reader::open`] does.
    ///
    /// # Errors
    /// [`BoardError::ValueSize`]: its values have another size; as [`Reader::open`].
    #[cfg(not(loom))]
    pub fn open(name: &str) -> Result<ValueReader<T>, BoardError> {
        ValueReader::new(Reader::open(name)?)
    }

    /// Creates a board on the heap and returns its ends, for tests.
    ///
    /// # Errors
    /// [`BoardError::Shape`].
    pub fn pair(cells: usize) -> Result<(ValueWriter<T>, ValueReader<T>), BoardError> {
        let (writer, reader) = super::pair(Self::shape(cells)?);
        Ok((ValueWriter::from_writer(writer), ValueReader::new(reader)?))
    }
}

/// The writing end of a board of typed values. `W` is [`Writer`] or
/// [`NamedWriter`](super::NamedWriter).
pub struct ValueWriter<T, W = Writer> {
    writer: W,
    value: PhantomData<fn(T)>,
}

impl<T: BoardValue> ValueWriter<T> {
    /// Creates a board's writing end for values of type `T` from its end for plain words.
    ///
    /// # Errors
    /// [`BoardError::ValueSize`]: the board's values have another size.
    pub fn new(writer: Writer) -> Result<Self, BoardError> {
        check_size::<T>(writer.shape())?;
        Ok(Self::from_writer(writer))
    }
}

impl<T: BoardValue, W> ValueWriter<T, W> {
    const fn from_writer(writer: W) -> Self {
        Self { writer, value: PhantomData }
    }

    /// Returns the writing end for plain words, for [`Writer::wake`] or
    /// [`NamedWriter::leave`](super::NamedWriter::leave).
    pub fn into_untyped(self) -> W {
        self.writer
    }
}

impl<T: BoardValue> ValueWriter<T> {
    /// Writes a cell's newest value and its time `ticks` through a plain [`Writer`], and returns
    /// the value's version, as [`Writer::write`] does.
    ///
    /// # Panics
    /// If `cell` is out of range.
    #[inline(always)]
    pub fn write(&mut self, cell: usize, ticks: u64, value: &T) -> u64 {
        self.writer.write(cell, ticks, as_words(value))
    }
}

#[cfg(not(loom))]
impl<T: BoardValue> ValueWriter<T, super::NamedWriter> {
    /// Writes a cell's newest value and its time `ticks` through a
    /// [`NamedWriter`](super::NamedWriter), and returns the value's version, as [`Writer::write`]
    /// does.
    ///
    /// # Panics
    /// If `cell` is out of range.
    #[inline(always)]
    pub fn write(&mut self, cell: usize, ticks: u64, value: &T) -> u64 {
        self.writer.write(cell, ticks, as_words(value))
    }

    /// Wakes the readers that sleep until the board's cell has a newer value, as [`Writer::wake`]
    /// does.
    ///
    /// # Panics
    /// If `cell` is out of range.
    pub fn wake(&self, cell: usize) {
        self.writer.wake(cell);
    }
}

/// A reading end of a board of typed values.
pub struct ValueReader<T> {
    reader: Reader,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for ValueReader<T> {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone(), value: PhantomData }
    }
}

impl<T: BoardValue> ValueReader<T> {
    /// Creates a board's reading end for values of type `T` from its end for plain words.
    ///
    /// # Errors
    /// [`BoardError::ValueSize`]: the board's values have another size.
    pub fn new(reader: Reader) -> Result<Self, BoardError> {
        check_size::<T>(reader.shape())?;
        Ok(Self { reader, value: PhantomData })
    }

    /// Returns the board's reading end for plain words, for versions, waiting and logs.
    pub const fn untyped(&self) -> &Reader {
        &self.reader
    }

    /// Reads the newest value of a board's cell, as [`Reader::read`] does; `None` before the first
    /// write.
    ///
    /// # Errors
    /// [`ReadError::Overtaken`].
    ///
    /// # Panics
    /// If `cell` is out of range.
    #[inline]
    pub fn read(&self, cell: usize) -> Result<Option<(Stamp, T)>, ReadError> {
        let mut value = T::new_zeroed();
        Ok(self.read_into(cell, &mut value)?.map(|stamp| (stamp, value)))
    }

    /// Reads the newest value of a board's cell into `value`; `None` before the first write.
    ///
    /// # Errors
    /// [`ReadError::Overtaken`]: `value` holds nothing of use then.
    ///
    /// # Panics
    /// If `cell` is out of range.
    #[inline]
    pub fn read_into(&self, cell: usize, value: &mut T) -> Result<Option<Stamp>, ReadError> {
        self.reader.read(cell, as_words_mut(value))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    /// Fields of several sizes, without padding.
    #[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
    #[repr(C)]
    struct Touch {
        side: [u8; 4],
        count: u32,
        price: f64,
        size: u64,
    }

    const TOUCH: Touch = Touch { side: *b"sell", count: 7, price: 418.25, size: u64::MAX };

    #[test]
    fn typed_value_is_read_as_it_was_written() {
        let (mut writer, reader) = Board::<Touch>::pair(3).unwrap();
        assert_eq!(reader.read(2), Ok(None));
        assert_eq!(writer.write(2, 500, &TOUCH), 1);
        let (stamp, value) = reader.clone().read(2).unwrap().unwrap();
        assert_eq!((stamp, value), (Stamp { version: 1, ticks: 500 }, TOUCH));
        // The words are those of the value, for readers without its type.
        let mut words = [0; 3];
        reader.untyped().read(2, &mut words).unwrap();
        assert_eq!(words.as_bytes(), TOUCH.as_bytes());
        let mut other = Touch::new_zeroed();
        assert_eq!(reader.read_into(0, &mut other), Ok(None));
        assert_eq!(other, Touch::new_zeroed());
    }

    #[test]
    fn board_of_another_value_size_is_refused() {
        let (writer, reader) = super::super::pair(BoardShape::with_cells(1, 4).unwrap());
        let found = ValueReader::<Touch>::new(reader).map(drop).unwrap_err();
        assert!(matches!(found, BoardError::ValueSize { expected: 24, found: 32 }), "{found}");
        assert!(ValueWriter::<Touch>::new(writer).is_err());
    }

    #[cfg(not(miri))]
    #[test]
    fn named_board_of_another_type_is_refused_unharmed() {
        let name = format!("typed-board-{}", std::process::id());
        let mut writer = Board::<Touch>::create(&name, 2).unwrap();
        writer.write(1, 9, &TOUCH);
        writer.wake(1);
        assert!(matches!(Board::<[u64; 4]>::open(&name), Err(BoardError::ValueSize { .. })));
        writer.into_untyped().leave();
        assert!(matches!(Board::<[u64; 4]>::resume(&name), Err(BoardError::ValueSize { .. })));
        let mut successor = Board::<Touch>::resume(&name).unwrap();
        assert_eq!(Board::<Touch>::open(&name).unwrap().read(1).unwrap().unwrap().1, TOUCH);
        assert_eq!(successor.write(1, 10, &TOUCH), 2);
    }
}

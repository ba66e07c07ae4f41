//! The interface of the compared values: `W` words that one thread writes and another reads.

use arc_swap::ArcSwap;
use left_right::{Absorb, ReadHandle, WriteHandle};
use seqlock::SeqLock;
use shm::board::{self, BoardShape, Reader, Writer};
use std::sync::Arc;

/// One way to publish a value from one thread to others.
pub trait Contender<const W: usize> {
    /// The writing end of the published value.
    type Writer: Send;
    /// The reading end of the published value.
    type Reader: Send;

    /// Creates a value and returns its writing and its reading end.
    fn pair() -> (Self::Writer, Self::Reader);

    /// Publishes `value` as the newest value.
    fn write(writer: &mut Self::Writer, value: &[u64; W]);

    /// Copies the newest published value; returns how often it had to begin again.
    fn read(reader: &mut Self::Reader, into: &mut [u64; W]) -> u32;
}

/// The board of this project, with `N` slots per cell.
pub struct Board<const SLOTS: usize>;

impl<const W: usize, const SLOTS: usize> Contender<W> for Board<SLOTS> {
    type Writer = Writer;
    type Reader = Reader;

    fn pair() -> (Writer, Reader) {
        board::pair(BoardShape::with_slots(1, W, SLOTS).expect("a shape"))
    }

    #[inline(always)]
    fn write(writer: &mut Writer, value: &[u64; W]) {
        writer.write(0, 0, value);
    }

    #[inline(always)]
    fn read(reader: &mut Reader, into: &mut [u64; W]) -> u32 {
        let mut again = 0;
        while reader.try_read(0, into).is_err() {
            again += 1;
            std::hint::spin_loop();
        }
        again
    }
}

/// The crate `seqlock`: one slot, a lock among writers, readers wait for a write to end.
pub struct Sequence;

impl<const W: usize> Contender<W> for Sequence {
    type Writer = Arc<SeqLock<[u64; W]>>;
    type Reader = Self::Writer;

    fn pair() -> (Self::Writer, Self::Reader) {
        let cell = Arc::new(SeqLock::new([0; W]));
        (Arc::clone(&cell), cell)
    }

    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &[u64; W]) {
        *writer.lock_write() = *value;
    }

    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut [u64; W]) -> u32 {
        *into = reader.read();
        0
    }
}

/// The crate `left-right`: two copies, readers register, the writer waits for them.
pub struct LeftRight;

/// The value of the crate `left-right`.
#[derive(Clone)]
pub struct Value<const W: usize>([u64; W]);

impl<const W: usize> Absorb<Value<W>> for Value<W> {
    fn absorb_first(&mut self, operation: &mut Value<W>, _: &Self) {
        self.0 = operation.0;
    }

    fn absorb_second(&mut self, operation: Value<W>, _: &Self) {
        self.0 = operation.0;
    }

    fn sync_with(&mut self, first: &Self) {
        self.0 = first.0;
    }
}

impl<const W: usize> Contender<W> for LeftRight {
    type Writer = WriteHandle<Value<W>, Value<W>>;
    type Reader = ReadHandle<Value<W>>;

    fn pair() -> (Self::Writer, Self::Reader) {
        left_right::new_from_empty(Value([0; W]))
    }

    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &[u64; W]) {
        writer.append(Value(*value));
        writer.publish();
    }

    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut [u64; W]) -> u32 {
        if let Some(value) = reader.enter() {
            *into = value.0;
        }
        0
    }
}

/// The crate `arc-swap`: each value on the heap, freed when its last reader is gone.
pub struct Swap;

impl<const W: usize> Contender<W> for Swap {
    type Writer = Arc<ArcSwap<[u64; W]>>;
    type Reader = Self::Writer;

    fn pair() -> (Self::Writer, Self::Reader) {
        let cell = Arc::new(ArcSwap::from_pointee([0; W]));
        (Arc::clone(&cell), cell)
    }

    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &[u64; W]) {
        writer.store(Arc::new(*value));
    }

    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut [u64; W]) -> u32 {
        *into = **reader.load();
        0
    }
}

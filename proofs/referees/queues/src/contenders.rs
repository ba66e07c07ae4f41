//! The compared ways to share a value of `W` words that one thread writes and another reads.

use crate::{Times, measure};
use arc_swap::ArcSwap;
use left_right::Absorb;
use seqlock::SeqLock;
use shm::board::{self, BoardShape, Reader, Writer};
use std::sync::Arc;

pub type Named = (&'static str, fn() -> Times);

/// Returns all contenders: first the board with 2, 4 and 8 slots.
pub fn all<const W: usize>() -> [Named; 6] {
    [
        ("board, 2 slots", board::<W, 2>),
        ("board, 4 slots", board::<W, 4>),
        ("board, 8 slots", board::<W, 8>),
        ("seqlock", seqlock::<W>),
        ("left-right", left_right::<W>),
        ("arc-swap", swap::<W>),
    ]
}

/// The board of this project, with `SLOTS` slots per cell.
fn board<const W: usize, const SLOTS: usize>() -> Times {
    let pair = board::pair(BoardShape::with_slots(1, W, SLOTS).expect("a shape"));
    measure::<W, Writer, Reader>(
        pair,
        #[inline(always)]
        |writer, value| _ = writer.write(0, 0, value),
        #[inline(always)]
        |reader, into| {
            let mut again = 0;
            while reader.try_read(0, into).is_err() {
                again += 1;
                std::hint::spin_loop();
            }
            again
        },
    )
}

/// The crate `seqlock`: one slot, a lock among writers, readers wait for a write to end.
fn seqlock<const W: usize>() -> Times {
    let cell = Arc::new(SeqLock::new([0; W]));
    measure(
        (Arc::clone(&cell), cell),
        #[inline(always)]
        |writer, value| *writer.lock_write() = *value,
        #[inline(always)]
        |reader, into| {
            *into = reader.read();
            0
        },
    )
}

#[derive(Clone)]
struct Value<const W: usize>([u64; W]);

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

/// The crate `left-right`: two copies, readers register, the writer waits for them.
fn left_right<const W: usize>() -> Times {
    measure(
        left_right::new_from_empty(Value([0; W])),
        #[inline(always)]
        |writer, value| {
            writer.append(Value(*value));
            writer.publish();
        },
        #[inline(always)]
        |reader, into| {
            if let Some(value) = reader.enter() {
                *into = value.0;
            }
            0
        },
    )
}

/// The crate `arc-swap`: each value on the heap, freed when its last reader is gone.
fn swap<const W: usize>() -> Times {
    let cell = Arc::new(ArcSwap::from_pointee([0; W]));
    measure(
        (Arc::clone(&cell), cell),
        #[inline(always)]
        |writer, value| writer.store(Arc::new(*value)),
        #[inline(always)]
        |reader, into| {
            *into = **reader.load();
            0
        },
    )
}

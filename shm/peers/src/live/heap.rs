//! The compared crates whose ends are threads of one process and share its heap.

use crate::work::{Peer, Value, WORDS};
use disruptor::{BusySpin, Producer, build_single_producer};
use left_right::{Absorb, ReadHandle, WriteHandle};
use seqlock::SeqLock;
use shm::board::{self, BoardShape};
use std::sync::Arc;
use std::time::Duration;

/// The room of a queue.
const ROOM: usize = 1024;

/// A compared crate whose ends are threads of one process.
pub trait Heap: Peer<Writer: Send, Reader: Send> {
    /// Creates a writer and `readers` readers of the compared crate.
    fn make(readers: usize) -> (Self::Writer, Vec<Self::Reader>);
}

/// The board of this project on the heap.
pub struct Board;

impl Peer for Board {
    const NAME: &'static str = "board";
    type Writer = board::Writer;
    type Reader = (board::Reader, u64);
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        writer.write(0, value[1], value);
    }
    #[inline(always)]
    fn read((reader, seen): &mut Self::Reader, into: &mut Value) -> bool {
        if reader.version(0) == *seen {
            return false;
        }
        match reader.read(0, into) {
            Ok(Some(stamp)) => {
                *seen = stamp.version;
                true
            }
            _ => false,
        }
    }
}

impl Heap for Board {
    fn make(readers: usize) -> (Self::Writer, Vec<Self::Reader>) {
        let (writer, reader) = board::pair(BoardShape::with_cells(1, WORDS).expect("a shape"));
        (writer, vec![(reader, 0); readers])
    }
}

/// The crate `seqlock`, between threads.
pub struct Sequence;

impl Peer for Sequence {
    const NAME: &'static str = "seqlock";
    type Writer = Arc<SeqLock<Value>>;
    type Reader = Self::Writer;
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        *writer.lock_write() = *value;
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        *into = reader.read();
        true
    }
}

impl Heap for Sequence {
    fn make(readers: usize) -> (Self::Writer, Vec<Self::Reader>) {
        let cell = Arc::new(SeqLock::new([0; WORDS]));
        (Arc::clone(&cell), vec![cell; readers])
    }
}

/// The crate `left-right`, between threads.
pub struct LeftRight;

/// The value of the crate `left-right`.
#[derive(Clone)]
pub struct Held(Value);

impl Absorb<Held> for Held {
    fn absorb_first(&mut self, operation: &mut Held, _: &Self) {
        self.0 = operation.0;
    }
    fn absorb_second(&mut self, operation: Held, _: &Self) {
        self.0 = operation.0;
    }
    fn sync_with(&mut self, first: &Self) {
        self.0 = first.0;
    }
}

impl Peer for LeftRight {
    const NAME: &'static str = "left-right";
    type Writer = WriteHandle<Held, Held>;
    type Reader = ReadHandle<Held>;
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        writer.append(Held(*value));
        writer.publish();
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        Self::read_slowly(reader, into, Duration::ZERO).0
    }
    #[inline(always)]
    fn read_slowly(reader: &mut Self::Reader, into: &mut Value, hold: Duration) -> (bool, bool) {
        let Some(value) = reader.enter() else { return (false, false) };
        *into = value.0;
        if !hold.is_zero() {
            std::thread::sleep(hold);
        }
        (true, value.0 != *into)
    }
}

impl Heap for LeftRight {
    fn make(readers: usize) -> (Self::Writer, Vec<Self::Reader>) {
        let (writer, reader) = left_right::new_from_empty(Held([0; WORDS]));
        (writer, vec![reader; readers])
    }
}

/// The crate `disruptor`: every value to every reader; its writer waits for the slowest.
pub struct Disruptor;

impl Peer for Disruptor {
    const NAME: &'static str = "disruptor";
    type Writer = Box<dyn FnMut(&Value) + Send>;
    type Reader = Box<dyn FnMut(&mut Value) -> bool + Send>;
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        writer(value);
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        reader(into)
    }
}

impl Heap for Disruptor {
    fn make(readers: usize) -> (Self::Writer, Vec<Self::Reader>) {
        // One value at a time, as the others give it.
        macro_rules! reader {
            ($poller:expr) => {{
                let mut poller = $poller;
                Box::new(move |into: &mut Value| {
                    let Ok(mut events) = poller.take(1) else { return false };
                    (&mut events).next().is_some_and(|event: &Value| {
                        *into = *event;
                        true
                    })
                }) as Self::Reader
            }};
        }
        macro_rules! writer {
            ($builder:expr) => {{
                let mut producer = $builder.build();
                Box::new(move |value: &Value| producer.publish(|event| *event = *value)) as Self::Writer
            }};
        }
        let builder = build_single_producer(ROOM, || [0; WORDS], BusySpin);
        let (first, builder) = builder.new_event_poller();
        let mut all = vec![reader!(first)];
        if readers == 1 {
            return (writer!(builder), all);
        }
        let (second, mut builder) = builder.new_event_poller();
        all.push(reader!(second));
        while all.len() < readers {
            let (poller, next) = builder.new_event_poller();
            builder = next;
            all.push(reader!(poller));
        }
        (writer!(builder), all)
    }
}

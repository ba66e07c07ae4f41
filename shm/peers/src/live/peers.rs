//! What is compared, as one writer and several readers in one process, each over its crate's own read path.

use disruptor::{BusySpin, Producer, build_single_producer};
use left_right::{Absorb, ReadHandle, WriteHandle};
use mmap_sync::synchronizer::Synchronizer;
use seqlock::SeqLock;
use shaq::broadcast::{self, Broadcast, BroadcastConfig, ProducerId};
use shm::board::{self, Shape};
use shm::sync::{AtomicU64, Ordering};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Words of a value.
pub const WORDS: usize = 8;
/// A value.
pub type Value = [u64; WORDS];
/// The room of a queue.
const ROOM: usize = 1024;

/// One way to publish a value to many.
pub trait Peer {
    /// Its name.
    const NAME: &'static str;
    /// The writing end.
    type Writer: Send;
    /// A reading end.
    type Reader: Send;
    /// A writer and so many readers; files go into the folder.
    fn make(readers: usize, folder: &Path) -> (Self::Writer, Vec<Self::Reader>);
    /// Publishes.
    fn write(writer: &mut Self::Writer, value: &Value);
    /// Copies the newest value, or the next one; false: there is nothing that it can see to be newer.
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool;
}

/// The board.
pub struct Board;

impl Peer for Board {
    const NAME: &'static str = "board";
    type Writer = board::Writer;
    type Reader = (board::Reader, u64);
    fn make(readers: usize, _: &Path) -> (Self::Writer, Vec<Self::Reader>) {
        let (writer, reader) = board::pair(Shape::of_cells(1, WORDS).expect("a shape"));
        (writer, vec![(reader, 0); readers])
    }
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

/// The crate `seqlock`.
pub struct Sequence;

impl Peer for Sequence {
    const NAME: &'static str = "seqlock";
    type Writer = Arc<SeqLock<Value>>;
    type Reader = Self::Writer;
    fn make(readers: usize, _: &Path) -> (Self::Writer, Vec<Self::Reader>) {
        let cell = Arc::new(SeqLock::new([0; WORDS]));
        (Arc::clone(&cell), vec![cell; readers])
    }
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

/// The crate `left-right`.
pub struct LeftRight;

/// Its value.
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
    fn make(readers: usize, _: &Path) -> (Self::Writer, Vec<Self::Reader>) {
        let (writer, reader) = left_right::new_from_empty(Held([0; WORDS]));
        (writer, vec![reader; readers])
    }
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        writer.append(Held(*value));
        writer.publish();
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        reader.enter().is_some_and(|value| {
            *into = value.0;
            true
        })
    }
}

/// The crate `mmap-sync`: two mapped files, readers counted in a third.
pub struct MmapSync;

/// A reading end of it: the version that was read last, so that only newer ones are.
pub struct MmapReader {
    synchronizer: Synchronizer,
    seen: Option<mmap_sync::instance::InstanceVersion>,
}

impl Peer for MmapSync {
    const NAME: &'static str = "mmap-sync";
    type Writer = Synchronizer;
    type Reader = MmapReader;
    fn make(readers: usize, folder: &Path) -> (Self::Writer, Vec<Self::Reader>) {
        // New files each time.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let path: PathBuf = folder.join(format!("mmap-sync-{}", MADE.fetch_add(1, Ordering::Relaxed)));
        let mut writer = Synchronizer::new(path.as_os_str());
        writer.write(&[0; WORDS], Duration::from_secs(1)).expect("the first write");
        let reader = || MmapReader { synchronizer: Synchronizer::new(path.as_os_str()), seen: None };
        (writer, (0..readers).map(|_| reader()).collect())
    }
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        writer.write(value, Duration::from_secs(1)).expect("a write");
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        let version = reader.synchronizer.version().ok();
        if version == reader.seen {
            return false;
        }
        reader.seen = version;
        // Checked: with 2.0.4 unchecked reads ended this bench by SIGSEGV, most of the time.
        // SAFETY: what is mapped is an array of integers, of which every pattern of bits is one; its length is checked.
        let found = unsafe { reader.synchronizer.read::<Value>(true) };
        found.is_ok_and(|value| {
            into.copy_from_slice(&*value);
            true
        })
    }
}

/// The crate `disruptor`: every value to every reader; its writer waits for the slowest.
pub struct Disruptor;

impl Peer for Disruptor {
    const NAME: &'static str = "disruptor";
    type Writer = Box<dyn FnMut(&Value) + Send>;
    type Reader = Box<dyn FnMut(&mut Value) -> bool + Send>;
    fn make(readers: usize, _: &Path) -> (Self::Writer, Vec<Self::Reader>) {
        // One value at a time, as the others give it.
        macro_rules! reader {
            ($poller:expr) => {{
                let mut poller = $poller;
                Box::new(move |into: &mut Value| {
                    let Ok(mut events) = poller.poll_take(1) else { return false };
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
        let (first, builder) = builder.event_poller();
        let mut all = vec![reader!(first)];
        if readers == 1 {
            return (writer!(builder), all);
        }
        let (second, mut builder) = builder.event_poller();
        all.push(reader!(second));
        while all.len() < readers {
            let (poller, next) = builder.event_poller();
            builder = next;
            all.push(reader!(poller));
        }
        (writer!(builder), all)
    }
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        writer(value);
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        reader(into)
    }
}

/// The broadcast of the crate `shaq`, over a mapped file: every value to every reader; its writer waits for the slowest.
pub struct Shaq;

impl Peer for Shaq {
    const NAME: &'static str = "shaq";
    type Writer = broadcast::Producer<Value>;
    type Reader = broadcast::Consumer<Value>;
    fn make(readers: usize, folder: &Path) -> (Self::Writer, Vec<Self::Reader>) {
        // New files each time.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let path: PathBuf = folder.join(format!("shaq-{}", MADE.fetch_add(1, Ordering::Relaxed)));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).expect("a file");
        let config = BroadcastConfig { capacity: ROOM, producer_slots: 1, consumer_slots: readers };
        // SAFETY: the file is new and nobody else has it; values are arrays of integers.
        let broadcast = unsafe { Broadcast::<Value>::create(&file, config) }.expect("a queue");
        let all = (0..readers).map(|_| broadcast.consumer().expect("a reader")).collect();
        (broadcast.producer(ProducerId::new(0)).expect("the writer"), all)
    }
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        while writer.try_write(*value).is_err() {
            std::hint::spin_loop();
        }
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        reader.try_read().is_some_and(|value| {
            *into = value;
            true
        })
    }
}

//! The compared crates whose ends are processes: each end is opened by a name or a path in a
//! directory of its own.

use crate::heap::Board;
use crate::work::{HOLD, Peer, Value, WORDS};
use mmap_sync::instance::InstanceVersion;
use mmap_sync::locks::LockDisabled;
use mmap_sync::synchronizer::Synchronizer;
use shaq::broadcast::{Broadcast, BroadcastConfig, Consumer, Producer, ProducerId};
use shm::board::{self, BoardShape, NamedWriter};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;
use wyhash::WyHash;

/// The room of a queue.
const ROOM: usize = 1024;

/// A compared crate whose ends are in separate processes. The writing end is there before readers
/// come.
pub trait Shared: Peer {
    /// Creates the writing end in a new directory, for `readers` readers.
    fn writer(folder: &Path, readers: usize) -> Self::Writer;
    /// Opens a reading end in the directory of the writing end.
    fn reader(folder: &Path) -> Self::Reader;
}

/// The board of this project under a name.
pub struct Named;

/// Returns the last component of a directory's path.
pub fn name(folder: &Path) -> String {
    folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

impl Peer for Named {
    const NAME: &'static str = "board";
    type Writer = NamedWriter;
    type Reader = (board::Reader, u64);
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        Board::write(writer, value);
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        Board::read(reader, into)
    }
}

impl Shared for Named {
    fn writer(folder: &Path, _: usize) -> Self::Writer {
        NamedWriter::create(&name(folder), BoardShape::with_cells(1, WORDS).expect("a shape"))
            .expect("a board")
    }
    fn reader(folder: &Path) -> Self::Reader {
        (board::Reader::open(&name(folder)).expect("the board"), 0)
    }
}

/// The crate `mmap-sync`: two mapped files, readers counted in a third. A writer that finds readers
/// sleeps before it checks again, for 1 s by default, and continues after its grace period as if
/// they were gone.
pub struct MmapSync<const GRACE_MS: u64, const SLEEP_NS: u64>;

/// Both ends are of this type.
type Ends<const SLEEP_NS: u64> = Synchronizer<WyHash, LockDisabled, 1024, SLEEP_NS>;

/// A reading end of `mmap-sync` with the version that it read last, so that it returns only newer
/// ones.
pub struct MmapReader<const SLEEP_NS: u64> {
    synchronizer: Ends<SLEEP_NS>,
    seen: Option<InstanceVersion>,
}

impl<const GRACE_MS: u64, const SLEEP_NS: u64> Peer for MmapSync<GRACE_MS, SLEEP_NS> {
    const NAME: &'static str = if SLEEP_NS == SECOND { "mmap-sync" } else { "mmap-sync, 10 ms" };
    type Writer = Ends<SLEEP_NS>;
    type Reader = MmapReader<SLEEP_NS>;
    #[inline(always)]
    fn write(writer: &mut Self::Writer, value: &Value) {
        writer.write(value, Duration::from_millis(GRACE_MS)).expect("a write");
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        Self::read_slowly(reader, into, Duration::ZERO).0
    }
    #[inline(always)]
    fn read_slowly(reader: &mut Self::Reader, into: &mut Value, hold: Duration) -> (bool, bool) {
        let version = reader.synchronizer.version().ok();
        if version == reader.seen {
            return (false, false);
        }
        reader.seen = version;
        // SAFETY: what is mapped is an array of integers, of which every pattern of bits is one;
        // every value that is written has that length, so nothing is to be checked.
        let Ok(value) = (unsafe { reader.synchronizer.read::<Value>(false) }) else {
            return (false, false);
        };
        let value: *const Value = (&raw const *value).cast();
        // SAFETY: mapped, for as long as the guard lives; volatile, because another process may
        // write it.
        *into = unsafe { value.read_volatile() };
        if hold.is_zero() {
            return (true, false);
        }
        std::thread::sleep(hold);
        // SAFETY: as before.
        (true, unsafe { value.read_volatile() } != *into)
    }
}

impl<const GRACE_MS: u64, const SLEEP_NS: u64> Shared for MmapSync<GRACE_MS, SLEEP_NS> {
    fn writer(folder: &Path, _: usize) -> Self::Writer {
        // Of one type with all others: a reader trusts the length.
        let mut writer = Ends::with_params(folder.join("values").as_os_str());
        writer.write(&Value::default(), Duration::from_secs(1)).expect("the first write");
        writer
    }
    fn reader(folder: &Path) -> Self::Reader {
        MmapReader { synchronizer: Ends::with_params(folder.join("values").as_os_str()), seen: None }
    }
}

/// The usual sleep of the writer of `mmap-sync`.
pub const SECOND: u64 = 1_000_000_000;
/// A grace period that is shorter than a slow reader holds its value, and a sleep that fits it.
pub const SHORT: (u64, u64) = (10, 1_000);
const _: () = assert!(SHORT.0 < HOLD.as_millis() as u64);

/// The broadcast of the crate `shaq`, over a mapped file: every value to every reader; its writer
/// waits for the slowest.
pub struct Shaq;

impl Peer for Shaq {
    const NAME: &'static str = "shaq";
    type Writer = Producer<Value>;
    type Reader = Consumer<Value>;
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

impl Shared for Shaq {
    fn writer(folder: &Path, readers: usize) -> Self::Writer {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create_new(true).open(folder.join("lanes")).expect("a file");
        let config = BroadcastConfig { capacity: ROOM, producer_slots: 1, consumer_slots: readers };
        // SAFETY: the file is new and nobody else has it; values are arrays of integers.
        let broadcast = unsafe { Broadcast::<Value>::create(&file, config) }.expect("a queue");
        broadcast.producer(ProducerId::new(0)).expect("the writer")
    }
    fn reader(folder: &Path) -> Self::Reader {
        let file: File =
            OpenOptions::new().read(true).write(true).open(folder.join("lanes")).expect("the file");
        // SAFETY: made by the writer of the same build, for arrays of integers.
        unsafe { Broadcast::<Value>::join(&file) }.expect("the queue").consumer().expect("a reader")
    }
}

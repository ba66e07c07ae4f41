//! The compared crates whose ends are processes: each end is opened by a name or a path in a
//! directory of its own.

use crate::heap::read_board;
use crate::processes::{Contender, name};
use crate::work::{HOLD, Value, WORDS, copies, keep};
use mmap_sync::instance::InstanceVersion;
use mmap_sync::locks::LockDisabled;
use mmap_sync::synchronizer::Synchronizer;
use shaq::broadcast::{Broadcast, BroadcastConfig, Consumer, ProducerId};
use shm::board::{self, BoardShape, LogPoll, LogReader, NamedWriter};
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use wyhash::WyHash;

/// Values that a reader may be late where each value is kept.
pub const ROOM: usize = 1024;

pub fn all() -> Vec<Contender> {
    vec![
        Contender::new(
            "board",
            |folder, _| {
                let shape = BoardShape::with_cells(1, WORDS).expect("a shape");
                NamedWriter::create(&name(folder), shape).expect("a board")
            },
            |writer, value| _ = writer.write(0, value[1], value),
            |folder| (board::Reader::open(&name(folder)).expect("the board"), 0),
            copies(read_board),
        ),
        log(),
        mmap_sync::<1000, SECOND>("mmap-sync"),
        mmap_sync::<{ SHORT.0 }, { SHORT.1 }>("mmap-sync, 10 ms"),
        shaq(),
        #[cfg(feature = "aeron")]
        crate::aeron::publication(),
        #[cfg(feature = "iceoryx2")]
        crate::iceoryx::published(),
        #[cfg(feature = "iceoryx2")]
        crate::iceoryx::blackboard(),
    ]
}

/// The board of this project, read as a log: every value to every reader that is at most [`ROOM`]
/// late; its writer waits for nobody.
fn log() -> Contender {
    Contender::new(
        "log",
        |folder, _| {
            let shape = BoardShape::log(WORDS, ROOM).expect("a shape");
            NamedWriter::create(&name(folder), shape).expect("a board")
        },
        |writer, value| _ = writer.write(0, value[1], value),
        |folder| board::Reader::open(&name(folder)).expect("the board").follow(0, 0),
        copies(|reader: &mut LogReader, into| matches!(reader.next(into), Ok(LogPoll::Entry(_)))),
    )
}

/// Both ends are of this type.
type Ends<const SLEEP_NS: u64> = Synchronizer<WyHash, LockDisabled, 1024, SLEEP_NS>;

/// The usual sleep of the writer of `mmap-sync`.
const SECOND: u64 = 1_000_000_000;
/// A grace period that is shorter than a slow reader holds its value, and a sleep that fits it.
const SHORT: (u64, u64) = (10, 1_000);
const _: () = assert!(SHORT.0 < HOLD.as_millis() as u64);

/// The crate `mmap-sync`: two mapped files, readers counted in a third. A writer that finds readers
/// sleeps before it checks again, for 1 s by default, and continues after its grace period as if
/// they were gone. A reading end has the version that it read last, so that it returns only newer
/// ones.
fn mmap_sync<const GRACE_MS: u64, const SLEEP_NS: u64>(name: &'static str) -> Contender {
    fn ends<const SLEEP_NS: u64>(folder: &Path) -> Ends<SLEEP_NS> {
        Ends::with_params(folder.join("values").as_os_str())
    }
    Contender::new(
        name,
        |folder, _| {
            // Of one type with all others: a reader trusts the length.
            let mut writer = ends::<SLEEP_NS>(folder);
            writer.write(&Value::default(), Duration::from_secs(1)).expect("the first write");
            writer
        },
        |writer, value| {
            writer.write(value, Duration::from_millis(GRACE_MS)).expect("a write");
        },
        |folder| (ends::<SLEEP_NS>(folder), None),
        |(reader, seen): &mut (Ends<SLEEP_NS>, Option<InstanceVersion>), into, hold| {
            let version = reader.version().ok();
            if version == *seen {
                return (false, false);
            }
            *seen = version;
            // SAFETY: what is mapped is an array of integers, of which every pattern of bits is
            // one; every value that is written has that length, so nothing is to be checked.
            match unsafe { reader.read::<Value>(false) } {
                // SAFETY: mapped, for as long as the guard lives.
                Ok(value) => unsafe { keep((&raw const *value).cast(), into, hold) },
                Err(_) => (false, false),
            }
        },
    )
}

/// The broadcast of the crate `shaq`, over a mapped file: every value to every reader; its writer
/// waits for the slowest.
fn shaq() -> Contender {
    let lanes = |folder: &Path, is_new| {
        let mut options = File::options();
        options.read(true).write(true).create_new(is_new).open(folder.join("lanes")).expect("a file")
    };
    Contender::new(
        "shaq",
        move |folder, readers| {
            let config = BroadcastConfig { capacity: ROOM, producer_slots: 1, consumer_slots: readers };
            // SAFETY: the file is new and nobody else has it; values are arrays of integers.
            let broadcast = unsafe { Broadcast::<Value>::create(&lanes(folder, true), config) };
            broadcast.expect("a queue").producer(ProducerId::new(0)).expect("the writer")
        },
        |writer, value| {
            while writer.try_write(*value).is_err() {
                std::hint::spin_loop();
            }
        },
        move |folder| {
            // SAFETY: made by the writer of the same build, for arrays of integers.
            let broadcast = unsafe { Broadcast::<Value>::join(&lanes(folder, false)) };
            broadcast.expect("the queue").consumer().expect("a reader")
        },
        copies(|reader: &mut Consumer<Value>, into| {
            reader.try_read().is_some_and(|value| {
                *into = value;
                true
            })
        }),
    )
}

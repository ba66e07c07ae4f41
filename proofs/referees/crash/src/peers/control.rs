//! Rings with a fault each, to show that the trials find it.

use crate::peer::{Attach, CAPACITY, End, Peer, remove_contents, text};
use shm::memory::{AtomicWords, Region, unlink};
use shm::sync::Ordering::{Acquire, Relaxed, Release};
use std::path::Path;
use std::time::Duration;

/// Words of the ring, and its slots.
const MAGIC: usize = 0;
const CAPACITY_WORD: usize = 1;
const LOCK: usize = 2;
const HEAD: usize = 8;
const TAIL: usize = 16;
/// The receiver's position, if it is not `TAIL`.
const POSITION: usize = 17;
const SLOTS: usize = 24;
const SLOT_WORDS: usize = 8;

/// What is wrong with a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A message is published before it is written.
    PublishesFirst,
    /// The magic word is written before the capacity.
    MagicFirst,
    /// An end takes a spin lock while it attaches.
    LocksToAttach,
    /// An end that detaches removes the file, which the other may still need.
    RemovesAtDetach,
    /// The creator makes a file of its own beside the ring, and never removes that of a dead one.
    LeavesFiles,
    /// A receiver has its position in its own memory.
    ForgetsPosition,
    /// A receiver frees a slot before it reads it, and moves its position afterwards.
    FreesFirst,
}

use Fault::{
    ForgetsPosition, FreesFirst, LeavesFiles, LocksToAttach, MagicFirst, PublishesFirst, RemovesAtDetach,
};

struct Ring {
    words: AtomicWords,
    capacity: u64,
    position: u64,
    removes: Option<String>,
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Some(name) = self.removes.take() {
            let _ = unlink(&name);
        }
    }
}

/// Name in `/dev/shm` of a file in the folder of a trial.
fn file(place: &Path) -> String {
    format!("{}/ring", crate::peer::name(place))
}

fn create(place: &Path, fault: Fault) -> Result<AtomicWords, String> {
    let name = file(place);
    let _ = unlink(&name);
    if fault == LeavesFiles {
        let own = format!("{}.{}", crate::peer::name(place), std::process::id());
        Region::create(&own, 8).map_err(text)?;
        let _ = unlink(&own);
    }
    let words = Region::create(&name, SLOTS + CAPACITY * SLOT_WORDS).map_err(text)?.words();
    let fields = [(CAPACITY_WORD, CAPACITY as u64), (MAGIC, 1)];
    let order = if fault == MagicFirst { [1, 0] } else { [0, 1] };
    for at in order {
        words[fields[at].0].store(fields[at].1, Release);
    }
    Ok(words)
}

fn attach(place: &Path, attach: Attach, fault: Fault) -> Result<Ring, String> {
    let name = file(place);
    let words = match attach {
        Attach::Create => create(place, fault)?,
        Attach::Join | Attach::Resume => Region::open(&name).map_err(text)?.words(),
    };
    if words.len() <= SLOTS || words[MAGIC].load(Acquire) != 1 {
        return Err("not complete".into());
    }
    if fault == LocksToAttach {
        while words[LOCK].compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    let capacity = words[CAPACITY_WORD].load(Relaxed);
    if fault == LocksToAttach {
        words[LOCK].store(0, Release);
    }
    Ok(Ring { words, capacity, position: 0, removes: (fault == RemovesAtDetach).then_some(name) })
}

fn slot(ring: &Ring, number: u64) -> AtomicWords {
    ring.words.slice(SLOTS + (number % ring.capacity) as usize * SLOT_WORDS, SLOT_WORDS)
}

fn peer(name: &'static str, kind: &'static str, fault: Fault) -> Peer {
    let peer = Peer::new(
        [name, "crash-table", kind],
        End::Receiver,
        move |place, kind| attach(place, kind, fault),
        move |place, kind| attach(place, kind, fault),
        move |ring: &mut Ring, message| {
            let head = ring.words[HEAD].load(Relaxed);
            if head.wrapping_sub(ring.words[TAIL].load(Acquire)) >= ring.capacity {
                return Ok(false);
            }
            if fault == PublishesFirst {
                ring.words[HEAD].store(head + 1, Release);
            }
            for (word, value) in slot(ring, head).iter().zip(message) {
                word.store(*value, Relaxed);
            }
            ring.words[HEAD].store(head + 1, Release);
            Ok(true)
        },
        move |ring: &mut Ring| {
            let tail = match fault {
                ForgetsPosition => ring.position,
                FreesFirst => ring.words[POSITION].load(Relaxed),
                _ => ring.words[TAIL].load(Relaxed),
            };
            if tail == ring.words[HEAD].load(Acquire) {
                return Ok(None);
            }
            let slot = slot(ring, tail);
            if fault == FreesFirst {
                ring.words[TAIL].store(tail + 1, Release);
            }
            let message = core::array::from_fn(|word| slot[word].load(Relaxed));
            ring.position = tail + 1;
            ring.words[POSITION].store(tail + 1, Release);
            ring.words[TAIL].store(tail + 1, Release);
            Ok(Some(message))
        },
    );
    peer.with_clean_up(remove_contents)
}

pub fn all() -> [Peer; 7] {
    [
        peer("control", "control: publishes before it writes", PublishesFirst),
        peer("control-create", "control: magic before sizes", MagicFirst),
        peer("control-attach", "control: spin lock to attach", LocksToAttach),
        peer("control-detach", "control: removes the file at detach", RemovesAtDetach),
        peer("control-leak", "control: leaves a file of a dead creator", LeavesFiles),
        peer("control-double", "control: position in private memory", ForgetsPosition),
        peer("control-early", "control: frees a slot before it reads it", FreesFirst),
    ]
}

//! A ring with a fault, to show that the trials find it: a message is published before it is
//! written.

use crate::peer::{Attach, CAPACITY, End, Peer, name, text};
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering::{Acquire, Relaxed, Release};
use std::path::Path;

/// Words of the two cursors and of the slots.
const HEAD: usize = 0;
const TAIL: usize = 8;
const SLOTS: usize = 16;
const SLOT_WORDS: usize = 8;

fn attach(place: &Path, attach: Attach) -> Result<AtomicWords, String> {
    let name = format!("{}.ring", name(place));
    let region = match attach {
        Attach::Create => Region::create(&name, SLOTS + CAPACITY * SLOT_WORDS),
        Attach::Join | Attach::Resume => Region::open(&name),
    };
    Ok(region.map_err(text)?.words())
}

fn slot(words: &AtomicWords, number: u64) -> AtomicWords {
    words.slice(SLOTS + number as usize % CAPACITY * SLOT_WORDS, SLOT_WORDS)
}

pub fn peer() -> Peer {
    Peer::new(
        ["control", "crash-table", "control: publishes before it writes"],
        End::Receiver,
        attach,
        attach,
        |words: &mut AtomicWords, message| {
            let head = words[HEAD].load(Relaxed);
            if head.wrapping_sub(words[TAIL].load(Acquire)) >= CAPACITY as u64 {
                return Ok(false);
            }
            // The fault: this belongs after the loop.
            words[HEAD].store(head + 1, Release);
            for (word, value) in slot(words, head).iter().zip(message) {
                word.store(*value, Relaxed);
            }
            Ok(true)
        },
        |words: &mut AtomicWords| {
            let tail = words[TAIL].load(Relaxed);
            if tail == words[HEAD].load(Acquire) {
                return Ok(None);
            }
            let slot = slot(words, tail);
            let message = core::array::from_fn(|word| slot[word].load(Relaxed));
            words[TAIL].store(tail + 1, Release);
            Ok(Some(message))
        },
    )
}

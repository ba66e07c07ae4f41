//! A ring with a fault, to show that the trials find it: a message is published before it is
//! written.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, name, text};
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering::{Acquire, Relaxed, Release};
use std::path::Path;

pub struct Control;

/// Words of the two cursors and of the slots.
const HEAD: usize = 0;
const TAIL: usize = 8;
const SLOTS: usize = 16;
const SLOT_WORDS: usize = 8;

fn attach(place: &Path, attach: Attach) -> Result<AtomicWords, String> {
    let name = format!("{}.ring", name(place));
    let region = match attach {
        Attach::Create => Region::create(&name, SLOTS + CAPACITY * SLOT_WORDS),
        Attach::Join | Attach::Succeed => Region::open(&name),
    };
    Ok(region.map_err(text)?.words())
}

fn slot(words: &AtomicWords, number: u64) -> AtomicWords {
    words.slice(SLOTS + number as usize % CAPACITY * SLOT_WORDS, SLOT_WORDS)
}

impl Peer for Control {
    const CRATE: &'static str = "crash-table";
    const KIND: &'static str = "control: publishes before it writes";
    const CREATOR: End = End::Receiver;
    type Sender = AtomicWords;
    type Receiver = AtomicWords;

    fn sender(place: &Path, how: Attach) -> Result<Self::Sender, String> {
        attach(place, how)
    }

    fn receiver(place: &Path, how: Attach) -> Result<Self::Receiver, String> {
        attach(place, how)
    }

    fn push(words: &mut Self::Sender, message: &Message) -> Result<bool, String> {
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
    }

    fn pop(words: &mut Self::Receiver) -> Result<Option<Message>, String> {
        let tail = words[TAIL].load(Relaxed);
        if tail == words[HEAD].load(Acquire) {
            return Ok(None);
        }
        let slot = slot(words, tail);
        let message = core::array::from_fn(|word| slot[word].load(Relaxed));
        words[TAIL].store(tail + 1, Release);
        Ok(Some(message))
    }
}

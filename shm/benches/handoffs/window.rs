//! A sketch to compare with: a ring whose footprint follows its occupancy. Honest peers only, on the heap, nothing proved.
//!
//! Eight hot slots, the window, stand before the main ones; the message of position `p` is in slot `p` modulo 8 of the window, or in the main slot `p`
//! modulo the capacity. Each sequence says where the next message is: `(p + 1) << 1`, and one more if it is in the main slots. The producer looks at the head
//! before it goes round the window, leaves it when more than two messages wait, and comes back when, 64, 128, … 4,096 messages later, none does.

use shm::memory::{Region, Words};
use shm::ring::{MESSAGE_WORDS, Message};
use shm::sync::Ordering;

const SLOT: usize = MESSAGE_WORDS + 1;
const HEAD_WORDS: usize = 16;
const WINDOW: u64 = 8;
const FEW: u64 = 2;
const PATIENCE: u64 = 64;
const PATIENCE_MAX: u64 = 4096;

/// Where the slot of a position begins.
#[inline(always)]
fn slot(position: u64, is_main: bool, mask: u64) -> usize {
    let slot = if is_main { WINDOW + (position & mask) } else { position & (WINDOW - 1) };
    HEAD_WORDS + slot as usize * SLOT
}

/// The sending end.
pub struct Producer {
    words: Words,
    mask: u64,
    tail: u64,
    head_seen: u64,
    is_main: bool,
    /// The position whose push decides where the next one goes.
    look_at: u64,
    patience: u64,
}

/// The receiving end.
pub struct Consumer {
    words: Words,
    mask: u64,
    head: u64,
    is_main: bool,
}

/// Both ends.
pub fn ring(capacity: usize) -> (Producer, Consumer) {
    let words = Region::heap(HEAD_WORDS + (WINDOW as usize + capacity) * SLOT).words();
    // A ring of less than twice the window is nothing but the main slots.
    let is_main = (capacity as u64) < 2 * WINDOW;
    let look_at = if is_main { u64::MAX } else { 0 };
    let mask = capacity as u64 - 1;
    let consumer = Consumer { words: words.clone(), mask, head: 0, is_main };
    (Producer { words, mask, tail: 0, head_seen: 0, is_main, look_at, patience: PATIENCE }, consumer)
}

impl Producer {
    #[inline(always)]
    pub fn try_push(&mut self, message: &Message) -> bool {
        if self.tail - self.head_seen > self.mask {
            self.head_seen = self.words[0].load(Ordering::Acquire);
            if self.tail - self.head_seen > self.mask {
                return false;
            }
        }
        let start = slot(self.tail, self.is_main, self.mask);
        if self.tail >= self.look_at {
            self.choose();
        }
        self.tail += 1;
        let slot = &self.words[start..start + SLOT];
        for (word, value) in slot.iter().zip(message) {
            word.store(*value, Ordering::Relaxed);
        }
        slot[MESSAGE_WORDS].store(self.tail << 1 | u64::from(self.is_main), Ordering::Release);
        true
    }

    /// Where the message after this one goes.
    #[cold]
    #[inline(never)]
    fn choose(&mut self) {
        self.head_seen = self.words[0].load(Ordering::Acquire);
        let waiting = self.tail - self.head_seen;
        if waiting <= if self.is_main { 0 } else { FEW } {
            if !self.is_main {
                self.patience = PATIENCE;
            }
            self.is_main = false;
            self.look_at = self.head_seen + WINDOW - 1;
        } else {
            if self.is_main {
                self.patience = (2 * self.patience).min(PATIENCE_MAX);
            }
            self.is_main = true;
            self.look_at = self.tail + self.patience;
        }
    }
}

impl Consumer {
    #[inline(always)]
    pub fn try_pop(&mut self) -> Option<Message> {
        let start = slot(self.head, self.is_main, self.mask);
        let slot = &self.words[start..start + SLOT];
        let sequence = slot[MESSAGE_WORDS].load(Ordering::Acquire);
        if sequence >> 1 != self.head + 1 {
            return None;
        }
        let message = core::array::from_fn(|word| slot[word].load(Ordering::Relaxed));
        self.is_main = sequence & 1 == 1;
        self.head += 1;
        self.words[0].store(self.head, Ordering::Release);
        Some(message)
    }
}

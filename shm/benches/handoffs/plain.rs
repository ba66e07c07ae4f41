//! A ring without a window, to compare with: the message of position `p` is in slot `p` modulo the capacity, whatever waits. As the crate's ring
//! was before its footprint followed its occupancy; honest peers only.

use shm::memory::{Region, Words};
use shm::ring::{MESSAGE_WORDS, Message};
use shm::sync::Ordering;

const SLOT: usize = MESSAGE_WORDS + 1;
const HEAD_WORDS: usize = 16;

/// The sending end.
pub struct Producer {
    words: Words,
    mask: u64,
    tail: u64,
    head_seen: u64,
}

/// The receiving end.
pub struct Consumer {
    words: Words,
    mask: u64,
    head: u64,
}

/// Both ends of a ring on the heap.
pub fn ring(capacity: usize) -> (Producer, Consumer) {
    let words = Region::heap(HEAD_WORDS + capacity * SLOT).words();
    let mask = capacity as u64 - 1;
    (Producer { words: words.clone(), mask, tail: 0, head_seen: 0 }, Consumer { words, mask, head: 0 })
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
        let start = HEAD_WORDS + (self.tail & self.mask) as usize * SLOT;
        let slot = &self.words[start..start + SLOT];
        for (word, value) in slot.iter().zip(message) {
            word.store(*value, Ordering::Relaxed);
        }
        self.tail += 1;
        slot[MESSAGE_WORDS].store(self.tail, Ordering::Release);
        true
    }
}

impl Consumer {
    #[inline(always)]
    pub fn try_pop(&mut self) -> Option<Message> {
        let start = HEAD_WORDS + (self.head & self.mask) as usize * SLOT;
        let slot = &self.words[start..start + SLOT];
        if slot[MESSAGE_WORDS].load(Ordering::Acquire) != self.head + 1 {
            return None;
        }
        let message = core::array::from_fn(|word| slot[word].load(Ordering::Relaxed));
        self.head += 1;
        self.words[0].store(self.head, Ordering::Release);
        Some(message)
    }
}

//! The way back to one strategy: its return ring, and a queue of reports that found the ring full.

use protocol::wire::{MESSAGE_WORDS, Message};
use shm::bell::Bell;
use shm::ring::spsc;
use std::collections::VecDeque;

/// A strategy that is slow to take its reports must not delay the others, so its reports are queued here, in order. There is room
/// for all reports that its open orders can have: a strategy that keeps to its limit never loses one.
pub struct ReturnPath {
    pub(crate) ring: spsc::Producer,
    bell: Option<Bell>,
    pub(crate) queue: VecDeque<Message>,
    capacity: usize,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is in the ring.
    Returned,
    /// It waits for room in the ring.
    Queued,
    /// The queue is full.
    Dropped,
}

impl ReturnPath {
    /// A path with a queue of `capacity` reports, which is allocated here.
    pub fn new(ring: spsc::Producer, bell: Option<Bell>, capacity: usize) -> Self {
        // Filled once and cleared, so that no page is touched for the first time in the middle of a run.
        let mut queue = VecDeque::from(vec![[u64::MAX; MESSAGE_WORDS]; capacity]);
        queue.clear();
        Self { ring, bell, queue, capacity }
    }

    /// Returns a report, or queues it if the ring is full. If the queue is full as well, the report is dropped: only a strategy that
    /// ignores its limit gets there.
    #[inline]
    pub(crate) fn push(&mut self, message: &Message) -> Pushed {
        if self.queue.is_empty() && self.ring.try_push(message).is_ok() {
            self.ring_bell();
            return Pushed::Returned;
        }
        if self.queue.len() < self.capacity {
            self.queue.push_back(*message);
            Pushed::Queued
        } else {
            Pushed::Dropped
        }
    }

    /// Moves queued reports into the ring. Returns how many.
    #[inline]
    pub(crate) fn flush(&mut self) -> usize {
        let mut moved = 0;
        while let Some(message) = self.queue.front() {
            if self.ring.try_push(message).is_err() {
                break;
            }
            self.queue.pop_front();
            moved += 1;
        }
        if moved > 0 {
            self.ring_bell();
        }
        moved
    }

    /// The strategy is dead: drops what is queued.
    pub(crate) fn close(&mut self) {
        self.queue.clear();
    }

    /// The ring was made again for the next incarnation.
    pub(crate) fn restart(&mut self) {
        self.ring.restart();
    }

    /// Wakes the strategy.
    #[inline(always)]
    pub(crate) fn ring_bell(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }
}

//! The way back to one strategy: its return ring, and room for reports that find the ring full.

use protocol::checksum::Checksum;
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::bell::Bell;
use shm::ring::spsc;
use std::collections::VecDeque;

/// A strategy that is slow to take its reports must not hold up the others, so its reports wait here, in their order.
/// There is room for all reports that the strategy's open orders can have; one that keeps to its limit never
/// loses a report.
pub struct ReturnPath {
    pub(crate) ring: spsc::Producer,
    bell: Option<Bell>,
    pub(crate) waiting: VecDeque<Message>,
    /// The strategy is alive.
    pub(crate) is_open: bool,
    room: usize,
    /// What was returned to the living incarnation, word for word.
    pub(crate) sum: Checksum,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is in the ring.
    Returned,
    /// It waits for room.
    Waits,
    /// There is no room for it.
    Dropped,
}

impl ReturnPath {
    /// A path with room for so many waiting reports; nothing is allocated after this.
    pub fn new(ring: spsc::Producer, bell: Option<Bell>, room: usize) -> Self {
        // Filled once and emptied, so that no page of it is touched for the first time in the middle of a run.
        let mut waiting = VecDeque::from(vec![[u64::MAX; MESSAGE_WORDS]; room]);
        waiting.clear();
        Self { ring, bell, waiting, is_open: true, room, sum: Checksum::default() }
    }

    /// Returns a report, or lets it wait if the ring is full. If there is no room to wait either, the report is dropped: only
    /// a strategy that ignores its limit gets there.
    #[inline]
    pub(crate) fn push(&mut self, message: &Message) -> Pushed {
        if self.waiting.is_empty() && self.ring.try_push(message).is_ok() {
            if let Some(bell) = &self.bell {
                bell.ring();
            }
            return Pushed::Returned;
        }
        if self.waiting.len() < self.room {
            self.waiting.push_back(*message);
            Pushed::Waits
        } else {
            Pushed::Dropped
        }
    }

    /// Moves waiting reports into the ring; how many it took.
    #[inline]
    pub(crate) fn flush(&mut self) -> usize {
        let mut moved = 0;
        while let Some(message) = self.waiting.front() {
            if self.ring.try_push(message).is_err() {
                break;
            }
            self.waiting.pop_front();
            moved += 1;
        }
        if moved > 0
            && let Some(bell) = &self.bell
        {
            bell.ring();
        }
        moved
    }

    /// Lets every report wait, until the ring that is given back here is put in again.
    pub(crate) fn stop(&mut self) -> spsc::Producer {
        let (mut full, _) = spsc::heap_ring(1);
        let _ = full.try_push(&[0; MESSAGE_WORDS]);
        core::mem::replace(&mut self.ring, full)
    }

    /// Wakes the strategy.
    pub(crate) fn ring_bell(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

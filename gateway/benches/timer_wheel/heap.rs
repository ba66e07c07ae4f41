//! The reference for the wheel: a min-heap by release time over a slab, both allocated before the
//! start. `TimerWheel` was this once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The heap moves 16-byte entries and the orders stay where they are; equal release times come out
/// in the order of their places, which is not that of their arrival.
pub struct Heap<T> {
    /// Release time in ticks, the order's place, and the place's generation then.
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Entries that the heap has room for.
    room: usize,
    entries: Vec<HeapEntry<T>>,
    free: Vec<u32>,
}

#[derive(Clone, Copy)]
struct HeapEntry<T> {
    order: Option<T>,
    /// Counts the orders that were here.
    generation: u32,
}

impl<T: Copy> Heap<T> {
    /// Room for `capacity` orders; nothing is allocated after this.
    ///
    /// # Panics
    /// If `capacity` does not fit 31 bits; the plan's bound is far below.
    pub fn with_capacity(capacity: usize) -> Self {
        let entries = u32::try_from(capacity).expect("a plan holds fewer orders than 2^31");
        // Twice: entries of cancelled orders are removed all at once when the heap is full, at a
        // cost for each push that does not grow with their number.
        let entries = entries.checked_mul(2).expect("a plan holds fewer orders than 2^31").max(16);
        // Filled once and emptied, so that no page of it is touched for the first time in the
        // middle of a run.
        let mut heap: BinaryHeap<_> = (0..entries).map(|index| Reverse((u64::MAX, index, 0))).collect();
        heap.clear();
        Self {
            heap,
            room: entries as usize,
            entries: vec![HeapEntry { order: None, generation: 0 }; capacity],
            free: (0..entries).rev().collect(),
        }
    }

    /// Holds an order until `release` (ticks).
    ///
    /// # Panics
    /// If it is full.
    #[inline]
    pub fn push(&mut self, release: u64, order: T) {
        if self.heap.len() == self.room {
            self.remove_cancelled();
        }
        let index = self.free.pop().expect("asked before");
        let entry = &mut self.entries[index as usize];
        entry.order = Some(order);
        self.heap.push(Reverse((release, index, entry.generation)));
    }

    /// Removes the entries of cancelled orders.
    #[cold]
    fn remove_cancelled(&mut self) {
        let entries = &self.entries;
        self.heap
            .retain(|Reverse((_, index, generation))| entries[*index as usize].generation == *generation);
    }

    /// Takes the order of an entry and frees the entry.
    #[inline]
    fn take(&mut self, index: u32) -> Option<T> {
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(index);
        entry.order.take()
    }

    /// Gives the order with the earliest release time, if that has come.
    #[inline]
    pub fn pop_due(&mut self, now: u64) -> Option<T> {
        loop {
            match self.heap.peek() {
                Some(Reverse((release, ..))) if *release <= now => {}
                _ => return None,
            }
            let Reverse((_, index, generation)) = self.heap.pop()?;
            if self.entries[index as usize].generation == generation {
                return self.take(index);
            }
        }
    }

    /// No order is released before this; `u64::MAX` if nothing is held.
    #[inline]
    pub fn next_release(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((release, ..))| *release)
    }
}

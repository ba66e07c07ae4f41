//! Expires orders at their time: an indexed binary heap, from which any order can be removed.

use crate::arena::{Arena, NONE};

/// The expiry times of open orders, as an indexed binary heap. Ordered by expiry, then by arrival.
#[derive(Debug)]
pub(crate) struct Expiry {
    heap: Vec<u32>,
}

impl Expiry {
    pub(crate) fn new(capacity: usize) -> Self {
        let mut heap = vec![NONE; capacity];
        heap.clear();
        Expiry { heap }
    }

    pub(crate) fn first(&self) -> Option<u32> {
        self.heap.first().copied()
    }

    pub(crate) fn slots(&self) -> &[u32] {
        &self.heap
    }

    pub(crate) fn insert(&mut self, arena: &mut Arena, slot: u32) {
        let index = self.heap.len();
        self.heap.push(slot);
        arena.details_mut(slot).heap = index as u32;
        self.sift_up(arena, index);
    }

    pub(crate) fn remove(&mut self, arena: &mut Arena, slot: u32) {
        let index = arena.details(slot).heap as usize;
        debug_assert_eq!(self.heap.get(index), Some(&slot), "the index of an order");
        self.heap.swap_remove(index);
        arena.details_mut(slot).heap = NONE;
        if let Some(&moved) = self.heap.get(index) {
            arena.details_mut(moved).heap = index as u32;
            let index = self.sift_up(arena, index);
            self.sift_down(arena, index);
        }
    }

    fn precedes(&self, arena: &Arena, one: usize, other: usize) -> bool {
        let key = |index: usize| {
            let details = arena.details(self.heap[index]);
            (details.expires_at, details.arrival)
        };
        key(one) < key(other)
    }

    fn swap(&mut self, arena: &mut Arena, one: usize, other: usize) {
        self.heap.swap(one, other);
        arena.details_mut(self.heap[one]).heap = one as u32;
        arena.details_mut(self.heap[other]).heap = other as u32;
    }

    fn sift_up(&mut self, arena: &mut Arena, mut index: usize) -> usize {
        while index > 0 && self.precedes(arena, index, (index - 1) / 2) {
            self.swap(arena, index, (index - 1) / 2);
            index = (index - 1) / 2;
        }
        index
    }

    fn sift_down(&mut self, arena: &mut Arena, mut index: usize) {
        loop {
            let below = 2 * index + 1..(2 * index + 3).min(self.heap.len());
            let first = below.reduce(|one, other| if self.precedes(arena, other, one) { other } else { one });
            match first {
                Some(first) if self.precedes(arena, first, index) => {
                    self.swap(arena, first, index);
                    index = first;
                }
                _ => return,
            }
        }
    }
}

//! Which orders expire when: a heap with places, so that an order that goes earlier leaves at once.

use crate::arena::{Arena, NONE};

/// A binary heap of nodes, by time and then by arrival.
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
        let place = self.heap.len();
        self.heap.push(slot);
        arena.details_mut(slot).heap = place as u32;
        self.rise(arena, place);
    }

    pub(crate) fn remove(&mut self, arena: &mut Arena, slot: u32) {
        let place = arena.details(slot).heap as usize;
        debug_assert_eq!(self.heap.get(place), Some(&slot), "an order knows its place");
        self.heap.swap_remove(place);
        arena.details_mut(slot).heap = NONE;
        if let Some(&moved) = self.heap.get(place) {
            arena.details_mut(moved).heap = place as u32;
            let place = self.rise(arena, place);
            self.sink(arena, place);
        }
    }

    fn earlier(&self, arena: &Arena, one: usize, other: usize) -> bool {
        let key = |place: usize| {
            let details = arena.details(self.heap[place]);
            (details.expires_at, details.arrival)
        };
        key(one) < key(other)
    }

    fn swap(&mut self, arena: &mut Arena, one: usize, other: usize) {
        self.heap.swap(one, other);
        arena.details_mut(self.heap[one]).heap = one as u32;
        arena.details_mut(self.heap[other]).heap = other as u32;
    }

    fn rise(&mut self, arena: &mut Arena, mut place: usize) -> usize {
        while place > 0 && self.earlier(arena, place, (place - 1) / 2) {
            self.swap(arena, place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        place
    }

    fn sink(&mut self, arena: &mut Arena, mut place: usize) {
        loop {
            let below = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let first = below.reduce(|one, other| if self.earlier(arena, other, one) { other } else { one });
            match first {
                Some(first) if self.earlier(arena, first, place) => {
                    self.swap(arena, first, place);
                    place = first;
                }
                _ => return,
            }
        }
    }
}

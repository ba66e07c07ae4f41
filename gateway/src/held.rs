//! What a venue holds until its time comes: a min-heap by release time over a slab, both allocated before the start.

use crate::venue::Sweep;
use protocol::wire::OrderId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Orders, or whatever a venue keeps of an order, waiting for their time.
///
/// The heap moves 16-byte entries and the orders stay where they are; equal release times come out in the order of
/// their places. A cancelled order leaves its place at once; its entry stays in the heap, out of date, until it comes up
/// or the heap is full, so that a cancel need not search the heap.
pub struct Held<T> {
    /// Release time in ticks, the order's place, and the place's generation then.
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Entries that the heap has room for.
    room: usize,
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Place<T> {
    order: Option<T>,
    /// Counts the orders that were here.
    generation: u32,
}

impl<T: Copy> Held<T> {
    /// Room for `capacity` orders; nothing is allocated after this.
    ///
    /// # Panics
    /// If `capacity` does not fit 31 bits; the plan's bound is far below.
    pub fn with_capacity(capacity: usize) -> Self {
        let places = u32::try_from(capacity).expect("a plan holds fewer orders than 2^31");
        // Twice: entries of cancelled orders are thrown out all at once when the heap is full, at a cost for each push that
        // does not grow with their number.
        let entries = places.checked_mul(2).expect("a plan holds fewer orders than 2^31").max(16);
        // Filled once and emptied, so that no page of it is touched for the first time in the middle of a run.
        let mut heap: BinaryHeap<_> = (0..entries).map(|place| Reverse((u64::MAX, place, 0))).collect();
        heap.clear();
        Self {
            heap,
            room: entries as usize,
            places: vec![Place { order: None, generation: 0 }; capacity],
            free: (0..places).rev().collect(),
        }
    }

    /// Whether there is no room for another order.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Holds an order until `release` (ticks).
    ///
    /// # Panics
    /// If it is full: ask [`Held::is_full`] first.
    #[inline]
    pub fn push(&mut self, release: u64, order: T) {
        if self.heap.len() == self.room {
            self.throw_out();
        }
        let index = self.free.pop().expect("asked before");
        let place = &mut self.places[index as usize];
        place.order = Some(order);
        self.heap.push(Reverse((release, index, place.generation)));
    }

    /// Throws out the entries of cancelled orders.
    #[cold]
    fn throw_out(&mut self) {
        let places = &self.places;
        self.heap.retain(|Reverse((_, index, generation))| places[*index as usize].generation == *generation);
    }

    /// Empties a place.
    #[inline]
    fn take(&mut self, index: u32) -> Option<T> {
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        place.order.take()
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
            if self.places[index as usize].generation == generation {
                return self.take(index);
            }
        }
    }

    /// Takes the next order that the sweep concerns, within its looks; its cursor is a place here. `key_of`: an order's id and
    /// instrument.
    pub fn cancel(&mut self, sweep: &mut Sweep, key_of: impl Fn(&T) -> (OrderId, u16)) -> Option<T> {
        while sweep.looks > 0 && sweep.cursor < self.places.len() {
            let index = sweep.cursor;
            sweep.cursor += 1;
            sweep.looks -= 1;
            if self.places[index].order.as_ref().is_some_and(|order| {
                let (id, instrument) = key_of(order);
                sweep.concerns(id, instrument)
            }) {
                return self.take(index as u32);
            }
        }
        None
    }

    /// Whether the sweep has been everywhere.
    pub fn is_swept(&self, sweep: &Sweep) -> bool {
        sweep.cursor >= self.places.len()
    }

    /// No order is released before this; `u64::MAX` if nothing is held.
    #[inline]
    pub fn next_release(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((release, ..))| *release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protocol::wire::{CancelScope, Order};

    fn order(sequence: u64) -> Order {
        Order { ..Order::new(OrderId::new(sequence as u16 % 2, 0, sequence), 0) }
    }

    proptest! {
        #[test]
        fn orders_come_out_by_release_time(releases in prop::collection::vec(0u64..1000, 0..100)) {
            let mut held = Held::with_capacity(releases.len());
            for (sequence, release) in releases.iter().enumerate() {
                held.push(*release, order(sequence as u64));
            }
            prop_assert!(held.is_full());
            let mut seen = Vec::new();
            for now in 0..1000 {
                while let Some(order) = held.pop_due(now) {
                    prop_assert_eq!(releases[order.id.sequence() as usize], now, "not early, not late");
                    seen.push(order.id.sequence());
                }
            }
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..releases.len() as u64), "each exactly once");
            prop_assert_eq!(held.next_release(), u64::MAX);
        }

        #[test]
        fn cancelled_orders_are_gone_and_leave_room(rounds in prop::collection::vec(0u64..50, 1..40), capacity in 1usize..20) {
            let mut held = Held::with_capacity(capacity);
            let (mut sequence, mut living) = (0, std::collections::BTreeSet::new());
            for (round, release) in rounds.iter().enumerate() {
                while !held.is_full() {
                    held.push(1000 + release, order(sequence));
                    living.insert(sequence);
                    sequence += 1;
                }
                // Those of every other strategy, in small steps.
                let mut sweep = Sweep { scope: CancelScope::of(OrderId::new(round as u16 % 2, 0, 0)), cursor: 0, looks: 0 };
                while !held.is_swept(&sweep) {
                    sweep.looks = 3;
                    if let Some(order) = held.cancel(&mut sweep, |order: &Order| (order.id, order.instrument)) {
                        prop_assert_eq!(order.id.strategy(), round as u16 % 2);
                        prop_assert!(living.remove(&order.id.sequence()));
                    }
                }
                prop_assert!(held.heap.len() <= held.room);
            }
            while let Some(order) = held.pop_due(u64::MAX) {
                prop_assert!(living.remove(&order.id.sequence()), "each living one exactly once");
            }
            prop_assert!(living.is_empty());
        }
    }
}

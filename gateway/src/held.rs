//! The orders that a gateway holds: a min-heap by release time over a slab, both allocated before the start.

use protocol::wire::Order;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Orders waiting for their venue's delay to pass.
///
/// The heap moves 16-byte entries and the orders stay where they are; equal release times come out in the order of
/// their places. A cancelled order leaves its place at once; its entry stays in the heap, out of date, until it comes up
/// or the heap is full, so that a cancel need not search the heap.
pub struct Held {
    /// Release time in ticks, the order's place, and the place's generation then.
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Entries that the heap has room for.
    room: usize,
    places: Vec<HeldPlace>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct HeldPlace {
    order: Option<Order>,
    /// Counts the orders that were here.
    generation: u32,
}

impl Held {
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
            places: vec![HeldPlace::default(); capacity],
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
    pub fn push(&mut self, release: u64, order: Order) {
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
    fn take(&mut self, index: u32) -> Option<Order> {
        let place = &mut self.places[index as usize];
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        place.order.take()
    }

    /// Gives the order with the earliest release time, if that has come.
    #[inline]
    pub fn pop_due(&mut self, now: u64) -> Option<Order> {
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

    /// Looks at the places from `*from` on, at most `looks` of them, and takes the first order that is wanted. `*from` is
    /// then the place to go on from; at [`Held::places`] all were looked at.
    pub fn cancel(
        &mut self,
        from: &mut usize,
        looks: &mut usize,
        wanted: impl Fn(&Order) -> bool,
    ) -> Option<Order> {
        while *looks > 0 && *from < self.places.len() {
            let index = *from;
            (*from, *looks) = (*from + 1, *looks - 1);
            if self.places[index].order.as_ref().is_some_and(&wanted) {
                return self.take(index as u32);
            }
        }
        None
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// No order is released before this; `u64::MAX` if nothing is held.
    pub fn next_release(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((release, ..))| *release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protocol::wire::{Operation, OrderId, Side};

    fn order(sequence: u64) -> Order {
        Order {
            id: OrderId::new(0, 0, sequence),
            venue: 0,
            operation: Operation::Cancel,
            side: Side::Sell,
            delay_ns: 0,
            price: 0,
            quantity: 0,
            target: 0,
        }
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
                // Every other one, in small steps.
                let mut from = 0;
                while from < held.places() {
                    let mut looks = 3;
                    let wanted = |order: &Order| order.id.sequence() % 2 == round as u64 % 2;
                    if let Some(order) = held.cancel(&mut from, &mut looks, wanted) {
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

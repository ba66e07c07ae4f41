//! The orders that a gateway holds: a min-heap by release time over a slab, both allocated before the start.

use shm::wire::Order;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Orders waiting for their venue's delay to pass.
///
/// The heap moves 16-byte entries and the orders stay where they are; equal release times come out in the order of
/// their places.
pub struct Held {
    /// Release time in ticks, and the order's place.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    slots: Vec<Option<Order>>,
    free: Vec<u32>,
}

impl Held {
    /// Room for `capacity` orders; nothing is allocated after this.
    ///
    /// # Panics
    /// If `capacity` does not fit 32 bits; the plan's bound is far below.
    pub fn with_capacity(capacity: usize) -> Self {
        let places = u32::try_from(capacity).expect("a plan holds fewer orders than 2^32");
        // Filled once and emptied, so that no page of it is touched for the first time in the middle of a run.
        let mut heap: BinaryHeap<_> = (0..places).map(|place| Reverse((u64::MAX, place))).collect();
        heap.clear();
        Self { heap, slots: vec![None; capacity], free: (0..places).rev().collect() }
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
        let place = self.free.pop().expect("asked before");
        self.slots[place as usize] = Some(order);
        self.heap.push(Reverse((release, place)));
    }

    /// Gives the order with the earliest release time, if that has come.
    #[inline]
    pub fn pop_due(&mut self, now: u64) -> Option<Order> {
        match self.heap.peek() {
            Some(Reverse((release, _))) if *release <= now => {}
            _ => return None,
        }
        let Reverse((_, place)) = self.heap.pop()?;
        self.free.push(place);
        self.slots[place as usize].take()
    }

    /// The earliest release time; `u64::MAX` if nothing is held.
    pub fn next_release(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse((release, _))| *release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shm::wire::{Operation, OrderId, Side};

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
    }
}

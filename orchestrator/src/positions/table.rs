//! Open orders, found by their ids: a hash table of fixed size with open addressing.
//!
//! The multiplication spreads neighbouring sequences evenly: what rests in a block leaves gaps everywhere. Removing moves
//! later slots back, so there are no tombstones.

use super::bits::SlotBits;
use super::order::{Kind, OpenOrder};
use protocol::wire::{OrderId, Side};

/// The key of a free slot.
const FREE: u64 = u64::MAX;

const NONE: OpenOrder =
    OpenOrder { key: FREE, ..OpenOrder::new(OrderId::from_word(0), Kind::Order(Side::Buy), 0, 0, 0) };

#[derive(Default)]
pub(super) struct Table {
    slots: Box<[OpenOrder]>,
    taken: SlotBits,
    shift: u32,
    len: usize,
}

impl Table {
    /// A table for `capacity` orders, with as many free slots again.
    pub(super) fn new(capacity: usize) -> Self {
        let slots = (2 * capacity.max(4)).next_power_of_two();
        Self {
            slots: vec![NONE; slots].into(),
            taken: SlotBits::new(slots),
            shift: u64::BITS - slots.trailing_zeros(),
            len: 0,
        }
    }

    /// Returns `true` if another request has room: a replace, and the order that it replaces.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.len + 1 < self.max()
    }

    const fn max(&self) -> usize {
        self.slots.len() / 8 * 7
    }

    #[inline(always)]
    const fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline(always)]
    fn find(&self, key: u64) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut index = self.home(key);
        loop {
            match self.slots[index & mask].key {
                found if found == key => return Some(index & mask),
                FREE => return None,
                _ => index += 1,
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, id: OrderId) -> Option<OpenOrder> {
        self.find(id.word()).map(|index| self.slots[index])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: OrderId) -> Option<&mut OpenOrder> {
        self.find(id.word()).map(|index| &mut self.slots[index])
    }

    /// Adds an order that is not there. Returns `false` if the table is full.
    #[inline]
    pub(super) fn insert(&mut self, order: OpenOrder) -> bool {
        if self.len == self.max() {
            return false;
        }
        let mask = self.slots.len() - 1;
        let mut index = self.home(order.key) & mask;
        while self.slots[index].key != FREE {
            index = (index + 1) & mask;
        }
        self.slots[index] = order;
        self.taken.insert(index);
        self.len += 1;
        true
    }

    #[inline]
    pub(super) fn take(&mut self, id: OrderId) -> Option<OpenOrder> {
        let mut hole = self.find(id.word())?;
        let order = self.slots[hole];
        let mask = self.slots.len() - 1;
        let mut index = hole;
        loop {
            index = (index + 1) & mask;
            let key = self.slots[index].key;
            if key == FREE {
                break;
            }
            // It may move back unless its home is behind the hole.
            let from_home = index.wrapping_sub(self.home(key)) & mask;
            if from_home >= (index.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[index];
                hole = index;
            }
        }
        self.slots[hole] = NONE;
        self.taken.remove(hole);
        self.len -= 1;
        Some(order)
    }

    /// All orders, by their ids.
    pub(super) fn all(&self) -> Vec<OpenOrder> {
        let mut all: Vec<OpenOrder> = self.taken.iter().map(|index| self.slots[index]).collect();
        all.sort_unstable_by_key(|order| order.key);
        all
    }

    /// Marks the orders for which `is_meant(venue, instrument)` as killed. Returns how many.
    pub(super) fn mark(&mut self, is_meant: impl Fn(u16, u16) -> bool) -> u64 {
        let mut marked = 0;
        for index in self.taken.iter() {
            let order = &mut self.slots[index];
            if matches!(order.kind, Kind::Order(_)) && is_meant(order.venue, order.instrument) {
                order.is_killed = true;
                marked += 1;
            }
        }
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// How many orders there are; each is one that a search finds.
    fn count(table: &Table) -> usize {
        let all = table.all();
        assert!(all.iter().all(|order| table.find(order.key).is_some()));
        all.len()
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u64..40, any::<bool>(), 0u16..3), 1..400)) {
            let mut table = Table::new(20);
            let mut map = HashMap::new();
            for (leaves, (sequence, adds, epoch)) in (0..).zip(steps) {
                let id = OrderId::new(7, epoch, sequence);
                if adds && !map.contains_key(&id) && map.len() < 20 {
                    table.insert(OpenOrder::new(id, Kind::Order(Side::Sell), leaves, 1, 2));
                    map.insert(id, leaves);
                } else if !adds {
                    prop_assert_eq!(table.take(id).map(|order| order.leaves), map.remove(&id));
                }
                prop_assert_eq!(count(&table), map.len());
                for (id, leaves) in &map {
                    prop_assert_eq!(table.get(*id).map(|order| order.leaves), Some(*leaves));
                }
            }
        }
    }

    #[test]
    fn a_full_table_takes_no_more_and_still_ends_its_searches() {
        let mut table = Table::new(4);
        for sequence in 0..100 {
            table.insert(OpenOrder::new(OrderId::new(0, 0, sequence), Kind::Replace, 0, 0, 0));
        }
        assert_eq!((count(&table), table.has_room()), (7, false));
        assert_eq!(table.get(OrderId::new(0, 0, 99)), None);
    }
}

//! Open orders, found by their ids: a hash table of fixed size with open addressing, a slot for each order.
//!
//! The multiplication spreads neighbouring sequences evenly: what rests in a block leaves gaps everywhere. Removing moves later slots
//! back, so nothing is ever left behind that a search must step over.

use super::order::{Kind, OpenOrder};
use protocol::wire::{OrderId, Side};

/// In the place of an id in a free slot.
const FREE: u64 = u64::MAX;

const NONE: OpenOrder =
    OpenOrder { key: FREE, ..OpenOrder::new(OrderId::from_word(0), Kind::Order(Side::Buy), 0, 0, 0) };

/// The table.
pub(crate) struct Table {
    slots: Box<[OpenOrder]>,
    /// A bit for each slot that is not free: a kill switch finds a hundred orders among a hundred thousand slots in a few
    /// microseconds, and does not walk through megabytes.
    used: Box<[u64]>,
    shift: u32,
    len: usize,
}

impl Table {
    /// Room for so many orders, with as many free slots again.
    pub(crate) fn new(room: usize) -> Self {
        let slots = (2 * room.max(4)).next_power_of_two();
        // What is written now is no page that is touched for the first time later.
        let used = vec![0; slots.div_ceil(64)].into();
        Self { slots: vec![NONE; slots].into(), used, shift: u64::BITS - slots.trailing_zeros(), len: 0 }
    }

    /// Whether another request has room: a replace, and the order that it is about.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.len + 1 < self.most()
    }

    const fn most(&self) -> usize {
        self.slots.len() / 8 * 7
    }

    #[inline(always)]
    const fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline(always)]
    fn find(&self, key: u64) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut place = self.home(key);
        loop {
            match self.slots[place & mask].key {
                found if found == key => return Some(place & mask),
                FREE => return None,
                _ => place += 1,
            }
        }
    }

    /// The order with that id.
    #[inline]
    pub(crate) fn get(&self, id: OrderId) -> Option<OpenOrder> {
        self.find(id.word()).map(|place| self.slots[place])
    }

    /// The order with that id, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: OrderId) -> Option<&mut OpenOrder> {
        self.find(id.word()).map(|place| &mut self.slots[place])
    }

    /// Adds an order that is not there; not where there is no room.
    #[inline]
    pub(crate) fn insert(&mut self, order: OpenOrder) -> bool {
        if self.len == self.most() {
            return false;
        }
        let mask = self.slots.len() - 1;
        let mut place = self.home(order.key) & mask;
        while self.slots[place].key != FREE {
            place = (place + 1) & mask;
        }
        self.slots[place] = order;
        self.used[place / 64] |= 1 << (place % 64);
        self.len += 1;
        true
    }

    /// Removes the order with that id.
    #[inline]
    pub(crate) fn take(&mut self, id: OrderId) -> Option<OpenOrder> {
        let mut hole = self.find(id.word())?;
        let order = self.slots[hole];
        let mask = self.slots.len() - 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let key = self.slots[place].key;
            if key == FREE {
                break;
            }
            // It may move back unless its home is behind the hole.
            let from_home = place.wrapping_sub(self.home(key)) & mask;
            if from_home >= (place.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[place];
                hole = place;
            }
        }
        self.slots[hole] = NONE;
        self.used[hole / 64] &= !(1 << (hole % 64));
        self.len -= 1;
        Some(order)
    }

    /// All of them, by their ids.
    pub(crate) fn all(&self) -> Vec<OpenOrder> {
        let mut all: Vec<OpenOrder> = self.slots.iter().filter(|slot| slot.key != FREE).copied().collect();
        all.sort_unstable_by_key(|order| order.key);
        all
    }

    /// Shows each of them, in no order.
    pub(crate) fn each(&mut self, mut show: impl FnMut(&mut OpenOrder)) {
        for (first, word) in (0..).step_by(64).zip(&self.used) {
            let mut left = *word;
            while left != 0 {
                show(&mut self.slots[first + left.trailing_zeros() as usize]);
                left &= left - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// How many are shown; each is one that a search finds.
    fn count(table: &mut Table) -> usize {
        let mut shown = Vec::new();
        table.each(|order| shown.push(order.key));
        assert!(shown.iter().all(|key| table.find(*key).is_some()));
        shown.len()
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
                prop_assert_eq!(count(&mut table), map.len());
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
        assert_eq!((count(&mut table), table.has_room()), (7, false));
        assert_eq!(table.get(OrderId::new(0, 0, 99)), None);
    }
}

//! A hash table of fixed size, with open addressing, of the open orders that do not fit into the
//! window of recent sequences.
//!
//! The multiplication spreads neighbouring sequences evenly: what rests in a block leaves gaps
//! everywhere. Removing moves later slots back, so no tombstones are needed.

use super::order::OpenOrder;
use super::slots::Slots;
use protocol::wire::OrderId;

#[derive(Default)]
pub(super) struct Table {
    pub slots: Slots,
    shift: u32,
    len: usize,
}

impl Table {
    /// Creates a hash table for `capacity` open orders, with an equal number of slots to spare.
    pub(super) fn new(capacity: usize) -> Self {
        let slots = (2 * capacity.max(4)).next_power_of_two();
        Self { slots: Slots::new(slots), shift: u64::BITS - slots.trailing_zeros(), len: 0 }
    }

    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.len < self.slots.orders.len() / 8 * 7
    }

    #[inline(always)]
    const fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline(always)]
    fn find(&self, id: OrderId) -> Option<usize> {
        let mask = self.slots.mask();
        let mut index = self.home(id.word());
        loop {
            match self.slots.orders[index & mask] {
                order if order.is_of(id) => return Some(index & mask),
                order if order.is_free() => return None,
                _ => index += 1,
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, id: OrderId) -> Option<OpenOrder> {
        self.find(id).map(|index| self.slots.orders[index])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: OrderId) -> Option<&mut OpenOrder> {
        self.find(id).map(|index| &mut self.slots.orders[index])
    }

    /// Adds an open order that is not in the hash table. Returns `false` if the table is full.
    #[inline]
    pub(super) fn try_insert(&mut self, order: OpenOrder) -> bool {
        let has_room = self.has_room();
        if has_room {
            let mask = self.slots.mask();
            let mut index = self.home(order.key) & mask;
            while !self.slots.orders[index].is_free() {
                index = (index + 1) & mask;
            }
            self.slots.put(index, order);
            self.len += 1;
        }
        has_room
    }

    #[inline]
    pub(super) fn take(&mut self, id: OrderId) -> Option<OpenOrder> {
        let mut hole = self.find(id)?;
        let order = self.slots.orders[hole];
        let mask = self.slots.mask();
        let mut index = hole;
        loop {
            index = (index + 1) & mask;
            let next = self.slots.orders[index];
            if next.is_free() {
                break;
            }
            // It may move back unless its home slot is after the hole.
            let from_home = index.wrapping_sub(self.home(next.key)) & mask;
            if from_home >= (index.wrapping_sub(hole) & mask) {
                self.slots.orders[hole] = next;
                hole = index;
            }
        }
        self.slots.take(hole);
        self.len -= 1;
        Some(order)
    }

    pub(super) fn all(&self) -> Vec<OpenOrder> {
        let mut all: Vec<OpenOrder> = self.slots.all().collect();
        all.sort_unstable_by_key(|order| order.key);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Kind;
    use super::*;

    #[test]
    fn full_table_refuses_and_still_ends_searches() {
        let mut table = Table::new(4);
        for sequence in 0..100 {
            table.try_insert(OpenOrder::new(OrderId::new(0, 0, sequence), Kind::Replace, 0, 0, 0));
        }
        assert!(table.all().iter().all(|order| table.get(order.id()) == Some(*order)));
        assert_eq!((table.all().len(), table.has_room()), (7, false));
        assert_eq!(table.get(OrderId::new(0, 0, 99)), None);
    }
}

//! The open orders of a strategy, found by their ids: a hash table of fixed size with open addressing, a slot for each order.
//!
//! An order can stay open while any number of later ones come and go, so a ring by sequence would not do. The multiplication
//! spreads neighbouring sequences evenly: what rests in a block leaves gaps everywhere. Removing moves later slots back, so
//! nothing is ever left behind that a search must step over.

use protocol::wire::{OrderId, Side};

/// What an open request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An order of that side.
    Order(Side),
    /// A replace: its `leaves` is the id of the order that it is about.
    Replace,
}

/// What is known of an order that is on its way to its venue or there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenOrder {
    /// Its id as a word; [`FREE`] in a free slot.
    key: u64,
    /// What is open of it.
    pub leaves: u64,
    /// The largest quantity that a replace on its way asks for; 0 without one.
    pub wanted: u64,
    pub instrument: u16,
    pub venue: u16,
    /// Replaces on their way.
    pub replaces: u16,
    pub kind: Kind,
    /// A kill switch cancels it.
    pub is_killed: bool,
}

const _: () = assert!(size_of::<OpenOrder>() == 32);

const FREE: u64 = u64::MAX;

impl OpenOrder {
    const NONE: Self = Self {
        key: FREE,
        leaves: 0,
        wanted: 0,
        instrument: 0,
        venue: 0,
        replaces: 0,
        kind: Kind::Order(Side::Buy),
        is_killed: false,
    };

    pub(crate) const fn new(id: OrderId, kind: Kind, leaves: u64, instrument: u16, venue: u16) -> Self {
        Self { key: id.word(), leaves, wanted: 0, instrument, venue, replaces: 0, kind, is_killed: false }
    }

    /// What counts as open: the most that can still be filled.
    #[inline(always)]
    pub(crate) const fn reserved(&self) -> u64 {
        if self.wanted > self.leaves { self.wanted } else { self.leaves }
    }
}

/// The table.
pub(crate) struct OpenOrders {
    slots: Box<[OpenOrder]>,
    /// A bit for each slot that is not free: a kill switch finds a hundred orders among a hundred thousand slots in a few
    /// microseconds, and does not walk through megabytes.
    used: Box<[u64]>,
    shift: u32,
    len: usize,
}

impl OpenOrders {
    /// Room for so many orders, with as many free slots again.
    pub(crate) fn new(room: usize) -> Self {
        let slots = (2 * room.max(4)).next_power_of_two();
        // What is written now is no page that is touched for the first time later.
        let used = vec![0; slots.div_ceil(64)].into();
        Self {
            slots: vec![OpenOrder::NONE; slots].into(),
            used,
            shift: u64::BITS - slots.trailing_zeros(),
            len: 0,
        }
    }

    /// Whether another order has room.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.len < self.slots.len() / 8 * 7
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
    pub(crate) fn get(&self, id: OrderId) -> Option<&OpenOrder> {
        self.find(id.word()).map(|place| &self.slots[place])
    }

    /// The order with that id, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: OrderId) -> Option<&mut OpenOrder> {
        self.find(id.word()).map(|place| &mut self.slots[place])
    }

    /// Adds an order that is not there; not where [`OpenOrders::has_room`] says no.
    #[inline]
    pub(crate) fn insert(&mut self, order: OpenOrder) {
        if !self.has_room() {
            return;
        }
        let mask = self.slots.len() - 1;
        let mut place = self.home(order.key) & mask;
        while self.slots[place].key != FREE {
            place = (place + 1) & mask;
        }
        self.slots[place] = order;
        self.used[place / 64] |= 1 << (place % 64);
        self.len += 1;
    }

    /// Removes the order with that id.
    #[inline]
    pub(crate) fn remove(&mut self, id: OrderId) {
        let Some(mut hole) = self.find(id.word()) else { return };
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
        self.slots[hole] = OpenOrder::NONE;
        self.used[hole / 64] &= !(1 << (hole % 64));
        self.len -= 1;
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
    fn count(table: &mut OpenOrders) -> usize {
        let mut shown = Vec::new();
        table.each(|order| shown.push(order.key));
        assert!(shown.iter().all(|key| table.find(*key).is_some()));
        shown.len()
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u64..40, any::<bool>(), 0u16..3), 1..400)) {
            let mut table = OpenOrders::new(20);
            let mut map = HashMap::new();
            for (leaves, (sequence, adds, epoch)) in (0..).zip(steps) {
                let id = OrderId::new(7, epoch, sequence);
                if adds && !map.contains_key(&id) && map.len() < 20 {
                    table.insert(OpenOrder::new(id, Kind::Order(Side::Sell), leaves, 1, 2));
                    map.insert(id, leaves);
                } else if !adds {
                    table.remove(id);
                    map.remove(&id);
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
        let mut table = OpenOrders::new(4);
        for sequence in 0..100 {
            table.insert(OpenOrder::new(OrderId::new(0, 0, sequence), Kind::Replace, 0, 0, 0));
        }
        assert_eq!((count(&mut table), table.has_room()), (7, false));
        assert_eq!(table.get(OrderId::new(0, 0, 99)), None);
    }
}

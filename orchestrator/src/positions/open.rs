//! The open orders of a strategy, found by their ids.
//!
//! Nearly all are in a window: a slot of 16 bytes for each of the last sequences. Sequences grow by one, so neighbours are
//! four to a cache line, and only the lines between the oldest open order and the newest are in use. A hash table
//! (`super::table`) keeps what does not fit: an order whose slot is taken by one that stayed open for a whole window, a
//! replace, and an order that is being replaced.

use super::bits::SlotBits;
use super::order::{OpenOrder, Slot};
use super::table::Table;
use protocol::wire::OrderId;
use shm::prefetch::prefetch;

/// The open orders of a strategy. Allocated once: the capacity comes from the plan and is no part of a snapshot.
#[derive(Default)]
pub struct OpenOrders {
    slots: Box<[Slot]>,
    taken: SlotBits,
    others: Table,
}

/// [`OpenOrders`] in a snapshot: those in the window, of strategy 0, and the others. Where they are decides when there is no
/// room for one more.
pub(crate) type SavedOrders = [Vec<OpenOrder>; 2];

impl OpenOrders {
    /// No orders. In the window `capacity` orders fit, if none stays open while as many come after it.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = capacity.max(4).next_power_of_two();
        // Written, so that no page is touched for the first time later; zeroes alone would not be written.
        let mut window = vec![Slot::UNTOUCHED; slots];
        window.fill(Slot::FREE);
        Self { slots: window.into(), taken: SlotBits::new(slots), others: Table::new(capacity) }
    }

    /// Returns the orders as a snapshot has them.
    pub(crate) fn save(&self) -> SavedOrders {
        [self.in_window(0), self.others.all()]
    }

    /// Inserts the orders of a snapshot while nothing is open. Returns `None` if they cannot be there.
    pub(crate) fn restore(&mut self, [window, others]: &SavedOrders) -> Option<()> {
        for order in window {
            self.insert_in_window(order).then_some(())?;
        }
        for order in others {
            let id = OrderId::from_word(order.key);
            (self.get(id).is_none() && self.others.insert(*order)).then_some(())?;
        }
        Some(())
    }

    /// Returns all orders, in no order; `strategy`: whose they are.
    pub(crate) fn all(&self, strategy: u16) -> Vec<OpenOrder> {
        [self.in_window(strategy), self.others.all()].concat()
    }

    fn in_window(&self, strategy: u16) -> Vec<OpenOrder> {
        let order = |index| {
            let slot: Slot = self.slots[index];
            slot.unpack(OrderId::new(strategy, slot.id().epoch(), slot.id().sequence()))
        };
        self.taken.iter().map(order).collect()
    }

    /// Returns `true` if another request has room, whatever it is.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.others.has_room()
    }

    #[inline(always)]
    const fn index(&self, id: OrderId) -> usize {
        id.sequence() as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, id: OrderId) {
        prefetch(&self.slots[self.index(id)]);
    }

    #[inline]
    pub(crate) fn get(&self, id: OrderId) -> Option<OpenOrder> {
        let slot = self.slots[self.index(id)];
        if slot.is_of(id) { Some(slot.unpack(id)) } else { self.others.get(id) }
    }

    /// Adds an order that is not there. Dropped unless [`OpenOrders::has_room`].
    #[inline]
    pub(crate) fn insert(&mut self, order: OpenOrder) {
        if !self.insert_in_window(&order) {
            self.others.insert(order);
        }
    }

    /// Returns `false` if the order does not fit or its slot is taken.
    #[inline(always)]
    fn insert_in_window(&mut self, order: &OpenOrder) -> bool {
        let index = self.index(OrderId::from_word(order.key));
        let Some(slot) = Slot::pack(order).filter(|_| self.slots[index].is_free()) else { return false };
        self.slots[index] = slot;
        self.taken.insert(index);
        true
    }

    #[inline]
    pub(crate) fn take(&mut self, id: OrderId) -> Option<OpenOrder> {
        let index = self.index(id);
        let slot = self.slots[index];
        if !slot.is_of(id) {
            return self.others.take(id);
        }
        self.slots[index] = Slot::FREE;
        self.taken.remove(index);
        Some(slot.unpack(id))
    }

    /// Changes an order, but not its id. Returns what it was and what it is now. Without [`OpenOrders::has_room`] it
    /// may stay what it was.
    #[inline]
    pub(crate) fn change(
        &mut self,
        id: OrderId,
        change: impl FnOnce(&mut OpenOrder),
    ) -> Option<(OpenOrder, OpenOrder)> {
        let index = self.index(id);
        if !self.slots[index].is_of(id) {
            let order = self.others.get_mut(id)?;
            let before = *order;
            change(order);
            return Some((before, *order));
        }
        let before = self.slots[index].unpack(id);
        let mut after = before;
        change(&mut after);
        if let Some(slot) = Slot::pack(&after) {
            self.slots[index] = slot;
        } else if self.others.insert(after) {
            self.slots[index] = Slot::FREE;
            self.taken.remove(index);
        } else {
            return Some((before, before));
        }
        Some((before, after))
    }

    /// Marks the orders for which `is_meant(venue, instrument)` as killed. Returns how many.
    pub(crate) fn mark(&mut self, is_meant: impl Fn(u16, u16) -> bool) -> u64 {
        self.mark_window(&is_meant) + self.others.mark(&is_meant)
    }

    fn mark_window(&mut self, is_meant: impl Fn(u16, u16) -> bool) -> u64 {
        let mut marked = 0;
        for index in self.taken.iter() {
            let slot = &mut self.slots[index];
            let order = slot.unpack(slot.id());
            if is_meant(order.venue, order.instrument) {
                slot.kill();
                marked += 1;
            }
        }
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Kind;
    use super::*;
    use proptest::prelude::*;
    use protocol::wire::Side;
    use std::collections::HashMap;

    /// What may be broken: how an order is added, and how those of an instrument are marked as killed.
    struct Way {
        insert: fn(&mut OpenOrders, OpenOrder),
        mark: fn(&mut OpenOrders, u16) -> u64,
    }

    const RIGHT: Way = Way {
        insert: OpenOrders::insert,
        mark: |orders, killed| orders.mark(|venue, instrument| (venue, instrument) == (2, killed)),
    };

    /// Orders come, change, are killed and go, with ids that come again; `Err`: what a map says else.
    fn keeps(steps: &[(u64, u8, u16)], way: &Way) -> Result<(), String> {
        let mut orders = OpenOrders::new(20);
        let mut map = HashMap::new();
        for (leaves, (sequence, what, epoch)) in (0..).zip(steps) {
            let id = OrderId::new(7, *epoch, *sequence);
            match what % 5 {
                0 | 1 if !map.contains_key(&id) && map.len() < 20 => {
                    let kind = if what % 3 == 0 { Kind::Replace } else { Kind::Order(Side::Sell) };
                    let order = OpenOrder::new(id, kind, leaves, u16::from(what % 2), 2);
                    (way.insert)(&mut orders, order);
                    map.insert(id, order);
                }
                2 => {
                    let change = |order: &mut OpenOrder| {
                        order.leaves += 1;
                        (order.wanted, order.replaces) = (leaves % 2 * leaves, (leaves % 2) as u16);
                    };
                    let before = map.get(&id).copied();
                    map.get_mut(&id).into_iter().for_each(change);
                    if orders.change(id, change) != before.zip(map.get(&id).copied()) {
                        return Err(format!("{id} changes in another way"));
                    }
                }
                3 if what % 4 == 0 => {
                    let killed = u16::from(what % 2);
                    let plain =
                        |order: &&mut OpenOrder| order.kind != Kind::Replace && order.instrument == killed;
                    let wanted =
                        map.values_mut().filter(plain).map(|order| order.is_killed = true).count() as u64;
                    let marked = (way.mark)(&mut orders, killed);
                    if marked != wanted {
                        return Err(format!("{marked} of {wanted} are marked"));
                    }
                }
                _ => {
                    if orders.take(id) != map.remove(&id) {
                        return Err(format!("{id} is not what was put in"));
                    }
                }
            }
            if let Some((id, order)) = map.iter().find(|(id, order)| orders.get(**id) != Some(**order)) {
                return Err(format!("{id} is not {order:?}"));
            }
        }
        Ok(())
    }

    fn steps() -> impl Strategy<Value = Vec<(u64, u8, u16)>> {
        prop::collection::vec((0u64..80, any::<u8>(), 0u16..3), 1..400)
    }

    proptest! {
        #[test]
        fn they_are_a_map(steps in steps()) {
            prop_assert_eq!(keeps(&steps, &RIGHT), Ok(()));
        }
    }

    #[test]
    fn a_window_alone_loses_what_rests_and_what_a_kill_switch_is_about() {
        // The window of 32 has one slot for both.
        let rests = [(0, 1, 0), (32, 1, 0), (0, 4, 0), (32, 4, 0)];
        // 1 and 10: an order of instrument 1 or 0 comes; 4: it goes; 8: instrument 0 is killed.
        let killed = [(0, 10, 0), (32, 10, 0), (0, 8, 0)];
        for steps in [&rests[..], &killed] {
            assert_eq!(keeps(steps, &RIGHT), Ok(()));
        }
        let insert = |orders: &mut OpenOrders, order| _ = orders.insert_in_window(&order);
        assert!(keeps(&rests, &Way { insert, ..RIGHT }).is_err());
        let mark = |orders: &mut OpenOrders, killed| orders.mark_window(|_, of| of == killed);
        assert!(keeps(&killed, &Way { mark, ..RIGHT }).is_err());
    }

    #[test]
    fn where_there_is_no_room_an_order_stays_as_it_was() {
        let mut orders = OpenOrders::new(4);
        let id = |sequence| OrderId::new(0, 0, sequence);
        orders.insert(OpenOrder::new(id(0), Kind::Order(Side::Buy), 5, 0, 0));
        for sequence in 1..100 {
            orders.insert(OpenOrder::new(id(sequence), Kind::Replace, 0, 0, 0));
        }
        assert!(!orders.has_room());
        let (before, after) = orders.change(id(0), |order| order.wanted = 9).unwrap();
        assert_eq!((before, Some(after)), (after, orders.get(id(0))));
    }

    proptest! {
        #[test]
        fn what_fits_comes_out_as_it_went_in(
            id in (any::<u16>(), 0u16..1024, any::<u32>()), leaves: u64, is_buy: bool, instrument in 0u16..5_000, venue in 0u16..70,
            is_killed: bool, wanted in 0u64..2, replaces in 0u16..2,
        ) {
            let mut orders = OpenOrders::new(64);
            let id = OrderId::new(id.0, id.1, id.2.into());
            let kind = Kind::Order(if is_buy { Side::Buy } else { Side::Sell });
            let order = OpenOrder { is_killed, wanted, replaces, ..OpenOrder::new(id, kind, leaves, instrument, venue) };
            let fits = instrument < 4_096 && venue < 64 && wanted == 0 && replaces == 0;
            prop_assert_eq!(orders.insert_in_window(&order), fits);
            prop_assert_eq!(orders.get(id), fits.then_some(order));
            // The next one that has the slot, and the same sequence of another incarnation.
            for other in [OrderId::new(id.strategy(), id.epoch(), id.sequence() + 64), OrderId::new(id.strategy(), id.epoch() ^ 1, id.sequence())] {
                prop_assert_eq!(orders.get(other), None);
                prop_assert_eq!(orders.take(other), None);
                prop_assert!(!fits || !orders.insert_in_window(&OpenOrder::new(other, kind, 1, 0, 0)));
            }
            prop_assert_eq!(orders.take(id), fits.then_some(order));
            prop_assert_eq!((orders.get(id), orders.mark(|_, _| true)), (None, 0));
        }
    }

    #[test]
    fn a_replace_has_no_slot() {
        let mut orders = OpenOrders::new(4);
        assert!(!orders.insert_in_window(&OpenOrder::new(OrderId::new(0, 0, 0), Kind::Replace, 1, 0, 0)));
    }
}

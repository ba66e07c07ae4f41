//! The open orders of a strategy, found by their ids.
//!
//! Nearly all are in a window: a slot for each of the last sequences. Sequences grow by one, so
//! neighbours share cache lines, and only the lines between the oldest open order and the newest
//! are in use. A hash table (`super::table`) keeps the orders whose slot is taken by one that
//! stayed open for a whole window.

use super::order::OpenOrder;
use super::slots::Slots;
use super::table::Table;
use protocol::wire::OrderId;
use shm::prefetch::prefetch;

/// All open orders of one strategy, found by their ids. Allocated once: the capacity comes from the
/// plan, not from a snapshot.
#[derive(Default)]
pub struct OpenOrders {
    window: Slots,
    others: Table,
}

/// The form in which a snapshot holds a strategy's open orders: those in the window of recent ones,
/// and the others. Their location decides when another order does not fit.
pub(crate) type SavedOrders = [Vec<OpenOrder>; 2];

impl OpenOrders {
    /// Creates memory for a strategy's open orders. In the window `capacity` orders fit, if none
    /// stays open while as many come after it.
    pub(crate) fn new(capacity: usize) -> Self {
        let window = Slots::new(capacity.max(4).next_power_of_two());
        Self { window, others: Table::new(capacity) }
    }

    pub(crate) fn save(&self) -> SavedOrders {
        [self.window.all().collect(), self.others.all()]
    }

    /// Inserts the open orders of a snapshot. Returns `None` if they cannot be there.
    pub(crate) fn restore(&mut self, [window, others]: &SavedOrders) -> Option<()> {
        window.iter().all(|order| self.try_insert_in_window(*order)).then_some(())?;
        let insert = |order: &OpenOrder| self.get(order.id()).is_none() && self.others.try_insert(*order);
        others.iter().all(insert).then_some(())
    }

    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.others.has_room()
    }

    #[inline(always)]
    const fn index(&self, id: OrderId) -> usize {
        id.sequence() as usize & self.window.mask()
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, id: OrderId) {
        prefetch(&self.window.orders[self.index(id)]);
    }

    #[inline]
    pub(crate) fn get(&self, id: OrderId) -> Option<OpenOrder> {
        let order = self.window.orders[self.index(id)];
        if order.is_of(id) { Some(order) } else { self.others.get(id) }
    }

    /// Adds an open order that is not present. Dropped unless [`OpenOrders::has_room`].
    #[inline]
    pub(crate) fn insert(&mut self, order: OpenOrder) {
        if !self.try_insert_in_window(order) {
            self.others.try_insert(order);
        }
    }

    #[inline(always)]
    fn try_insert_in_window(&mut self, order: OpenOrder) -> bool {
        let index = self.index(order.id());
        let is_free = self.window.orders[index].is_free();
        if is_free {
            self.window.put(index, order);
        }
        is_free
    }

    #[inline]
    pub(crate) fn take(&mut self, id: OrderId) -> Option<OpenOrder> {
        let index = self.index(id);
        if self.window.orders[index].is_of(id) { Some(self.window.take(index)) } else { self.others.take(id) }
    }

    /// Returns an open order to change it, except its id.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: OrderId) -> Option<&mut OpenOrder> {
        let index = self.index(id);
        let order = &mut self.window.orders[index];
        if order.is_of(id) { Some(order) } else { self.others.get_mut(id) }
    }

    pub(crate) fn mark(&mut self, is_meant: impl Fn(u16, u16) -> bool) -> u64 {
        self.window.mark(&is_meant) + self.others.slots.mark(&is_meant)
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Kind;
    use super::*;
    use proptest::prelude::*;
    use protocol::wire::Side;
    use std::collections::HashMap;

    /// What may be broken: how an order is added, and how those of an instrument are marked as
    /// killed.
    struct Way {
        insert: fn(&mut OpenOrders, OpenOrder),
        mark: fn(&mut OpenOrders, u16) -> u64,
    }

    const RIGHT: Way = Way {
        insert: OpenOrders::insert,
        mark: |orders, killed| orders.mark(|venue, instrument| (venue, instrument) == (2, killed)),
    };

    /// Orders come, change, are killed and go, with ids that come again; `Err`: the difference from
    /// a map.
    fn agrees_with_map(steps: &[(u64, u8, u16)], way: &Way) -> Result<(), String> {
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
                    orders.get_mut(id).into_iter().for_each(change);
                    map.get_mut(&id).into_iter().for_each(change);
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
            if orders.save().concat().len() != map.len() {
                return Err(format!("not {} orders", map.len()));
            }
        }
        Ok(())
    }

    /// Sequences share more slots of the window the more their lowest bits are zero.
    fn steps() -> impl Strategy<Value = Vec<(u64, u8, u16)>> {
        let step = |zeros: u32| {
            (0u64..40, any::<u8>(), 0u16..3).prop_map(move |(n, what, epoch)| (n << zeros, what, epoch))
        };
        (0u32..6).prop_flat_map(move |zeros| prop::collection::vec(step(zeros), 1..400))
    }

    proptest! {
        #[test]
        fn open_orders_behave_like_a_map(steps in steps()) {
            prop_assert_eq!(agrees_with_map(&steps, &RIGHT), Ok(()));
        }
    }

    #[test]
    fn window_alone_loses_resting_and_killed_orders() {
        // The window of 32 has one slot for both.
        let rests = [(0, 1, 0), (32, 1, 0), (0, 4, 0), (32, 4, 0)];
        // 1 and 10: an order of instrument 1 or 0 comes; 4: it goes; 8: instrument 0 is killed.
        let killed = [(0, 10, 0), (32, 10, 0), (0, 8, 0)];
        for steps in [&rests[..], &killed] {
            assert_eq!(agrees_with_map(steps, &RIGHT), Ok(()));
        }
        let insert = |orders: &mut OpenOrders, order| _ = orders.try_insert_in_window(order);
        assert!(agrees_with_map(&rests, &Way { insert, ..RIGHT }).is_err());
        let mark = |orders: &mut OpenOrders, killed| orders.window.mark(|_, of| of == killed);
        assert!(agrees_with_map(&killed, &Way { mark, ..RIGHT }).is_err());
    }
}

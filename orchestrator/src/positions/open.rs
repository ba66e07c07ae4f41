//! The open orders of a strategy, found by their ids: nearly all of them in a window over the last sequences (`super::window`), the few
//! others in a hash table (`super::table`). An order is in one of the two.

use super::order::{Kind, OpenOrder};
use super::table::Table;
use super::window::Window;
use protocol::wire::OrderId;

/// Both.
pub(crate) struct OpenOrders {
    window: Window,
    others: Table,
}

impl OpenOrders {
    /// Room for so many orders.
    pub(crate) fn new(room: usize) -> Self {
        Self { window: Window::new(room), others: Table::new(room) }
    }

    /// Whether another request has room, whatever it is.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.others.has_room()
    }

    /// Fetches the order with that id ahead of its use.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: OrderId) {
        self.window.prefetch(id);
    }

    /// The order with that id.
    #[inline]
    pub(crate) fn get(&self, id: OrderId) -> Option<OpenOrder> {
        self.window.get(id).or_else(|| self.others.get(id))
    }

    /// Adds an order that is not there; not where [`OpenOrders::has_room`] says no.
    #[inline]
    pub(crate) fn insert(&mut self, order: OpenOrder) {
        if !self.window.insert(&order) {
            self.others.insert(order);
        }
    }

    /// Removes the order with that id.
    #[inline]
    pub(crate) fn take(&mut self, id: OrderId) -> Option<OpenOrder> {
        self.window.take(id).or_else(|| self.others.take(id))
    }

    /// Changes the order with that id; what it was and what it is. Not its id. Where [`OpenOrders::has_room`] says no it may stay as
    /// it was.
    #[inline]
    pub(crate) fn change(
        &mut self,
        id: OrderId,
        change: impl FnOnce(&mut OpenOrder),
    ) -> Option<(OpenOrder, OpenOrder)> {
        let Some(before) = self.window.get(id) else {
            let order = self.others.get_mut(id)?;
            let before = *order;
            change(order);
            return Some((before, *order));
        };
        let mut after = before;
        change(&mut after);
        if !self.window.set(&after) {
            if !self.others.insert(after) {
                return Some((before, before));
            }
            self.window.take(id);
        }
        Some((before, after))
    }

    /// All of them, as orders of that strategy: those in the window, and the others.
    pub(crate) fn all(&self, strategy: u16) -> [Vec<OpenOrder>; 2] {
        [self.window.all(strategy), self.others.all()]
    }

    /// Puts in orders that were taken out so, where there are none; `None`: they cannot be there.
    pub(crate) fn put(&mut self, [window, others]: &[Vec<OpenOrder>; 2]) -> Option<()> {
        for order in window {
            self.window.insert(order).then_some(())?;
        }
        for order in others {
            let id = OrderId::from_word(order.key);
            (self.get(id).is_none() && self.others.insert(*order)).then_some(())?;
        }
        Some(())
    }

    /// Marks the orders that this agrees to (venue, instrument) as killed; how many there are.
    pub(crate) fn mark(&mut self, is_meant: impl Fn(u16, u16) -> bool) -> u64 {
        let mut marked = self.window.mark(&is_meant);
        self.others.each(|order| {
            if matches!(order.kind, Kind::Order(_)) && is_meant(order.venue, order.instrument) {
                order.is_killed = true;
                marked += 1;
            }
        });
        marked
    }
}

#[cfg(test)]
mod tests {
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
        let insert = |orders: &mut OpenOrders, order| _ = orders.window.insert(&order);
        assert!(keeps(&rests, &Way { insert, ..RIGHT }).is_err());
        let mark = |orders: &mut OpenOrders, killed| orders.window.mark(|_, of| of == killed);
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
}

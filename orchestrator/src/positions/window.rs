//! The open orders of a strategy by their sequences: a slot of 16 bytes for each of the last ones.
//!
//! ```text
//!  63 62   61        50 49     40 39     38    37     32 31               0   63                      0
//! ┌──┬────┬────────────┬─────────┬──────┬──────┬────────┬──────────────────┐ ┌─────────────────────────┐
//! │0 │sell│ instrument │ epoch   │killed│taken │ venue  │ sequence         │ │ open quantity           │
//! └──┴────┴────────────┴─────────┴──────┴──────┴────────┴──────────────────┘ └─────────────────────────┘
//! ```
//!
//! Sequences grow by one, so neighbours are four to a cache line, and only the lines between the oldest open order and
//! the newest are in use. `super::table` keeps what does not fit: an order whose slot is taken by one that stayed
//! open for a whole window, a replace, and an order that is being replaced.

use super::bits::SlotBits;
use super::open::{Kind, OpenOrder};
use protocol::wire::{MAX_EPOCH, MAX_SEQUENCE, OrderId, Side};
use shm::prefetch::prefetch;

const VENUE_SHIFT: u32 = 32;
const VENUES: u64 = 1 << 6;
const TAKEN: u64 = 1 << 38;
const KILLED: u64 = 1 << 39;
const INSTRUMENT_SHIFT: u32 = 50;
const INSTRUMENTS: u64 = 1 << 12;
const SELL: u64 = 1 << 62;

/// The bits that identify an order of one strategy: sequence and epoch, where an id has them.
const KEY: u64 = OrderId::new(0, MAX_EPOCH, MAX_SEQUENCE).word() | TAKEN;

const _: () = assert!(KEY == ((1 << 32) - 1) | TAKEN | (((1 << 10) - 1) << 40), "the picture above");

#[derive(Clone, Copy)]
struct Slot {
    what: u64,
    leaves: u64,
}

const FREE: Slot = Slot { what: 0, leaves: 0 };

impl Slot {
    #[inline(always)]
    const fn is_of(&self, id: OrderId) -> bool {
        (self.what ^ (id.word() | TAKEN)) & KEY == 0
    }

    #[inline(always)]
    fn pack(order: &OpenOrder) -> Option<Self> {
        let Kind::Order(side) = order.kind else { return None };
        let (instrument, venue) = (u64::from(order.instrument), u64::from(order.venue));
        if order.wanted | u64::from(order.replaces) != 0 || instrument >= INSTRUMENTS || venue >= VENUES {
            return None;
        }
        let side = if side == Side::Sell { SELL } else { 0 };
        let killed = if order.is_killed { KILLED } else { 0 };
        let key = order.key & KEY | TAKEN;
        let what = key | venue << VENUE_SHIFT | instrument << INSTRUMENT_SHIFT | side | killed;
        Some(Self { what, leaves: order.leaves })
    }

    #[inline(always)]
    const fn unpack(self, id: OrderId) -> OpenOrder {
        let side = if self.what & SELL == 0 { Side::Buy } else { Side::Sell };
        let instrument = self.what >> INSTRUMENT_SHIFT & (INSTRUMENTS - 1);
        let venue = self.what >> VENUE_SHIFT & (VENUES - 1);
        let order = OpenOrder::new(id, Kind::Order(side), self.leaves, instrument as u16, venue as u16);
        OpenOrder { is_killed: self.what & KILLED != 0, ..order }
    }
}

pub(super) struct Window {
    slots: Box<[Slot]>,
    taken: SlotBits,
}

impl Window {
    /// A window in which `capacity` orders fit, if none stays open while as many come after it.
    pub(super) fn new(capacity: usize) -> Self {
        let slots = capacity.max(4).next_power_of_two();
        // Written, so that no page is touched for the first time later; zeroes alone would not be written.
        let mut window =
            Self { slots: vec![Slot { what: 0, leaves: 1 }; slots].into(), taken: SlotBits::new(slots) };
        window.slots.fill(FREE);
        window
    }

    #[inline(always)]
    const fn index(&self, id: OrderId) -> usize {
        id.sequence() as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, id: OrderId) {
        prefetch(&self.slots[self.index(id)]);
    }

    #[inline(always)]
    pub(super) fn get(&self, id: OrderId) -> Option<OpenOrder> {
        let slot = self.slots[self.index(id)];
        slot.is_of(id).then(|| slot.unpack(id))
    }

    /// Adds an order. Returns `false` if it does not fit or its slot is taken.
    #[inline(always)]
    pub(super) fn insert(&mut self, order: &OpenOrder) -> bool {
        let index = self.index(OrderId::from_word(order.key));
        let Some(slot) = Slot::pack(order).filter(|_| self.slots[index].what == FREE.what) else {
            return false;
        };
        self.slots[index] = slot;
        self.taken.insert(index);
        true
    }

    /// Overwrites an order that is there. Returns `false` if it does not fit any more.
    #[inline(always)]
    pub(super) fn set(&mut self, order: &OpenOrder) -> bool {
        let index = self.index(OrderId::from_word(order.key));
        let Some(slot) = Slot::pack(order) else { return false };
        self.slots[index] = slot;
        true
    }

    #[inline(always)]
    pub(super) fn take(&mut self, id: OrderId) -> Option<OpenOrder> {
        let index = self.index(id);
        let slot = self.slots[index];
        if !slot.is_of(id) {
            return None;
        }
        self.slots[index] = FREE;
        self.taken.remove(index);
        Some(slot.unpack(id))
    }

    /// All orders, as of strategy 0.
    pub(super) fn all(&self) -> Vec<OpenOrder> {
        let order = |index| {
            let slot: Slot = self.slots[index];
            slot.unpack(OrderId::from_word(slot.what & KEY & !TAKEN))
        };
        self.taken.iter().map(order).collect()
    }

    /// Marks the orders for which `is_meant(venue, instrument)` as killed. Returns how many.
    pub(super) fn mark(&mut self, is_meant: impl Fn(u16, u16) -> bool) -> u64 {
        let mut marked = 0;
        for index in self.taken.iter() {
            let slot = &mut self.slots[index];
            let order = slot.unpack(OrderId::from_word(0));
            if is_meant(order.venue, order.instrument) {
                slot.what |= KILLED;
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

    proptest! {
        #[test]
        fn what_fits_comes_out_as_it_went_in(
            id in (any::<u16>(), 0u16..1024, any::<u32>()), leaves: u64, is_buy: bool, instrument in 0u16..5_000, venue in 0u16..70,
            is_killed: bool, wanted in 0u64..2, replaces in 0u16..2,
        ) {
            let mut window = Window::new(64);
            let id = OrderId::new(id.0, id.1, id.2.into());
            let kind = Kind::Order(if is_buy { Side::Buy } else { Side::Sell });
            let order = OpenOrder { is_killed, wanted, replaces, ..OpenOrder::new(id, kind, leaves, instrument, venue) };
            let fits = instrument < 4_096 && venue < 64 && wanted == 0 && replaces == 0;
            prop_assert_eq!(window.insert(&order), fits);
            prop_assert_eq!(window.get(id), fits.then_some(order));
            // The next one that has the slot, and the same sequence of another incarnation.
            for other in [OrderId::new(id.strategy(), id.epoch(), id.sequence() + 64), OrderId::new(id.strategy(), id.epoch() ^ 1, id.sequence())] {
                prop_assert_eq!(window.get(other), None);
                prop_assert_eq!(window.take(other), None);
                prop_assert!(!fits || !window.insert(&OpenOrder::new(other, kind, 1, 0, 0)));
            }
            prop_assert_eq!(window.take(id), fits.then_some(order));
            prop_assert_eq!((window.get(id), window.mark(|_, _| true)), (None, 0));
        }
    }

    #[test]
    fn a_replace_has_no_slot() {
        let mut window = Window::new(4);
        assert!(!window.insert(&OpenOrder::new(OrderId::new(0, 0, 0), Kind::Replace, 1, 0, 0)));
    }
}

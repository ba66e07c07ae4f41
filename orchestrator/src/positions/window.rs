//! The open orders of a strategy by their sequences: a slot for each of the last so many, of 16 bytes.
//!
//! ```text
//!  63 62   61        50 49     40 39     38    37     32 31               0   63                      0
//! ┌──┬────┬────────────┬─────────┬──────┬──────┬────────┬──────────────────┐ ┌─────────────────────────┐
//! │0 │sell│ instrument │ epoch   │killed│taken │ venue  │ sequence         │ │ what is open            │
//! └──┴────┴────────────┴─────────┴──────┴──────┴────────┴──────────────────┘ └─────────────────────────┘
//! ```
//!
//! Sequences grow by one, so orders are put in side by side: four in a cache line, and of all lines only those between the oldest order
//! that is open and the newest are in use. One that comes back is one line, whatever the order in which they do. What does not fit is
//! somebody else's to keep (`super::table`): an order whose slot is taken by one that has stayed open for a whole window, a replace,
//! and an order that one is about.

use super::order::{Kind, OpenOrder};
use protocol::wire::{MAX_EPOCH, MAX_SEQUENCE, OrderId, Side};
use shm::prefetch::prefetch;

const VENUE_SHIFT: u32 = 32;
const VENUES: u64 = 1 << 6;
const TAKEN: u64 = 1 << 38;
const KILLED: u64 = 1 << 39;
const INSTRUMENT_SHIFT: u32 = 50;
const INSTRUMENTS: u64 = 1 << 12;
const SELL: u64 = 1 << 62;

/// The bits that say which order it is: an id's sequence and epoch, where they are in an id. Strategies have a window each.
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

    /// The order in these 16 bytes, if it fits: a plain one does.
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

/// The window.
pub(crate) struct Window {
    slots: Box<[Slot]>,
    /// A bit for each slot that is taken: a kill switch finds a hundred orders among a hundred thousand slots in a few microseconds,
    /// and does not walk through megabytes.
    taken: Box<[u64]>,
}

impl Window {
    /// A window that so many orders fit, where none stays open while as many come after it.
    pub(crate) fn new(room: usize) -> Self {
        let slots = room.max(4).next_power_of_two();
        // What is written now is no page that is touched for the first time later. Zeroes alone would not be written.
        let mut window = Self {
            slots: vec![Slot { what: 0, leaves: 1 }; slots].into(),
            taken: vec![1; slots.div_ceil(64)].into(),
        };
        window.slots.fill(FREE);
        window.taken.fill(0);
        window
    }

    #[inline(always)]
    const fn place(&self, id: OrderId) -> usize {
        id.sequence() as usize & (self.slots.len() - 1)
    }

    /// Fetches the order with that id ahead of its use.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: OrderId) {
        prefetch(&self.slots[self.place(id)]);
    }

    /// The order with that id.
    #[inline(always)]
    pub(crate) fn get(&self, id: OrderId) -> Option<OpenOrder> {
        let slot = self.slots[self.place(id)];
        slot.is_of(id).then(|| slot.unpack(id))
    }

    /// Adds an order, unless it does not fit or its slot is taken.
    #[inline(always)]
    pub(crate) fn insert(&mut self, order: &OpenOrder) -> bool {
        let place = self.place(OrderId::from_word(order.key));
        let Some(slot) = Slot::pack(order).filter(|_| self.slots[place].what == FREE.what) else {
            return false;
        };
        self.slots[place] = slot;
        self.taken[place / 64] |= 1 << (place % 64);
        true
    }

    /// Says something else of an order that is there, unless that does not fit.
    #[inline(always)]
    pub(crate) fn set(&mut self, order: &OpenOrder) -> bool {
        let place = self.place(OrderId::from_word(order.key));
        let Some(slot) = Slot::pack(order) else { return false };
        self.slots[place] = slot;
        true
    }

    /// Removes the order with that id.
    #[inline(always)]
    pub(crate) fn take(&mut self, id: OrderId) -> Option<OpenOrder> {
        let place = self.place(id);
        let slot = self.slots[place];
        if !slot.is_of(id) {
            return None;
        }
        self.slots[place] = FREE;
        self.taken[place / 64] &= !(1 << (place % 64));
        Some(slot.unpack(id))
    }

    /// All of them, as orders of that strategy.
    pub(crate) fn all(&self, strategy: u16) -> Vec<OpenOrder> {
        let is_taken = |slot: &&Slot| slot.what != FREE.what;
        let order = |slot: &Slot| {
            let of_nobody = OrderId::from_word(slot.what & KEY & !TAKEN);
            slot.unpack(OrderId::new(strategy, of_nobody.epoch(), of_nobody.sequence()))
        };
        self.slots.iter().filter(is_taken).map(order).collect()
    }

    /// Marks those that this agrees to (venue, instrument) as killed; how many.
    pub(crate) fn mark(&mut self, is_meant: impl Fn(u16, u16) -> bool) -> u64 {
        let mut marked = 0;
        for (first, word) in (0..).step_by(64).zip(&self.taken) {
            let mut left = *word;
            while left != 0 {
                let slot = &mut self.slots[first + left.trailing_zeros() as usize];
                left &= left - 1;
                let order = slot.unpack(OrderId::from_word(0));
                if is_meant(order.venue, order.instrument) {
                    slot.what |= KILLED;
                    marked += 1;
                }
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

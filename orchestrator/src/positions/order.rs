//! An open order, and its form in a slot of 16 bytes.
//!
//! ```text
//!  63 62   61        50 49     40 39     38    37     32 31               0   63                      0
//! ┌──┬────┬────────────┬─────────┬──────┬──────┬────────┬──────────────────┐ ┌─────────────────────────┐
//! │0 │sell│ instrument │ epoch   │killed│taken │ venue  │ sequence         │ │ open quantity           │
//! └──┴────┴────────────┴─────────┴──────┴──────┴────────┴──────────────────┘ └─────────────────────────┘
//! ```

use protocol::wire::{MAX_EPOCH, MAX_SEQUENCE, OrderId, Side};
use serde::{Deserialize, Serialize};

/// What an open request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// A new order of that side.
    Order(Side),
    /// A replace: `leaves` is the id of the order that it replaces.
    Replace,
    /// A request that has nothing open of its own: a cancel, or a replace of an order that is not open.
    Other,
}

/// An order on its way to its venue or open there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOrder {
    /// The id as a word.
    pub(super) key: u64,
    /// The quantity that is open.
    pub(crate) leaves: u64,
    /// The largest quantity that a replace on its way asks for; 0 without one.
    pub(crate) wanted: u64,
    pub(crate) instrument: u16,
    pub(crate) venue: u16,
    /// Replaces on their way.
    pub(crate) replaces: u16,
    pub(crate) kind: Kind,
    /// A kill switch cancels it.
    pub(crate) is_killed: bool,
}

const _: () = assert!(size_of::<OpenOrder>() == 32);

impl OpenOrder {
    pub(crate) const fn new(id: OrderId, kind: Kind, leaves: u64, instrument: u16, venue: u16) -> Self {
        Self { key: id.word(), leaves, wanted: 0, instrument, venue, replaces: 0, kind, is_killed: false }
    }

    pub(crate) const fn id(&self) -> OrderId {
        OrderId::from_word(self.key)
    }

    /// Returns the most that can still be filled.
    #[inline(always)]
    pub(crate) const fn reserved(&self) -> u64 {
        if self.wanted > self.leaves { self.wanted } else { self.leaves }
    }
}

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
pub(super) struct Slot {
    what: u64,
    leaves: u64,
}

impl Slot {
    pub(super) const FREE: Self = Self { what: 0, leaves: 0 };
    /// Not free, so that it is written and not left to the first use of its page.
    pub(super) const UNTOUCHED: Self = Self { what: 0, leaves: 1 };

    #[inline(always)]
    pub(super) const fn is_free(&self) -> bool {
        self.what == 0
    }

    #[inline(always)]
    pub(super) const fn is_of(&self, id: OrderId) -> bool {
        (self.what ^ (id.word() | TAKEN)) & KEY == 0
    }

    #[inline(always)]
    pub(super) fn pack(order: &OpenOrder) -> Option<Self> {
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
    pub(super) const fn unpack(self, id: OrderId) -> OpenOrder {
        let side = if self.what & SELL == 0 { Side::Buy } else { Side::Sell };
        let instrument = self.what >> INSTRUMENT_SHIFT & (INSTRUMENTS - 1);
        let venue = self.what >> VENUE_SHIFT & (VENUES - 1);
        let order = OpenOrder::new(id, Kind::Order(side), self.leaves, instrument as u16, venue as u16);
        OpenOrder { is_killed: self.what & KILLED != 0, ..order }
    }

    /// Returns the id of its order, of strategy 0.
    pub(super) const fn id(&self) -> OrderId {
        OrderId::from_word(self.what & KEY & !TAKEN)
    }

    pub(super) const fn kill(&mut self) {
        self.what |= KILLED;
    }
}

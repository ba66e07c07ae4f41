//! An open request: an order, or a replace or cancel on its way.

use protocol::wire::{OrderId, Side};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Order(Side),
    /// A replace: `leaves` is the id of the order that it replaces.
    Replace,
    /// A request that has nothing open of its own: a cancel, or a replace of an order that is not
    /// open.
    Other,
}

/// An order, replace or cancel that was sent to its venue and whose last report has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(align(32))]
pub struct OpenOrder {
    pub(super) key: u64,
    /// The quantity that is open.
    pub(crate) leaves: u64,
    /// The largest quantity that a pending replace requests; 0 without one.
    pub(crate) wanted: u64,
    pub(crate) instrument: u16,
    pub(crate) venue: u16,
    pub(crate) replaces: u16,
    pub(crate) kind: Kind,
    pub(crate) is_killed: bool,
}

const _: () = assert!(size_of::<OpenOrder>() == 32);

impl OpenOrder {
    pub(super) const FREE: Self =
        Self { key: u64::MAX, ..Self::new(OrderId::from_word(0), Kind::Other, 0, 0, 0) };

    pub(crate) const fn new(id: OrderId, kind: Kind, leaves: u64, instrument: u16, venue: u16) -> Self {
        Self { key: id.word(), leaves, wanted: 0, instrument, venue, replaces: 0, kind, is_killed: false }
    }

    pub(crate) const fn id(&self) -> OrderId {
        OrderId::from_word(self.key)
    }

    #[inline(always)]
    pub(super) const fn is_of(&self, id: OrderId) -> bool {
        self.key == id.word()
    }

    #[inline(always)]
    pub(super) const fn is_free(&self) -> bool {
        self.key == Self::FREE.key
    }

    /// Returns the maximum quantity of the order that can still be filled.
    #[inline(always)]
    pub(crate) const fn reserved(&self) -> u64 {
        if self.wanted > self.leaves { self.wanted } else { self.leaves }
    }
}

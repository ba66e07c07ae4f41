//! An open order, as positions see it.

use protocol::wire::{OrderId, Side};
use serde::{Deserialize, Serialize};

/// What an open request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// An order of that side.
    Order(Side),
    /// A replace: its `leaves` is the id of the order that it is about.
    Replace,
    /// A request that has nothing open of its own: a cancel, or a replace of an order that is not open.
    Other,
}

/// What is known of an order that is on its way to its venue or there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenOrder {
    /// Its id as a word.
    pub(super) key: u64,
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

impl OpenOrder {
    pub(crate) const fn new(id: OrderId, kind: Kind, leaves: u64, instrument: u16, venue: u16) -> Self {
        Self { key: id.word(), leaves, wanted: 0, instrument, venue, replaces: 0, kind, is_killed: false }
    }

    /// The order's id.
    pub(crate) const fn id(&self) -> OrderId {
        OrderId::from_word(self.key)
    }

    /// What counts as open: the most that can still be filled.
    #[inline(always)]
    pub(crate) const fn reserved(&self) -> u64 {
        if self.wanted > self.leaves { self.wanted } else { self.leaves }
    }
}

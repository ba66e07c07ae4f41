//! Slots for open orders with a bitmap of the used ones, so that a kill switch finds a hundred
//! orders among a hundred thousand slots in a few microseconds.

use super::order::{Kind, OpenOrder};

#[derive(Default)]
pub(super) struct Slots {
    pub orders: Box<[OpenOrder]>,
    taken: Box<[u64]>,
}

impl Slots {
    /// Creates at least `count` free slots for open orders, a power of two.
    pub(super) fn new(count: usize) -> Self {
        // Written, so that no page is touched for the first time later; zeroes alone would not be
        // written.
        let mut taken = vec![1; count.div_ceil(64)];
        taken.fill(0);
        Self { orders: vec![OpenOrder::FREE; count].into(), taken: taken.into() }
    }

    #[inline(always)]
    pub(super) const fn mask(&self) -> usize {
        self.orders.len() - 1
    }

    #[inline(always)]
    pub(super) fn put(&mut self, index: usize, order: OpenOrder) {
        self.orders[index] = order;
        self.taken[index / 64] |= 1 << (index % 64);
    }

    #[inline(always)]
    pub(super) fn take(&mut self, index: usize) -> OpenOrder {
        self.taken[index / 64] &= !(1 << (index % 64));
        std::mem::replace(&mut self.orders[index], OpenOrder::FREE)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = OpenOrder> {
        indexes(&self.taken).map(|index| self.orders[index])
    }

    pub(super) fn mark(&mut self, is_meant: impl Fn(u16, u16) -> bool) -> u64 {
        let mut marked = 0;
        for index in indexes(&self.taken) {
            let order = &mut self.orders[index];
            if matches!(order.kind, Kind::Order(_)) && is_meant(order.venue, order.instrument) {
                order.is_killed = true;
                marked += 1;
            }
        }
        marked
    }
}

fn indexes(words: &[u64]) -> impl Iterator<Item = usize> {
    (0..).step_by(64).zip(words).flat_map(|(first, word)| {
        let mut left = *word;
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros() as usize;
            left = left.checked_sub(1).map(|less| left & less)?;
            Some(first + bit)
        })
    })
}

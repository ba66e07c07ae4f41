//! The duplicate check: an order whose instrument, side, price and quantity equal those of one of
//! the strategy's last eight orders within a time window.

use protocol::wire::{Order, Side};
use serde::{Deserialize, Serialize};

const CAPACITY: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OrderKey {
    price: i64,
    /// The side is the lowest bit; no quantity has all bits.
    quantity: u64,
    instrument: u16,
}

impl OrderKey {
    #[inline(always)]
    fn new(order: &Order) -> Self {
        let side = u64::from(order.request.side == Side::Sell);
        Self {
            price: order.request.price,
            quantity: order.request.quantity << 1 | side,
            instrument: order.request.instrument,
        }
    }

    #[inline(always)]
    const fn hash(&self) -> u64 {
        let price = self.price.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let quantity = self.quantity.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        price ^ quantity.rotate_left(29) ^ (self.instrument as u64).wrapping_mul(0x1656_67B1_9E37_79F9)
    }
}

/// The last orders of a strategy, to find duplicates. Their hashes fill one cache line, which alone
/// is read for most orders.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct RecentOrders {
    hashes: [u64; CAPACITY],
    orders: [(OrderKey, u64); CAPACITY],
    next: usize,
}

impl Default for RecentOrders {
    fn default() -> Self {
        let impossible_key = OrderKey { price: 0, quantity: u64::MAX, instrument: 0 };
        Self { hashes: [impossible_key.hash(); CAPACITY], orders: [(impossible_key, 0); CAPACITY], next: 0 }
    }
}

impl RecentOrders {
    #[inline(always)]
    pub(crate) fn contains(&self, order: &Order, now: u64, window: u64) -> bool {
        let key = OrderKey::new(order);
        let hash = key.hash();
        // All eight without a branch: vectorized.
        let is_seen = self.hashes.iter().fold(false, |seen, other| seen | (*other == hash));
        is_seen && self.contains_exactly(&key, now, window)
    }

    #[cold]
    fn contains_exactly(&self, key: &OrderKey, now: u64, window: u64) -> bool {
        self.orders.iter().any(|(other, at)| other == key && now.saturating_sub(*at) <= window)
    }

    #[inline(always)]
    pub(crate) fn remember(&mut self, order: &Order, now: u64) {
        let key = OrderKey::new(order);
        let index = self.next % CAPACITY;
        self.hashes[index] = key.hash();
        self.orders[index] = (key, now);
        self.next = index + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protocol::wire::{OrderId, OrderRequest};

    fn order(price: i64, quantity: u64, instrument: u16, side: Side) -> Order {
        OrderRequest { price, quantity, instrument, side, ..OrderRequest::to_venue(0) }
            .with_id(OrderId::new(0, 0, 0))
    }

    proptest! {
        #[test]
        fn duplicate_check_remembers_last_eight_orders(orders in prop::collection::vec((0i64..4, 0u64..3, 0u16..2, any::<bool>(), 0u64..40), 1..60)) {
            let mut recent = RecentOrders::default();
            let (mut now, mut all) = (0, Vec::new());
            for (price, quantity, instrument, is_buy, gap) in orders {
                now += gap;
                let order = order(price, quantity, instrument, if is_buy { Side::Buy } else { Side::Sell });
                let is_known = all.iter().rev().take(CAPACITY).any(|(other, at)| *other == order && now - at <= 60);
                prop_assert_eq!(recent.contains(&order, now, 60), is_known);
                recent.remember(&order, now);
                all.push((order, now));
            }
        }
    }
}

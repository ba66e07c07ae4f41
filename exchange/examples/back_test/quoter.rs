//! The strategy that is tested: quotes both sides, one unit inside of the spread.

use super::play::{Market, Orders, Strategy};
use exchange::{NewOrder, OrderType, SelfTrade, Side};

/// Quantity of a quote: 0.01 of the coin.
const QUANTITY: u64 = 1_000_000;
/// The largest position, long or short.
const MAX_POSITION: i64 = 2_000_000;

/// Keeps one bid and one offer, each one unit better than the best other price, or at it if the
/// spread has no room. At the largest position it closes with a market order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quoter;

impl Strategy for Quoter {
    fn on_market_data(&mut self, market: &Market, orders: &mut Orders) {
        let (Some(bid), Some(offer)) = (market.bid, market.offer) else { return };
        let room = i64::from(offer.price - bid.price > 2);
        quote(orders, Side::Buy, bid.price, bid.price + room, orders.position() < MAX_POSITION);
        quote(orders, Side::Sell, offer.price, offer.price - room, orders.position() > -MAX_POSITION);
    }

    fn on_fill(&mut self, _: Side, _: i64, _: u64, orders: &mut Orders) {
        let position = orders.position();
        if position.abs() < MAX_POSITION {
            return;
        }
        orders.send(NewOrder {
            side: if position > 0 { Side::Sell } else { Side::Buy },
            order_type: OrderType::Market,
            self_trade: SelfTrade::CancelOldest,
            quantity: position.unsigned_abs(),
            ..NewOrder::default()
        });
    }
}

/// Leaves a quote that is at the best price; cancels any other. Quotes `price` where `is_wanted`.
fn quote(orders: &mut Orders, side: Side, best: i64, price: i64, is_wanted: bool) {
    let own: Vec<(u64, i64)> =
        orders.open().filter(|(_, order)| order.side == side).map(|(id, order)| (id, order.price)).collect();
    let stays = |price: i64| is_wanted && price == best;
    own.iter().filter(|(_, price)| !stays(*price)).for_each(|(id, _)| orders.cancel(*id));
    if is_wanted && !own.iter().any(|(_, price)| stays(*price)) {
        orders.quote(side, price, QUANTITY);
    }
}

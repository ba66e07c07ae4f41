//! Converts orders of strategies into commands of the matching engine.

use exchange::command::{Command, NewOrder, OrderType, SelfTrade, Side, TimeInForce};
use protocol::wire::{self, Operation, Order, OrderCondition};
use system::clock::Timebase;

/// The owner id of the opening book's orders, which no strategy has.
pub const OPENING_BOOK_OWNER: u32 = u32::MAX;

/// Mask of the highest bit of an order's id, which is set for orders of the opening book and for no
/// strategy's order.
pub const RESTING: u64 = 1 << 63;

/// Converts a strategy's order, which arrived at the tick `now`, into a command of the matching
/// engine.
#[inline]
pub fn command(order: &Order, now: u64, time: Timebase) -> Command {
    let owner = u32::from(order.id.strategy().0);
    match order.request.operation {
        Operation::New => Command::New(new_order(order, owner, now, time)),
        Operation::Cancel => {
            let (id, owner) = target(order, owner);
            Command::Cancel { id, owner }
        }
        Operation::Replace => {
            let (id, owner) = target(order, owner);
            Command::Replace { id, owner, price: order.request.price, quantity: order.request.quantity }
        }
        Operation::MassCancel => Command::MassCancel { owner, instrument: Some(order.request.instrument) },
    }
}

/// Returns id and owner of a target: the strategy's own order, or one of the opening book.
#[inline]
fn target(order: &Order, owner: u32) -> (u64, u32) {
    if order.request.target & RESTING != 0 {
        return (order.request.target, OPENING_BOOK_OWNER);
    }
    (order.id.with_sequence(order.request.target).word(), owner)
}

#[inline]
fn new_order(order: &Order, owner: u32, now: u64, time: Timebase) -> NewOrder {
    let terms = &order.request.terms;
    let mut new = NewOrder {
        id: order.id.word(),
        instrument: order.request.instrument,
        owner,
        side: side(order.request.side),
        order_type: match terms.order_type {
            // A recording's market order has no price.
            wire::OrderType::Limit if order.request.price == 0 => OrderType::Market,
            wire::OrderType::Limit => OrderType::Limit,
            wire::OrderType::Market => OrderType::Market,
            wire::OrderType::Stop => OrderType::Stop,
            wire::OrderType::StopLimit => OrderType::StopLimit,
        },
        time_in_force: match terms.time_in_force {
            wire::TimeInForce::GoodTillCancel => TimeInForce::GoodTillCancel,
            wire::TimeInForce::ImmediateOrCancel => TimeInForce::ImmediateOrCancel,
            wire::TimeInForce::FillOrKill => TimeInForce::FillOrKill,
            wire::TimeInForce::GoodTillTime => TimeInForce::GoodTillTime,
        },
        post_only: terms.post_only,
        self_trade: match terms.self_trade {
            wire::SelfTrade::Allow => SelfTrade::Allow,
            wire::SelfTrade::CancelNewest => SelfTrade::CancelNewest,
            wire::SelfTrade::CancelOldest => SelfTrade::CancelOldest,
            wire::SelfTrade::CancelBoth => SelfTrade::CancelBoth,
            wire::SelfTrade::Decrement => SelfTrade::Decrement,
        },
        price: order.request.price,
        quantity: order.request.quantity,
        ..NewOrder::default()
    };
    match terms.condition {
        OrderCondition::None => {}
        OrderCondition::StopPrice(price) => new.stop_price = price,
        OrderCondition::Display(quantity) => new.display = quantity,
        OrderCondition::Minimum(quantity) => new.minimum = quantity,
        OrderCondition::Lifetime(ns) => new.expires_at = now.saturating_add(time.ticks(ns)),
    }
    new
}

/// Returns the matching engine's side for a side on the wire.
#[inline]
pub const fn side(side: wire::Side) -> Side {
    match side {
        wire::Side::Buy => Side::Buy,
        wire::Side::Sell => Side::Sell,
    }
}

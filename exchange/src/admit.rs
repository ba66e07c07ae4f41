//! Validation of commands before they change anything ([`Command`](crate::Command)).

use crate::arena::{BookPart, Node};
use crate::book::{Book, Phase};
use crate::command::{NewOrder, OrderType, TimeInForce};
use crate::event::RejectReason;
use crate::index::HomeBucket;
use crate::store::OrderStore;

/// Checks a new order against all reasons to reject it, before it changes anything.
#[inline]
pub(crate) fn new_order(
    book: &Book,
    store: &OrderStore,
    order: &NewOrder,
    home: HomeBucket,
) -> Result<(), RejectReason> {
    let instrument = &book.instrument;
    if store.find_entry(order.id, home).is_some() {
        return Err(RejectReason::DuplicateId);
    }
    // Most orders, with few branches: a plain limit order that is valid.
    let is_plain = order.order_type == OrderType::Limit
        && order.display | order.minimum == 0
        && !order.post_only
        && matches!(order.time_in_force, TimeInForce::GoodTillCancel | TimeInForce::ImmediateOrCancel);
    if is_plain
        && book.phase == Phase::Continuous
        && order.quantity != 0
        && instrument.is_valid_quantity(order.quantity)
        && instrument.is_valid_price(order.price)
        && !is_notional_overflow(order.price, order.quantity)
        && !store.arena.is_full()
        && store.has_queues(1)
    {
        return Ok(());
    }
    let (limited, stop) = match order.order_type {
        OrderType::Limit => (true, false),
        OrderType::Market => (false, false),
        OrderType::Stop => (false, true),
        OrderType::StopLimit => (true, true),
    };
    let is_part = |part: u64| part <= order.quantity && instrument.is_valid_quantity(part);
    if order.quantity == 0
        || !instrument.is_valid_quantity(order.quantity)
        || !is_part(order.display)
        || !is_part(order.minimum)
    {
        return Err(RejectReason::BadQuantity);
    }
    if limited && !instrument.is_valid_price(order.price)
        || stop && !instrument.is_valid_price(order.stop_price)
    {
        return Err(RejectReason::BadPrice);
    }
    if limited && is_notional_overflow(order.price, order.quantity)
        || stop && is_notional_overflow(order.stop_price, order.quantity)
    {
        return Err(RejectReason::NotionalOverflow);
    }
    if !is_valid_combination(order) {
        return Err(RejectReason::BadCombination);
    }
    let good_till_time = order.time_in_force == TimeInForce::GoodTillTime;
    if good_till_time && order.expires_at <= store.now {
        return Err(RejectReason::Expired);
    }
    let at_once = matches!(order.time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill);
    if book.phase == Phase::Auction && !stop && (!limited || at_once || order.post_only || order.minimum > 0)
    {
        return Err(RejectReason::WrongPhase);
    }
    if order.post_only && book.is_crossed_by(order.side, order.price) {
        return Err(RejectReason::WouldTrade);
    }
    let queues = match order.order_type {
        OrderType::StopLimit => 2,
        OrderType::Stop => 1,
        OrderType::Limit if !at_once => 1,
        OrderType::Limit | OrderType::Market => 0,
    };
    if store.arena.is_full() || !store.has_queues(queues) {
        return Err(RejectReason::Full);
    }
    Ok(())
}

/// Checks a replacement against all reasons to reject it. Returns `true` if it would trade.
#[inline]
pub(crate) fn replace(
    book: &Book,
    store: &OrderStore,
    node: &Node,
    price: i64,
    quantity: u64,
    keeps_priority: bool,
) -> Result<bool, RejectReason> {
    if matches!(node.part, BookPart::BuyStops | BookPart::SellStops) {
        return Err(RejectReason::BadCombination);
    }
    if quantity == 0 || !book.instrument.is_valid_quantity(quantity) {
        return Err(RejectReason::BadQuantity);
    }
    if !book.instrument.is_valid_price(price) {
        return Err(RejectReason::BadPrice);
    }
    if is_notional_overflow(price, quantity) {
        return Err(RejectReason::NotionalOverflow);
    }
    if keeps_priority {
        return Ok(false);
    }
    let crosses = book.phase == Phase::Continuous && book.is_crossed_by(node.side, price);
    if crosses && node.is_post_only() {
        return Err(RejectReason::WouldTrade);
    }
    if !store.has_queues(1) {
        return Err(RejectReason::Full);
    }
    Ok(crosses)
}

/// Returns `true` if price times quantity does not fit 64 bits. The price is above 0.
fn is_notional_overflow(price: i64, quantity: u64) -> bool {
    price.unsigned_abs().checked_mul(quantity).is_none()
}

fn is_valid_combination(order: &NewOrder) -> bool {
    let iceberg = order.display > 0;
    let minimum = order.minimum > 0;
    let by_type = match order.order_type {
        OrderType::Limit => true,
        OrderType::Market => order.time_in_force != TimeInForce::GoodTillTime && !order.post_only && !iceberg,
        OrderType::Stop => !order.post_only && !iceberg && !minimum,
        OrderType::StopLimit => !order.post_only && !minimum,
    };
    let by_time = match order.time_in_force {
        TimeInForce::GoodTillCancel | TimeInForce::GoodTillTime => true,
        TimeInForce::ImmediateOrCancel => !order.post_only && !iceberg,
        TimeInForce::FillOrKill => !order.post_only && !iceberg && !minimum,
    };
    by_type && by_time && !(minimum && order.post_only)
}

//! Which commands are carried out: the table in the documentation of [`Command`](crate::Command).

use crate::arena::{Node, Part};
use crate::book::{Book, Phase};
use crate::command::{NewOrder, OrderType, TimeInForce};
use crate::event::RejectReason;
use crate::levels::Levels;
use crate::store::Store;

/// Looks at a new order.
#[inline]
pub(crate) fn new_order<L: Levels>(
    book: &Book<L>,
    store: &Store<L>,
    order: &NewOrder,
) -> Result<(), RejectReason> {
    let instrument = &book.instrument;
    if store.find(order.id).is_some() {
        return Err(RejectReason::DuplicateId);
    }
    let (limited, stop) = match order.order_type {
        OrderType::Limit => (true, false),
        OrderType::Market => (false, false),
        OrderType::Stop => (false, true),
        OrderType::StopLimit => (true, true),
    };
    let part = |part: u64| part <= order.quantity && instrument.quantity_fits(part);
    if order.quantity == 0
        || !instrument.quantity_fits(order.quantity)
        || !part(order.display)
        || !part(order.minimum)
    {
        return Err(RejectReason::BadQuantity);
    }
    if limited && !instrument.price_fits(order.price) || stop && !instrument.price_fits(order.stop_price) {
        return Err(RejectReason::BadPrice);
    }
    if limited && overflows(order.price, order.quantity)
        || stop && overflows(order.stop_price, order.quantity)
    {
        return Err(RejectReason::NotionalOverflow);
    }
    if !goes_together(order) {
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
    if order.post_only && book.crosses(order.side, order.price) {
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

/// Looks at a replacement of an order, and says whether it would trade.
#[inline]
pub(crate) fn replace<L: Levels>(
    book: &Book<L>,
    store: &Store<L>,
    node: &Node,
    price: i64,
    quantity: u64,
    keeps_priority: bool,
) -> Result<bool, RejectReason> {
    if matches!(node.part, Part::BuyStops | Part::SellStops) {
        return Err(RejectReason::BadCombination);
    }
    if quantity == 0 || !book.instrument.quantity_fits(quantity) {
        return Err(RejectReason::BadQuantity);
    }
    if !book.instrument.price_fits(price) {
        return Err(RejectReason::BadPrice);
    }
    if overflows(price, quantity) {
        return Err(RejectReason::NotionalOverflow);
    }
    if keeps_priority {
        return Ok(false);
    }
    let crosses = book.phase == Phase::Continuous && book.crosses(node.side, price);
    if crosses && node.post_only() {
        return Err(RejectReason::WouldTrade);
    }
    if !store.has_queues(1) {
        return Err(RejectReason::Full);
    }
    Ok(crosses)
}

/// Whether price times quantity does not fit 64 bits. The price is above 0.
fn overflows(price: i64, quantity: u64) -> bool {
    price.unsigned_abs().checked_mul(quantity).is_none()
}

fn goes_together(order: &NewOrder) -> bool {
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

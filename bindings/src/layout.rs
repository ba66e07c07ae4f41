//! The structures of the C interface, field by field.
//!
//! Every structure has a fixed size and no hidden padding (it would not compile): another language
//! can declare it as bytes. A field that is named `reserved` is 0, so that a later version can give
//! it a meaning.

use crate::line::Facts;
use core::ffi::CStr;
use protocol::market::{MarketTick as Heard, Quote};
use protocol::wire::{self, Operation, OrderCondition, OrderTerms, OrderType, SelfTrade, Side, TimeInForce};
use strategy::NewOrder;
use zerocopy::{Immutable, IntoBytes};

/// An operation: a new order.
pub const BH_NEW: u8 = 0;
/// An operation: the cancel of an earlier order of the same strategy at the same venue.
pub const BH_CANCEL: u8 = 1;
/// An operation: a new price and open quantity for an earlier order.
pub const BH_REPLACE: u8 = 2;
/// An operation: the cancel of all orders of the strategy at the venue, of the instrument.
pub const BH_MASS_CANCEL: u8 = 3;

/// A side: a bid.
pub const BH_BUY: u8 = 0;
/// A side: an offer.
pub const BH_SELL: u8 = 1;

/// A type of order: at its price or better.
pub const BH_LIMIT: u8 = 0;
/// A type of order: at any price.
pub const BH_MARKET: u8 = 1;
/// A type of order: a market order once a trade happens at its stop price or beyond.
pub const BH_STOP: u8 = 2;
/// A type of order: a limit order from that moment.
pub const BH_STOP_LIMIT: u8 = 3;

/// A time in force: until it is filled or cancelled.
pub const BH_GOOD_TILL_CANCEL: u8 = 0;
/// A time in force: what is not filled at once is cancelled.
pub const BH_IMMEDIATE_OR_CANCEL: u8 = 1;
/// A time in force: filled at once and in full, or cancelled.
pub const BH_FILL_OR_KILL: u8 = 2;
/// A time in force: as long as BH_LIFE says.
pub const BH_GOOD_TILL_TIME: u8 = 3;

/// Two orders of one strategy: they trade.
pub const BH_ALLOW: u8 = 0;
/// Two orders of one strategy: what is left of the newer one is cancelled.
pub const BH_CANCEL_NEWEST: u8 = 1;
/// Two orders of one strategy: the older one is cancelled.
pub const BH_CANCEL_OLDEST: u8 = 2;
/// Two orders of one strategy: both are cancelled.
pub const BH_CANCEL_BOTH: u8 = 3;
/// Two orders of one strategy: both lose the smaller quantity.
pub const BH_DECREMENT: u8 = 4;

/// A condition: none.
pub const BH_NO_CONDITION: u8 = 0;
/// A condition: the price that triggers a stop order, in cents.
pub const BH_STOP_PRICE: u8 = 1;
/// A condition: the most that is shown at once.
pub const BH_DISPLAY: u8 = 2;
/// A condition: the least that must be filled at once.
pub const BH_MINIMUM: u8 = 3;
/// A condition: how long the order lives from its arrival at the venue, in nanoseconds.
pub const BH_LIFE: u8 = 4;

/// A status: executed, as a whole or what was left of it.
pub const BH_FILLED: u8 = 1;
/// A status: the engine's risk checks refused it; it never reached a venue. The reason says why.
pub const BH_REJECTED: u8 = 2;
/// A status: what was left of it is cancelled.
pub const BH_CANCELLED: u8 = 3;
/// A status: the venue has it.
pub const BH_ACCEPTED: u8 = 4;
/// A status: the venue has executed a part of it.
pub const BH_PARTIALLY_FILLED: u8 = 5;
/// A status: the venue refused it.
pub const BH_REFUSED: u8 = 6;
/// A status: it has the price and the open quantity of the report now.
pub const BH_REPLACED: u8 = 7;
/// A status: its time is over.
pub const BH_EXPIRED: u8 = 8;
/// A status: a stop order is an order now.
pub const BH_TRIGGERED: u8 = 9;
/// A status: the venue took quantity from it without a trade.
pub const BH_RESTATED: u8 = 10;
/// A status, of a cancel, a replace or a mass cancel: it was carried out.
pub const BH_DONE: u8 = 11;

/// An order. All zero, it is a limit order that buys nothing at venue 0, good till cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Order {
    /// Limit price in cents; 0 of a market order or a cancel.
    pub price: i64,
    /// In 1e-8 units; 0 of a cancel.
    pub quantity: u64,
    /// Of a cancel or a replace: the sequence of the order that it is about. Else 0.
    pub target: u64,
    /// The version of the touch that made the strategy send it; 0: none did.
    pub trigger: u64,
    /// What the condition says: a price in cents, a quantity or nanoseconds. 0 without one.
    pub condition_value: u64,
    /// How long a venue of kind `delay` takes for it, in nanoseconds.
    pub delay_ns: u64,
    /// The venue, from 0. One that there is not is rejected by the engine.
    pub venue: u16,
    /// The instrument, from 0.
    pub instrument: u16,
    /// BH_NEW, BH_CANCEL, BH_REPLACE or BH_MASS_CANCEL.
    pub operation: u8,
    /// BH_BUY or BH_SELL.
    pub side: u8,
    /// BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and what follows is of a new order; else 0.
    pub order_type: u8,
    /// BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL or BH_GOOD_TILL_TIME.
    pub time_in_force: u8,
    /// 1: refused rather than take liquidity.
    pub post_only: u8,
    /// What happens instead of a trade with an order of the same strategy: BH_ALLOW to
    /// BH_DECREMENT.
    pub self_trade: u8,
    /// BH_NO_CONDITION to BH_LIFE.
    pub condition: u8,
    /// 0.
    pub reserved: [u8; 5],
}

/// A report on an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Report {
    /// The sequence of the order, as bh_send gave it.
    pub sequence: u64,
    /// In cents: of what was filled with this report; without a fill the order's.
    pub price: i64,
    /// What was filled with this report, in 1e-8 units.
    pub filled: u64,
    /// What is open of the order now.
    pub leaves: u64,
    /// What was filled of it in all.
    pub cumulative: u64,
    /// The venue.
    pub venue: u16,
    /// The instrument.
    pub instrument: u16,
    /// BH_FILLED to BH_DONE.
    pub status: u8,
    /// Why it was rejected: a code of docs/src/risk.md. Of a venue: a code of its own, or 0.
    pub reason: u8,
    /// BH_BUY or BH_SELL, of the order.
    pub side: u8,
    /// Which report of its order this is, from 0.
    pub number: u8,
    /// 1: no report of this order follows.
    pub is_last: u8,
    /// 0.
    pub reserved: [u8; 7],
}

/// The touch of an instrument: the best of both sides and the last trade. Price and quantity are
/// both 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Tick {
    /// The version of this touch, from 1: what an order that it triggers says.
    pub version: u64,
    /// When the exchange wrote it, in nanoseconds since the start of the run.
    pub written_ns: u64,
    /// Versions that were written over before this strategy looked.
    pub missed: u64,
    /// Trades so far.
    pub trades: u64,
    /// The best bid, in cents.
    pub bid_price: i64,
    /// How much there is at that price, in 1e-8 units.
    pub bid_quantity: u64,
    /// The best offer, in cents.
    pub offer_price: i64,
    /// How much there is at that price, in 1e-8 units.
    pub offer_quantity: u64,
    /// The last trade, in cents.
    pub last_price: i64,
    /// Its quantity, in 1e-8 units.
    pub last_quantity: u64,
    /// The venue.
    pub venue: u16,
    /// The instrument.
    pub instrument: u16,
    /// 1: it is in a call auction.
    pub auction: u8,
    /// 0.
    pub reserved: [u8; 3],
}

/// What a strategy knows of its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Context {
    /// The most orders that it can send: those that the plan has for it, less what its predecessors
    /// sent.
    pub orders: u64,
    /// The most orders that it can have open at once.
    pub max_open: u64,
    /// Orders that its predecessors sent: 0 in epoch 0.
    pub sent_before: u64,
    /// Which strategy it is, from 0.
    pub strategy: u16,
    /// How many strategies there are.
    pub strategies: u16,
    /// How many venues there are: orders go to 0 … venues − 1.
    pub venues: u16,
    /// How many instruments there are, at least 1.
    pub instruments: u16,
    /// Which incarnation it is: 0, and one more each time that it was started again after a death.
    pub epoch: u16,
    /// 1: there is market data.
    pub market_data: u8,
    /// 0.
    pub reserved: [u8; 5],
}

const _: () = assert!(size_of::<Order>() == 64 && size_of::<Report>() == 56);
const _: () = assert!(size_of::<Tick>() == 88 && size_of::<Context>() == 40);

const OPERATIONS: [Operation; 4] =
    [Operation::New, Operation::Cancel, Operation::Replace, Operation::MassCancel];
const SIDES: [Side; 2] = [Side::Buy, Side::Sell];

/// The value with that code, which is its place among all.
#[inline]
fn of_code<T: Copy>(all: &[T], code: u8, wrong: &'static CStr) -> Result<T, &'static CStr> {
    all.get(usize::from(code)).copied().ok_or(wrong)
}

impl Order {
    /// The order that it says.
    ///
    /// # Errors
    /// The first field that is wrong, and what it may be.
    #[inline]
    pub(crate) fn parse(&self) -> Result<NewOrder, &'static CStr> {
        let operation =
            of_code(&OPERATIONS, self.operation, c"operation: 0 to 3 (BH_NEW to BH_MASS_CANCEL)")?;
        let side = of_code(&SIDES, self.side, c"side: 0 or 1 (BH_BUY, BH_SELL)")?;
        if self.reserved != [0; 5] {
            return Err(c"reserved: must be 0");
        }
        let terms = self.terms()?;
        match operation {
            Operation::New if self.target != 0 => {
                return Err(c"target: must be 0 of a new order");
            }
            Operation::New => {}
            _ if terms != OrderTerms::default() => {
                return Err(
                    c"order_type, time_in_force, post_only, self_trade, condition: of a new order only",
                );
            }
            _ => {}
        }
        let Self { price, quantity, target, trigger, delay_ns, venue, instrument, .. } = *self;
        let due = None;
        Ok(NewOrder {
            venue,
            instrument,
            operation,
            side,
            price,
            quantity,
            target,
            terms,
            trigger,
            delay_ns,
            due,
        })
    }

    #[inline]
    fn terms(&self) -> Result<OrderTerms, &'static CStr> {
        let value = self.condition_value;
        Ok(OrderTerms {
            order_type: of_code(
                &OrderType::ALL,
                self.order_type,
                c"order_type: 0 to 3 (BH_LIMIT to BH_STOP_LIMIT)",
            )?,
            time_in_force: of_code(
                &TimeInForce::ALL,
                self.time_in_force,
                c"time_in_force: 0 to 3 (BH_GOOD_TILL_CANCEL to BH_GOOD_TILL_TIME)",
            )?,
            post_only: of_code(&[false, true], self.post_only, c"post_only: 0 or 1")?,
            self_trade: of_code(
                &SelfTrade::ALL,
                self.self_trade,
                c"self_trade: 0 to 4 (BH_ALLOW to BH_DECREMENT)",
            )?,
            condition: match self.condition {
                BH_NO_CONDITION if value != 0 => {
                    return Err(c"condition_value: must be 0 without a condition");
                }
                BH_NO_CONDITION => OrderCondition::None,
                BH_STOP_PRICE => OrderCondition::StopPrice(value.cast_signed()),
                BH_DISPLAY => OrderCondition::Display(value),
                BH_MINIMUM => OrderCondition::Minimum(value),
                BH_LIFE => OrderCondition::Lifetime(value),
                _ => return Err(c"condition: 0 to 4 (BH_NO_CONDITION to BH_LIFE)"),
            },
        })
    }
}

impl From<&wire::Report> for Report {
    #[inline]
    fn from(report: &wire::Report) -> Self {
        Self {
            sequence: report.id.sequence(),
            price: report.price,
            filled: report.filled,
            leaves: report.leaves,
            cumulative: report.cumulative,
            venue: report.venue,
            instrument: report.instrument,
            // Its place among all, from 1.
            status: report.status as u8 + 1,
            reason: report.reason,
            side: report.side as u8,
            number: report.number,
            is_last: report.is_last.into(),
            reserved: [0; 7],
        }
    }
}

impl Tick {
    /// What was heard, written at that time.
    #[inline]
    pub(crate) fn of(heard: &Heard, written_ns: u64) -> Self {
        let pair = |quote: Option<Quote>| quote.map_or((0, 0), |quote| (quote.price, quote.quantity));
        let touch = &heard.top;
        let ((bid_price, bid_quantity), (offer_price, offer_quantity), (last_price, last_quantity)) =
            (pair(touch.bid), pair(touch.offer), pair(touch.last));
        Self {
            version: heard.version,
            written_ns,
            missed: heard.missed,
            trades: touch.trades,
            bid_price,
            bid_quantity,
            offer_price,
            offer_quantity,
            last_price,
            last_quantity,
            venue: heard.venue,
            instrument: heard.instrument,
            auction: touch.auction.into(),
            reserved: [0; 3],
        }
    }
}

impl Context {
    /// What is known of a run, with or without market data.
    pub(crate) fn of(facts: &Facts, market_data: bool) -> Self {
        let context = &facts.context;
        Self {
            orders: context.orders,
            max_open: context.max_open,
            sent_before: context.sent_before,
            strategy: context.strategy,
            strategies: context.strategies,
            venues: context.venues,
            instruments: facts.instruments,
            epoch: context.epoch,
            market_data: market_data.into(),
            reserved: [0; 5],
        }
    }
}

#[cfg(test)]
mod tests;

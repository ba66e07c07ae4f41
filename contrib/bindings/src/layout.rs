//! The structures of the C interface, field by field.
//!
//! Every structure has a fixed size and no hidden padding (checked at compile time), so other
//! languages can declare it as bytes. A field named `reserved` must be 0, so that a later version
//! can use it.

use crate::session::RunInfo;
use core::ffi::CStr;
use protocol::market::{MarketTick, Quote};
use protocol::wire::OrderRequest;
use protocol::wire::{self, Operation, OrderCondition, OrderTerms, OrderType, SelfTrade, Side, TimeInForce};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// An operation: a new order.
pub const BH_NEW: u8 = 0;
/// An operation: the cancel of an earlier order of the same strategy at the same venue.
pub const BH_CANCEL: u8 = 1;
/// An operation: a new price and open quantity for an earlier order.
pub const BH_REPLACE: u8 = 2;
/// An operation: the cancel of all orders of the strategy in one instrument at one venue.
pub const BH_MASS_CANCEL: u8 = 3;

/// A side: a bid.
pub const BH_BUY: u8 = 0;
/// A side: an offer.
pub const BH_SELL: u8 = 1;

/// An order type: limit, at its price or better.
pub const BH_LIMIT: u8 = 0;
/// An order type: market, at any price.
pub const BH_MARKET: u8 = 1;
/// An order type: stop, a market order once a trade happens at its stop price or beyond.
pub const BH_STOP: u8 = 2;
/// An order type: stop limit, a limit order once a trade happens at its stop price or beyond.
pub const BH_STOP_LIMIT: u8 = 3;

/// A time in force: good till cancel.
pub const BH_GOOD_TILL_CANCEL: u8 = 0;
/// A time in force: what is not filled immediately is cancelled.
pub const BH_IMMEDIATE_OR_CANCEL: u8 = 1;
/// A time in force: filled immediately and in full, or cancelled.
pub const BH_FILL_OR_KILL: u8 = 2;
/// A time in force: until the lifetime in the order's condition BH_LIFE has passed.
pub const BH_GOOD_TILL_TIME: u8 = 3;

/// Self-trade prevention: none, orders of one strategy trade with each other.
pub const BH_ALLOW: u8 = 0;
/// Self-trade prevention: what is left of the newer order is cancelled.
pub const BH_CANCEL_NEWEST: u8 = 1;
/// Self-trade prevention: the older order is cancelled.
pub const BH_CANCEL_OLDEST: u8 = 2;
/// Self-trade prevention: both orders are cancelled.
pub const BH_CANCEL_BOTH: u8 = 3;
/// Self-trade prevention: both orders are reduced by the smaller quantity.
pub const BH_DECREMENT: u8 = 4;

/// Condition of an order: none, it is sent to the book at once.
pub const BH_NO_CONDITION: u8 = 0;
/// A condition: the price that triggers a stop order, in cents.
pub const BH_STOP_PRICE: u8 = 1;
/// A condition: the maximum displayed quantity (iceberg).
pub const BH_DISPLAY: u8 = 2;
/// A condition: the minimum quantity that must be filled immediately.
pub const BH_MINIMUM: u8 = 3;
/// A condition: lifetime of the order from its arrival at the venue, in nanoseconds.
pub const BH_LIFE: u8 = 4;

/// An order's status: completely filled.
pub const BH_FILLED: u8 = 1;
/// An order's status: rejected by the engine's risk checks with a reason, so never at a venue.
pub const BH_REJECTED: u8 = 2;
/// An order's status: the open quantity is cancelled.
pub const BH_CANCELLED: u8 = 3;
/// An order's status: accepted by the venue.
pub const BH_ACCEPTED: u8 = 4;
/// An order's status: partially filled.
pub const BH_PARTIALLY_FILLED: u8 = 5;
/// An order's status: refused by the venue.
pub const BH_REFUSED: u8 = 6;
/// An order's status: replaced, with the price and open quantity of the report.
pub const BH_REPLACED: u8 = 7;
/// An order's status: expired.
pub const BH_EXPIRED: u8 = 8;
/// An order's status: a stop order was triggered.
pub const BH_TRIGGERED: u8 = 9;
/// An order's status: the venue reduced the quantity without a trade.
pub const BH_RESTATED: u8 = 10;
/// The status of a cancel, replace or mass cancel: executed.
pub const BH_DONE: u8 = 11;

/// An order as a strategy's program passes it to bh_send: operation, venue, instrument, price,
/// quantity and terms. All zeros are a limit buy order for nothing at venue 0, good till cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Order {
    /// Limit price in cents; 0 for a market order or a cancel.
    pub price: i64,
    /// Quantity in 1e-8 units; 0 for a cancel.
    pub quantity: u64,
    /// Sequence of the order that a cancel or replace targets; otherwise 0.
    pub target: u64,
    /// Version of the market data that triggered the order; 0: none.
    pub trigger: u64,
    /// Value of the condition: a price in cents, a quantity or nanoseconds; 0 without a condition.
    pub condition_value: u64,
    /// Delay at a venue of kind `delay`, in nanoseconds.
    pub delay_ns: u64,
    /// Index of the venue, from 0. The engine rejects an unknown one.
    pub venue: u16,
    /// Index of the instrument, from 0.
    pub instrument: u16,
    /// BH_NEW, BH_CANCEL, BH_REPLACE or BH_MASS_CANCEL.
    pub operation: u8,
    /// BH_BUY or BH_SELL.
    pub side: u8,
    /// BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and later fields are for new orders;
    /// otherwise 0.
    pub order_type: u8,
    /// BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL or BH_GOOD_TILL_TIME.
    pub time_in_force: u8,
    /// 1: post-only, refused rather than take liquidity.
    pub post_only: u8,
    /// Self-trade prevention: BH_ALLOW to BH_DECREMENT.
    pub self_trade: u8,
    /// BH_NO_CONDITION to BH_LIFE.
    pub condition: u8,
    /// 0.
    pub reserved: [u8; 5],
}

/// A report on a strategy's order, as bh_poll returns it: status, fill, and open and total filled
/// quantities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Report {
    /// Sequence of the order, as returned by bh_send.
    pub sequence: u64,
    /// Price in cents: of this report's fill, or of the order without a fill.
    pub price: i64,
    /// Quantity filled with this report, in 1e-8 units.
    pub filled: u64,
    /// Open quantity of the order, in 1e-8 units.
    pub leaves: u64,
    /// Total quantity filled, in 1e-8 units.
    pub cumulative: u64,
    /// The venue.
    pub venue: u16,
    /// The instrument.
    pub instrument: u16,
    /// BH_FILLED to BH_DONE.
    pub status: u8,
    /// Reason of a rejection: a code of docs/src/risk.md. For a venue's report: a code of the
    /// venue, or 0.
    pub reason: u8,
    /// Side of the order: BH_BUY or BH_SELL.
    pub side: u8,
    /// Number of this report among those of its order, from 0.
    pub number: u8,
    /// 1: no report of this order follows.
    pub is_last: u8,
    /// 0.
    pub reserved: [u8; 7],
}

/// The top of book of an instrument: best bid and offer, and the last trade. Price and quantity are
/// both 0 if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Tick {
    /// Version of this top of book, from 1: the trigger of orders sent in reaction.
    pub version: u64,
    /// When the exchange published it, in nanoseconds since the start of the run.
    pub written_ns: u64,
    /// Number of versions that were overwritten before this strategy read them.
    pub missed: u64,
    /// Number of trades so far.
    pub trades: u64,
    /// Best bid price in cents.
    pub bid_price: i64,
    /// Quantity at the best bid, in 1e-8 units.
    pub bid_quantity: u64,
    /// Best offer price in cents.
    pub offer_price: i64,
    /// Quantity at the best offer, in 1e-8 units.
    pub offer_quantity: u64,
    /// Price of the last trade in cents.
    pub last_price: i64,
    /// Quantity of the last trade, in 1e-8 units.
    pub last_quantity: u64,
    /// The venue.
    pub venue: u16,
    /// The instrument.
    pub instrument: u16,
    /// 1: the instrument is in a call auction.
    pub auction: u8,
    /// 0.
    pub reserved: [u8; 3],
}

/// A strategy's information about its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Context {
    /// Maximum number of orders: those of the plan, less what predecessors sent.
    pub orders: u64,
    /// Maximum number of orders open at once.
    pub max_open: u64,
    /// Number of orders sent by predecessors: 0 in epoch 0.
    pub sent_before: u64,
    /// Index of the strategy, from 0.
    pub strategy: u16,
    /// Number of strategies.
    pub strategies: u16,
    /// Number of venues: orders go to 0 … venues − 1.
    pub venues: u16,
    /// Number of instruments, at least 1.
    pub instruments: u16,
    /// Incarnation of the strategy: 0, incremented by each restart after a crash.
    pub epoch: u16,
    /// 1: the run has market data.
    pub market_data: u8,
    /// 0.
    pub reserved: [u8; 5],
}

const _: () = assert!(size_of::<Order>() == 64 && size_of::<Report>() == 56);
const _: () = assert!(size_of::<Tick>() == 88 && size_of::<Context>() == 40);

const OPERATIONS: [Operation; 4] =
    [Operation::New, Operation::Cancel, Operation::Replace, Operation::MassCancel];
const SIDES: [Side; 2] = [Side::Buy, Side::Sell];

/// Returns the value with a code, which is its index in `all`.
#[inline]
fn from_code<T: Copy>(all: &[T], code: u8, error: &'static CStr) -> Result<T, &'static CStr> {
    all.get(usize::from(code)).copied().ok_or(error)
}

impl Order {
    /// Validates an order that a strategy's program passes to `bh_send` or `bh_send_due`, and
    /// converts it into an order request.
    ///
    /// # Errors
    /// The first invalid field and its range.
    #[inline]
    pub fn parse(&self) -> Result<OrderRequest, &'static CStr> {
        let operation =
            from_code(&OPERATIONS, self.operation, c"operation: 0 to 3 (BH_NEW to BH_MASS_CANCEL)")?;
        let side = from_code(&SIDES, self.side, c"side: 0 or 1 (BH_BUY, BH_SELL)")?;
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
        Ok(OrderRequest {
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
        })
    }

    #[inline]
    fn terms(&self) -> Result<OrderTerms, &'static CStr> {
        let value = self.condition_value;
        Ok(OrderTerms {
            order_type: from_code(
                &OrderType::ALL,
                self.order_type,
                c"order_type: 0 to 3 (BH_LIMIT to BH_STOP_LIMIT)",
            )?,
            time_in_force: from_code(
                &TimeInForce::ALL,
                self.time_in_force,
                c"time_in_force: 0 to 3 (BH_GOOD_TILL_CANCEL to BH_GOOD_TILL_TIME)",
            )?,
            post_only: from_code(&[false, true], self.post_only, c"post_only: 0 or 1")?,
            self_trade: from_code(
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
            // Its index among all statuses, from 1.
            status: report.status as u8,
            reason: report.reason,
            side: report.side as u8,
            number: report.number,
            is_last: report.is_last.into(),
            reserved: [0; 7],
        }
    }
}

impl Tick {
    /// Converts one instrument's market data into the C struct that a strategy's program reads;
    /// `written_ns` is its publication time in nanoseconds since the run's start.
    #[inline]
    pub fn from_tick(tick: &MarketTick, written_ns: u64) -> Self {
        let pair = |quote: Option<Quote>| quote.map_or((0, 0), |quote| (quote.price, quote.quantity));
        let touch = &tick.top;
        let ((bid_price, bid_quantity), (offer_price, offer_quantity), (last_price, last_quantity)) =
            (pair(touch.bid), pair(touch.offer), pair(touch.last));
        Self {
            version: tick.version,
            written_ns,
            missed: tick.missed,
            trades: touch.trades,
            bid_price,
            bid_quantity,
            offer_price,
            offer_quantity,
            last_price,
            last_quantity,
            venue: tick.venue,
            instrument: tick.instrument,
            auction: touch.auction.into(),
            reserved: [0; 3],
        }
    }
}

impl Context {
    /// Converts the information about a run, with or without market data.
    pub(crate) fn from_run_info(info: &RunInfo, market_data: bool) -> Self {
        let context = &info.context;
        Self {
            orders: context.orders,
            max_open: context.max_open,
            sent_before: context.sent_before,
            strategy: context.strategy,
            strategies: context.strategies,
            venues: context.venues,
            instruments: info.instruments,
            epoch: context.epoch,
            market_data: market_data.into(),
            reserved: [0; 5],
        }
    }
}

#[cfg(test)]
mod tests;

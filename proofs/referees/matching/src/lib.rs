//! The exchange as engine of a neutral benchmark with a C interface; README.md has the commands.

mod abi;
mod commands;
#[cfg(not(feature = "own-ring"))]
mod harness_queue;
#[cfg(feature = "own-ring")]
mod own_ring;
mod report_type;
#[cfg(feature = "own-ring")]
mod report_words;
#[cfg(feature = "own-ring")]
mod ring;

use abi::{CancelMessage, ModifyMessage, NewOrderMessage, Report, Transport};
use exchange::{CancelReason, Capacity, Command, Event, Events, Exchange, Instrument, Side};
#[cfg(not(feature = "own-ring"))]
use harness_queue::Outlet;
#[cfg(feature = "own-ring")]
use own_ring::Outlet;
use std::cell::UnsafeCell;
use std::ffi::c_void;

/// The engine and the way of its reports.
struct Adapter {
    exchange: Exchange,
    outlet: Outlet,
}

/// The adapter of the process, which the harness uses from one thread at a time.
struct Global(UnsafeCell<Option<Adapter>>);

// SAFETY: the harness calls `engine_init` first, and all functions from one thread at a time.
unsafe impl Sync for Global {}

static ADAPTER: Global = Global(UnsafeCell::new(None));

/// Runs `f` with the adapter, which exists after `engine_init`.
#[inline(always)]
fn with_adapter<T>(f: impl FnOnce(&mut Adapter) -> T) -> Option<T> {
    // SAFETY: as for `Global`; no function of this file calls another one that uses the adapter.
    unsafe { (*ADAPTER.0.get()).as_mut() }.map(f)
}

/// Converts the events of one message into reports.
struct ReportSink<'a> {
    outlet: &'a mut Outlet,
    sequence_number: u64,
    quantity: u32,
    reject: u8,
}

impl ReportSink<'_> {
    #[inline(always)]
    fn send(&mut self, report_type: u8, side: u8, order_id: u64, price_ticks: i64, quantity: u32) {
        let sequence_number = self.sequence_number;
        self.outlet.send(Report {
            report_type,
            side,
            sequence_number,
            order_id,
            price_ticks,
            quantity,
            ..Report::default()
        });
    }
}

impl Events for ReportSink<'_> {
    #[inline(always)]
    fn on(&mut self, event: Event) {
        match event {
            Event::Accepted { id, side, price } => {
                self.send(report_type::ORDER_ACK, side as u8, id, price, self.quantity);
            }
            Event::Trade { maker, taker, price, quantity, .. } => self.outlet.send(Report {
                report_type: report_type::TRADE,
                sequence_number: self.sequence_number,
                price_ticks: price,
                quantity: quantity as u32,
                maker_order_id: maker,
                taker_order_id: taker,
                ..Report::default()
            }),
            Event::Cancelled { id, side, price, leaves, reason } => {
                let quantity = if reason == CancelReason::Requested { 0 } else { leaves as u32 };
                self.send(report_type::CANCEL_ACK, side as u8, id, price, quantity);
            }
            Event::Replaced { id, side, price, leaves } => {
                self.send(report_type::MODIFY_ACK, side as u8, id, price, leaves as u32);
            }
            Event::Rejected { id, .. } => self.send(self.reject, 0, id, 0, 0),
            Event::Expired { .. }
            | Event::Reduced { .. }
            | Event::Triggered { .. }
            | Event::Uncrossed { .. } => {}
        }
    }
}

impl Adapter {
    #[inline(always)]
    fn apply(&mut self, command: Command, sequence_number: u64, quantity: u32, reject: u8) {
        let mut sink = ReportSink { outlet: &mut self.outlet, sequence_number, quantity, reject };
        self.exchange.apply(command, &mut sink);
    }
}

fn side_of(side: u8) -> Side {
    if side == 0 { Side::Buy } else { Side::Sell }
}

/// Creates the matching engine for the harness.
///
/// # Safety
/// `transport` is valid during the call; `handle` until `engine_shutdown`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_init(_nonce: u64, transport: *const Transport, handle: *mut c_void) {
    let instrument = Instrument { price_high: 1 << 22, ..Instrument::default() };
    let exchange =
        Exchange::new(&[instrument], Capacity::for_orders(1 << 17)).expect("a valid configuration");
    // SAFETY: promised by the caller.
    let outlet = unsafe { Outlet::new(*transport, handle) };
    // SAFETY: as for `Global`.
    unsafe { *ADAPTER.0.get() = Some(Adapter { exchange, outlet }) };
}

/// Drops the matching engine at the end of a run of the harness.
#[unsafe(no_mangle)]
pub extern "C" fn engine_shutdown() {
    // SAFETY: as for `Global`.
    unsafe { *ADAPTER.0.get() = None };
}

/// Sends the reports that were collected for the harness. Every call has completed its message.
#[unsafe(no_mangle)]
pub extern "C" fn engine_flush() {
    with_adapter(|adapter| adapter.outlet.publish());
}

/// Applies a new order of the benchmark's harness to the exchange.
///
/// # Safety
/// `message` is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_new_order(message: *const NewOrderMessage) {
    // SAFETY: promised by the caller.
    let message = unsafe { &*message };
    let (sequence, quantity) = (message.sequence_number, message.quantity);
    with_adapter(|adapter| adapter.apply(message.into(), sequence, quantity, report_type::CANCEL_REJECT));
}

/// Cancels an order in the exchange for the benchmark's harness.
///
/// # Safety
/// `message` is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_cancel(message: *const CancelMessage) {
    // SAFETY: promised by the caller.
    let message = unsafe { &*message };
    with_adapter(|adapter| {
        adapter.apply(message.into(), message.sequence_number, 0, report_type::CANCEL_REJECT)
    });
}

/// Modifies an order in the exchange for the benchmark's harness.
///
/// # Safety
/// `message` is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_modify(message: *const ModifyMessage) {
    // SAFETY: promised by the caller.
    let message = unsafe { &*message };
    with_adapter(|adapter| {
        adapter.apply(message.into(), message.sequence_number, 0, report_type::MODIFY_REJECT)
    });
}

/// Returns the best bid of the exchange's book in ticks; `i64::MIN` without bids.
#[unsafe(no_mangle)]
pub extern "C" fn engine_query_best_bid() -> i64 {
    with_adapter(|adapter| adapter.exchange.best(0).0.map_or(i64::MIN, |level| level.price))
        .unwrap_or(i64::MIN)
}

/// Returns the best offer of the exchange's book in ticks; `i64::MAX` without offers.
#[unsafe(no_mangle)]
pub extern "C" fn engine_query_best_ask() -> i64 {
    with_adapter(|adapter| adapter.exchange.best(0).1.map_or(i64::MAX, |level| level.price))
        .unwrap_or(i64::MAX)
}

/// Returns the open quantity at a price of the exchange's book, 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn engine_query_depth_at(price_ticks: i64, side: u8) -> u64 {
    let quantity = |adapter: &mut Adapter| {
        let mut levels = adapter.exchange.depth(0, side_of(side), usize::MAX);
        levels.find(|level| level.price == price_ticks).map_or(0, |level| level.quantity)
    };
    with_adapter(quantity).unwrap_or(0)
}

//! The exchange behind the C interface of a neutral benchmark of matching engines; README.md has
//! the commands.

mod abi;

use abi::{CancelMessage, ModifyMessage, NewOrderMessage, Report, ReportType, Transport};
use exchange::{
    CancelReason, Capacity, Command, Event, Events, Exchange, Instrument, NewOrder, Side, TimeInForce,
};
use std::cell::UnsafeCell;
use std::ffi::c_void;

/// All orders have one owner.
const OWNER: u32 = 1;

/// The engine and the transport of its reports.
struct Adapter {
    exchange: Exchange,
    transport: Transport,
    handle: *mut c_void,
}

/// The adapter of the process, which the harness uses from one thread at a time.
struct Global(UnsafeCell<Option<Adapter>>);

// SAFETY: the harness calls `engine_init` before any other function, and all functions from one
// thread at a time.
unsafe impl Sync for Global {}

static ADAPTER: Global = Global(UnsafeCell::new(None));

/// Runs `f` with the adapter, which exists after `engine_init`.
#[inline(always)]
fn with_adapter<T>(f: impl FnOnce(&mut Adapter) -> T) -> Option<T> {
    // SAFETY: as for `Global`; no function of this file calls another one that uses the adapter.
    unsafe { (*ADAPTER.0.get()).as_mut() }.map(f)
}

/// Converts the events of one message into reports.
struct ReportSink {
    transport: Transport,
    handle: *mut c_void,
    sequence_number: u64,
    /// Quantity of the message's order.
    quantity: u32,
    /// The report of a rejected message.
    reject: ReportType,
}

impl ReportSink {
    #[inline(always)]
    fn push(&self, report_type: ReportType, side: u8, order_id: u64, price_ticks: i64, quantity: u32) {
        self.push_trade(report_type, side, order_id, price_ticks, quantity, (0, 0));
    }

    #[inline(always)]
    fn push_trade(
        &self,
        report_type: ReportType,
        side: u8,
        order_id: u64,
        price_ticks: i64,
        quantity: u32,
        (maker_order_id, taker_order_id): (u64, u64),
    ) {
        let report = Report {
            report_type,
            side,
            reserved: [0; 6],
            sequence_number: self.sequence_number,
            order_id,
            price_ticks,
            quantity,
            reserved2: 0,
            maker_order_id,
            taker_order_id,
            reserved3: 0,
        };
        while (self.transport.push)(self.handle, &report) == 0 {
            std::hint::spin_loop();
        }
    }
}

impl Events for ReportSink {
    #[inline]
    fn on(&mut self, event: Event) {
        match event {
            Event::Accepted { id, side, price } => {
                self.push(ReportType::OrderAck, side as u8, id, price, self.quantity);
            }
            Event::Trade { maker, taker, price, quantity, .. } => {
                self.push_trade(ReportType::Trade, 0, 0, price, quantity as u32, (maker, taker));
            }
            Event::Cancelled { id, side, price, leaves, reason } => {
                let quantity = if reason == CancelReason::Requested { 0 } else { leaves as u32 };
                self.push(ReportType::CancelAck, side as u8, id, price, quantity);
            }
            Event::Replaced { id, side, price, leaves } => {
                self.push(ReportType::ModifyAck, side as u8, id, price, leaves as u32);
            }
            Event::Rejected { id, .. } => self.push(self.reject, 0, id, 0, 0),
            Event::Expired { .. }
            | Event::Reduced { .. }
            | Event::Triggered { .. }
            | Event::Uncrossed { .. } => {}
        }
    }
}

impl Adapter {
    #[inline(always)]
    fn apply(&mut self, command: Command, sequence_number: u64, quantity: u32, reject: ReportType) {
        let (transport, handle) = (self.transport, self.handle);
        let mut sink = ReportSink { transport, handle, sequence_number, quantity, reject };
        self.exchange.apply(command, &mut sink);
    }
}

fn side_of(side: u8) -> Side {
    if side == 0 { Side::Buy } else { Side::Sell }
}

/// Creates the engine.
///
/// # Safety
/// `transport` is valid during the call; `handle` until `engine_shutdown`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_init(_nonce: u64, transport: *const Transport, handle: *mut c_void) {
    let instrument = Instrument { price_high: 1 << 22, ..Instrument::default() };
    let exchange =
        Exchange::new(&[instrument], Capacity::for_orders(1 << 17)).expect("a valid configuration");
    // SAFETY: promised by the caller.
    let transport = unsafe { *transport };
    // SAFETY: as for `Global`.
    unsafe { *ADAPTER.0.get() = Some(Adapter { exchange, transport, handle }) };
}

/// Drops the engine.
#[unsafe(no_mangle)]
pub extern "C" fn engine_shutdown() {
    // SAFETY: as for `Global`.
    unsafe { *ADAPTER.0.get() = None };
}

/// Does nothing: every call completes its message.
#[unsafe(no_mangle)]
pub extern "C" fn engine_flush() {}

/// Applies a new order.
///
/// # Safety
/// `message` is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_new_order(message: *const NewOrderMessage) {
    // SAFETY: promised by the caller.
    let message = unsafe { &*message };
    let order = NewOrder {
        id: message.order_id,
        owner: OWNER,
        side: side_of(message.side),
        price: message.price_ticks,
        quantity: u64::from(message.quantity),
        time_in_force: if message.ioc == 0 {
            TimeInForce::GoodTillCancel
        } else {
            TimeInForce::ImmediateOrCancel
        },
        ..NewOrder::default()
    };
    let (sequence, quantity) = (message.sequence_number, message.quantity);
    with_adapter(|adapter| adapter.apply(Command::New(order), sequence, quantity, ReportType::CancelReject));
}

/// Cancels an order.
///
/// # Safety
/// `message` is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_cancel(message: *const CancelMessage) {
    // SAFETY: promised by the caller.
    let message = unsafe { &*message };
    let command = Command::Cancel { id: message.order_id, owner: OWNER };
    with_adapter(|adapter| adapter.apply(command, message.sequence_number, 0, ReportType::CancelReject));
}

/// Modifies an order. Every modify of the benchmark is a new price or a larger quantity, which
/// loses its priority in the exchange as the benchmark requires.
///
/// # Safety
/// `message` is valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_modify(message: *const ModifyMessage) {
    // SAFETY: promised by the caller.
    let message = unsafe { &*message };
    let command = Command::Replace {
        id: message.order_id,
        owner: OWNER,
        price: message.new_price_ticks,
        quantity: u64::from(message.new_quantity),
    };
    with_adapter(|adapter| adapter.apply(command, message.sequence_number, 0, ReportType::ModifyReject));
}

/// Returns the best bid in ticks; `i64::MIN` without bids.
#[unsafe(no_mangle)]
pub extern "C" fn engine_query_best_bid() -> i64 {
    with_adapter(|adapter| adapter.exchange.best(0).0.map_or(i64::MIN, |level| level.price))
        .unwrap_or(i64::MIN)
}

/// Returns the best offer in ticks; `i64::MAX` without offers.
#[unsafe(no_mangle)]
pub extern "C" fn engine_query_best_ask() -> i64 {
    with_adapter(|adapter| adapter.exchange.best(0).1.map_or(i64::MAX, |level| level.price))
        .unwrap_or(i64::MAX)
}

/// Returns the quantity at a price, 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn engine_query_depth_at(price_ticks: i64, side: u8) -> u64 {
    let quantity = |adapter: &mut Adapter| {
        let mut levels = adapter.exchange.depth(0, side_of(side), usize::MAX);
        levels.find(|level| level.price == price_ticks).map_or(0, |level| level.quantity)
    };
    with_adapter(quantity).unwrap_or(0)
}

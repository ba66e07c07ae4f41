//! The C types of the benchmark's `api/matching_engine_api.h`.

use std::ffi::{c_int, c_void};

/// The message of a new order, with the layout of the harness's `new_order_t`.
#[repr(C)]
pub struct NewOrderMessage {
    pub order_id: u64,
    pub sequence_number: u64,
    pub price_ticks: i64,
    pub quantity: u32,
    /// 0 for a bid, 1 for an offer.
    pub side: u8,
    /// 1 for an immediate-or-cancel order.
    pub ioc: u8,
    pub reserved: [u8; 2],
}

/// A request to cancel an order: the harness's `cancel_t`.
#[repr(C)]
pub struct CancelMessage {
    pub order_id: u64,
    pub sequence_number: u64,
}

/// The message that modifies an order, with the layout of the harness's `modify_t`.
#[repr(C)]
pub struct ModifyMessage {
    pub order_id: u64,
    pub sequence_number: u64,
    pub new_price_ticks: i64,
    pub new_quantity: u32,
    pub side: u8,
    pub reserved: [u8; 3],
}

/// A report of the matching engine on an order (`me_report_t`), one cache line.
#[derive(Default)]
#[repr(C)]
pub struct Report {
    pub report_type: u8,
    pub side: u8,
    pub reserved: [u8; 6],
    pub sequence_number: u64,
    pub order_id: u64,
    pub price_ticks: i64,
    pub quantity: u32,
    pub reserved2: u32,
    pub maker_order_id: u64,
    pub taker_order_id: u64,
    pub reserved3: u64,
}

/// The functions by which the harness receives reports (`me_transport_t`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Transport {
    pub create: extern "C" fn(u32) -> *mut c_void,
    pub push: extern "C" fn(*mut c_void, *const Report) -> c_int,
    pub drain: extern "C" fn(*mut c_void, *mut Report, u32) -> u32,
    pub flush: extern "C" fn(*mut c_void),
    pub destroy: extern "C" fn(*mut c_void),
}

const _: () = assert!(size_of::<NewOrderMessage>() == 32 && size_of::<CancelMessage>() == 16);
const _: () = assert!(size_of::<ModifyMessage>() == 32 && size_of::<Report>() == 64);

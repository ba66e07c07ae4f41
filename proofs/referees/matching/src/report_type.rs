//! The types of a report (`me_report_type_t`).

pub const ORDER_ACK: u8 = 0;
pub const TRADE: u8 = 1;
pub const CANCEL_ACK: u8 = 2;
pub const MODIFY_ACK: u8 = 3;
pub const CANCEL_REJECT: u8 = 4;
pub const MODIFY_REJECT: u8 = 5;

//! What a trading strategy is to bulkhead: the orders that it has to send.
#![forbid(unsafe_code)]

pub mod schedule;

//! Minimal user-defined components for bulkhead: a strategy, two venues and two techniques.
#![forbid(unsafe_code)]

mod drain_mux;
mod heap_ring;
mod in_parts;
mod quoter;
mod shallow;
mod slow_mux;

pub use drain_mux::DrainMux;
pub use heap_ring::HeapRing;
pub use in_parts::InParts;
pub use quoter::Quoter;
pub use shallow::Shallow;
pub use slow_mux::SlowMux;

//! Strategies on another host: two `bridge::link`s over Aeron's UDP, between a venue on the
//! strategies' host (far host) and a strategy process on the engine's host.
//!
//! ```text
//!  far host: a run                                  engine's host: a run
//!  strategies ─ … ─ gateway ─ venue `remote`        strategy `bulkhead-bridge serve` ─ ring ─ …
//!                               │ queues              │ queues
//!             bridge thread: StrategySide, Link       bridge thread: EngineSide, Link
//!               Aeron client and driver  ══ UDP ══  Aeron client and driver
//! ```
#![forbid(unsafe_code)]

pub mod bridge_address;
pub mod bridge_dir;
mod engine_side;
pub mod figures;
pub mod flag;
pub mod join;
mod order_map;
pub mod pump;
pub mod serve;
mod strategy_side;
pub mod transport;
pub mod venue;
#[cfg(test)]
mod world_tests;

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
//!
//! | module | content |
//! |---|---|
//! | [`bridge_address`] | the address of a bridge: `NAME@HOST:PORT` |
//! | [`transport`] | Aeron: a driver, a client, a stream each way, all driven by one thread |
//! | [`pump`] | the event loop of a bridge: transport, link and one side's logic |
//! | [`strategy_side`] | the far host's side: orders out, reports back, outcomes |
//! | [`venue`] | the venue `remote`, in front of the strategy side |
//! | [`engine_side`] | the engine's host's side: orders in, reports out, exit on connection loss |
//! | [`order_map`] | maps orders of the far host to orders at the engine |
//! | [`serve`] | the strategy process on the engine's host |
//! | [`join`] | the far host's command |
//! | [`figures`] | latencies between the hosts with clock errors: the table and `remote.json` |
//! | [`flag`] | a flag between two threads |
//! | [`bridge_dir`] | a bridge's directory in `/dev/shm`, removed with its run |
#![forbid(unsafe_code)]

pub mod bridge_address;
pub mod bridge_dir;
pub mod engine_side;
pub mod figures;
pub mod flag;
pub mod join;
pub mod order_map;
pub mod pump;
pub mod serve;
pub mod strategy_side;
pub mod transport;
pub mod venue;
#[cfg(test)]
mod world_tests;

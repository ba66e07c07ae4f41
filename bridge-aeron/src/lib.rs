//! Strategies on another host: two `bridge::link`s over Aeron's UDP, between a venue on the far
//! host and a strategy process on the engine's.
//!
//! ```text
//!  far host: a run of its own                                     engine's host: a run like any other
//!  strategies ─ rings ─ orchestrator ─ gateway ─ venue `remote`    strategy process `bulkhead-bridge serve` ─ ring ─ orchestrator ─ …
//!                                            │ lanes                        │ lanes
//!                                       thread `bridge`: Far, Link     thread `bridge`: Near, Link
//!                                       Aeron client and driver ═ UDP ═ Aeron client and driver
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`meeting`] | whom a bridge meets, and where: `NAME@HOST:PORT` |
//! | [`transport`] | Aeron: a driver, a client, a stream each way, all turned by one thread |
//! | [`pump`] | the thread of a bridge: transport, link and one side's part, in turn |
//! | [`far`] | the far host's part: orders out, reports home, what becomes of orders when the engine's host is gone |
//! | [`venue`] | the venue `remote`, behind which the far host's part is |
//! | [`near`] | the engine's host's part: orders in, reports out, and the end of it when the far host is gone |
//! | [`desk`] | whose order at the engine is whose on the far host |
//! | [`serve`] | the strategy process on the engine's host |
//! | [`join`] | the far host's command |
//! | [`figures`] | what crossed, with the errors that two clocks leave: the table and `remote.json` |
//! | [`flag`] | what one thread says and another one hears |
//! | [`place`] | a bridge's folder in `/dev/shm`, which goes with its run |
#![forbid(unsafe_code)]

pub mod desk;
pub mod far;
pub mod figures;
pub mod flag;
pub mod join;
pub mod meeting;
pub mod near;
pub mod place;
pub mod pump;
pub mod serve;
pub mod transport;
pub mod venue;
#[cfg(test)]
mod world;

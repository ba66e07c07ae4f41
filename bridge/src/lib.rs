//! Sessions, delivery outcomes and clock bounds between two hosts of one run.
//!
//! A strategy on another host stands behind two bridges. This crate is what both think; it moves no
//! bytes itself. Whoever has a transport hands it what arrived and takes from it what is to go:
//!
//! ```text
//!  far host                                            engine's host
//!  strategy ─ ring ─▶ bridge ─▶ Link ─ frames ─▶ Link ─▶ bridge ─ ring ─▶ orchestrator
//!           ◀──────          ◀─      ◀─────────      ◀─         ◀──────
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`frame`] | the bytes, checked before anything in them is looked at |
//! | [`link`] | sessions: what is sent is taken once, in order, or its fate is told |
//! | [`clock`] | two clocks: how far apart they are, within bounds, from the same frames |
//!
//! No frame is sent again: what loses and reorders frames is the transport's business, and Aeron's
//! is to send again. Where a transport loses one all the same the session ends, the other side is
//! asked what it took, and the sender is told of each message.
#![forbid(unsafe_code)]

pub mod clock;
pub mod frame;
pub mod link;

/// How many worlds a property is tried in; with `BULKHEAD_SLOW=1` a hundred times as many.
#[cfg(test)]
fn cases() -> u32 {
    match std::env::var("BULKHEAD_SLOW") {
        _ if cfg!(miri) => 1,
        Ok(slow) if slow == "1" => 15_000,
        _ => 150,
    }
}

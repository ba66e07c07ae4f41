//! Sessions, delivery outcomes and clock bounds between two hosts of one run.
//!
//! A strategy on another host is connected through two bridges. This crate has the protocol of
//! both, without I/O: the owner of a transport passes received bytes in and sends the frames that
//! it returns:
//!
//! ```text
//!  far host                                            engine's host
//!  strategy ─ ring ─▶ bridge ─▶ Link ─ frames ─▶ Link ─▶ bridge ─ ring ─▶ orchestrator
//!           ◀──────          ◀─      ◀─────────      ◀─         ◀──────
//! ```
//!
//! No frame is resent: retransmission and order are the transport's task (Aeron's, for example). If
//! a transport loses a frame the session ends, the peer is asked what it took, and the outcome of
//! each message is reported to its sender.
#![forbid(unsafe_code)]

pub mod clock;
pub mod frame;
pub mod link;

/// Number of cases per property; with `BULKHEAD_SLOW=1` a hundred times more.
#[cfg(test)]
fn cases() -> u32 {
    match std::env::var("BULKHEAD_SLOW") {
        _ if cfg!(miri) => 1,
        Ok(slow) if slow == "1" => 15_000,
        _ => 150,
    }
}

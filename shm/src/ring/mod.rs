//! Rings, and what a technique must be to carry a hand-off: two traits for its ends, and [`Link`]
//! for how they are attached.
//!
//! Here are the ring of one producer and its mux, and the ring that several producers write. More
//! techniques, and the table of all, are in the crate `techniques`. The hot loops are generic over
//! [`Link`] and monomorphised.

pub mod array_queue;
#[cfg(not(loom))]
mod attach;
mod ends;
pub mod intent;
#[cfg(not(loom))]
pub mod link;
mod message;
#[cfg(not(loom))]
pub mod occupancy;
pub mod packed;
mod receiver;
pub mod spsc;
#[cfg(not(loom))]
pub mod spsc_mux;
pub mod step;
#[cfg(not(loom))]
pub mod technique_info;

pub use ends::{Allocation, BlockedSlot, Consumer, PeerFault, Producer};
#[cfg(not(loom))]
pub use link::{EndRights, Link, LinkSpec, SegmentPlace, SegmentSpec};
pub use message::{Full, MESSAGE_WORDS, Message};
pub use receiver::{Receiver, SharedQueue};
pub use step::Step;
#[cfg(not(loom))]
pub use technique_info::{Home, TechniqueInfo};

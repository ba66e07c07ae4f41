//! What can carry a hand-off of many producers to one consumer: the table of techniques, behind the two traits of [`shm::ring`], and
//! one file a technique that is not `shm`'s own.
//!
//! The choice is made once, at start-up, by [`Technique`]; the hot loops are generic over [`Link`](shm::ring::Link) and
//! monomorphised, so no call goes through a table at run time. What each technique does about deaths is in [`containment`]; who writes
//! one begins with [`conformance`]. No unsafe code.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
pub mod array_queue_mux;
#[doc(hidden)]
#[cfg(not(loom))]
pub mod built_in;
pub mod channel;
#[cfg(not(loom))]
pub mod conformance;
pub mod containment;
#[cfg(not(loom))]
pub mod crossbeam_array_queue;
#[cfg(not(loom))]
pub mod crossbeam_channel;
#[cfg(not(loom))]
pub mod element;
pub mod linked;
#[cfg(not(loom))]
pub mod named;
#[cfg(not(loom))]
pub mod pipe;
#[cfg(not(loom))]
pub mod std_mpsc;
#[cfg(not(loom))]
pub mod table;
#[cfg(not(loom))]
pub mod unix_seqpacket;

#[cfg(not(loom))]
pub use table::{RegisterError, Technique, Visitor, visit};

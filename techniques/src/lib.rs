//! Many-producer, single-consumer queues as comparable techniques: the table of techniques, and
//! those that are not in `shm`. All implement the two traits of [`shm::ring`].
//!
//! The choice is made once, at startup, by [`Technique`]; the hot loops are generic over
//! [`Link`](shm::ring::Link) and monomorphized, so no call goes through a table at run time.
//! [`containment`] describes the effects of a peer's death on each technique; [`conformance`] is
//! the test suite for a technique of your own. No unsafe code.
#![forbid(unsafe_code)]

#[doc(hidden)]
#[cfg(not(loom))]
pub mod built_in;
pub mod channel;
#[cfg(not(loom))]
pub mod conformance;
pub mod containment;
#[cfg(not(loom))]
mod description;
#[cfg(not(loom))]
pub mod heap;
#[cfg(not(loom))]
pub mod heap_rings;
pub mod linked;
#[cfg(not(loom))]
pub mod named;
#[cfg(not(loom))]
pub mod pipe;
#[cfg(not(loom))]
pub mod table;
#[cfg(not(loom))]
pub mod unix_seqpacket;

#[cfg(not(loom))]
pub use description::TechniqueDescription;
#[cfg(not(loom))]
pub use table::{RegisterError, Technique, TechniqueVisitor, visit};

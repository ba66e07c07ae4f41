//! The technique table: what can carry a hand-off, behind two traits, one file a technique.
//!
//! The choice is made once, at start-up, by [`Technique`]; the hot loops are generic over
//! [`Link`] and monomorphised, so no call goes through a table at run time. The table itself is in [`table`].

pub mod array_queue;
#[cfg(not(loom))]
pub mod array_queue_mux;
#[cfg(not(loom))]
mod attach;
pub mod channel;
#[cfg(not(loom))]
pub mod crossbeam_array_queue;
#[cfg(not(loom))]
pub mod crossbeam_channel;
#[cfg(not(loom))]
pub mod element;
mod ends;
#[cfg(not(loom))]
pub mod gauge;
pub mod intent;
#[cfg(not(loom))]
pub mod link;
pub mod linked;
mod message;
#[cfg(not(loom))]
pub mod pipe;
mod receiver;
#[cfg(not(loom))]
pub mod record;
pub mod spsc;
#[cfg(not(loom))]
pub mod spsc_mux;
#[cfg(not(loom))]
pub mod std_mpsc;
pub mod step;
#[cfg(not(loom))]
pub mod table;
#[cfg(not(loom))]
pub mod unix_seqpacket;

pub use ends::{Allocation, Blocked, Consumer, PeerFault, Producer};
#[cfg(not(loom))]
pub use link::{Ends, Link, LinkSpec, SegmentPlace, SegmentSpec};
pub use message::{Full, MESSAGE_WORDS, Message};
pub use receiver::{Receiver, SharedQueue};
#[cfg(not(loom))]
pub use record::{Home, Record};
pub use step::Step;
#[cfg(not(loom))]
pub use table::{RegisterError, Technique, Visitor, visit};

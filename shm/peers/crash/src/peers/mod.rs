//! The transports, a file each.

pub mod bulkhead;
pub mod control;
#[cfg(feature = "iceoryx2")]
pub mod iceoryx;
pub mod interprocess;
pub mod ipc_ring;
pub mod ipmpsc;
pub mod mmap_sync;
pub mod ringfire;
pub mod shaq;

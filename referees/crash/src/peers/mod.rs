//! The transports, a file each. `control` is the negative control: a ring with a planted fault,
//! which the trials must find.

mod bulkhead;
mod control;
#[cfg(feature = "iceoryx2")]
mod iceoryx;
mod interprocess;
mod ipc_ring;
mod ipmpsc;
mod mmap_sync;
mod ringfire;
mod shaq;

use crate::peer::Peer;

/// Returns all transports. A queue of bulkhead has as many senders as its parameter says.
pub fn all() -> Vec<Peer> {
    vec![
        bulkhead::peer::<1>("bulkhead-spsc"),
        bulkhead::peer::<3>("bulkhead-mpsc"),
        control::peer(),
        shaq::spsc(),
        shaq::mpmc(),
        ringfire::spmc(),
        ringfire::mpmc(),
        ipc_ring::peer(),
        ipmpsc::peer(),
        interprocess::peer(),
        mmap_sync::peer(),
        #[cfg(feature = "iceoryx2")]
        iceoryx::peer(),
    ]
}

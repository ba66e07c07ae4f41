//! The transports, a file each. `control` is the negative control: rings with a planted fault,
//! which the trials must find.

mod bulkhead;
mod control;
mod disruptor;
mod external;
#[cfg(feature = "iceoryx2")]
mod iceoryx;
mod interprocess;
mod ipc_ring;
mod ipmpsc;
mod mmap_sync;
mod que;
mod ringfire;
mod shaq;
#[cfg(feature = "subetha")]
mod subetha;

pub use external::print_missing;

use crate::peer::Peer;

/// Returns the transports of this program. The parameters of a queue of bulkhead are its number of
/// senders and its type of messages.
pub fn own() -> Vec<Peer> {
    let mut own = vec![
        bulkhead::peer::<1, [u64; 7]>("bulkhead-spsc", "SPSC queue"),
        bulkhead::peer::<3, [u64; 7]>("bulkhead-mpsc", "MPSC queue"),
        bulkhead::peer::<1, [u64; 25]>("bulkhead-spsc-long", "SPSC queue of 200 bytes"),
        bulkhead::peer::<1, u32>("bulkhead-4", "SPSC queue of 4 bytes"),
        bulkhead::peer::<1, u64>("bulkhead-8", "SPSC queue of 8 bytes"),
        bulkhead::peer::<1, [u64; 8]>("bulkhead-64", "SPSC queue of 64 bytes"),
        bulkhead::peer::<1, [u64; 32]>("bulkhead-256", "SPSC queue of 256 bytes"),
        bulkhead::peer::<2, [u64; 125]>("bulkhead-1000", "MPSC queue of 1,000 bytes"),
        shaq::spsc(),
        shaq::mpmc(),
        ringfire::spmc(),
        ringfire::mpmc(),
        ipc_ring::peer(),
        ipmpsc::peer(),
        interprocess::peer(),
        mmap_sync::peer(),
        que::peer(),
        disruptor::peer(),
        #[cfg(feature = "iceoryx2")]
        iceoryx::peer(),
        #[cfg(feature = "subetha")]
        subetha::spsc(),
        #[cfg(feature = "subetha")]
        subetha::mpmc(),
    ];
    own.extend(control::all());
    own
}

/// Returns all transports that can run here.
pub fn all() -> Vec<Peer> {
    own().into_iter().chain(external::all()).collect()
}

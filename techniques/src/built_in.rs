//! The built-in techniques under one path, for the macros of the table.

pub use crate::channel::Channel;
pub use crate::heap::{ArrayQueueMux, CrossbeamArrayQueue, CrossbeamChannel, StdMpsc};
pub use crate::heap_rings::{RtrbMux, RtrbPointerMux};
pub use crate::linked::Linked;
pub use crate::pipe::Pipe;
pub use crate::unix_seqpacket::UnixSeqpacket;
pub use shm::ring::array_queue::ArrayQueue;
pub use shm::ring::spsc_mux::SpscMux;

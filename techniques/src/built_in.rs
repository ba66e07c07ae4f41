//! The built-in techniques under one path, for the macros of the table.

pub use crate::array_queue_mux::ArrayQueueMux;
pub use crate::channel::Channel;
pub use crate::crossbeam_array_queue::CrossbeamArrayQueue;
pub use crate::crossbeam_channel::CrossbeamChannel;
pub use crate::linked::Linked;
pub use crate::pipe::Pipe;
pub use crate::std_mpsc::StdMpsc;
pub use crate::unix_seqpacket::UnixSeqpacket;
pub use shm::ring::array_queue::ArrayQueue;
pub use shm::ring::spsc_mux::SpscMux;

//! Named kernel objects next to the segments in `/dev/shm`: FIFOs and sockets.

pub mod fifo;
pub mod seqpacket;

//! What has a name beside the segments in `/dev/shm` and is no memory: the kernel's own hand-offs.

pub mod fifo;
pub mod seqpacket;

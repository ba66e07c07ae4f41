//! What the opaque handles of the C interface are.

use shm::queue::{ByteQueue, ByteReceiver, ByteSender};

/// A handle of a queue, from which its ends are attached. Ends outlive it.
#[derive(Debug)]
pub struct QueueHandle(pub(crate) ByteQueue);

/// The sending end of a queue.
#[derive(Debug)]
pub struct SenderHandle(pub(crate) ByteSender);

/// The receiving end of a queue.
#[derive(Debug)]
pub struct ReceiverHandle {
    pub(crate) receiver: ByteReceiver,
    /// The producer of the last fault.
    pub(crate) faulty: Option<usize>,
}

/// A handle may be used by one thread, and later by another one.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<QueueHandle>();
    is_send::<SenderHandle>();
    is_send::<ReceiverHandle>();
};

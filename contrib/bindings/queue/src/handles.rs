//! What the opaque handles of the C interface are.

use shm::queue::{ByteQueue, ByteReceiver, ByteSender};

/// A handle of a queue, from which its ends are attached. Ends outlive it.
#[derive(Debug)]
pub struct QueueHandle(pub(crate) ByteQueue);

/// The handle of a queue's sending end.
#[derive(Debug)]
pub struct SenderHandle {
    pub(crate) sender: ByteSender,
    /// Address of its [`FastSender`], which it owns; 0 before the program has asked for it.
    pub(crate) fast: usize,
}

/// A sender's position and its queue's layout, which the inline C function bhq_fast_push reads and
/// writes to push without a call. A program does not use the fields.
#[derive(Debug)]
#[repr(C)]
pub struct FastSender {
    /// Number of messages that the sender has published.
    pub tail: u64,
    /// Position up to which the sender may push without reading the receiver's position.
    pub limit: u64,
    /// Maximum number of messages in the queue.
    pub capacity: u64,
    /// Number of places minus one.
    pub mask: u64,
    /// Bytes of a message.
    pub message_bytes: u64,
    /// Bytes from one place to the next.
    pub place_bytes: u64,
    /// Address of the first place (the memory of one message).
    pub places: *mut u8,
    /// Address of the sender's published position.
    pub tail_word: *mut u64,
    /// Address of the receiver's published position.
    pub head_word: *const u64,
    /// Address of the word that is 0 until a receiver of the queue has waited.
    pub wake_flag: *const u64,
    /// The sender's handle, for calls.
    pub sender: *mut SenderHandle,
}

/// The handle of a queue's receiving end.
#[derive(Debug)]
pub struct ReceiverHandle {
    pub(crate) receiver: ByteReceiver,
    /// The producer of the last fault.
    pub(crate) faulty: Option<usize>,
    /// Address of its [`FastReceiver`], which it owns; 0 before the program has asked for it.
    pub(crate) fast: usize,
}

/// A receiver's position and its queue's layout, which the inline C function bhq_fast_pop reads and
/// writes to pop without a call. A program does not use the fields.
#[derive(Debug)]
#[repr(C)]
pub struct FastReceiver {
    /// Number of messages that the receiver has taken.
    pub head: u64,
    /// Number of messages that are known to be published.
    pub end: u64,
    /// Maximum number of messages in the queue; 0 while each pop is a call.
    pub capacity: u64,
    /// Number of places minus one.
    pub mask: u64,
    /// Bytes of a message.
    pub message_bytes: u64,
    /// Bytes from one place to the next.
    pub place_bytes: u64,
    /// Address of the first place (the memory of one message).
    pub places: *const u8,
    /// Address of the sender's published position.
    pub tail_word: *const u64,
    /// Address of the receiver's published position.
    pub head_word: *mut u64,
    /// The receiver's handle, for calls.
    pub receiver: *mut ReceiverHandle,
    /// Number of messages that the last look at the sender's position found.
    pub found: u64,
}

/// A handle may be used by one thread, and later by another one.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<QueueHandle>();
    is_send::<SenderHandle>();
    is_send::<ReceiverHandle>();
};

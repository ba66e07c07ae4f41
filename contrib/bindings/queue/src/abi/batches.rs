//! Pushes and pops of many messages.

use super::{pop_into, wrong_size};
use crate::calls;
use crate::codes::BHQ_NULL;
use crate::handles::{ReceiverHandle, SenderHandle};
use core::ffi::c_void;

/// Copies the first of `count` messages, which lie next to each other, into the queue, up to as
/// many as fit, and wakes a waiting receiver. A sender that is killed here has pushed the first
/// ones, or none. `bytes` is the size of each.
///
/// Returns the number of messages that were pushed, BHQ_BAD_SIZE or BHQ_NULL. Release: as bhq_push.
///
/// # Safety
/// `sender` is null or a handle; `messages` is null or valid for the read of `count` times `bytes`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_push_many(
    sender: *mut SenderHandle,
    messages: *const c_void,
    bytes: usize,
    count: u32,
) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(sender) = (unsafe { sender.as_mut() }) else { return BHQ_NULL };
    if messages.is_null() {
        return BHQ_NULL;
    }
    if bytes != sender.sender.message_bytes() {
        return wrong_size(sender.sender.message_bytes(), bytes);
    }
    // SAFETY: not null, so by this function's contract it is valid for the read.
    let messages = unsafe { core::slice::from_raw_parts(messages.cast(), count as usize * bytes) };
    sender.run(|sender| calls::push_many(sender, messages))
}

/// Takes up to `max` messages of one producer, copies them to `messages`, next to each other, and
/// frees their places together. At most once, as bhq_pop. `bytes` is the size of each.
///
/// Returns the number of messages, 0 for none now, BHQ_FAULT, BHQ_TAKEN, BHQ_BAD_SIZE or BHQ_NULL.
///
/// # Safety
/// `receiver` is null or a handle; `messages` is null or valid for the write of `max` times `bytes`
/// bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_pop_many(
    receiver: *mut ReceiverHandle,
    messages: *mut c_void,
    bytes: usize,
    max: u32,
) -> i32 {
    // SAFETY: by this function's contract.
    unsafe { pop_into(receiver, messages, bytes, max, calls::pop_many) }
}

/// Passes up to `max` messages of one producer to `each`, one after the other, with `context`; then
/// frees their places together. A message's address is aligned to 8 bytes, and valid until `each`
/// returns. At least once: all of them are the successor's if this process is killed before. A
/// message for which `each` returns another value than 0 stays, and so do those after it. `each`
/// calls no function of this receiver, and throws nothing.
///
/// Returns the number of messages that were freed, BHQ_FAULT, BHQ_TAKEN or BHQ_NULL.
///
/// # Safety
/// `receiver` is null or a handle; `each` is null or can be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_drain(
    receiver: *mut ReceiverHandle,
    max: u32,
    each: Option<unsafe extern "C" fn(message: *const c_void, context: *mut c_void) -> i32>,
    context: *mut c_void,
) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    let Some(each) = each else { return BHQ_NULL };
    // SAFETY: by this function's contract it can be called with the context.
    let each = |message: *const u8| unsafe { each(message.cast(), context) } == 0;
    receiver.run(|receiver| calls::drain(receiver, max, each))
}

//! The calls of the interface in safe Rust. Failures are codes ([`crate::codes`]); a panic becomes
//! [`BHQ_DEFECT`].

use crate::codes::{
    BHQ_BAD_DESCRIPTORS, BHQ_BAD_NAME, BHQ_DEFECT, BHQ_NOT_TAKEN, BHQ_OK, BHQ_STATE_ALIVE, BHQ_STATE_DEAD,
    BHQ_STATE_FREE, BHQ_STATE_RETIRED, BHQ_SYSTEM,
};
use crate::errors::{from_bytes, from_queue, keep};
use crate::handles::{QueueHandle, ReceiverHandle, SenderHandle};
use core::ffi::CStr;
use core::ops::ControlFlow;
use core::time::Duration;
use shm::queue::{self, ByteError, ByteQueue, ByteReceiver, ByteSender, ProducerState, QueueError};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `call`; a panic becomes [`BHQ_DEFECT`]. The handle that it used may be in an unknown state
/// then: it is only closed.
#[inline(always)]
pub(crate) fn guarded(call: impl FnOnce() -> Result<i32, i32>) -> i32 {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.unwrap_or_else(|code| code),
        Err(_) => BHQ_DEFECT,
    }
}

fn name(name: &CStr) -> Result<&str, i32> {
    name.to_str().map_err(|_| keep(BHQ_BAD_NAME, "invalid queue name: it is not UTF-8"))
}

fn queue_or_code(made: Result<ByteQueue, QueueError>) -> Result<QueueHandle, i32> {
    made.map(QueueHandle).map_err(|error| from_queue(&error))
}

pub(crate) fn create(
    queue: &CStr,
    producers: u32,
    capacity: u32,
    message_bytes: usize,
) -> Result<QueueHandle, i32> {
    queue_or_code(ByteQueue::create(name(queue)?, producers as usize, capacity, message_bytes))
}

pub(crate) fn create_sealed(producers: u32, capacity: u32, message_bytes: usize) -> Result<QueueHandle, i32> {
    queue_or_code(ByteQueue::sealed(producers as usize, capacity, message_bytes))
}

/// Checks the size of an opened queue's messages, unless 0 was given for any size.
fn check_size(queue: ByteQueue, message_bytes: usize) -> Result<ByteQueue, QueueError> {
    if message_bytes > 0 {
        queue.check_size(message_bytes)?;
    }
    Ok(queue)
}

pub(crate) fn open(queue: &CStr, message_bytes: usize) -> Result<QueueHandle, i32> {
    queue_or_code(ByteQueue::open(name(queue)?).and_then(|queue| check_size(queue, message_bytes)))
}

pub(crate) fn open_fds(fds: [BorrowedFd<'_>; 2], message_bytes: usize) -> Result<QueueHandle, i32> {
    let system = |error: std::io::Error| keep(BHQ_SYSTEM, &format!("cannot duplicate a descriptor: {error}"));
    let [memory, pipe] = fds.map(|fd| fd.try_clone_to_owned().map_err(system));
    let opened = ByteQueue::from_fds([memory?, pipe?]);
    queue_or_code(opened.and_then(|queue| check_size(queue, message_bytes)))
}

pub(crate) fn fds(queue: &QueueHandle) -> Result<[i32; 2], i32> {
    let fds = queue.0.fds().map(|fds| fds.map(|fd| fd.as_raw_fd()));
    fds.ok_or_else(|| keep(BHQ_BAD_DESCRIPTORS, "the queue has a name: only a sealed one has descriptors"))
}

pub(crate) fn remove(queue: &CStr) -> Result<i32, i32> {
    let removed = queue::remove(name(queue)?).map_err(|error| from_queue(&error))?;
    Ok(i32::try_from(removed.len()).unwrap_or(i32::MAX))
}

/// Returns the code and the process id of a producer's state.
pub(crate) fn state(state: Result<ProducerState, QueueError>) -> Result<(i32, u64), i32> {
    match state.map_err(|error| from_queue(&error))? {
        ProducerState::Free => Ok((BHQ_STATE_FREE, 0)),
        ProducerState::Alive { pid } => Ok((BHQ_STATE_ALIVE, pid)),
        ProducerState::Dead { pid } => Ok((BHQ_STATE_DEAD, pid)),
        ProducerState::Retired => Ok((BHQ_STATE_RETIRED, 0)),
        _ => Err(keep(BHQ_SYSTEM, "the producer has a state that this library does not know")),
    }
}

pub(crate) fn yes_or_no(answer: Result<bool, QueueError>) -> Result<i32, i32> {
    answer.map(i32::from).map_err(|error| from_queue(&error))
}

pub(crate) fn sender(attached: Result<ByteSender, QueueError>) -> Result<SenderHandle, i32> {
    let attached = attached.map_err(|error| from_queue(&error))?;
    Ok(SenderHandle { sender: attached, fast: 0 })
}

pub(crate) fn receiver(attached: Result<ByteReceiver, QueueError>) -> Result<ReceiverHandle, i32> {
    let attached = attached.map_err(|error| from_queue(&error))?;
    Ok(ReceiverHandle { receiver: attached, faulty: None, fast: 0 })
}

#[inline(always)]
pub(crate) fn push(sender: &mut SenderHandle, message: &[u8]) -> Result<i32, i32> {
    match sender.sender.push(message) {
        Ok(()) => Ok(BHQ_OK),
        Err(error) => Err(from_bytes(&error)),
    }
}

#[inline]
pub(crate) fn push_many(sender: &mut SenderHandle, messages: &[u8]) -> Result<i32, i32> {
    let pushed = sender.sender.push_many(messages).map_err(|error| from_bytes(&error))?;
    Ok(i32::try_from(pushed).unwrap_or(i32::MAX))
}

#[inline]
pub(crate) fn pop_many(receiver: &mut ReceiverHandle, messages: &mut [u8]) -> Result<i32, i32> {
    match receiver.receiver.pop_many(messages) {
        Ok(popped) => Ok(i32::try_from(popped).unwrap_or(i32::MAX)),
        Err(error) => Err(fault(receiver, &error)),
    }
}

/// Passes the addresses of messages to `each`, until it returns `false`.
#[inline]
pub(crate) fn drain(
    receiver: &mut ReceiverHandle,
    max: u32,
    mut each: impl FnMut(*const u8) -> bool,
) -> Result<i32, i32> {
    let max = i32::try_from(max).unwrap_or(i32::MAX) as usize;
    let drained = receiver.receiver.drain(max, |message| match each(message.as_ptr()) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    match drained {
        Ok(drained) => Ok(i32::try_from(drained).unwrap_or(i32::MAX)),
        Err(error) => Err(fault(receiver, &error)),
    }
}

#[inline(always)]
pub(crate) fn pop(receiver: &mut ReceiverHandle, message: &mut [u8]) -> Result<i32, i32> {
    match receiver.receiver.pop_into(message) {
        Ok(has_message) => Ok(has_message.into()),
        Err(error) => Err(fault(receiver, &error)),
    }
}

pub(crate) fn pop_timeout(
    receiver: &mut ReceiverHandle,
    message: &mut [u8],
    timeout_ns: u64,
) -> Result<i32, i32> {
    match receiver.receiver.pop_into_timeout(message, Duration::from_nanos(timeout_ns)) {
        Ok(has_message) => Ok(has_message.into()),
        Err(error) => Err(fault(receiver, &error)),
    }
}

/// Takes a message and passes its address to `keep`.
#[inline(always)]
pub(crate) fn take(
    receiver: &mut ReceiverHandle,
    timeout_ns: u64,
    keep: impl FnOnce(*const u8),
) -> Result<i32, i32> {
    match receiver.receiver.take_timeout(Duration::from_nanos(timeout_ns)) {
        Ok(Some(message)) => {
            keep(message.as_ptr());
            Ok(1)
        }
        Ok(None) => Ok(BHQ_OK),
        Err(error) => Err(fault(receiver, &error)),
    }
}

/// Returns the code for a call on a message that was taken.
#[inline(always)]
pub(crate) fn had_taken(had_taken: bool) -> Result<i32, i32> {
    if had_taken { Ok(BHQ_OK) } else { Err(BHQ_NOT_TAKEN) }
}

#[cold]
fn fault(receiver: &mut ReceiverHandle, error: &ByteError) -> i32 {
    if let ByteError::Fault(fault) = error {
        receiver.faulty = Some(fault.producer);
    }
    from_bytes(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_stays_in_the_library() {
        assert_eq!(guarded(|| panic!("a defect on purpose")), BHQ_DEFECT);
        assert_eq!([guarded(|| Ok(3)), guarded(|| Err(-3))], [3, -3]);
    }
}

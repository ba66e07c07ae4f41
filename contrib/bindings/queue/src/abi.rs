//! The C functions: each checks the caller's pointers and calls the safe code of this crate.
//!
//! `unsafe` is needed because the validity of a C caller's pointers cannot be checked, except that
//! they are not null. A panic never leaves a function: it becomes
//! [`BHQ_DEFECT`](crate::codes::BHQ_DEFECT).
#![allow(unsafe_code)]

mod batches;
mod fast;

use crate::calls::{self, guarded};
use crate::codes::{BHQ_BAD_DESCRIPTORS, BHQ_NO_PRODUCER, BHQ_NULL, BHQ_OK, BHQ_VERSION};
use crate::errors::{self, from_bytes};
use crate::handles::{QueueHandle, ReceiverHandle, SenderHandle};
use core::ffi::{CStr, c_char, c_void};
use shm::queue::ByteError;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Writes a new handle to `place`.
///
/// # Safety
/// `place` is valid for the write of a pointer.
unsafe fn give<T>(place: *mut *mut T, handle: T) -> Result<i32, i32> {
    // SAFETY: by this function's contract.
    unsafe { place.write(Box::into_raw(Box::new(handle))) };
    Ok(BHQ_OK)
}

/// Closes a handle, unless it is null.
///
/// # Safety
/// `handle` is null, or was made by [`give`] and is not used again.
unsafe fn close<T>(handle: *mut T) {
    if !handle.is_null() {
        guarded(|| {
            // SAFETY: by this function's contract it came from `Box::into_raw`, and only once here.
            drop(unsafe { Box::from_raw(handle) });
            Ok(BHQ_OK)
        });
    }
}

/// Attaches an end of a queue, and writes its handle to `place`.
///
/// # Safety
/// `queue` is null or a handle; `place` is null or valid for the write of a pointer.
unsafe fn attach<T>(
    queue: *mut QueueHandle,
    place: *mut *mut T,
    end: impl FnOnce(&mut QueueHandle) -> Result<T, i32>,
) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(queue) = (unsafe { queue.as_mut() }) else { return BHQ_NULL };
    if place.is_null() {
        return BHQ_NULL;
    }
    guarded(|| {
        let attached = end(queue)?;
        // SAFETY: not null, so by this function's contract it is valid for the write.
        unsafe { give(place, attached) }
    })
}

/// Checks the caller's memory for `count` messages, and passes it to `pop`.
///
/// # Safety
/// `receiver` is null or a handle; `messages` is null or valid for the write of `count` times
/// `bytes` bytes.
#[inline(always)]
unsafe fn pop_into(
    receiver: *mut ReceiverHandle,
    messages: *mut c_void,
    bytes: usize,
    count: u32,
    pop: impl FnOnce(&mut ReceiverHandle, &mut [u8]) -> Result<i32, i32>,
) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    if messages.is_null() {
        return BHQ_NULL;
    }
    if bytes != receiver.receiver.message_bytes() {
        return wrong_size(receiver.receiver.message_bytes(), bytes);
    }
    // SAFETY: not null, so by this function's contract it is valid for the write; a message has at
    // most 64 KiB. The bytes are only written.
    let messages = unsafe { core::slice::from_raw_parts_mut(messages.cast(), count as usize * bytes) };
    receiver.run(|receiver| pop(receiver, messages))
}

#[cold]
fn wrong_size(expected: usize, found: usize) -> i32 {
    from_bytes(&ByteError::Size { expected, found })
}

/// Returns the version of the library, to be compared with BHQ_VERSION of the header.
#[unsafe(no_mangle)]
pub extern "C" fn bhq_version() -> u32 {
    BHQ_VERSION
}

/// Returns the English text of a code: of this thread's last error if that had this code. Never
/// null; valid until the thread's next error.
#[unsafe(no_mangle)]
pub extern "C" fn bhq_error_text(code: i32) -> *const c_char {
    errors::text_pointer(code)
}

/// Creates a queue under a name, of messages of `message_bytes` bytes (1 to 65,536), and writes its
/// handle to `queue`. One producer: SPSC; up to 1,024: MPSC, with a ring for each producer.
/// `capacity` is the number of messages of each producer, at least. Leftovers of a crashed creator
/// of that name are removed first.
///
/// Returns BHQ_OK, BHQ_LIVING, BHQ_NO_SPACE, BHQ_SYSTEM, or a code for a wrong argument.
///
/// # Safety
/// `name` is null or a C string; `queue` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_create(
    name: *const c_char,
    producers: u32,
    capacity: u32,
    message_bytes: usize,
    queue: *mut *mut QueueHandle,
) -> i32 {
    if name.is_null() || queue.is_null() {
        return BHQ_NULL;
    }
    // SAFETY: not null, so by this function's contract it is a C string.
    let name = unsafe { CStr::from_ptr(name) };
    guarded(|| {
        let made = calls::create(name, producers, capacity, message_bytes)?;
        // SAFETY: not null, so by this function's contract it is valid for the write.
        unsafe { give(queue, made) }
    })
}

/// Creates a queue without a name, in sealed memory. Other processes open it with the descriptors
/// of bhq_fds. Otherwise as bhq_create.
///
/// # Safety
/// `queue` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_create_sealed(
    producers: u32,
    capacity: u32,
    message_bytes: usize,
    queue: *mut *mut QueueHandle,
) -> i32 {
    if queue.is_null() {
        return BHQ_NULL;
    }
    guarded(|| {
        let made = calls::create_sealed(producers, capacity, message_bytes)?;
        // SAFETY: not null, so by this function's contract it is valid for the write.
        unsafe { give(queue, made) }
    })
}

/// Opens a queue that another process has created under a name, and writes its handle to `queue`.
/// `message_bytes` is the size of its messages; 0: any, see bhq_message_bytes.
///
/// Returns BHQ_OK, BHQ_NOT_FOUND, BHQ_INCOMPLETE, BHQ_BAD_SIZE, BHQ_SYSTEM or BHQ_BAD_NAME.
///
/// # Safety
/// `name` is null or a C string; `queue` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_open(
    name: *const c_char,
    message_bytes: usize,
    queue: *mut *mut QueueHandle,
) -> i32 {
    if name.is_null() || queue.is_null() {
        return BHQ_NULL;
    }
    // SAFETY: not null, so by this function's contract it is a C string.
    let name = unsafe { CStr::from_ptr(name) };
    guarded(|| {
        let opened = calls::open(name, message_bytes)?;
        // SAFETY: not null, so by this function's contract it is valid for the write.
        unsafe { give(queue, opened) }
    })
}

/// Opens a sealed queue with the two descriptors of bhq_fds, which were inherited or sent over a
/// Unix socket. They are checked, duplicated, and remain the caller's. `message_bytes` as for
/// bhq_open.
///
/// Returns BHQ_OK, BHQ_BAD_DESCRIPTORS, BHQ_BAD_SIZE or BHQ_SYSTEM.
///
/// # Safety
/// `queue` is null or valid for the write of a pointer. The descriptors are open, or negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_open_fds(
    memory_fd: i32,
    pipe_fd: i32,
    message_bytes: usize,
    queue: *mut *mut QueueHandle,
) -> i32 {
    if queue.is_null() {
        return BHQ_NULL;
    }
    if memory_fd < 0 || pipe_fd < 0 {
        return errors::keep(BHQ_BAD_DESCRIPTORS, "a descriptor is negative");
    }
    guarded(|| {
        // SAFETY: not negative, so by this function's contract they are open, until it returns.
        let fds = [memory_fd, pipe_fd].map(|fd| unsafe { BorrowedFd::borrow_raw(fd) });
        let opened = calls::open_fds(fds, message_bytes)?;
        // SAFETY: not null, so by this function's contract it is valid for the write.
        unsafe { give(queue, opened) }
    })
}

/// Writes the two descriptors of a sealed queue, its memory and its pipe. They remain the queue's
/// and are close-on-exec: duplicate them for a child, or send them over a Unix socket
/// (SCM_RIGHTS). BHQ_BAD_DESCRIPTORS: the queue has a name instead.
///
/// # Safety
/// `queue` is null or a handle; `memory_fd` and `pipe_fd` are null or valid for the write of a
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_fds(queue: *const QueueHandle, memory_fd: *mut i32, pipe_fd: *mut i32) -> i32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    let Some(queue) = (unsafe { queue.as_ref() }) else { return BHQ_NULL };
    if memory_fd.is_null() || pipe_fd.is_null() {
        return BHQ_NULL;
    }
    guarded(|| {
        let [memory, pipe] = calls::fds(queue)?;
        // SAFETY: not null, so by this function's contract both are valid for the write.
        unsafe {
            memory_fd.write(memory);
            pipe_fd.write(pipe);
        }
        Ok(BHQ_OK)
    })
}

/// Returns the size of the queue's messages in bytes; 0 for a null handle.
///
/// # Safety
/// `queue` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_message_bytes(queue: *const QueueHandle) -> usize {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    unsafe { queue.as_ref() }.map_or(0, |queue| queue.0.message_bytes())
}

/// Returns the maximum number of producers of the queue; 0 for a null handle.
///
/// # Safety
/// `queue` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_producers(queue: *const QueueHandle) -> u32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    unsafe { queue.as_ref() }.map_or(0, |queue| queue.0.producer_count() as u32)
}

/// Returns the state of a producer, BHQ_STATE_FREE to BHQ_STATE_RETIRED, and writes the id of its
/// process to `pid`, unless that is null; 0: none. The kernel has the answer, not a timeout: a
/// process that has ended is dead at once, unless a child that it forked without `exec` still runs
/// and so keeps its locks. The id is of the process's own PID namespace.
///
/// Returns BHQ_BAD_INDEX or BHQ_SYSTEM otherwise.
///
/// # Safety
/// `queue` is null or a handle; `pid` is null or valid for the write of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_producer_state(queue: *const QueueHandle, index: u32, pid: *mut u64) -> i32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    let Some(queue) = (unsafe { queue.as_ref() }) else { return BHQ_NULL };
    guarded(|| {
        let (state, found) = calls::state(queue.0.producer(index as usize))?;
        if !pid.is_null() {
            // SAFETY: not null, so by this function's contract it is valid for the write.
            unsafe { pid.write(found) };
        }
        Ok(state)
    })
}

/// Returns 1 if a live process has attached the receiver, 0 if none has.
///
/// # Safety
/// `queue` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_has_receiver(queue: *const QueueHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    let Some(queue) = (unsafe { queue.as_ref() }) else { return BHQ_NULL };
    guarded(|| calls::yes_or_no(queue.0.has_receiver()))
}

/// Attaches a sender as the first free producer, and writes its handle to `sender`.
///
/// Returns BHQ_OK, BHQ_NO_FREE_PRODUCER, BHQ_SENDER_CRASHED or BHQ_SYSTEM.
///
/// # Safety
/// `queue` is null or a handle; `sender` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_attach_sender(queue: *mut QueueHandle, sender: *mut *mut SenderHandle) -> i32 {
    // SAFETY: this function's contract is that of `attach`.
    unsafe { attach(queue, sender, |queue| calls::sender(queue.0.sender())) }
}

/// Attaches a sender in place of a crashed producer. It continues after the last message whose push
/// had returned; the receiver does not need to do anything.
///
/// Returns BHQ_OK, BHQ_BAD_INDEX, BHQ_PRODUCER_ALIVE, BHQ_RETIRED or BHQ_SYSTEM.
///
/// # Safety
/// `queue` is null or a handle; `sender` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_resume_sender(
    queue: *mut QueueHandle,
    index: u32,
    sender: *mut *mut SenderHandle,
) -> i32 {
    // SAFETY: this function's contract is that of `attach`.
    unsafe { attach(queue, sender, |queue| calls::sender(queue.0.resume_sender(index as usize))) }
}

/// Attaches the receiver of the queue, and writes its handle to `receiver`.
///
/// Returns BHQ_OK, BHQ_ATTACHED, BHQ_RECEIVER_CRASHED or BHQ_SYSTEM.
///
/// # Safety
/// `queue` is null or a handle; `receiver` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_attach_receiver(
    queue: *mut QueueHandle,
    receiver: *mut *mut ReceiverHandle,
) -> i32 {
    // SAFETY: this function's contract is that of `attach`.
    unsafe { attach(queue, receiver, |queue| calls::receiver(queue.0.receiver())) }
}

/// Attaches the receiver in place of a crashed one. Every message that was neither popped nor
/// released arrives, in order.
///
/// Returns BHQ_OK, BHQ_ATTACHED or BHQ_SYSTEM.
///
/// # Safety
/// `queue` is null or a handle; `receiver` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_resume_receiver(
    queue: *mut QueueHandle,
    receiver: *mut *mut ReceiverHandle,
) -> i32 {
    // SAFETY: this function's contract is that of `attach`.
    unsafe { attach(queue, receiver, |queue| calls::receiver(queue.0.resume_receiver())) }
}

/// Closes a queue's handle; null: does nothing. Attached ends continue. The creator's handle
/// removes the name.
///
/// # Safety
/// `queue` is null or a handle, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_close_queue(queue: *mut QueueHandle) {
    // SAFETY: this function's contract is that of `close`.
    unsafe { close(queue) };
}

/// Detaches a sender and frees its producer; null: does nothing. What it has pushed arrives.
///
/// # Safety
/// `sender` is null or a handle, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_close_sender(sender: *mut SenderHandle) {
    // SAFETY: this function's contract is that of `close`.
    unsafe { close(sender) };
}

/// Detaches the receiver; null: does nothing. The next one takes the messages that were not popped
/// or released.
///
/// # Safety
/// `receiver` is null or a handle, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_close_receiver(receiver: *mut ReceiverHandle) {
    // SAFETY: this function's contract is that of `close`.
    unsafe { close(receiver) };
}

/// Removes the files of a queue whose creator was killed. Returns their number; 0: there were none.
///
/// Returns BHQ_LIVING, BHQ_BAD_NAME or BHQ_SYSTEM otherwise.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_remove(name: *const c_char) -> i32 {
    if name.is_null() {
        return BHQ_NULL;
    }
    // SAFETY: not null, so by this function's contract it is a C string.
    let name = unsafe { CStr::from_ptr(name) };
    guarded(|| calls::remove(name))
}

/// Copies a message of `bytes` bytes into the queue, and wakes a waiting receiver. Never blocks. No
/// allocation, and no system call unless the receiver waits. `bytes` is the size of the queue's
/// messages.
///
/// Returns BHQ_OK, BHQ_FULL, BHQ_BAD_SIZE or BHQ_NULL. Release: the receiver that pops the message
/// sees everything that this thread did before.
///
/// # Safety
/// `sender` is null or a handle; `message` is null or valid for the read of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_push(sender: *mut SenderHandle, message: *const c_void, bytes: usize) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(sender) = (unsafe { sender.as_mut() }) else { return BHQ_NULL };
    if message.is_null() {
        return BHQ_NULL;
    }
    if bytes != sender.sender.message_bytes() {
        return wrong_size(sender.sender.message_bytes(), bytes);
    }
    // SAFETY: not null, so by this function's contract it is valid for the read; at most 64 KiB.
    let message = unsafe { core::slice::from_raw_parts(message.cast(), bytes) };
    sender.run(|sender| calls::push(sender, message))
}

/// Returns the index of the sender's producer; BHQ_NULL for a null handle.
///
/// # Safety
/// `sender` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_sender_index(sender: *const SenderHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    unsafe { sender.as_ref() }.map_or(BHQ_NULL, |sender| sender.sender.index() as i32)
}

/// Takes the next message and copies it to `message`. Never blocks, allocates or makes a system
/// call. At most once: a receiver that is killed afterwards loses the message if it had not used
/// it. `bytes` is the size of the queue's messages.
///
/// Returns 1 for a message, 0 for none now, BHQ_FAULT, BHQ_TAKEN, BHQ_BAD_SIZE or BHQ_NULL.
/// Acquire: sees everything that the sender did before its push.
///
/// # Safety
/// `receiver` is null or a handle; `message` is null or valid for the write of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_pop(receiver: *mut ReceiverHandle, message: *mut c_void, bytes: usize) -> i32 {
    // SAFETY: this function's contract is that of `pop_into`.
    unsafe { pop_into(receiver, message, bytes, 1, calls::pop) }
}

/// Takes the next message as bhq_pop does, sleeping until there is one, at most for `timeout_ns`
/// nanoseconds. The death of a sender does not end the wait: see bhq_producer_state.
///
/// # Safety
/// `receiver` is null or a handle; `message` is null or valid for the write of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_pop_timeout(
    receiver: *mut ReceiverHandle,
    message: *mut c_void,
    bytes: usize,
    timeout_ns: u64,
) -> i32 {
    // SAFETY: this function's contract is that of `pop_into`.
    unsafe {
        pop_into(receiver, message, bytes, 1, |receiver, message| {
            calls::pop_timeout(receiver, message, timeout_ns)
        })
    }
}

/// Takes the next message and writes its address to `message`: the receiver's own copy, aligned to
/// 8 bytes, valid until bhq_release or bhq_put_back. At least once: a message that was not released
/// is the successor's if this process is killed. Sleeps at most for `timeout_ns` nanoseconds; 0:
/// not at all.
///
/// Returns 1 for a message, 0 for none now, BHQ_FAULT, BHQ_TAKEN or BHQ_NULL. Acquire: as bhq_pop.
///
/// # Safety
/// `receiver` is null or a handle; `message` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_take(
    receiver: *mut ReceiverHandle,
    message: *mut *const c_void,
    timeout_ns: u64,
) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    if message.is_null() {
        return BHQ_NULL;
    }
    // SAFETY: not null, so by this function's contract it is valid for the write.
    let keep = |address: *const u8| unsafe { message.write(address.cast()) };
    receiver.run(|receiver| calls::take(receiver, timeout_ns, keep))
}

/// Frees the slots of the message that was taken, which has been used and is not taken again.
///
/// Returns BHQ_OK, BHQ_NOT_TAKEN or BHQ_NULL. Release: what this thread did with the message comes
/// before its slot is reused.
///
/// # Safety
/// `receiver` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_release(receiver: *mut ReceiverHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    receiver.run(|receiver| calls::had_taken(receiver.receiver.release()))
}

/// Makes the message that was taken the next one of its producer again. Messages of other producers
/// may come first.
///
/// Returns BHQ_OK, BHQ_NOT_TAKEN or BHQ_NULL.
///
/// # Safety
/// `receiver` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_put_back(receiver: *mut ReceiverHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    receiver.run(|receiver| calls::had_taken(receiver.receiver.put_back()))
}

/// Returns the index of the producer of the message that was popped or taken last; BHQ_NULL for a
/// null handle.
///
/// # Safety
/// `receiver` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_last_producer(receiver: *const ReceiverHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    unsafe { receiver.as_ref() }.map_or(BHQ_NULL, |receiver| receiver.receiver.last_producer() as i32)
}

/// Returns the index of the producer of the last BHQ_FAULT; BHQ_NO_PRODUCER: there was none;
/// BHQ_NULL for a null handle.
///
/// # Safety
/// `receiver` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_faulty_producer(receiver: *const ReceiverHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    let Some(receiver) = (unsafe { receiver.as_ref() }) else { return BHQ_NULL };
    receiver.faulty.map_or(BHQ_NO_PRODUCER, |producer| producer as i32)
}

/// Returns the file descriptor that becomes readable for a message pushed after bhq_prepare_wait,
/// for poll and epoll. It remains the receiver's. BHQ_NULL for a null handle.
///
/// # Safety
/// `receiver` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_wait_fd(receiver: *const ReceiverHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    unsafe { receiver.as_ref() }.map_or(BHQ_NULL, |receiver| receiver.receiver.as_raw_fd())
}

/// Arms the descriptor of bhq_wait_fd. Returns 1 if the queue is empty: wait until the descriptor
/// is readable, at most for BHQ_MAX_WAIT_NS, then pop until there is none. Returns 0 if there is a
/// message already.
///
/// # Safety
/// `receiver` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_prepare_wait(receiver: *mut ReceiverHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    receiver.run(|receiver| Ok(receiver.receiver.prepare_wait().into()))
}

/// Stops polling a dead producer. Returns 1, or 0 while it has messages to pop.
///
/// Returns BHQ_BAD_INDEX, BHQ_PRODUCER_ALIVE or BHQ_SYSTEM otherwise.
///
/// # Safety
/// `receiver` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_retire(receiver: *mut ReceiverHandle, index: u32) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    receiver.run(|receiver| calls::yes_or_no(receiver.receiver.retire(index as usize)))
}

/// Resets the ring of a dead, retired or faulty producer and frees it for a new sender. Returns 1,
/// or 0 while it has messages to pop.
///
/// Returns BHQ_BAD_INDEX, BHQ_PRODUCER_ALIVE or BHQ_SYSTEM otherwise.
///
/// # Safety
/// `receiver` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_renew(receiver: *mut ReceiverHandle, index: u32) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    receiver.run(|receiver| calls::yes_or_no(receiver.receiver.renew(index as usize)))
}

/// Returns the state of a producer as bhq_producer_state does, for a receiver whose process has
/// closed the queue's handle.
///
/// # Safety
/// `receiver` is null or a handle; `pid` is null or valid for the write of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_receiver_producer_state(
    receiver: *const ReceiverHandle,
    index: u32,
    pid: *mut u64,
) -> i32 {
    // SAFETY: null, or by this function's contract a handle, which is not changed.
    let Some(receiver) = (unsafe { receiver.as_ref() }) else { return BHQ_NULL };
    guarded(|| {
        let (state, found) = calls::state(receiver.receiver.producer(index as usize))?;
        if !pid.is_null() {
            // SAFETY: not null, so by this function's contract it is valid for the write.
            unsafe { pid.write(found) };
        }
        Ok(state)
    })
}

#[cfg(test)]
mod tests;

//! Memory that a handle owns, and that its C program works with when it pushes or pops without a
//! call.

use crate::calls::guarded;
use crate::codes::{BHQ_BAD_LAYOUT, BHQ_LAYOUT, BHQ_NULL, BHQ_OK};
use crate::errors;
use crate::handles::{FastReceiver, FastSender, ReceiverHandle, SenderHandle};
use core::ptr::with_exposed_provenance_mut;
use shm::ring::packed::EndPosition;

/// Memory in cache lines of its own: a program may use its two ends in two threads.
#[repr(C, align(128))]
struct OwnLines<T>(T);

/// Allocates memory that a handle will own. Returns its address.
fn allocate<T>(value: T) -> usize {
    Box::into_raw(Box::new(OwnLines(value))).expose_provenance()
}

/// Frees memory that a handle owns.
///
/// # Safety
/// The address is 0, or was returned by [`allocate`] for this type and is not used again.
unsafe fn free<T>(address: usize) {
    if address != 0 {
        // SAFETY: by this function's contract.
        drop(unsafe { Box::from_raw(with_exposed_provenance_mut::<OwnLines<T>>(address)) });
    }
}

impl SenderHandle {
    /// Returns what the program works with, if it has asked for it.
    #[inline(always)]
    fn fast(&mut self) -> Option<&mut FastSender> {
        // SAFETY: the address is 0, or that of memory that this handle owns. During a call the
        // program does not use it.
        unsafe { with_exposed_provenance_mut::<FastSender>(self.fast).as_mut() }
    }

    /// Runs a call that pushes after what the program has pushed without a call, and lets the
    /// program continue after that.
    #[inline(always)]
    pub(super) fn run(&mut self, call: impl FnOnce(&mut Self) -> Result<i32, i32>) -> i32 {
        if let Some(&mut FastSender { tail, limit, .. }) = self.fast() {
            self.sender.set_position(EndPosition { own: tail, known: limit });
        }
        let code = guarded(|| call(self));
        let position = self.sender.position();
        if let Some(fast) = self.fast() {
            (fast.tail, fast.limit) = (position.own, position.known);
        }
        code
    }
}

impl Drop for SenderHandle {
    fn drop(&mut self) {
        // SAFETY: the address is 0, or that of memory that this handle owns.
        unsafe { free::<FastSender>(self.fast) };
    }
}

impl ReceiverHandle {
    /// Returns what the program works with, if it has asked for it.
    #[inline(always)]
    fn fast(&mut self) -> Option<&mut FastReceiver> {
        // SAFETY: the address is 0, or that of memory that this handle owns. During a call the
        // program does not use it.
        unsafe { with_exposed_provenance_mut::<FastReceiver>(self.fast).as_mut() }
    }

    /// Runs a call on the receiver after what the program has popped without a call, and lets the
    /// program continue after that, without a call if that is possible.
    #[inline(always)]
    pub(super) fn run(&mut self, call: impl FnOnce(&mut Self) -> Result<i32, i32>) -> i32 {
        if let Some(&mut FastReceiver { head, end, capacity: 1.., .. }) = self.fast() {
            self.receiver.set_position(EndPosition { own: head, known: end });
        }
        let code = guarded(|| call(self));
        if self.fast != 0 {
            self.let_continue();
        }
        code
    }

    fn let_continue(&mut self) {
        let layout = self.receiver.layout();
        let Some(fast) = self.fast() else { return };
        fast.capacity = 0;
        if let Some((layout, position)) = layout {
            fast.capacity = layout.capacity;
            (fast.head, fast.end) = (position.own, position.known);
        }
    }
}

impl Drop for ReceiverHandle {
    fn drop(&mut self) {
        // SAFETY: the address is 0, or that of memory that this handle owns.
        unsafe { free::<FastReceiver>(self.fast) };
    }
}

/// Returns the code for a place that is null, or for a program that was built with another layout.
fn refusal<T>(fast: *mut *mut T, layout: u32, fast_bytes: usize) -> Option<i32> {
    if fast.is_null() {
        return Some(BHQ_NULL);
    }
    let is_ours = layout == BHQ_LAYOUT && fast_bytes == size_of::<T>();
    (!is_ours).then(|| errors::keep(BHQ_BAD_LAYOUT, "the program has another layout than the library"))
}

/// Writes to `fast` what bhq_fast_push of bulkhead_queue_inline.h works with, valid until the
/// sender is closed. `layout` is BHQ_LAYOUT, and `fast_bytes` the size of what is pointed to. Calls
/// and pushes without a call may alternate, on one thread at a time. bhq_open_fast_sender calls it.
///
/// Returns BHQ_OK, BHQ_BAD_LAYOUT or BHQ_NULL.
///
/// # Safety
/// `sender` is null or a handle; `fast` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_fast_sender_of(
    sender: *mut SenderHandle,
    layout: u32,
    fast_bytes: usize,
    fast: *mut *mut FastSender,
) -> i32 {
    let address = sender;
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(sender) = (unsafe { sender.as_mut() }) else { return BHQ_NULL };
    if let Some(code) = refusal(fast, layout, fast_bytes) {
        return code;
    }
    sender.run(|sender| {
        let (layout, position) = (sender.sender.layout(), sender.sender.position());
        if sender.fast == 0 {
            sender.fast = allocate(FastSender {
                tail: position.own,
                limit: position.known,
                capacity: layout.capacity,
                mask: layout.mask,
                message_bytes: sender.sender.message_bytes() as u64,
                place_bytes: layout.place_bytes,
                places: layout.places.cast_mut().cast(),
                tail_word: layout.tail.cast_mut().cast(),
                head_word: layout.head.cast(),
                wake_flag: core::ptr::from_ref(sender.sender.wake_flag()).cast(),
                sender: address,
            });
        }
        // SAFETY: not null, so by this function's contract it is valid for the write.
        unsafe { fast.write(with_exposed_provenance_mut(sender.fast)) };
        Ok(BHQ_OK)
    })
}

/// Wakes the receiver if it waits, after a push without a call. bhq_fast_push calls it.
///
/// # Safety
/// `sender` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_wake(sender: *mut SenderHandle) -> i32 {
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(sender) = (unsafe { sender.as_mut() }) else { return BHQ_NULL };
    guarded(|| {
        sender.sender.wake();
        Ok(BHQ_OK)
    })
}

/// Writes to `fast` what bhq_fast_pop of bulkhead_queue_inline.h works with, as bhq_fast_sender_of
/// does. bhq_open_fast_receiver calls it.
///
/// Returns BHQ_OK, BHQ_BAD_LAYOUT or BHQ_NULL.
///
/// # Safety
/// `receiver` is null or a handle; `fast` is null or valid for the write of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bhq_fast_receiver_of(
    receiver: *mut ReceiverHandle,
    layout: u32,
    fast_bytes: usize,
    fast: *mut *mut FastReceiver,
) -> i32 {
    let address = receiver;
    // SAFETY: null, or by this function's contract a handle that only this thread uses now.
    let Some(receiver) = (unsafe { receiver.as_mut() }) else { return BHQ_NULL };
    if let Some(code) = refusal(fast, layout, fast_bytes) {
        return code;
    }
    // Its capacity is that of a receiver whose pops are calls; the end of this call sets it.
    receiver.run(|receiver| {
        let layout = receiver.receiver.ring_layout();
        if receiver.fast == 0 {
            receiver.fast = allocate(FastReceiver {
                head: 0,
                end: 0,
                capacity: 0,
                mask: layout.mask,
                message_bytes: receiver.receiver.message_bytes() as u64,
                place_bytes: layout.place_bytes,
                places: layout.places.cast(),
                tail_word: layout.tail.cast(),
                head_word: layout.head.cast_mut().cast(),
                receiver: address,
                found: 0,
            });
        }
        // SAFETY: not null, so by this function's contract it is valid for the write.
        unsafe { fast.write(with_exposed_provenance_mut(receiver.fast)) };
        Ok(BHQ_OK)
    })
}

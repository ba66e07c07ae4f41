//! Codes of errors, and the detailed text of a thread's last error.

use crate::codes::{
    self, BHQ_ATTACHED, BHQ_BAD_CAPACITY, BHQ_BAD_DESCRIPTORS, BHQ_BAD_INDEX, BHQ_BAD_NAME,
    BHQ_BAD_PRODUCERS, BHQ_BAD_SIZE, BHQ_FAULT, BHQ_FULL, BHQ_INCOMPLETE, BHQ_LIVING, BHQ_NO_FREE_PRODUCER,
    BHQ_NO_SPACE, BHQ_NOT_FOUND, BHQ_PRODUCER_ALIVE, BHQ_RECEIVER_CRASHED, BHQ_RETIRED, BHQ_SENDER_CRASHED,
    BHQ_SYSTEM, BHQ_TAKEN,
};
use core::cell::RefCell;
use core::ffi::c_char;
use shm::queue::{ByteError, QueueError};
use std::ffi::CString;
use std::panic::catch_unwind;

thread_local! {
    static LAST: RefCell<(i32, CString)> = RefCell::default();
}

/// Keeps the text of an error for [`text_pointer`]. Returns its code.
#[cold]
pub(crate) fn from_queue(error: &QueueError) -> i32 {
    keep(code_of_queue(error), &error.to_string())
}

/// Returns the code of a refused push or pop, and keeps its text, except for a full queue.
#[cold]
pub(crate) fn from_bytes(error: &ByteError) -> i32 {
    let code = match error {
        ByteError::Full(_) => return BHQ_FULL,
        ByteError::Size { .. } => BHQ_BAD_SIZE,
        ByteError::Taken => BHQ_TAKEN,
        ByteError::Fault(_) => BHQ_FAULT,
        _ => BHQ_SYSTEM,
    };
    keep(code, &error.to_string())
}

/// Keeps a text for [`text_pointer`]. Returns the code.
#[cold]
pub(crate) fn keep(code: i32, text: &str) -> i32 {
    let text: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    let text = CString::new(text).unwrap_or_default();
    // Ignored where the thread ends: the generic text remains.
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = (code, text)));
    code
}

/// Returns the text of a code as a C string: of the thread's last error if that has this code.
/// Valid until the thread's next error.
pub(crate) fn text_pointer(code: i32) -> *const c_char {
    let own = catch_unwind(|| {
        let find = |last: &RefCell<(i32, CString)>| {
            let last = last.try_borrow().ok()?;
            if last.0 == code && code < 0 { Some(last.1.as_ptr()) } else { None }
        };
        LAST.try_with(find).ok().flatten()
    });
    own.ok().flatten().unwrap_or_else(|| codes::text(code).as_ptr())
}

const fn code_of_queue(error: &QueueError) -> i32 {
    match error {
        QueueError::Name(_) => BHQ_BAD_NAME,
        QueueError::Producers(_) => BHQ_BAD_PRODUCERS,
        QueueError::Capacity(_) => BHQ_BAD_CAPACITY,
        QueueError::MessageBytes(_) | QueueError::MessageSize { .. } => BHQ_BAD_SIZE,
        QueueError::NotFound(_) => BHQ_NOT_FOUND,
        QueueError::Producer { .. } => BHQ_BAD_INDEX,
        QueueError::Attached { .. } => BHQ_ATTACHED,
        QueueError::NoFreeProducer { .. } => BHQ_NO_FREE_PRODUCER,
        QueueError::SenderCrashed { .. } => BHQ_SENDER_CRASHED,
        QueueError::ReceiverCrashed(_) => BHQ_RECEIVER_CRASHED,
        QueueError::ProducerAlive(_) => BHQ_PRODUCER_ALIVE,
        QueueError::Retired(_) => BHQ_RETIRED,
        QueueError::Living(_) => BHQ_LIVING,
        QueueError::Descriptors(_) => BHQ_BAD_DESCRIPTORS,
        QueueError::Incomplete(_) => BHQ_INCOMPLETE,
        QueueError::NoSpace { .. } => BHQ_NO_SPACE,
        // Of another technique, of the system, and of a later version.
        _ => BHQ_SYSTEM,
    }
}

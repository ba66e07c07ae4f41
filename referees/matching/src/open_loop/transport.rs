//! The queue of reports for engines that bring none: the SPSC ring of `bulkhead-shm`, one push a
//! report.

use crate::abi::{Report, Transport};
use shm::ring::spsc::{Consumer, Producer, heap_ring};
use std::ffi::{c_int, c_void};

struct Ring {
    producer: Producer<7>,
    consumer: Consumer<7>,
}

pub const TRANSPORT: Transport = Transport { create, push, drain, flush, destroy };

extern "C" fn create(capacity: u32) -> *mut c_void {
    let (producer, consumer) = heap_ring((capacity as usize).next_power_of_two());
    Box::into_raw(Box::new(Ring { producer, consumer })).cast()
}

extern "C" fn push(handle: *mut c_void, report: *const Report) -> c_int {
    // SAFETY: the handle is from `create`; only the engine's thread uses this field, and the report
    // is valid during the call.
    let (producer, report) = unsafe { (&mut (*handle.cast::<Ring>()).producer, &*report) };
    c_int::from(producer.try_push(&report.to_words()).is_ok())
}

extern "C" fn drain(handle: *mut c_void, out: *mut Report, max: u32) -> u32 {
    // SAFETY: the handle is from `create`; only the draining thread uses this field.
    let consumer = unsafe { &mut (*handle.cast::<Ring>()).consumer };
    let mut next = out;
    let taken = consumer.drain(max as usize, |words: [u64; 7]| {
        // SAFETY: `out` has room for `max` reports, and `drain` gives no more than that.
        unsafe {
            next.write(Report::from_words(words));
            next = next.add(1);
        }
    });
    taken.expect("a ring that only this process writes") as u32
}

/// Does nothing: each push is visible at once.
extern "C" fn flush(_: *mut c_void) {}

extern "C" fn destroy(handle: *mut c_void) {
    // SAFETY: from `Box::into_raw` in `create`.
    drop(unsafe { Box::from_raw(handle.cast::<Ring>()) });
}

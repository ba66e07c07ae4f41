//! The SPSC ring of `bulkhead-shm` as a queue of reports, which the harness drains.

use crate::abi::{Report, Transport};
use shm::ring::spsc::{Consumer, Producer, heap_ring};
use std::ffi::{c_int, c_void};

/// A ring between the engine's thread and the thread that drains it. A slot is a cache line with
/// the seven words of a report and their sequence.
pub struct Ring {
    /// `None` once the engine has taken it, to push without [`Transport::push`].
    pub producer: Option<Producer<7>>,
    consumer: Consumer<7>,
}

pub const TRANSPORT: Transport = Transport { create, push, drain, flush, destroy };

/// Creates a ring for at least `capacity` reports.
extern "C" fn create(capacity: u32) -> *mut c_void {
    let (producer, consumer) = heap_ring((capacity as usize).next_power_of_two());
    Box::into_raw(Box::new(Ring { producer: Some(producer), consumer })).cast()
}

/// Pushes a report. Returns 0 if the ring is full, or if its producer was taken.
extern "C" fn push(handle: *mut c_void, report: *const Report) -> c_int {
    // SAFETY: the handle is from `create`; only the engine's thread uses this field, and the report
    // is valid during the call.
    let (producer, report) = unsafe { (&mut (*handle.cast::<Ring>()).producer, &*report) };
    let producer = producer.as_mut();
    c_int::from(producer.is_some_and(|producer| producer.try_push(&report.to_words()).is_ok()))
}

/// Moves up to `max` reports to `out`. Returns their number.
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
    // SAFETY: from `Box::into_raw` in `create`; it is destroyed once, after both threads.
    drop(unsafe { Box::from_raw(handle.cast::<Ring>()) });
}

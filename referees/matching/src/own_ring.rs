//! Reports through the SPSC ring of `bulkhead-shm`, as a transport that the harness drains.

use crate::abi::{Report, Transport};
use shm::ring::spsc::{Consumer, Producer, heap_ring};
use std::ffi::{c_int, c_void};

/// The words of a report: a slot of the ring is a cache line with these and their sequence.
type Message = [u64; 7];

/// Reports that are collected before they are pushed together.
const BATCH: usize = 64;

/// A ring of the harness: the matcher's thread takes the producer, the drainer's the consumer.
struct Ring {
    producer: Option<Producer<7>>,
    consumer: Consumer<7>,
}

/// The sending end of the ring that carries reports to the harness.
pub struct Outlet {
    producer: Producer<7>,
    collected: Vec<Message>,
}

impl Outlet {
    /// Takes the sending end of a ring that [`create`] made, which nobody has taken before.
    ///
    /// # Safety
    /// `handle` comes from [`create`] and is valid during the call.
    pub unsafe fn new(_transport: Transport, handle: *mut c_void) -> Self {
        // SAFETY: promised by the caller; only this thread uses this field.
        let producer = unsafe { (*handle.cast::<Ring>()).producer.take() };
        Outlet { producer: producer.expect("one engine for each ring"), collected: Vec::with_capacity(BATCH) }
    }

    /// Queues a report; the harness receives it at the latest after [`Outlet::publish`].
    #[inline(always)]
    pub fn send(&mut self, report: Report) {
        if self.collected.len() == BATCH {
            self.publish();
        }
        self.collected.push(report.to_words());
    }

    /// Pushes the collected reports into the ring. Waits while the ring is full.
    pub fn publish(&mut self) {
        let mut left = &self.collected[..];
        while !left.is_empty() {
            let pushed = self.producer.try_push_many(left);
            left = &left[pushed..];
            if pushed == 0 {
                std::hint::spin_loop();
            }
        }
        self.collected.clear();
    }
}

/// Creates a ring for at least `capacity` reports.
extern "C" fn create(capacity: u32) -> *mut c_void {
    let (producer, consumer) = heap_ring((capacity as usize).next_power_of_two());
    Box::into_raw(Box::new(Ring { producer: Some(producer), consumer })).cast()
}

/// Refuses: the engine pushes through its [`Outlet`].
extern "C" fn push(_: *mut c_void, _: *const Report) -> c_int {
    0
}

/// Moves up to `max` reports to `out`. Returns their number.
extern "C" fn drain(handle: *mut c_void, out: *mut Report, max: u32) -> u32 {
    // SAFETY: the harness passes the handle from `create`; only its drainer uses this field.
    let consumer = unsafe { &mut (*handle.cast::<Ring>()).consumer };
    let mut next = out;
    let taken = consumer.drain(max as usize, |words: Message| {
        // SAFETY: `out` has room for `max` reports, and `drain` gives no more than that.
        unsafe {
            next.write(Report::from_words(words));
            next = next.add(1);
        }
    });
    taken.expect("a ring that only this process writes") as u32
}

/// Does nothing: `engine_flush` has pushed everything.
extern "C" fn flush(_: *mut c_void) {}

extern "C" fn destroy(handle: *mut c_void) {
    // SAFETY: from `Box::into_raw` in `create`; the harness destroys it once, after both threads.
    drop(unsafe { Box::from_raw(handle.cast::<Ring>()) });
}

static TRANSPORT: Transport = Transport { create, push, drain, flush, destroy };

/// Returns the report transport that the harness uses instead of its own.
#[unsafe(no_mangle)]
pub extern "C" fn engine_get_transport() -> *const Transport {
    &raw const TRANSPORT
}

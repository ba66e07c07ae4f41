//! Reports through the SPSC ring of `bulkhead-shm`, in batches, as a transport that the harness
//! drains.

use crate::abi::{Report, Transport};
use crate::ring::{Ring, TRANSPORT};
use shm::ring::spsc::Producer;
use std::ffi::c_void;

/// Reports that are collected before they are pushed together.
const BATCH: usize = 64;

/// The sending end of the ring that carries reports to the harness.
pub struct Outlet {
    producer: Producer<7>,
    collected: Vec<[u64; 7]>,
}

impl Outlet {
    /// Takes the sending end of a ring, which nobody has taken before.
    ///
    /// # Safety
    /// `handle` comes from `create` of [`TRANSPORT`] and is valid during the call.
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

static OWN_RING: Transport = TRANSPORT;

/// Returns the report transport that the harness uses instead of its own.
#[unsafe(no_mangle)]
pub extern "C" fn engine_get_transport() -> *const Transport {
    &raw const OWN_RING
}

//! Reports through the queue that the harness provides.

use crate::abi::{Report, Transport};
use std::ffi::c_void;

/// Reports collected before a push, which writes words that the drainer polls: pushes one after the
/// other are cheaper. The harness's last call pushes what is left.
const BATCH: usize = 256;

/// The sending end of the harness's report queue.
pub struct Outlet {
    transport: Transport,
    queue: *mut c_void,
    collected: Vec<Report>,
}

impl Outlet {
    /// Creates the sending end of the harness's report queue.
    ///
    /// # Safety
    /// `queue` is the transport's and valid until the last push.
    pub unsafe fn new(transport: Transport, queue: *mut c_void) -> Self {
        Outlet { transport, queue, collected: Vec::with_capacity(BATCH) }
    }

    /// Queues a report; the harness receives it at the latest after [`Outlet::publish`].
    #[inline(always)]
    pub fn send(&mut self, report: Report) {
        if self.collected.len() == BATCH {
            self.publish();
        }
        self.collected.push(report);
    }

    /// Pushes the collected reports into the harness's queue. Waits while the queue is full.
    pub fn publish(&mut self) {
        for report in self.collected.drain(..) {
            while (self.transport.push)(self.queue, &report) == 0 {
                std::hint::spin_loop();
            }
        }
    }
}

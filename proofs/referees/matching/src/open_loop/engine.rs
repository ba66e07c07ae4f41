//! A matching engine behind the benchmark's C interface, loaded from an adapter's library.

use crate::abi::{CancelMessage, ModifyMessage, NewOrderMessage, Transport};
use crate::flow::Message;
use crate::ring::TRANSPORT;
use libloading::Library;
use std::ffi::{OsStr, c_void};

type OnMessage<M> = unsafe extern "C" fn(*const M);

/// An adapter's engine, with the queue of its reports.
pub struct Engine {
    on_new_order: OnMessage<NewOrderMessage>,
    on_cancel: OnMessage<CancelMessage>,
    on_modify: OnMessage<ModifyMessage>,
    flush: unsafe extern "C" fn(),
    transport: Transport,
    queue: *mut c_void,
    // Never unloaded: an engine may have threads of its own.
    _library: &'static Library,
}

/// The receiving end of an engine's reports, for one other thread.
#[derive(Clone, Copy)]
pub struct Reports {
    transport: Transport,
    queue: *mut c_void,
}

// SAFETY: a transport has one thread that pushes and one that drains, by the benchmark's contract.
unsafe impl Send for Reports {}

impl Engine {
    /// Loads an adapter and starts its engine, with room for `capacity` reports on their way. An
    /// engine without a queue of its own gets our ring.
    ///
    /// # Errors
    /// The library or one of its functions is missing.
    pub fn load(path: &OsStr, capacity: u32) -> Result<Self, libloading::Error> {
        // SAFETY: an adapter is trusted to follow the benchmark's header, as the harness trusts it;
        // the types below are that header's.
        unsafe {
            let library: &'static Library = Box::leak(Box::new(Library::new(path)?));
            let own = library.get::<unsafe extern "C" fn() -> *const Transport>(b"engine_get_transport");
            let transport = own.ok().and_then(|own| own().as_ref().copied()).unwrap_or(TRANSPORT);
            let queue = (transport.create)(capacity);
            let init =
                library.get::<unsafe extern "C" fn(u64, *const Transport, *mut c_void)>(b"engine_init")?;
            init(0, Box::leak(Box::new(transport)), queue);
            Ok(Self {
                on_new_order: *library.get(b"engine_on_new_order")?,
                on_cancel: *library.get(b"engine_on_cancel")?,
                on_modify: *library.get(b"engine_on_modify")?,
                flush: *library.get(b"engine_flush")?,
                transport,
                queue,
                _library: library,
            })
        }
    }

    pub fn reports(&self) -> Reports {
        Reports { transport: self.transport, queue: self.queue }
    }

    #[inline(always)]
    pub fn apply(&self, message: &Message) {
        // SAFETY: the benchmark's functions for its messages, called from one thread.
        unsafe {
            match message {
                Message::New(message) => (self.on_new_order)(message),
                Message::Cancel(message) => (self.on_cancel)(message),
                Message::Modify(message) => (self.on_modify)(message),
            }
        }
    }

    /// Makes all reports visible to the other end.
    #[inline]
    pub fn flush(&self) {
        // SAFETY: as above.
        unsafe { (self.flush)() };
        (self.transport.flush)(self.queue);
    }
}

impl Reports {
    /// Moves reports that have arrived to `out`. Returns their number.
    #[inline]
    pub fn drain(self, out: &mut [crate::abi::Report]) -> usize {
        (self.transport.drain)(self.queue, out.as_mut_ptr(), out.len() as u32) as usize
    }
}

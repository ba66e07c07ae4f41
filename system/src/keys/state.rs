//! What the handler of signals knows of a thread with closed rights.

use core::cell::Cell;
use core::ptr;

thread_local! {
    static STATE: Cell<*const ThreadState> = const { Cell::new(ptr::null()) };
}

/// What the handler of signals needs to know of a thread.
pub(super) struct ThreadState {
    pub(super) name: String,
    /// Publishes why the thread ends. It runs in a signal handler: it neither allocates nor waits.
    pub(super) report: Box<dyn Fn(&str)>,
    /// The next refused write is that of a panic.
    pub(super) learns_panics: Cell<bool>,
    pub(super) is_closed: Cell<bool>,
}

/// Makes this the calling thread's state until it is replaced; null: it has none.
pub(super) fn set(state: *const ThreadState) {
    STATE.set(state);
}

/// Returns the state of the calling thread while its rights are closed.
pub(super) fn closed_state() -> Option<&'static ThreadState> {
    // SAFETY: null, or the state of a thread that is prepared, which lives until that is dropped,
    // on this thread; a signal handler's use ends before.
    unsafe { STATE.get().as_ref() }.filter(|state| state.is_closed.get())
}

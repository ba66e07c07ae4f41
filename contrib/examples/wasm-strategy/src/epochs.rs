//! Epochs, by which a module's call ends that takes too long.
//!
//! Compiled code compares the engine's epoch with the deadline of its call at each loop's end and
//! each function's start. A thread advances the epoch.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use wasmtime::Engine;

/// Epochs in one deadline.
const EPOCHS: u64 = 4;

/// Epochs after which a call ends: the first one may be over at once.
pub(crate) const CALL_EPOCHS: u64 = EPOCHS + 1;

/// Returns the time between two epochs: a call ends after its deadline, and before a quarter of it
/// more has passed.
const fn interval(deadline_ms: u64) -> Duration {
    Duration::from_micros(deadline_ms * 1_000 / EPOCHS)
}

/// Starts the thread that advances the epochs of a process until it ends. Returns `false` if no
/// thread may be started: then the launcher ends a hang (`--liveness`).
pub(crate) fn start(engine: &Engine, deadline_ms: u64) -> bool {
    let engine = engine.clone();
    // On the core of the strategy that starts it: the engine's core is left alone.
    let ticker = thread::Builder::new().name("wasm-epochs".into()).spawn(move || {
        loop {
            thread::sleep(interval(deadline_ms));
            engine.increment_epoch();
        }
    });
    ticker.is_ok()
}

/// Advances the epochs while `work` runs, by a thread that has ended when this returns: a process
/// with two threads could not enter a sandbox.
pub(crate) fn during<T>(engine: &Engine, deadline_ms: u64, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while waiting.recv_timeout(interval(deadline_ms)) == Err(RecvTimeoutError::Timeout) {
                engine.increment_epoch();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

//! Two cores for each test: the number of cores decides a run's layout, and the tests know that of
//! two.

use std::cell::Cell;
use std::sync::{LazyLock, Mutex};
use system::pin;

/// The cores that the tests may use, before any thread was restricted.
static CORES: LazyLock<Vec<u32>> = LazyLock::new(pin::allowed_cores);
/// The number of threads that have cores.
static THREADS: Mutex<usize> = Mutex::new(0);

thread_local! {
    static IS_RESTRICTED: Cell<bool> = const { Cell::new(false) };
}

/// Restricts the calling thread, and what it starts, to two cores: each thread to the next two.
pub fn use_two() {
    if CORES.len() <= 2 || IS_RESTRICTED.replace(true) {
        return;
    }
    let pairs: Vec<&[u32]> = CORES.chunks_exact(2).collect();
    let mut threads = THREADS.lock().unwrap();
    pin::restrict_to(pairs[*threads % pairs.len()]).unwrap();
    *threads += 1;
}

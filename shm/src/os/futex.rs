//! Futexes across processes: wait while a word has a value, wake who waits.
//!
//! A futex is 32 bits; ours is the low half of a word, which on a little-endian machine is where the word begins.

use crate::sync::AtomicU64;
use core::time::Duration;

#[cfg(target_endian = "big")]
compile_error!("the futex is taken to be the low half of a word: only right on little-endian machines");

/// Sleeps while the low half of `word` is `expected`, for `at_most` that long. May return for no reason.
#[cfg(not(loom))]
pub fn wait(word: &AtomicU64, expected: u32, at_most: Duration) {
    let timeout = libc::timespec {
        tv_sec: at_most.as_secs().min(i64::MAX as u64) as libc::time_t,
        tv_nsec: libc::c_long::from(at_most.subsec_nanos() as i32),
    };
    // SAFETY: the address is that of a live, aligned word, its first four bytes are the futex; the kernel only
    // reads it. The timeout outlives the call. Not FUTEX_PRIVATE: the word may be shared with another process.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            core::ptr::from_ref(word).cast::<u32>(),
            libc::FUTEX_WAIT,
            expected,
            &raw const timeout,
        );
    }
}

/// Wakes one waiter, if there is one.
#[cfg(not(loom))]
pub fn wake_one(word: &AtomicU64) {
    // SAFETY: as in `wait`; the kernel uses the address as a key and does not touch the memory.
    unsafe {
        libc::syscall(libc::SYS_futex, core::ptr::from_ref(word).cast::<u32>(), libc::FUTEX_WAKE, 1);
    }
}

/// Loom's stand-in: waits for the word to change, with no time-out, so that a lost wake-up hangs the model.
#[cfg(loom)]
pub fn wait(word: &AtomicU64, expected: u32, _at_most: Duration) {
    while word.load(crate::sync::Ordering::Relaxed) as u32 == expected {
        loom::thread::yield_now();
    }
}

/// Loom's stand-in: the change of the word is the wake-up.
#[cfg(loom)]
pub fn wake_one(_word: &AtomicU64) {}

/// Wakes every waiter.
#[cfg(not(loom))]
pub fn wake_all(word: &AtomicU64) {
    // SAFETY: as in `wake_one`.
    unsafe {
        libc::syscall(libc::SYS_futex, core::ptr::from_ref(word).cast::<u32>(), libc::FUTEX_WAKE, i32::MAX);
    }
}

/// Loom's stand-in: the change of the word is the wake-up.
#[cfg(loom)]
pub fn wake_all(_word: &AtomicU64) {}

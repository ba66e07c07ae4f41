//! Futexes across processes: wait while a word has a value, and wake waiting threads.
//!
//! A futex is 32 bits; ours is the low half of a word, which on a little-endian machine is where
//! the word begins.

use crate::sync::AtomicU64;
use core::time::Duration;

/// Maximum number of words that a thread can wait for in one call: the kernel's `FUTEX_WAITV_MAX`.
pub const MAX_WORDS: usize = 128;

/// The reason why a thread's wait on several words of shared memory returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The wait ended by a wake-up, by a word that had changed before, or without a cause
    /// (spuriously).
    Rung,
    /// The timeout expired.
    TimedOut,
    /// The wait did not happen: the kernel lacks the call or refuses it.
    Unsupported,
}

#[cfg(target_endian = "big")]
compile_error!("the futex is taken to be the low half of a word: only right on little-endian machines");

/// Sleeps while the low 32 bits of `word` are `expected`, for at most `timeout`. May return for no
/// reason.
#[cfg(not(loom))]
pub fn wait(word: &AtomicU64, expected: u32, timeout: Duration) {
    let _ = wait_for(word, expected, timeout);
}

/// As `wait`, and returns why it ended.
#[cfg(not(loom))]
fn wait_for(word: &AtomicU64, expected: u32, timeout: Duration) -> Woken {
    let limit = libc::timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as _,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    };
    // SAFETY: the address is that of a live, aligned word, its first four bytes are the futex; the
    // kernel only reads it. The limit outlives the call. Not FUTEX_PRIVATE: the word may be
    // shared with another process.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            core::ptr::from_ref(word).cast::<u32>(),
            libc::FUTEX_WAIT,
            expected,
            &raw const limit,
        )
    };
    woken(result)
}

/// Converts the result of a wait.
#[cfg(not(loom))]
fn woken(result: libc::c_long) -> Woken {
    if result >= 0 {
        return Woken::Rung;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Woken::Rung,
        Some(libc::ETIMEDOUT) => Woken::TimedOut,
        _ => Woken::Unsupported,
    }
}

/// Wakes every thread that waits on this word of shared memory. Waking only one could wake a
/// process that waits there uninvited, and the right one would sleep on.
#[cfg(not(loom))]
pub fn wake_all(word: &AtomicU64) {
    // SAFETY: as in `wait`; the kernel uses the address as a key and does not touch the memory.
    unsafe {
        libc::syscall(libc::SYS_futex, core::ptr::from_ref(word).cast::<u32>(), libc::FUTEX_WAKE, i32::MAX);
    }
}

/// Does nothing under loom, since the change of the word is the wake-up.
#[cfg(loom)]
pub fn wake_all(_word: &AtomicU64) {}

/// Sleeps while each word's low 32 bits have their expected value, for at most `timeout`. Words
/// beyond [`MAX_WORDS`] are ignored. A single word is waited on with the older call, which every
/// kernel has and the sandbox allows to strategies.
#[cfg(not(loom))]
pub fn wait_any<'a>(words: impl Iterator<Item = (&'a AtomicU64, u32)>, timeout: Duration) -> Woken {
    /// `FUTEX2_SIZE_U32`; without `FUTEX2_PRIVATE`: the words may be shared with other processes.
    const FLAGS: u32 = 2;
    /// The kernel's `struct futex_waitv`.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Wait {
        value: u64,
        address: u64,
        flags: u32,
        reserved: u32,
    }
    let mut waits = [Wait { value: 0, address: 0, flags: FLAGS, reserved: 0 }; MAX_WORDS];
    let mut count = 0u32;
    let mut first = None;
    for (wait, (word, expected)) in waits.iter_mut().zip(words) {
        (wait.value, wait.address) = (expected.into(), core::ptr::from_ref(word) as u64);
        first = first.or(Some((word, expected)));
        count += 1;
    }
    let Some((word, expected)) = first else {
        std::thread::sleep(timeout);
        return Woken::TimedOut;
    };
    if count == 1 {
        return wait_for(word, expected, timeout);
    }
    let mut until = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct is ours and outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut until) };
    let nanos = until.tv_nsec as u64 + u64::from(timeout.subsec_nanos());
    let seconds = timeout.as_secs().saturating_add(nanos / 1_000_000_000);
    until.tv_sec = until.tv_sec.saturating_add(seconds.min(i64::MAX as u64) as _);
    until.tv_nsec = (nanos % 1_000_000_000) as libc::c_long;
    // SAFETY: the addresses are those of live, aligned words, whose first four bytes are the
    // futexes; the kernel only reads them. The list has at least as many entries as are named, and
    // it and the time outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex_waitv,
            waits.as_ptr(),
            count,
            0,
            &raw const until,
            libc::CLOCK_MONOTONIC,
        )
    };
    woken(result)
}

/// Replaces `wait_any` under loom: waits for one of the words to change, without a timeout.
#[cfg(loom)]
pub fn wait_any<'a>(words: impl Iterator<Item = (&'a AtomicU64, u32)>, _at_most: Duration) -> Woken {
    let words: Vec<_> = words.collect();
    let same =
        |(word, expected): &(&AtomicU64, u32)| word.load(crate::sync::Ordering::Relaxed) as u32 == *expected;
    while words.iter().all(same) {
        loom::thread::yield_now();
    }
    Woken::Rung
}

/// Replaces `wait` under loom: waits for the word to change, without a timeout. So a lost wake-up
/// hangs the model.
#[cfg(loom)]
pub fn wait(word: &AtomicU64, expected: u32, _at_most: Duration) {
    while word.load(crate::sync::Ordering::Relaxed) as u32 == expected {
        loom::thread::yield_now();
    }
}

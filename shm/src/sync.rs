//! Atomics for all crates, which loom can replace.
//!
//! Under `--cfg loom` the same names are loom's, so every algorithm above this file can be
//! model-checked without being changed. A clippy lint bans `std`'s atomic types everywhere else.
//!
//! **That every ordering is needed** is shown by mutants: `.ci/mutants.sh` weakens one at a time
//! and expects the loom models (`.ci/loom.sh`) to fail. On x86 most of these mutants would run for
//! years. Each is a line of `.ci/mutants.tsv`, with what kills it, or why it is expected to
//! survive: loom takes a SeqCst access for an AcqRel one, and its threads end between two steps of
//! the program, never with the later one done and the earlier one not.
//!
//! What else loom cannot show: it has no futex (a wait is a loop on the word), no time-outs, and no
//! loads that run late, which is why the rings read their slots with [`load_owned`].

#[cfg(not(loom))]
pub use core::sync::atomic::{Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};

/// A word of memory that threads or processes share. An alias and not a re-export, because the lint
/// looks through re-exports and would ban this one too.
#[cfg(not(loom))]
#[allow(clippy::disallowed_types)]
pub type AtomicU64 = core::sync::atomic::AtomicU64;
/// A word of shared memory in a model, as loom provides it.
#[cfg(loom)]
pub type AtomicU64 = loom::sync::atomic::AtomicU64;

/// Hints to the CPU (or loom's scheduler) that this thread is waiting for another one.
#[inline(always)]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Loads a word of shared memory that no other thread writes now. All stores of other threads to it
/// have completed, and their next ones wait for this thread.
///
/// A Relaxed load, so that a peer who breaks the rule gives us nonsense and not undefined
/// behaviour. Under loom the rule itself is checked: a store that the orderings do not keep before
/// or after this load fails the model. Without that, no model could show that a ring's head needs
/// its Release and Acquire: what they prevent is a load that sees a store from its future, and loom
/// never runs a load late.
#[inline(always)]
pub fn load_owned(word: &AtomicU64) -> u64 {
    #[cfg(not(loom))]
    return word.load(Ordering::Relaxed);
    // SAFETY: loom checks the claim and panics where it does not hold.
    #[cfg(loom)]
    return unsafe { word.unsync_load() };
}

/// Loads a word of shared memory whose page may be mapped without write permission.
///
/// The standard library promises only Relaxed loads of such memory. An Acquire fence after a
/// Relaxed load gives what an Acquire load gives, and pairs with the same Release stores. On x86-64
/// it is the same instruction.
#[inline(always)]
pub fn load_read_only(word: &AtomicU64, ordering: Ordering) -> u64 {
    let value = word.load(Ordering::Relaxed);
    if !matches!(ordering, Ordering::Relaxed) {
        // Acquire: pairs with the Release store that the caller names.
        fence(Ordering::Acquire);
    }
    value
}

/// Returns `true` if the words are equal, without letting the compiler assume it afterwards.
///
/// If two words are known to be equal, the compiler may use either for the other. An address
/// computed from a loaded word would then no longer depend on the load, or one computed from a
/// counter would. What a CPU may run ahead of depends on that. No instruction but the comparison.
#[inline(always)]
pub(crate) fn equal_unknown_to_compiler(one: u64, other: u64) -> bool {
    opaque(one) == opaque(other)
}

/// Returns the word, about which the compiler then assumes nothing.
#[inline(always)]
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
fn opaque(mut word: u64) -> u64 {
    // SAFETY: an empty block. It reads no memory, writes none, and leaves its register as it is.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) word, options(pure, nomem, nostack, preserves_flags));
    }
    word
}

/// Elsewhere it is left to the compiler, and Miri runs no assembly.
#[inline(always)]
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
const fn opaque(word: u64) -> u64 {
    word
}

/// Yields the core to other threads.
#[inline]
pub fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Adds a fence under loom, which treats SeqCst accesses as AcqRel ones, and does nothing
/// otherwise. With it, at least one of two sides sees the other's first access. Natively the
/// accesses themselves are in the one order of everything SeqCst; loom has that order for fences
/// only.
#[inline(always)]
pub fn seqcst_for_loom() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

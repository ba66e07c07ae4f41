//! The only file that names atomics.
//!
//! Under `--cfg loom` the same names are loom's, so every algorithm above this file can be model-checked
//! without being changed. A clippy lint bans `std`'s atomic types everywhere else.
//!
//! **That every ordering is needed** is shown by mutants: `.ci/mutants.sh` weakens one at a time and expects the loom
//! models (`.ci/loom.sh`) to fail. On x86 most of these mutants would run for years.
//!
//! | mutant | weakened | killed by |
//! |---|---|---|
//! | `ring-seq-store`, `-load` | Release, Acquire → Relaxed | every model of the ring: a message is read before it is written |
//! | `ring-head-store`, `-load` | Release, Acquire → Relaxed | [`load_owned`]: a slot is overwritten while it is read |
//! | `bell-ring-fence`, `bell-arm-fence` | SeqCst → AcqRel | `no_wake_up_is_lost`: both sides look before they see the other |
//! | `log-key-store`, `-load` | Release, Acquire → Relaxed | `a_record_that_is_there_is_whole` |
//! | `magic-store`, `-load` | Release, Acquire → Relaxed | `who_sees_the_magic_sees_the_header` |
//! | `go-store`, `-load` | Release, Acquire → Relaxed | `who_passes_the_barrier_sees_what_came_before` |
//! | `ready-store`, `-load` | Release, Acquire → Relaxed | the same, and `the_barrier_passes_on_what_the_others_prepared` |
//!
//! None survives. What loom cannot show: it has no futex (a wait is a loop on the word), no time-outs, and no loads
//! that run late, which is why the ring reads its slots with [`load_owned`].

#[cfg(not(loom))]
pub use core::sync::atomic::{Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};

/// A shared word. An alias and not a re-export, because the lint looks through re-exports and would ban this one too.
#[cfg(not(loom))]
#[allow(clippy::disallowed_types)]
pub type AtomicU64 = core::sync::atomic::AtomicU64;
/// Loom's shared word.
#[cfg(loom)]
pub type AtomicU64 = loom::sync::atomic::AtomicU64;

/// Tells the processor (or loom's scheduler) that this thread is waiting for another one.
#[inline(always)]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Loads a word that belongs to us now: everybody else's stores to it are over, and their next ones wait for us.
///
/// A Relaxed load, so that a peer who breaks the rule gives us nonsense and not undefined behaviour. Under loom the
/// rule itself is checked: a store that the orderings do not keep before or after this load fails the model. Without
/// that, no model could show that a ring's head needs its Release and Acquire: what they prevent is a load that sees
/// a store from its future, and loom never runs a load late.
#[inline(always)]
pub fn load_owned(word: &AtomicU64) -> u64 {
    #[cfg(not(loom))]
    return word.load(Ordering::Relaxed);
    // SAFETY: loom checks the claim and panics where it does not hold.
    #[cfg(loom)]
    return unsafe { word.unsync_load() };
}

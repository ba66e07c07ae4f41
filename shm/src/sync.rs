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
//! | `array-stamp-store`, `-load` | Release, Acquire → Relaxed | `two_producers_lose_duplicate_and_tear_nothing`: read before it is written |
//! | `array-free-store`, `-load` | Release, Acquire → Relaxed | `a_slot_is_not_written_before_it_is_read`, by [`load_owned`] |
//! | `array-mend-claimed`, `-unclaimed` | Release → Relaxed | `a_mended_slot_is_not_written_before_it_is_read` |
//! | `channel-push-order`, `-park-order` | [`seqcst_for_loom`] → nothing | `a_parked_receiver_is_woken` |
//! | `linked-stamp-store`, `-load` | Release, Acquire → Relaxed | `two_producers_lose_duplicate_and_tear_nothing`: read before it is written |
//! | `linked-claim` | Release → Relaxed | `who_sees_a_claim_in_a_block_finds_the_block`: Full, and there is room |
//! | `linked-tail-load`, `-reload`, `-failed` | Acquire → Relaxed | `who_meets_a_claim_in_a_block_finds_the_block`: the same |
//! | `linked-last-store`, `-load` | Release, Acquire → Relaxed | `a_block_is_reused_after_it_was_read`, by [`load_owned`] |
//! | `linked-next-store`, `-seen` | Release, Acquire → Relaxed | `a_block_is_reused_after_it_was_read`, by [`load_owned`] |
//! | `linked-free-store`, `-load` | Release, Acquire → Relaxed | `a_block_is_reused_after_it_was_read`, by [`load_owned`] |
//! | `linked-free-mark` | Release → Relaxed | `a_late_producer_links_nothing_to_a_reused_block` |
//! | `intent-store`, `-load` | Release, Acquire → Relaxed | `the_…_survives_a_death_at_each_step`: a living one's message is passed over |
//! | `intent-ignored`, `-kept` | announcements not looked at; not withdrawn | the same; and nobody is left to wait for, but it waits |
//! | `intent-of-the-dead` | who is known to be dead counts as living | `the_array_survives_two_deaths_at_one_place`: it waits for ever |
//! | `array-claim` | SeqCst → Relaxed | `the_array_survives_a_death_at_each_step`: a claim is seen without its announcement |
//! | `linked-claim-dead` | Release → Relaxed | the same for the list |
//! | `array-repair-tail`, `linked-repair-tail` | Acquire → Relaxed | the same: claimed by a living one, who seems to announce nothing |
//! | `linked-block-kept` | blocks of the dead are not given back | `the_list_survives_a_death_at_each_step`: the arena shrinks |
//!
//! **These survive**, and the script expects it, because loom takes a SeqCst access for an AcqRel one, and because its threads end
//! between two steps of the program, never with the later one done and the earlier one not:
//!
//! | mutant | weakened | why it is stronger all the same |
//! |---|---|---|
//! | `array-claim-seqcst`, `channel-waker-load` | SeqCst → Release, Relaxed | the channel's push: claim, then look for a sleeper. Under loom the fence of `channel-push-order` orders them |
//! | `channel-waker-store`, `array-is-claimed` | SeqCst → Relaxed | the other side: park, then look for a claim. Under loom the fence of `channel-park-order` |
//! | `linked-taken` | Release → Relaxed | the announcement of a block comes before the block is taken, whenever the producer dies |
//! | `linked-head` | Release → Relaxed | the consumer's successor: the message is read before it counts as taken |
//!
//! What else loom cannot show: it has no futex (a wait is a loop on the word), no time-outs, and no loads that run late,
//! which is why the rings read their slots with [`load_owned`].

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

/// Lets another thread of this core go on.
#[inline]
pub fn give_way() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Stands between two SeqCst accesses of which each sees the other side's first one or is seen by it. Natively nothing:
/// the accesses themselves are in the one order of everything SeqCst. Loom takes a SeqCst access for an AcqRel one and
/// has that order for fences only, so there it is a fence.
#[inline(always)]
pub fn seqcst_for_loom() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

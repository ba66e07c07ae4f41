//! Interfaces to the operating system: clocks, core pinning and core-to-core latency, priorities,
//! processes, files, the sandbox, containers; and work of a given duration. Independent of orders,
//! venues and plans.
//!
//! Its unsafe code is: reading the time stamp counter ([`clock`]), system calls that have no safe
//! wrapper, code between fork and exec, an entry that runs before `main` ([`before_main!`]), a
//! counting allocator ([`alloc`]), and the heaps, rights and signals of threads with protection
//! keys ([`keys`]). Atomics and shared memory are in the crate `shm`.

#[cfg(not(loom))]
pub mod alloc;
mod before_main;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod container;
#[cfg(not(loom))]
pub mod debugger;
#[cfg(not(loom))]
pub mod descriptors;
#[cfg(not(loom))]
pub mod dying;
#[cfg(not(loom))]
pub mod fault;
#[cfg(not(loom))]
pub mod floor;
#[cfg(not(loom))]
pub mod folder;
#[cfg(not(loom))]
pub mod fork;
#[cfg(not(loom))]
pub mod keys;
#[cfg(not(loom))]
pub mod memory;
mod named_enum;
#[cfg(not(loom))]
pub mod pair;
#[cfg(not(loom))]
pub mod pid_slot;
#[cfg(not(loom))]
pub mod pin;
#[cfg(not(loom))]
pub mod priority;
#[cfg(not(loom))]
pub mod process;
#[cfg(not(loom))]
pub mod robust;
#[cfg(not(loom))]
pub mod sandbox;
#[cfg(not(loom))]
pub mod speculation;
#[cfg(not(loom))]
pub mod start;
#[cfg(not(loom))]
pub mod storm;
#[cfg(not(loom))]
pub mod switch_price;
#[cfg(not(loom))]
pub mod usage;
pub mod wake;
#[cfg(not(loom))]
pub mod work;

/// Locks for a test while it has child processes: a test that waits for any child would reap those
/// of others.
#[cfg(test)]
pub(crate) fn only_one_has_children() -> std::sync::MutexGuard<'static, ()> {
    static CHILDREN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    CHILDREN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

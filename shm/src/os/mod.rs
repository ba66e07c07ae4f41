//! What is asked of the operating system: futexes, pinning, priorities, processes, a thread's own figures.

#[cfg(not(loom))]
pub mod descriptors;
#[cfg(not(loom))]
pub mod fault;
#[cfg(not(loom))]
pub mod folder;
pub mod futex;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod pin;
#[cfg(not(loom))]
pub mod priority;
#[cfg(not(loom))]
pub mod process;
#[cfg(not(loom))]
pub mod sandbox;
#[cfg(not(loom))]
pub mod usage;

/// For a test that has children, while it has them: one waits for any child of the process, and would take another's.
#[cfg(test)]
pub(crate) fn only_one_has_children() -> std::sync::MutexGuard<'static, ()> {
    static CHILDREN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    CHILDREN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

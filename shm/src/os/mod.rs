//! What is asked of the operating system: futexes, pinning, priorities, processes, a thread's own figures.

#[cfg(not(loom))]
pub mod descriptors;
#[cfg(not(loom))]
pub mod fault;
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

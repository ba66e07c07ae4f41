//! What is asked of the operating system: futexes, pinning, processes, a thread's own figures.

pub mod futex;
#[cfg(not(loom))]
pub mod pin;
#[cfg(not(loom))]
pub mod process;
#[cfg(not(loom))]
pub mod sandbox;
#[cfg(not(loom))]
pub mod usage;

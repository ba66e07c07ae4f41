//! The facts of the host from which a plan is made and with which a figure is quoted.

pub mod cgroups;
#[cfg(any(test, feature = "fixtures"))]
pub mod fake;
mod files;
mod kernel;
pub mod locks;
mod memory;
mod read;
mod realtime;
pub mod signals;
mod switching;
mod system;

pub use kernel::KernelCounts;
pub use memory::MemoryFacts;
pub use read::{FsSpace, machine};
pub use realtime::RealTime;
pub use system::System;
#[cfg(any(test, feature = "fixtures"))]
pub use system::{Limits, Mount};

pub use record::machine::Machine;

use std::path::Path;

/// Returns the directory with this machine's `proc` and `sys`.
pub fn root() -> &'static Path {
    Path::new("/")
}

//! The memory and the pipe of a queue in sealed memory.

use super::error::QueueError;
use super::wake;
use crate::memory::{Region, RegionError};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// The stand-in for the name of a queue without one, in its headers and in error messages.
pub(super) const SEALED: &str = "sealed";
/// The name in `/proc` of the memory of a queue without a name.
pub(super) const MEMORY: &str = "bulkhead-queue.sealed";

pub(super) struct SealedMemory {
    pub(super) region: Arc<Region>,
    pub(super) pipe: File,
}

impl SealedMemory {
    pub(super) fn open_pipe(&self) -> Result<File, QueueError> {
        Ok(wake::reopen_pipe(&self.pipe).map_err(os("open its pipe again"))?)
    }

    pub(super) fn duplicate(&self) -> Result<Self, QueueError> {
        let pipe = self.pipe.try_clone().map_err(os("duplicate its pipe"))?;
        Ok(Self { region: Arc::clone(&self.region), pipe })
    }
}

pub(super) fn os(what: &'static str) -> impl FnOnce(io::Error) -> RegionError {
    RegionError::os(MEMORY, what)
}

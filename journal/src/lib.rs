#![doc = include_str!("../README.md")]
//!
//! The write-ahead log is a directory of segments: preallocated files of a fixed size, mapped by
//! the writer ([`format`](mod@format) documents the bytes). A record becomes visible with one store
//! of its first word, the last of its stores. Readers use `pread` and map nothing, so that a file
//! truncated under them is an error and not a SIGBUS. A helper thread prepares the next segment and
//! writes the snapshots; under group commit another thread calls `fdatasync`. A failed `fdatasync`
//! is final: see [`JournalError::Failed`].
#![deny(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    reason = "no loom models here, and no dependency on the crate that has the shims"
)]

#[cfg(not(target_os = "linux"))]
compile_error!("bulkhead-journal needs Linux");

pub mod codec;
mod disk;
mod encoder;
mod error;
mod files;
mod follower;
pub mod format;
mod helper;
mod input_log;
mod lock;
mod mapping;
mod outbox;
mod reader;
mod recovery;
mod segment;
mod shared;
mod snapshot;
pub mod tool;
mod writer;

pub use disk::{Disk, DiskOperation, FailingDisk, OsDisk};
pub use error::{JournalError, RecoveryError};
pub use follower::{JournalFollower, State};
pub use input_log::InputLog;
pub use lock::{LOCK_FILE, lock_directory};
pub use outbox::Outbox;
pub use reader::{OwnedRecord, Reader, Record, Records};
pub use recovery::{LogEnd, Recovered, follow, recover};
pub use segment::index_of;
pub use shared::Watermark;
pub use snapshot::write_snapshot;
pub use writer::{Durability, Options, Writer};

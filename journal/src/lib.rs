//! A write-ahead log with snapshots: one writer, any number of readers that follow it live, exact
//! recovery after a crash.
//!
//! ```
//! use journal::{Durability, Options, Recovered, Writer};
//! let folder = tempfile::tempdir()?;
//! let options = Options { durability: Durability::Process, segment_bytes: 1 << 16, ..Options::default() };
//! let mut writer = Writer::open(folder.path(), &options, |_| {})?;
//! assert_eq!(writer.append(b"buy 3 at 100")?, 1);
//! drop(writer);
//! let mut found = Vec::new();
//! Writer::open(folder.path(), &options, |part| {
//!     if let Recovered::Record { sequence, payload } = part {
//!         found.push((sequence, payload.to_vec()));
//!     }
//! })?;
//! assert_eq!(found, [(1, b"buy 3 at 100".to_vec())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What each durability promises
//!
//! | [`Durability`] | when `append` returns, the record survives | system calls of an append |
//! |---|---|---|
//! | `None` | nothing: it is encoded into memory that no file backs | none |
//! | `Process` | any death of the process (SIGKILL at any instruction), not the machine's | none |
//! | `Group` | as `Process`; the machine's as soon as [`Watermark::durable`] has reached it | none |
//! | `Each` | the machine's | one `fdatasync` |
//!
//! With all of them, what is recovered is an exact prefix of what was appended: never a changed
//! record, never one out of order, never one twice. Under `Group` and `Each` the prefix holds
//! everything up to the watermark, if the disk keeps its word about `fdatasync`.
//!
//! # How
//! Records stand in segments: preallocated files of a fixed size, mapped by the writer
//! ([`format`](mod@format) has the bytes). A record comes to be with one store of its first word,
//! the last of its stores. Readers never map anything: they use `pread`, so that a file that
//! somebody cuts off under them is an error and not a SIGBUS. A thread prepares the next segment
//! ahead and writes the snapshots; under `Group` another one calls `fdatasync`. A refused
//! `fdatasync` is final: see [`JournalError::Failed`].
#![forbid(unsafe_code)]

pub mod codec;
mod disk;
mod error;
mod follower;
pub mod format;
mod helper;
mod input_log;
mod outbox;
mod reader;
mod recovery;
mod segment;
mod shared;
mod snapshot;
pub mod tool;
mod writer;

pub use disk::{Disk, Os, Refusing, Step};
pub use error::{JournalError, RecoveryError};
pub use follower::{JournalFollower, State};
pub use input_log::InputLog;
pub use outbox::Outbox;
pub use reader::{Reader, Record};
pub use recovery::{End, Recovered, follow, recover};
pub use segment::index_of;
pub use shared::Watermark;
pub use snapshot::write_beside;
pub use writer::{Durability, Options, Writer};

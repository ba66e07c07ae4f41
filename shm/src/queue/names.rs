//! Names of queues, and of their files in `/dev/shm`.

use super::error::QueueError;
use crate::memory::is_valid_name;

/// The prefix of the names of all files of all queues in `/dev/shm`; the queue's name and a dot
/// follow.
pub const PREFIX: &str = "bulkhead-queue.";

pub(super) fn segment_name(queue: &str, what: &str) -> String {
    format!("{PREFIX}{queue}.{what}")
}

/// Returns an error for a queue name that is empty, too long or unusable as a file name in
/// `/dev/shm`.
pub(super) fn check_name(name: &str) -> Result<(), QueueError> {
    if is_valid_name(name) { Ok(()) } else { Err(QueueError::Name(name.into())) }
}

//! Logs that were cut between two records: nothing in them is wrong, only their end is missing.

use crate::document::Document;
use crate::summary::Summary;
use protocol::status::{StatusField, ThreadState, ThreadStatus};
use std::path::Path;

/// How many records each thread's log had when the run was merged: from `summary.json`, if there is
/// one.
pub(super) struct Merged(Vec<(String, u64)>);

impl Merged {
    /// Of that folder.
    pub(super) fn of(folder: &Path) -> Self {
        let threads = Summary::read(folder).map(|summary| summary.processes).unwrap_or_default();
        let known = threads.into_iter().filter(|thread| !thread.untrusted);
        Self(known.map(|thread| (thread.role, thread.records)).collect())
    }

    /// What is missing at the end of a log of that thread, if anything is; `sums`: how many
    /// checksums it holds.
    pub(super) fn missing(
        &self,
        thread: &str,
        status: &ThreadStatus,
        records: u64,
        sums: u64,
    ) -> Option<String> {
        let merged = self.0.iter().find(|(name, _)| name == thread).map(|(_, records)| *records);
        if let Some(merged) = merged.filter(|merged| *merged > records) {
            return Some(format!("{records} records, and {merged} when the run was merged: cut short since"));
        }
        // Exchanges on threads of their own have no link that is summed up.
        let has_links = !thread.starts_with("exchange");
        // A log that was full had no room for them, and says so itself.
        let is_closed = status.state() == ThreadState::Done && status.get(StatusField::RecordsDropped) == 0;
        (is_closed && has_links && sums == 0).then(|| {
            format!("{records} records and no checksums, which a log that was closed ends with: cut short")
        })
    }
}

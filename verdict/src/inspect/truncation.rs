//! Detection of logs that were truncated between two records: each record is valid, only the end is
//! missing.

use crate::summary::Summary;
use protocol::status::{StatusField, ThreadState, ThreadStatus};
use record::document::Document;
use std::path::Path;

/// Roles whose own threads log no checksums: exchanges, and the ends of benchmarks.
const WITHOUT_CHECKSUMS: [&str; 5] = ["exchange", "producer", "consumer", "writer", "reader"];

/// The number of records of each thread's log when the run was merged; a shorter log was truncated
/// since.
pub(super) struct MergedCounts(Vec<(String, u64)>);

impl MergedCounts {
    /// Reads the numbers of records from the folder of a run; empty without a summary.
    pub(super) fn read(folder: &Path) -> Self {
        let threads = Summary::read(folder).map(|summary| summary.processes).unwrap_or_default();
        let trusted = threads.into_iter().filter(|thread| !thread.untrusted);
        Self(trusted.map(|thread| (thread.role, thread.records)).collect())
    }

    /// Returns what is missing at the end of a thread's log, as text; `None` if the log is
    /// complete. `sums` is the number of checksums in the log.
    pub(super) fn missing_tail(
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
        let has_links = !WITHOUT_CHECKSUMS.iter().any(|role| thread.starts_with(role));
        // A full log has no space for checksums; its status reports that.
        let is_closed = status.state() == ThreadState::Done && status.get(StatusField::RecordsDropped) == 0;
        (is_closed && has_links && sums == 0).then(|| {
            format!("{records} records and no checksums, which a log that was closed ends with: cut short")
        })
    }
}

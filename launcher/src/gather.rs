//! Saves the stamp logs of a run in its folder: each thread's segment, cut after its last record.

use anyhow::{Context, Result};
use shm::memory::Words;
use shm::memory::region::SHM_DIR;
use shm::plan::Plan;
use shm::segments::thread_segment;
use shm::stamps::{RECORD_BYTES, count_records};
use shm::status::LOG_OFFSET;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The file of a thread's log within the run's folder.
pub fn log_file(thread: &str) -> String {
    format!("{thread}.stamps")
}

/// Copies each thread's log, inside the kernel where it can, and returns how many records each holds.
///
/// # Errors
/// A folder that cannot be written, a full disk.
pub fn gather(plan: &Plan, threads: &[Words], folder: &Path) -> Result<Vec<usize>> {
    let mut counts = Vec::new();
    for (thread, segment) in plan.threads.iter().zip(threads) {
        let records = count_records(segment);
        let bytes = (LOG_OFFSET * 8 + records * RECORD_BYTES) as u64;
        let path = folder.join(log_file(&thread.name));
        let save = || {
            let from = File::open(format!("{SHM_DIR}/{}", plan.segment_name(&thread_segment(&thread.name))))?;
            std::io::copy(&mut from.take(bytes), &mut File::create(&path)?)
        };
        save().with_context(|| format!("cannot save the log of {} as {}", thread.name, path.display()))?;
        counts.push(records);
    }
    Ok(counts)
}

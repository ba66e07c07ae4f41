//! Saves the stamp logs of a run in its folder: each thread's segment, cut after its last record. The header is what it was
//! when the segment was created, whatever a strategy has made of it.

use anyhow::{Context, Result};
use protocol::plan::Plan;
use protocol::segments::thread_header;
use protocol::stamps::{RECORD_WORDS, count_records};
use protocol::status::LOG_OFFSET;
use shm::memory::View;
use shm::sync::Ordering;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Words that are copied out and written at a time: 1 MiB.
const CHUNK: usize = 1 << 17;

/// The file of a thread's log within the run's folder.
pub fn log_file(thread: &str) -> String {
    format!("{thread}.stamps")
}

/// Saves each thread's log.
///
/// # Errors
/// A folder that cannot be written, a full disk.
pub fn gather(plan: &Plan, threads: &[View], folder: &Path) -> Result<()> {
    for (index, (thread, segment)) in plan.threads.iter().zip(threads).enumerate() {
        let path = folder.join(log_file(&thread.name));
        save(&thread_header(plan, index), segment, &path)
            .with_context(|| format!("cannot save the log of {} as {}", thread.name, path.display()))?;
    }
    Ok(())
}

fn save(header: &[u64], segment: &View, path: &Path) -> std::io::Result<()> {
    write(header, segment, &mut File::create(path)?)
}

/// Writes one thread's log: `header`, which goes before what the segment has there, then status block and records.
///
/// # Errors
/// What `out` refused.
pub fn write(header: &[u64], segment: &View, out: &mut impl Write) -> std::io::Result<()> {
    let words = LOG_OFFSET + count_records(segment) * RECORD_WORDS;
    let mut bytes = Vec::with_capacity(CHUNK.min(words) * 8);
    for start in (0..words).step_by(CHUNK) {
        bytes.clear();
        for index in start..words.min(start + CHUNK) {
            // Relaxed: the records below the count are complete, the thread that wrote them has ended.
            let word = header.get(index).copied().unwrap_or_else(|| segment.load(index, Ordering::Relaxed));
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

//! The spiller: a process that moves full chunks of stamp logs from shared memory into the run's
//! folder during the run ([`protocol::spill`]). The files are those in which logs are saved anyway;
//! the tail still in memory at the end is appended.
//!
//! No process waits for the spiller, and it waits for none: the threads of the run only see that
//! chunks are free again. It polls, moves full chunks and sleeps, on a core of its own if there is
//! one. If it dies, the launcher starts another one, which continues where it was. It locks the
//! files that it writes, so that the process that saves a log's tail can check whether a spiller
//! still writes it.

use crate::runtime::progress::complain;
use crate::runtime::setup;
use analysis::logfile::{RECORDS_AT, file_name};
use anyhow::{Context, Result};
use protocol::plan::Plan;
use protocol::segments::{self, log_header};
use protocol::spill::{CHUNK_BYTES, ChunkSpiller, UnspilledTail};
use protocol::status::LOG_OFFSET;
use protocol::topology;
use shm::memory::{ReadOnlyWords, lock, sigbus};
use shm::sync::Ordering;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use system::folder::OpenDir;
use system::{pin, process};

pub const NAME: &str = "spill";
/// Sleep while no chunk is full. A ring has room for many times what is logged in that time.
const PAUSE: Duration = Duration::from_millis(5);
/// Sleep after a file could not be written.
const AFTER_ERROR: Duration = Duration::from_millis(200);
/// Maximum wait for a spiller's lock before saving a tail: the spiller dies with its launcher.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Moves full chunks of a run's logs to disk until the launcher kills this process, or until the
/// launcher dies.
pub fn run(run: &str) -> Result<()> {
    let (_control, plan) = setup::open_control(run)?;
    process::set_thread_name("bulkhead-spill");
    // Without it a truncated segment kills the spiller, and it is restarted.
    let _ = sigbus::install_handler();
    process::die_with_parent(plan.launcher_pid).context("cannot watch the launcher")?;
    let spill = plan.spill.as_ref().context("this run spills nothing")?;
    if let Some(core) = spill.core {
        // Otherwise it runs on any core: slower, and no process waits for it.
        let _ = pin::pin_beyond_mask(core);
    }
    let mut threads = open(&plan, Path::new(&plan.folder))?;
    let mut said = false;
    loop {
        match move_chunks(&mut threads) {
            Ok(true) => {}
            Ok(false) => std::thread::sleep(PAUSE),
            Err(error) => {
                if !std::mem::replace(&mut said, true) {
                    complain(&format!("spill: cannot write, and tries again: {error}"));
                }
                std::thread::sleep(AFTER_ERROR);
            }
        }
    }
}

/// Moves one chunk of each thread that has a full one. Returns `true` if there was any. Every
/// thread is tried, whatever fails for one.
fn move_chunks(threads: &mut [(ChunkSpiller, File)]) -> io::Result<bool> {
    let mut moved = Ok(false);
    for (drain, file) in threads {
        let step = drain.spill_next(|chunk, bytes| save(file, chunk, bytes));
        moved = moved.and_then(|moved| step.map(|step| step || moved));
    }
    moved
}

fn save(file: &File, chunk: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, RECORDS_AT + chunk * CHUNK_BYTES)
}

/// Opens each thread's ring and file. Until the tail is appended, a file is complete up to what is
/// still in memory.
fn open(plan: &Plan, folder: &Path) -> Result<Vec<(ChunkSpiller, File)>> {
    let mut attached = segments::attach_as_spiller(plan);
    let place = OpenDir::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    let mut threads = Vec::new();
    for (index, thread) in plan.threads.iter().enumerate() {
        let log = segments::thread(&mut attached, &thread.name)?;
        let spilled = segments::spilled_writer(&mut attached, &thread.name)?;
        let name = file_name(&thread.name);
        let file = place.edit(&name).and_then(|file| {
            lock::lock_shared(&file)?;
            write_front(plan, index, &log.clone().into(), &file)?;
            Ok(file)
        });
        let file = file.with_context(|| format!("cannot write {}", folder.join(name).display()))?;
        let ring = topology::log_ring(plan, index).context("this run spills nothing")?;
        threads.push((ChunkSpiller::new(log, spilled, ring), file));
    }
    Ok(threads)
}

/// Writes the front of a log file: the log's header, and the thread's current status.
fn write_front(plan: &Plan, index: usize, log: &ReadOnlyWords, file: &File) -> io::Result<()> {
    let header = log_header(plan, index);
    let word = |at: usize| header.get(at).copied().unwrap_or_else(|| log.load(at, Ordering::Relaxed));
    let front: Vec<u8> = (0..LOG_OFFSET).flat_map(|at| word(at).to_le_bytes()).collect();
    file.write_all_at(&front, 0)
}

/// Completes the saved log of a thread: its header, and the records that are still in memory.
/// Changes nothing in memory, so it can be repeated.
///
/// # Errors
/// A failed system call, a spiller that still writes the file, or a file that lacks chunks.
pub(super) fn finish(
    plan: &Plan,
    index: usize,
    log: &ReadOnlyWords,
    spilled: &ReadOnlyWords,
    place: &OpenDir,
    name: &str,
) -> io::Result<()> {
    let Some(ring) = topology::log_ring(plan, index) else { return Err(invalid("this log is not spilled")) };
    let mut file = place.edit(name)?;
    let since = Instant::now();
    while lock::is_locked(&file)? {
        if since.elapsed() > LOCK_TIMEOUT {
            return Err(invalid("a spiller still writes it"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let rest = UnspilledTail::new(log, spilled, ring);
    let saved = rest.saved();
    if spilled.is_lost() {
        // How much of the file is valid is unknown: all complete chunks stay, and nothing is added.
        let chunks = file.metadata()?.len().saturating_sub(RECORDS_AT) / CHUNK_BYTES;
        file.set_len(RECORDS_AT + chunks * CHUNK_BYTES)?;
        return write_front(plan, index, log, &file);
    }
    let end = RECORDS_AT + saved * CHUNK_BYTES;
    if saved > 0 && file.metadata()?.len() < end {
        return Err(invalid("chunks that were moved to it are not in it: somebody has cut it"));
    }
    // A spiller that died may have written a chunk without recording it.
    file.set_len(end)?;
    io::Seek::seek(&mut file, io::SeekFrom::Start(end))?;
    rest.for_each_chunk(|bytes| file.write_all(bytes))?;
    write_front(plan, index, log, &file)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;

//! The spiller: a process that moves full chunks of stamp logs from shared memory into the run's
//! folder, while the run goes on ([`protocol::spill`] says how). The files are those that logs are
//! saved in anyway; what is still in memory at the end is appended to them.
//!
//! It waits for nobody and nobody waits for it: the threads of the run see only that chunks are
//! free again. It looks, moves what is there and sleeps, on a core of its own where there is one.
//! If it dies, the launcher starts another one (`super::spilling`), which goes on where this one
//! was. It holds a lock on the files that it writes, so that whoever saves the rest of a log can
//! tell that no spiller is at it.

use crate::runtime::progress::complain;
use crate::runtime::setup;
use analysis::logfile::{RECORDS_AT, file_name};
use anyhow::{Context, Result};
use protocol::plan::Plan;
use protocol::segments::{self, log_header};
use protocol::spill::{CHUNK_BYTES, Drain, UnspilledTail};
use protocol::status::LOG_OFFSET;
use protocol::topology;
use shm::memory::{ReadOnlyWords, lock, sigbus};
use shm::sync::Ordering;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use system::folder::OpenFolder;
use system::{pin, process};

pub const NAME: &str = "spill";
/// How long it sleeps when no chunk is full. A ring has room for many times what is logged
/// meanwhile.
const PAUSE: Duration = Duration::from_millis(5);
/// The same after a file could not be written.
const AFTER_ERROR: Duration = Duration::from_millis(200);
/// How long somebody who saves the rest waits for a spiller to be gone: it dies with its launcher.
const PATIENCE: Duration = Duration::from_secs(10);

/// Moves chunks until it is killed: by the launcher when the run is over, or with it.
pub fn run(run: &str) -> Result<()> {
    let (_control, plan) = setup::open_control(run)?;
    process::set_thread_name("bulkhead-spill");
    // Without it a segment that somebody truncates ends the spiller, and it is started again.
    let _ = sigbus::install_handler();
    process::die_with_parent(plan.launcher_pid).context("cannot watch the launcher")?;
    let spill = plan.spill.as_ref().context("this run spills nothing")?;
    if let Some(core) = spill.core {
        // Else it runs where it may: it is slower then, and nobody waits for it.
        let _ = pin::move_to(core);
    }
    let mut threads = open(&plan, Path::new(&plan.folder))?;
    let mut said = false;
    loop {
        match round(&mut threads) {
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

/// A chunk of each thread that has one that is full; whether there was one. All are tried, whatever
/// goes wrong with one.
fn round(threads: &mut [(Drain, File)]) -> io::Result<bool> {
    let mut moved = Ok(false);
    for (drain, file) in threads {
        let step = drain.step(|chunk, bytes| save(file, chunk, bytes));
        moved = moved.and_then(|moved| step.map(|step| step || moved));
    }
    moved
}

fn save(file: &File, chunk: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, RECORDS_AT + chunk * CHUNK_BYTES)
}

/// Each thread's ring and file. A file is what it would be if the run ended now, but for what is
/// still in memory.
fn open(plan: &Plan, folder: &Path) -> Result<Vec<(Drain, File)>> {
    let mut attached = segments::attach_as_spiller(plan);
    let place = OpenFolder::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    let mut threads = Vec::new();
    for (index, thread) in plan.threads.iter().enumerate() {
        let log = segments::thread(&mut attached, &thread.name)?;
        let spilled = segments::spilling(&mut attached, &thread.name)?;
        let name = file_name(&thread.name);
        let file = place.edit(&name).and_then(|file| {
            lock::lock_shared(&file)?;
            write_front(plan, index, &log.clone().into(), &file)?;
            Ok(file)
        });
        let file = file.with_context(|| format!("cannot write {}", folder.join(name).display()))?;
        let ring = topology::ring(plan, index).context("this run spills nothing")?;
        threads.push((Drain::new(log, spilled, ring), file));
    }
    Ok(threads)
}

/// What stands before the records: the log's header, and what the thread says of itself now.
fn write_front(plan: &Plan, index: usize, log: &ReadOnlyWords, file: &File) -> io::Result<()> {
    let header = log_header(plan, index);
    let word = |at: usize| header.get(at).copied().unwrap_or_else(|| log.load(at, Ordering::Relaxed));
    let front: Vec<u8> = (0..LOG_OFFSET).flat_map(|at| word(at).to_le_bytes()).collect();
    file.write_all_at(&front, 0)
}

/// Makes a thread's file whole: what stands before the records as it is now, and behind the chunks
/// that were moved what is still in memory. Changes nothing in memory, so it can be done again.
///
/// # Errors
/// What the system refused; a spiller that is still at it; a file that lacks chunks.
pub(super) fn finish(
    plan: &Plan,
    index: usize,
    log: &ReadOnlyWords,
    spilled: &ReadOnlyWords,
    place: &OpenFolder,
    name: &str,
) -> io::Result<()> {
    let Some(ring) = topology::ring(plan, index) else { return Err(invalid("this log is not spilled")) };
    let mut file = place.edit(name)?;
    let since = Instant::now();
    while lock::is_locked(&file)? {
        if since.elapsed() > PATIENCE {
            return Err(invalid("a spiller still writes it"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let rest = UnspilledTail::new(log, spilled, ring);
    let saved = rest.saved();
    if spilled.is_lost() {
        // How much of the file is good cannot be told any more: all whole chunks of it stay, and
        // nothing is added.
        let chunks = file.metadata()?.len().saturating_sub(RECORDS_AT) / CHUNK_BYTES;
        file.set_len(RECORDS_AT + chunks * CHUNK_BYTES)?;
        return write_front(plan, index, log, &file);
    }
    let end = RECORDS_AT + saved * CHUNK_BYTES;
    if saved > 0 && file.metadata()?.len() < end {
        return Err(invalid("chunks that were moved to it are not in it: somebody has cut it"));
    }
    // What a spiller wrote that died before it said so.
    file.set_len(end)?;
    io::Seek::seek(&mut file, io::SeekFrom::Start(end))?;
    rest.each(|bytes| file.write_all(bytes))?;
    write_front(plan, index, log, &file)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;

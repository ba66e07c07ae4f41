//! Saves the stamp logs of a run in its folder: each thread's segment, cut after its last record.
//! The header is what it was when the segment was created, whatever a strategy has made of it.
//!
//! A log that cannot be saved (a full disk) is not lost: it stays in `/dev/shm` under its segment's
//! name until it is rescued into the folder (`launcher report FOLDER`) or removed (`launcher
//! clean`).

use crate::runtime::spill;
use analysis::logfile::{file_name, write};
use anyhow::{Context, Result};
use core::fmt;
use protocol::plan::Plan;
use protocol::segments::{CONTROL, log_header, spilled_segment, thread_segment};
use protocol::stamps::RECORD_BYTES;
use protocol::status::LOG_OFFSET;
use shm::memory::{ReadOnlyWords, Region};
use shm::memory::{SHM_DIR, unlink};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use system::folder::{Draft, OpenDir};

/// Logs that could not be saved in the run's folder, and where they are instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsaved {
    /// The segments in `/dev/shm` that hold them.
    pub segments: Vec<String>,
    /// The threads whose logs are not even there: only what their file has of them is left.
    pub lost: Vec<String>,
    /// Why the first could not be saved.
    pub why: String,
    pub folder: String,
}

impl std::error::Error for Unsaved {}

impl fmt::Display for Unsaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segments, lost, why, folder } = self;
        f.write_str(why)?;
        if !lost.is_empty() {
            write!(
                f,
                "; cut short, with no room for them in {SHM_DIR} either: the logs of {}",
                lost.join(", ")
            )?;
        }
        if !segments.is_empty() {
            let many = segments.len();
            write!(
                f,
                "; {many} logs stay in {SHM_DIR} ({}, …): make room, then `launcher report {folder}` saves them there and \
                 reports; `launcher clean` throws them away",
                segments[0]
            )?;
        }
        Ok(())
    }
}

/// The logs of a run as they are in memory, in the order of the plan's threads. `None`: that
/// segment cannot be mapped.
#[derive(Clone, Copy)]
pub struct Logs<'a> {
    pub threads: &'a [Option<ReadOnlyWords>],
    /// What the spiller says of each; empty where no log is spilled.
    pub spilled: &'a [Option<ReadOnlyWords>],
}

/// Saves each thread's log; where it is spilled, the rest of it: no spiller may be at it any more.
/// What cannot be saved stays in `/dev/shm`, or is put there if its segment has no name.
///
/// # Errors
/// [`Unsaved`]: a folder that cannot be written, a full disk. All other logs are saved.
pub fn gather(plan: &Plan, logs: Logs<'_>, folder: &Path) -> Result<(), Unsaved> {
    let place = OpenDir::open(folder);
    let mut unsaved: Option<Unsaved> = None;
    for (index, (thread, segment)) in plan.threads.iter().zip(logs.threads).enumerate() {
        // What is left of one that cannot be mapped is what its file has already.
        let Some(segment) = segment else { continue };
        let file = file_name(&thread.name);
        let header = log_header(plan, index);
        let spilled = match logs.spilled.get(index) {
            Some(None) => continue,
            spilled => spilled.and_then(Option::as_ref),
        };
        let saved = match (&place, spilled) {
            (Err(error), _) => Err(Half::of(io::Error::new(error.kind(), error.to_string()))),
            (Ok(place), Some(spilled)) => {
                spill::finish(plan, index, segment, spilled, place, &file).map_err(Half::of)
            }
            (Ok(place), None) => save(place, &file, &header, segment),
        };
        let Err(Half { error, draft }) = saved else { continue };
        let unsaved = unsaved.get_or_insert_with(|| Unsaved {
            segments: Vec::new(),
            lost: Vec::new(),
            why: format!(
                "cannot save the log of {} as {}: {error}",
                thread.name,
                folder.join(&file).display()
            ),
            folder: folder.display().to_string(),
        });
        let name = plan.segment_name(&thread_segment(&thread.name));
        let there = Path::new(SHM_DIR).join(&name);
        if spilled.is_some() {
            // Part of it is in the file, and part in memory: both stay, if memory has a name.
            if there.exists() {
                unsaved.segments.push(plan.segment_name(&spilled_segment(&thread.name)));
                unsaved.segments.push(name);
            } else {
                unsaved.lost.push(thread.name.clone());
                if let Ok(file) =
                    place.as_ref().map_err(drop).and_then(|place| place.edit(&file).map_err(drop))
                {
                    cut(&file);
                }
            }
            continue;
        }
        if there.exists()
            || create_private(&there).and_then(|mut file| write(&header, segment, &mut file)).is_ok()
        {
            // The segment has all of it, so the draft goes.
            unsaved.segments.push(name);
        } else {
            let _ = fs::remove_file(&there);
            unsaved.lost.push(thread.name.clone());
            if let Some(draft) = draft {
                cut(draft.file());
                let _ = draft.save();
            }
        }
    }
    unsaved.map_or(Ok(()), Err)
}

/// Saves the logs of a dead run that stayed in `/dev/shm`, and removes them there; how many there
/// were.
///
/// # Errors
/// One that cannot be read, or still cannot be saved: it stays.
pub fn rescue(plan: &Plan, folder: &Path) -> Result<usize> {
    let mut rescued = 0;
    // While there is a control segment, the run lives or its warden is about to do it.
    if Path::new(SHM_DIR).join(plan.segment_name(CONTROL)).exists() {
        return Ok(rescued);
    }
    let place = OpenDir::open(folder).with_context(|| folder.display().to_string())?;
    for (index, thread) in plan.threads.iter().enumerate() {
        let name = plan.segment_name(&thread_segment(&thread.name));
        if !Path::new(SHM_DIR).join(&name).exists() {
            continue;
        }
        let log = Region::open_read_only(&name)?;
        let spilled_name = plan.segment_name(&spilled_segment(&thread.name));
        let spilled = plan.spill.as_ref().map(|_| Region::open_read_only(&spilled_name)).transpose()?;
        if log.len() >= LOG_OFFSET {
            let file = file_name(&thread.name);
            let saved = match &spilled {
                Some(spilled) => spill::finish(plan, index, &log, spilled, &place, &file),
                None => save(&place, &file, &log_header(plan, index), &log).map_err(|half| half.error),
            };
            let path = folder.join(file);
            saved.with_context(|| format!("cannot save the log of {} as {}", thread.name, path.display()))?;
            rescued += 1;
        }
        unlink(&name).with_context(|| format!("cannot remove {SHM_DIR}/{name}"))?;
        if spilled.is_some() {
            unlink(&spilled_name).with_context(|| format!("cannot remove {SHM_DIR}/{spilled_name}"))?;
        }
    }
    Ok(rescued)
}

/// A log that was not saved: why, and the file with what found room.
struct Half<'a> {
    error: io::Error,
    draft: Option<Draft<'a>>,
}

impl Half<'_> {
    const fn of(error: io::Error) -> Self {
        Self { error, draft: None }
    }
}

fn save<'a>(place: &'a OpenDir, name: &str, header: &[u64], log: &ReadOnlyWords) -> Result<(), Half<'a>> {
    let mut draft = place.draft(name).map_err(Half::of)?;
    match write(header, log, &mut draft) {
        Ok(()) => draft.save().map_err(Half::of),
        Err(error) => Err(Half { error, draft: Some(draft) }),
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Cuts a log whose disk was full after its last whole record.
fn cut(file: &File) {
    let Ok(bytes) = file.metadata().map(|facts| facts.len()) else { return };
    let _ = file.set_len(bytes - bytes % RECORD_BYTES as u64);
}

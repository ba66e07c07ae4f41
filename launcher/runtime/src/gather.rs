//! Saves the stamp logs of a run in its folder: each thread's segment, cut after its last record.
//! The header is the one written at creation, whatever a strategy has overwritten.
//!
//! A log that cannot be saved (a full disk) stays in `/dev/shm` under its segment's name until it
//! is saved into the folder (`launcher report FOLDER`) or removed (`launcher clean`).

use anyhow::{Context, Result};
use core::fmt;
use protocol::plan::Plan;
use protocol::segments::{CONTROL, thread_header, thread_segment};
use protocol::stamps::RECORD_BYTES;
use protocol::status::LOG_OFFSET;
use record::logfile::{file_name, write};
use shm::memory::{ReadOnlyWords, Region};
use shm::memory::{SHM_DIR, unlink};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use system::folder::{Draft, OpenDir};

/// The error that logs of order timestamps (stamps) could not be saved in the run's folder, with
/// the places where they remain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsavedLogs {
    /// The segments in `/dev/shm` that hold the logs.
    pub segments: Vec<String>,
    /// Threads whose logs are not in `/dev/shm` either, so that only the part in the file remains.
    pub lost: Vec<String>,
    /// Why they could not be saved, one line.
    pub why: String,
    /// Name of the run's folder.
    pub folder: String,
}

impl std::error::Error for UnsavedLogs {}

impl fmt::Display for UnsavedLogs {
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

/// Saves each thread's stamp log (its timestamps of orders) in the run's folder. `logs` are those
/// of the plan's threads in order; `None`: the segment cannot be mapped. A log that cannot be saved
/// stays in `/dev/shm`, or is copied there if its segment has no name.
pub fn gather(plan: &Plan, logs: &[Option<ReadOnlyWords>], folder: &Path) -> Result<(), UnsavedLogs> {
    let place = OpenDir::open(folder);
    let mut unsaved: Option<UnsavedLogs> = None;
    for (index, (thread, segment)) in plan.threads.iter().zip(logs).enumerate() {
        let Some(segment) = segment else { continue };
        let file = file_name(&thread.name);
        let header = thread_header(plan, index);
        let saved = match &place {
            Err(error) => Err((io::Error::new(error.kind(), error.to_string()), None)),
            Ok(place) => save(place, &file, &header, segment),
        };
        let Err((error, draft)) = saved else { continue };
        let unsaved = unsaved.get_or_insert_with(|| UnsavedLogs {
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
        let create = || File::options().write(true).create_new(true).mode(0o600).open(&there);
        if there.exists() || create().and_then(|mut file| write(&header, segment, &mut file)).is_ok() {
            // The segment has all of it, so the draft goes.
            unsaved.segments.push(name);
        } else {
            let _ = fs::remove_file(&there);
            unsaved.lost.push(thread.name.clone());
            if let Some(draft) = draft {
                // After the last complete record.
                let bytes = draft.file().metadata().map_or(0, |facts| facts.len());
                let _ = draft.file().set_len(bytes - bytes % RECORD_BYTES as u64);
                let _ = draft.save();
            }
        }
    }
    unsaved.map_or(Ok(()), Err)
}

/// Saves the stamp logs of a dead run that remained in `/dev/shm`, and removes them there. Returns
/// their number.
pub fn rescue(plan: &Plan, folder: &Path) -> Result<usize> {
    let mut rescued = 0;
    // While there is a control segment, the run is active or its reaper is about to save the logs.
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
        if log.len() >= LOG_OFFSET {
            let file = file_name(&thread.name);
            let saved = save(&place, &file, &thread_header(plan, index), &log).map_err(|(error, _)| error);
            let path = folder.join(file);
            saved.with_context(|| format!("cannot save the log of {} as {}", thread.name, path.display()))?;
            rescued += 1;
        }
        unlink(&name).with_context(|| format!("cannot remove {SHM_DIR}/{name}"))?;
    }
    Ok(rescued)
}

/// Saves a log. An error comes with the draft of what was written, if there is one.
fn save<'a>(
    place: &'a OpenDir,
    name: &str,
    header: &[u64],
    log: &ReadOnlyWords,
) -> Result<(), (io::Error, Option<Draft<'a>>)> {
    let mut draft = place.draft(name).map_err(|error| (error, None))?;
    match write(header, log, &mut draft) {
        Ok(()) => draft.save().map_err(|error| (error, None)),
        Err(error) => Err((error, Some(draft))),
    }
}

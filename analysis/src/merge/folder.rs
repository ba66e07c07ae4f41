//! Opens the logs of a run from its folder or from memory.

use crate::logfile::{LogError, LogReader, file_name};
use protocol::plan::Plan;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of a thread's stamp log.
pub fn log_path(folder: &Path, thread: &str) -> PathBuf {
    folder.join(file_name(thread))
}

/// A source of the stamp logs of a run: its folder, or memory.
pub trait LogStore {
    /// The type that reads the bytes of one log.
    type Source: io::Read;

    /// Returns the size in bytes of a thread's log, by the thread's index in the plan.
    ///
    /// # Errors
    /// [`LogError`]: the log is missing.
    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError>;

    /// Opens a thread's stamp log and checks that it belongs to this thread and run.
    ///
    /// # Errors
    /// [`LogError`]: the log is missing or has another header.
    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader<Self::Source>, LogError>;
}

/// The logs in the folder of a saved run.
impl LogStore for Path {
    type Source = File;

    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError> {
        let path = log_path(self, thread_name(plan, thread));
        match std::fs::symlink_metadata(&path) {
            Ok(facts) => Ok(facts.len()),
            Err(source) => Err(LogError::unreadable(path.display().to_string(), source)),
        }
    }

    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader, LogError> {
        LogReader::open(&log_path(self, thread_name(plan, thread)), Some(&plan.run))
    }
}

/// The logs of a run that was not saved, in the order of the plan's threads.
impl LogStore for [Vec<u8>] {
    type Source = io::Cursor<Vec<u8>>;

    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError> {
        match self.get(thread) {
            Some(bytes) => Ok(bytes.len() as u64),
            None => Err(missing(plan, thread)),
        }
    }

    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader<Self::Source>, LogError> {
        let bytes = self.get(thread).ok_or_else(|| missing(plan, thread))?;
        let name = file_name(thread_name(plan, thread));
        LogReader::new(io::Cursor::new(bytes.clone()), name, Some(&plan.run))
    }
}

fn missing(plan: &Plan, thread: usize) -> LogError {
    LogError::unreadable(file_name(thread_name(plan, thread)), io::Error::from(io::ErrorKind::NotFound))
}

fn thread_name(plan: &Plan, thread: usize) -> &str {
    plan.threads.get(thread).map_or("", |thread| thread.name.as_str())
}

/// Opens the stamp log of one thread and checks that it belongs to this thread and run.
pub(crate) fn open<L: LogStore + ?Sized>(
    logs: &L,
    plan: &Plan,
    thread: usize,
) -> Result<LogReader<L::Source>, LogError> {
    let log = logs.open(plan, thread)?;
    let (found, expected) = (log.header().index, thread as u64);
    if found == expected {
        Ok(log)
    } else {
        let what = format!(
            "is the log of thread {found} of the plan, expected thread {expected}: renamed or overwritten"
        );
        Err(LogError::invalid(log.file(), what))
    }
}

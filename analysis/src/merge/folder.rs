//! A run's folder: where `run.json` and the logs are, and whether they belong together.

use super::file_name;
use crate::logfile::{LogError, LogReader};
use crate::record::{RUN_SCHEMA, RunRecord};
use protocol::plan::{Plan, PlanError};
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The name of the record in the folder.
pub const RUN_FILE: &str = "run.json";

/// A folder that holds no run, or one of another version.
#[derive(Debug, Error)]
pub enum FolderError {
    /// There is no record in it.
    #[error("{folder}: no {RUN_FILE} in it: not the folder of a run, or its launcher was killed")]
    NoRun {
        /// The folder.
        folder: String,
    },
    /// The operating system refused.
    #[error("{file}: {source}")]
    Io {
        /// The record's path.
        file: String,
        /// What it said.
        source: io::Error,
    },
    /// Not the JSON of a record.
    #[error("{file}: {source}")]
    Json {
        /// The record's path.
        file: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// Another version's record.
    #[error("{file}: schema {found:?}, this build reads {RUN_SCHEMA:?}: use the launcher that wrote it")]
    Schema {
        /// The record's path.
        file: String,
        /// What it says it is.
        found: String,
    },
    /// A plan that no run can have had.
    #[error("{file}: {source}")]
    Plan {
        /// The record's path.
        file: String,
        /// What does not fit.
        source: PlanError,
    },
    /// A thread whose name would lead out of the folder.
    #[error("{file}: thread name {name:?}: only a-z, 0-9 and - can name a log")]
    ThreadName {
        /// The record's path.
        file: String,
        /// The name.
        name: String,
    },
}

/// Reads and checks the record of a run's folder.
///
/// # Errors
/// [`FolderError`]: there is none, it is of another version, or its plan is impossible.
pub fn read_record(folder: &Path) -> Result<RunRecord, FolderError> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
    }
    let path = folder.join(RUN_FILE);
    let file = path.display().to_string();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(FolderError::NoRun { folder: folder.display().to_string() });
        }
        Err(source) => return Err(FolderError::Io { file, source }),
    };
    // The schema first: the rest of another version's record need not make sense to this one.
    let schema: Schema =
        serde_json::from_str(&text).map_err(|source| FolderError::Json { file: file.clone(), source })?;
    if schema.schema != RUN_SCHEMA {
        return Err(FolderError::Schema { file, found: schema.schema });
    }
    let record: RunRecord =
        serde_json::from_str(&text).map_err(|source| FolderError::Json { file: file.clone(), source })?;
    record.plan.validate().map_err(|source| FolderError::Plan { file: file.clone(), source })?;
    let is_plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    match record.plan.threads.iter().find(|thread| !is_plain(&thread.name)) {
        Some(thread) => Err(FolderError::ThreadName { file, name: thread.name.clone() }),
        None => Ok(record),
    }
}

/// Where a thread's log is.
pub fn log_path(folder: &Path, thread: &str) -> PathBuf {
    folder.join(file_name(thread))
}

/// Where the logs of a run are: in its folder, or in memory.
pub trait Logs {
    /// What a log is read from.
    type Source: io::Read;

    /// The bytes of a thread's log; by the thread's place in the plan.
    ///
    /// # Errors
    /// It is not there.
    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError>;

    /// Opens a thread's log and checks that it is one, of that run.
    ///
    /// # Errors
    /// It is not there, or has another header.
    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader<Self::Source>, LogError>;
}

/// The logs that were saved in a run's folder.
impl Logs for Path {
    type Source = File;

    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError> {
        let path = log_path(self, thread_name(plan, thread));
        match std::fs::metadata(&path) {
            Ok(facts) => Ok(facts.len()),
            Err(source) => Err(LogError::Io { file: path.display().to_string(), source }),
        }
    }

    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader, LogError> {
        LogReader::open(&log_path(self, thread_name(plan, thread)), Some(&plan.run))
    }
}

/// The logs of a run that was never saved, in the order of the plan's threads.
impl Logs for [Vec<u8>] {
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
    LogError::Io { file: file_name(thread_name(plan, thread)), source: io::ErrorKind::NotFound.into() }
}

fn thread_name(plan: &Plan, thread: usize) -> &str {
    plan.threads.get(thread).map_or("", |thread| thread.name.as_str())
}

/// Opens the log of one thread of the plan and checks that it is that thread's, of that run.
pub(crate) fn open<L: Logs + ?Sized>(
    logs: &L,
    plan: &Plan,
    thread: usize,
) -> Result<LogReader<L::Source>, LogError> {
    let log = logs.open(plan, thread)?;
    let (found, expected) = (log.header().index, thread as u64);
    if found == expected {
        Ok(log)
    } else {
        Err(LogError::OtherThread { file: log.file().to_owned(), found, expected })
    }
}

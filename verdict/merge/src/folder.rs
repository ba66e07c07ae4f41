//! Opens the logs of a run from its folder or from memory.

use protocol::plan::Plan;
use record::logfile::{LogError, LogReader, file_name};
use std::io;
use std::path::Path;

/// A place from which a run's stamp logs, one for each thread, are read: the run's folder, or
/// memory.
pub trait LogStore {
    /// Returns the size in bytes of a thread's log, by the thread's index in the plan.
    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError>;

    /// Opens a thread's stamp log and checks that it belongs to this thread and run.
    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader, LogError>;
}

impl<L: LogStore + ?Sized> LogStore for &L {
    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError> {
        (**self).bytes(plan, thread)
    }

    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader, LogError> {
        (**self).open(plan, thread)
    }
}

/// The logs in the folder of a saved run.
impl LogStore for Path {
    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError> {
        let path = self.join(file_name(&plan.threads[thread].name));
        let facts = std::fs::symlink_metadata(&path);
        facts
            .map(|facts| facts.len())
            .map_err(|source| LogError::unreadable(path.display().to_string(), source))
    }

    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader, LogError> {
        LogReader::open(&self.join(file_name(&plan.threads[thread].name)), Some(&plan.run))
    }
}

/// The logs of a run that was not saved, in the order of the plan's threads.
impl LogStore for [Vec<u8>] {
    fn bytes(&self, plan: &Plan, thread: usize) -> Result<u64, LogError> {
        let missing = || {
            let file = file_name(&plan.threads[thread].name);
            LogError::unreadable(file, io::Error::from(io::ErrorKind::NotFound))
        };
        self.get(thread).map(|bytes| bytes.len() as u64).ok_or_else(missing)
    }

    fn open(&self, plan: &Plan, thread: usize) -> Result<LogReader, LogError> {
        let name = file_name(&plan.threads[thread].name);
        LogReader::new(Box::new(io::Cursor::new(self[thread].clone())), name, Some(&plan.run))
    }
}

/// Opens the stamp log of one thread and checks that it belongs to this thread and run.
pub fn open(logs: &(impl LogStore + ?Sized), plan: &Plan, thread: usize) -> Result<LogReader, LogError> {
    let log = logs.open(plan, thread)?;
    let found = log.header().index;
    if found == thread as u64 {
        return Ok(log);
    }
    let what =
        format!("is the log of thread {found} of the plan, expected thread {thread}: renamed or overwritten");
    Err(LogError::invalid(log.file(), what))
}

//! The locks of a run's journals. The launcher takes them before any process starts, and hands the
//! locked files down to the writers and to their successors.
//!
//! A strategy that may open such a file asks for its lock in vain: the kernel releases the lock
//! when the last process of the run that has the file is gone. A process of the same user, outside
//! of the sandbox and of containers, can take the descriptor from the launcher and release the
//! lock. That harms no successor, since none asks for the lock. The verdict names the process.

use anyhow::{Context, Result, anyhow};
use journal::JournalError;
use planner::host::locks;
use protocol::journals;
use protocol::plan::{Handle, Plan, Role};
use std::fs::{File, TryLockError};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Minimum interval between two looks at the locks.
const INTERVAL: Duration = Duration::from_millis(500);

/// The locked files of a run's journals, one for each journal writer.
#[derive(Debug, Default)]
pub struct JournalLocks(Vec<(Role, File)>);

impl JournalLocks {
    /// Creates the folders of the run's journals, and takes a file lock in each.
    ///
    /// # Errors
    /// Another process holds a lock, which is named; what the system refused.
    pub fn take(plan: &Plan) -> Result<Self> {
        let lock = |writer| -> Result<(Role, File)> {
            let folder = journals::folder(plan, writer);
            let file = journal::lock_directory(&folder).map_err(|error| match error {
                JournalError::Locked(folder) => {
                    let file = File::open(folder.join(journal::LOCK_FILE)).ok();
                    let holder =
                        file.as_ref().map_or_else(|| locks::UNSEEN.to_owned(), locks::describe_holder);
                    anyhow!("{}: {holder} holds the lock of this journal: end that process", folder.display())
                }
                error => anyhow::Error::from(error),
            });
            Ok((writer, file.context("cannot lock a journal of the run")?))
        };
        Ok(Self(journals::writers(plan).map(lock).collect::<Result<_>>()?))
    }

    /// Returns the handles (names and descriptor numbers) by which the journal writers find their
    /// locked files.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.0.iter().map(|(writer, file)| Handle {
            name: journals::lock_handle(*writer),
            fd: file.as_raw_fd(),
            writable: true,
        })
    }

    /// Returns the locked files that a process with these roles inherits.
    pub fn inherited_by(&self, roles: &[Role]) -> impl Iterator<Item = &File> {
        self.0.iter().filter(|(writer, _)| roles.contains(writer)).map(|(_, file)| file)
    }

    /// Returns a message that names a process outside the run that holds a lock of the run's
    /// journals; `None` without one. Takes back a lock that nobody holds.
    pub fn foreign_holder(&self) -> Option<String> {
        let is_taken = |file: &File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        let (writer, file) = self.0.iter().find(|(_, file)| is_taken(file))?;
        Some(format!(
            "{} has taken the lock of the journal of {writer} from the run: it may be writing this journal; end that process",
            locks::describe_holder(file)
        ))
    }
}

/// A watch for another process that takes a journal lock during a run.
pub struct JournalLockWatch<'a> {
    locks: &'a JournalLocks,
    last_try: Instant,
    is_noted: bool,
}

impl<'a> JournalLockWatch<'a> {
    /// Creates a watch of a run's journal locks.
    pub fn new(locks: &'a JournalLocks) -> Self {
        Self { locks, last_try: Instant::now(), is_noted: false }
    }

    /// Checks the journal locks at most every 500 ms; returns, at most once, a message that names a
    /// foreign holder.
    pub fn poll(&mut self) -> Option<String> {
        if self.is_noted || self.last_try.elapsed() < INTERVAL {
            return None;
        }
        self.last_try = Instant::now();
        let note = self.locks.foreign_holder();
        self.is_noted = note.is_some();
        note
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::index::{StrategyIndex, VenueIndex};
    use protocol::plan::{Journaling, Trading};

    fn plan(folder: &std::path::Path) -> Plan {
        let mut trading = Trading { journal: Journaling::Process, ..Trading::new(2, 2) };
        trading.venue_kinds = vec![Trading::DELAY_VENUE.into(), Trading::BOOK.into()];
        Plan { folder: folder.display().to_string(), ..Plan::for_trading(trading).arranged() }
    }

    #[test]
    fn locks_are_taken_for_each_writer_and_inherited() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(folder.path());
        let locks = JournalLocks::take(&plan).unwrap();
        let names: Vec<String> = locks.handles().map(|handle| handle.name).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for (role, count) in [
            (Role::Orchestrator, 1),
            (Role::Exchange(VenueIndex(1)), 1),
            (Role::Strategy(StrategyIndex(0)), 0),
        ] {
            assert_eq!(locks.inherited_by(&[role]).count(), count, "{role}");
        }
        assert_eq!(locks.foreign_holder(), None);
        let stranger = File::open(folder.path().join("journal-engine").join(journal::LOCK_FILE)).unwrap();
        assert!(stranger.try_lock().is_err());
    }

    #[test]
    fn foreign_holder_of_a_journal_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(folder.path());
        let locks = JournalLocks::take(&plan).unwrap();
        let stranger = File::open(folder.path().join("journal-venue-1").join(journal::LOCK_FILE)).unwrap();
        // As a process does that has taken the descriptor from the launcher.
        locks.inherited_by(&[Role::Exchange(VenueIndex(1))]).for_each(|file| file.unlock().unwrap());
        stranger.try_lock().unwrap();
        let me = format!("process {}", std::process::id());
        let note = locks.foreign_holder().unwrap();
        assert!(note.starts_with(&me) && note.contains("journal of exchange-1"), "{note}");
        let error = format!("{:#}", JournalLocks::take(&plan).unwrap_err());
        assert!(error.contains("journal-engine") && error.contains(&me), "{error}");
    }
}

//! One run at a time on a host, whatever hands them out: a lock that a host has and other hosts have not.
//!
//! It is a lock on the folder `/dev/shm` itself, in which every run of a host has its segments. So no file is left behind, whoever is
//! killed lets go of it, and what has a `/dev/shm` of its own is a host of its own.

use crate::runtime::run::Interrupted;
use crate::runtime::signals;
use anyhow::{Context, Result};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Where a host's runs are.
const SHARED: &str = "/dev/shm";
/// How often it is looked whether another run is over: nothing beside what a run takes.
const AGAIN: Duration = Duration::from_millis(50);

/// The host is this process's as long as this exists.
pub(super) struct HostLock {
    _file: File,
}

impl HostLock {
    /// Waits until no other run of a planned sweep goes on here. `said` hears once that it has to wait.
    ///
    /// # Errors
    /// [`Interrupted`]; a system without `/dev/shm`.
    pub(super) fn wait(said: impl FnOnce()) -> Result<Self> {
        Self::wait_at(Path::new(SHARED), said)
    }

    pub(super) fn wait_at(folder: &Path, said: impl FnOnce()) -> Result<Self> {
        let file = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
        let mut said = Some(said);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if signals::asked() => return Err(Interrupted.into()),
                Err(TryLockError::WouldBlock) => {
                    said.take().into_iter().for_each(|said| said());
                    sleep(AGAIN);
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", folder.display()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_host_has_one_run_at_a_time_and_another_host_another() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = HostLock::wait_at(here.path(), || panic!("nobody has it")).unwrap();
        let _other = HostLock::wait_at(there.path(), || panic!("nobody has it")).unwrap();
        let (waits, hears) = mpsc::channel();
        std::thread::scope(|scope| {
            let second =
                scope.spawn(|| HostLock::wait_at(here.path(), move || waits.send(()).unwrap()).is_ok());
            hears.recv().unwrap();
            assert!(!second.is_finished(), "the first one has it");
            drop(first);
            assert!(second.join().unwrap());
        });
    }
}

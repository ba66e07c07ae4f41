//! Whether the desk can be written: operators take turns by a lock on its file, and a process that
//! holds the lock for long keeps all commands of operators out, kill switches among them.

use crate::host::locks;
use protocol::desk::DESK;
use protocol::plan::Plan;
use shm::memory::open_safely;
use std::fs::{File, OpenOptions, TryLockError};
use std::time::{Duration, Instant};

/// No operator holds the lock for so long, nor waits for it longer.
const LONG: Duration = Duration::from_secs(2);
/// How often it is tried, at most.
const INTERVAL: Duration = Duration::from_millis(500);

/// Watches the lock of the desk of a run.
pub(super) struct DeskWatch {
    file: Option<File>,
    looked: Instant,
    /// Since when the lock is held by somebody else.
    held: Option<Instant>,
    /// It was said already.
    is_noted: bool,
}

impl DeskWatch {
    /// Opens the desk; without one there is nothing to watch.
    pub fn new(plan: &Plan) -> Self {
        let file = open_safely(&plan.segment_name(DESK), OpenOptions::new().read(true)).ok();
        Self { file, looked: Instant::now(), held: None, is_noted: false }
    }

    /// Tries the lock, unless it was tried just now. Returns what is to be said of it, once in a
    /// run.
    pub fn look(&mut self) -> Option<String> {
        let file = self.file.as_ref()?;
        if self.is_noted || self.looked.elapsed() < INTERVAL {
            return None;
        }
        self.looked = Instant::now();
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            // An operator who came in between tries again.
            let _ = file.unlock();
            self.held = None;
            return None;
        }
        if self.held.get_or_insert(self.looked).elapsed() < LONG {
            return None;
        }
        self.is_noted = true;
        let holder = locks::holder(file).unwrap_or_else(|| "a process that is not seen from here".into());
        Some(format!(
            "the desk was locked for more than {LONG:?} by {holder}: no command of an operator, no kill switch reached the engine \
             meanwhile. End that process"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(file: &File) -> DeskWatch {
        let looked = Instant::now().checked_sub(INTERVAL).unwrap();
        DeskWatch { file: Some(file.try_clone().unwrap()), looked, held: None, is_noted: false }
    }

    #[test]
    fn a_long_lock_is_noted_once_with_its_holder() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (ours, other) = (File::open(file.path()).unwrap(), File::open(file.path()).unwrap());
        let mut free = watch(&ours);
        assert_eq!((free.look(), free.held), (None, None));
        other.lock().unwrap();
        let mut watch = watch(&ours);
        assert_eq!(watch.look(), None, "a moment is no reason");
        watch.held = Instant::now().checked_sub(LONG);
        assert_eq!(watch.look(), None, "it was tried just now");
        watch.looked = Instant::now().checked_sub(INTERVAL).unwrap();
        let said = watch.look().unwrap();
        assert!(said.contains(&format!("by process {}", std::process::id())), "{said}");
        watch.looked = Instant::now().checked_sub(INTERVAL).unwrap();
        assert_eq!(watch.look(), None, "once");
    }
}

//! Detects a process that holds the lock of the command channel for long: operators serialize by
//! that lock, so it blocks all their commands, kill switches among them.

use planner::host::locks;
use protocol::commands::COMMANDS_SEGMENT;
use protocol::plan::Plan;
use shm::memory::open_safely;
use std::fs::{File, OpenOptions, TryLockError};
use std::time::{Duration, Instant};

/// Longest time that an operator holds the lock or waits for it.
const LONG_LOCK: Duration = Duration::from_secs(2);
/// Minimum interval between two tries.
const INTERVAL: Duration = Duration::from_millis(500);

/// The lock of a run's command channel.
pub(super) struct CommandLockWatch {
    file: Option<File>,
    last_try: Instant,
    /// Since when another process holds the lock.
    held_since: Option<Instant>,
    is_noted: bool,
}

impl CommandLockWatch {
    /// Creates the watch of the file lock on a run's channel for operators' commands.
    pub fn new(plan: &Plan) -> Self {
        let file = open_safely(&plan.segment_name(COMMANDS_SEGMENT), OpenOptions::new().read(true)).ok();
        Self { file, last_try: Instant::now(), held_since: None, is_noted: false }
    }

    /// Returns a note for the user, once in a run, if another process has held the lock of the
    /// operators' command channel for two seconds.
    pub fn poll(&mut self) -> Option<String> {
        let file = self.file.as_ref()?;
        if self.is_noted || self.last_try.elapsed() < INTERVAL {
            return None;
        }
        self.last_try = Instant::now();
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            // An operator who found it locked tries again.
            let _ = file.unlock();
            self.held_since = None;
            return None;
        }
        if self.held_since.get_or_insert(self.last_try).elapsed() < LONG_LOCK {
            return None;
        }
        self.is_noted = true;
        let holder = locks::describe_holder(file);
        Some(format!(
            "the command channel was locked for more than {LONG_LOCK:?} by {holder}: no command of an operator, no kill switch reached the engine \
             in that time; end that process"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_lock_is_noted_once_with_its_holder() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [ours, other] = [(); 2].map(|()| File::open(file.path()).unwrap());
        let earlier = |by| Instant::now().checked_sub(by).unwrap();
        let mut watch = CommandLockWatch {
            file: Some(ours),
            last_try: earlier(INTERVAL),
            held_since: None,
            is_noted: false,
        };
        other.lock().unwrap();
        assert_eq!(watch.poll(), None, "a moment is no reason");
        watch.held_since = Some(earlier(LONG_LOCK));
        assert_eq!(watch.poll(), None, "it was tried just now");
        watch.last_try = earlier(INTERVAL);
        let message = watch.poll().unwrap();
        assert!(message.contains(&format!("by process {}", std::process::id())), "{message}");
        watch.last_try = earlier(INTERVAL);
        assert_eq!(watch.poll(), None, "once");
    }
}

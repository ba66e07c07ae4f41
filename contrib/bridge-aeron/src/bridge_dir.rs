//! A bridge's directory in `/dev/shm`, named like a segment of its run, which removes it.

use launcher::BRIDGE as STEM;
use launcher::RunId;
use launcher::protocol::plan::Plan;
use launcher::shm::memory::{PREFIX, directory, unlink};
use launcher::shm::process::start_time;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

/// File with the session history for a successor.
const HISTORY: &str = "past";

/// The directory in `/dev/shm` in which one bridge of a run keeps its files.
#[derive(Debug)]
pub struct BridgeDir {
    name: String,
}

impl BridgeDir {
    /// Opens or creates the directory in `/dev/shm` in which one bridge of a run, such as
    /// `strategy-0`, keeps its files.
    pub fn for_run(plan: &Plan, bridge: &str) -> io::Result<Self> {
        let dir = Self { name: plan.segment_name(&format!("{STEM}-{bridge}")) };
        if !dir.path().is_dir() {
            directory::create(&dir.name).map_err(io::Error::other)?;
        }
        Ok(dir)
    }

    /// Creates a bridge's directory for the command `join` or a test; its name has this process's
    /// id in place of a launcher's.
    pub fn for_process(what: &str) -> io::Result<Self> {
        let me = std::process::id();
        let run = RunId::new(SystemTime::now(), me, start_time(me).unwrap_or(0));
        let dir = Self { name: format!("{PREFIX}{run}.{STEM}-{what}") };
        directory::create(&dir.name).map_err(io::Error::other)?;
        Ok(dir)
    }

    /// Starts a process that removes the bridge's directory when this process ends or is killed.
    pub fn guard(&self) -> Option<Guard> {
        let script = "cat >/dev/null; rm -rf -- \"$0\"";
        let mut command = Command::new("sh");
        // A separate process group: not interrupted by Ctrl-C.
        command.args(["-c", script]).arg(self.path()).stdin(Stdio::piped()).process_group(0);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok().map(Guard)
    }

    /// Returns the path of the bridge's directory in `/dev/shm`.
    pub fn path(&self) -> PathBuf {
        directory::path(&self.name)
    }

    /// Removes the directories of earlier media drivers, and returns a path, not created yet, for
    /// the files of this process's driver.
    pub fn driver_dir(&self) -> io::Result<PathBuf> {
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(self.path().join(format!("aeron-{}", std::process::id())))
    }

    /// Returns the session history that a crashed bridge process saved (three words of
    /// `SessionHistory::to_words`); `None` if it cannot be read.
    pub fn history(&self) -> Option<[u64; 3]> {
        read_history(&self.path().join(HISTORY))
    }

    /// Saves the link's session history (three words of `SessionHistory::to_words`) for the process
    /// that replaces this one after a crash.
    pub fn save_history(&self, words: [u64; 3]) -> io::Result<()> {
        let text = words.map(|word| word.to_string()).join(" ");
        let (new, whole) = (self.path().join("past.new"), self.path().join(HISTORY));
        fs::write(&new, text)?;
        fs::rename(new, whole)
    }

    /// Removes the bridge's directory.
    pub fn remove(self) {
        let _ = unlink(&self.name);
    }
}

/// A process that removes a bridge's directory when the process that started it ends.
#[derive(Debug)]
pub struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn read_history(file: &Path) -> Option<[u64; 3]> {
    let text = fs::read_to_string(file).ok()?;
    let words: Vec<u64> = text.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    words.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successor_reads_saved_history_only() {
        let dir = BridgeDir::for_process("past").unwrap();
        assert_eq!(dir.history(), None);
        dir.save_history([1, u64::MAX, 3]).unwrap();
        assert_eq!(dir.history(), Some([1, u64::MAX, 3]));
        for text in ["", "1 2", "1 2 3 4", "1 2 x"] {
            fs::write(dir.path().join(HISTORY), text).unwrap();
            assert_eq!(dir.history(), None, "{text:?}");
        }
        let driver = dir.driver_dir().unwrap();
        fs::create_dir(&driver).unwrap();
        dir.driver_dir().unwrap();
        assert!(!driver.exists() && dir.path().join(HISTORY).exists());
        let path = dir.path();
        dir.remove();
        assert!(!path.exists());
    }
}

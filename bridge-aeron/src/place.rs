//! A bridge's folder in `/dev/shm`: for the driver's files, and for what a bridge leaves to its
//! successor. It has the name of a segment of its run, so that it goes with the run, whoever is
//! killed.

use launcher::protocol::plan::Plan;
use launcher::runtime::run_id::RunId;
use launcher::runtime::setup::BRIDGE as STEM;
use launcher::shm::memory::{PREFIX, directory, unlink};
use launcher::shm::process::start_time;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

/// What a bridge leaves to its successor.
const PAST: &str = "past";

/// The folder of one bridge of a run.
#[derive(Debug)]
pub struct Place {
    name: String,
}

impl Place {
    /// That of the bridge with this name, such as `strategy-0`, of that run; made if it is not
    /// there.
    ///
    /// # Errors
    /// What the system refused.
    pub fn of(plan: &Plan, bridge: &str) -> io::Result<Self> {
        let place = Self { name: plan.segment_name(&format!("{STEM}-{bridge}")) };
        if !place.path().is_dir() {
            directory::create(&place.name).map_err(io::Error::other)?;
        }
        Ok(place)
    }

    /// One that belongs to no run, but to this process: for who only calls, and for tests. It has
    /// the name of a segment of a run that this process would be the launcher of, so that `launcher
    /// clean` and every start remove it when this process is gone.
    ///
    /// # Errors
    /// What the system refused.
    pub fn alone(what: &str) -> io::Result<Self> {
        let me = std::process::id();
        let run = RunId::new(SystemTime::now(), me, start_time(me).unwrap_or(0));
        let place = Self { name: format!("{PREFIX}{run}.{STEM}-{what}") };
        directory::create(&place.name).map_err(io::Error::other)?;
        Ok(place)
    }

    /// Starts a process that removes it should this one be killed: it ends when this one does.
    pub fn guard(&self) -> Option<Guard> {
        let script = "cat >/dev/null; rm -rf -- \"$0\"";
        let mut command = Command::new("sh");
        // A process group of its own: Ctrl-C is not for it.
        command.args(["-c", script]).arg(self.path()).stdin(Stdio::piped()).process_group(0);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok().map(Guard)
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        directory::path(&self.name)
    }

    /// A folder for a driver's files. Those of drivers before it are removed: their processes have
    /// ended.
    ///
    /// # Errors
    /// What the system refused.
    pub fn for_driver(&self) -> io::Result<PathBuf> {
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(self.path().join(format!("aeron-{}", std::process::id())))
    }

    /// What the predecessor wrote down.
    pub fn past(&self) -> Option<[u64; 3]> {
        read_past(&self.path().join(PAST))
    }

    /// Writes it down for the successor.
    ///
    /// # Errors
    /// What the system refused.
    pub fn leave(&self, words: [u64; 3]) -> io::Result<()> {
        let text = words.map(|word| word.to_string()).join(" ");
        let (new, whole) = (self.path().join("past.new"), self.path().join(PAST));
        fs::write(&new, text)?;
        fs::rename(new, whole)
    }

    /// Removes it.
    pub fn remove(self) {
        let _ = unlink(&self.name);
    }
}

/// Removes a place when this process is gone, or when it is dropped.
#[derive(Debug)]
pub struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn read_past(file: &Path) -> Option<[u64; 3]> {
    let text = fs::read_to_string(file).ok()?;
    let words: Vec<u64> = text.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    words.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_reads_what_was_left_and_nothing_else() {
        let place = Place::alone("past").unwrap();
        assert_eq!(place.past(), None);
        place.leave([1, u64::MAX, 3]).unwrap();
        assert_eq!(place.past(), Some([1, u64::MAX, 3]));
        for text in ["", "1 2", "1 2 3 4", "1 2 x"] {
            fs::write(place.path().join(PAST), text).unwrap();
            assert_eq!(place.past(), None, "{text:?}");
        }
        let driver = place.for_driver().unwrap();
        fs::create_dir(&driver).unwrap();
        place.for_driver().unwrap();
        assert!(!driver.exists() && place.path().join(PAST).exists());
        let path = place.path();
        place.remove();
        assert!(!path.exists());
    }
}

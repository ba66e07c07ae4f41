//! A bridge's folder in `/dev/shm`: for the driver's files, and for what a bridge leaves to its successor. It has the name of a segment of its
//! run, so that it goes with the run, whoever is killed.

use launcher::protocol::plan::Plan;
use launcher::shm::memory::{folder, unlink};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What the names of such folders begin with, behind the run's.
const STEM: &str = "bridge";

/// What a bridge leaves to its successor.
const PAST: &str = "past";

/// The folder of one bridge of a run.
#[derive(Debug)]
pub struct Place {
    name: String,
}

impl Place {
    /// That of the bridge with this name, such as `strategy-0`, of that run; made if it is not there.
    ///
    /// # Errors
    /// What the system refused.
    pub fn of(plan: &Plan, bridge: &str) -> io::Result<Self> {
        let place = Self { name: plan.segment_name(&format!("{STEM}-{bridge}")) };
        if !place.path().is_dir() {
            folder::create(&place.name).map_err(io::Error::other)?;
        }
        Ok(place)
    }

    /// One that belongs to no run: for tests, and for who only knocks.
    ///
    /// # Errors
    /// What the system refused.
    pub fn alone(what: &str) -> io::Result<Self> {
        let place = Self { name: format!("bulkhead-{STEM}-{}-{what}", std::process::id()) };
        let _ = unlink(&place.name);
        folder::create(&place.name).map_err(io::Error::other)?;
        Ok(place)
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        folder::path(&self.name)
    }

    /// A folder for a driver's files. Those of drivers before it are removed: their processes have ended.
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

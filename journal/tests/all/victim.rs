//! A function of this test binary as a process to kill.

use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

pub struct Victim {
    child: Child,
    acknowledged: AtomicWords,
}

/// Starts a victim, which gets its directory through the environment.
pub fn victim(mode: &str, folder: &Path) -> Victim {
    let path = folder.join("acknowledged");
    File::create(&path).and_then(|file| file.set_len(4096)).unwrap();
    let acknowledged = words(folder);
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kills::as_a_victim", "--ignored", "--test-threads=1"])
        .env("JOURNAL_VICTIM", mode)
        .env("JOURNAL_FOLDER", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Victim { child, acknowledged }
}

pub fn words(folder: &Path) -> AtomicWords {
    let file = File::options().read(true).write(true).open(folder.join("acknowledged")).unwrap();
    Region::map("acknowledged", &file, true).unwrap().words()
}

impl Victim {
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged[0].load(Ordering::Acquire)
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

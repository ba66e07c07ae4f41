//! One trial: a victim with a fault, and the judgment of what it left.

use crate::victim;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time after which a victim counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a victim ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All records are durable.
    Complete,
    /// The journal, or the program's start, reported an error.
    Error(String),
    /// Killed by the fault itself.
    Killed,
    /// Without memory, the loader, or Rust's allocator or its start of a thread, aborts.
    NoMemory,
    /// A panic, a signal or no end.
    Wrong(String),
}

/// The place of one trial.
pub struct Place {
    pub folder: PathBuf,
    pub log: PathBuf,
    output: PathBuf,
    errors: PathBuf,
}

impl Place {
    pub fn new(root: &Path) -> Self {
        let _ = fs::remove_dir_all(root);
        fs::create_dir_all(root).expect("space for a trial");
        let at = |name| root.join(name);
        Self { folder: at("journal"), log: at("strace"), output: at("output"), errors: at("errors") }
    }

    /// Runs a victim, started by `command`, to its end.
    pub fn run(&self, command: &mut Command) -> Ending {
        let file = |path| fs::File::create(path).expect("space for a trial");
        command.stdin(Stdio::null()).stdout(file(&self.output)).stderr(file(&self.errors));
        let mut child = command.spawn().expect("the tool is there");
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if start.elapsed() > PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                return Ending::Wrong("it hangs".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let errors = fs::read_to_string(&self.errors).unwrap_or_default();
        let last = errors.lines().last().unwrap_or_default().to_owned();
        match (status.code(), status.signal()) {
            // Rust's start of a thread: no code of the journal.
            _ if errors.contains("failed to allocate an alternative stack") => Ending::NoMemory,
            _ if errors.contains("panicked") => Ending::Wrong(errors),
            (Some(0), _) => Ending::Complete,
            (Some(3), _) => Ending::Error(last),
            (Some(127), _) if !last.is_empty() => Ending::Error(last),
            (_, Some(9)) => Ending::Killed,
            (_, Some(11)) if !self.folder.exists() => Ending::NoMemory,
            (_, Some(6)) if errors.contains("memory allocation") => Ending::NoMemory,
            _ => Ending::Wrong(format!("{status}: {errors}")),
        }
    }

    /// Returns the last record that the victim reported as durable.
    pub fn acknowledged(&self) -> u64 {
        let output = fs::read_to_string(&self.output).unwrap_or_default();
        // A line without its end was not reported.
        let complete = &output[..output.rfind('\n').map_or(0, |end| end + 1)];
        complete.lines().filter_map(|line| line.parse().ok()).max().unwrap_or(0)
    }

    /// Judges what a victim left: every acknowledged record is there, and the log can go on.
    ///
    /// # Errors
    /// What is wrong.
    pub fn judge(&self, ending: &Ending) -> Result<(), String> {
        if let Ending::Wrong(why) = ending {
            return Err(why.clone());
        }
        let acknowledged = self.acknowledged();
        let recovered = if self.folder.exists() { victim::check(&self.folder)? } else { 0 };
        if recovered < acknowledged {
            return Err(format!("{acknowledged} records were acknowledged, {recovered} are there"));
        }
        if *ending == Ending::Complete && recovered != victim::ALL_RECORDS {
            return Err(format!("no error was reported, and {recovered} records are there"));
        }
        Ok(())
    }
}

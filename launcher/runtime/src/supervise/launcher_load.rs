//! Measures how often the launcher wakes up during a run and what CPU time it takes, since it may
//! share cores with measured threads.

use record::kernel::LauncherLoad;
use std::path::Path;
use system::usage::process_cpu_ns;

/// What the launcher had used at a time of its run.
#[derive(Clone, Copy)]
pub(super) struct LauncherUsage {
    sleeps: u64,
    cpu_ns: u64,
    at_ns: u64,
}

impl LauncherUsage {
    /// Reads the launcher's CPU time and the sum of its threads' sleeps so far; `now_ns` is the
    /// time since the run's start, in nanoseconds.
    pub fn now(now_ns: u64) -> Option<Self> {
        Some(Self { sleeps: sleeps(Path::new("/proc/self/task"))?, cpu_ns: process_cpu_ns(), at_ns: now_ns })
    }

    /// Returns the launcher's number of sleeps and CPU time between this reading and a later one.
    pub fn until(self, later: Self) -> LauncherLoad {
        LauncherLoad {
            times: later.sleeps.saturating_sub(self.sleeps),
            ns: later.at_ns.saturating_sub(self.at_ns),
            cpu_ns: Some(later.cpu_ns.saturating_sub(self.cpu_ns)),
        }
    }
}

/// Returns the voluntary context switches of all threads: each is a sleep.
fn sleeps(tasks: &Path) -> Option<u64> {
    let of = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    Some(std::fs::read_dir(tasks).ok()?.flatten().filter_map(of).fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_counted_over_all_threads() {
        let tasks = tempfile::tempdir().unwrap();
        for (thread, line) in
            [("1", "voluntary_ctxt_switches:\t5\n"), ("2", "nonvoluntary_ctxt_switches:\t9\n")]
        {
            std::fs::create_dir(tasks.path().join(thread)).unwrap();
            std::fs::write(tasks.path().join(thread).join("status"), line).unwrap();
        }
        assert_eq!(sleeps(tasks.path()), Some(5));
        assert_eq!(sleeps(Path::new("/nowhere")), None);
    }
}

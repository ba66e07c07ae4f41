//! Measures how often the launcher wakes up during a run, since it may share cores with measured
//! threads.

use record::kernel::WakeUps;
use std::path::Path;

/// Returns how often the launcher has slept until now, `now_ns` after the start.
pub(super) fn count_sleeps(now_ns: u64) -> Option<(u64, u64)> {
    Some((sleeps(Path::new("/proc/self/task"))?, now_ns))
}

/// Returns how often the launcher woke up since `before`.
pub(super) fn wake_ups_since(before: Option<(u64, u64)>, now_ns: u64) -> Option<WakeUps> {
    let ((times, ns), (before, since)) = (count_sleeps(now_ns)?, before?);
    Some(WakeUps { times: times.saturating_sub(before), ns: ns.saturating_sub(since) })
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

//! Poll interval of the launcher while orders are sent. The launcher may share cores with the
//! measured run, so it polls no more often than needed: exits and signals wake it at once, it
//! sleeps until faults and deadlines are due, and otherwise it only samples the open orders.
//!
//! Samples must be dense while the number of open orders changes, which is at the start: so the
//! interval grows with the elapsed time. It is short again once the last order is due. Runs whose
//! orders have no due times (closed pacing, user-defined strategies) and runs with injected faults
//! are polled at the default interval.

use super::{POLL_INTERVAL, Supervisor};
use analysis::kernel::WakeUps;
use protocol::plan::Pacing;
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;
use std::path::Path;
use std::time::Duration;

const LONGEST: Duration = Duration::from_millis(500);
/// A sleep is at most this share of the time since the start.
const SHARE: u32 = 4;

/// Returns the longest sleep at `since` after the start, if the last order is due at `last_due`;
/// `None` if unknown.
fn pause(since: Duration, last_due: Option<Duration>) -> Duration {
    match last_due.and_then(|due| due.checked_sub(since)).filter(|left| !left.is_zero()) {
        Some(left) => (since / SHARE).clamp(POLL_INTERVAL, LONGEST).min(left.max(Duration::from_millis(1))),
        None => POLL_INTERVAL,
    }
}

impl Supervisor<'_> {
    /// Returns the time after the start at which the last order is due. `None` if unknown or if
    /// faults are injected.
    pub(super) fn last_due(&self) -> Option<Duration> {
        let trading = self.plan.trading();
        let is_scheduled = (0..trading.strategies).all(|index| trading.pacing_of(index) == Pacing::Scheduled);
        if !is_scheduled || !self.plan.faults.is_empty() {
            return None;
        }
        let last = |(strategy, schedule): (u16, &shm::memory::ReadOnlyWords)| {
            let entry = (trading.orders[usize::from(strategy)] as usize).checked_sub(1)?;
            Some(schedule.load(HEADER_WORDS + entry * SCHEDULE_ENTRY_WORDS, Ordering::Relaxed))
        };
        let due = (0..).zip(self.schedules).filter_map(last).max()?;
        Some(Duration::from_nanos(due))
    }

    /// Returns the longest time that the launcher sleeps between two polls while orders are sent.
    pub(super) fn firing_pause(&self, last_due: Option<Duration>) -> Duration {
        pause(Duration::from_nanos(self.now_ns()), last_due)
    }

    /// Returns how often the launcher has slept so far, and the current time.
    pub(super) fn count_sleeps(&self) -> Option<(u64, u64)> {
        Some((sleeps(Path::new("/proc/self/task"))?, self.now_ns()))
    }

    /// Returns how often the launcher woke up since `before`.
    pub(super) fn wake_ups_since(&self, before: Option<(u64, u64)>) -> Option<WakeUps> {
        let ((times, ns), (before, since)) = (self.count_sleeps()?, before?);
        Some(WakeUps { times: times.saturating_sub(before), ns: ns.saturating_sub(since) })
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
    use std::process::Command;
    use std::time::Instant;

    const MS: Duration = Duration::from_millis(1);

    /// Returns the number of polls from the start until the last order is due.
    fn looks(last_due: Option<Duration>, until: Duration) -> u32 {
        let (mut now, mut looks) = (Duration::ZERO, 0);
        while now < until {
            now += pause(now, last_due);
            looks += 1;
        }
        looks
    }

    #[test]
    fn looks_are_close_at_the_start_and_few_afterwards() {
        assert_eq!(pause(Duration::ZERO, Some(5_000 * MS)), POLL_INTERVAL);
        assert_eq!(pause(1_000 * MS, Some(5_000 * MS)), 250 * MS);
        assert_eq!(pause(60_000 * MS, Some(600_000 * MS)), LONGEST);
        let due = 6_000 * MS;
        assert!(looks(Some(due), due) < 5 * 6, "{}", looks(Some(due), due));
        assert_eq!(looks(None, due), 120, "who knows nothing looks as often as before");
    }

    #[test]
    fn the_end_is_not_slept_through() {
        assert_eq!(pause(4_990 * MS, Some(5_000 * MS)), 10 * MS);
        assert_eq!(pause(5_000 * MS, Some(5_000 * MS)), POLL_INTERVAL);
        assert_eq!(pause(9_000 * MS, Some(5_000 * MS)), POLL_INTERVAL);
        assert_eq!(pause(1_000 * MS, Some(Duration::MAX)), 250 * MS, "whatever a schedule says");
        assert_eq!(pause(Duration::MAX, Some(Duration::MAX)), POLL_INTERVAL);
    }

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
        // A separate process: threads of this one exit while the test runs, and their sleeps with
        // them.
        let mut child = Command::new("sh").args(["-c", "while :; do sleep 0.01; done"]).spawn().unwrap();
        let tasks = format!("/proc/{}/task", child.id());
        let (begun, before) = (Instant::now(), sleeps(Path::new(&tasks)).unwrap());
        let mut has_slept = false;
        while !has_slept && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(MS);
            has_slept = sleeps(Path::new(&tasks)).unwrap() > before;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(has_slept);
    }
}

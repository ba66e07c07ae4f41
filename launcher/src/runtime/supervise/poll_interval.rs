//! Poll interval of the launcher while orders are sent. The launcher may share cores with the
//! measured run, so it polls no more often than needed: exits and signals wake it at once, it
//! sleeps until faults and deadlines are due, and otherwise it only samples the open orders.
//!
//! Samples must be dense while the number of open orders changes, which is at the start: so the
//! interval grows with the elapsed time. It is short again once the last order is due, in runs
//! whose orders have no due times (closed pacing, user-defined strategies), and with injected
//! faults.

use super::{POLL_INTERVAL, Supervisor};
use analysis::kernel::WakeUps;
use protocol::plan::Pacing;
use std::path::Path;
use std::time::Duration;

const LONGEST: Duration = Duration::from_millis(500);
/// A sleep is at most this share of the time since the start.
const SHARE: u32 = 4;

/// Returns the longest sleep at `since` after the start; `last_due` is `None` if unknown.
pub(super) fn pause(since: Duration, last_due: Option<Duration>) -> Duration {
    match last_due.and_then(|due| due.checked_sub(since)).filter(|left| !left.is_zero()) {
        Some(left) => (since / SHARE).clamp(POLL_INTERVAL, LONGEST).min(left.max(Duration::from_millis(1))),
        None => POLL_INTERVAL,
    }
}

impl Supervisor<'_> {
    /// Returns when the last order is due after the start; `None` if unknown, or with faults.
    pub(super) fn last_due(&self) -> Option<Duration> {
        let trading = self.plan.trading();
        let is_scheduled = (0..trading.strategies).all(|index| trading.pacing_of(index) == Pacing::Scheduled);
        if !is_scheduled || !self.plan.faults.is_empty() {
            return None;
        }
        let last = |strategy: u16| {
            let order = (trading.orders[usize::from(strategy)] as usize).checked_sub(1)?;
            Some(self.due_ns(strategy, order))
        };
        let due = (0..trading.strategies).filter_map(last).max()?;
        Some(Duration::from_nanos(due))
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

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn polls_are_close_at_the_start_and_few_afterwards() {
        for (since, last_due, expected) in [
            (Duration::ZERO, Some(5_000 * MS), POLL_INTERVAL),
            (1_000 * MS, Some(5_000 * MS), 250 * MS),
            (60_000 * MS, Some(600_000 * MS), LONGEST),
            (4_990 * MS, Some(5_000 * MS), 10 * MS),
            (5_000 * MS, Some(5_000 * MS), POLL_INTERVAL),
            (9_000 * MS, Some(5_000 * MS), POLL_INTERVAL),
            (1_000 * MS, Some(Duration::MAX), 250 * MS),
            (Duration::MAX, Some(Duration::MAX), POLL_INTERVAL),
            (1_000 * MS, None, POLL_INTERVAL),
        ] {
            assert_eq!(pause(since, last_due), expected, "{since:?} of {last_due:?}");
        }
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
    }
}

//! Computes how long the supervisor may sleep before its next step. The launcher may share cores
//! with the measured run, so it observes no more often than needed: exits and signals wake it at
//! once, it sleeps until faults and deadlines are due, and otherwise it only samples the open
//! orders.
//!
//! Samples must be dense while the number of open orders changes, which is at the start: so the
//! interval grows with the elapsed time. It is short again once the last order is due, in runs
//! whose orders have no due times (closed pacing, user-defined strategies), and with injected
//! faults.

use super::{Phase, Supervisor};
use std::time::Duration;

/// Interval while nothing happens.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between the supervisor's steps while a death is being repaired.
pub const BUSY_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Interval of a benchmark: the launcher may share a core with a measured loop.
const MEASURED_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Interval near the end.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(500);
/// A sleep is at most this share of the time since the start.
const SHARE: u32 = 4;

/// Returns the longest sleep at `since` after the start; `last_due` is `None` if unknown.
fn pause(since: Duration, last_due: Option<Duration>) -> Duration {
    match last_due.and_then(|due| due.checked_sub(since)).filter(|left| !left.is_zero()) {
        Some(left) => (since / SHARE).clamp(POLL_INTERVAL, LONGEST).min(left.max(Duration::from_millis(1))),
        None => POLL_INTERVAL,
    }
}

impl Supervisor<'_> {
    /// Returns the maximum time from the supervisor's last step to the next one, if neither an exit
    /// nor a signal comes before.
    pub fn max_pause(&self) -> Duration {
        let pause = match &self.phase {
            // The interval grows with the time: each start-up is known to within a twentieth.
            Phase::Starting(_) => {
                let waited = Duration::from_nanos(self.now_ns().saturating_sub(self.ns(self.began)));
                (waited / 20).clamp(Duration::from_millis(1), POLL_INTERVAL)
            }
            Phase::Trading if self.is_draining => POLL_INTERVAL,
            Phase::Trading => pause(Duration::from_nanos(self.now_ns()), self.last_due),
            Phase::Measuring(_) => MEASURED_POLL_INTERVAL,
            Phase::Closing(_) | Phase::Settling(_) => CLOSE_POLL_INTERVAL,
            Phase::Draining(drain) => {
                let idle = Duration::from_nanos(self.now_ns().saturating_sub(drain.idle_since_ns));
                self.limits.idle.saturating_sub(idle).max(CLOSE_POLL_INTERVAL)
            }
            Phase::Failing(failing) => return failing.time_left(self.now_ns(), self.limits.exit_wait),
            Phase::Stopping(_) | Phase::Ended => return Duration::ZERO,
        };
        let pause = pause.min(self.liveness.max_interval()).min(self.until_fault()).min(self.until_restart());
        if self.early_deaths.is_urgent(self.now_ns()) {
            return Duration::ZERO;
        }
        let pause = if self.containment.has_threads() { MEASURED_POLL_INTERVAL.min(pause) } else { pause };
        if self.is_restarting { BUSY_POLL_INTERVAL.min(pause) } else { pause }
    }

    /// Returns `true` while the engine repairs a strategy's death, so that the supervisor's next
    /// step is due when the repair ends.
    pub fn awaits_repair(&self) -> bool {
        !self.early_deaths.is_urgent(self.now_ns())
            && !matches!(self.phase, Phase::Failing(_) | Phase::Stopping(_) | Phase::Ended)
            && self.containment.is_repairing()
    }

    /// Returns the time until the next fault is to be injected. If one is due and waits for its
    /// victim to start, until the next step.
    fn until_fault(&self) -> Duration {
        match self.faults.next_due_ns() {
            Some(due) if self.start_ticks > 0 => {
                let left = due.checked_sub(self.now_ns()).filter(|left| *left > 0);
                left.map_or(BUSY_POLL_INTERVAL, Duration::from_nanos)
            }
            _ => Duration::MAX,
        }
    }

    /// Returns the time until the next waiting process is restarted.
    fn until_restart(&self) -> Duration {
        let due = self.containment.next_restart_ns();
        due.map_or(Duration::MAX, |due| Duration::from_nanos(due.saturating_sub(self.now_ns())))
    }
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
}

//! Stall detection: a run that makes no progress although it should, for example because lost
//! orders leave strategies waiting.
//!
//! Expected progress is known without trusting a strategy: the engine counts orders taken and
//! settled, and the schedule determines when the next order is due. A run that waits for an order
//! that is due in an hour does not stall.

use super::Deadline;
use std::time::Duration;

/// Maximum time without progress, in addition to the longest delay of a venue.
const SILENCE: Duration = Duration::from_secs(10);

/// Detects that a run stalls: the engine has made no progress for a time.
#[derive(Clone, Copy, Debug)]
pub struct StallWatch {
    deadline: Deadline,
    progress_count: u64,
}

/// The engine's progress: how many orders it has taken and settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressCounters {
    /// Counts everything done with an order.
    pub count: u64,
    /// Orders at venues.
    pub open: u64,
}

impl StallWatch {
    /// Creates a stall detector for a run whose venues delay orders by at most `max_delay_ns`.
    /// Times are nanoseconds since the start of the run.
    pub const fn new(max_delay_ns: u64) -> Self {
        Self::with_limit(SILENCE.saturating_add(Duration::from_nanos(max_delay_ns)))
    }

    /// Creates a stall detector with this limit for a time without progress.
    pub const fn with_limit(limit: Duration) -> Self {
        Self { deadline: Deadline::within(limit, 0), progress_count: 0 }
    }

    /// Records the engine's progress counters and checks for a stall. Returns `true` if the run
    /// stalls. `awake_since_ns`: since when the launcher has been awake without a break.
    /// `starved_ns`: when a thread was last starved. `due_after`: the earliest time after the given
    /// one at which a strategy that is not done is due to send; [`None`] if one of them only waits
    /// for reports.
    pub fn check_stall(
        &mut self,
        now_ns: u64,
        awake_since_ns: u64,
        starved_ns: u64,
        engine: ProgressCounters,
        due_after: impl FnOnce(u64) -> Option<u64>,
    ) -> bool {
        if engine.count != self.progress_count {
            self.progress_count = engine.count;
            self.deadline.restart(now_ns);
        }
        self.deadline.restart(awake_since_ns);
        if !self.deadline.is_over(now_ns, starved_ns) {
            return false;
        }
        let since = self.deadline.since(starved_ns);
        let expected = if engine.open > 0 { since } else { due_after(since).unwrap_or(since) };
        now_ns.saturating_sub(expected) > self.deadline.limit()
    }

    /// Returns the time without progress after which a run counts as stalled.
    pub const fn limit(&self) -> Duration {
        Duration::from_nanos(self.deadline.limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn moved(count: u64, open: u64) -> ProgressCounters {
        ProgressCounters { count, open }
    }

    /// Returns the next due time, as the supervisor does.
    fn due(times: &[u64]) -> impl Fn(u64) -> Option<u64> + '_ {
        |since| times.iter().copied().find(|time| *time > since)
    }

    #[test]
    fn unreturned_orders_at_venue_stall_run() {
        let mut stall = StallWatch::new(5 * S);
        assert!(!stall.check_stall(S, 0, 0, moved(7, 3), due(&[100 * S])));
        assert!(
            !stall.check_stall(16 * S, 0, 0, moved(7, 3), due(&[100 * S])),
            "the longest delay, and the silence"
        );
        assert!(stall.check_stall(16 * S + 1, 0, 0, moved(7, 3), due(&[100 * S])), "whatever is due later");
        assert!(!stall.check_stall(16 * S + 2, 0, 0, moved(8, 2), due(&[])), "one came");
    }

    #[test]
    fn overdue_order_stalls_but_future_order_does_not() {
        let mut stall = StallWatch::new(0);
        let times = [3600 * S, 7200 * S];
        assert!(!stall.check_stall(S, 0, 0, moved(2, 0), due(&times)));
        assert!(!stall.check_stall(3610 * S, 0, 0, moved(2, 0), due(&times)));
        assert!(
            stall.check_stall(3610 * S + 1, 0, 0, moved(2, 0), due(&times)),
            "it was due and did not come"
        );
    }

    #[test]
    fn starved_thread_extends_stall_limit_up_to_bound() {
        let mut stall = StallWatch::new(0);
        assert!(!stall.check_stall(S, 0, 0, moved(2, 1), |_| None));
        // A thread that is always starved.
        let always = (2..)
            .map(|second| second * S)
            .find(|now| stall.check_stall(*now, 0, *now, moved(2, 1), |_| None));
        assert_eq!(always, Some(62 * S), "since the first second, six times ten");
        assert!(!stall.check_stall(16 * S, 0, 9 * S, moved(3, 1), |_| None), "one came");
        assert!(!stall.check_stall(30 * S, 0, 25 * S, moved(3, 1), |_| None));
        assert!(
            stall.check_stall(35 * S + 1, 0, 25 * S, moved(3, 1), |_| None),
            "everybody has run, and nothing moves"
        );
    }

    #[test]
    fn missing_reports_stall_run() {
        let mut stall = StallWatch::new(0);
        assert!(!stall.check_stall(S, 0, 0, moved(2, 0), |_| None));
        assert!(!stall.check_stall(11 * S, 0, 0, moved(2, 0), |_| None));
        assert!(stall.check_stall(11 * S + 1, 0, 0, moved(2, 0), |_| None));
        assert!(
            !stall.check_stall(11 * S + 1, 5 * S, 0, moved(2, 0), |_| None),
            "the machine slept in between"
        );
    }
}

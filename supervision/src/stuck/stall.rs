//! Stall detection: a run that makes no progress although it should, for example because lost
//! orders leave strategies waiting.
//!
//! Expected progress is known without trusting a strategy: the engine counts orders taken and
//! settled, and the schedule determines when the next order is due. A run that waits for an order
//! that is due in an hour does not stall.

use super::Deadline;
use std::time::Duration;

/// A detector of a stalled run: it measures for how long the engine has made no progress.
#[derive(Clone, Copy, Debug)]
pub struct StallWatch {
    deadline: Deadline,
    progress_count: u64,
}

/// The engine's counters by which a stall is detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgressCounters {
    /// Number that grows with everything that the engine does with an order. It falls while a
    /// successor of the engine reads its journal: only a count above all earlier ones is progress.
    pub count: u64,
    /// Number of orders at venues.
    pub open: u64,
}

impl StallWatch {
    /// Creates a detector of a stalled engine with the maximum time without progress. Times are
    /// nanoseconds since the start of the run.
    pub const fn with_limit(limit: Duration) -> Self {
        Self { deadline: Deadline::within(limit, 0), progress_count: 0 }
    }

    /// Lets deaths extend the wait by the pauses of a crash loop as well.
    pub(crate) const fn allow_pauses(&mut self, pauses: Duration) {
        self.deadline.lengthen(pauses.as_nanos() as u64);
    }

    /// Records the engine's progress counters and checks for a stall. Returns `true` if the run
    /// stalls. `awake_since_ns`: since when the launcher has been awake without a break.
    /// `starved_ns`: when a thread was last starved. `due_after`: the earliest time after the given
    /// one at which a strategy that is not done is due to send; [`None`] if one of them only waits
    /// for reports.
    pub(crate) fn check_stall(
        &mut self,
        now_ns: u64,
        awake_since_ns: u64,
        starved_ns: u64,
        engine: ProgressCounters,
        due_after: impl FnOnce(u64) -> Option<u64>,
    ) -> bool {
        if engine.count > self.progress_count {
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

    /// Returns the time for which the engine has made no progress, in nanoseconds.
    pub const fn silent_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.deadline.since(0))
    }

    /// Returns the maximum time without progress.
    pub(crate) const fn limit(&self) -> Duration {
        Duration::from_nanos(self.deadline.limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// A stall detector for ten seconds in addition to a delay.
    fn stall_watch(max_delay: u64) -> StallWatch {
        StallWatch::with_limit(Duration::from_secs(10 + max_delay))
    }

    /// One check: when in seconds, the progress count, orders at venues, when a thread was last
    /// starved, and whether the run stalls.
    type Check = (f64, u64, u64, u64, bool);

    /// Checks a run in which orders are due at these seconds, as the supervisor does.
    fn assert_stalls(case: &str, stall: &mut StallWatch, awake_since: u64, due: &[u64], checks: &[Check]) {
        let due_after = |since| due.iter().map(|due| due * S).find(|time| *time > since);
        for (now, count, open, starved, expected) in checks {
            let (now, engine) = ((now * S as f64) as u64, ProgressCounters { count: *count, open: *open });
            let found = stall.check_stall(now, awake_since * S, starved * S, engine, due_after);
            assert_eq!(found, *expected, "{case}: at {now}");
        }
    }

    #[test]
    fn run_stalls_only_where_progress_is_expected() {
        let cases: [(&str, u64, &[u64], &[Check]); 5] = [
            (
                "an order at a venue, for the longest delay and the silence, whatever is due later",
                5,
                &[100],
                &[
                    (1.0, 7, 3, 0, false),
                    (16.0, 7, 3, 0, false),
                    (16.1, 7, 3, 0, true),
                    (16.2, 8, 2, 0, false),
                ],
            ),
            (
                "an order that is due in an hour, and does not come",
                0,
                &[3600, 7200],
                &[(1.0, 2, 0, 0, false), (3610.0, 2, 0, 0, false), (3610.1, 2, 0, 0, true)],
            ),
            (
                "reports that are waited for",
                0,
                &[],
                &[(1.0, 2, 0, 0, false), (11.0, 2, 0, 0, false), (11.1, 2, 0, 0, true)],
            ),
            (
                "an engine that is killed again and again, and counts up to where it was",
                0,
                &[],
                &[(1.0, 9, 4, 0, false), (6.0, 0, 4, 0, false), (9.0, 9, 4, 0, false), (11.1, 9, 4, 0, true)],
            ),
            (
                "a thread that was starved, and has run since",
                0,
                &[],
                &[
                    (1.0, 3, 1, 0, false),
                    (16.0, 3, 1, 9, false),
                    (30.0, 3, 1, 25, false),
                    (35.1, 3, 1, 25, true),
                ],
            ),
        ];
        for (case, max_delay, due, checks) in cases {
            assert_stalls(case, &mut stall_watch(max_delay), 0, due, checks);
        }
    }

    #[test]
    fn pause_of_launcher_and_starvation_extend_limit() {
        let mut stall = stall_watch(0);
        assert_stalls("paused", &mut stall, 0, &[], &[(1.0, 2, 0, 0, false), (11.1, 2, 0, 0, true)]);
        assert_stalls("paused", &mut stall, 5, &[], &[(11.1, 2, 0, 0, false)]);
        let mut stall = stall_watch(0);
        assert_stalls("starved", &mut stall, 0, &[], &[(1.0, 2, 1, 0, false)]);
        let always: Vec<Check> = (2..=62).map(|now| (now as f64, 2, 1, now, now == 62)).collect();
        assert_stalls("starved, six times ten seconds since the first", &mut stall, 0, &[], &always);
    }
}

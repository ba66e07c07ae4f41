//! A run in which nothing moves any more although something should: orders that were lost leave
//! strategies waiting for ever.
//!
//! What should move is known without asking a strategy: the engine says how many orders it has
//! taken and settled, and the schedule says when the next order is due. A run that waits for an
//! order that is due in an hour does not stall.

use super::Deadline;
use std::time::Duration;

/// How long nothing may move, beyond the longest delay of a venue.
const SILENCE: Duration = Duration::from_secs(10);

/// When the engine last moved an order.
#[derive(Clone, Copy, Debug)]
pub struct StallWatch {
    deadline: Deadline,
    moved: u64,
}

/// What the engine says about its orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Counts everything that it does with an order.
    pub count: u64,
    /// Orders at venues.
    pub open: u64,
}

impl StallWatch {
    /// Watches a run whose venues take that long at most. Times are nanoseconds since the start of
    /// the run.
    pub const fn new(max_delay_ns: u64) -> Self {
        Self::silent_for(SILENCE.saturating_add(Duration::from_nanos(max_delay_ns)))
    }

    /// Watches for a silence of that length.
    pub const fn silent_for(limit: Duration) -> Self {
        Self { deadline: Deadline::within(limit, 0), moved: 0 }
    }

    /// Returns `true` if the run stalls. `awake_since_ns`: since when the launcher has been awake
    /// without a break. `starved_ns`: when a thread was last seen to wait for a core. `due_after`:
    /// the earliest time after the given one at which a strategy that is not done is due to send;
    /// [`None`] if one of them has nothing left to send and only waits for reports.
    pub fn look(
        &mut self,
        now_ns: u64,
        awake_since_ns: u64,
        starved_ns: u64,
        engine: Moved,
        due_after: impl FnOnce(u64) -> Option<u64>,
    ) -> bool {
        if engine.count != self.moved {
            self.moved = engine.count;
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

    /// Returns how long it waits.
    pub const fn limit(&self) -> Duration {
        Duration::from_nanos(self.deadline.limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn moved(count: u64, open: u64) -> Moved {
        Moved { count, open }
    }

    /// Strategies that are due at these times, as the supervisor asks for it.
    fn due(times: &[u64]) -> impl Fn(u64) -> Option<u64> + '_ {
        |since| times.iter().copied().find(|time| *time > since)
    }

    #[test]
    fn orders_that_are_at_a_venue_come_back_or_the_run_stalls() {
        let mut stall = StallWatch::new(5 * S);
        assert!(!stall.look(S, 0, 0, moved(7, 3), due(&[100 * S])));
        assert!(
            !stall.look(16 * S, 0, 0, moved(7, 3), due(&[100 * S])),
            "the longest delay, and the silence"
        );
        assert!(stall.look(16 * S + 1, 0, 0, moved(7, 3), due(&[100 * S])), "whatever is due later");
        assert!(!stall.look(16 * S + 2, 0, 0, moved(8, 2), due(&[])), "one came");
    }

    #[test]
    fn a_slow_schedule_is_waited_for_and_an_order_that_was_due_is_not() {
        let mut stall = StallWatch::new(0);
        let times = [3600 * S, 7200 * S];
        assert!(!stall.look(S, 0, 0, moved(2, 0), due(&times)));
        assert!(!stall.look(3610 * S, 0, 0, moved(2, 0), due(&times)));
        assert!(stall.look(3610 * S + 1, 0, 0, moved(2, 0), due(&times)), "it was due and did not come");
    }

    #[test]
    fn who_waits_for_a_core_holds_it_up_and_not_for_ever() {
        let mut stall = StallWatch::new(0);
        assert!(!stall.look(S, 0, 0, moved(2, 1), |_| None));
        // One that is always seen to wait.
        let always =
            (2..).map(|second| second * S).find(|now| stall.look(*now, 0, *now, moved(2, 1), |_| None));
        assert_eq!(always, Some(62 * S), "since the first second, six times ten");
        assert!(!stall.look(16 * S, 0, 9 * S, moved(3, 1), |_| None), "one came");
        assert!(!stall.look(30 * S, 0, 25 * S, moved(3, 1), |_| None));
        assert!(
            stall.look(35 * S + 1, 0, 25 * S, moved(3, 1), |_| None),
            "everybody has run, and nothing moves"
        );
    }

    #[test]
    fn who_only_waits_for_reports_that_the_engine_does_not_have_waits_in_vain() {
        let mut stall = StallWatch::new(0);
        assert!(!stall.look(S, 0, 0, moved(2, 0), |_| None));
        assert!(!stall.look(11 * S, 0, 0, moved(2, 0), |_| None));
        assert!(stall.look(11 * S + 1, 0, 0, moved(2, 0), |_| None));
        assert!(!stall.look(11 * S + 1, 5 * S, 0, moved(2, 0), |_| None), "the machine slept in between");
    }
}

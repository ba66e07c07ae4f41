//! A wait with a limit, which counts only time in which the launcher was awake and the other side
//! could run.

use std::time::Duration;

/// How many limits excuses make a wait at most, where nothing else is said.
const LIMITS: u64 = 6;
/// The launcher looks far more often than this, in nanoseconds, however short a limit is.
const ASLEEP_NS: u64 = 1_000_000_000;

/// A wait that ends at its limit, later for who is excused. Times are nanoseconds since one moment.
/// A caller that never calls [`Deadline::look`] may use another unit.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    limit: u64,
    limits: u64,
    since: u64,
    looked: u64,
}

impl Deadline {
    /// Begins now.
    pub const fn new(limit: u64, now: u64) -> Self {
        Self { limit, limits: LIMITS, since: now, looked: now }
    }

    /// A deadline in nanoseconds.
    pub const fn within(limit: Duration, now_ns: u64) -> Self {
        Self::new(limit.as_nanos() as u64, now_ns)
    }

    /// Returns the same deadline, which excuses make as long as that many limits at most.
    #[must_use]
    pub const fn stretched_to(self, limits: u64) -> Self {
        Self { limits, ..self }
    }

    /// Begins the wait again, unless it has begun later: what it waits for has come, or the
    /// launcher was away.
    pub const fn restart(&mut self, now: u64) {
        if now > self.since {
            self.since = now;
        }
    }

    /// Notes that the launcher is awake. A gap of half of the limit since its last look means that
    /// the machine stood still: the wait begins again. Called several times within the limit, or a
    /// second if that is longer.
    pub const fn look(&mut self, now_ns: u64) {
        let asleep = if self.limit / 2 > ASLEEP_NS { self.limit / 2 } else { ASLEEP_NS };
        if now_ns.saturating_sub(self.looked) > asleep {
            self.since = now_ns;
        }
        self.looked = now_ns;
    }

    /// Returns since when the limit counts. `excused`: when an excuse was last seen, 0 for never.
    pub const fn since(&self, excused: u64) -> u64 {
        let longest = self.since.saturating_add(self.limit.saturating_mul(self.limits - 1));
        let excused = if excused < longest { excused } else { longest };
        if excused > self.since { excused } else { self.since }
    }

    /// Returns `true` if the wait is over. `excused`: when an excuse was last seen, 0 for never.
    pub const fn is_over(&self, now: u64, excused: u64) -> bool {
        now.saturating_sub(self.since(excused)) > self.limit
    }

    /// Returns the limit.
    pub const fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// The second at which a wait of five is over for one who looks at these, with the second at
    /// which each sees the last excuse.
    fn over(looks: impl IntoIterator<Item = u64>, excused: impl Fn(u64) -> u64) -> Option<u64> {
        let mut deadline = Deadline::within(Duration::from_secs(5), 0);
        looks.into_iter().find(|second| {
            deadline.look(second * S);
            deadline.is_over(second * S, excused(*second) * S)
        })
    }

    #[test]
    fn wait_ends_behind_its_limit() {
        assert_eq!(over(1..100, |_| 0), Some(6));
        let mut deadline = Deadline::new(5, 0);
        deadline.restart(7);
        deadline.restart(3);
        assert!(!deadline.is_over(12, 0) && deadline.is_over(13, 0), "it began again at 7");
    }

    #[test]
    fn machine_that_stood_still_restarts_wait() {
        assert_eq!(over((1..3).chain(60..100), |_| 0), Some(66));
        assert_eq!(over((1..3).chain(5..100), |_| 0), Some(11), "for longer than half of it");
        assert_eq!(over((1..3).chain(4..100), |_| 0), Some(6), "not for so short a time");
        let mut short = Deadline::within(Duration::from_millis(1), 0);
        let mut is_over_at = |now| {
            short.look(now);
            short.is_over(now, 0)
        };
        assert!(is_over_at(S / 20), "a launcher that looks less often than the limit is not asleep");
    }

    #[test]
    fn excuse_prolongs_wait_up_to_its_bound() {
        assert_eq!(over(1..100, |second| second.min(8)), Some(14));
        assert_eq!(over(1..100, |second| second), Some(31), "excused for ever");
        let ten = Deadline::new(5, 0).stretched_to(10);
        assert!(!ten.is_over(50, 50) && ten.is_over(51, 51));
        assert!(ten.is_over(6, 0), "an excuse that is over does not count");
    }

    #[test]
    fn deadlines_that_believe_everything_are_found() {
        // One that any excuse restarts is never over; one that counts the launcher's sleep ends too
        // early.
        let believes = |now: u64, excused: u64| now - excused > 5 * S;
        assert_eq!((1..100).find(|second| believes(second * S, second * S)), None);
        let counts = Deadline::within(Duration::from_secs(5), 0);
        assert_eq!((1..3).chain(60..100).find(|second| counts.is_over(second * S, 0)), Some(60));
    }
}

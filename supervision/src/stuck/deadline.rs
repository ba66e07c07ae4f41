//! A wait with a time limit, which counts only time in which the launcher was awake and the awaited
//! thread could run.

use std::time::Duration;

/// Maximum length of an extended wait, in limits, unless set otherwise.
const DEFAULT_STRETCH: u64 = 6;
/// Minimum gap that counts as a pause of the machine, in nanoseconds, however short a limit is.
const MIN_ASLEEP_NS: u64 = 1_000_000_000;

/// A wait with a time limit, in nanoseconds, which is extended while the awaited thread lacks CPU
/// time. Times are nanoseconds since one moment. A caller that never calls [`Deadline::mark_awake`]
/// may use another unit.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    limit: u64,
    stretch: u64,
    /// Time by which the longest wait exceeds the limit's multiple.
    pauses: u64,
    since: u64,
    last_awake: u64,
}

impl Deadline {
    /// Creates the deadline of a wait that begins now, with a limit in the unit of `now`.
    pub(crate) const fn new(limit: u64, now: u64) -> Self {
        Self { limit, stretch: DEFAULT_STRETCH, pauses: 0, since: now, last_awake: now }
    }

    /// Creates the deadline of a wait that begins at a time in nanoseconds.
    pub(crate) const fn within(limit: Duration, now_ns: u64) -> Self {
        Self::new(limit.as_nanos() as u64, now_ns)
    }

    /// Returns the deadline with the maximum length of an extended wait set to `limits` times the
    /// time limit.
    #[must_use]
    pub const fn stretched_to(self, limits: u64) -> Self {
        Self { stretch: limits, ..self }
    }

    /// Sets the time `pauses`, in the unit of the time limit, that is added to the maximum length
    /// of an extended wait.
    pub const fn lengthen(&mut self, pauses: u64) {
        self.pauses = pauses;
    }

    /// Moves the start of the wait's time limit to the time `now`, unless it is later already.
    pub const fn restart(&mut self, now: u64) {
        if now > self.since {
            self.since = now;
        }
    }

    /// Records that the launcher is running, so that time in which it was paused does not count. A
    /// gap of half of the limit since the last call means that the machine was paused: the wait
    /// restarts. Must be called several times within the limit, or within a second if that is
    /// longer.
    pub const fn mark_awake(&mut self, now_ns: u64) {
        let asleep = if self.limit / 2 > MIN_ASLEEP_NS { self.limit / 2 } else { MIN_ASLEEP_NS };
        if now_ns.saturating_sub(self.last_awake) > asleep {
            self.since = now_ns;
        }
        self.last_awake = now_ns;
    }

    /// Returns the time from which the time limit counts, in the limit's unit: the wait's start, or
    /// its last extension if later. The extension counts only up to the maximum length of the wait.
    /// `extended`: when it was last extended, 0 for never.
    pub const fn since(&self, extended: u64) -> u64 {
        let longest = self.limit.saturating_mul(self.stretch - 1).saturating_add(self.pauses);
        let longest = self.since.saturating_add(longest);
        let extended = if extended < longest { extended } else { longest };
        if extended > self.since { extended } else { self.since }
    }

    /// Returns `true` if the wait has exceeded its time limit at the time `now`, in the limit's
    /// unit. `extended`: when it was last extended, 0 for never.
    pub const fn is_over(&self, now: u64, extended: u64) -> bool {
        now.saturating_sub(self.since(extended)) > self.limit
    }

    /// Returns the limit, without extensions.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Returns the second at which a wait of five is over if polled at these seconds, each with the
    /// second of the last extension.
    fn over(looks: impl IntoIterator<Item = u64>, extended: impl Fn(u64) -> u64) -> Option<u64> {
        let mut deadline = Deadline::within(Duration::from_secs(5), 0);
        looks.into_iter().find(|second| {
            deadline.mark_awake(second * S);
            deadline.is_over(second * S, extended(*second) * S)
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
            short.mark_awake(now);
            short.is_over(now, 0)
        };
        assert!(is_over_at(S / 20), "a launcher that looks less often than the limit is not asleep");
    }

    #[test]
    fn extension_prolongs_wait_up_to_its_bound() {
        assert_eq!(over(1..100, |second| second.min(8)), Some(14));
        assert_eq!(over(1..100, |second| second), Some(31), "extended for ever");
        let ten = Deadline::new(5, 0).stretched_to(10);
        assert!(!ten.is_over(50, 50) && ten.is_over(51, 51));
        assert!(ten.is_over(6, 0), "an extension that is over does not count");
    }

    #[test]
    fn deadlines_that_believe_everything_are_found() {
        // A deadline that any extension restarts never ends; one that counts the launcher's pause
        // ends too early.
        let believes = |now: u64, extended: u64| now - extended > 5 * S;
        assert_eq!((1..100).find(|second| believes(second * S, second * S)), None);
        let counts = Deadline::within(Duration::from_secs(5), 0);
        assert_eq!((1..3).chain(60..100).find(|second| counts.is_over(second * S, 0)), Some(60));
    }
}

//! How long nothing is started in the place of what ended unasked: nothing at first, then longer each time up to a second. It bounds how
//! often that is done, and not how many times: what was wrong may be over some day.

use std::time::{Duration, Instant};

/// The pause behind the second of them in a row.
const FIRST: Duration = Duration::from_millis(10);
/// No pause is longer. One that has lived for so long has ended for a reason of its own: it is the first one again.
const LONGEST: Duration = Duration::from_secs(1);

/// What was lost in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::runtime) struct Pause {
    losses: u32,
    /// When the last one was.
    last: Option<Instant>,
}

impl Pause {
    /// One that was started then has ended by now, or could not be started.
    pub fn lost(&mut self, started: Instant, now: Instant) {
        let has_lived = now.saturating_duration_since(started) >= LONGEST;
        self.losses = if has_lived { 1 } else { self.losses.saturating_add(1) };
        self.last = Some(now);
    }

    /// Whether the next one may be started.
    pub fn is_over(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= self.length())
    }

    fn length(&self) -> Duration {
        match self.losses {
            0 | 1 => Duration::ZERO,
            losses => FIRST.saturating_mul(1 << (losses - 2).min(16)).min(LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When another one may be started.
    trait Policy {
        fn lost(&mut self, started: Instant, now: Instant);
        fn is_over(&self, now: Instant) -> bool;
    }

    impl Policy for Pause {
        fn lost(&mut self, started: Instant, now: Instant) {
            self.lost(started, now);
        }

        fn is_over(&self, now: Instant) -> bool {
            self.is_over(now)
        }
    }

    /// As it was once: so many times, then never again.
    struct SoManyTimes(u32);

    impl Policy for SoManyTimes {
        fn lost(&mut self, _: Instant, _: Instant) {
            self.0 += 1;
        }

        fn is_over(&self, _: Instant) -> bool {
            self.0 <= 16
        }
    }

    /// As often as somebody looks.
    struct AtOnce;

    impl Policy for AtOnce {
        fn lost(&mut self, _: Instant, _: Instant) {}

        fn is_over(&self, _: Instant) -> bool {
            true
        }
    }

    const LOOK: Duration = Duration::from_millis(1);

    /// What does not hold of a policy for `minutes` in which each that is started ends after `life`; times are made up.
    fn wrong_with(mut policy: impl Policy, minutes: u32, life: Duration) -> Option<String> {
        let begin = Instant::now();
        let (mut now, mut started) = (begin, None::<Instant>);
        let (mut starts, mut without) = (0u32, Duration::ZERO);
        while now < begin + minutes * Duration::from_secs(60) {
            now += LOOK;
            if let Some(since) = started.filter(|since| now - *since >= life) {
                policy.lost(since, now);
                started = None;
                without = Duration::ZERO;
            }
            if started.is_none() {
                if policy.is_over(now) {
                    started = Some(now);
                    starts += 1;
                } else {
                    without += LOOK;
                }
            }
            if without > LONGEST + LOOK {
                return Some(format!("nothing is started for {without:?}, after {starts} starts"));
            }
        }
        let most = minutes * 60 + 10;
        (starts > most).then(|| format!("{starts} starts in {minutes} min"))
    }

    #[test]
    fn what_is_lost_is_replaced_for_ever_and_seldom() {
        for life in [Duration::ZERO, 30 * LOOK, 900 * LOOK] {
            assert_eq!(wrong_with(Pause::default(), 5, life), None, "{life:?}");
            assert!(wrong_with(SoManyTimes(0), 5, life).unwrap().contains("after 17 starts"));
        }
        assert!(wrong_with(AtOnce, 5, 30 * LOOK).unwrap().contains("starts in"));
    }

    #[test]
    fn one_that_has_lived_is_replaced_at_once() {
        let (begin, mut pause) = (Instant::now(), Pause::default());
        for _ in 0..40 {
            pause.lost(begin, begin);
        }
        assert!(!pause.is_over(begin + 999 * LOOK) && pause.is_over(begin + 1000 * LOOK));
        let later = begin + 10 * LONGEST;
        pause.lost(later - LONGEST, later);
        assert!(pause.is_over(later));
    }
}

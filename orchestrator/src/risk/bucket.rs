//! A token bucket in ticks: integers, and no division where orders pass. It keeps one number, the time at which it is full
//! again (the generic cell rate algorithm); each message moves that time by what one token takes to grow.

use serde::{Deserialize, Serialize};

/// Parts of a tick: rates are exact to one part in 256 of a tick a message, and never too high.
const PARTS: u32 = 8;

/// A bucket; off until it is given a rate.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Bucket {
    /// When it is full again, in parts of ticks since the start; in the past once it is.
    full_at: u64,
    /// Parts in which one token grows.
    step: u64,
    /// How far `full_at` may lie ahead for another message: the whole bucket but one token.
    allowance: u64,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { full_at: 0, step: 0, allowance: u64::MAX >> 1 }
    }
}

impl Bucket {
    /// Gives it another rate, in messages a second, and size; it is full then. No rate: off.
    pub(crate) fn set(&mut self, rate: Option<u64>, burst: u64, ns_per_tick: f64) {
        let Some(rate) = rate.filter(|rate| *rate > 0) else {
            *self = Self::default();
            return;
        };
        let parts_a_second = 1e9 / ns_per_tick * f64::from(1u32 << PARTS);
        let step = ((parts_a_second / rate as f64).ceil() as u64).max(1);
        *self =
            Self { full_at: 0, step, allowance: step.saturating_mul(burst.max(1) - 1).min(u64::MAX >> 1) };
    }

    /// Whether it holds a token at that time, in ticks since the start.
    #[inline(always)]
    pub(crate) const fn has(&self, now: u64) -> bool {
        let ahead = self.full_at.wrapping_sub(now << PARTS).cast_signed();
        ahead <= self.allowance.cast_signed()
    }

    /// Takes one out. It is there, or the bucket owes it.
    #[inline(always)]
    pub(crate) const fn take(&mut self, now: u64) {
        let now = now << PARTS;
        let is_full = self.full_at.wrapping_sub(now).cast_signed() < 0;
        self.full_at = if is_full { now } else { self.full_at }.wrapping_add(self.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bucket as one would tell a child: so many tokens, of which parts grow with time.
    struct Naive {
        level: u128,
        last: u64,
        step: u128,
        burst: u128,
    }

    impl Naive {
        fn takes(&mut self, now: u64) -> bool {
            let grown = u128::from(now - self.last) << PARTS;
            self.last = now;
            self.level = (self.level + grown).min(self.burst * self.step);
            let has = self.level >= self.step;
            self.level -= if has { self.step } else { 0 };
            has
        }
    }

    fn bucket(rate: u64, burst: u64) -> (Bucket, Naive) {
        let mut bucket = Bucket::default();
        bucket.set(Some(rate), burst, 0.5);
        let (step, burst) = (u128::from(bucket.step), u128::from(burst));
        (bucket, Naive { level: burst * step, last: 0, step, burst })
    }

    type Takes = fn(&mut Bucket, u64) -> bool;

    fn takes(bucket: &mut Bucket, now: u64) -> bool {
        let has = bucket.has(now);
        if has {
            bucket.take(now);
        }
        has
    }

    /// How often the two disagree.
    fn differences(takes: Takes, rate: u64, burst: u64, gaps: &[u64]) -> usize {
        let (mut bucket, mut naive) = bucket(rate, burst);
        let mut now = 0;
        gaps.iter()
            .filter(|gap| {
                now += **gap;
                takes(&mut bucket, now) != naive.takes(now)
            })
            .count()
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_naive_one(
            rate in 1u64..=1_000_000_000, burst in 1u64..50, gaps in prop::collection::vec(0u64..4, 1..300), far: u32,
        ) {
            // Gaps around what one token takes, and now and then a long one.
            let unit = (2_000_000_000 / rate).max(1);
            let gaps: Vec<u64> = gaps
                .iter()
                .enumerate()
                .map(|(n, gap)| gap * unit / 2 + if n % 97 == 96 { u64::from(far) } else { 0 })
                .collect();
            prop_assert_eq!(differences(takes, rate, burst, &gaps), 0);
        }
    }

    #[test]
    fn a_bucket_that_never_empties_is_found() {
        fn never_empty(bucket: &mut Bucket, now: u64) -> bool {
            bucket.has(now)
        }
        let gaps = [0; 20];
        assert_eq!(differences(takes, 1_000, 5, &gaps), 0);
        assert!(differences(never_empty, 1_000, 5, &gaps) > 10);
    }

    #[test]
    fn the_last_token_of_a_burst_is_given_and_no_more() {
        let (mut bucket, _) = bucket(1_000_000, 3);
        // Two ticks a nanosecond: 2,000 a token.
        let times = [0, 0, 0, 0, 1_999, 2_000, 2_000, 3_999, 4_000];
        let taken = times.map(|now| takes(&mut bucket, 1 << 40 | now));
        assert_eq!(taken, [true, true, true, false, false, true, false, false, true]);
    }

    #[test]
    fn off_it_always_has_one() {
        let mut bucket = Bucket::default();
        for now in [0, 1, 1 << 40, 1 << 54] {
            assert!(takes(&mut bucket, now));
        }
    }
}

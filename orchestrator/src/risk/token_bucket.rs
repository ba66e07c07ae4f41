//! A token bucket whose time is in ticks, with integers and without a division per message.
//!
//! It keeps one number, the time at which it is full again (the generic cell rate algorithm, GCRA).
//! Each message advances that time by the time in which one token grows.

use serde::{Deserialize, Serialize};

/// Fraction bits of a tick: a rate is exact to 1/256 of a tick per message, and never too high.
const PARTS: u32 = 8;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct TokenBucket {
    /// When it is full again, in 1/256 ticks; in the past once it is full.
    full_at: u64,
    /// Time in which one token grows, in 1/256 ticks.
    step: u64,
    /// Maximum distance of `full_at` in the future for another message: the whole bucket minus one
    /// token.
    allowance: u64,
}

impl Default for TokenBucket {
    fn default() -> Self {
        Self { full_at: 0, step: 0, allowance: u64::MAX >> 1 }
    }
}

impl TokenBucket {
    /// Sets the token bucket's rate (messages per second) and size (messages), and fills the
    /// bucket. Without a rate it is unlimited.
    pub fn set(&mut self, rate: Option<u64>, burst: u64, ns_per_tick: f64) {
        let Some(rate) = rate.filter(|rate| *rate > 0) else {
            *self = Self::default();
            return;
        };
        let parts_a_second = 1e9 / ns_per_tick * f64::from(1u32 << PARTS);
        let step = ((parts_a_second / rate as f64).ceil() as u64).max(1);
        *self =
            Self { full_at: 0, step, allowance: step.saturating_mul(burst.max(1) - 1).min(u64::MAX >> 1) };
    }

    /// Returns `true` if the rate limit's bucket holds a token at `now`, in ticks since a fixed
    /// start.
    #[inline(always)]
    pub const fn has_token(&self, now: u64) -> bool {
        self.ahead(now) <= self.allowance.cast_signed()
    }

    /// Takes a token (one message) from the rate limit's bucket; an empty bucket goes below zero,
    /// so its next token comes later.
    #[inline(always)]
    pub const fn take(&mut self, now: u64) {
        let is_full = self.ahead(now) < 0;
        self.full_at = if is_full { now << PARTS } else { self.full_at }.wrapping_add(self.step);
    }

    #[inline(always)]
    const fn ahead(&self, now: u64) -> i64 {
        self.full_at.wrapping_sub(now << PARTS).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reference implementation: a number of tokens that grows with time.
    struct Naive {
        level: u128,
        last: u64,
        step: u128,
        burst: u128,
    }

    impl Naive {
        fn try_take(&mut self, now: u64) -> bool {
            let grown = u128::from(now - self.last) << PARTS;
            self.last = now;
            self.level = (self.level + grown).min(self.burst * self.step);
            let has = self.level >= self.step;
            self.level -= if has { self.step } else { 0 };
            has
        }
    }

    fn bucket(rate: u64, burst: u64) -> (TokenBucket, Naive) {
        let mut bucket = TokenBucket::default();
        bucket.set(Some(rate), burst, 0.5);
        let (step, burst) = (u128::from(bucket.step), u128::from(burst));
        (bucket, Naive { level: burst * step, last: 0, step, burst })
    }

    type Takes = fn(&mut TokenBucket, u64) -> bool;

    fn takes(bucket: &mut TokenBucket, now: u64) -> bool {
        let has = bucket.has_token(now);
        if has {
            bucket.take(now);
        }
        has
    }

    fn differences(takes: Takes, rate: u64, burst: u64, gaps: &[u64]) -> usize {
        let (mut bucket, mut naive) = bucket(rate, burst);
        let mut now = 0;
        gaps.iter()
            .filter(|gap| {
                now += **gap;
                takes(&mut bucket, now) != naive.try_take(now)
            })
            .count()
    }

    proptest! {
        #[test]
        fn token_bucket_agrees_with_reference(
            rate in 1u64..=1_000_000_000, burst in 1u64..50, gaps in prop::collection::vec(0u64..4, 1..300), far: u32,
        ) {
            // Gaps around the time of one token, and now and then a long one.
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
    fn bucket_that_never_empties_is_detected() {
        fn never_empty(bucket: &mut TokenBucket, now: u64) -> bool {
            bucket.has_token(now)
        }
        let gaps = [0; 20];
        assert_eq!(differences(takes, 1_000, 5, &gaps), 0);
        assert!(differences(never_empty, 1_000, 5, &gaps) > 10);
    }

    #[test]
    fn burst_gives_exactly_its_tokens() {
        let (mut bucket, _) = bucket(1_000_000, 3);
        // Two ticks per nanosecond: 2,000 per token.
        let times = [0, 0, 0, 0, 1_999, 2_000, 2_000, 3_999, 4_000];
        let taken = times.map(|now| takes(&mut bucket, 1 << 40 | now));
        assert_eq!(taken, [true, true, true, false, false, true, false, false, true]);
        let mut unlimited = TokenBucket::default();
        assert!([0, 1, 1 << 40, 1 << 54].iter().all(|now| takes(&mut unlimited, *now)));
    }
}

//! Histograms of the agents of a case, read and added up exactly.

use analysis::summary::Distribution;
use analysis::summary::figures::to_ns;
use roles::bench::account::AccountView;
use roles::bench::boards::counts::{
    BUCKET_COUNT, BUCKETS, BoardField, BoardMeasure, HISTOGRAM_WORDS, MAX_WORD, MIN_WORD, SUM, bucket_value,
    measure_at,
};
use shm::memory::ReadOnlyWords;
use shm::sync::Ordering;

/// Points of a curve for each decade of 1/(1 − p).
const POINTS_PER_DECADE: f64 = 20.0;
/// The minimum number of samples beyond a percentile.
const SAMPLES_BEYOND: f64 = 10.0;

/// The counters and histograms of one agent of the board benchmark, as the launcher reads them.
pub struct BoardCounts(ReadOnlyWords);

impl BoardCounts {
    /// Creates the launcher's view of an agent's result segment.
    pub fn new(account: &AccountView) -> Self {
        Self(account.own())
    }

    /// Reads one of the agent's counters.
    pub fn get(&self, field: BoardField) -> u64 {
        self.0.load(field as usize, Ordering::Relaxed)
    }

    /// Copies the histogram of one of the agent's measured durations.
    pub fn measure(&self, measure: BoardMeasure) -> HistogramSnapshot {
        HistogramSnapshot::from_words(&self.0.slice(measure_at(measure as usize), HISTOGRAM_WORDS))
    }
}

/// A histogram copied from shared memory, which can be merged. The memory may hold anything: a
/// misbehaving process gets wrong figures, and nothing worse.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    buckets: Vec<u64>,
    min: u64,
    max: u64,
    sum: u128,
}

impl HistogramSnapshot {
    /// Creates a histogram without values.
    pub fn new() -> Self {
        Self { buckets: vec![0; BUCKET_COUNT], min: u64::MAX, max: 0, sum: 0 }
    }

    /// Copies the histogram from shared memory.
    pub fn from_words(view: &ReadOnlyWords) -> Self {
        let mut tally = Self::new();
        let load = |place| view.load(place, Ordering::Relaxed);
        for (place, bucket) in tally.buckets.iter_mut().enumerate() {
            *bucket = load(BUCKETS + place);
        }
        tally.min = load(MIN_WORD).wrapping_sub(1);
        tally.max = load(MAX_WORD);
        tally.sum = load(SUM).into();
        tally
    }

    /// Adds another histogram, bucket by bucket.
    pub fn add(&mut self, other: &Self) {
        for (mine, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*other);
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// Returns the number of values in the histogram.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |all, count| all.saturating_add(*count))
    }

    /// The value at 1 − 1/`inverse`.
    fn value_at(&self, inverse: f64, count: u64) -> Option<u64> {
        // A little less than ten: 1 − 0.9 is not a tenth.
        if (count as f64) / inverse < SAMPLES_BEYOND - 1e-6 {
            return None;
        }
        let rank = ((count as f64 * (1.0 - inverse.recip()) - 1e-6).ceil() as u64).clamp(1, count);
        let mut seen = 0u64;
        for (bucket, found) in self.buckets.iter().enumerate() {
            seen = seen.saturating_add(*found);
            if seen >= rank {
                // A bucket's middle may lie beyond the one sample in it.
                return Some(bucket_value(bucket).min(self.max).max(self.min));
            }
        }
        None
    }

    /// Returns count, extremes, mean and percentiles of the histogram, in nanoseconds.
    pub fn distribution(&self, ns_per_tick: f64) -> Distribution {
        let count = self.count();
        if count == 0 {
            return Distribution::default();
        }
        let at = |inverse| self.value_at(inverse, count).map(|ticks| to_ns(ticks, ns_per_tick));
        Distribution {
            count,
            min_ns: Some(to_ns(self.min, ns_per_tick)),
            p50_ns: at(2.0),
            p90_ns: at(10.0),
            p99_ns: at(100.0),
            p999_ns: at(1_000.0),
            p9999_ns: at(10_000.0),
            max_ns: Some(to_ns(self.max, ns_per_tick)),
            mean_ns: Some(self.sum as f64 * ns_per_tick / count as f64),
        }
    }

    /// Returns the percentiles of the histogram as a curve: `(1/(1 − p), nanoseconds)`.
    pub fn curve(&self, ns_per_tick: f64) -> Vec<(f64, u64)> {
        let count = self.count();
        let point = |step: i32| {
            let inverse = 10f64.powf(f64::from(step) / POINTS_PER_DECADE);
            Some((inverse, to_ns(self.value_at(inverse, count)?, ns_per_tick)))
        };
        (0..).map_while(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use roles::bench::boards::counts::{SharedHistogram, bucket};
    use shm::memory::Region;

    fn counted(values: &[u64]) -> HistogramSnapshot {
        let words = Region::heap(HISTOGRAM_WORDS).words();
        let counts = SharedHistogram::new(words.clone());
        values.iter().for_each(|value| counts.add(*value));
        HistogramSnapshot::from_words(&words.into())
    }

    #[test]
    fn every_bucket_has_its_values_and_they_rise() {
        let mut last = None;
        for place in 0..BUCKET_COUNT {
            let value = bucket_value(place);
            assert_eq!(bucket(value), place);
            assert!(last < Some(value), "{place}");
            last = Some(value);
        }
        assert_eq!(bucket(u64::MAX), BUCKET_COUNT - 1);
    }

    #[test]
    fn percentiles_need_ten_samples_beyond_them() {
        let values: Vec<u64> = (1..=1_000).collect();
        let figures = counted(&values).distribution(2.0);
        assert_eq!((figures.count, figures.min_ns, figures.max_ns), (1_000, Some(2), Some(2_000)));
        assert_eq!((figures.p50_ns, figures.p99_ns, figures.p999_ns), (Some(1_000), Some(1_980), None));
        assert_eq!(figures.mean_ns, Some(1_001.0));
        assert_eq!(counted(&[]).distribution(1.0), Distribution::default());
        assert_eq!(counted(&[0]).distribution(1.0).min_ns, Some(0));
    }

    proptest! {
        #[test]
        fn added_counts_are_those_of_all_values(a in values(), b in values()) {
            let mut sum = counted(&a);
            sum.add(&counted(&b));
            prop_assert_eq!(sum, counted(&[&a[..], &b[..]].concat()));
        }

        #[test]
        fn a_percentile_is_that_of_the_sorted_values(mut values in values()) {
            let found = counted(&values).distribution(1.0).p90_ns;
            values.sort_unstable();
            let wanted = (values.len() >= 100).then(|| values[(values.len() * 9).div_ceil(10) - 1]);
            prop_assert_eq!(found.is_some(), wanted.is_some());
            if let (Some(found), Some(wanted)) = (found, wanted) {
                prop_assert!(found.abs_diff(wanted) <= wanted / 2_048 + 1, "{} {}", found, wanted);
            }
        }
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..39, any::<u64>()).prop_map(|(bits, value)| value % (2 << bits));
        proptest::collection::vec(value, 0..300)
    }
}

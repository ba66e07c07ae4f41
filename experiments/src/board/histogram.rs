//! Reads the histograms that a board's writer or reader stored in shared memory.

use merge::figures::MeasureSeries;
use protocol::shared_histogram::{BUCKETS, MAX_WORD, MIN_WORD, Resolution, SUM};
use shm::memory::ReadOnlyWords;
use shm::sync::Ordering;

/// Adds a histogram of an agent to a measure. The memory may hold anything: a misbehaving process
/// gets wrong figures, and nothing worse.
pub(super) fn record_histogram(
    series: &mut MeasureSeries,
    words: &ReadOnlyWords,
    resolution: Resolution,
    ns_per_tick: f64,
) {
    let load = |place| words.load(place, Ordering::Relaxed);
    let counts = (0..resolution.bucket_count())
        .map(|bucket| (resolution.bucket_value(bucket), load(BUCKETS + bucket)));
    let bounds = (load(MIN_WORD).wrapping_sub(1), load(MAX_WORD), load(SUM));
    series.record_counts(counts, bounds, ns_per_tick);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protocol::shared_histogram::SharedHistogram;
    use shm::memory::Region;
    use verdict::summary::Distribution;

    fn figures(parts: &[&[u64]], ns_per_tick: f64) -> Distribution {
        let mut series = MeasureSeries::default();
        for values in parts {
            let words = Region::heap(Resolution::FINE.words()).words();
            let counts = SharedHistogram::new(words.clone(), Resolution::FINE);
            values.iter().for_each(|value| counts.add(*value));
            record_histogram(&mut series, &words.into(), Resolution::FINE, ns_per_tick);
        }
        series.distribution(ns_per_tick)
    }

    #[test]
    fn every_bucket_has_its_values_and_they_rise() {
        for resolution in [Resolution::FINE, Resolution::COARSE] {
            let mut last = None;
            for place in 0..resolution.bucket_count() {
                let value = resolution.bucket_value(place);
                assert_eq!(resolution.bucket(value), place);
                assert!(last < Some(value), "{place}");
                last = Some(value);
            }
            assert_eq!(resolution.bucket(u64::MAX), resolution.bucket_count() - 1);
        }
    }

    #[test]
    fn overwritten_counts_do_not_panic() {
        let words = Region::heap(Resolution::FINE.words()).words();
        words.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        let mut series = MeasureSeries::default();
        record_histogram(&mut series, &words.into(), Resolution::FINE, 1.0);
        assert!(series.distribution(1.0).max_ns.is_some());
    }

    proptest! {
        #[test]
        fn shared_counts_have_the_percentiles_of_their_values(a in values(), b in values()) {
            let (found, mut all) = (figures(&[&a, &b], 1.0), [a, b].concat());
            all.sort_unstable();
            prop_assert_eq!((found.min_ns, found.max_ns), (all.first().copied(), all.last().copied()));
            let wanted = (all.len() >= 100).then(|| all[(all.len() * 9).div_ceil(10) - 1]);
            prop_assert_eq!(found.p90_ns.is_some(), wanted.is_some());
            if let (Some(found), Some(wanted)) = (found.p90_ns, wanted) {
                prop_assert!(found.abs_diff(wanted) <= wanted / 1_000 + 1, "{} {}", found, wanted);
            }
        }
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..39, any::<u64>()).prop_map(|(bits, value)| value % (2 << bits));
        proptest::collection::vec(value, 0..300)
    }
}

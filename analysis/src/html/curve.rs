//! Computes the percentile curves of a run from its `histograms.hlog`.

use crate::summary::Measure;
use hdrhistogram::Histogram;

/// Points a decade of 1/(1 − p): the steps between them are smaller than a pixel or two.
const POINTS_PER_DECADE: f64 = 40.0;
/// A percentile needs as many samples beyond it as in the summary.
const SAMPLES_BEYOND: f64 = 10.0;

/// The percentile curve of one measured duration.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The measure of the curve.
    pub measure: Measure,
    /// `(1/(1 − p), nanoseconds)`, rising, as far as the samples suffice.
    pub points: Vec<(f64, u64)>,
}

/// Returns the percentile curve of each histogram.
pub fn curves(histograms: &[(Measure, Histogram<u64>)]) -> Vec<Curve> {
    histograms
        .iter()
        .map(|(measure, histogram)| Curve { measure: *measure, points: points(histogram) })
        .collect()
}

/// One pass over the histogram: the value at each of a row of percentiles, evenly spread over the
/// logarithm.
fn points(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let samples = histogram.len() as f64;
    let mut points = Vec::new();
    let (mut step, mut seen) = (0, 0.0);
    for bucket in histogram.iter_recorded() {
        seen += bucket.count_since_last_iteration() as f64;
        loop {
            let inverse = 10f64.powf(f64::from(step) / POINTS_PER_DECADE);
            if samples / inverse < SAMPLES_BEYOND {
                return points;
            }
            let rank = ((1.0 - 1.0 / inverse) * samples).ceil().max(1.0);
            if rank > seen {
                break;
            }
            points.push((inverse, bucket.value_iterated_to().clamp(histogram.min(), histogram.max())));
            step += 1;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_as_far_as_its_samples() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for value in 1..=10_000 {
            histogram.record(value).unwrap();
        }
        let points = points(&histogram);
        let last = points.last().unwrap();
        assert!((last.0 / 1_000.0 - 1.0).abs() < 1e-9, "p99.9 of 10,000 samples is the last: {last:?}");
        for (inverse, value) in &points {
            let expected = histogram.value_at_quantile(1.0 - 1.0 / inverse);
            assert!(value.abs_diff(expected) <= expected / 500 + 1, "{inverse}: {value}, {expected}");
        }
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    }

    #[test]
    fn few_samples_give_no_curve() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record_n(7, 9).unwrap();
        assert!(points(&histogram).is_empty());
    }
}

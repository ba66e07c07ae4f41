//! Levels of a timeline: median and maximum of each bucket.

use super::plot::{DataSeries, SeriesKind};

/// Returns two series of a timeline chart: a band up to each time bucket's maximum latency, and a
/// line at its median. `begin` is the place of each bucket on the axis, `width` its width.
pub fn levels(begin: &[f64], width: f64, p50: &[Option<u64>], max: &[Option<u64>]) -> [DataSeries; 2] {
    let values = |known: &[Option<u64>]| -> Vec<f64> {
        known.iter().map(|ns| ns.map_or(f64::NAN, |ns| ns as f64)).collect()
    };
    let median =
        DataSeries { kind: SeriesKind::Steps, y: values(p50), ..DataSeries::with_class("p50", "c1") };
    // With too few orders for a median, the maximum is a thin mark.
    let greatest = DataSeries {
        kind: SeriesKind::Band,
        low: values(p50),
        y: values(max),
        ..DataSeries::with_class("greatest", "c7")
    };
    [greatest, median].map(|series| DataSeries { x: begin.to_vec(), width, ..series })
}

//! Draws latency by percentile, as HdrHistogram's plots do: each further nine takes equal space.

use super::plot::{DataSeries, Plot, PlotAxis, Unit};
use crate::summary::Distribution;
use hdrhistogram::Histogram;
use maud::Markup;
use record::numbers::duration;

/// Points a decade of 1/(1 − p): the steps between them are smaller than a pixel or two.
const POINTS_PER_DECADE: f64 = 40.0;
/// A percentile needs as many samples beyond it as in the summary.
const SAMPLES_BEYOND: f64 = 10.0;

/// One line of the percentile chart: the percentile curve of a measured duration, with its figures.
pub struct PercentileLine<'a> {
    /// Name of the measure.
    pub name: &'a str,
    /// CSS class of the line, for example `c2 dash`.
    pub class: &'a str,
    /// Points of the curve, as [`curve`] returns them: 1/(1 − p) and nanoseconds, rising.
    pub points: &'a [(f64, u64)],
    /// Figures of the measure, in nanoseconds; each known percentile has a dot.
    pub figures: Distribution,
}

/// Returns the percentile curve of a latency histogram as points `(1/(1 − p), nanoseconds)`, as far
/// as there are enough samples. One pass over the histogram.
pub fn curve(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    let samples = histogram.len() as f64;
    let mut points = Vec::new();
    let (mut step, mut counted) = (0, 0.0);
    for bucket in histogram.iter_recorded() {
        counted += bucket.count_since_last_iteration() as f64;
        loop {
            let inverse = 10f64.powf(f64::from(step) / POINTS_PER_DECADE);
            if samples / inverse < SAMPLES_BEYOND {
                return points;
            }
            let rank = ((1.0 - 1.0 / inverse) * samples).ceil().max(1.0);
            if rank > counted {
                break;
            }
            points.push((inverse, bucket.value_iterated_to().clamp(histogram.min(), histogram.max())));
            step += 1;
        }
    }
    points
}

/// Returns the known percentiles of a summary, each with its 1/(1 − p).
fn marks(figures: Distribution) -> impl Iterator<Item = (&'static str, f64, u64)> {
    let Distribution { p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, .. } = figures;
    [
        ("p50", 2.0, p50_ns),
        ("p90", 10.0, p90_ns),
        ("p99", 100.0, p99_ns),
        ("p99.9", 1_000.0, p999_ns),
        ("p99.99", 10_000.0, p9999_ns),
    ]
    .into_iter()
    .filter_map(|(name, inverse, ns)| Some((name, inverse, ns?)))
}

/// Draws latency by percentile as HTML, with a line for each measure; `None` if no line has points.
pub fn draw(id: &str, lines: &[PercentileLine<'_>]) -> Option<Markup> {
    let lines: Vec<&PercentileLine<'_>> = lines.iter().filter(|line| !line.points.is_empty()).collect();
    lines.first()?;
    let samples = lines.iter().map(|line| line.figures.count).max().unwrap_or(1).max(20) as f64;
    let described: Vec<String> =
        lines.iter().map(|line| format!("{}: {}", line.name, describe(line.figures))).collect();
    let plot = Plot {
        id: id.into(),
        description: format!("Lines of latency over percentile. {}.", described.join("; ")),
        height: 440,
        x: PlotAxis {
            is_log: true,
            range: Some([1.0, samples]),
            ..PlotAxis::new("percentile (each further nine takes the same room)", Unit::Percentile)
        },
        y: PlotAxis::with_log("latency", Unit::Duration, true),
        series: lines.iter().map(|line| series(line)).collect(),
        ..Plot::default()
    };
    Some(plot.figure())
}

fn describe(figures: Distribution) -> String {
    let known = marks(figures).map(|(name, _, ns)| format!("{name} {}", duration(ns)));
    let known = known.chain(figures.max_ns.map(|ns| format!("greatest {}", duration(ns))));
    known.collect::<Vec<_>>().join(", ")
}

/// Returns the curve with a dot at each known percentile. Beyond the last one, which has fewer than
/// ten samples, only a thin line leads to the maximum.
fn series(line: &PercentileLine<'_>) -> DataSeries {
    // Six digits are finer than a pixel.
    let rounded = |inverse: f64| format!("{inverse:.5e}").parse().unwrap_or(inverse);
    let mut points: Vec<(f64, f64)> =
        line.points.iter().map(|(inverse, ns)| (rounded(*inverse), *ns as f64)).collect();
    // The summary's figures are exact, the curve's are the upper ends of their buckets.
    for (_, inverse, ns) in marks(line.figures) {
        points.retain(|(other, _)| *other != inverse);
        points.push((inverse, ns as f64));
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    for index in (1..points.len()).rev() {
        points[index - 1].1 = points[index - 1].1.min(points[index].1);
    }
    let place = |inverse: f64| points.iter().position(|point| point.0 == inverse);
    DataSeries {
        dots: marks(line.figures).filter_map(|mark| place(mark.1)).collect(),
        tail: line.figures.max_ns.map(|max| [line.figures.count as f64, max as f64]),
        note: describe(line.figures),
        x: points.iter().map(|point| point.0).collect(),
        y: points.iter().map(|point| point.1).collect(),
        ..DataSeries::with_class(line.name, line.class)
    }
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
        let points = curve(&histogram);
        let last = points.last().unwrap();
        assert!((last.0 / 1_000.0 - 1.0).abs() < 1e-9, "p99.9 of 10,000 samples is the last: {last:?}");
        for (inverse, value) in &points {
            let expected = histogram.value_at_quantile(1.0 - 1.0 / inverse);
            assert!(value.abs_diff(expected) <= expected / 500 + 1, "{inverse}: {value}, {expected}");
        }
        assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        histogram.reset();
        histogram.record_n(7, 9).unwrap();
        assert!(curve(&histogram).is_empty(), "few samples give no curve");
    }
}

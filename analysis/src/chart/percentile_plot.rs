//! Draws latency by percentile, as HdrHistogram's plots do: each further nine takes equal space.

use super::axis;
use super::labels::{self, LineLabel};
use super::scale::Scale;
use super::svg::{Frame, SvgPath, coordinate, text};
use crate::numbers::duration;
use crate::summary::Distribution;
use hdrhistogram::Histogram;
use maud::{Markup, html};

/// Points a decade of 1/(1 − p): the steps between them are smaller than a pixel or two.
const POINTS_PER_DECADE: f64 = 40.0;
/// A percentile needs as many samples beyond it as in the summary.
const SAMPLES_BEYOND: f64 = 10.0;

/// One line of the chart: the percentile curve of a measure, with its figures.
pub struct PercentileLine<'a> {
    pub name: &'a str,
    pub class: &'a str,
    pub points: &'a [(f64, u64)],
    pub figures: Distribution,
}

/// Returns the percentile curve of a histogram: `(1/(1 − p), nanoseconds)`, rising, as far as the
/// samples suffice. One pass over the histogram.
pub fn curve(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
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

/// Draws the lines that have points; `None` without any.
pub fn draw(id: &str, lines: &[PercentileLine<'_>]) -> Option<Markup> {
    let lines: Vec<&PercentileLine<'_>> = lines.iter().filter(|line| !line.points.is_empty()).collect();
    lines.first()?;
    let frame = Frame::new(470.0);
    let samples = lines.iter().map(|line| line.figures.count).max().unwrap_or(1).max(20) as f64;
    let x = Scale::log_exact(1.0, samples, frame.x_range());
    let values = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let highest = lines.iter().filter_map(|line| line.figures.max_ns).chain(values()).max().unwrap_or(1);
    let lowest = values().min().unwrap_or(1).max(1);
    let y = Scale::log(lowest as f64, highest as f64, frame.y_range());
    let end = |line: &&PercentileLine<'_>| {
        let max = line.figures.max_ns?;
        Some(LineLabel {
            x: x.at(line.figures.count as f64),
            y: y.at((max as f64).max(1.0)),
            text: format!("{} {}", line.name, duration(max)),
            class: line.class.into(),
        })
    };
    let ends: Vec<LineLabel> = lines.iter().filter_map(end).collect();
    let content = html! {
        (axis::left(&frame, &y, "latency (logarithmic)", &axis::duration))
        (axis::bottom_at(&frame, &x, "percentile (each further nine takes the same room)", axis::percentile_ticks(samples)))
        (text(frame.right + 22.0, frame.top - 3.0, "start", "tick", "greatest"))
        @for line in &lines { (draw_line(line, &x, &y)) }
        (labels::draw(frame.right + 22.0, frame.top + 14.0, frame.bottom, &ends))
    };
    let describe = |line: &&PercentileLine<'_>| {
        let known = marks(line.figures).map(|(name, _, ns)| format!("{name} {}", duration(ns)));
        let known = known.chain(line.figures.max_ns.map(|ns| format!("greatest {}", duration(ns))));
        format!("{}: {}", line.name, known.collect::<Vec<_>>().join(", "))
    };
    let described: Vec<String> = lines.iter().map(describe).collect();
    let description = format!("Lines of latency over percentile. {}.", described.join("; "));
    Some(frame.drawing(id, "Latency by percentile", &description, &content))
}

fn draw_line(line: &PercentileLine<'_>, x: &Scale, y: &Scale) -> Markup {
    let PercentileLine { name, class, points, figures } = line;
    let place = |value: u64| y.at((value as f64).max(1.0));
    let mut path = SvgPath::default();
    for (inverse, value) in *points {
        path.line_to(x.at(*inverse), place(*value));
    }
    let last = points.last().map(|(inverse, value)| (x.at(*inverse), place(*value)));
    html! {
        g data-series=(name) data-count=(figures.count) data-min-ns=[figures.min_ns] data-p50-ns=[figures.p50_ns]
            data-p90-ns=[figures.p90_ns] data-p99-ns=[figures.p99_ns] data-p999-ns=[figures.p999_ns]
            data-p9999-ns=[figures.p9999_ns] data-max-ns=[figures.max_ns] {
            path d=(path.data()) class={ "line " (class) } {}
            @if let (Some((last_x, last_y)), Some(max)) = (last, figures.max_ns) {
                // Fewer than ten samples: no percentile, but a line to the maximum.
                line x1=(coordinate(last_x)) y1=(coordinate(last_y)) x2=(coordinate(x.at(figures.count as f64))) y2=(coordinate(place(max)))
                    class={ "line beyond " (class) } {}
                circle cx=(coordinate(x.at(figures.count as f64))) cy=(coordinate(place(max))) r="3.5" class={ "hollow " (class) } {
                    title { (name) " greatest: " (duration(max)) }
                }
            }
            @for (label, inverse, value) in marks(*figures) {
                circle cx=(coordinate(x.at(inverse))) cy=(coordinate(place(value))) r="3.5" class={ "dot " (class) }
                    data-mark=(label) data-ns=(value) {
                    title { (name) " " (label) ": " (duration(value)) }
                }
            }
        }
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

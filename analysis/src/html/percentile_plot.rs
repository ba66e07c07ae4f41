//! Draws latency by percentile, as HdrHistogram's plots do: each further nine takes equal space.

use super::axis;
use super::curve::Curve;
use super::labels::{self, LineLabel};
use super::scale::Scale;
use super::svg::{Frame, SvgPath, coordinate, text};
use crate::report::units::duration;
use crate::summary::{Distribution, Measure, Summary};
use maud::{Markup, html};
use protocol::flow::Stage;

/// The durations in a percentile plot, with the CSS classes of their lines. Sums are thick,
/// hand-offs thin.
pub const DRAWN: [(Measure, &str); 6] = [
    (Measure::RtVenueFromDue, "c2 strong dash"),
    (Measure::RtVenue, "c1 strong"),
    (Measure::Stage(Stage::Submit), "c3"),
    (Measure::Stage(Stage::Dispatch), "c4 dash"),
    (Measure::Stage(Stage::Completion), "c5 dots"),
    (Measure::Stage(Stage::Return), "c6 dashdot"),
];

/// The percentiles that a summary has, each with its position on the axis, 1/(1 − p).
pub const MARKS: [(&str, f64); 5] =
    [("p50", 2.0), ("p90", 10.0), ("p99", 100.0), ("p99.9", 1_000.0), ("p99.99", 10_000.0)];

/// Returns the percentile of a distribution that belongs to the entry `mark` of [`MARKS`].
pub const fn at_mark(figures: &Distribution, mark: usize) -> Option<u64> {
    match mark {
        0 => figures.p50_ns,
        1 => figures.p90_ns,
        2 => figures.p99_ns,
        3 => figures.p999_ns,
        _ => figures.p9999_ns,
    }
}

/// Draws latency by percentile, or a text if there is nothing to draw.
pub fn draw(summary: &Summary, curves: &[Curve]) -> Markup {
    let shown: Vec<_> = DRAWN
        .iter()
        .filter_map(|(measure, class)| {
            let curve = curves.iter().find(|curve| curve.measure == *measure)?;
            (!curve.points.is_empty()).then_some((curve, summary.distribution(*measure), *class))
        })
        .collect();
    if shown.is_empty() {
        return html! { p class="none" { "Too few orders came back for a percentile." } };
    }
    let frame = Frame::new(470.0);
    let most = shown.iter().map(|(_, figures, _)| figures.count).max().unwrap_or(1).max(20) as f64;
    let x = Scale::log_exact(1.0, most, frame.x_range());
    let values = || shown.iter().flat_map(|(curve, ..)| curve.points.iter().map(|point| point.1 as f64));
    let least = values().fold(f64::INFINITY, f64::min).max(1.0);
    let greatest = shown.iter().filter_map(|(_, figures, _)| figures.max_ns).max().unwrap_or(1) as f64;
    let y = Scale::log(least, greatest, frame.y_range());

    let mut ends = Vec::new();
    for (curve, figures, class) in &shown {
        let Some(max) = figures.max_ns else { continue };
        let place = (x.at(figures.count as f64), y.at((max as f64).max(1.0)));
        let name = format!("{} {}", curve.measure.name(), duration(max));
        ends.push(LineLabel { x: place.0, y: place.1, text: name, class: (*class).into() });
    }
    let content = html! {
        (axis::left(&frame, &y, "latency (logarithmic)", &axis::duration))
        (axis::bottom_at(&frame, &x, "percentile of orders (each further nine takes the same room)", axis::percentile_ticks(most)))
        (text(frame.right + 22.0, frame.top - 3.0, "start", "tick", "greatest"))
        @for (curve, figures, class) in &shown {
            (series(curve, figures, class, &x, &y))
        }
        (labels::draw(frame.right + 22.0, frame.top + 14.0, frame.bottom, &ends))
    };
    frame.drawing("percentiles", "Latency by percentile", &description(summary), &content)
}

fn series(curve: &Curve, figures: &Distribution, class: &str, x: &Scale, y: &Scale) -> Markup {
    let place = |value: u64| y.at((value as f64).max(1.0));
    let mut path = SvgPath::default();
    for (inverse, value) in &curve.points {
        path.line_to(x.at(*inverse), place(*value));
    }
    let last = curve.points.last().map(|(inverse, value)| (x.at(*inverse), place(*value)));
    let known = |mark: usize| at_mark(figures, mark);
    let name = curve.measure.name();
    html! {
        g data-series=(name) data-count=(figures.count) data-min-ns=[figures.min_ns] data-p50-ns=[known(0)]
            data-p90-ns=[known(1)] data-p99-ns=[known(2)] data-p999-ns=[known(3)] data-p9999-ns=[known(4)]
            data-max-ns=[figures.max_ns] {
            path d=(path.data()) class={ "line " (class) } {}
            @if let (Some((last_x, last_y)), Some(max)) = (last, figures.max_ns) {
                // Fewer than ten samples: no percentile, but a line to the maximum.
                line x1=(coordinate(last_x)) y1=(coordinate(last_y)) x2=(coordinate(x.at(figures.count as f64))) y2=(coordinate(place(max)))
                    class={ "line beyond " (class) } {}
                circle cx=(coordinate(x.at(figures.count as f64))) cy=(coordinate(place(max))) r="3.5" class={ "hollow " (class) } {
                    title { (name) " greatest: " (duration(max)) }
                }
            }
            @for (mark, (label, inverse)) in MARKS.iter().enumerate() {
                @if let Some(value) = known(mark) {
                    circle cx=(coordinate(x.at(*inverse))) cy=(coordinate(place(value))) r="3.5" class={ "dot " (class) }
                        data-mark=(label) data-ns=(value) {
                        title { (name) " " (label) ": " (duration(value)) }
                    }
                }
            }
        }
    }
}

fn description(summary: &Summary) -> String {
    let figures = &summary.rt_venue;
    let known = MARKS.iter().enumerate().filter_map(|(mark, (label, _))| {
        at_mark(figures, mark).map(|value| format!("{label} {}", duration(value)))
    });
    let known: Vec<String> = known.collect();
    format!(
        "Lines of latency over percentile for rt_venue, rt_venue from due and the four hand-offs. rt_venue: {}, \
         greatest {}. The table below has every figure.",
        known.join(", "),
        figures.max_ns.map_or_else(|| "unknown".into(), duration)
    )
}

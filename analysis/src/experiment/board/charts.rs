//! The charts of a case of the board benchmark: latency by percentile, and latency over time.

use super::{BoardCase, BoardCurve, BoardSlice};
use crate::chart::axis;
use crate::chart::labels::{self, LineLabel};
use crate::chart::scale::Scale;
use crate::chart::svg::{Frame, SvgPath};
use crate::numbers::duration;
use maud::{Markup, html};

/// The class of each measure's line.
const CLASSES: [(&str, &str); 5] = [
    ("write", "c1 strong"),
    ("from due", "c2 dash"),
    ("propagation", "c3 strong"),
    ("read", "c4 dash"),
    ("stale", "c5 dots"),
];

fn class(measure: &str) -> &'static str {
    CLASSES.iter().find(|(name, _)| *name == measure).map_or("c6", |(_, class)| class)
}

/// A line with its name.
struct PlotLine {
    name: String,
    class: &'static str,
    points: Vec<(f64, f64)>,
}

fn lines(lines: &[PlotLine], frame: &Frame, x: &Scale, y: &Scale) -> Markup {
    let end = |line: &PlotLine| {
        let (at, value) = *line.points.last()?;
        Some(LineLabel {
            x: x.at(at),
            y: y.at(value.max(1.0)),
            text: format!("{} {}", line.name, duration(value as u64)),
            class: line.class.into(),
        })
    };
    let ends: Vec<LineLabel> = lines.iter().filter_map(end).collect();
    let drawn = |line: &PlotLine| {
        let mut path = SvgPath::default();
        line.points.iter().for_each(|(at, value)| path.line_to(x.at(*at), y.at(value.max(1.0))));
        path.data().to_owned()
    };
    html! {
        @for line in lines {
            g data-series=(line.name) data-points=(line.points.len()) {
                path d=(drawn(line)) class={ "line " (line.class) } {}
            }
        }
        (labels::draw(frame.right + 22.0, frame.top + 6.0, frame.bottom, &ends))
    }
}

/// The scale of latencies that these lines need.
fn latencies(lines: &[PlotLine], frame: &Frame) -> Option<Scale> {
    let values = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.1.max(1.0)));
    let min = values().fold(f64::INFINITY, f64::min);
    let max = values().fold(0.0, f64::max);
    (max > 0.0).then(|| Scale::log(min, max, frame.y_range()))
}

/// Draws a case's latency by percentile.
pub fn percentiles(case: &BoardCase, number: usize) -> Option<Markup> {
    let frame = Frame::new(400.0);
    let line = |curve: &BoardCurve| PlotLine {
        name: curve.measure.clone(),
        class: class(&curve.measure),
        points: curve.points.iter().map(|(inverse, ns)| (*inverse, *ns as f64)).collect(),
    };
    let shown: Vec<PlotLine> =
        case.curves.iter().filter(|curve| !curve.points.is_empty()).map(line).collect();
    let y = latencies(&shown, &frame)?;
    let inverses = shown.iter().flat_map(|line| line.points.iter().map(|point| point.0));
    let max_inverse = inverses.fold(20.0, f64::max);
    let x = Scale::log_exact(1.0, max_inverse, frame.x_range());
    let content = html! {
        (axis::left(&frame, &y, "latency (logarithmic)", &axis::duration))
        (axis::bottom_at(&frame, &x, "percentile (each further nine takes the same room)", axis::percentile_ticks(max_inverse)))
        (lines(&shown, &frame, &x, &y))
    };
    let described = "Lines of latency over percentile for the write, the way to the readers and the read, as far as ten samples lie \
                     beyond. The table has the figures.";
    Some(
        html! { figure { figcaption { "Latency by percentile" } (frame.drawing(&format!("percentiles-{number}"), "Latency by percentile", described, &content)) } },
    )
}

/// Draws a case's latency over time.
pub fn over_time(case: &BoardCase, number: usize) -> Option<Markup> {
    let frame = Frame::new(340.0);
    let line = |name: &str, class, of: fn(&BoardSlice) -> Option<u64>| {
        let point = |slice: &BoardSlice| Some((slice.begin_ns as f64 / 1e9, of(slice)? as f64));
        PlotLine { name: name.into(), class, points: case.timeline.iter().filter_map(point).collect() }
    };
    let mut shown = vec![
        line("write p50", "c1 strong", |slice| slice.write_p50_ns),
        line("write p99", "c1 dash", |slice| slice.write_p99_ns),
        line("write max", "c1 dots", |slice| slice.write_max_ns),
        line("prop. p50", "c3 strong", |slice| slice.propagation_p50_ns),
        line("prop. p99", "c3 dash", |slice| slice.propagation_p99_ns),
        line("prop. max", "c3 dots", |slice| slice.propagation_max_ns),
    ];
    shown.retain(|line| !line.points.is_empty());
    let y = latencies(&shown, &frame)?;
    let x = Scale::linear(0.0, (case.duration_ns as f64 / 1e9).max(1e-3), frame.x_range());
    let content = html! {
        (axis::left(&frame, &y, "latency (logarithmic)", &axis::duration))
        (axis::bottom(&frame, &x, "time (s)", &axis::number))
        (lines(&shown, &frame, &x, &y))
    };
    let described = "Lines over time: median, p99 and greatest of the write and of the propagation, in sixty parts of the time; \
                     parts with too few values are passed over.";
    Some(
        html! { figure { figcaption { "Latency over time, by when the write began" } (frame.drawing(&format!("time-{number}"), "Latency over time", described, &content)) } },
    )
}

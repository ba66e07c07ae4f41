//! The charts of a case of the board benchmark. Latency by percentile.

use super::{BoardCase, BoardCurve};
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

/// Draws latency by percentile for one combination of settings of the board benchmark.
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

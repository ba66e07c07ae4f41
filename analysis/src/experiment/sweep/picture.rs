//! The picture of a sweep over work for the book: the time of hand-offs and queueing by work, and
//! the queueing knee. `launcher export FOLDER --svg FILE`.

use super::charts::latency_minus_work;
use super::knee;
use crate::chart::xy_plot::{PlotSeries, is_model};
use crate::experiment::Axis;
use crate::experiment::runs::ExperimentRuns;
use crate::stats::Percentile;
use maud::{Markup, html};
use verdict::chart::axis;
use verdict::chart::scale::Scale;
use verdict::chart::svg::{self, Frame, WIDTH, coordinate, line, text, text_width};

const STYLE: &str = include_str!("picture.css");
/// Height of a panel, with its legend and the title of its axis.
const PANEL: f64 = 420.0;
const EDGES: (f64, f64) = (96.0, WIDTH - 20.0);

/// A panel: its heading, the title of its horizontal axis, the format of the vertical one.
struct Panel {
    heading: String,
    x_title: &'static str,
    format: fn(f64) -> String,
    lines: Vec<PlotSeries>,
}

/// Draws rt_venue p99 less W over W, and the queueing knee, as a whole SVG file. Returns `None` of
/// a sweep that varies neither work nor rate.
pub(super) fn sweep_picture(sweep: &ExperimentRuns) -> Option<String> {
    let mut panels = Vec::new();
    let of_work =
        if sweep.is_varied(Axis::Work) { latency_minus_work(sweep, Percentile::P99) } else { Vec::new() };
    if of_work.iter().any(|line| !line.points.is_empty()) {
        panels.push(Panel {
            heading: "rt_venue p99 − W: what hand-offs and queueing take".into(),
            x_title: "W, the orchestrator's work for an order (ns)",
            format: axis::duration,
            lines: of_work,
        });
    }
    if let Some(found) = knee::chart(&knee::lines(sweep)) {
        panels.push(Panel {
            heading: "The queueing knee: mean wait for the orchestrator, in service times".into(),
            x_title: "utilization of the orchestrator (%)",
            format: axis::number,
            lines: [found.models, found.measured].concat(),
        });
    }
    (!panels.is_empty()).then(|| draw(sweep, &panels))
}

fn draw(sweep: &ExperimentRuns, panels: &[Panel]) -> String {
    let headings: Vec<&str> = panels.iter().map(|panel| panel.heading.as_str()).collect();
    let repeats = sweep.repeats;
    let title = "Work of the orchestrator, and waiting for it";
    let description = format!(
        "{}. Dots are medians over {repeats} repeats, bars go from the min to the max.",
        headings.join("; ")
    );
    let content = html! {
        (text(EDGES.0, 30.0, "start", "heading", title))
        @for (number, shown) in panels.iter().enumerate() { (panel(shown, 50.0 + PANEL * number as f64)) }
    };
    svg::file((WIDTH, 60.0 + PANEL * panels.len() as f64), title, Some(&description), STYLE, &content)
}

fn panel(shown: &Panel, top: f64) -> Markup {
    let frame = Frame { left: EDGES.0, right: EDGES.1, top: top + 56.0, bottom: top + PANEL - 62.0 };
    let points = || shown.lines.iter().flat_map(|line| &line.points);
    let reach = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
        (low, if high > low { high } else { low + 1.0 })
    };
    let (x_low, x_high) = reach(&mut points().map(|(x, _)| *x));
    let (y_low, y_high) = reach(&mut points().flat_map(|(_, spread)| [spread.low, spread.high]));
    let x = Scale::linear_exact(x_low, x_high * 1.02, frame.x_range());
    let y = Scale::linear_exact(y_low, y_high * 1.04, (frame.bottom, frame.top));
    html! {
        (text(frame.left, top + 14.0, "start", "strong", &shown.heading))
        (legend(&shown.lines, top + 36.0))
        (axis::bottom(&frame, &x, shown.x_title))
        @for value in y.ticks() {
            (line((frame.left, y.at(value)), (frame.right, y.at(value)), "grid"))
            (text(frame.left - 8.0, y.at(value) + 4.0, "end", "tick", &(shown.format)(value).replace('-', "−")))
        }
        @for drawn in &shown.lines { (curve(drawn, &x, &y)) }
    }
}

/// A line with its name and its color, in the order of the lines.
fn legend(lines: &[PlotSeries], y: f64) -> Markup {
    let mut right = EDGES.0;
    let places: Vec<(f64, &PlotSeries)> = lines
        .iter()
        .map(|drawn| {
            let left = right;
            right += text_width(&drawn.name) + 44.0;
            (left, drawn)
        })
        .collect();
    html! {
        @for (left, drawn) in places {
            (line((left, y - 4.0), (left + 22.0, y - 4.0), &format!("key {}", drawn.class)))
            (text(left + 27.0, y, "start", "", &drawn.name))
        }
    }
}

fn curve(drawn: &PlotSeries, x: &Scale, y: &Scale) -> Markup {
    let place = |(at, value): (f64, f64)| format!("{},{}", coordinate(x.at(at)), coordinate(y.at(value)));
    let points: Vec<String> = drawn.points.iter().map(|(at, spread)| place((*at, spread.median))).collect();
    html! {
        g class=(drawn.class) {
            title { (drawn.name) }
            polyline points=(points.join(" ")) {}
            @if !is_model(drawn.class) {
                @for (at, spread) in &drawn.points {
                    (line((x.at(*at), y.at(spread.low)), (x.at(*at), y.at(spread.high)), "interval"))
                    circle cx=(coordinate(x.at(*at))) cy=(coordinate(y.at(spread.median))) r="4" {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::knee::tests::modelled;
    use super::*;
    use crate::stats::QueueModel;

    #[test]
    fn picture_has_lines_dots_and_models() {
        let drawn = sweep_picture(&modelled(QueueModel::Md1, &[0.1, 0.5, 0.9])).unwrap();
        assert_eq!(drawn.matches("<polyline").count(), 4, "p99 − W, two models, the knee");
        assert_eq!(drawn.matches("<circle").count(), 6, "a dot for each measured point");
        for word in ["rt_venue p99 − W", "queueing knee", "M/M/1", "M/D/1", "3 repeats"] {
            assert!(drawn.contains(word), "{word}");
        }
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn sweep_without_load_axis_has_no_picture() {
        let mut sweep = modelled(QueueModel::Md1, &[0.1, 0.5]);
        sweep.experiment.axes.clear();
        assert_eq!(sweep_picture(&sweep), None);
    }
}

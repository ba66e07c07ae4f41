//! Line charts: a line for each setting, a dot at the median of the repeats, a bar over their
//! range.

use super::axis::{self, LabelFormat};
use super::labels::{self, LineLabel};
use super::scale::Scale;
use super::svg::{Frame, SvgPath, coordinate, line};
use crate::stats::Spread;
use maud::{Markup, html};

/// From this ratio of maximum to minimum on, an axis is logarithmic.
const MIN_LOG_RATIO: f64 = 20.0;

/// CSS classes of lines: colors first, then dashes that remain distinct in grayscale.
const CLASSES: [&str; 8] =
    ["c1", "c2 dash", "c3 dots", "c4 dashdot", "c5", "c6 dash", "c7 dots", "c8 dashdot"];

pub const fn line_class(number: usize) -> &'static str {
    CLASSES[number % CLASSES.len()]
}

#[derive(Clone, Debug)]
pub struct PlotSeries {
    pub name: String,
    pub class: &'static str,
    /// Points by x, each with the spread of its repeats.
    pub points: Vec<(f64, Spread)>,
}

/// An axis of a line chart: its title with the unit, and the format of its tick labels.
pub type PlotAxis<'a> = (&'a str, LabelFormat<'a>);

/// Draws a line chart with error bars. Returns `None` without any point.
pub fn draw(
    id: &str,
    title: &str,
    (x_title, x_label): PlotAxis<'_>,
    (y_title, y_label): PlotAxis<'_>,
    series: &[PlotSeries],
) -> Option<Markup> {
    let points = || series.iter().flat_map(|series| &series.points);
    points().next()?;
    let frame = Frame::new(400.0);
    let x = scale(points().map(|(x, _)| *x), frame.x_range(), true);
    let y = scale(points().flat_map(|(_, spread)| [spread.low, spread.high]), frame.y_range(), false);
    let is_log = |scale: &Scale| if scale.is_log() { ", logarithmic" } else { "" };
    let mut ends = Vec::new();
    let mut lines = Vec::new();
    for PlotSeries { name, class, points } in series {
        let mut path = SvgPath::default();
        points.iter().for_each(|(at, spread)| path.line_to(x.at(*at), y.at(spread.median)));
        let end = path.pen().map(|(x, y)| LineLabel { x, y, text: name.clone(), class: (*class).into() });
        ends.extend(end);
        lines.push(html! {
            g data-line=(name) {
                path d=(path.data()) class={ "line " (class) } {}
                @for (at, spread) in points {
                    @let position = x.at(*at);
                    @if spread.high > spread.low {
                        (line((position, y.at(spread.low)), (position, y.at(spread.high)), &format!("bar {class}")))
                    }
                    circle cx=(coordinate(position)) cy=(coordinate(y.at(spread.median))) r="3.5" class={ "dot " (class) }
                        data-x=(at) data-y=(spread.median) data-low=(spread.low) data-high=(spread.high) {
                        title {
                            (name) " at " (x_label(*at)) ": " (y_label(spread.median)) " ("
                            (y_label(spread.low)) " to " (y_label(spread.high)) ")"
                        }
                    }
                }
            }
        });
    }
    let content = html! {
        (axis::left(&frame, &y, &format!("{y_title}{}", is_log(&y)), y_label))
        (axis::bottom(&frame, &x, &format!("{x_title}{}", is_log(&x)), x_label))
        @for line in &lines { (line) }
        (labels::draw(frame.right + 22.0, frame.top + 6.0, frame.bottom, &ends))
    };
    let names = series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>().join("; ");
    let description = format!(
        "{y_title} against {x_title}, a line for each of: {names}. Dots are medians over the repeats, bars go from the min to the \
         max. The table has the figures.",
    );
    Some(html! { figure { figcaption { (title) } (frame.drawing(id, title, &description, &content)) } })
}

/// Returns a linear scale from zero, or a logarithmic one if all values are above zero and far
/// apart. Varied settings switch to logarithmic later, since they are mostly evenly spaced.
fn scale(values: impl Iterator<Item = f64> + Clone, range: (f64, f64), varied: bool) -> Scale {
    let min = values.clone().fold(f64::INFINITY, f64::min);
    let max = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let limit = if varied { MIN_LOG_RATIO / 2.0 } else { MIN_LOG_RATIO };
    if min > 0.0 && max / min >= limit { Scale::log(min, max, range) } else { Scale::linear(min, max, range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_ranges_use_a_logarithmic_axis() {
        let is_log = |values: &[f64], varied| scale(values.iter().copied(), (0.0, 100.0), varied).is_log();
        assert!(!is_log(&[0.0, 500.0, 1000.0, 1500.0], true));
        assert!(is_log(&[1.0, 4.0, 16.0], true) && !is_log(&[1.0, 2.0, 4.0, 8.0], true));
        assert!(!is_log(&[100.0, 1900.0], false) && is_log(&[100.0, 2000.0], false));
        assert!(!is_log(&[-5.0, 2000.0], false) && !is_log(&[], false));
    }
}

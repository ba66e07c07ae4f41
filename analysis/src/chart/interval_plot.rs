//! Interval plots: a row for each comparison with its estimate and its confidence interval.

use super::axis::{self, LabelFormat};
use super::scale::Scale;
use super::svg::{Frame, WIDTH, coordinate, line, text, text_width};
use maud::{Markup, html};

const ROW: f64 = 24.0;

/// A row of an interval plot: an estimate with its confidence interval.
#[derive(Clone, Debug)]
pub struct IntervalRow {
    pub name: String,
    pub note: String,
    pub class: &'static str,
    /// Estimate and interval; `None` if unknown: the note has the reason.
    pub interval: Option<crate::stats::Spread>,
}

/// Draws the rows on one axis, with a line at `reference`, the value that means no difference.
pub fn draw(
    id: &str,
    title: &str,
    axis_title: &str,
    name: LabelFormat<'_>,
    reference: Option<f64>,
    rows: &[IntervalRow],
) -> Option<Markup> {
    let intervals = || rows.iter().filter_map(|row| row.interval);
    intervals().next()?;
    let height = rows.len() as f64 * ROW + 70.0;
    let longest = rows.iter().map(|row| text_width(&row.name)).fold(120.0, f64::max).min(WIDTH * 0.45);
    let frame =
        Frame { height, left: longest + 20.0, right: WIDTH - 200.0, top: 10.0, bottom: height - 52.0 };
    let ends = || intervals().flat_map(|spread| [spread.low, spread.high]).chain(reference);
    let (min, max) = (ends().fold(f64::INFINITY, f64::min), ends().fold(f64::NEG_INFINITY, f64::max));
    let x = match reference {
        // Ratios are drawn on a logarithmic axis (halving is as far as doubling), with a margin on
        // both sides.
        Some(_) if min > 0.0 && max / min >= 4.0 => Scale::log(min, max, frame.x_range()),
        Some(reference) => {
            let air = ((max - min) * 0.08).max(reference.abs() * 0.005);
            Scale::linear_around(min - air, max + air, frame.x_range())
        }
        None if min > 0.0 && max / min >= 20.0 => Scale::log(min, max, frame.x_range()),
        None => Scale::linear(min, max, frame.x_range()),
    };
    let suffix = if x.is_log() { ", logarithmic" } else { "" };
    let content = html! {
        (axis::bottom(&frame, &x, &format!("{axis_title}{suffix}"), name))
        @if let Some(reference) = reference {
            (line((x.at(reference), frame.top), (x.at(reference), frame.bottom), "zero"))
        }
        @for (number, row) in rows.iter().enumerate() {
            @let y = frame.top + (number as f64 + 0.5) * ROW + 4.0;
            (text(frame.left - 12.0, y + 4.0, "end", "label", &row.name))
            (text(frame.right + 14.0, y + 4.0, "start", "tick", &row.note))
            @if let Some(spread) = row.interval {
                (line((x.at(spread.low), y), (x.at(spread.high), y), &format!("bar thick {}", row.class)))
                circle cx=(coordinate(x.at(spread.median))) cy=(coordinate(y)) r="4.5" class={ "dot " (row.class) } data-row=(row.name)
                    data-y=(spread.median) data-low=(spread.low) data-high=(spread.high) {
                    title { (row.name) ": " (name(spread.median)) " (" (name(spread.low)) " to " (name(spread.high)) ")" }
                }
            }
        }
    };
    let rows: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.name, row.note)).collect();
    Some(html! { figure {
        figcaption { (title) }
        (frame.drawing(id, title, &format!("{axis_title}. {}.", rows.join("; ")), &content))
    } })
}

//! Chart axes: grid lines at the ticks, the tick labels and a title with the unit.

use super::scale::Scale;
use super::svg::{Frame, coordinate, line, text};
use crate::numbers::count;
use maud::{Markup, html};

pub type LabelFormat<'a> = &'a dyn Fn(f64) -> String;

/// The minimum distance between two labeled ticks, so that their labels do not overlap.
const MIN_LABEL_GAP: f64 = 14.0;

/// A tick of an axis: its value, and its label if there is room for one.
type LabeledTick = (f64, Option<String>);

/// Draws a chart's vertical axis, left of its data area.
pub fn left(frame: &Frame, scale: &Scale, title: &str, label: LabelFormat<'_>) -> Markup {
    let middle = f64::midpoint(frame.top, frame.bottom);
    html! {
        g class="axis" {
            @for (value, label) in spaced(scale, label) {
                @let y = scale.at(value);
                (line((frame.left, y), (frame.right, y), if label.is_some() { "grid" } else { "grid minor" }))
                @if let Some(label) = label {
                    (text(frame.left - 8.0, y + 4.0, "end", "tick", &label))
                }
            }
            text class="title" transform={ "translate(14 " (coordinate(middle)) ") rotate(-90)" } text-anchor="middle" {
                (title)
            }
        }
    }
}

/// Returns the ticks of a scale; those whose labels would overlap have none.
fn spaced(scale: &Scale, label: LabelFormat<'_>) -> Vec<LabeledTick> {
    let mut taken = f64::INFINITY;
    let name = |(value, is_labeled): (f64, bool)| {
        let position = scale.at(value);
        let is_free = is_labeled && (taken - position).abs() >= MIN_LABEL_GAP;
        if is_free {
            taken = position;
        }
        (value, is_free.then(|| label(value)))
    };
    scale.ticks().into_iter().map(name).collect()
}

/// Draws a chart's horizontal axis, below its data area.
pub fn bottom(frame: &Frame, scale: &Scale, title: &str, label: LabelFormat<'_>) -> Markup {
    let ticks = scale.ticks().into_iter();
    let ticks = ticks.map(|(value, is_labeled)| (value, is_labeled.then(|| label(value))));
    bottom_at(frame, scale, title, ticks.collect())
}

pub fn bottom_at(frame: &Frame, scale: &Scale, title: &str, ticks: Vec<LabeledTick>) -> Markup {
    let middle = f64::midpoint(frame.left, frame.right);
    html! {
        g class="axis" {
            @for (value, label) in ticks {
                @let x = scale.at(value);
                (line((x, frame.top), (x, frame.bottom), if label.is_some() { "grid" } else { "grid minor" }))
                @if let Some(label) = label {
                    (text(x, frame.bottom + 18.0, "middle", "tick", &label))
                }
            }
            (line((frame.left, frame.bottom), (frame.right, frame.bottom), "base"))
            (text(middle, frame.bottom + 40.0, "middle", "title", title))
        }
    }
}

/// Returns the unit in which a duration has the fewest digits: its nanoseconds and its symbol.
pub fn time_unit(ns: f64) -> (f64, &'static str) {
    const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    UNITS.into_iter().find(|unit| ns.abs() >= unit.0 * (1.0 - 1e-9)).unwrap_or(UNITS[3])
}

/// Formats a duration as a tick label, in the unit that makes it shortest.
pub fn duration(ns: f64) -> String {
    let (size, symbol) = time_unit(ns);
    format!("{} {symbol}", number(ns / size))
}

/// Formats a number as a tick label without redundant digits: `0.3`, `5,000`, `50 k`, `2.5 M`.
pub fn number(value: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let rounded = (value * 1e6).round() / 1e6;
    let unit = UNITS.iter().find(|unit| rounded >= unit.0).filter(|_| rounded >= 10_000.0);
    match unit {
        Some((size, name)) => format!("{}{name}", rounded / size),
        None if rounded >= 1_000.0 => count(rounded as u64),
        None => format!("{rounded}"),
    }
}

/// Returns the ticks of a percentile axis: 0 %, the median and each nine with enough samples.
pub fn percentile_ticks(max: f64) -> Vec<LabeledTick> {
    let mut ticks = vec![(1.0, Some("0%".to_owned())), (2.0, Some("50%".to_owned()))];
    let mut inverse = 10.0;
    let mut nines = 0usize;
    while inverse <= max {
        let digits = nines.saturating_sub(1);
        ticks.push((inverse, Some(format!("{:.*}%", digits, 100.0 - 100.0 / inverse))));
        inverse *= 10.0;
        nines += 1;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tick_labels_use_shortest_unit() {
        assert_eq!(
            [0.0, 200.0, 1e3, 5e4, 1e6, 1e9, 2e10].map(duration),
            ["0 ns", "200 ns", "1 µs", "50 µs", "1 ms", "1 s", "20 s"]
        );
        assert_eq!([0.1 + 0.2, 5e3, 5e4, 2.5e6].map(number), ["0.3", "5,000", "50 k", "2.5 M"]);
    }

    #[test]
    fn percentile_ticks_add_one_nine_each() {
        let names: Vec<String> =
            percentile_ticks(100_000.0).into_iter().filter_map(|(_, name)| name).collect();
        assert_eq!(names, ["0%", "50%", "90%", "99%", "99.9%", "99.99%", "99.999%"]);
    }
}

//! The axis of a picture: grid lines at the ticks, the tick labels and a title with the unit.

use super::plot::Unit;
use super::scale::Scale;
use super::svg::{Frame, line, text};
use maud::{Markup, html};
use record::numbers::count;

/// The unit of a chart axis whose values are durations in nanoseconds.
pub const DURATION: Unit = Unit::Duration;
/// The unit of a chart axis whose values are plain numbers.
pub const NUMBER: Unit = Unit::Number;

/// Draws the horizontal number axis below a picture's data area: grid lines, tick labels and title.
pub fn bottom(frame: &Frame, scale: &Scale, title: &str) -> Markup {
    let middle = f64::midpoint(frame.left, frame.right);
    html! {
        g class="axis" {
            @for value in scale.ticks() {
                @let x = scale.at(value);
                (line((x, frame.top), (x, frame.bottom), "grid"))
                (text(x, frame.bottom + 18.0, "middle", "tick", &number(value)))
            }
            (line((frame.left, frame.bottom), (frame.right, frame.bottom), "base"))
            (text(middle, frame.bottom + 40.0, "middle", "title", title))
        }
    }
}

/// Returns the largest time unit not longer than `ns` nanoseconds, as the unit's length in
/// nanoseconds and its symbol, such as `µs`. Below 1 ns it is the nanosecond.
pub fn time_unit(ns: f64) -> (f64, &'static str) {
    const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    UNITS.into_iter().find(|unit| ns.abs() >= unit.0 * (1.0 - 1e-9)).unwrap_or(UNITS[3])
}

/// Formats a duration of `ns` nanoseconds as a tick label, in the unit that makes it shortest.
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
}

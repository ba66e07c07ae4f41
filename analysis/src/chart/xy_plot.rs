//! Line charts: a line for each setting, a dot at the median of the repeats, a bar over their
//! range.

use maud::Markup;
use record::spread::Spread;
use verdict::chart::plot::{DataSeries, Plot, PlotAxis, Unit};

/// From this ratio of maximum to minimum on, an axis is logarithmic.
const MIN_LOG_RATIO: f64 = 20.0;

/// CSS classes of lines: colors first, then dashes that remain distinct in grayscale.
const CLASSES: [&str; 8] =
    ["c1", "c2 dash", "c3 dots", "c4 dashdot", "c5", "c6 dash", "c7 dots", "c8 dashdot"];

/// Returns the CSS class of a chart's line `number`, counted from 0; the classes repeat after eight
/// lines.
pub const fn line_class(number: usize) -> &'static str {
    CLASSES[number % CLASSES.len()]
}

/// Returns `true` if a chart line's CSS class marks it as the curve of a model, which has no
/// measured points. Such a line has the color of text and no dots.
pub fn is_model(class: &str) -> bool {
    class.split(' ').any(|word| word == "model")
}

/// A line of a line chart: its points with a name and a style.
#[derive(Clone, Debug)]
pub struct PlotSeries {
    /// Name of the line in the legend.
    pub name: String,
    /// CSS class of the line, for example `c2 dash`.
    pub class: &'static str,
    /// Points by x, each with the spread of its repeats.
    pub points: Vec<(f64, Spread)>,
}

/// Draws a line chart with error bars. An axis is its title and its unit. Returns `None` without
/// any point.
pub fn draw(
    id: &str,
    title: &str,
    (x_title, x_unit): (&str, Unit),
    (y_title, y_unit): (&str, Unit),
    series: &[PlotSeries],
) -> Option<Markup> {
    let points = || series.iter().flat_map(|series| &series.points);
    points().next()?;
    // Varied settings switch to logarithmic earlier, since they are mostly evenly spaced.
    let x_is_log = is_log(points().map(|(x, _)| *x), MIN_LOG_RATIO / 2.0);
    let y_is_log = is_log(points().flat_map(|(_, spread)| [spread.low, spread.high]), MIN_LOG_RATIO);
    let line = |one: &PlotSeries| {
        let of = |figure: fn(&Spread) -> f64| one.points.iter().map(|(_, spread)| figure(spread)).collect();
        DataSeries {
            dots: if is_model(one.class) { Vec::new() } else { (0..one.points.len()).collect() },
            x: one.points.iter().map(|(x, _)| *x).collect(),
            y: of(|spread| spread.median),
            low: of(|spread| spread.low),
            high: of(|spread| spread.high),
            ..DataSeries::with_class(one.name.clone(), one.class)
        }
    };
    let names = series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>().join("; ");
    let plot = Plot {
        id: id.into(),
        title: title.into(),
        description: format!(
            "{y_title} against {x_title}, a line for each of: {names}. Dots are medians over the repeats, bars go from the min to the \
             max. The table has the figures."
        ),
        height: 380,
        x: PlotAxis::with_log(x_title, x_unit, x_is_log),
        y: PlotAxis::with_log(y_title, y_unit, y_is_log),
        series: series.iter().map(line).collect(),
        ..Plot::default()
    };
    Some(plot.figure())
}

/// Returns `true` if a logarithmic axis suits the values: all are above zero, and the largest is at
/// least `ratio` times the smallest.
pub fn is_log(values: impl Iterator<Item = f64> + Clone, ratio: f64) -> bool {
    let min = values.clone().fold(f64::INFINITY, f64::min);
    let max = values.fold(f64::NEG_INFINITY, f64::max);
    min > 0.0 && max / min >= ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_ranges_use_a_logarithmic_axis() {
        let is_log = |values: &[f64], ratio| is_log(values.iter().copied(), ratio);
        assert!(!is_log(&[0.0, 500.0, 1000.0, 1500.0], 10.0));
        assert!(is_log(&[1.0, 4.0, 16.0], 10.0) && !is_log(&[1.0, 2.0, 4.0, 8.0], 10.0));
        assert!(!is_log(&[100.0, 1900.0], 20.0) && is_log(&[100.0, 2000.0], 20.0));
        assert!(!is_log(&[-5.0, 2000.0], 20.0) && !is_log(&[], 20.0));
    }
}

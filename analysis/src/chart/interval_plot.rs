//! Interval plots: a row for each comparison with its estimate and its confidence interval.

use super::xy_plot::is_log;
use maud::Markup;
use record::spread::Spread;
use verdict::chart::plot::{DataSeries, Plot, PlotAxis, ReferenceLine, SeriesKind, Unit, color_number};

/// A row of an interval plot: an estimate with its confidence interval.
#[derive(Clone, Debug)]
pub struct IntervalRow {
    /// Name of the row.
    pub name: String,
    /// Remark at the other end of the row, for example the change and the verdict on it.
    pub note: String,
    /// CSS class with the color of the row, for example `c2`.
    pub class: &'static str,
    /// Estimate and interval of the row; `None` if unknown: the note has the reason.
    pub interval: Option<Spread>,
}

/// Draws an interval plot: the rows on one axis, with a line at `reference`, the value that means
/// no difference.
pub fn draw(
    id: &str,
    title: &str,
    axis_title: &str,
    unit: Unit,
    reference: Option<f64>,
    rows: &[IntervalRow],
) -> Option<Markup> {
    let intervals = || rows.iter().filter_map(|row| row.interval);
    intervals().next()?;
    let bounds = || intervals().flat_map(|spread| [spread.low, spread.high]).chain(reference);
    // Ratios far apart are on a logarithmic axis: halving is as far as doubling.
    let ratio = if reference.is_some() { 4.0 } else { 20.0 };
    let y = PlotAxis::with_log(axis_title, unit, is_log(bounds(), ratio));
    let of = |figure: fn(&Spread) -> f64| {
        rows.iter().map(|row| row.interval.as_ref().map_or(f64::NAN, figure)).collect::<Vec<f64>>()
    };
    let estimates = DataSeries {
        name: axis_title.into(),
        kind: SeriesKind::Points,
        dots: (0..rows.len()).collect(),
        x: (0..rows.len()).map(|row| row as f64).collect(),
        y: of(|spread| spread.median),
        low: of(|spread| spread.low),
        high: of(|spread| spread.high),
        colors: rows.iter().map(|row| color_number(row.class)).collect(),
        ..DataSeries::default()
    };
    let described: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.name, row.note)).collect();
    let plot = Plot {
        id: id.into(),
        title: title.into(),
        description: format!("{axis_title}. {}.", described.join("; ")),
        x: PlotAxis {
            notes: rows.iter().map(|row| row.note.clone()).collect(),
            ..PlotAxis::with_names(rows.iter().map(|row| row.name.clone()).collect())
        },
        y: PlotAxis { has_zero: y.has_zero && reference.is_none(), ..y },
        series: vec![estimates],
        lines: reference.map(|at| ReferenceLine { axis: 'y', at }).into_iter().collect(),
        ..Plot::default()
    };
    Some(plot.figure())
}

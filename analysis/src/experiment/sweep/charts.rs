//! The charts of a sweep, selected by the varied settings.

use super::knee;
use crate::chart::interval_plot::{self, IntervalRow};
use crate::chart::xy_plot::{self, PlotSeries, line_class};
use crate::experiment::Axis;
use crate::experiment::axis::{AxisChart, ChartSet};
use crate::experiment::runs::{ExperimentRuns, Point};
use crate::grouping::grouped;
use crate::stats::{Percentile, RunOutline, Spread};
use maud::{Markup, html};
use record::numbers::duration;
use verdict::chart::axis;
use verdict::chart::plot::Unit;
use verdict::chart::svg::legend;
use verdict::summary::Measure;

/// The maximum number of rows of a chart.
const MAX_CHART_ROWS: usize = 80;

/// A chart of costs: what it shows, the title of its axis, its format, and the figure of a run.
type CostFigure<'a> = (&'a str, &'a str, Unit, &'a dyn Fn(&RunOutline) -> Option<f64>);

/// A chart along an axis: its id and title, and a figure of a run with its name and format.
struct RunChart<'a> {
    id: String,
    title: String,
    name: String,
    format: Unit,
    figure: &'a dyn Fn(&RunOutline) -> Option<f64>,
}

/// Returns the engine latency (`rt_venue`) of a run at a percentile in nanoseconds, if known.
pub(super) fn engine_latency(run: &RunOutline, percentile: Percentile) -> Option<f64> {
    Some(percentile.get(&run.measure(Measure::RtVenue))? as f64)
}

/// Returns all charts of a sweep that its varied settings allow, in the order of the page.
pub(super) fn all(sweep: &ExperimentRuns) -> Vec<Markup> {
    let varied = sweep.axes.iter().filter(|record| record.values.len() > 1).map(|record| record.axis);
    let mut along: Vec<(Axis, &AxisChart)> =
        varied.filter_map(|axis| Some((axis, axis.entry().chart.as_ref()?))).collect();
    along.sort_by_key(|(_, chart)| chart.set);
    let mut charts: Vec<Markup> =
        along.into_iter().flat_map(|(axis, chart)| charts_along(sweep, axis, chart)).collect();
    charts.extend(knee_chart(sweep));
    charts.extend(percentile_charts(sweep));
    charts
}

/// Returns a line of `rt_venue` less the work, over the work, for each combination of the other
/// axes: the seed article's chart.
pub(super) fn latency_minus_work(sweep: &ExperimentRuns, percentile: Percentile) -> Vec<PlotSeries> {
    lines(sweep, Axis::Work, &|run| Some(engine_latency(run, percentile)? - run.work()))
}

/// Measured waiting over utilization, with the models as lines without dots.
fn knee_chart(sweep: &ExperimentRuns) -> Option<Markup> {
    let found = knee::chart(&knee::lines(sweep))?;
    xy_plot::draw(
        "knee",
        "The queueing knee: mean wait for the orchestrator, without transport, in its mean service times",
        ("utilization of the orchestrator (%)", axis::NUMBER),
        ("mean wait (service times)", axis::NUMBER),
        &[found.measured, found.models].concat(),
    )
}

fn charts_along(sweep: &ExperimentRuns, along: Axis, chart: &AxisChart) -> Vec<Markup> {
    let draw = |drawn: RunChart<'_>| {
        let (x, y) = ((chart.title, chart.format), (drawn.name.as_str(), drawn.format));
        xy_plot::draw(&drawn.id, &drawn.title, x, y, &lines(sweep, along, drawn.figure))
    };
    let at = |percentile: Percentile| {
        let name = percentile.name();
        match chart.set {
            // The seed article's chart: what the hand-offs cost when the orchestrator has work,
            // less that work.
            ChartSet::Work => draw(RunChart {
                id: format!("{along}-{name}"),
                title: format!("rt_venue {name} − W against W, the orchestrator's work for an order"),
                name: format!("rt_venue {name} − W"),
                format: axis::DURATION,
                figure: &|run| Some(engine_latency(run, percentile)? - run.work()),
            }),
            _ => draw(RunChart {
                id: format!("{along}-{name}"),
                title: format!("rt_venue {name} against the offered {along}"),
                name: format!("rt_venue {name}"),
                format: axis::DURATION,
                figure: &|run| engine_latency(run, percentile),
            }),
        }
    };
    if chart.set != ChartSet::Costs {
        return [Percentile::P99, Percentile::P50].into_iter().filter_map(at).collect();
    }
    // What more of it costs: in latency, in CPU time, in memory, at the start.
    let costs: [CostFigure<'_>; 5] = [
        ("rt_venue p50", "rt_venue p50", axis::DURATION, &|run| engine_latency(run, Percentile::P50)),
        ("rt_venue p99", "rt_venue p99", axis::DURATION, &|run| engine_latency(run, Percentile::P99)),
        ("CPU time", "CPU seconds for a million orders (s)", axis::NUMBER, &RunOutline::cpu_s_per_million),
        ("Memory", "proportional memory, PSS (MiB)", axis::NUMBER, &mebibytes),
        ("Start-up", "from the first spawn to the start", axis::DURATION, &|run| Some(run.startup_ns as f64)),
    ];
    let noun = along.entry().nouns[0];
    let drawn = costs.into_iter().enumerate().filter_map(|(number, (what, name, format, figure))| {
        let (id, title) = (format!("{along}-{number}"), format!("{what} against the {noun}"));
        draw(RunChart { id, title, name: name.to_owned(), format, figure })
    });
    drawn.collect()
}

pub(super) fn mebibytes(run: &RunOutline) -> Option<f64> {
    Some(run.pss_bytes? as f64 / f64::from(1 << 20))
}

/// Returns the place of a point along an axis: median of the measured values, or the value of the
/// setting.
fn place_of(axis: Axis, point: &Point) -> Option<f64> {
    match axis.entry().chart.as_ref()?.measured {
        Some(measured) => Some(point.spread(measured)?.median),
        None => axis.number(point.value(axis)?),
    }
}

/// A line for each combination of the other axes, of the points with a usable run.
fn lines(
    sweep: &ExperimentRuns,
    along: Axis,
    figure: &dyn Fn(&RunOutline) -> Option<f64>,
) -> Vec<PlotSeries> {
    let measured = |point: &Point| {
        let name = point.name_without(&sweep.axes, Some(along));
        let spread = point.spread(figure)?;
        Some((name, (place_of(along, point)?, spread)))
    };
    let series = |(number, (name, mut points)): (usize, (String, Vec<(f64, Spread)>))| {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        PlotSeries { name, class: line_class(number), points }
    };
    grouped(sweep.points.iter().filter_map(measured)).into_iter().enumerate().map(series).collect()
}

/// Every point in a row, for each percentile. Colored by the first axis that varies, so that points
/// with one value of it are seen together. The percentiles of a comparison share one chart, and so
/// one scale.
fn percentile_charts(sweep: &ExperimentRuns) -> Vec<Markup> {
    if sweep.points.len() > MAX_CHART_ROWS {
        return Vec::new();
    }
    let varied = sweep.axes.iter().find(|axis| axis.values.len() > 1);
    let row = |point: &Point, percentile| {
        let interval = point.spread(|run| engine_latency(run, percentile));
        let note = match interval {
            Some(spread) => duration(spread.median as u64),
            None if point.usable_runs().next().is_none() => "no sound run".into(),
            None => "too few orders".into(),
        };
        let index = varied.and_then(|axis| {
            axis.values.iter().position(|value| point.values.get(&axis.axis) == Some(value))
        });
        let class = point_class(index.unwrap_or(0));
        IntervalRow { name: point.name_without(&sweep.axes, None), note, class, interval }
    };
    let colors = varied.iter().flat_map(|axis| {
        let values = axis.values.iter().enumerate();
        values.map(|(index, value)| (point_class(index), format!("{} {value}", axis.axis)))
    });
    let legend = legend(colors);
    let is_one_chart = sweep.kind.entry().has_sides;
    let named = |point: &Point, percentile: Percentile| {
        let row = row(point, percentile);
        let name = if is_one_chart { format!("{}, {}", percentile.name(), row.name) } else { row.name };
        IntervalRow { name, ..row }
    };
    let chart = |(number, percentiles): (usize, &[Percentile])| {
        let rows = percentiles.iter().flat_map(|of| sweep.points.iter().map(move |point| (point, *of)));
        let rows: Vec<IntervalRow> = rows.map(|(point, of)| named(point, of)).collect();
        let axis_title = match percentiles {
            [one] => format!("rt_venue {}", one.name()),
            _ => "rt_venue".into(),
        };
        let title = format!("{axis_title} of every point: median over the repeats, from lowest to highest");
        let id = format!("points-{number}");
        let chart = interval_plot::draw(&id, &title, &axis_title, axis::DURATION, None, &rows)?;
        Some(html! { (chart) @if varied.is_some() { (legend) } })
    };
    let in_a_chart = if is_one_chart { Percentile::ALL.len() } else { 1 };
    Percentile::ALL.chunks(in_a_chart).enumerate().filter_map(chart).collect()
}

/// The color of the points with one value of the first varied axis.
fn point_class(index: usize) -> &'static str {
    line_class(index).split(' ').next().unwrap_or("c1")
}

#[cfg(test)]
mod tests {
    use super::super::knee::tests::modelled;
    use super::*;
    use crate::stats::QueueModel;

    #[test]
    fn work_sweep_has_charts_of_work_and_knee() {
        let drawn = all(&modelled(QueueModel::Md1, &[0.1, 0.5, 0.9]));
        let page: String = drawn.into_iter().map(|chart| chart.into_string()).collect();
        for id in ["work-p99", "work-p50", "knee"] {
            assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
        }
        for line in ["\"M/M/1\"", "\"M/D/1\""] {
            assert!(page.contains(line), "{line}");
        }
    }
}

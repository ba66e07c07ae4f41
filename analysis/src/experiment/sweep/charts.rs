//! The charts of a sweep: which of them make sense follows from what was varied.

use super::{SweepPoint, SweepRecord};
use crate::chart::axis;
use crate::chart::interval_plot::{self, IntervalRow};
use crate::chart::plot::Unit;
use crate::chart::svg::legend;
use crate::chart::xy_plot::{self, PlotSeries, line_class};
use crate::experiment::Axis as Varied;
use crate::grouping::grouped;
use crate::numbers::duration;
use crate::stats::{Percentile, RunOutline, Spread};
use crate::summary::Measure;
use maud::{Markup, html};

/// The maximum number of rows of a chart.
const MAX_CHART_ROWS: usize = 80;

/// What is measured at a run, and what it is measured against.
type Figure<'a> = &'a dyn Fn(&RunOutline) -> Option<f64>;
/// An axis: its title, its unit, and its figure.
type SweepAxis<'a> = (&'a str, Unit, Figure<'a>);

pub(super) fn rt_venue(run: &RunOutline, percentile: Percentile) -> Option<f64> {
    Some(percentile.get(&run.measure(Measure::RtVenue))? as f64)
}

/// Returns all charts of a sweep that its varied settings allow, in the order of the page.
pub(super) fn all(sweep: &SweepRecord) -> Vec<Markup> {
    let mut charts = Vec::new();
    let mut draw = |id: &str,
                    title: &str,
                    along: Varied,
                    (x_title, x_unit, x): SweepAxis<'_>,
                    (y_title, y_unit, y): SweepAxis<'_>| {
        if varies(sweep, along) {
            let lines = lines(sweep, along, x, y);
            charts.extend(xy_plot::draw(id, title, (x_title, x_unit), (y_title, y_unit), &lines));
        }
    };
    for percentile in [Percentile::P99, Percentile::P50] {
        // The seed article's chart: what the hand-offs cost when the orchestrator has work, less
        // that work.
        let name = percentile.name();
        draw(
            &format!("work-{name}"),
            &format!("rt_venue {name} − W against W, the orchestrator's work for an order"),
            Varied::Work,
            ("W, work done for an order", axis::DURATION, &|run| Some(run.work())),
            (&format!("rt_venue {name} − W"), axis::DURATION, &|run| {
                Some(rt_venue(run, percentile)? - run.work())
            }),
        );
    }
    for percentile in [Percentile::P99, Percentile::P50] {
        let name = percentile.name();
        draw(
            &format!("rate-{name}"),
            &format!("rt_venue {name} against the offered rate"),
            Varied::Rate,
            ("offered rate (orders/s)", axis::NUMBER, &|run| run.offered_per_s),
            (&format!("rt_venue {name}"), axis::DURATION, &|run| rt_venue(run, percentile)),
        );
    }
    // What more strategies cost: in latency, in CPU time, in memory, at the start.
    let costs: [(&str, SweepAxis<'_>); 5] = [
        ("rt_venue p50", ("rt_venue p50", axis::DURATION, &|run| rt_venue(run, Percentile::P50))),
        ("rt_venue p99", ("rt_venue p99", axis::DURATION, &|run| rt_venue(run, Percentile::P99))),
        ("CPU time", ("CPU seconds for a million orders (s)", axis::NUMBER, &RunOutline::cpu_s_per_million)),
        ("Memory", ("proportional memory, PSS (MiB)", axis::NUMBER, &mebibytes)),
        (
            "Start-up",
            ("from the first spawn to the start", axis::DURATION, &|run| Some(run.startup_ns as f64)),
        ),
    ];
    for (number, (what, side)) in costs.into_iter().enumerate() {
        draw(
            &format!("strategies-{number}"),
            &format!("{what} against the number of strategies"),
            Varied::Strategies,
            ("strategies", axis::NUMBER, &|run| Some(f64::from(run.strategies))),
            side,
        );
    }
    charts.extend(percentile_charts(sweep));
    charts
}

pub(super) fn mebibytes(run: &RunOutline) -> Option<f64> {
    Some(run.pss_bytes? as f64 / f64::from(1 << 20))
}

fn varies(sweep: &SweepRecord, axis: Varied) -> bool {
    sweep.axis(axis).is_some_and(|axis| axis.values.len() > 1)
}

/// A line for each combination of the other axes, of the points with a sound run.
fn lines(sweep: &SweepRecord, along: Varied, x: Figure<'_>, y: Figure<'_>) -> Vec<PlotSeries> {
    let measured = |point: &SweepPoint| {
        let name = point.name_without(&sweep.axes, Some(along));
        Some((name, (point.spread(x)?.median, point.spread(y)?)))
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
fn percentile_charts(sweep: &SweepRecord) -> Vec<Markup> {
    if sweep.points.len() > MAX_CHART_ROWS {
        return Vec::new();
    }
    let varied = sweep.axes.iter().find(|axis| axis.values.len() > 1);
    let row = |point: &SweepPoint, percentile| {
        let interval = point.spread(|run| rt_venue(run, percentile));
        let note = match interval {
            Some(spread) => duration(spread.median as u64),
            None if point.sound().next().is_none() => "no sound run".into(),
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
    let is_one_chart = sweep.kind == "compare";
    let named = |point: &SweepPoint, percentile: Percentile| {
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

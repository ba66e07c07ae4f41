//! The charts of a sweep: which of them make sense follows from what was varied.

use super::axis;
use super::interval_plot::{self, IntervalRow};
use super::sweep_data::{Spread, rt_venue};
use super::xy_plot::{Axis, Plot, PlotSeries, class};
use crate::experiment::{Axis as Varied, SweepPoint, SweepRecord};
use crate::report::units::{duration, percent, plain};
use crate::stats::{Outline, md1};
use crate::summary::Measure;
use maud::{Markup, html};
use protocol::flow::Stage;

/// More points than this are no chart of rows.
const ROWS: usize = 80;

/// What is measured at a run, and what it is measured against.
type Figure<'a> = &'a dyn Fn(&Outline) -> Option<f64>;

/// All charts that make sense, in the order of the page.
pub fn all(sweep: &SweepRecord) -> Markup {
    let charts =
        [against_work(sweep), against_rate(sweep), against_strategies(sweep), waiting(sweep), rows(sweep)];
    html! { @for chart in charts.into_iter().flatten() { (chart) } }
}

/// Whether that axis has more than one value.
fn varies(sweep: &SweepRecord, axis: Varied) -> bool {
    sweep.axis(axis).is_some_and(|axis| axis.values.len() > 1)
}

/// A line for each combination of the other axes, in the order of the points; each point once it has a sound run.
fn lines(sweep: &SweepRecord, along: Varied, x: Figure<'_>, y: Figure<'_>) -> Vec<PlotSeries> {
    let mut series: Vec<PlotSeries> = Vec::new();
    for point in &sweep.points {
        let (Some(at), Some(spread)) = (point.spread(x), point.spread(y)) else { continue };
        let name = point.name_without(&sweep.axes, Some(along));
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push((at.median, spread)),
            None => {
                let class = class(series.len());
                series.push(PlotSeries { name, class, points: vec![(at.median, spread)] });
            }
        }
    }
    for series in &mut series {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    series
}

/// The seed article's chart: what the hand-offs cost when the orchestrator has work, less that work.
fn against_work(sweep: &SweepRecord) -> Option<Markup> {
    if !varies(sweep, Varied::Work) {
        return None;
    }
    let work = |run: &Outline| Some(run.work());
    let chart = |percentile: &'static str| {
        let over = move |run: &Outline| Some(rt_venue(run, percentile)? - run.work());
        let title = format!("rt_venue {percentile} − W against W, the orchestrator's work for an order");
        let y_title = format!("rt_venue {percentile} − W");
        Plot {
            id: if percentile == "p50" { "work-p50" } else { "work-p99" },
            title: &title,
            x: Axis { title: "W, work done for an order", name: &axis::duration },
            y: Axis { title: &y_title, name: &axis::duration },
        }
        .draw(&lines(sweep, Varied::Work, &work, &over))
    };
    let charts: Vec<Markup> = ["p99", "p50"].into_iter().filter_map(chart).collect();
    (!charts.is_empty()).then(|| html! { @for chart in charts { (chart) } })
}

fn against_rate(sweep: &SweepRecord) -> Option<Markup> {
    if !varies(sweep, Varied::Rate) {
        return None;
    }
    let chart = |percentile: &'static str| {
        let title = format!("rt_venue {percentile} against the offered rate");
        let y_title = format!("rt_venue {percentile}");
        Plot {
            id: if percentile == "p50" { "rate-p50" } else { "rate-p99" },
            title: &title,
            x: Axis { title: "offered rate (orders/s)", name: &axis::number },
            y: Axis { title: &y_title, name: &axis::duration },
        }
        .draw(&lines(sweep, Varied::Rate, &|run| run.offered_per_s, &|run| rt_venue(run, percentile)))
    };
    let charts: Vec<Markup> = ["p99", "p50"].into_iter().filter_map(chart).collect();
    (!charts.is_empty()).then(|| html! { @for chart in charts { (chart) } })
}

/// What more strategies cost: in latency, in processor time, in memory, at the start.
fn against_strategies(sweep: &SweepRecord) -> Option<Markup> {
    if !varies(sweep, Varied::Strategies) {
        return None;
    }
    let megabytes = |run: &Outline| run.pss_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
    type Cost<'a> = (&'a str, &'a str, axis::AxisLabel<'a>, Figure<'a>);
    let figures: [Cost<'_>; 5] = [
        ("rt_venue p50", "rt_venue p50", &axis::duration, &|run| rt_venue(run, "p50")),
        ("rt_venue p99", "rt_venue p99", &axis::duration, &|run| rt_venue(run, "p99")),
        ("CPU time", "CPU seconds for a million orders (s)", &axis::number, &|run| run.cpu_s_per_million()),
        ("Memory", "proportional memory, PSS (MiB)", &axis::number, &megabytes),
        ("Start-up", "from the first spawn to the start", &axis::duration, &|run| {
            Some(run.startup_ns as f64)
        }),
    ];
    let charts: Vec<Markup> = figures
        .into_iter()
        .enumerate()
        .filter_map(|(number, (what, title, name, of))| {
            Plot {
                id: &format!("strategies-{number}"),
                title: &format!("{what} against the number of strategies"),
                x: Axis { title: "strategies", name: &axis::number },
                y: Axis { title, name },
            }
            .draw(&lines(sweep, Varied::Strategies, &|run| Some(f64::from(run.strategies)), of))
        })
        .collect();
    (!charts.is_empty()).then(|| html! { @for chart in charts { (chart) } })
}

/// Measured waiting against what a single server with a constant service time predicts at the same utilisation
/// (M/D/1, W = ρ·s / 2(1 − ρ), twice for an order). What is measured holds the transport too, which no queue explains:
/// so the prediction is drawn on top of the quietest point.
fn waiting(sweep: &SweepRecord) -> Option<Markup> {
    if !varies(sweep, Varied::Rate) && !varies(sweep, Varied::Work) {
        return None;
    }
    let along = if varies(sweep, Varied::Rate) { Varied::Rate } else { Varied::Work };
    let used =
        |run: &Outline| run.utilisation.filter(|used| (0.0..1.0).contains(used)).map(|used| used * 100.0);
    let mut series = Vec::new();
    for (number, measured) in lines(sweep, along, &used, &waited).into_iter().enumerate() {
        let predicted =
            lines(sweep, along, &used, &predicted).into_iter().find(|line| line.name == measured.name);
        let Some(mut predicted) = predicted.filter(|line| line.points.len() == measured.points.len()) else {
            continue;
        };
        let quietest = measured.points[0].1.median - predicted.points[0].1.median;
        for (_, spread) in &mut predicted.points {
            let value = spread.median + quietest;
            *spread = Spread { median: value, low: value, high: value };
        }
        let several = measured.name != "all";
        let name = |what: &str| if several { format!("{what}, {}", measured.name) } else { what.to_owned() };
        // Below, it says nothing that the transport's own noise would not drown.
        predicted.points.retain(|(used, _)| *used >= md1::LEAST_RHO * 100.0);
        predicted.name = name("M/D/1");
        predicted.class = "c7 dots";
        series.push(PlotSeries { name: name("measured"), class: class(number), points: measured.points });
        if !predicted.points.is_empty() {
            series.push(predicted);
        }
    }
    let plot = Plot {
        id: "waiting",
        title: "Waiting for the orchestrator, measured and, from 20 % on, as M/D/1 predicts it above the quietest point",
        x: Axis { title: "utilisation of the orchestrator (%)", name: &axis::number },
        y: Axis { title: "mean submit + mean completion", name: &axis::duration },
    };
    plot.draw(&series)
}

/// The two stages that end when the orchestrator takes a message up, on average.
fn waited(run: &Outline) -> Option<f64> {
    Some(
        run.measure(Measure::Stage(Stage::Submit)).mean_ns?
            + run.measure(Measure::Stage(Stage::Completion)).mean_ns?,
    )
}

/// M/D/1 at the run's own utilisation and rate.
fn predicted(run: &Outline) -> Option<f64> {
    md1::order_wait_ns(run.utilisation?, run.achieved_per_s?)
}

/// Every point in a row, for each percentile.
fn rows(sweep: &SweepRecord) -> Option<Markup> {
    if sweep.points.len() > ROWS {
        return None;
    }
    let chart = |(number, percentile): (usize, &str)| {
        let rows: Vec<IntervalRow> = sweep.points.iter().map(|point| row(sweep, point, percentile)).collect();
        let id = format!("points-{number}");
        let title =
            format!("rt_venue {percentile} of every point: median over the repeats, from least to greatest");
        interval_plot::draw(&id, &title, &format!("rt_venue {percentile}"), &axis::duration, None, &rows)
    };
    let charts: Vec<Markup> = ["p50", "p99", "p99.9"].into_iter().enumerate().filter_map(chart).collect();
    (!charts.is_empty()).then(|| html! { @for chart in charts { (chart) } })
}

fn row(sweep: &SweepRecord, point: &SweepPoint, percentile: &str) -> IntervalRow {
    let interval = point.spread(|run| rt_venue(run, percentile));
    let note = match interval {
        Some(spread) => duration(spread.median as u64),
        None if point.sound().next().is_none() => "no sound run".into(),
        None => "too few orders".into(),
    };
    // Coloured by the first thing that varies, so that what belongs together is seen together.
    let axis = sweep.axes.iter().find(|axis| axis.values.len() > 1);
    let place = axis
        .and_then(|axis| axis.values.iter().position(|value| point.values.get(&axis.axis) == Some(value)));
    let class = class(place.unwrap_or(0)).split(' ').next().unwrap_or("c1");
    IntervalRow { name: point.name_without(&sweep.axes, None), note, class, interval }
}

/// The table of every point.
pub fn table(sweep: &SweepRecord) -> Markup {
    let time =
        |spread: Option<Spread>| spread.map_or_else(|| "–".into(), |spread| duration(spread.median as u64));
    let number = |spread: Option<Spread>| spread.map_or_else(|| "–".into(), |spread| plain(spread.median));
    let per_order = |of: fn(&Outline) -> u64| {
        move |run: &Outline| (run.returned > 0).then(|| of(run) as f64 * 1e6 / run.returned as f64)
    };
    html! {
        table {
            thead { tr {
                th { "point" } th class="n" { "runs" } th class="n" { "fit" }
                th class="n" { "rt_venue p50" } th class="n" { "p99" } th class="n" { "p99.9" }
                th class="n" { "CPU s/M orders" } th class="n" { "start-up" } th class="n" { "PSS MiB" }
                th class="n" { "faults/M" } th class="n" { "switches/M" } th class="n" { "busy %" }
            } }
            tbody { @for point in &sweep.points { tr data-point=(point.name) {
                th scope="row" { (point.name_without(&sweep.axes, None)) }
                td class="n" { (point.sound().count()) " of " (sweep.repeats) }
                td class="n" { (point.sound().filter(|run| run.fit_for_latency).count()) }
                @for percentile in ["p50", "p99", "p99.9"] {
                    td class="n" {
                        (time(point.spread(|run| rt_venue(run, percentile))))
                        @if percentile != "p50" { (stall_free(point, percentile)) }
                    }
                }
                td class="n" { (number(point.spread(Outline::cpu_s_per_million))) }
                td class="n" { (time(point.spread(|run| Some(run.startup_ns as f64)))) }
                td class="n" { (number(point.spread(|run| run.pss_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20))))) }
                td class="n" { (number(point.spread(per_order(|run| run.page_faults)))) }
                td class="n" { (number(point.spread(per_order(|run| run.context_switches)))) }
                td class="n" { (number(point.spread(|run| run.utilisation.map(|used| used * 100.0)))) }
            } } }
        }
        p class="note" {
            "Medians over the sound repeats. A figure that one of them lacks is left out (–). Stall-free: the same of the orders that no stall of "
            "the machine touched, with the share that is taken out."
        }
    }
}

/// Below a percentile: what it is without the machine's stalls, and the share of the orders that is taken out for it.
fn stall_free(point: &SweepPoint, percentile: &str) -> Markup {
    let of = |run: &Outline| {
        let figures = run.measure(Measure::StallFree);
        let ns = if percentile == "p99" { figures.p99_ns } else { figures.p999_ns };
        ns.map(|ns| ns as f64)
    };
    match (point.spread(of), point.spread(Outline::taken_out)) {
        (Some(free), Some(out)) => html! {
            div class="dim" { "stall-free " (duration(free.median as u64)) " −" (percent(Some(out.median))) }
        },
        _ => html! {},
    }
}

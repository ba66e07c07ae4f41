//! The search for the highest rate that is held under a bound: what was tried, and what came of it.

use super::axis;
use super::sweep_data::Spread;
use super::xy_plot::{Axis, Plot, PlotSeries, class};
use crate::experiment::{SearchRecord, SearchStep, SweepRecord};
use crate::report::units::{duration, duration_or_dash, plain};
use maud::{Markup, html};

/// The answer for every point, the tries as a chart and as a table.
pub fn draw(sweep: &SweepRecord, search: &SearchRecord) -> Markup {
    let names: Vec<String> = sweep.points.iter().map(|point| point.name_without(&sweep.axes, None)).collect();
    let found = || names.iter().zip(&search.points);
    html! {
        p { "A rate is held if rt_venue from due keeps its p99.9 under " (duration(search.bound_ns)) " and at least 99% of it is sent, in most of its runs." }
        table {
            thead { tr { th { "point" } th class="n" { "highest rate held" } th { "how it ended" } } }
            tbody { @for (name, tried) in found() { tr {
                th scope="row" { (name) }
                td class="n" data-highest-per-s=[tried.highest_per_s] {
                    (tried.highest_per_s.map_or_else(|| "–".into(), |rate| format!("{}/s", plain(rate))))
                }
                td { (tried.ended) }
            } } }
        }
        (chart(&names, search))
        table {
            thead { tr { th { "point" } th class="n" { "rate tried" } th class="n" { "sent" } th class="n" { "p99.9 from due" } th { "held" } } }
            tbody { @for (name, tried) in found() { @for step in &tried.steps { tr {
                th scope="row" { (name) }
                td class="n" { (plain(step.rate_per_s)) "/s" }
                td class="n" { (step.achieved_per_s.map_or_else(|| "–".into(), |rate| format!("{}/s", plain(rate)))) }
                td class="n" { (duration_or_dash(step.p999_ns)) }
                td { (verdict(step)) }
            } } } }
        }
    }
}

/// Whether a rate was held, by how many runs of how many, and why not.
fn verdict(step: &SearchStep) -> String {
    let held = if step.held { "yes" } else { "no" };
    let runs = match step.folders.len() {
        0 => String::new(),
        runs => format!(", {} of {runs} runs", step.runs_held),
    };
    let why = if step.why.is_empty() { String::new() } else { format!(": {}", step.why) };
    format!("{held}{runs}{why}")
}

/// p99.9 over the rate, and the bound across it.
fn chart(names: &[String], search: &SearchRecord) -> Markup {
    let exactly = |value: f64| Spread { median: value, low: value, high: value };
    let place = |step: &SearchStep| Some((step.rate_per_s, exactly(step.p999_ns? as f64)));
    let mut series: Vec<PlotSeries> = Vec::new();
    for (number, (name, tried)) in names.iter().zip(&search.points).enumerate() {
        let mut points: Vec<(f64, Spread)> = tried.steps.iter().filter_map(place).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        series.push(PlotSeries { name: name.clone(), class: class(number), points });
    }
    let rates = || series.iter().flat_map(|series| &series.points).map(|point| point.0);
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(f64::NEG_INFINITY, f64::max));
    if least < most {
        let bound = exactly(search.bound_ns as f64);
        series.push(PlotSeries {
            name: "bound".into(),
            class: "c7 dots",
            points: vec![(least, bound), (most, bound)],
        });
    }
    let plot = Plot {
        id: "search",
        title: "p99.9 of rt_venue from due at every rate that was tried",
        x: Axis { title: "offered rate (orders/s)", name: &axis::number },
        y: Axis { title: "rt_venue from due, p99.9", name: &axis::duration },
    };
    html! { @if let Some(drawing) = plot.draw(&series) { (drawing) } }
}

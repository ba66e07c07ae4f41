//! Draws latency over time, with stalls and strategy deaths marked.

use super::incidents;
use super::page::table;
use crate::chart::levels::levels;
use crate::chart::plot::{DataSeries, MarkedSpan, Plot, PlotAxis, SeriesKind, SpanTone, Unit};
use crate::report::units::{count, counted, duration};
use crate::summary::{IncidentSummary, Summary};
use crate::table::Grid;
use maud::{Markup, html};
use merge::timeline::{Stall, Timeline};

/// From this pause on an engine thread counts as away, in nanoseconds.
const AWAY_NS: u64 = 1_000_000;

/// Draws a run's latency over time with the table of stalls, or a text if there is nothing to draw.
pub fn draw(timeline: &Timeline, summary: &Summary) -> Markup {
    let died = &summary.incidents;
    html! {
        @if timeline.max_ns.iter().flatten().next().is_some() {
            @let chart = chart(timeline, died);
            (chart.figure())
            @if !died.is_empty() { (incidents::plot(died, &chart).figure()) }
        } @else {
            p class="none" { "No order came back." }
        }
        (stalls(timeline, summary))
    }
}

fn chart(timeline: &Timeline, died: &[IncidentSummary]) -> Plot {
    let Timeline { bucket_ns, p50_ns, max_ns, p99_ns, .. } = timeline;
    let bucket = *bucket_ns as f64;
    let places = |every: usize, buckets: usize| -> Vec<f64> {
        (0..buckets).map(|number| (number * every) as f64 * bucket).collect()
    };
    let [greatest, p50] = levels(&places(1, p50_ns.len()), bucket, p50_ns, max_ns);
    let p99 = DataSeries {
        kind: SeriesKind::Steps,
        width: bucket * timeline.p99_every as f64,
        x: places(timeline.p99_every, p99_ns.len()),
        y: p99_ns.iter().map(|ns| ns.map_or(f64::NAN, |ns| ns as f64)).collect(),
        ..DataSeries::with_class("p99", "c2")
    };
    let span = |(number, stall): (usize, &Stall)| MarkedSpan {
        from: stall.at_ns as f64,
        to: stall.at_ns.saturating_add(stall.length_ns) as f64,
        tone: SpanTone::Stall,
        lane: None,
        mark: number.to_string(),
        label: format!("stall {number}: {} in {}", duration(stall.length_ns), stall.stage),
    };
    Plot {
        id: "timeline".into(),
        description: description(timeline, died),
        height: 400,
        x: time_axis(timeline.span_ns()),
        y: PlotAxis::with_log("rt_venue", Unit::Duration, true),
        series: vec![greatest, p99, p50],
        spans: (1..).zip(&timeline.stalls).map(span).collect(),
        group: TIME,
        ..Plot::default()
    }
}

/// The name that links all of a run's plots over time, so that they share cursor and zoom.
pub const TIME: &str = "time";

/// Returns the time axis of a run's plots, `span_ns` nanoseconds long.
pub fn time_axis(span_ns: u64) -> PlotAxis {
    let range = Some([0.0, span_ns.max(1) as f64]);
    PlotAxis { range, ..PlotAxis::new("time from the start of the schedule", Unit::Duration) }
}

fn stalls(timeline: &Timeline, summary: &Summary) -> Markup {
    let threshold = duration(timeline.stall_threshold_ns);
    if timeline.stalls.is_empty() {
        let engine = summary.processes.iter().filter(|thread| !thread.role.starts_with("strategy-"));
        let away = engine
            .filter(|thread| thread.longest_gap_ns >= AWAY_NS)
            .max_by_key(|thread| thread.longest_gap_ns);
        return html! { p {
            @match away {
                None => { "No stall: no hand-off took longer than " (threshold) "." },
                Some(thread) => {
                    "No hand-off took longer than " (threshold) ", ten times the median and so the least that counts as a stall here; but "
                    (thread.role) " was away from its rings for " (duration(thread.longest_gap_ns)) " at most, which every order that came "
                    "meanwhile waited for. See Threads."
                }
            }
        } };
    }
    let (listed, total) = (timeline.stalls.len() as u64, timeline.stalls_total);
    let longest = |stall: &&Stall| stall.length_ns;
    html! {
        p {
            (counted(total, "stall")) " (a hand-off longer than " (threshold) "), "
            (duration(timeline.stalls_ns)) " together"
            @if let Some(worst) = timeline.stalls.iter().max_by_key(longest) {
                ", the longest " (duration(worst.length_ns)) " in " (worst.stage)
            }
            "." @if listed < total { " The " (listed) " longest are marked:" }
        }
        (table(&listed_stalls(timeline)))
    }
}

fn listed_stalls(timeline: &Timeline) -> Grid {
    let stalls: Vec<(usize, &Stall)> = (1..).zip(&timeline.stalls).collect();
    Grid::from_rows(
        "stalls",
        "",
        1,
        &[
            ("mark", &|(number, _): &(usize, &Stall)| number.to_string()),
            ("at", &|(_, stall)| format!("{:.4} s", stall.at_ns as f64 / 1e9)),
            ("length", &|(_, stall)| duration(stall.length_ns)),
            ("orders caught", &|(_, stall)| count(stall.orders)),
            ("longest wait", &|(_, stall)| duration(stall.worst_ns)),
            ("in stage", &|(_, stall)| stall.stage.clone()),
        ],
        &stalls,
    )
}

fn description(timeline: &Timeline, died: &[IncidentSummary]) -> String {
    let extremes = |values: &[Option<u64>]| {
        let known = || values.iter().flatten().copied();
        match (known().min(), known().max()) {
            (Some(least), Some(most)) => format!("from {} to {}", duration(least), duration(most)),
            _ => "not known, too few orders".into(),
        }
    };
    let deaths = match died.len() {
        0 => String::new(),
        many => format!(" Strategies died {}.", counted(many as u64, "time")),
    };
    format!(
        "rt_venue in {} buckets of {}: medians {}; 99th percentiles over {} of {}; greatest {}. {}.{deaths}",
        timeline.count.len(),
        duration(timeline.bucket_ns),
        extremes(&timeline.p50_ns),
        duration(timeline.bucket_ns.saturating_mul(timeline.p99_every as u64)),
        extremes(&timeline.p99_ns),
        extremes(&timeline.max_ns),
        timeline.stalls_total
    )
}

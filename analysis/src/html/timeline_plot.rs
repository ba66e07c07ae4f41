//! Draws latency over time, with stalls and strategy deaths marked.

use super::axis;
use super::incidents::Lanes;
use super::labels::{self, LineLabel};
use super::page::table;
use super::scale::Scale;
use super::svg::{Frame, SvgPath, coordinate, line, text};
use crate::report::units::{count, counted, duration, duration_or_dash, plain};
use crate::summary::{IncidentSummary, Summary};
use crate::table::Grid;
use crate::timeline::{Stall, Timeline};
use maud::{Markup, html};

/// A stall is drawn at least this wide, or it could not be seen.
const MIN_WIDTH: f64 = 1.5;
/// From this pause on an engine thread counts as away, in nanoseconds.
const AWAY_NS: u64 = 1_000_000;
/// Numbers of stalls are this far apart.
const MARK_GAP: f64 = 20.0;

/// Draws latency over time with the table of stalls, or a text if there is nothing to draw.
pub fn draw(timeline: &Timeline, summary: &Summary) -> Markup {
    let died = &summary.incidents;
    html! {
        @if timeline.max_ns.iter().flatten().next().is_some() {
            figure { (chart(timeline, died)) }
        } @else {
            p class="none" { "No order came back." }
        }
        (stalls(timeline, summary))
    }
}

fn chart(timeline: &Timeline, died: &[IncidentSummary]) -> Markup {
    // Room above for the numbers of the stalls and what joins them to their places.
    let lanes = Lanes::from_incidents(died);
    let frame = Frame { top: 30.0, bottom: 380.0, ..Frame::new(430.0 + lanes.height()) };
    let (size, unit) = axis::time_unit(timeline.span_ns() as f64);
    let x = Scale::linear_exact(0.0, (timeline.span_ns() as f64 / size).max(1e-9), frame.x_range());
    let known = || timeline.p50_ns.iter().chain(&timeline.max_ns).chain(&timeline.p99_ns).flatten();
    let least = known().min().copied().unwrap_or(1).max(1) as f64;
    let most = known().max().copied().unwrap_or(1).max(1) as f64;
    let y = Scale::log(least, most, frame.y_range());
    let bucket = timeline.bucket_ns as f64 / size;

    let p99_bucket = bucket * timeline.p99_every as f64;
    let series = [("p99", "c2", &timeline.p99_ns, p99_bucket), ("p50", "c1", &timeline.p50_ns, bucket)];
    let last_max = timeline.max_ns.iter().rev().flatten().next().copied().unwrap_or(1).max(1) as f64;
    let label =
        |y, text: &str, class: &str| LineLabel { x: frame.right, y, text: text.into(), class: class.into() };
    let mut ends = vec![label(y.at(last_max), "greatest", "c7")];
    for (name, class, values, _) in &series {
        if let Some(last) = values.iter().rev().flatten().next() {
            ends.push(label(y.at((*last).max(1) as f64), name, class));
        }
    }
    let starts: Vec<f64> = timeline.stalls.iter().map(|stall| x.at(stall.at_ns as f64 / size)).collect();
    let marks = labels::spread_apart(&starts, MARK_GAP, frame.left, frame.right);
    let content = html! {
        (axis::left(&frame, &y, "rt_venue (logarithmic)", &axis::duration))
        (axis::bottom(&frame, &x, &format!("time from the start of the schedule ({unit})"), &axis::number))
        g class="stalls" {
            @for (number, stall) in timeline.stalls.iter().enumerate() {
                @let left = x.at(stall.at_ns as f64 / size);
                @let right = x.at((stall.at_ns.saturating_add(stall.length_ns)) as f64 / size).min(frame.right);
                rect x=(coordinate(left)) y=(coordinate(frame.top)) width=(coordinate((right - left).max(MIN_WIDTH)))
                    height=(coordinate(frame.bottom - frame.top)) class="stall" data-stall=(number + 1)
                    data-at-ns=(stall.at_ns) data-length-ns=(stall.length_ns) {}
                (line((marks[number], frame.top - 14.0), (left, frame.top), "leader"))
                (text(marks[number], frame.top - 17.0, "middle", "tick mark", &(number + 1).to_string()))
            }
        }
        path d=(bands(timeline, bucket, &x, &y).data()) class="fill band c7" data-series="max"
            data-points=(timeline.max_ns.iter().flatten().count()) data-max-ns=[timeline.max_ns.iter().flatten().max()] {}
        @for (name, class, values, bucket) in &series {
            path d=(steps(values, *bucket, &x, &y).data()) class={ "line " (class) } data-series=(name)
                data-points=(values.iter().flatten().count()) data-max-ns=[values.iter().flatten().max()] {}
        }
        @if !died.is_empty() { (lanes.draw(432.0, &frame, &x, size)) }
        (labels::draw(frame.right + 22.0, frame.top + 6.0, frame.bottom, &ends))
        g class="hover" { @for index in 0..timeline.count.len() { (hover(timeline, index, &frame, &x, bucket, (size, unit))) } }
    };
    frame.drawing("timeline", "rt_venue over time", &description(timeline, died), &content)
}

/// A level for each bucket; a gap where a bucket is empty.
fn steps(values: &[Option<u64>], bucket: f64, x: &Scale, y: &Scale) -> SvgPath {
    let mut path = SvgPath::default();
    let end = x.domain().1;
    for (index, value) in values.iter().enumerate() {
        match value {
            Some(value) => {
                let (from, to) = (index as f64 * bucket, ((index + 1) as f64 * bucket).min(end));
                path.horizontal(x.at(from), x.at(to), y.at((*value).max(1) as f64));
            }
            None => path.lift_pen(),
        }
    }
    path
}

/// From the median of each bucket up to its maximum; without a median, a mark at the greatest.
fn bands(timeline: &Timeline, bucket: f64, x: &Scale, y: &Scale) -> SvgPath {
    let mut path = SvgPath::default();
    for (index, (max, p50)) in timeline.max_ns.iter().zip(&timeline.p50_ns).enumerate() {
        let Some(max) = max else { continue };
        let (left, right) = (x.at(index as f64 * bucket), x.at((index + 1) as f64 * bucket).min(x.range().1));
        let top = y.at((*max).max(1) as f64) - 0.5;
        let low = p50.map_or(top, |p50| y.at(p50.max(1) as f64)).max(top + 1.5);
        path.rectangle((left, top), (right, low));
    }
    path
}

/// An invisible strip that shows a bucket's figures under the pointer.
fn hover(
    timeline: &Timeline,
    index: usize,
    frame: &Frame,
    x: &Scale,
    bucket: f64,
    unit: (f64, &str),
) -> Markup {
    let orders = timeline.count.get(index).copied().unwrap_or(0);
    if orders == 0 {
        return html! {};
    }
    let (left, right) = (x.at(index as f64 * bucket), x.at((index + 1) as f64 * bucket));
    let value = |values: &[Option<u64>], index: usize| duration_or_dash(values.get(index).copied().flatten());
    html! {
        rect x=(coordinate(left)) y=(coordinate(frame.top)) width=(coordinate(right - left)) height=(coordinate(frame.bottom - frame.top)) {
            title {
                (plain(index as f64 * timeline.bucket_ns as f64 / unit.0)) " " (unit.1) ": " (count(orders)) " orders, p50 "
                (value(&timeline.p50_ns, index)) ", p99 " (value(&timeline.p99_ns, index / timeline.p99_every.max(1)))
                ", max " (value(&timeline.max_ns, index))
            }
        }
    }
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

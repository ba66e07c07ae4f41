//! Sparklines: small charts of rt_venue over a section of a run, on one vertical axis for a page.

use super::axis::duration;
use super::scale::Scale;
use super::svg::{SvgPath, coordinate, line, text};
use crate::timeline::Timeline;
use maud::{Markup, html};

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 118.0;
/// Left, right, top and bottom edge of the data area.
const DATA_BOUNDS: [f64; 4] = [54.0, WIDTH - 6.0, 6.0, HEIGHT - 20.0];

/// A section of a run's latency timeline, to be drawn as a sparkline.
#[derive(Clone, Copy, Debug)]
pub struct TimelineSlice<'a> {
    pub timeline: &'a Timeline,
    /// Start of the section, in nanoseconds from the start of the schedule.
    pub from_ns: u64,
    /// End of the section, in nanoseconds from the start of the schedule.
    pub to_ns: u64,
    /// Marked time, which becomes time 0 of the axis; `None` for no mark.
    pub mark_ns: Option<u64>,
}

impl TimelineSlice<'_> {
    /// Returns the start, the median and the maximum of each bucket in the section.
    fn buckets(&self) -> impl Iterator<Item = (u64, Option<u64>, Option<u64>)> {
        let Timeline { bucket_ns, p50_ns, max_ns, .. } = self.timeline;
        let all = p50_ns.iter().zip(max_ns).enumerate();
        let placed = all.map(move |(number, (p50, max))| (number as u64 * bucket_ns, *p50, *max));
        placed.filter(|(at, ..)| (self.from_ns..self.to_ns).contains(at))
    }

    pub fn min_max(&self) -> Option<(u64, u64)> {
        let known = || self.buckets().flat_map(|(_, p50, max)| [p50, max]).flatten();
        Some((known().min()?, known().max()?))
    }
}

/// Returns the common vertical range for sparklines of several sections of a timeline.
pub fn shared_range(slices: &[TimelineSlice<'_>]) -> (f64, f64) {
    let values = || slices.iter().filter_map(TimelineSlice::min_max);
    let min = values().map(|(min, _)| min).min().unwrap_or(1).max(1);
    let max = values().map(|(_, max)| max).max().unwrap_or(1).max(1);
    (min as f64, max as f64)
}

/// Draws a sparkline of `rt_venue` over a section of a run.
pub fn draw(id: &str, title: &str, slice: &TimelineSlice<'_>, ends: (f64, f64)) -> Markup {
    let [left, right, top, bottom] = DATA_BOUNDS;
    let zero = slice.mark_ns.unwrap_or(slice.from_ns) as f64;
    let (from, to) = (slice.from_ns as f64 - zero, (slice.to_ns as f64 - zero).max(1.0 - zero));
    let x_of =
        |ns: f64| (left + (ns - zero - from) / (to - from).max(1.0) * (right - left)).clamp(left, right);
    let y = Scale::log(ends.0, ends.1, (bottom, top));
    let bucket = slice.timeline.bucket_ns as f64;
    let (mut medians, mut maxima) = (SvgPath::default(), SvgPath::default());
    for (at, p50, max) in slice.buckets() {
        let (start, end) = (x_of(at as f64), x_of(at as f64 + bucket));
        match p50 {
            Some(p50) => medians.horizontal(start, end, y.at(p50.max(1) as f64)),
            None => medians.lift_pen(),
        }
        if let Some(max) = max {
            let high = y.at(max.max(1) as f64);
            // With too few orders for a median, the maximum is drawn as a thin mark.
            let low = p50.map_or(high, |p50| y.at(p50.max(1) as f64));
            maxima.rectangle((start, high), (end, low.max(high + 1.5)));
        }
    }
    // Label the lowest, the highest and a middle tick.
    let ticks = y.labeled_ticks();
    let step = ticks.len().div_ceil(3).max(1);
    html! {
        svg class="small" viewBox={ "0 0 " (coordinate(WIDTH)) " " (coordinate(HEIGHT)) } role="img" aria-labelledby={ (id) "-title" } {
            title id={ (id) "-title" } { (title) }
            @for value in ticks.into_iter().step_by(step) {
                (line((left, y.at(value)), (right, y.at(value)), "grid"))
                (text(left - 4.0, y.at(value) + 4.0, "end", "tick", &duration(value)))
            }
            path d=(maxima.data()) class="fill band c7" {}
            path d=(medians.data()) class="line c1" {}
            @if let Some(mark) = slice.mark_ns {
                (line((x_of(mark as f64), top), (x_of(mark as f64), bottom), "zero"))
            }
            (text(left, HEIGHT - 6.0, "start", "tick", &signed(from)))
            (text(right, HEIGHT - 6.0, "end", "tick", &signed(to)))
        }
    }
}

fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "−" } else { "" };
    format!("{sign}{}", crate::numbers::duration(ns.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparkline_clips_to_its_slice() {
        let timeline = Timeline {
            bucket_ns: 10,
            count: vec![1; 4],
            p50_ns: vec![Some(100), None, Some(300), Some(1)],
            max_ns: vec![Some(100), Some(900), Some(u64::MAX), None],
            p99_every: 1,
            p99_ns: vec![None; 4],
            ..Timeline::default()
        };
        let whole = |timeline| TimelineSlice { timeline, from_ns: 0, to_ns: 40, mark_ns: None };
        let part = TimelineSlice { timeline: &timeline, from_ns: 5, to_ns: 20, mark_ns: Some(15) };
        assert_eq!(part.min_max(), Some((900, 900)));
        for slice in [part, whole(&timeline), TimelineSlice { from_ns: u64::MAX, to_ns: 0, ..part }] {
            let text = draw("i", "t", &slice, shared_range(&[slice])).into_string();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
        let empty = Timeline { bucket_ns: 1, p99_every: 1, ..Timeline::default() };
        assert_eq!(whole(&empty).min_max(), None);
        draw("i", "t", &whole(&empty), shared_range(&[]));
    }
}

//! Sparklines: small plots of rt_venue over a section of a run, with one vertical axis for a page.

use maud::Markup;
use merge::timeline::Timeline;
use verdict::chart::levels::levels;
use verdict::chart::plot::{Plot, PlotAxis, ReferenceLine, Unit};

/// The section of a run's latency timeline, from one time to another, that a sparkline (a small
/// plot) draws.
#[derive(Clone, Copy, Debug)]
pub struct TimelineSlice<'a> {
    /// Timeline of the whole run.
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
        let placed =
            all.map(move |(number, (p50, max))| ((number as u64).saturating_mul(*bucket_ns), *p50, *max));
        placed.filter(|(at, ..)| (self.from_ns..self.to_ns).contains(at))
    }

    fn min_max(&self) -> Option<(u64, u64)> {
        let known = || self.buckets().flat_map(|(_, p50, max)| [p50, max]).flatten();
        Some((known().min()?, known().max()?))
    }
}

/// Returns the vertical range, in nanoseconds, that the sparklines of `slices` share: the smallest
/// and the largest latency in all sections together.
pub fn shared_range(slices: &[TimelineSlice<'_>]) -> (f64, f64) {
    let values = || slices.iter().filter_map(TimelineSlice::min_max);
    let min = values().map(|(min, _)| min).min().unwrap_or(1).max(1);
    let max = values().map(|(_, max)| max).max().unwrap_or(1).max(1);
    (min as f64, max as f64)
}

/// Draws a sparkline of `rt_venue` (round trip without the venue), its median and maximum, over a
/// section of a run.
pub fn draw(id: &str, title: &str, slice: &TimelineSlice<'_>, range: (f64, f64)) -> Markup {
    let zero = slice.mark_ns.unwrap_or(slice.from_ns) as f64;
    let (from, to) = (slice.from_ns as f64 - zero, (slice.to_ns as f64 - zero).max(1.0 - zero));
    let buckets: Vec<_> = slice.buckets().collect();
    let begin: Vec<f64> = buckets.iter().map(|bucket| bucket.0 as f64 - zero).collect();
    let p50: Vec<Option<u64>> = buckets.iter().map(|bucket| bucket.1).collect();
    let max: Vec<Option<u64>> = buckets.iter().map(|bucket| bucket.2).collect();
    let plot = Plot {
        id: id.into(),
        title: title.into(),
        description: format!("rt_venue around the fault, median and greatest: {title}."),
        height: 150,
        x: PlotAxis { range: Some([from, to.max(from + 1.0)]), ..PlotAxis::new("", Unit::Duration) },
        y: PlotAxis {
            is_log: true,
            range: Some([range.0 / 1.5, range.1.max(range.0 * 5.0) * 1.5]),
            ..PlotAxis::new("", Unit::Duration)
        },
        series: levels(&begin, slice.timeline.bucket_ns as f64, &p50, &max).into(),
        lines: slice.mark_ns.map(|_| ReferenceLine { axis: 'x', at: 0.0 }).into_iter().collect(),
        group: "around",
        ..Plot::default()
    };
    plot.figure()
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
        let drawn = draw("i", "t", &part, shared_range(&[part])).into_string();
        assert!(
            drawn.contains("\"low\":[null],\"name\":\"greatest\",\"width\":10,\"x\":[-5],\"y\":[900]"),
            "{drawn}"
        );
        let empty = Timeline { bucket_ns: 1, p99_every: 1, ..Timeline::default() };
        assert_eq!(whole(&empty).min_max(), None);
        draw("i", "t", &whole(&empty), shared_range(&[]));
    }
}

//! Charts of the survivors' latency around each incident of a containment table.

use super::{Contained, Containment, Containments};
use crate::chart::sparkline::{self, TimelineSlice};
use crate::document::Document;
use crate::numbers::duration_or_dash;
use crate::summary::Summary;
use crate::timeline::Timeline;
use maud::{Markup, html};
use std::path::Path;

/// The maximum number of drawings: those in which others waited longest.
const MAX_INCIDENTS: usize = 12;
const SPAN_NS: u64 = 300_000_000;

/// Draws the survivors' latency around each incident whose run still has its timeline.
pub(super) fn draw(all: &Containments, folder: &Path) -> Option<Markup> {
    let mut rows: Vec<&Containment> = all
        .rows
        .iter()
        .filter(|row| row.contained != Contained::Nothing && row.during_max_ns.is_some())
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.during_max_ns));
    let timeline = |row: &Containment| {
        // Only a plain name: a damaged or hostile table reads nothing outside of its folder.
        let run = Path::new(&row.folder);
        let run = (run.components().count() == 1 && run.file_name().is_some()).then(|| folder.join(run))?;
        let incident = Summary::read(&run).ok()?.incidents.into_iter().next()?;
        let at_ns = incident.fault_ns.unwrap_or(u64::MAX).min(incident.detected_ns);
        Some((at_ns, Timeline::read(&run).ok()?))
    };
    let seen = rows.into_iter().filter_map(|row| Some((row, timeline(row)?)));
    let seen: Vec<(&Containment, (u64, Timeline))> = seen.take(MAX_INCIDENTS).collect();
    let slices: Vec<TimelineSlice<'_>> =
        seen.iter().map(|(_, (at_ns, timeline))| around(*at_ns, timeline)).collect();
    let ends = sparkline::shared_range(&slices);
    (!seen.is_empty()).then(|| {
        html! {
            p {
                "rt_venue of all orders from " (duration_or_dash(Some(SPAN_NS))) " before the fault (the upright line) to as long after it: "
                "the line is the median, the band reaches up to the greatest. Those in which others waited longest."
            }
            div class="multiples" {
                @for (number, ((row, _), slice)) in seen.iter().zip(&slices).enumerate() {
                    @let name = format!("{}, {} under {}", row.fault, row.technique, row.isolation);
                    figure class="multiple" data-around=(row.folder) {
                        figcaption { (name) ": " (row.contained.name()) }
                        (sparkline::draw(&format!("around-{number}"), &name, slice, ends))
                    }
                }
            }
        }
    })
}

fn around(at_ns: u64, timeline: &Timeline) -> TimelineSlice<'_> {
    let end_ns = at_ns.saturating_add(SPAN_NS).min(timeline.span_ns());
    TimelineSlice {
        timeline,
        from_ns: at_ns.saturating_sub(SPAN_NS),
        to_ns: end_ns.max(at_ns.saturating_add(1)),
        mark_ns: Some(at_ns),
    }
}

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
/// The time that is drawn before the fault and after it.
const SPAN_NS: u64 = 300_000_000;

/// The timeline of the run that had a fault.
struct IncidentTimeline<'a> {
    row: &'a Containment,
    at_ns: u64,
    timeline: Timeline,
}

/// Draws the survivors' latency around each incident; `None` if no run of the table has its
/// timeline any more.
pub(super) fn draw(all: &Containments, folder: &Path) -> Option<Markup> {
    let mut rows: Vec<&Containment> = all
        .rows
        .iter()
        .filter(|row| row.contained != Contained::Nothing && row.during_max_ns.is_some())
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.during_max_ns));
    let see = |row: &Containment| {
        // Only a plain name: a damaged or hostile table reads nothing outside of its folder.
        let run = Path::new(&row.folder);
        let run = (run.components().count() == 1 && run.file_name().is_some()).then(|| folder.join(run))?;
        let incident = Summary::read(&run).ok()?.incidents.into_iter().next()?;
        let at_ns = incident.fault_ns.unwrap_or(u64::MAX).min(incident.detected_ns);
        Some((at_ns, Timeline::read(&run).ok()?))
    };
    let seen: Vec<IncidentTimeline<'_>> = rows
        .into_iter()
        .filter_map(|row| see(row).map(|(at_ns, timeline)| IncidentTimeline { row, at_ns, timeline }))
        .take(MAX_INCIDENTS)
        .collect();
    let stretches: Vec<TimelineSlice<'_>> = seen.iter().map(stretch).collect();
    let ends = sparkline::shared_range(&stretches);
    (!seen.is_empty()).then(|| {
        html! {
            p {
                "rt_venue of all orders from " (duration_or_dash(Some(SPAN_NS))) " before the fault (the upright line) to as long after it: "
                "the line is the median, the band reaches up to the greatest. Those in which others waited longest."
            }
            div class="multiples" {
                @for (number, (seen, stretch)) in seen.iter().zip(&stretches).enumerate() {
                    @let name = format!("{}, {} under {}", seen.row.fault, seen.row.technique, seen.row.isolation);
                    figure class="multiple" data-around=(seen.row.folder) {
                        figcaption { (name) ": " (seen.row.contained.name()) }
                        (sparkline::draw(&format!("around-{number}"), &name, stretch, ends))
                    }
                }
            }
        }
    })
}

fn stretch<'a>(seen: &'a IncidentTimeline<'_>) -> TimelineSlice<'a> {
    let to_ns =
        seen.at_ns.saturating_add(SPAN_NS).min(seen.timeline.span_ns()).max(seen.at_ns.saturating_add(1));
    TimelineSlice {
        timeline: &seen.timeline,
        from_ns: seen.at_ns.saturating_sub(SPAN_NS),
        to_ns,
        mark_ns: Some(seen.at_ns),
    }
}

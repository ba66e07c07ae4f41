//! The charts of a containment table. The matrix has faults down, techniques and levels across: the
//! color of a cell shows whether the fault was contained, two bars in it, on a common scale, the
//! duration of the repair and the worst wait of the other strategies. Around each incident the
//! survivors' latency is drawn.

use super::{Contained, Containment, Containments};
use crate::chart::sparkline::{self, TimelineSlice};
use crate::grouping::distinct;
use maud::{Markup, html};
use merge::timeline::Timeline;
use protocol::plan::Technique;
use record::document::Document;
use record::numbers::duration;
use std::path::Path;
use verdict::chart::scale::Scale;
use verdict::summary::Summary;

/// The maximum number of columns of a matrix, so that it fits a printed page.
const MAX_COLUMNS: usize = 15;

/// Returns the levels of a containment table in words, each with those of the others in mixed runs.
pub(super) fn levels(all: &Containments) -> Vec<String> {
    let mut rows: Vec<&Containment> = all.rows.iter().collect();
    rows.sort_by_key(|row| (row.isolation, row.others.clone()));
    distinct(rows.into_iter().map(Containment::levels))
}

/// Draws the containment table, in several matrices if it is wide. Nothing without rows.
pub(super) fn matrix(all: &Containments) -> Markup {
    let techniques = distinct(all.rows.iter().map(|row| row.technique));
    let levels = levels(all);
    if techniques.is_empty() || levels.is_empty() {
        return html! {};
    }
    let times = || all.rows.iter().flat_map(|row| [row.repair_ns, row.during_max_ns]).flatten();
    let (min, max) = (times().min().unwrap_or(1_000).max(1), times().max().unwrap_or(1_000_000).max(1));
    html! {
        @for part in techniques.chunks((MAX_COLUMNS / levels.len()).max(1)) {
            (matrix_of(all, part, &levels, (min as f64, max as f64)))
        }
        p class="note legend" {
            "Color: " span class="key yes" { "stayed" } " " span class="key late" { "others waited for the deadline" } " "
            span class="key no" { "spread" } " " span class="key nothing" { "never came" } ". Bars, on one logarithmic scale for all cells, "
            "from " (duration(min)) " at the left to " (duration(max)) " at the right of a cell: "
            span class="key c1" { span class="swatch" {} "detection to repair" } " "
            span class="key c2" { span class="swatch" {} "the worst wait of the others during it" }
            ". No first bar: there was nothing to repair, or the run ended."
        }
    }
}

fn matrix_of(all: &Containments, techniques: &[Technique], levels: &[String], range: (f64, f64)) -> Markup {
    let faults = distinct(all.rows.iter().map(|row| row.fault.as_str()));
    let columns =
        || techniques.iter().flat_map(|technique| levels.iter().map(move |level| (*technique, level)));
    let row_of = |fault: &str, (technique, level): (Technique, &String)| {
        let is_it =
            |row: &&Containment| row.technique == technique && row.levels() == *level && row.fault == fault;
        all.rows.iter().find(is_it)
    };
    html! {
        table class="matrix" {
            thead {
                tr { td {} @for technique in techniques { th colspan=(levels.len()) scope="colgroup" { (technique) } } }
                tr { td {} @for (_, level) in columns() { th scope="col" { (level) } } }
            }
            tbody { @for fault in &faults { tr {
                th scope="row" { (fault) }
                @for column in columns() { (cell(row_of(fault, column), range)) }
            } } }
        }
    }
}

fn cell(row: Option<&Containment>, range: (f64, f64)) -> Markup {
    let Some(row) = row else { return html! { td {} } };
    let known = |ns: Option<u64>| ns.map_or_else(|| "–".into(), duration);
    let share = |ns: u64| {
        let scale = Scale::log_exact(range.0, range.1.max(range.0 * 1.01), (6.0, 100.0));
        format!("width:{:.0}%", scale.at((ns as f64).clamp(range.0, range.1)))
    };
    let words = format!(
        "{}, {} under {}: {}, repair {}, others' worst wait {}, seen {}",
        row.fault,
        row.technique,
        row.levels(),
        row.contained.name(),
        known(row.repair_ns),
        known(row.during_max_ns),
        quoted_bytes(&row.seen)
    );
    html! {
        td class=(row.contained.name().to_lowercase()) title=(words) aria-label=(words) data-cell=(row.fault) data-technique=(row.technique)
            data-level=(row.levels()) data-contained=(row.contained.name()) data-repair-ns=[row.repair_ns] data-others-ns=[row.during_max_ns] {
            @for (class, ns) in [("c1", row.repair_ns), ("c2", row.during_max_ns)] {
                @match ns { Some(ns) => i class=(class) style=(share(ns)) {}, None => i {} }
            }
        }
    }
}

/// Quotes a text, with its unprintable bytes in hexadecimal.
pub(super) fn quoted_bytes(text: &str) -> String {
    const MAX_BYTES: usize = 16;
    let is_byte = |c: char| c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_whitespace());
    let Some(at) = text.find(is_byte) else { return text.to_owned() };
    let start = text[..at].rfind(": ").map_or(0, |colon| colon + 2);
    let (known, bytes) = text.split_at(start);
    let hex: Vec<String> = bytes.bytes().take(MAX_BYTES).map(|byte| format!("{byte:02x}")).collect();
    let more = if bytes.len() > MAX_BYTES { " …" } else { "" };
    format!("{known}\"{}{more}\"", hex.join(" "))
}

/// The maximum number of drawings: those in which others waited longest.
const MAX_INCIDENTS: usize = 12;
const SPAN_NS: u64 = 300_000_000;

/// Draws the survivors' latency around each incident whose run still has its timeline.
pub(super) fn incidents(all: &Containments, folder: &Path) -> Option<Markup> {
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
    let plotted = rows.into_iter().filter_map(|row| Some((row, timeline(row)?)));
    let plotted: Vec<(&Containment, (u64, Timeline))> = plotted.take(MAX_INCIDENTS).collect();
    let slices: Vec<TimelineSlice<'_>> =
        plotted.iter().map(|(_, (at_ns, timeline))| around(*at_ns, timeline)).collect();
    let range = sparkline::shared_range(&slices);
    (!plotted.is_empty()).then(|| {
        html! {
            p {
                "rt_venue of all orders from " (duration(SPAN_NS)) " before the fault (the upright line) to as long after it: "
                "the line is the median, the band reaches up to the greatest. Those in which others waited longest."
            }
            div class="multiples" {
                @for (number, ((row, _), slice)) in plotted.iter().zip(&slices).enumerate() {
                    @let name = format!("{}, {} under {}", row.fault, row.technique, row.levels());
                    @let title = format!("{name}: {}", row.contained.name());
                    div data-around=(row.folder) { (sparkline::draw(&format!("around-{number}"), &title, slice, range)) }
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

//! The charts of a containment table. The matrix has faults down, techniques and levels across: the
//! color of a cell shows whether the fault was contained, two marks in it, on a common time axis,
//! the duration of the repair and the worst wait of the other strategies. Around each incident the
//! survivors' latency is drawn.

use super::{Contained, Containment, Containments};
use crate::chart::axis;
use crate::chart::scale::Scale;
use crate::chart::sparkline::{self, TimelineSlice};
use crate::chart::svg::{Frame, WIDTH, coordinate, line, text, text_width};
use crate::document::Document;
use crate::grouping::distinct;
use crate::numbers::{counted, duration};
use crate::summary::Summary;
use crate::timeline::Timeline;
use maud::{Markup, html};
use protocol::plan::{Isolation, Technique};
use std::path::Path;

const ROW: f64 = 22.0;
/// The minimum width of a cell, which limits the number of techniques per drawing.
const CELL: f64 = 58.0;
const HEAD: f64 = 44.0;

/// Returns the isolation levels of a containment table.
pub(super) fn levels(all: &Containments) -> Vec<Isolation> {
    let is_tried = |level: &Isolation| all.rows.iter().any(|row| row.isolation == *level);
    Isolation::ALL.iter().copied().filter(is_tried).collect()
}

/// Draws the containment table, in several charts if it is wide. Nothing without rows.
pub(super) fn matrix(all: &Containments) -> Markup {
    let techniques = distinct(all.rows.iter().map(|row| row.technique));
    let faults = distinct(all.rows.iter().map(|row| row.fault.as_str()));
    let levels = levels(all);
    if techniques.is_empty() || levels.is_empty() {
        return html! {};
    }
    let left = faults.iter().map(|fault| text_width(fault)).fold(60.0, f64::max).min(WIDTH * 0.35) + 16.0;
    let per_drawing = (((WIDTH - left) / CELL / levels.len() as f64) as usize).max(1);
    let times = || all.rows.iter().flat_map(|row| [row.repair_ns, row.during_max_ns]).flatten();
    let (min, max) = (times().min().unwrap_or(1_000).max(1), times().max().unwrap_or(1_000_000).max(1));
    html! {
        @for (number, part) in techniques.chunks(per_drawing).enumerate() {
            figure { (drawing(number, all, part, &levels, &faults, left, (min as f64, max as f64))) }
        }
        p class="note legend" {
            "Colour: " span class="key yes" { "stayed" } " " span class="key late" { "others waited for the deadline" } " "
            span class="key no" { "spread" } " " span class="key nothing" { "never came" } ". Marks, on one axis of time for all cells, "
            "logarithmic, from " (duration(min)) " at the left to " (duration(max)) " at the right of a cell: ● detection to repair, "
            "◇ the worst wait of the others meanwhile. No ●: there was nothing to repair, or the run ended."
        }
    }
}

fn drawing(
    number: usize,
    all: &Containments,
    techniques: &[Technique],
    levels: &[Isolation],
    faults: &[&str],
    left: f64,
    ends: (f64, f64),
) -> Markup {
    let bottom = HEAD + faults.len() as f64 * ROW;
    let frame = Frame { height: bottom + 8.0, left, right: WIDTH - 4.0, top: HEAD, bottom };
    let cell = ((frame.right - left) / (techniques.len() * levels.len()) as f64).min(120.0);
    let x = |technique: usize, level: usize| left + (technique * levels.len() + level) as f64 * cell;
    let of = |fault: &str, technique: Technique, level: Isolation| {
        let same =
            |row: &&Containment| (row.technique, row.isolation) == (technique, level) && row.fault == fault;
        all.rows.iter().find(same)
    };
    let content = html! {
        @for (t, technique) in techniques.iter().enumerate() {
            (text(x(t, 0) + cell * levels.len() as f64 / 2.0, 14.0, "middle", "label strong", technique.name()))
            @for (l, level) in levels.iter().enumerate() {
                (text(x(t, l) + cell / 2.0, 32.0, "middle", "tick", level.name()))
            }
        }
        @for (f, fault) in faults.iter().enumerate() {
            @let y = HEAD + f as f64 * ROW;
            (text(left - 10.0, y + ROW / 2.0 + 4.0, "end", "label", fault))
            @for (t, technique) in techniques.iter().enumerate() {
                @for (l, level) in levels.iter().enumerate() {
                    @if let Some(row) = of(fault, *technique, *level) {
                        (mark(row, x(t, l), y, cell, ends))
                    }
                }
            }
        }
        @for t in 1..techniques.len() {
            (line((x(t, 0) - 1.0, 4.0), (x(t, 0) - 1.0, bottom), "base"))
        }
    };
    let count = |wanted| all.rows.iter().filter(|row| row.contained == wanted).count();
    let words = format!(
        "Of {} tried, {} stayed where they began, {} did but others waited, {} spread. The tables below have every one.",
        counted(all.rows.len() as u64, "fault"),
        count(Contained::Yes),
        count(Contained::Waited),
        count(Contained::No)
    );
    frame.drawing(&format!("matrix-{number}"), "Faults against techniques and levels", &words, &content)
}

fn mark(row: &Containment, left: f64, top: f64, cell: f64, ends: (f64, f64)) -> Markup {
    let x = Scale::log_exact(ends.0, ends.1.max(ends.0 * 1.01), (left + 9.0, left + cell - 9.0));
    let at = |ns: u64| x.at((ns.max(1) as f64).clamp(ends.0, ends.1));
    let middle = top + ROW / 2.0;
    let known = |ns: Option<u64>| ns.map_or_else(|| "–".into(), |ns| axis::duration(ns as f64));
    html! {
        rect x=(coordinate(left + 1.0)) y=(coordinate(top + 1.0)) width=(coordinate(cell - 2.0)) height=(coordinate(ROW - 2.0)) class={ "cell " (row.contained.name().to_lowercase()) }
            data-cell=(row.fault) data-technique=(row.technique) data-level=(row.isolation) data-contained=(row.contained.name())
            data-repair-ns=[row.repair_ns] data-others-ns=[row.during_max_ns] {
            title {
                (row.fault) ", " (row.technique) " under " (row.isolation) ": " (row.contained.name()) ", repair " (known(row.repair_ns))
                ", others' worst wait " (known(row.during_max_ns)) ", seen " (quoted_bytes(&row.seen))
            }
        }
        @if let Some(others) = row.during_max_ns {
            @let x_others = at(others);
            path d={ "M" (coordinate(x_others - 5.0)) " " (coordinate(middle)) "L" (coordinate(x_others)) " " (coordinate(middle - 5.0)) "L" (coordinate(x_others + 5.0)) " " (coordinate(middle))
                "L" (coordinate(x_others)) " " (coordinate(middle + 5.0)) "Z" } class="hollow c2" {}
        }
        @if let Some(repair) = row.repair_ns {
            circle cx=(coordinate(at(repair))) cy=(coordinate(middle)) r="3.6" class="dot c1" {}
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
    let seen = rows.into_iter().filter_map(|row| Some((row, timeline(row)?)));
    let seen: Vec<(&Containment, (u64, Timeline))> = seen.take(MAX_INCIDENTS).collect();
    let slices: Vec<TimelineSlice<'_>> =
        seen.iter().map(|(_, (at_ns, timeline))| around(*at_ns, timeline)).collect();
    let ends = sparkline::shared_range(&slices);
    (!seen.is_empty()).then(|| {
        html! {
            p {
                "rt_venue of all orders from " (duration(SPAN_NS)) " before the fault (the upright line) to as long after it: "
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

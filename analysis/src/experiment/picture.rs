//! Draws the latency that a level or another cause adds, as one SVG file for a page of a book:
//! `launcher export FOLDER --svg FILE`.
//!
//! Values stand at equal distances; each has the margin of equivalence as a box around zero, and a
//! dot with its 95 % interval for each series.

use crate::grouping::distinct;
use crate::stats::{ComparisonLine, Estimate, Verdict};
use maud::{Markup, html};
use protocol::plan::{Isolation, IsolationLevel};
use record::numbers::{counted, duration};
use serde::{Deserialize, Serialize};
use verdict::chart::axis;
use verdict::chart::scale::Scale;
use verdict::chart::svg::{self, Frame, WIDTH, coordinate, line, text};

const STYLE: &str = include_str!("picture.css");
/// Height of a panel, with its heading and the labels below it.
const PANEL: f64 = 300.0;
/// Distance of two levels at one value.
const DODGE: f64 = 16.0;
/// Classes of isolation levels.
const CLASSES: [&str; 4] = ["c1", "c2", "c3", "c4"];
const EDGES: (f64, f64) = (96.0, WIDTH - 20.0);

/// A point of an experiment's chart: the latency difference to a reference, in nanoseconds, at one
/// value of the varied setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedPoint {
    /// The value of the varied setting as a number.
    pub at: f64,
    /// The value of the varied setting as text.
    pub value: String,
    /// The latency of the reference, in nanoseconds.
    pub thread_ns: Option<f64>,
    /// The difference to the reference in nanoseconds; null with too few pairs.
    pub difference: Option<Estimate>,
    /// The margin of equivalence, in nanoseconds.
    pub margin_ns: Option<f64>,
    /// Number of pairs of runs that count.
    pub pairs: usize,
    /// The verdict on the comparison.
    pub verdict: Verdict,
}

impl ComparedPoint {
    /// Creates a chart's point from one comparison of two settings; `at` is the varied setting's
    /// value as a number, `value` the same as text.
    pub fn of_line(line: &ComparisonLine, at: f64, value: String) -> Self {
        let found = line.evidence().difference;
        Self {
            at,
            value,
            thread_ns: line.a_ns,
            difference: found.map(|found| found.difference),
            margin_ns: found.and_then(|found| found.equivalence).map(|test| test.margin),
            pairs: found.map_or(line.pairs, |found| found.pairs),
            verdict: line.verdict,
        }
    }
}

/// A panel of an experiment's picture, with its own axes.
pub struct PicturePanel<'a> {
    /// Heading of the panel: `spsc-mux, by strategies`.
    pub name: String,
    /// The series of the panel, each with a dot at each value.
    pub series: Vec<PictureSeries<'a>>,
}

/// The points of one isolation level in a panel of a picture.
pub struct PictureSeries<'a> {
    /// Name of the series in the legend.
    pub name: String,
    /// The isolation level, which decides the color.
    pub level: IsolationLevel,
    /// The comparisons that the dots show.
    pub points: Vec<&'a ComparedPoint>,
}

impl PictureSeries<'_> {
    fn class(&self) -> &'static str {
        CLASSES
            [Isolation::ALL.iter().position(|kind| *kind == self.level.kind()).unwrap_or(0) % CLASSES.len()]
    }
}

/// Draws the panels of an experiment's picture, and returns a whole SVG file. `None` if no point
/// has enough pairs.
pub fn draw(title: &str, panels: &[PicturePanel<'_>]) -> Option<String> {
    let all = || panels.iter().flat_map(|panel| &panel.series);
    all().flat_map(|series| &series.points).find(|point| point.difference.is_some())?;
    let levels = distinct(all().map(|series| (series.name.clone(), series.class())));
    let names: Vec<&str> = panels.iter().map(|panel| panel.name.as_str()).collect();
    let described: Vec<&str> = levels.iter().map(|(name, _)| name.as_str()).collect();
    let description = format!(
        "{}. Dots with 95 % intervals for {}; boxes are the margin within which there is no difference.",
        names.join("; "),
        described.join(", ")
    );
    let content = html! {
        (text(EDGES.0, 30.0, "start", "heading", title))
        @if all().any(|series| series.points.len() > 1) { (legend(&levels)) }
        @for (number, shown) in panels.iter().enumerate() {
            (panel(shown, &levels, 62.0 + PANEL * number as f64))
        }
    };
    let height = 70.0 + PANEL * panels.len() as f64;
    Some(svg::file((WIDTH, height), title, Some(&description), STYLE, &content))
}

/// A series' name, and its class.
type Level = (String, &'static str);

fn legend(levels: &[Level]) -> Markup {
    let mut right = EDGES.1;
    let keys = levels.iter().rev().map(|(level, class)| {
        right -= svg::text_width(level) + 30.0;
        (level, *class, right)
    });
    let keys: Vec<(&String, &str, f64)> = keys.collect();
    html! {
        @for (level, class, left) in keys {
            circle class=(class) cx=(coordinate(left)) cy="26" r="5" {}
            (text(left + 10.0, 30.0, "start", "", level))
        }
    }
}

fn panel(shown: &PicturePanel<'_>, levels: &[Level], top: f64) -> Markup {
    let frame = Frame { left: EDGES.0, right: EDGES.1, top: top + 24.0, bottom: top + PANEL - 74.0 };
    let points = || shown.series.iter().flat_map(|series| series.points.iter().copied());
    let values = distinct(points().map(|point| point.value.clone()));
    let width = (frame.right - frame.left) / values.len().max(1) as f64;
    let middle = |value: usize| frame.left + width * (value as f64 + 0.5);
    let reach = points().flat_map(|point| {
        let by = point.difference.map_or([0.0; 2], |by| [by.low, by.high]);
        let margin = point.margin_ns.unwrap_or(0.0);
        [by[0], by[1], -margin, margin]
    });
    let (low, high) = reach
        .filter(|ns| ns.is_finite())
        .fold((-1.0, 1.0), |(low, high): (f64, f64), ns| (low.min(ns), high.max(ns)));
    let pad = (high - low) * 0.06;
    let y = Scale::linear_exact(low - pad, high + pad, (frame.bottom, frame.top));
    let has_several = shown.series.iter().any(|series| series.points.len() > 1);
    let first = |value: &String| points().find(|point| point.value == *value);
    html! {
        (text(frame.left, top + 10.0, "start", "strong", &shown.name))
        g class="axis" {
            @for ns in y.ticks() {
                (line((frame.left, y.at(ns)), (frame.right, y.at(ns)), if ns == 0.0 { "base" } else { "grid" }))
                (text(frame.left - 8.0, y.at(ns) + 4.0, "end", "tick", &axis::duration(ns).replace('-', "−")))
            }
        }
        @for (number, value) in values.iter().enumerate() {
            @if let Some(point) = first(value) {
                (margin_box(point, middle(number), width, &y))
                (text(middle(number), frame.bottom + 18.0, "middle", "", value))
                (text(middle(number), frame.bottom + 35.0, "middle", "dim", &reference_label(point)))
                (text(middle(number), frame.bottom + 51.0, "middle", "dim", &counted(point.pairs as u64, "pair")))
            }
        }
        @for series in &shown.series {
            @let level = levels.iter().position(|(level, _)| *level == series.name).unwrap_or(0);
            @let shift = DODGE * (level as f64 - (levels.len() as f64 - 1.0) / 2.0);
            // Without a legend each level has its own place.
            @let shift = if has_several { shift } else { 0.0 };
            @for point in &series.points {
                @let place = values.iter().position(|value| *value == point.value).unwrap_or(0);
                (dot(point, middle(place) + shift, &y, series.class()))
            }
        }
    }
}

fn reference_label(point: &ComparedPoint) -> String {
    let thread = point.thread_ns.map_or_else(|| "–".into(), |ns| duration(ns as u64));
    format!("of {thread}")
}

/// The margin of equivalence around zero.
fn margin_box(point: &ComparedPoint, middle: f64, width: f64, y: &Scale) -> Markup {
    let margin = point.margin_ns.unwrap_or(0.0);
    let (top, bottom) = (y.at(margin), y.at(-margin));
    html! {
        rect class="box" x=(coordinate(middle - width * 0.4)) y=(coordinate(top)) width=(coordinate(width * 0.8))
            height=(coordinate(bottom - top)) {}
    }
}

/// A level's difference with its interval.
fn dot(point: &ComparedPoint, x: f64, y: &Scale, class: &str) -> Markup {
    let Some(by) = point.difference else { return html! {} };
    html! {
        (line((x, y.at(by.low)), (x, y.at(by.high)), &format!("interval {class}")))
        circle class=(class) cx=(coordinate(x)) cy=(coordinate(y.at(by.value))) r="4.5" {
            title { (point.verdict) }
        }
    }
}
